//! Answers as PostgreSQL's messages.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::postgresql::{self, BackendMessage, Field, Value, format_of, type_oid};
use dbdyno_wire::{Error, Result};

use crate::answer::{Column, Kind};
use crate::recorder::Recorder;

/// What the bytes of an answer depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// Rows and tag, with the description of the rows before them or without.
    pub(crate) part: Part,
    pub(crate) formats: Vec<i16>,
    pub(crate) was_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Rows,
    DescribedRows,
}

/// The rows of an answer. Error: a value that has no binary form.
pub(crate) fn rows(
    columns: &[Column],
    rows: &[Vec<Option<String>>],
    formats: &[i16],
) -> std::result::Result<Vec<BackendMessage>, String> {
    let mut messages = Vec::with_capacity(rows.len());
    for row in rows {
        let mut values = Vec::with_capacity(row.len());
        for (position, (cell, column)) in row.iter().zip(columns).enumerate() {
            values.push(match cell {
                Some(text) if format_of(formats, position) == 1 => {
                    let bytes = postgresql::encode_binary(oid(column.kind), text);
                    Some(bytes.ok_or_else(|| format!("no binary form of {text} as column {}", column.name))?)
                }
                Some(text) => Some(Bytes::from(text.clone())),
                None => None,
            });
        }
        messages.push(BackendMessage::data_row(&values));
    }
    Ok(messages)
}

pub(crate) fn joined(messages: &[BackendMessage]) -> Bytes {
    let mut out = BytesMut::new();
    messages.iter().for_each(|message| message.write(&mut out));
    out.freeze()
}

/// The values of a Bind message by the statement's parameter types.
pub(crate) fn decode_values(types: &[u32], formats: &[i16], values: &[Option<Bytes>]) -> Result<Vec<Value>> {
    let decode = |(position, value): (usize, &Option<Bytes>)| -> std::result::Result<Value, Error> {
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

pub(crate) fn oid(kind: Kind) -> u32 {
    match kind {
        Kind::Int => type_oid::INT8,
        Kind::Double => type_oid::FLOAT8,
        Kind::Decimal => type_oid::NUMERIC,
        Kind::Text => type_oid::TEXT,
        Kind::Timestamp => type_oid::TIMESTAMP,
    }
}

pub(crate) fn fields(columns: &[Column], formats: &[i16]) -> Vec<Field> {
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

pub(crate) fn tag(verb: &str, second: &str, count: u64, was_failed: bool) -> String {
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
