//! One MySQL client.

use std::collections::HashMap;
use std::io;
use std::thread;

use bytes::Bytes;
use dbdyno_wire::mysql::{
    self, AuthSwitch, ColumnDefinition, Command, EofPacket, ErrPacket, Handshake, HandshakeResponse,
    OkPacket, ParameterType, PrepareOk, Value, auth, capability, collation, column_type, status,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::answer::{Body, Column, Kind, Session};
use crate::link::{Link, Onward};
use crate::options::Protocol;
use crate::recorder::Recorder;
use crate::script::{ConnectFault, ErrorSpec, Fault, Moment};
use crate::server::Shared;
use crate::sql;

const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA
    | capability::DEPRECATE_EOF;

struct Prepared {
    sql: String,
    parameters: usize,
    types: Vec<ParameterType>,
    long_data: HashMap<u16, Bytes>,
}

struct Client<'a> {
    link: Link,
    shared: &'a Shared,
    session: Session,
    sequence: u8,
    capabilities: u32,
    autocommit: bool,
    in_transaction: bool,
    statements: HashMap<u32, Prepared>,
    last_prepared: u32,
}

pub(crate) fn serve(link: Link, shared: &Shared, connection: u64) -> io::Result<()> {
    let session = Session {
        protocol: Protocol::Mysql,
        server_version: shared.options.server_version.clone(),
        connection,
        user: String::new(),
        database: String::new(),
    };
    let mut client = Client {
        link,
        shared,
        session,
        sequence: 0,
        capabilities: CAPABILITIES,
        autocommit: true,
        in_transaction: false,
        statements: HashMap::new(),
        last_prepared: 0,
    };
    if !client.log_in()? {
        return Ok(());
    }
    while let Some(payload) = client.receive()? {
        let command = Command::parse(&payload).map_err(invalid)?;
        if client.command(command)? == Onward::Over {
            break;
        }
    }
    Ok(())
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A length one too many: what follows is read as a header in the wrong place, or never comes.
fn wrong_length(output: &mut [u8]) {
    if let [first, ..] = output {
        *first = first.wrapping_add(1);
    }
}

impl Client<'_> {
    fn receive(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(packet) =
                mysql::parse(&mut self.link.input, MESSAGE_CEILING_BYTES).map_err(invalid)?
            {
                self.sequence = packet.sequence.wrapping_add(1);
                return Ok(Some(packet.payload));
            }
            if !self.link.fill()? {
                return Ok(None);
            }
        }
    }

    fn put(&mut self, payload: &[u8]) {
        mysql::write(&mut self.link.output, &mut self.sequence, payload);
    }

    fn put_error(&mut self, code: u16, sqlstate: &str, message: &str) {
        let packet = ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() };
        self.put(&packet.encode());
    }

    fn put_scripted_error(&mut self, error: &ErrorSpec) {
        self.put_error(error.number(), error.sqlstate(), error.message());
    }

    fn status(&self) -> u16 {
        let autocommit = if self.autocommit { status::AUTOCOMMIT } else { 0 };
        autocommit | if self.in_transaction { status::IN_TRANSACTION } else { 0 }
    }

    fn ok(&self, affected_rows: u64, more: bool) -> OkPacket {
        let status = self.status() | if more { status::MORE_RESULTS } else { 0 };
        OkPacket { affected_rows, status, ..OkPacket::default() }
    }

    /// Greets, asks for the password, lets in or not.
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
            // "Too many connections" comes instead of the greeting; other refusals after the password.
            Some(ConnectFault::Error)
                if reception.error.as_ref().is_none_or(|error| error.number() == 1040) =>
            {
                match &reception.error {
                    Some(error) => self.put_error(error.number(), "", error.message()),
                    None => self.put_error(1040, "", "Too many connections"),
                }
                self.link.flush()?;
                return Ok(false);
            }
            _ => {}
        }
        let nonce: [u8; 20] =
            std::array::from_fn(|i| b'!' + ((self.session.connection as usize * 31 + i * 7) % 90) as u8);
        let greeting = Handshake {
            server_version: self.session.server_version.clone(),
            connection_id: self.session.connection as u32,
            nonce,
            capabilities: CAPABILITIES,
            collation: collation::UTF8MB4_GENERAL_CI,
            status: self.status(),
            plugin: auth::NATIVE_PASSWORD.to_owned(),
            mariadb_capabilities: 0,
        };
        self.put(&greeting.encode());
        self.link.flush()?;
        let Some(payload) = self.receive()? else {
            return Ok(false);
        };
        if reception.fault == Some(ConnectFault::Reset) {
            self.link.reset()?;
            return Ok(false);
        }
        if mysql::is_tls_request(&payload) {
            self.put_error(3159, "HY000", "This server speaks no TLS");
            self.link.flush()?;
            return Ok(false);
        }
        let answer = HandshakeResponse::parse(&payload).map_err(invalid)?;
        self.capabilities = answer.capabilities & CAPABILITIES;
        self.session.user = answer.user.clone();
        self.session.database = answer.database.clone().unwrap_or_default();
        if let Some(error) = &reception.error {
            self.put_scripted_error(error);
            self.link.flush()?;
            return Ok(false);
        }
        if let Some(password) = self.shared.options.password.clone() {
            let mut given = answer.auth.to_vec();
            if answer.plugin.as_deref().is_some_and(|plugin| plugin != auth::NATIVE_PASSWORD) {
                let switch = AuthSwitch {
                    plugin: auth::NATIVE_PASSWORD.to_owned(),
                    nonce: Bytes::copy_from_slice(&nonce),
                };
                self.put(&switch.encode());
                self.link.flush()?;
                let Some(payload) = self.receive()? else {
                    return Ok(false);
                };
                given = payload.to_vec();
            }
            if given != auth::native_password(password.as_bytes(), &nonce) {
                let message =
                    format!("Access denied for user '{}'@'127.0.0.1' (using password: YES)", answer.user);
                self.put_error(1045, "28000", &message);
                self.link.flush()?;
                return Ok(false);
            }
        }
        let ok = self.ok(0, false);
        self.put(&ok.encode());
        self.link.flush()?;
        Ok(true)
    }

    fn command(&mut self, command: Command) -> io::Result<Onward> {
        match command {
            Command::Quit => return Ok(Onward::Over),
            Command::InitDb(name) => {
                self.session.database = String::from_utf8_lossy(&name).into_owned();
                self.put_ok();
            }
            Command::Ping | Command::SetOption(_) => self.put_ok(),
            Command::ResetConnection | Command::ChangeUser(_) => {
                self.statements.clear();
                (self.autocommit, self.in_transaction) = (true, false);
                self.put_ok();
            }
            Command::Statistics => {
                let line = self.shared.recorder.summary();
                self.put(line.as_bytes());
            }
            Command::Query(text) => return self.query(&String::from_utf8_lossy(&text)),
            Command::Prepare(text) => return self.prepare(&String::from_utf8_lossy(&text)),
            Command::Execute { statement_id, parameters, .. } => {
                return self.execute(statement_id, &parameters);
            }
            Command::LongData { statement_id, parameter, data } => {
                if let Some(prepared) = self.statements.get_mut(&statement_id) {
                    let before = prepared.long_data.remove(&parameter).unwrap_or_default();
                    prepared.long_data.insert(parameter, Bytes::from([before, data].concat()));
                }
                return Ok(Onward::Continue);
            }
            Command::CloseStatement(id) => {
                self.statements.remove(&id);
                return Ok(Onward::Continue);
            }
            Command::ResetStatement(id) => {
                if let Some(prepared) = self.statements.get_mut(&id) {
                    prepared.long_data.clear();
                }
                self.put_ok();
            }
            Command::FieldList(_) | Command::Fetch { .. } | Command::Other(_) => {
                self.put_error(1047, "08S01", "Unknown command");
            }
        }
        self.link.flush()?;
        Ok(Onward::Continue)
    }

    fn put_ok(&mut self) {
        let ok = self.ok(0, false);
        self.put(&ok.encode());
    }

    fn query(&mut self, text: &str) -> io::Result<Onward> {
        let statements = if self.capabilities & capability::MULTI_STATEMENTS != 0 {
            sql::statements(text)
        } else {
            vec![text.trim()]
        };
        if statements.is_empty() {
            self.put_error(1065, "42000", "Query was empty");
            self.link.flush()?;
            return Ok(Onward::Continue);
        }
        let mut fault = None;
        for (position, statement) in statements.iter().enumerate() {
            self.shared.recorder.statement(self.session.connection, statement, Vec::new());
            let more = position + 1 < statements.len();
            let (failed, this_fault) = self.run(statement, more, None)?;
            fault = fault.or(this_fault);
            if failed {
                break;
            }
        }
        self.link.deliver(fault, wrong_length)
    }

    /// Puts the answer to a statement; says whether it failed, and which fault its delivery has.
    /// `prepared` has the columns that the client was told when it prepared the statement.
    fn run(
        &mut self,
        statement: &str,
        more: bool,
        prepared: Option<Vec<Column>>,
    ) -> io::Result<(bool, Option<Fault>)> {
        let answer = self.session.answer(&self.shared.script, statement);
        thread::sleep(answer.delay);
        match answer.body {
            Body::Failed(error) => {
                // A deadlock victim's transaction is rolled back by the server.
                if error.number() == 1213 {
                    self.in_transaction = false;
                }
                self.put_scripted_error(&error);
                return Ok((true, answer.fault));
            }
            Body::Done { affected } => {
                self.track(statement);
                let ok = self.ok(affected, more);
                self.put(&ok.encode());
            }
            Body::Rows { columns, rows } => {
                self.track(statement);
                self.put_result(&columns, &rows, more, prepared.is_some())?;
            }
        }
        Ok((false, answer.fault))
    }

    fn track(&mut self, statement: &str) {
        let (verb, second) = sql::verbs(statement);
        match (verb.as_str(), second.as_str()) {
            ("BEGIN", _) | ("START", "TRANSACTION") => self.in_transaction = true,
            ("COMMIT" | "ROLLBACK", second) if second != "TO" => self.in_transaction = false,
            ("SET", "AUTOCOMMIT" | "@@AUTOCOMMIT") => {
                let value = statement.rsplit('=').next().unwrap_or_default().trim().to_uppercase();
                self.autocommit = matches!(value.as_str(), "1" | "ON" | "TRUE");
                self.in_transaction &= !self.autocommit;
            }
            ("SELECT" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE", _) if !self.autocommit => {
                self.in_transaction = true;
            }
            ("CREATE" | "DROP" | "ALTER" | "TRUNCATE", _) => self.in_transaction = false,
            _ => {}
        }
    }

    fn put_result(
        &mut self,
        columns: &[Column],
        rows: &[Vec<Option<String>>],
        more: bool,
        binary: bool,
    ) -> io::Result<()> {
        let definitions: Vec<ColumnDefinition> = columns.iter().map(definition).collect();
        self.put(&[columns.len() as u8]);
        self.put_definitions(&definitions);
        for row in rows {
            let values: Vec<Value> =
                row.iter().zip(columns).map(|(cell, column)| value(cell, column.kind)).collect();
            let payload = if binary {
                mysql::encode_binary_row(&values, &definitions).map_err(invalid)?
            } else {
                mysql::encode_text_row(&values)
            };
            self.put(&payload);
        }
        let ok = self.ok(0, more);
        if self.capabilities & capability::DEPRECATE_EOF != 0 {
            self.put(&ok.encode_as_eof());
        } else {
            self.put(&EofPacket { warnings: 0, status: ok.status }.encode());
        }
        Ok(())
    }

    fn put_definitions(&mut self, definitions: &[ColumnDefinition]) {
        for definition in definitions {
            self.put(&definition.encode());
        }
        if self.capabilities & capability::DEPRECATE_EOF == 0 && !definitions.is_empty() {
            let status = self.status();
            self.put(&EofPacket { warnings: 0, status }.encode());
        }
    }

    fn prepare(&mut self, text: &str) -> io::Result<Onward> {
        let mut fault = None;
        if let Some(rule) = self.shared.script.rule(text, Moment::Prepare) {
            thread::sleep(rule.delay());
            fault = rule.fault();
            if let Some(error) = rule.error() {
                self.put_scripted_error(error);
                return self.link.deliver(fault, wrong_length);
            }
        }
        let columns = self.session.columns(&self.shared.script, text);
        let parameters = sql::question_marks(text);
        self.last_prepared += 1;
        let head = PrepareOk {
            statement_id: self.last_prepared,
            columns: columns.len() as u16,
            parameters: parameters as u16,
            warnings: 0,
        };
        self.put(&head.encode());
        let parameter = definition(&Column { name: "?".to_owned(), kind: Kind::Text });
        self.put_definitions(&vec![parameter; parameters]);
        self.put_definitions(&columns.iter().map(definition).collect::<Vec<_>>());
        let prepared =
            Prepared { sql: text.to_owned(), parameters, types: Vec::new(), long_data: HashMap::new() };
        self.statements.insert(self.last_prepared, prepared);
        self.link.deliver(fault, wrong_length)
    }

    fn execute(&mut self, id: u32, parameters: &[u8]) -> io::Result<Onward> {
        let id = if id == Command::LAST_PREPARED { self.last_prepared } else { id };
        let Some(prepared) = self.statements.get_mut(&id) else {
            self.put_error(1243, "HY000", "Unknown prepared statement handler given to EXECUTE");
            self.link.flush()?;
            return Ok(Onward::Continue);
        };
        let long_data = std::mem::take(&mut prepared.long_data);
        let values =
            mysql::decode_parameters(parameters, prepared.parameters, &mut prepared.types, &long_data)
                .map_err(invalid)?;
        let statement = prepared.sql.clone();
        record(&self.shared.recorder, self.session.connection, &statement, &values);
        let columns = self.session.columns(&self.shared.script, &statement);
        let (_, fault) = self.run(&statement, false, Some(columns))?;
        self.link.deliver(fault, wrong_length)
    }
}

/// Records an execution with its values; integers, floats and texts as JSON has them.
pub(crate) fn record(recorder: &Recorder, connection: u64, statement: &str, values: &[Value]) {
    let values = if recorder.is_recording() { values.iter().map(json).collect() } else { Vec::new() };
    recorder.statement(connection, statement, values);
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Int(value) => (*value).into(),
        Value::UInt(value) => (*value).into(),
        // Through its shortest text: 0.1 stays 0.1 in double precision.
        Value::Float(value) => value.to_string().parse::<f64>().unwrap_or(f64::NAN).into(),
        Value::Double(value) => (*value).into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::Temporal(text) => text.as_str().into(),
    }
}

fn definition(column: &Column) -> ColumnDefinition {
    let (kind, collation, length, decimals) = match column.kind {
        Kind::Int => (column_type::LONGLONG, collation::BINARY, 20, 0),
        Kind::Double => (column_type::DOUBLE, collation::BINARY, 22, 31),
        Kind::Decimal => (column_type::NEWDECIMAL, collation::BINARY, 40, 2),
        Kind::Text => (column_type::VAR_STRING, collation::UTF8MB4_GENERAL_CI, 4 * 255, 0),
        Kind::Timestamp => (column_type::DATETIME, collation::BINARY, 26, 6),
    };
    ColumnDefinition {
        schema: "fake".to_owned(),
        table: String::new(),
        original_table: String::new(),
        name: column.name.clone(),
        original_name: column.name.clone(),
        collation: u16::from(collation),
        length,
        kind,
        flags: 0,
        decimals,
    }
}

/// A cell as its column's kind; a text that is no number stands as 0, as MySQL converts it.
fn value(cell: &Option<String>, kind: Kind) -> Value {
    match (cell, kind) {
        (None, _) => Value::Null,
        (Some(text), Kind::Int) => Value::Int(text.parse().unwrap_or(0)),
        (Some(text), Kind::Double) => Value::Double(text.parse().unwrap_or(0.0)),
        (Some(text), Kind::Timestamp) => Value::Temporal(text.clone()),
        (Some(text), Kind::Decimal | Kind::Text) => Value::Bytes(Bytes::from(text.clone())),
    }
}
