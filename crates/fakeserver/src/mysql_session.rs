//! One MySQL client after its login.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::{self, Command, ParameterType, PrepareOk, capability, status};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES, Result};

use crate::answer::{Body, Column, Kind, Session};
use crate::mysql_answer::{self, Form, Writer, definition, record};
use crate::mysql_login::Login;
use crate::options::Protocol;
use crate::plan::{Context, Effect, Plan};
use crate::session::{Conversation, Turn};
use crate::sql;

const HEADER_BYTES: usize = 4;
const CHUNK_BYTES: usize = 0xFF_FFFF;
const COM_STMT_EXECUTE: u8 = 0x17;

struct Prepared {
    plan: Rc<Plan<Form>>,
    types: Vec<ParameterType>,
    long_data: HashMap<u16, Bytes>,
}

pub(crate) struct MysqlSession {
    pub(crate) session: Session,
    pub(crate) login: Option<Login>,
    pub(crate) sequence: u8,
    pub(crate) capabilities: u32,
    autocommit: bool,
    in_transaction: bool,
    statements: HashMap<u32, Prepared>,
    last_prepared: u32,
}

impl Conversation for MysqlSession {
    type Key = Form;

    fn new(context: &Context<Form>, connection: u64) -> Self {
        let session = Session {
            protocol: Protocol::Mysql,
            server_version: context.shared.options.server_version.clone(),
            connection,
            user: String::new(),
            database: String::new(),
        };
        let reception = context.shared.script.reception(connection);
        Self {
            session,
            login: Some(Login::Arrived(reception)),
            sequence: 0,
            capabilities: 0,
            autocommit: true,
            in_transaction: false,
            statements: HashMap::new(),
            last_prepared: 0,
        }
    }

    fn step(
        &mut self,
        context: &mut Context<Form>,
        input: &[u8],
        out: &mut BytesMut,
    ) -> Result<(usize, Turn)> {
        let mut taken = 0;
        loop {
            if self.login.as_ref().is_some_and(|login| !login.needs_input()) {
                match self.greet(context, out) {
                    Turn::More => {}
                    turn => return Ok((taken, turn)),
                }
            }
            let rest = &input[taken..];
            let Some(length) = packet_length(rest)? else {
                return Ok((taken, Turn::More));
            };
            let packet = &rest[..length];
            taken += length;
            let turn = if self.login.is_none() && is_execute(packet) {
                self.sequence = 1;
                self.execute(context, &packet[HEADER_BYTES..], out)?
            } else {
                let mut copy = BytesMut::from(packet);
                let Some(packet) = mysql::parse(&mut copy, MESSAGE_CEILING_BYTES)? else {
                    return Err(Error::Malformed("packet"));
                };
                self.sequence = packet.sequence.wrapping_add(1);
                if self.login.is_some() {
                    self.log_in(context, &packet.payload, out)?
                } else {
                    self.command(context, Command::parse(&packet.payload)?, out)?
                }
            };
            if turn != Turn::More {
                return Ok((taken, turn));
            }
        }
    }

    /// A length one too many: what follows is read as a header in the wrong place, or never comes.
    fn lie(output: &mut [u8]) {
        if let [first, ..] = output {
            *first = first.wrapping_add(1);
        }
    }
}

/// Bytes of the packet at the beginning, all its chunks together; None when more are to come.
fn packet_length(input: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    loop {
        let Some([a, b, c, _]) = input.get(at..at + HEADER_BYTES) else {
            return Ok(None);
        };
        let chunk = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        at += HEADER_BYTES + chunk;
        if at > MESSAGE_CEILING_BYTES {
            return Err(Error::Malformed("packet length"));
        }
        if input.len() < at {
            return Ok(None);
        }
        if chunk < CHUNK_BYTES {
            return Ok(Some(at));
        }
    }
}

/// Whether it is an execution in one chunk that begins a command.
fn is_execute(packet: &[u8]) -> bool {
    matches!(packet, [_, _, _, 0, COM_STMT_EXECUTE, ..]) && packet.len() <= CHUNK_BYTES
}

impl MysqlSession {
    pub(crate) fn writer<'a>(&'a mut self, out: &'a mut BytesMut) -> Writer<'a> {
        Writer { out, sequence: &mut self.sequence }
    }

    pub(crate) fn status(&self) -> u16 {
        let autocommit = if self.autocommit { status::AUTOCOMMIT } else { 0 };
        autocommit | if self.in_transaction { status::IN_TRANSACTION } else { 0 }
    }

    pub(crate) fn put_ok(&mut self, out: &mut BytesMut) {
        let status = self.status();
        self.writer(out).ok(0, status);
    }

    fn command(&mut self, context: &mut Context<Form>, command: Command, out: &mut BytesMut) -> Result<Turn> {
        match command {
            Command::Quit => return Ok(Turn::Over),
            Command::InitDb(name) => {
                self.session.database = String::from_utf8_lossy(&name).into_owned();
                self.put_ok(out);
            }
            Command::Ping | Command::SetOption(_) => self.put_ok(out),
            Command::ResetConnection | Command::ChangeUser(_) => {
                self.statements.clear();
                (self.autocommit, self.in_transaction) = (true, false);
                self.put_ok(out);
            }
            Command::Statistics => {
                let line = context.shared.recorder.summary();
                self.writer(out).put(line.as_bytes());
            }
            Command::Query(text) => return self.query(context, &String::from_utf8_lossy(&text), out),
            Command::Prepare(text) => return self.prepare(context, &String::from_utf8_lossy(&text), out),
            // One that is longer than a chunk; the others do not come here.
            command @ Command::Execute { .. } => return self.execute(context, &command.encode(), out),
            Command::LongData { statement_id, parameter, data } => {
                if let Some(prepared) = self.statements.get_mut(&statement_id) {
                    let before = prepared.long_data.remove(&parameter).unwrap_or_default();
                    prepared.long_data.insert(parameter, Bytes::from([before, data].concat()));
                }
            }
            Command::CloseStatement(id) => {
                self.statements.remove(&id);
            }
            Command::ResetStatement(id) => {
                if let Some(prepared) = self.statements.get_mut(&id) {
                    prepared.long_data.clear();
                }
                self.put_ok(out);
            }
            Command::FieldList(_) | Command::Fetch { .. } | Command::Other(_) => {
                self.writer(out).error(1047, "08S01", "Unknown command");
            }
        }
        Ok(Turn::More)
    }

    fn query(&mut self, context: &mut Context<Form>, text: &str, out: &mut BytesMut) -> Result<Turn> {
        let statements = if self.capabilities & capability::MULTI_STATEMENTS != 0 {
            sql::statements(text)
        } else {
            vec![text.trim()]
        };
        if statements.is_empty() {
            self.writer(out).error(1065, "42000", "Query was empty");
            return Ok(Turn::More);
        }
        let (mut fault, mut delay, from) = (None, Duration::ZERO, out.len());
        for (position, statement) in statements.iter().enumerate() {
            context.shared.recorder.statement(self.session.connection, statement, Vec::new());
            let plan = context.plan(statement);
            let reply = plan.execute(context, &self.session);
            let answer = &reply.answer;
            delay += context.delay(answer.delay);
            fault = fault.or(answer.fault);
            let has_failed = self.follow(plan.effect, &answer.body);
            let is_last = position + 1 == statements.len() || has_failed;
            let more = if is_last { 0 } else { status::MORE_RESULTS };
            let form = Form::new(self.status() | more, self.capabilities, false);
            self.writer(out).body(&answer.body, form)?;
            if has_failed {
                break;
            }
        }
        Ok(Turn::answered(delay, fault, from))
    }

    /// What a statement does to the transaction; says whether it failed.
    fn follow(&mut self, effect: Effect, body: &Body) -> bool {
        if let Body::Failed(error) = body {
            // A deadlock victim's transaction is rolled back by the server.
            self.in_transaction &= error.number() != 1213;
            return true;
        }
        match effect {
            Effect::Begin => self.in_transaction = true,
            Effect::End | Effect::Definition => self.in_transaction = false,
            Effect::Autocommit(on) => {
                self.autocommit = on;
                self.in_transaction &= !on;
            }
            Effect::Rows => self.in_transaction |= !self.autocommit,
            Effect::BackTo | Effect::None => {}
        }
        false
    }

    fn prepare(&mut self, context: &mut Context<Form>, text: &str, out: &mut BytesMut) -> Result<Turn> {
        let plan = context.plan(text);
        let (mut fault, mut delay, from) = (None, Duration::ZERO, out.len());
        if let Some(index) = plan.prepare(context.shared) {
            let rule = context.shared.script.rule_of(index);
            delay = context.delay_of(rule.delay());
            fault = rule.fault();
            if let Some(error) = rule.error() {
                self.writer(out).error(error.number(), error.sqlstate(), error.message());
                return Ok(Turn::answered(delay, fault, from));
            }
        }
        let columns = plan.columns(context.shared, &self.session);
        self.last_prepared += 1;
        let head = PrepareOk {
            statement_id: self.last_prepared,
            columns: columns.len() as u16,
            parameters: plan.marks as u16,
            warnings: 0,
        };
        let parameter = definition(&Column { name: "?".to_owned(), kind: Kind::Text });
        let form = Form::new(self.status(), self.capabilities, false);
        let mut writer = self.writer(out);
        writer.put(&head.encode());
        writer.definitions(&vec![parameter; plan.marks], form);
        writer.definitions(&columns.iter().map(definition).collect::<Vec<_>>(), form);
        let prepared = Prepared { plan, types: Vec::new(), long_data: HashMap::new() };
        self.statements.insert(self.last_prepared, prepared);
        Ok(Turn::answered(delay, fault, from))
    }

    /// `payload` is that of COM_STMT_EXECUTE: the command, the statement's number, a flag, a count, parameters.
    fn execute(&mut self, context: &mut Context<Form>, payload: &[u8], out: &mut BytesMut) -> Result<Turn> {
        let Some(([_, a, b, c, d, ..], parameters)) = payload.split_first_chunk::<10>() else {
            return Err(Error::Malformed("command"));
        };
        let id = u32::from_le_bytes([*a, *b, *c, *d]);
        let id = if id == Command::LAST_PREPARED { self.last_prepared } else { id };
        let Some(prepared) = self.statements.get_mut(&id) else {
            self.writer(out).error(1243, "HY000", "Unknown prepared statement handler given to EXECUTE");
            return Ok(Turn::More);
        };
        let plan = Rc::clone(&prepared.plan);
        let recorder = &context.shared.recorder;
        if recorder.is_recording() {
            let long_data = std::mem::take(&mut prepared.long_data);
            let values = mysql::decode_parameters(parameters, plan.marks, &mut prepared.types, &long_data)?;
            record(recorder, self.session.connection, &plan.text, &values);
        } else {
            recorder.count();
        }
        let (reply, from) = (plan.execute(context, &self.session), out.len());
        let answer = &reply.answer;
        let delay = context.delay(answer.delay);
        self.follow(plan.effect, &answer.body);
        let form = Form::new(self.status(), self.capabilities, true);
        let bytes = reply.encoded(form, || mysql_answer::encode(&answer.body, form))?;
        out.extend_from_slice(&bytes);
        Ok(Turn::answered(delay, answer.fault, from))
    }
}
