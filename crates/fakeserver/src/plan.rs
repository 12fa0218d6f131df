//! What a statement's text comes to, worked out once for each text: which rules match it, what they answer,
//! and the answer's bytes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use rand::rngs::SmallRng;

use crate::answer::{Answer, Column, Session};
use crate::delay::Delay;
use crate::options::Protocol;
use crate::script::Moment;
use crate::server::Shared;
use crate::sql;

/// Texts that are remembered; a client without prepared statements sends a new one each time.
const MOST_TEXTS: usize = 4_096;
/// Longer texts (rows of a load) are not worth remembering.
const LONGEST_TEXT_BYTES: usize = 4_096;

/// What a statement does to its connection's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Begin,
    /// COMMIT, ROLLBACK and their like.
    End,
    /// ROLLBACK TO a savepoint.
    BackTo,
    /// DDL, which commits on MySQL.
    Definition,
    Autocommit(bool),
    /// Reads or writes rows: opens a transaction on MySQL without autocommit.
    Rows,
    None,
}

impl Effect {
    fn of(text: &str, verb: &str, second: &str) -> Self {
        match (verb, second) {
            ("BEGIN", _) | ("START", "TRANSACTION") => Effect::Begin,
            ("ROLLBACK", "TO") => Effect::BackTo,
            ("COMMIT" | "ROLLBACK" | "END" | "ABORT", _) => Effect::End,
            ("SET", "AUTOCOMMIT" | "@@AUTOCOMMIT") => {
                let value = text.rsplit('=').next().unwrap_or_default().trim().to_uppercase();
                Effect::Autocommit(matches!(value.as_str(), "1" | "ON" | "TRUE"))
            }
            ("SELECT" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE", _) => Effect::Rows,
            ("CREATE" | "DROP" | "ALTER" | "TRUNCATE", _) => Effect::Definition,
            _ => Effect::None,
        }
    }
}

/// An answer and the bytes that it has been so far.
#[derive(Debug)]
pub(crate) struct Reply<K> {
    pub(crate) answer: Answer,
    encoded: RefCell<Vec<(K, Bytes)>>,
}

impl<K: PartialEq> Reply<K> {
    fn new(answer: Answer) -> Self {
        Self { answer, encoded: RefCell::default() }
    }

    /// The bytes under a key, made at the first time.
    pub(crate) fn encoded<E>(&self, key: K, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some((_, bytes)) = self.encoded.borrow().iter().find(|(known, _)| *known == key) {
            return Ok(bytes.clone());
        }
        let bytes = make()?;
        self.encoded.borrow_mut().push((key, bytes.clone()));
        Ok(bytes)
    }
}

/// Replies by the rule that gives them.
type Replies<K> = Vec<(Option<usize>, Rc<Reply<K>>)>;

/// A text that is known. `K` tells the forms of its answer's bytes apart.
#[derive(Debug)]
pub(crate) struct Plan<K> {
    pub(crate) text: Box<str>,
    pub(crate) verb: String,
    pub(crate) second: String,
    pub(crate) effect: Effect,
    pub(crate) marks: usize,
    begins_stalls: bool,
    is_personal: bool,
    executing: Vec<usize>,
    preparing: Vec<usize>,
    replies: RefCell<Replies<K>>,
    descriptions: RefCell<Vec<(Vec<i16>, Bytes)>>,
}

impl<K: PartialEq> Plan<K> {
    fn new(text: &str, shared: &Shared) -> Self {
        let (verb, second) = sql::verbs(text);
        let marks = match shared.options.protocol {
            Protocol::Mysql => sql::question_marks(text),
            Protocol::Postgresql => sql::dollar_marks(text),
        };
        Self {
            text: text.into(),
            effect: Effect::of(text, &verb, &second),
            verb,
            second,
            marks,
            begins_stalls: shared.script.begins_stalls(text),
            is_personal: Session::is_personal(text),
            executing: shared.script.matching(text, Moment::Execute),
            preparing: shared.script.matching(text, Moment::Prepare),
            replies: RefCell::default(),
            descriptions: RefCell::default(),
        }
    }

    /// The answer to this execution, which is counted where rules count.
    pub(crate) fn execute(&self, context: &mut Context<K>, session: &Session) -> Rc<Reply<K>> {
        context.stalls_begin |= self.begins_stalls;
        let script = &context.shared.script;
        let chosen = if self.executing.is_empty() { None } else { script.choose(&self.executing) };
        if !self.is_personal {
            let replies = self.replies.borrow();
            if let Some((_, reply)) = replies.iter().find(|(known, _)| *known == chosen) {
                return Rc::clone(reply);
            }
        }
        let rule = chosen.map(|index| script.rule_of(index));
        let reply = Rc::new(Reply::new(session.answer(script, &self.text, rule)));
        if !self.is_personal {
            self.replies.borrow_mut().push((chosen, Rc::clone(&reply)));
        }
        reply
    }

    /// The rule that acts on this preparation.
    pub(crate) fn prepare(&self, shared: &Shared) -> Option<usize> {
        if self.preparing.is_empty() { None } else { shared.script.choose(&self.preparing) }
    }

    /// The bytes that describe the result in these formats, made at the first time.
    pub(crate) fn described(&self, formats: &[i16], make: impl FnOnce() -> Bytes) -> Bytes {
        if let Some((_, bytes)) = self.descriptions.borrow().iter().find(|(known, _)| known == formats) {
            return bytes.clone();
        }
        let bytes = make();
        self.descriptions.borrow_mut().push((formats.to_vec(), bytes.clone()));
        bytes
    }

    /// The columns that an execution returns.
    pub(crate) fn columns(&self, shared: &Shared, session: &Session) -> Vec<Column> {
        session.columns(&shared.script, &self.text)
    }
}

/// What all sessions of an event loop have in common.
#[derive(Debug)]
pub(crate) struct Context<'a, K> {
    pub(crate) shared: &'a Shared,
    plans: HashMap<Box<str>, Rc<Plan<K>>>,
    random: SmallRng,
    /// A statement came from which stalls are counted.
    pub(crate) stalls_begin: bool,
}

impl<'a, K: PartialEq> Context<'a, K> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        let random = Delay::random(shared.options.seed);
        Self { shared, plans: HashMap::new(), random, stalls_begin: false }
    }

    pub(crate) fn plan(&mut self, text: &str) -> Rc<Plan<K>> {
        if let Some(plan) = self.plans.get(text) {
            return Rc::clone(plan);
        }
        let plan = Rc::new(Plan::new(text, self.shared));
        if text.len() <= LONGEST_TEXT_BYTES {
            if self.plans.len() >= MOST_TEXTS {
                self.plans.clear();
            }
            self.plans.insert(text.into(), Rc::clone(&plan));
        }
        plan
    }

    /// How late this answer is: by its own rule, else as all are.
    pub(crate) fn delay(&mut self, own: Option<Delay>) -> Duration {
        match own.or(self.shared.options.delay) {
            Some(delay) => delay.draw(&mut self.random),
            None => Duration::ZERO,
        }
    }

    /// How late a preparation is: by its own rule only.
    pub(crate) fn delay_of(&mut self, own: Option<Delay>) -> Duration {
        own.map_or(Duration::ZERO, |delay| delay.draw(&mut self.random))
    }
}
