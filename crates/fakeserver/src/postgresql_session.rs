//! One PostgreSQL client after its login.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::postgresql::{BackendMessage, FrontendMessage, Value, type_oid};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES, Result};

use crate::answer::{Body, Kind, Session};
use crate::options::Protocol;
use crate::plan::{Context, Effect, Plan, Reply};
use crate::postgresql_answer::{self as encoding, Form, Part, decode_values, fields, oid, record};
use crate::postgresql_login::Login;
use crate::postgresql_message::{self as message, Formats, HEADER_BYTES};
use crate::script::{ErrorSpec, Fault};
use crate::session::{Conversation, Turn};
use crate::sql;

pub(crate) const IDLE: u8 = b'I';
const IN_TRANSACTION: u8 = b'T';
const FAILED: u8 = b'E';

struct Prepared {
    plan: Rc<Plan<Form>>,
    types: Vec<u32>,
}

struct Portal {
    statement: Rc<Prepared>,
    values: Vec<Value>,
    result_formats: Vec<i16>,
    /// What an execution with a limit left.
    pending: Option<VecDeque<BackendMessage>>,
}

/// COPY FROM STDIN under way, and the statements that follow it in its text.
struct Copy {
    lines: usize,
    rest: VecDeque<String>,
}

pub(crate) struct PostgresqlSession {
    pub(crate) session: Session,
    pub(crate) login: Option<Login>,
    state: u8,
    statements: HashMap<Box<str>, Rc<Prepared>>,
    unnamed_statement: Option<Rc<Prepared>>,
    portals: HashMap<Box<str>, Portal>,
    unnamed_portal: Option<Portal>,
    copy: Option<Copy>,
    /// After an error everything up to Sync is skipped.
    skipping: bool,
    /// How the answers that are not yet due are to be delivered, and where they begin.
    fault: Option<Fault>,
    delay: Duration,
    due_from: usize,
}

impl Conversation for PostgresqlSession {
    type Key = Form;

    fn new(context: &Context<Form>, connection: u64) -> Self {
        let session = Session {
            protocol: Protocol::Postgresql,
            server_version: context.shared.options.server_version.clone(),
            connection,
            user: String::new(),
            database: String::new(),
        };
        let reception = context.shared.script.reception(connection);
        Self {
            session,
            login: Some(Login::Arrived(reception)),
            state: IDLE,
            statements: HashMap::new(),
            unnamed_statement: None,
            portals: HashMap::new(),
            unnamed_portal: None,
            copy: None,
            skipping: false,
            fault: None,
            delay: Duration::ZERO,
            due_from: 0,
        }
    }

    fn step(
        &mut self,
        context: &mut Context<Form>,
        input: &[u8],
        out: &mut BytesMut,
    ) -> Result<(usize, Turn)> {
        // What was held back stands at the beginning.
        self.due_from = 0;
        let mut taken = 0;
        while self.login.is_some() {
            let (length, turn) = self.log_in(context, &input[taken..], out)?;
            taken += length;
            match turn {
                // It goes on with the next message, unless that is not there yet.
                Turn::More if length > 0 || self.login.is_none() => {}
                turn => return Ok((taken, turn)),
            }
        }
        self.due_from = if taken > 0 { out.len() } else { 0 };
        loop {
            let rest = &input[taken..];
            let Some(length) = message_length(rest)? else {
                let turn = if out.len() > self.due_from { Turn::Hold(self.due_from) } else { Turn::More };
                return Ok((taken, turn));
            };
            taken += length;
            let turn = self.message(context, &rest[..length], out)?;
            if turn != Turn::More {
                return Ok((taken, turn));
            }
        }
    }

    /// A length of two gigabytes in the first header.
    fn lie(output: &mut [u8]) {
        if let Some(length) = output.get_mut(1..5) {
            length.copy_from_slice(&i32::MAX.to_be_bytes());
        }
    }
}

/// Bytes of the message at the beginning; None when more are to come.
fn message_length(input: &[u8]) -> Result<Option<usize>> {
    let Some([_, a, b, c, d]) = input.get(..HEADER_BYTES) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize + 1;
    if !(HEADER_BYTES..=MESSAGE_CEILING_BYTES).contains(&length) {
        return Err(Error::Malformed("message length"));
    }
    Ok((input.len() >= length).then_some(length))
}

impl PostgresqlSession {
    /// One message; `More` means that the next one may be taken.
    fn message(&mut self, context: &mut Context<Form>, raw: &[u8], out: &mut BytesMut) -> Result<Turn> {
        let body = &raw[HEADER_BYTES..];
        let malformed = Error::Malformed("client message");
        match raw[0] {
            _ if self.copy.is_some() => return self.copy_in(context, raw, out),
            b'S' => {
                self.skipping = false;
                if self.state == IDLE {
                    self.portals.clear();
                    self.unnamed_portal = None;
                }
                out.extend_from_slice(&[b'Z', 0, 0, 0, 5, self.state]);
                return Ok(self.deliver(out));
            }
            b'X' => return Ok(Turn::Over),
            _ if self.skipping => {}
            b'H' => return Ok(self.deliver(out)),
            b'B' if !context.shared.recorder.is_recording() => {
                let bind = message::bind(body).ok_or(malformed)?;
                self.bind(bind.portal, bind.statement, bind.result_formats, |_| Ok(Vec::new()), out);
            }
            b'D' => {
                let (kind, name) = message::describe(body).ok_or(malformed)?;
                self.describe(context, kind, name, out);
            }
            b'E' => {
                let (portal, max_rows) = message::execute(body).ok_or(malformed)?;
                self.execute(context, portal, max_rows, out);
            }
            _ => {
                let mut copy = BytesMut::from(raw);
                let whole = FrontendMessage::parse(&mut copy, MESSAGE_CEILING_BYTES)?.ok_or(malformed)?;
                if let turn @ (Turn::Over | Turn::Deliver { .. } | Turn::Hold(_)) =
                    self.rarer(context, whole, body, out)
                {
                    return Ok(turn);
                }
            }
        }
        // Answers of a pipeline wait for Sync or Flush, except that a fault strikes where it is.
        Ok(if self.fault.is_some() { self.deliver(out) } else { Turn::More })
    }

    fn rarer(
        &mut self,
        context: &mut Context<Form>,
        whole: FrontendMessage,
        body: &[u8],
        out: &mut BytesMut,
    ) -> Turn {
        use FrontendMessage as M;
        match whole {
            M::Query(text) => {
                let statements: VecDeque<String> =
                    sql::statements(&text).into_iter().map(str::to_owned).collect();
                if statements.is_empty() {
                    BackendMessage::EmptyQueryResponse.write(out);
                }
                return self.simple(context, statements, out);
            }
            M::Parse { name, sql, types } => self.parse(context, &name, &sql, types, out),
            M::Bind { formats, values, .. } => {
                if let Some(bind) = message::bind(body) {
                    let decode = |types: &[u32]| decode_values(types, &formats, &values);
                    self.bind(bind.portal, bind.statement, bind.result_formats, decode, out);
                }
            }
            M::Close { kind, name } => {
                match (kind, name.as_str()) {
                    (b'S', "") => self.unnamed_statement = None,
                    (b'S', name) => drop(self.statements.remove(name)),
                    (_, "") => self.unnamed_portal = None,
                    (_, name) => drop(self.portals.remove(name)),
                }
                BackendMessage::CloseComplete.write(out);
            }
            // Copy data that comes after a copy has failed is ignored, as servers do.
            M::CopyData(_) | M::CopyDone | M::CopyFail(_) => {}
            _ => self.fail("08P01", "unexpected message", out),
        }
        Turn::More
    }

    /// All answers so far are due.
    fn deliver(&mut self, out: &BytesMut) -> Turn {
        let (delay, fault) = (std::mem::take(&mut self.delay), self.fault.take());
        let from = std::mem::replace(&mut self.due_from, out.len());
        Turn::answered(delay, fault, from)
    }

    fn error(&mut self, sqlstate: &str, message: &str, out: &mut BytesMut) {
        BackendMessage::error("ERROR", sqlstate, message).write(out);
        if self.state == IN_TRANSACTION {
            self.state = FAILED;
        }
    }

    fn fail(&mut self, sqlstate: &str, message: &str, out: &mut BytesMut) {
        self.error(sqlstate, message, out);
        self.skipping = true;
    }

    fn fail_as_scripted(&mut self, error: &ErrorSpec, out: &mut BytesMut) {
        self.fail(error.sqlstate(), error.message(), out);
    }

    /// The statements of a simple query, up to one that copies.
    fn simple(
        &mut self,
        context: &mut Context<Form>,
        mut statements: VecDeque<String>,
        out: &mut BytesMut,
    ) -> Turn {
        while let Some(statement) = statements.pop_front() {
            context.shared.recorder.statement(self.session.connection, &statement, Vec::new());
            let plan = context.plan(&statement);
            if plan.verb == "COPY" && statement.to_uppercase().contains("STDIN") && self.state != FAILED {
                // Text format, no column formats.
                BackendMessage::CopyIn(Bytes::from_static(&[0, 0, 0])).write(out);
                self.copy = Some(Copy { lines: 0, rest: statements });
                let from = std::mem::replace(&mut self.due_from, out.len());
                return Turn::answered(std::mem::take(&mut self.delay), None, from);
            }
            if let Some((reply, was_failed)) = self.run(context, &plan, out) {
                self.put(&plan, &reply, Part::DescribedRows, Vec::new(), was_failed, out);
            }
            if std::mem::take(&mut self.skipping) {
                break;
            }
        }
        BackendMessage::ReadyForQuery(self.state).write(out);
        self.deliver(out)
    }

    fn copy_in(&mut self, context: &mut Context<Form>, raw: &[u8], out: &mut BytesMut) -> Result<Turn> {
        let mut whole = BytesMut::from(raw);
        let Some(copy) = self.copy.as_mut() else { return Ok(Turn::More) };
        match FrontendMessage::parse(&mut whole, MESSAGE_CEILING_BYTES)? {
            Some(FrontendMessage::CopyData(data)) => {
                copy.lines += data.iter().filter(|byte| **byte == b'\n').count();
                return Ok(Turn::More);
            }
            Some(FrontendMessage::CopyDone) => {
                BackendMessage::CommandComplete(format!("COPY {}", copy.lines)).write(out);
            }
            Some(FrontendMessage::CopyFail(reason)) => {
                let message = format!("COPY from stdin failed: {reason}");
                self.error("57014", &message, out);
            }
            _ => return Ok(Turn::More),
        }
        let rest = self.copy.take().map(|copy| copy.rest).unwrap_or_default();
        Ok(self.simple(context, rest, out))
    }

    /// The answer to a statement and whether the transaction had failed; None when it fails itself, which
    /// stands in `out` then.
    fn run(
        &mut self,
        context: &mut Context<Form>,
        plan: &Plan<Form>,
        out: &mut BytesMut,
    ) -> Option<(Rc<Reply<Form>>, bool)> {
        let was_failed = self.state == FAILED;
        if was_failed && !matches!(plan.effect, Effect::End | Effect::BackTo) {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            self.fail("25P02", message, out);
            return None;
        }
        let reply = plan.execute(context, &self.session);
        self.delay += context.delay(reply.answer.delay);
        self.fault = self.fault.or(reply.answer.fault);
        if let Body::Failed(error) = &reply.answer.body {
            self.fail_as_scripted(error, out);
            return None;
        }
        Some((reply, was_failed))
    }

    /// Puts rows and tag; what the statement does to the transaction happens now.
    fn put(
        &mut self,
        plan: &Plan<Form>,
        reply: &Reply<Form>,
        part: Part,
        formats: Vec<i16>,
        was_failed: bool,
        out: &mut BytesMut,
    ) {
        let form = Form { part, formats, was_failed };
        match reply.encoded(form.clone(), || messages(plan, reply, &form).map(|all| encoding::joined(&all))) {
            Ok(bytes) => {
                out.extend_from_slice(&bytes);
                self.follow(plan.effect);
            }
            Err(message) => self.fail("0A000", &message, out),
        }
    }

    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Begin | Effect::BackTo => self.state = IN_TRANSACTION,
            Effect::End => self.state = IDLE,
            _ => {}
        }
    }

    fn parse(
        &mut self,
        context: &mut Context<Form>,
        name: &str,
        sql: &str,
        mut types: Vec<u32>,
        out: &mut BytesMut,
    ) {
        let plan = context.plan(sql);
        let script = &context.shared.script;
        if let Some(rule) = plan.prepare(context.shared).map(|index| script.rule_of(index)) {
            self.delay += context.delay_of(rule.delay());
            self.fault = self.fault.or(rule.fault());
            if let Some(error) = rule.error() {
                self.fail_as_scripted(error, out);
                return;
            }
        }
        types.resize(types.len().max(plan.marks), type_oid::UNKNOWN);
        let scripted = context.shared.script.description(sql).and_then(|rule| rule.parameters());
        for (position, known) in types.iter_mut().enumerate() {
            if *known == type_oid::UNKNOWN {
                *known = scripted
                    .and_then(|names| names.get(position))
                    .map_or(type_oid::TEXT, |name| oid(Kind::parse(name)));
            }
        }
        let prepared = Rc::new(Prepared { plan, types });
        if name.is_empty() {
            self.unnamed_statement = Some(prepared);
        } else {
            self.statements.insert(name.into(), prepared);
        }
        BackendMessage::ParseComplete.write(out);
    }

    fn statement(&self, name: &str) -> Option<&Rc<Prepared>> {
        if name.is_empty() { self.unnamed_statement.as_ref() } else { self.statements.get(name) }
    }

    fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        result_formats: Formats<'_>,
        decode: impl FnOnce(&[u32]) -> Result<Vec<Value>>,
        out: &mut BytesMut,
    ) {
        let Some(statement) = self.statement(statement).cloned() else {
            self.fail("26000", &format!("prepared statement \"{statement}\" does not exist"), out);
            return;
        };
        match decode(&statement.types) {
            Ok(values) => {
                let result_formats = result_formats.iter().collect();
                let bound = Portal { statement, values, result_formats, pending: None };
                self.keep(portal, bound);
                out.extend_from_slice(&[b'2', 0, 0, 0, 4]);
            }
            Err(error) => self.fail("22P03", &error.to_string(), out),
        }
    }

    fn keep(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed_portal = Some(portal);
        } else {
            self.portals.insert(name.into(), portal);
        }
    }

    fn describe(&mut self, context: &mut Context<Form>, kind: u8, name: &str, out: &mut BytesMut) {
        let portal = if name.is_empty() { self.unnamed_portal.as_ref() } else { self.portals.get(name) };
        let found = match kind {
            b'S' => self.statement(name).map(|statement| (statement, &[][..])),
            _ => portal.map(|portal| (&portal.statement, portal.result_formats.as_slice())),
        };
        let Some((statement, formats)) = found else {
            let (sqlstate, what) =
                if kind == b'S' { ("26000", "prepared statement") } else { ("34000", "portal") };
            self.fail(sqlstate, &format!("{what} \"{name}\" does not exist"), out);
            return;
        };
        if kind == b'S' {
            BackendMessage::ParameterDescription(statement.types.clone()).write(out);
        }
        let described = statement.plan.described(formats, || {
            let columns = statement.plan.columns(context.shared, &self.session);
            encoding::joined(&[match columns.is_empty() {
                true => BackendMessage::NoData,
                false => BackendMessage::RowDescription(fields(&columns, formats)),
            }])
        });
        out.extend_from_slice(&described);
    }

    fn execute(&mut self, context: &mut Context<Form>, name: &str, max_rows: i32, out: &mut BytesMut) {
        let found = if name.is_empty() { self.unnamed_portal.take() } else { self.portals.remove(name) };
        let Some(mut portal) = found else {
            self.fail("34000", &format!("portal \"{name}\" does not exist"), out);
            return;
        };
        let limit = usize::try_from(max_rows).unwrap_or(0);
        let plan = Rc::clone(&portal.statement.plan);
        if portal.pending.is_none() {
            let recorder = &context.shared.recorder;
            if recorder.is_recording() {
                record(recorder, self.session.connection, &plan.text, &portal.values);
            } else {
                recorder.count();
            }
            if plan.text.trim().is_empty() {
                BackendMessage::EmptyQueryResponse.write(out);
            } else if let Some((reply, was_failed)) = self.run(context, &plan, out) {
                let formats = portal.result_formats.clone();
                if limit == 0 {
                    self.put(&plan, &reply, Part::Rows, formats, was_failed, out);
                } else {
                    let form = Form { part: Part::Rows, formats, was_failed };
                    match messages(&plan, &reply, &form) {
                        Ok(all) => {
                            portal.pending = Some(all.into());
                            self.follow(plan.effect);
                        }
                        Err(message) => self.fail("0A000", &message, out),
                    }
                }
            }
        }
        if let Some(mut pending) = portal.pending.take() {
            // The last message is the tag: a portal is suspended when rows are left before it.
            let suspends = limit > 0 && pending.len() > limit + 1;
            let count = if suspends { limit } else { pending.len() };
            pending.drain(..count).for_each(|message| message.write(out));
            if suspends {
                BackendMessage::PortalSuspended.write(out);
                portal.pending = Some(pending);
            }
        }
        self.keep(name, portal);
    }
}

/// Rows and tag. Error: a value that has no binary form.
fn messages(
    plan: &Plan<Form>,
    reply: &Reply<Form>,
    form: &Form,
) -> std::result::Result<Vec<BackendMessage>, String> {
    let mut all = Vec::new();
    let count = match &reply.answer.body {
        Body::Rows { columns, rows } => {
            let encoded = encoding::rows(columns, rows, &form.formats)?;
            if form.part == Part::DescribedRows {
                all.push(BackendMessage::RowDescription(fields(columns, &form.formats)));
            }
            all.extend(encoded);
            rows.len() as u64
        }
        Body::Done { affected } => *affected,
        Body::Failed(_) => 0,
    };
    all.push(BackendMessage::CommandComplete(encoding::tag(
        &plan.verb,
        &plan.second,
        count,
        form.was_failed,
    )));
    Ok(all)
}
