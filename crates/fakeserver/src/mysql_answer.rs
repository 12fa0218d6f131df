//! Answers as MySQL's packets.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::Result;
use dbdyno_wire::mysql::{
    self, ColumnDefinition, EofPacket, ErrPacket, OkPacket, Value, capability, collation, column_type,
};

use crate::answer::{Body, Column, Kind};
use crate::recorder::Recorder;

/// What a packet's form depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) status: u16,
    pub(crate) binary: bool,
    pub(crate) deprecate_eof: bool,
}

impl Form {
    pub(crate) fn new(status: u16, capabilities: u32, binary: bool) -> Self {
        Self { status, binary, deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0 }
    }
}

/// Packets that follow each other.
pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut BytesMut,
    pub(crate) sequence: &'a mut u8,
}

impl Writer<'_> {
    pub(crate) fn put(&mut self, payload: &[u8]) {
        mysql::write(self.out, self.sequence, payload);
    }

    pub(crate) fn error(&mut self, code: u16, sqlstate: &str, message: &str) {
        let packet = ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() };
        self.put(&packet.encode());
    }

    pub(crate) fn ok(&mut self, affected_rows: u64, status: u16) {
        self.put(&OkPacket { affected_rows, status, ..OkPacket::default() }.encode());
    }

    pub(crate) fn body(&mut self, body: &Body, form: Form) -> Result<()> {
        match body {
            Body::Failed(error) => self.error(error.number(), error.sqlstate(), error.message()),
            Body::Done { affected } => self.ok(*affected, form.status),
            Body::Rows { columns, rows } => {
                let definitions: Vec<ColumnDefinition> = columns.iter().map(definition).collect();
                self.put(&[columns.len() as u8]);
                self.definitions(&definitions, form);
                for row in rows {
                    let values: Vec<Value> =
                        row.iter().zip(columns).map(|(cell, column)| value(cell, column.kind)).collect();
                    let payload = if form.binary {
                        mysql::encode_binary_row(&values, &definitions)?
                    } else {
                        mysql::encode_text_row(&values)
                    };
                    self.put(&payload);
                }
                if form.deprecate_eof {
                    self.put(&OkPacket { status: form.status, ..OkPacket::default() }.encode_as_eof());
                } else {
                    self.put(&EofPacket { warnings: 0, status: form.status }.encode());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn definitions(&mut self, definitions: &[ColumnDefinition], form: Form) {
        for definition in definitions {
            self.put(&definition.encode());
        }
        if !form.deprecate_eof && !definitions.is_empty() {
            self.put(&EofPacket { warnings: 0, status: form.status }.encode());
        }
    }
}

/// An answer that begins a command's response, as bytes.
pub(crate) fn encode(body: &Body, form: Form) -> Result<Bytes> {
    let (mut out, mut sequence) = (BytesMut::new(), 1);
    Writer { out: &mut out, sequence: &mut sequence }.body(body, form)?;
    Ok(out.freeze())
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

pub(crate) fn definition(column: &Column) -> ColumnDefinition {
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
