//! The command phase as the client speaks it.

use std::collections::HashMap;

use bytes::Bytes;

use super::{PARAMETER_CEILING, Value};
use crate::reader::Reader;
use crate::{Error, Result, check_ceiling};

/// A client's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// COM_QUIT: the client is about to close.
    Quit,
    /// COM_INIT_DB: use that database.
    InitDb(Bytes),
    /// COM_QUERY: run that text.
    Query(Bytes),
    /// COM_PING: are you there?
    Ping,
    /// COM_STATISTICS: one line for people; no packet header in its answer.
    Statistics,
    /// COM_CHANGE_USER: log in again; its data as it came.
    ChangeUser(Bytes),
    /// COM_RESET_CONNECTION: a fresh session.
    ResetConnection,
    /// COM_SET_OPTION: 0 multiple statements on, 1 off.
    SetOption(u16),
    /// COM_FIELD_LIST: columns of a table; its data as it came.
    FieldList(Bytes),
    /// COM_STMT_PREPARE: parse that text.
    Prepare(Bytes),
    /// COM_STMT_EXECUTE.
    Execute {
        /// The statement's number; `LAST_PREPARED` means the one prepared last (MariaDB).
        statement_id: u32,
        /// 0, or the kind of cursor to open.
        cursor: u8,
        /// Null bitmap, types and values: see `decode_parameters`.
        parameters: Bytes,
    },
    /// COM_STMT_SEND_LONG_DATA: a piece of a parameter. No answer.
    LongData {
        /// The statement's number.
        statement_id: u32,
        /// The parameter's position, from 0.
        parameter: u16,
        /// The piece.
        data: Bytes,
    },
    /// COM_STMT_CLOSE: forget it. No answer.
    CloseStatement(u32),
    /// COM_STMT_RESET: forget its long data and cursor.
    ResetStatement(u32),
    /// COM_STMT_FETCH: rows of its cursor.
    Fetch {
        /// The statement's number.
        statement_id: u32,
        /// How many rows at most.
        rows: u32,
    },
    /// Any other command by its number.
    Other(u8),
}

impl Command {
    /// The statement number that means "the one prepared last" to MariaDB.
    pub const LAST_PREPARED: u32 = u32::MAX;

    /// Reads the payload of a packet. Error: an empty or short packet.
    pub fn parse(payload: &Bytes) -> Result<Self> {
        let mut reader = Reader::new("command", payload);
        let code = reader.u8()?;
        let rest = || payload.slice(1..);
        Ok(match code {
            0x01 => Command::Quit,
            0x02 => Command::InitDb(rest()),
            0x03 => Command::Query(rest()),
            0x04 => Command::FieldList(rest()),
            0x09 => Command::Statistics,
            0x0E => Command::Ping,
            0x11 => Command::ChangeUser(rest()),
            0x16 => Command::Prepare(rest()),
            0x17 => {
                let statement_id = reader.u32_le()?;
                let cursor = reader.u8()?;
                reader.take(4)?;
                Command::Execute { statement_id, cursor, parameters: payload.slice(10..) }
            }
            0x18 => Command::LongData {
                statement_id: reader.u32_le()?,
                parameter: reader.u16_le()?,
                data: payload.slice(7..),
            },
            0x19 => Command::CloseStatement(reader.u32_le()?),
            0x1A => Command::ResetStatement(reader.u32_le()?),
            0x1B => Command::SetOption(reader.u16_le()?),
            0x1C => Command::Fetch { statement_id: reader.u32_le()?, rows: reader.u32_le()? },
            0x1F => Command::ResetConnection,
            other => Command::Other(other),
        })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let with = |code: u8, data: &[u8]| [&[code], data].concat();
        match self {
            Command::Quit => vec![0x01],
            Command::InitDb(name) => with(0x02, name),
            Command::Query(sql) => with(0x03, sql),
            Command::FieldList(data) => with(0x04, data),
            Command::Statistics => vec![0x09],
            Command::Ping => vec![0x0E],
            Command::ChangeUser(data) => with(0x11, data),
            Command::Prepare(sql) => with(0x16, sql),
            Command::Execute { statement_id, cursor, parameters } => {
                let mut out = with(0x17, &statement_id.to_le_bytes());
                out.push(*cursor);
                out.extend(1u32.to_le_bytes());
                out.extend(parameters);
                out
            }
            Command::LongData { statement_id, parameter, data } => {
                let mut out = with(0x18, &statement_id.to_le_bytes());
                out.extend(parameter.to_le_bytes());
                out.extend(data);
                out
            }
            Command::CloseStatement(id) => with(0x19, &id.to_le_bytes()),
            Command::ResetStatement(id) => with(0x1A, &id.to_le_bytes()),
            Command::SetOption(option) => with(0x1B, &option.to_le_bytes()),
            Command::Fetch { statement_id, rows } => {
                let mut out = with(0x1C, &statement_id.to_le_bytes());
                out.extend(rows.to_le_bytes());
                out
            }
            Command::ResetConnection => vec![0x1F],
            Command::Other(code) => vec![*code],
        }
    }

    /// Whether the server answers it at all.
    pub fn has_answer(&self) -> bool {
        !matches!(self, Command::Quit | Command::CloseStatement(_) | Command::LongData { .. })
    }
}

/// Type of a parameter; a client sends the types once and may leave them out afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType {
    /// A `column_type`.
    pub kind: u8,
    /// Whether an integer has no sign.
    pub unsigned: bool,
}

/// Reads the parameters of COM_STMT_EXECUTE for a statement that has `count` of them.
///
/// `types` are those of the last execution and become those of this one. Parameters in `long_data` were
/// sent before by COM_STMT_SEND_LONG_DATA and have no value here. Errors: a short packet, an unknown type,
/// no types although none were sent before.
pub fn decode_parameters(
    parameters: &[u8],
    count: usize,
    types: &mut Vec<ParameterType>,
    long_data: &HashMap<u16, Bytes>,
) -> Result<Vec<Value>> {
    check_ceiling("number of parameters", count as u64, PARAMETER_CEILING)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new("parameters of COM_STMT_EXECUTE", parameters);
    let nulls = reader.take(count.div_ceil(8))?;
    if reader.u8()? == 1 {
        types.clear();
        for _ in 0..count {
            let (kind, flags) = (reader.u8()?, reader.u8()?);
            types.push(ParameterType { kind, unsigned: flags & 0x80 != 0 });
        }
    }
    if types.len() != count {
        return Err(Error::Malformed("parameters of COM_STMT_EXECUTE: their types were never sent"));
    }
    let mut values = Vec::with_capacity(count);
    for (position, kind) in types.iter().enumerate() {
        values.push(if nulls[position / 8] & (1 << (position % 8)) != 0 {
            Value::Null
        } else if let Some(data) = long_data.get(&(position as u16)) {
            Value::Bytes(data.clone())
        } else {
            Value::read(&mut reader, kind.kind, kind.unsigned)?
        });
    }
    Ok(values)
}

/// The command that executes a statement with these values, their types included.
pub fn encode_execute(statement_id: u32, values: &[Value]) -> Command {
    let mut parameters = Vec::new();
    if !values.is_empty() {
        let mut nulls = vec![0u8; values.len().div_ceil(8)];
        for (position, value) in values.iter().enumerate() {
            if *value == Value::Null {
                nulls[position / 8] |= 1 << (position % 8);
            }
        }
        parameters.extend(nulls);
        parameters.push(1);
        for value in values {
            let (kind, unsigned) = value.parameter_type();
            parameters.extend([kind, if unsigned { 0x80 } else { 0 }]);
        }
        for value in values {
            value.write(&mut parameters);
        }
    }
    Command::Execute { statement_id, cursor: 0, parameters: Bytes::from(parameters) }
}
