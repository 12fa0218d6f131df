//! One PostgreSQL client.

use std::collections::HashMap;
use std::io;
use std::thread;

use bytes::Bytes;
use dbdyno_wire::postgresql::{
    self, Authentication, BackendMessage, Field, FrontendMessage, Startup, Value, auth, format_of, type_oid,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::answer::{Body, Column, Kind, Session};
use crate::link::{Link, Onward};
use crate::options::Protocol;
use crate::recorder::Recorder;
use crate::script::{ConnectFault, ErrorSpec, Fault, Moment};
use crate::server::Shared;
use crate::sql;

const IDLE: u8 = b'I';
const IN_TRANSACTION: u8 = b'T';
const FAILED: u8 = b'E';

#[derive(Clone)]
struct Prepared {
    sql: String,
    types: Vec<u32>,
}

struct Portal {
    statement: Prepared,
    values: Vec<Value>,
    result_formats: Vec<i16>,
    /// Rows that an execution with a limit left, and how many it gave.
    pending: Option<(Vec<BackendMessage>, usize)>,
}

struct Client<'a> {
    link: Link,
    shared: &'a Shared,
    session: Session,
    state: u8,
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    /// After an error everything up to Sync is skipped.
    skipping: bool,
    /// The fault that the buffered answers are delivered with.
    fault: Option<Fault>,
}

pub(crate) fn serve(link: Link, shared: &Shared, connection: u64) -> io::Result<()> {
    let session = Session {
        protocol: Protocol::Postgresql,
        server_version: shared.options.server_version.clone(),
        connection,
        user: String::new(),
        database: String::new(),
    };
    let mut client = Client {
        link,
        shared,
        session,
        state: IDLE,
        statements: HashMap::new(),
        portals: HashMap::new(),
        skipping: false,
        fault: None,
    };
    if !client.log_in()? {
        return Ok(());
    }
    while let Some(message) = client.receive()? {
        if client.message(message)? == Onward::Over {
            break;
        }
    }
    Ok(())
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A length of two gigabytes in the first header.
fn wrong_length(output: &mut [u8]) {
    if let Some(length) = output.get_mut(1..5) {
        length.copy_from_slice(&i32::MAX.to_be_bytes());
    }
}

impl Client<'_> {
    fn receive(&mut self) -> io::Result<Option<FrontendMessage>> {
        loop {
            let message =
                FrontendMessage::parse(&mut self.link.input, MESSAGE_CEILING_BYTES).map_err(invalid)?;
            if message.is_some() {
                return Ok(message);
            }
            if !self.link.fill()? {
                return Ok(None);
            }
        }
    }

    fn put(&mut self, message: &BackendMessage) {
        message.write(&mut self.link.output);
    }

    fn deliver(&mut self) -> io::Result<Onward> {
        let fault = self.fault.take();
        self.link.deliver(fault, wrong_length)
    }

    fn put_error(&mut self, sqlstate: &str, message: &str) {
        self.put(&BackendMessage::error("ERROR", sqlstate, message));
        if self.state == IN_TRANSACTION {
            self.state = FAILED;
        }
    }

    fn fatal(&mut self, sqlstate: &str, message: &str) -> io::Result<bool> {
        self.put(&BackendMessage::error("FATAL", sqlstate, message));
        self.link.flush()?;
        Ok(false)
    }

    fn log_in(&mut self) -> io::Result<bool> {
        let reception = self.shared.script.reception(self.session.connection);
        thread::sleep(reception.delay);
        match reception.fault {
            Some(ConnectFault::Refuse) => {
                self.link.reset()?;
                return Ok(false);
            }
            Some(ConnectFault::Silence) => {
                self.link.silence()?;
                return Ok(false);
            }
            _ => {}
        }
        let parameters = loop {
            match postgresql::parse_startup(&mut self.link.input).map_err(invalid)? {
                Some(Startup::Tls | Startup::Gss) => {
                    self.link.output.extend_from_slice(b"N");
                    self.link.flush()?;
                }
                Some(Startup::Cancel { .. }) => return Ok(false),
                Some(Startup::Start { parameters, .. }) => break parameters,
                None if self.link.fill()? => {}
                None => return Ok(false),
            }
        };
        if reception.fault == Some(ConnectFault::Reset) {
            self.link.reset()?;
            return Ok(false);
        }
        let parameter =
            |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.session.user = parameter("user").unwrap_or_default();
        self.session.database = parameter("database").unwrap_or_else(|| self.session.user.clone());
        match (&reception.error, reception.fault) {
            (Some(error), _) => return self.fatal(error.sqlstate(), error.message()),
            (None, Some(ConnectFault::Error)) => {
                return self.fatal("53300", "sorry, too many clients already");
            }
            _ => {}
        }
        if let Some(password) = self.shared.options.password.clone() {
            let salt = (self.session.connection as u32 ^ 0x5A17_C0DE).to_be_bytes();
            let (request, expected) = if self.shared.options.cleartext {
                (Authentication::Cleartext, password)
            } else {
                (Authentication::Md5 { salt }, auth::md5_password(&self.session.user, &password, salt))
            };
            self.put(&BackendMessage::Authentication(request));
            self.link.flush()?;
            let Some(FrontendMessage::Password(given)) = self.receive()? else {
                return Ok(false);
            };
            if given.strip_suffix(&[0]).unwrap_or(&given) != expected.as_bytes() {
                let message = format!("password authentication failed for user \"{}\"", self.session.user);
                return self.fatal("28P01", &message);
            }
        }
        self.put(&BackendMessage::Authentication(Authentication::Ok));
        for (name, value) in [
            ("server_version", self.session.server_version.as_str()),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, MDY"),
            ("TimeZone", "UTC"),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
        ] {
            BackendMessage::ParameterStatus(name.to_owned(), value.to_owned()).write(&mut self.link.output);
        }
        let process_id = self.session.connection as u32;
        self.put(&BackendMessage::BackendKeyData { process_id, secret: Bytes::from_static(&[0, 0, 0, 1]) });
        self.put(&BackendMessage::ReadyForQuery(IDLE));
        self.link.flush()?;
        Ok(true)
    }

    fn message(&mut self, message: FrontendMessage) -> io::Result<Onward> {
        use FrontendMessage as M;
        match message {
            M::Terminate => return Ok(Onward::Over),
            M::Sync => {
                self.skipping = false;
                if self.state == IDLE {
                    self.portals.clear();
                }
                self.put(&BackendMessage::ReadyForQuery(self.state));
                return self.deliver();
            }
            _ if self.skipping => {}
            M::Query(text) => {
                self.simple(&text)?;
                self.put(&BackendMessage::ReadyForQuery(self.state));
                return self.deliver();
            }
            M::Flush => return self.deliver(),
            M::Parse { name, sql, types } => self.parse(name, sql, types),
            M::Bind { portal, statement, formats, values, result_formats } => {
                self.bind(portal, &statement, &formats, &values, result_formats);
            }
            M::Describe { kind, name } => self.describe(kind, &name),
            M::Execute { portal, max_rows } => self.execute(&portal, max_rows),
            M::Close { kind, name } => {
                if kind == b'S' {
                    self.statements.remove(&name);
                } else {
                    self.portals.remove(&name);
                }
                self.put(&BackendMessage::CloseComplete);
            }
            // Copy data that comes after a copy has failed is ignored, as servers do.
            M::CopyData(_) | M::CopyDone | M::CopyFail(_) => {}
            M::Password(_) | M::Other(..) => self.fail("08P01", "unexpected message"),
        }
        // Answers of a pipeline wait for Sync or Flush, except that a fault strikes where it is.
        if self.fault.is_some() { self.deliver() } else { Ok(Onward::Continue) }
    }

    fn fail(&mut self, sqlstate: &str, message: &str) {
        self.put_error(sqlstate, message);
        self.skipping = true;
    }

    fn fail_as_scripted(&mut self, error: &ErrorSpec) {
        self.fail(error.sqlstate(), error.message());
    }

    fn simple(&mut self, text: &str) -> io::Result<()> {
        let statements = sql::statements(text);
        if statements.is_empty() {
            self.put(&BackendMessage::EmptyQueryResponse);
        }
        for statement in statements {
            self.shared.recorder.statement(self.session.connection, statement, Vec::new());
            let (verb, _) = sql::verbs(statement);
            if verb == "COPY" && statement.to_uppercase().contains("STDIN") && self.state != FAILED {
                self.copy_in()?;
                continue;
            }
            let rows = self.run(statement, &[], true);
            for row in rows {
                self.put(&row);
            }
            if std::mem::take(&mut self.skipping) {
                break;
            }
        }
        Ok(())
    }

    /// Puts or returns the answer to a statement: what is returned goes out row by row.
    fn run(&mut self, statement: &str, result_formats: &[i16], describe: bool) -> Vec<BackendMessage> {
        let (verb, second) = sql::verbs(statement);
        let ends_transaction =
            matches!(verb.as_str(), "COMMIT" | "ROLLBACK" | "END" | "ABORT") && second != "TO";
        if self.state == FAILED && !ends_transaction && verb != "ROLLBACK" {
            self.fail(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            );
            return Vec::new();
        }
        let answer = self.session.answer(&self.shared.script, statement);
        thread::sleep(answer.delay);
        self.fault = self.fault.or(answer.fault);
        let (mut messages, count) = match answer.body {
            Body::Failed(error) => {
                self.fail_as_scripted(&error);
                return Vec::new();
            }
            Body::Done { affected } => (Vec::new(), affected),
            Body::Rows { columns, rows } => match self.rows(&columns, &rows, result_formats) {
                Ok(messages) => {
                    if describe {
                        self.put(&BackendMessage::RowDescription(fields(&columns, result_formats)));
                    }
                    (messages, rows.len() as u64)
                }
                Err(message) => {
                    self.fail("0A000", &message);
                    return Vec::new();
                }
            },
        };
        let was_failed = self.state == FAILED;
        match (verb.as_str(), second.as_str()) {
            ("BEGIN", _) | ("START", "TRANSACTION") => self.state = IN_TRANSACTION,
            ("ROLLBACK", "TO") => self.state = IN_TRANSACTION,
            _ if ends_transaction => self.state = IDLE,
            _ => {}
        }
        messages.push(BackendMessage::CommandComplete(tag(&verb, &second, count, was_failed)));
        messages
    }

    fn rows(
        &self,
        columns: &[Column],
        rows: &[Vec<Option<String>>],
        formats: &[i16],
    ) -> Result<Vec<BackendMessage>, String> {
        let mut messages = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(row.len());
            for (position, (cell, column)) in row.iter().zip(columns).enumerate() {
                values.push(match cell {
                    Some(text) if format_of(formats, position) == 1 => {
                        let bytes = postgresql::encode_binary(oid(column.kind), text);
                        Some(
                            bytes.ok_or_else(|| {
                                format!("no binary form of {text} as column {}", column.name)
                            })?,
                        )
                    }
                    Some(text) => Some(Bytes::from(text.clone())),
                    None => None,
                });
            }
            messages.push(BackendMessage::data_row(&values));
        }
        Ok(messages)
    }

    fn copy_in(&mut self) -> io::Result<()> {
        // Text format, no column formats.
        self.put(&BackendMessage::CopyIn(Bytes::from_static(&[0, 0, 0])));
        self.link.flush()?;
        let mut lines = 0;
        loop {
            match self.receive()? {
                Some(FrontendMessage::CopyData(data)) => {
                    lines += data.iter().filter(|byte| **byte == b'\n').count()
                }
                Some(FrontendMessage::CopyDone) => {
                    self.put(&BackendMessage::CommandComplete(format!("COPY {lines}")));
                    return Ok(());
                }
                Some(FrontendMessage::CopyFail(reason)) => {
                    self.put_error("57014", &format!("COPY from stdin failed: {reason}"));
                    return Ok(());
                }
                Some(_) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    fn parse(&mut self, name: String, sql: String, mut types: Vec<u32>) {
        if let Some(rule) = self.shared.script.rule(&sql, Moment::Prepare) {
            thread::sleep(rule.delay());
            self.fault = self.fault.or(rule.fault());
            if let Some(error) = rule.error() {
                self.fail_as_scripted(error);
                return;
            }
        }
        types.resize(types.len().max(sql::dollar_marks(&sql)), type_oid::UNKNOWN);
        let scripted = self.shared.script.description(&sql).and_then(|rule| rule.parameters());
        for (position, known) in types.iter_mut().enumerate() {
            if *known == type_oid::UNKNOWN {
                *known = scripted
                    .and_then(|names| names.get(position))
                    .map_or(type_oid::TEXT, |name| oid(Kind::parse(name)));
            }
        }
        self.statements.insert(name, Prepared { sql, types });
        self.put(&BackendMessage::ParseComplete);
    }

    fn bind(
        &mut self,
        portal: String,
        statement: &str,
        formats: &[i16],
        values: &[Option<Bytes>],
        result_formats: Vec<i16>,
    ) {
        let Some(statement) = self.statements.get(statement).cloned() else {
            self.fail("26000", &format!("prepared statement \"{statement}\" does not exist"));
            return;
        };
        match decode_values(&statement.types, formats, values) {
            Ok(values) => {
                self.portals.insert(portal, Portal { statement, values, result_formats, pending: None });
                self.put(&BackendMessage::BindComplete);
            }
            Err(error) => self.fail("22P03", &error.to_string()),
        }
    }

    fn describe(&mut self, kind: u8, name: &str) {
        let found = if kind == b'S' {
            self.statements.get(name).map(|statement| (statement.clone(), Vec::new()))
        } else {
            self.portals.get(name).map(|portal| (portal.statement.clone(), portal.result_formats.clone()))
        };
        let Some((statement, formats)) = found else {
            let (sqlstate, what) =
                if kind == b'S' { ("26000", "prepared statement") } else { ("34000", "portal") };
            self.fail(sqlstate, &format!("{what} \"{name}\" does not exist"));
            return;
        };
        if kind == b'S' {
            self.put(&BackendMessage::ParameterDescription(statement.types.clone()));
        }
        let columns = self.session.columns(&self.shared.script, &statement.sql);
        if columns.is_empty() {
            self.put(&BackendMessage::NoData);
        } else {
            self.put(&BackendMessage::RowDescription(fields(&columns, &formats)));
        }
    }

    fn execute(&mut self, name: &str, max_rows: i32) {
        let Some(mut portal) = self.portals.remove(name) else {
            self.fail("34000", &format!("portal \"{name}\" does not exist"));
            return;
        };
        let mut messages = match portal.pending.take() {
            Some((messages, _)) => messages,
            None => {
                record(&self.shared.recorder, self.session.connection, &portal.statement.sql, &portal.values);
                if portal.statement.sql.trim().is_empty() {
                    vec![BackendMessage::EmptyQueryResponse]
                } else {
                    self.run(&portal.statement.sql, &portal.result_formats, false)
                }
            }
        };
        let limit = usize::try_from(max_rows).unwrap_or(0);
        // The last message is the tag: a portal is suspended when rows are left before it.
        if limit > 0 && messages.len() > limit + 1 {
            let rest = messages.split_off(limit);
            portal.pending = Some((rest, limit));
            messages.push(BackendMessage::PortalSuspended);
        }
        for message in messages {
            self.put(&message);
        }
        self.portals.insert(name.to_owned(), portal);
    }
}

/// The values of a Bind message by the statement's parameter types.
pub(crate) fn decode_values(
    types: &[u32],
    formats: &[i16],
    values: &[Option<Bytes>],
) -> Result<Vec<Value>, Error> {
    let decode = |(position, value): (usize, &Option<Bytes>)| {
        let kind = types.get(position).copied().unwrap_or(type_oid::UNKNOWN);
        postgresql::decode(kind, format_of(formats, position), value.as_ref())
    };
    values.iter().enumerate().map(decode).collect()
}

/// Records an execution with its values; integers, floats and texts as JSON has them.
pub(crate) fn record(recorder: &Recorder, connection: u64, statement: &str, values: &[Value]) {
    let json = |value: &Value| match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Double(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    };
    let values = if recorder.is_recording() { values.iter().map(json).collect() } else { Vec::new() };
    recorder.statement(connection, statement, values);
}

fn oid(kind: Kind) -> u32 {
    match kind {
        Kind::Int => type_oid::INT8,
        Kind::Double => type_oid::FLOAT8,
        Kind::Decimal => type_oid::NUMERIC,
        Kind::Text => type_oid::TEXT,
        Kind::Timestamp => type_oid::TIMESTAMP,
    }
}

fn fields(columns: &[Column], formats: &[i16]) -> Vec<Field> {
    let field = |(position, column): (usize, &Column)| Field {
        name: column.name.clone(),
        table_oid: 0,
        column: 0,
        type_oid: oid(column.kind),
        type_size: if matches!(column.kind, Kind::Int | Kind::Double | Kind::Timestamp) { 8 } else { -1 },
        type_modifier: -1,
        format: format_of(formats, position),
    };
    columns.iter().enumerate().map(field).collect()
}

fn tag(verb: &str, second: &str, count: u64, was_failed: bool) -> String {
    match verb {
        "INSERT" => format!("INSERT 0 {count}"),
        "UPDATE" | "DELETE" | "MERGE" | "SELECT" => format!("{verb} {count}"),
        "WITH" | "VALUES" | "TABLE" => format!("SELECT {count}"),
        "START" => "BEGIN".to_owned(),
        // Ending a failed transaction always rolls it back, and the tag says so.
        "COMMIT" | "END" if was_failed => "ROLLBACK".to_owned(),
        "END" => "COMMIT".to_owned(),
        "ABORT" => "ROLLBACK".to_owned(),
        "CREATE" | "DROP" | "ALTER" | "TRUNCATE" => format!("{verb} {second}"),
        _ => verb.to_owned(),
    }
}
