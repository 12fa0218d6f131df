//! Statements of the MySQL protocol on the hot path: no allocation for integers and strings, rows that
//! nobody reads are framed and counted only.

use dbdyno_wire::mysql::{ErrPacket, capability, column_type, status};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use super::speech::{Answer, ServerError, Sink};
use crate::program::{Param, Text, parameter_positions};

const CHUNK: usize = 0xFF_FFFF;
const HEADER: usize = 4;
const BINARY_COLLATION: u16 = 63;
const UNSIGNED: u16 = 32;
const NO_BACKSLASH_ESCAPES: u16 = 0x200;
/// Statements that the server prepares no more of, or not at all.
const NOT_PREPARABLE: [u16; 3] = [1295, 1461, 1047];
/// In place of a statement's number: the server does not prepare this text here, it is sent as text.
const AS_TEXT: u32 = u32::MAX;
/// The server forgot the statement.
const UNKNOWN_STATEMENT: u16 = 1243;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Head,
    Definitions(usize),
    EndOfDefinitions,
    Rows,
    PrepareHead,
    PrepareDefinitions { parameters: usize, columns: usize },
    PrepareEndOfParameters { columns: usize },
    PrepareEndOfColumns,
}

#[derive(Debug, Clone, Copy)]
struct Column {
    kind: u8,
    unsigned: bool,
    binary: bool,
}

/// One connection's side of the conversation.
#[derive(Debug)]
pub(crate) struct MySqlSpeech {
    deprecate_eof: bool,
    /// Server's statement number by text number; 0: not prepared here.
    prepared: Vec<u32>,
    current: usize,
    state: State,
    binary: bool,
    status: u16,
    columns: Vec<Column>,
    rows: u64,
    matched: u64,
    failure: Option<ServerError>,
}

impl MySqlSpeech {
    pub fn new(capabilities: u32) -> Self {
        Self {
            deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0,
            prepared: Vec::new(),
            current: 0,
            state: State::Idle,
            binary: false,
            status: 0,
            columns: Vec::new(),
            rows: 0,
            matched: 0,
            failure: None,
        }
    }

    pub fn in_transaction(&self) -> bool {
        self.status & status::IN_TRANSACTION != 0
    }

    #[inline]
    pub fn has_prepared(&self, id: u32) -> bool {
        self.prepared.get(id as usize).is_some_and(|statement| *statement != 0)
    }

    /// The text must be prepared anew.
    pub fn forget(&mut self, id: u32) {
        if let Some(statement) = self.prepared.get_mut(id as usize) {
            *statement = 0;
        }
    }

    fn keep(&mut self, statement: u32) {
        if self.prepared.len() <= self.current {
            self.prepared.resize(self.current + 1, 0);
        }
        self.prepared[self.current] = statement;
    }

    /// Executes the text if it is prepared here or cannot be, else prepares it.
    #[inline]
    pub fn statement<'a>(
        &mut self,
        id: u32,
        text: &Text,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        out: &mut Vec<u8>,
    ) {
        self.current = id as usize;
        (self.rows, self.matched) = (0, 0);
        match self.prepared.get(self.current) {
            Some(&AS_TEXT) => {
                let sql = self.with_literals(&text.sql, params);
                self.query(&sql, out);
            }
            Some(&statement) if statement != 0 => {
                self.state = State::Head;
                self.binary = true;
                execute(statement, params, out);
            }
            _ => {
                self.state = State::PrepareHead;
                command(0x16, text.sql.as_bytes(), out);
            }
        }
    }

    /// Sends a text as it is.
    pub fn query(&mut self, sql: &[u8], out: &mut Vec<u8>) {
        (self.rows, self.matched) = (0, 0);
        self.state = State::Head;
        self.binary = false;
        command(0x03, sql, out);
    }

    /// Takes whole packets off `bytes`: how many bytes were used, and what they came to.
    pub fn take(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(usize, Answer), Error> {
        let mut at = 0;
        while let Some(&[a, b, c, _]) = bytes.get(at..at + HEADER) {
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            if length == CHUNK {
                let Some((payload, used)) = joined(&bytes[at..])? else { break };
                at += used;
                if let Some(answer) = self.packet(&payload, sink)? {
                    return Ok((at, answer));
                }
                continue;
            }
            let Some(payload) = bytes.get(at + HEADER..at + HEADER + length) else { break };
            at += HEADER + length;
            if let Some(answer) = self.packet(payload, sink)? {
                return Ok((at, answer));
            }
        }
        Ok((at, Answer::Pending))
    }

    /// An error that came before the connection was closed.
    pub fn take_failure(&mut self) -> Option<ServerError> {
        self.failure.take()
    }

    #[inline]
    fn packet(&mut self, payload: &[u8], sink: &mut Sink<'_>) -> Result<Option<Answer>, Error> {
        let first = *payload.first().ok_or(Error::Malformed("answer: an empty packet"))?;
        if first == 0xFF && !matches!(self.state, State::Definitions(_) | State::PrepareDefinitions { .. }) {
            return self.failed(payload).map(Some);
        }
        match self.state {
            State::Head => match first {
                0x00 => self.ok(payload),
                0xFB => Err(Error::Malformed("answer: the server asks for a local file")),
                _ => {
                    let count = length_encoded(payload, &mut 0)? as usize;
                    if count == 0 || count > dbdyno_wire::mysql::COLUMN_CEILING {
                        return Err(Error::Malformed("column count"));
                    }
                    self.columns.clear();
                    self.state = State::Definitions(count);
                    Ok(None)
                }
            },
            State::Definitions(left) => {
                if sink.columns != 0 {
                    self.columns.push(definition(payload)?);
                }
                self.state = match (left, self.deprecate_eof) {
                    (1, true) => State::Rows,
                    (1, false) => State::EndOfDefinitions,
                    _ => State::Definitions(left - 1),
                };
                Ok(None)
            }
            State::EndOfDefinitions => {
                self.state = State::Rows;
                Ok(None)
            }
            State::Rows => {
                if first == 0xFE && payload.len() < CHUNK && (self.deprecate_eof || payload.len() < 9) {
                    if self.deprecate_eof {
                        return self.ok(payload);
                    }
                    let flags = payload.get(3..5).ok_or(Error::Malformed("EOF packet"))?;
                    self.status = u16::from_le_bytes([flags[0], flags[1]]);
                    return Ok(self.end());
                }
                self.rows += 1;
                if sink.columns != 0 {
                    self.row(payload, sink)?;
                }
                Ok(None)
            }
            State::PrepareHead => {
                let head: &[u8; 9] =
                    payload.first_chunk().ok_or(Error::Malformed("answer to COM_STMT_PREPARE"))?;
                let statement = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
                let columns = usize::from(u16::from_le_bytes([head[5], head[6]]));
                let parameters = usize::from(u16::from_le_bytes([head[7], head[8]]));
                if statement == 0 || statement == AS_TEXT {
                    return Err(Error::Malformed("answer to COM_STMT_PREPARE: no statement's number"));
                }
                self.keep(statement);
                Ok(self.prepare_goes_on(parameters, columns))
            }
            State::PrepareDefinitions { parameters, columns } => {
                if parameters > 1 {
                    self.state = State::PrepareDefinitions { parameters: parameters - 1, columns };
                    return Ok(None);
                }
                if parameters == 1 {
                    if self.deprecate_eof {
                        return Ok(self.prepare_goes_on(0, columns));
                    }
                    self.state = State::PrepareEndOfParameters { columns };
                    return Ok(None);
                }
                if columns > 1 {
                    self.state = State::PrepareDefinitions { parameters: 0, columns: columns - 1 };
                    return Ok(None);
                }
                if self.deprecate_eof {
                    return Ok(self.prepare_goes_on(0, 0));
                }
                self.state = State::PrepareEndOfColumns;
                Ok(None)
            }
            State::PrepareEndOfParameters { columns } => Ok(self.prepare_goes_on(0, columns)),
            State::PrepareEndOfColumns => Ok(self.prepare_goes_on(0, 0)),
            // said without being asked: an error (which 0xFF above took) or nothing that makes sense
            State::Idle => Err(Error::Malformed("answer: nothing was asked")),
        }
    }

    fn prepare_goes_on(&mut self, parameters: usize, columns: usize) -> Option<Answer> {
        if parameters == 0 && columns == 0 {
            self.state = State::Idle;
            return Some(Answer::Prepared);
        }
        self.state = State::PrepareDefinitions { parameters, columns };
        None
    }

    #[inline]
    fn ok(&mut self, payload: &[u8]) -> Result<Option<Answer>, Error> {
        let mut at = 1;
        self.matched = self.matched.saturating_add(length_encoded(payload, &mut at)?);
        length_encoded(payload, &mut at)?;
        let flags = payload.get(at..at + 2).ok_or(Error::Malformed("OK packet"))?;
        self.status = u16::from_le_bytes([flags[0], flags[1]]);
        Ok(self.end())
    }

    fn end(&mut self) -> Option<Answer> {
        if self.status & status::MORE_RESULTS != 0 {
            self.state = State::Head;
            return None;
        }
        self.state = State::Idle;
        Some(Answer::Done { rows: self.rows, matched: self.matched })
    }

    #[cold]
    fn failed(&mut self, payload: &[u8]) -> Result<Answer, Error> {
        let error = ErrPacket::parse(payload)?;
        let preparing = self.state == State::PrepareHead;
        let idle = self.state == State::Idle;
        self.state = State::Idle;
        if error.code == UNKNOWN_STATEMENT {
            self.forget(self.current as u32);
        }
        if preparing && NOT_PREPARABLE.contains(&error.code) {
            self.keep(AS_TEXT);
            return Ok(Answer::NotPreparable(error.code.to_string()));
        }
        let failure = ServerError {
            code: error.code.to_string(),
            message: error.message.lines().next().unwrap_or_default().to_owned(),
        };
        if idle {
            self.failure = Some(failure.clone());
        }
        Ok(Answer::Failed(failure))
    }

    fn row(&self, payload: &[u8], sink: &mut Sink<'_>) -> Result<(), Error> {
        let columns = &self.columns;
        let Sink { rows: Some(writer), columns: wanted } = sink else { return Ok(()) };
        let wants = |position: usize| *wanted >> position.min(63) & 1 != 0;
        if !self.binary {
            return super::mysql_values::text_row(payload, columns.len(), |position, bytes| {
                let column = columns[position];
                if wants(position) {
                    super::mysql_values::from_text(column.kind, column.binary, bytes, writer)
                } else {
                    writer.skip();
                    Ok(())
                }
            })
            .map(|()| writer.end_row());
        }
        let nulls_end = 1 + (columns.len() + 2).div_ceil(8);
        let nulls = payload.get(1..nulls_end).ok_or(Error::Malformed("binary row"))?;
        let mut at = nulls_end;
        for (position, column) in columns.iter().enumerate() {
            let bit = position + 2;
            if nulls[bit / 8] >> (bit % 8) & 1 != 0 {
                writer.null();
                continue;
            }
            let value = super::mysql_values::binary_value(payload, &mut at, column.kind)?;
            if wants(position) {
                super::mysql_values::from_binary(column.kind, column.unsigned, column.binary, value, writer)?;
            } else {
                writer.skip();
            }
        }
        writer.end_row();
        Ok(())
    }
}

/// A payload of several chunks and the bytes it took; None while chunks are missing.
#[cold]
fn joined(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Error> {
    let (mut at, mut total) = (0, 0);
    loop {
        let Some(&[a, b, c, _]) = bytes.get(at..at + HEADER) else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        total += length;
        if total > MESSAGE_CEILING_BYTES {
            return Err(Error::TooLong {
                what: "packet length",
                length: total as u64,
                ceiling: MESSAGE_CEILING_BYTES as u64,
            });
        }
        at += HEADER + length;
        if length < CHUNK {
            break;
        }
    }
    if bytes.len() < at {
        return Ok(None);
    }
    let (mut payload, mut from) = (Vec::with_capacity(total), 0);
    while from < at {
        let length = u32::from_le_bytes([bytes[from], bytes[from + 1], bytes[from + 2], 0]) as usize;
        payload.extend_from_slice(&bytes[from + HEADER..from + HEADER + length]);
        from += HEADER + length;
    }
    Ok(Some((payload, at)))
}

#[inline]
pub(crate) fn length_encoded(payload: &[u8], at: &mut usize) -> Result<u64, Error> {
    const SHORT: Error = Error::Malformed("length-encoded integer");
    let first = *payload.get(*at).ok_or(SHORT)?;
    *at += 1;
    let width = match first {
        0..=0xFA => return Ok(u64::from(first)),
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return Err(SHORT),
    };
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(payload.get(*at..*at + width).ok_or(SHORT)?);
    *at += width;
    Ok(u64::from_le_bytes(wide))
}

/// Type and flags out of a column definition; its names are passed over.
fn definition(payload: &[u8]) -> Result<Column, Error> {
    const SHORT: Error = Error::Malformed("column definition");
    let mut at = 0;
    for _ in 0..6 {
        let length = length_encoded(payload, &mut at)? as usize;
        at = at.checked_add(length).filter(|end| *end <= payload.len()).ok_or(SHORT)?;
    }
    let fixed: &[u8; 10] = payload.get(at + 1..).and_then(|rest| rest.first_chunk()).ok_or(SHORT)?;
    let collation = u16::from_le_bytes([fixed[0], fixed[1]]);
    let flags = u16::from_le_bytes([fixed[7], fixed[8]]);
    Ok(Column { kind: fixed[6], unsigned: flags & UNSIGNED != 0, binary: collation == BINARY_COLLATION })
}

/// Appends a command in as many chunks as it needs.
fn command(code: u8, data: &[u8], out: &mut Vec<u8>) {
    let start = begin(out);
    out.push(code);
    out.extend_from_slice(data);
    finish(out, start);
}

#[inline]
fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}

#[inline]
fn finish(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start - HEADER;
    if length < CHUNK {
        out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        return;
    }
    let payload = out.split_off(start + HEADER);
    out.truncate(start);
    let mut sequence = 0u8;
    let mut rest = payload.as_slice();
    loop {
        let (chunk, tail) = rest.split_at(rest.len().min(CHUNK));
        out.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(chunk);
        sequence = sequence.wrapping_add(1);
        rest = tail;
        if chunk.len() < CHUNK {
            return;
        }
    }
}

/// COM_STMT_EXECUTE with its parameters' types.
#[inline]
fn execute<'a>(statement: u32, params: impl ExactSizeIterator<Item = Param<'a>>, out: &mut Vec<u8>) {
    let start = begin(out);
    out.push(0x17);
    out.extend_from_slice(&statement.to_le_bytes());
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    let count = params.len();
    if count > 0 {
        let nulls = out.len();
        out.resize(nulls + count.div_ceil(8), 0);
        out.push(1);
        let types = out.len();
        out.resize(types + 2 * count, 0);
        for (position, param) in params.enumerate() {
            let kind = match param {
                Param::Int(value) => {
                    out.extend_from_slice(&value.to_le_bytes());
                    column_type::LONGLONG
                }
                Param::Str(text) => {
                    put_bytes(out, text.as_bytes());
                    column_type::VAR_STRING
                }
                Param::Null => {
                    out[nulls + position / 8] |= 1 << (position % 8);
                    column_type::NULL
                }
                Param::Bool(value) => {
                    out.push(u8::from(value));
                    column_type::TINY
                }
                Param::Float(value) => {
                    out.extend_from_slice(&value.to_le_bytes());
                    column_type::DOUBLE
                }
                Param::Decimal(value) => {
                    put_bytes(out, value.to_string().as_bytes());
                    column_type::NEWDECIMAL
                }
                Param::Bytes(bytes) => {
                    put_bytes(out, bytes);
                    column_type::BLOB
                }
                Param::Timestamp(us) => {
                    put_bytes(out, super::civil::timestamp_text(us).as_bytes());
                    column_type::VAR_STRING
                }
            };
            out[types + 2 * position] = kind;
        }
    }
    finish(out, start);
}

#[inline]
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        length @ 0..=0xFA => out.push(length as u8),
        length @ 0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        length @ 0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
        length => {
            out.push(0xFE);
            out.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

impl MySqlSpeech {
    /// The text with its parameters written in, as this session's sql_mode reads them.
    fn with_literals<'a>(&self, sql: &str, params: impl ExactSizeIterator<Item = Param<'a>>) -> Vec<u8> {
        let backslashes = self.status & NO_BACKSLASH_ESCAPES == 0;
        let (mut out, mut from) = (Vec::with_capacity(sql.len() + 64), 0);
        for (position, param) in parameter_positions(sql).into_iter().zip(params) {
            out.extend_from_slice(&sql.as_bytes()[from..position]);
            literal(param, backslashes, &mut out);
            from = position + 1;
        }
        out.extend_from_slice(&sql.as_bytes()[from..]);
        out
    }
}

fn literal(param: Param<'_>, backslashes: bool, out: &mut Vec<u8>) {
    match param {
        Param::Null => out.extend_from_slice(b"NULL"),
        Param::Bool(value) => out.push(b'0' + u8::from(value)),
        Param::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Param::Float(value) => out.extend_from_slice(format!("{value:e}").as_bytes()),
        Param::Decimal(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Param::Str(text) => {
            out.push(b'\'');
            for byte in text.bytes() {
                if byte == b'\'' || (byte == b'\\' && backslashes) {
                    out.push(byte);
                }
                out.push(byte);
            }
            out.push(b'\'');
        }
        Param::Bytes(bytes) => {
            out.extend_from_slice(b"X'");
            bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02X}").as_bytes()));
            out.push(b'\'');
        }
        Param::Timestamp(us) => {
            out.extend_from_slice(format!("'{}'", super::civil::timestamp_text(us)).as_bytes());
        }
    }
}
