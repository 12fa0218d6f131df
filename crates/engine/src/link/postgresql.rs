//! Statements of the PostgreSQL protocol on the hot path: the extended protocol with named statements, values
//! as text in both directions, so that the server infers every parameter's type.

use std::io::Write as _;

use dbdyno_wire::postgresql::type_oid as oid;
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use super::civil;
use super::speech::{Answer, PipelineAnswer, ServerError, Sink};
use crate::program::{Param, RowWriter, Text, parameter_positions};

const HEADER: usize = 5;
/// Execute of the unnamed portal, all rows.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// Statements of a pipeline that a connection keeps room for.
const KEPT_QUEUE: usize = 256;
/// invalid_sql_statement_name: the server forgot the statement.
const UNKNOWN_STATEMENT: &str = "26000";

/// One connection's side of the conversation.
#[derive(Debug)]
pub(crate) struct PostgreSqlSpeech {
    /// Types of the result's columns by text number; None: not prepared here.
    prepared: Vec<Option<Box<[u32]>>>,
    current: usize,
    preparing: bool,
    simple: bool,
    types: Vec<u32>,
    status: u8,
    rows: u64,
    matched: u64,
    failure: Option<ServerError>,
    pipeline: Pipeline,
}

/// Statements that were sent without waiting and their answers so far. One Sync ends them: after an error the
/// server skips the rest, as if they had never been sent.
#[derive(Debug, Default)]
struct Pipeline {
    active: bool,
    queued: Vec<Queued>,
    answered: usize,
    /// `rows` when the statement began.
    rows_before: u64,
    second_row: Option<(usize, u64)>,
}

#[derive(Debug)]
struct Queued {
    /// None: BEGIN or COMMIT, unnamed.
    text: Option<u32>,
    /// A Parse is on its way and was not answered.
    parsing: bool,
    /// Two rows are an error.
    one_row: bool,
}

impl Default for PostgreSqlSpeech {
    fn default() -> Self {
        Self {
            prepared: Vec::new(),
            current: 0,
            preparing: false,
            simple: false,
            types: Vec::new(),
            status: b'I',
            rows: 0,
            matched: 0,
            failure: None,
            pipeline: Pipeline::default(),
        }
    }
}

impl PostgreSqlSpeech {
    pub fn in_transaction(&self) -> bool {
        self.status != b'I'
    }

    /// The text must be prepared anew. Its old statement may still be there, and a name is taken until it is
    /// closed: Close precedes the next Parse (closing what is not there is no error).
    pub fn forget(&mut self, id: u32) {
        if let Some(statement) = self.prepared.get_mut(id as usize) {
            *statement = None;
        }
    }

    /// Executes the text, which is prepared in the same flight when it is not yet: a round trip less, and no
    /// transaction of its own on the server.
    #[inline]
    pub fn statement<'a>(
        &mut self,
        id: u32,
        text: &Text,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        out: &mut Vec<u8>,
    ) {
        self.current = id as usize;
        (self.rows, self.matched, self.simple) = (0, 0, false);
        if matches!(self.prepared.get(self.current), Some(Some(_))) {
            self.preparing = false;
            bind(id, params, out);
            return;
        }
        self.preparing = true;
        self.types.clear();
        self.prepare(id, text, out);
        bind(id, params, out);
    }

    fn prepare(&mut self, id: u32, text: &Text, out: &mut Vec<u8>) {
        if self.prepared.len() > id as usize {
            message(b'C', out, |out| {
                let _ = write!(out, "Ss{id}\0");
            });
        } else {
            self.prepared.resize(id as usize + 1, None);
        }
        message(b'P', out, |out| {
            let _ = write!(out, "s{id}\0");
            numbered(&text.sql, out);
            out.extend_from_slice(&[0, 0, 0]);
        });
        message(b'D', out, |out| {
            let _ = write!(out, "Ss{id}\0");
        });
    }

    fn enter_pipeline(&mut self) {
        if !self.pipeline.active {
            let mut queued = std::mem::take(&mut self.pipeline.queued);
            queued.clear();
            self.pipeline = Pipeline { active: true, queued, ..Pipeline::default() };
            (self.rows, self.matched, self.simple, self.preparing) = (0, 0, false, false);
        }
    }

    /// Adds a statement to the pipeline, preparing its text on the way if this connection has not.
    pub fn enqueue<'a>(
        &mut self,
        id: u32,
        text: &Text,
        one_row: bool,
        params: impl ExactSizeIterator<Item = Param<'a>>,
        out: &mut Vec<u8>,
    ) {
        self.enter_pipeline();
        let parsing = !matches!(self.prepared.get(id as usize), Some(Some(_)));
        if parsing {
            self.prepare(id, text, out);
            self.prepared[id as usize] = Some(Box::default());
        }
        bind_and_execute(id, params, out);
        self.pipeline.queued.push(Queued { text: Some(id), parsing, one_row });
    }

    /// Adds BEGIN or COMMIT to the pipeline.
    pub fn enqueue_control(&mut self, sql: &str, out: &mut Vec<u8>) {
        self.enter_pipeline();
        message(b'P', out, |out| {
            out.push(0);
            out.extend_from_slice(sql.as_bytes());
            out.extend_from_slice(&[0, 0, 0]);
        });
        message(b'B', out, |out| out.extend_from_slice(&[0; 8]));
        out.extend_from_slice(EXECUTE);
        self.pipeline.queued.push(Queued { text: None, parsing: false, one_row: false });
    }

    /// The pipeline is complete: its answers are awaited.
    pub fn end_pipeline(&mut self, out: &mut Vec<u8>) {
        sync(out);
    }

    /// Statements of the pipeline that were answered.
    pub fn answered(&self) -> usize {
        if self.pipeline.active { self.pipeline.answered } else { 0 }
    }

    /// A statement of the pipeline succeeded.
    #[cold]
    fn next_of_pipeline(&mut self) {
        let position = self.pipeline.answered;
        let rows = self.rows - self.pipeline.rows_before;
        if rows > 1 && self.pipeline.queued.get(position).is_some_and(|queued| queued.one_row) {
            self.pipeline.second_row.get_or_insert((position, rows));
        }
        self.pipeline.rows_before = self.rows;
        self.pipeline.answered = position + 1;
    }

    /// A message that concerns the preparing of the pipeline's current statement.
    #[cold]
    fn prepared_in_pipeline(&mut self, kind: u8) {
        let Some(queued) = self.pipeline.queued.get_mut(self.pipeline.answered) else { return };
        let Some(id) = queued.text else { return };
        match kind {
            b'1' => queued.parsing = false,
            _ => self.prepared[id as usize] = Some(std::mem::take(&mut self.types).into()),
        }
    }

    #[cold]
    fn pipeline_over(&mut self) -> Answer {
        let failure = self.failure.take();
        self.pipeline.active = false;
        let answered = self.pipeline.answered.min(self.pipeline.queued.len());
        // what the server skipped is not prepared
        for queued in &self.pipeline.queued[answered..] {
            if let Some(id) = queued.text.filter(|_| queued.parsing) {
                self.prepared[id as usize] = None;
            }
        }
        if let (Some(failure), Some(queued)) = (&failure, self.pipeline.queued.get(answered)) {
            if let Some(id) = queued.text.filter(|_| failure.code == UNKNOWN_STATEMENT) {
                self.prepared[id as usize] = None;
            }
        }
        if self.pipeline.queued.capacity() > KEPT_QUEUE {
            self.pipeline.queued = Vec::new();
        }
        Answer::Pipeline(PipelineAnswer {
            answered,
            rows: self.rows,
            matched: self.matched,
            second_row: self.pipeline.second_row,
            failure,
        })
    }

    /// Sends a text by the simple protocol.
    pub fn query(&mut self, sql: &[u8], out: &mut Vec<u8>) {
        (self.rows, self.matched, self.preparing, self.simple) = (0, 0, false, true);
        message(b'Q', out, |out| {
            out.extend_from_slice(sql);
            out.push(0);
        });
    }

    /// Takes whole messages off `bytes`: how many bytes were used, and what they came to.
    pub fn take(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(usize, Answer), Error> {
        let mut at = 0;
        while let Some(&[kind, a, b, c, d]) = bytes.get(at..at + HEADER) {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if !(4..=MESSAGE_CEILING_BYTES).contains(&length) {
                return Err(Error::TooLong {
                    what: "message length",
                    length: length as u64,
                    ceiling: MESSAGE_CEILING_BYTES as u64,
                });
            }
            let Some(body) = bytes.get(at + HEADER..at + 1 + length) else { break };
            at += 1 + length;
            if let Some(answer) = self.message(kind, body, sink)? {
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
    fn message(&mut self, kind: u8, body: &[u8], sink: &mut Sink<'_>) -> Result<Option<Answer>, Error> {
        match kind {
            b'D' => {
                self.rows += 1;
                if sink.columns != 0 {
                    self.row(body, sink)?;
                }
            }
            b'C' | b'I' => {
                self.matched = self.matched.saturating_add(matched(body));
                if self.pipeline.active {
                    self.next_of_pipeline();
                }
            }
            b'Z' => {
                self.status = *body.first().ok_or(Error::Malformed("ReadyForQuery"))?;
                return Ok(Some(self.ready()));
            }
            b'E' => self.failure = Some(server_error(body)),
            b'T' => {
                self.types.clear();
                types(body, &mut self.types)?;
                if self.pipeline.active {
                    self.prepared_in_pipeline(kind);
                }
            }
            // ParseComplete
            b'1' => {
                if self.pipeline.active {
                    self.prepared_in_pipeline(kind);
                }
            }
            // BindComplete, CloseComplete, NoData, ParameterDescription, NoticeResponse, ParameterStatus,
            // NotificationResponse, PortalSuspended
            b'2' | b'3' | b'n' | b't' | b'N' | b'S' | b'A' | b's' => {}
            _ => return Err(Error::Malformed("message: of no type that belongs here")),
        }
        Ok(None)
    }

    fn ready(&mut self) -> Answer {
        if self.pipeline.active {
            return self.pipeline_over();
        }
        if let Some(failure) = self.failure.take() {
            if failure.code == UNKNOWN_STATEMENT {
                self.forget(self.current as u32);
            }
            return Answer::Failed(failure);
        }
        if self.preparing {
            self.prepared[self.current] = Some(self.types.as_slice().into());
        }
        Answer::Done { rows: self.rows, matched: self.matched }
    }

    fn row(&self, body: &[u8], sink: &mut Sink<'_>) -> Result<(), Error> {
        const SHORT: Error = Error::Malformed("row");
        let types: &[u32] = match self.prepared.get(self.current) {
            Some(Some(types)) if !self.simple => types,
            _ => &self.types,
        };
        let Sink { rows: Some(writer), columns: wanted } = sink else { return Ok(()) };
        let [high, low, rest @ ..] = body else { return Err(SHORT) };
        let (count, mut rest) = (usize::from(u16::from_be_bytes([*high, *low])), rest);
        for position in 0..count {
            let (length, tail) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
            let length = i32::from_be_bytes(*length);
            if length < 0 {
                writer.null();
                rest = tail;
                continue;
            }
            let (value, tail) = tail.split_at_checked(length as usize).ok_or(SHORT)?;
            rest = tail;
            if *wanted >> position.min(63) & 1 == 0 {
                writer.skip();
            } else {
                column(types.get(position).copied().unwrap_or(oid::TEXT), value, writer)?;
            }
        }
        writer.end_row();
        Ok(())
    }
}

/// Hands a value in text format to the program.
fn column(type_oid: u32, value: &[u8], writer: &mut RowWriter<'_>) -> Result<(), Error> {
    const MALFORMED: Error = Error::Malformed("value of a row");
    let text = std::str::from_utf8(value).map_err(|_| MALFORMED)?;
    match type_oid {
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => writer.int(text.parse().map_err(|_| MALFORMED)?),
        oid::FLOAT4 | oid::FLOAT8 => writer.float(text.parse().map_err(|_| MALFORMED)?),
        oid::NUMERIC => writer.decimal_text(text),
        oid::BOOL => writer.bool(text == "t"),
        oid::BPCHAR => writer.text(text.trim_end_matches(' ')),
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            writer.timestamp(civil::parse(text).ok_or(MALFORMED)?);
        }
        oid::BYTEA => {
            let digits = text.strip_prefix("\\x").ok_or(MALFORMED)?.as_bytes();
            let bytes: Option<Vec<u8>> = digits
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect();
            writer.bytes(&bytes.ok_or(MALFORMED)?);
        }
        _ => writer.text(text),
    }
    Ok(())
}

/// Rows of a command's tag: `UPDATE 3`, `INSERT 0 1`; SELECT's are counted as rows.
fn matched(tag: &[u8]) -> u64 {
    if tag.starts_with(b"SELECT") {
        return 0;
    }
    let number =
        tag.strip_suffix(&[0]).unwrap_or(tag).rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    number
        .iter()
        .try_fold(0u64, |sum, digit| {
            digit.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
        })
        .unwrap_or(0)
}

#[cold]
pub(crate) fn server_error(body: &[u8]) -> ServerError {
    let (mut code, mut message) = (String::new(), String::new());
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        let text = || String::from_utf8_lossy(&field[1..]).lines().next().unwrap_or_default().to_owned();
        match field[0] {
            b'C' => code = text(),
            b'M' => message = text(),
            _ => {}
        }
    }
    ServerError { code, message }
}

/// Type ids out of RowDescription.
fn types(body: &[u8], into: &mut Vec<u32>) -> Result<(), Error> {
    const SHORT: Error = Error::Malformed("RowDescription");
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or(SHORT)?;
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0).ok_or(SHORT)?;
        let fixed: &[u8; 18] = rest.get(end + 1..).and_then(|tail| tail.first_chunk()).ok_or(SHORT)?;
        into.push(u32::from_be_bytes([fixed[6], fixed[7], fixed[8], fixed[9]]));
        rest = &rest[end + 19..];
    }
    Ok(())
}

/// The text with `$1 …` for its parameter marks.
fn numbered(sql: &str, out: &mut Vec<u8>) {
    let mut from = 0;
    for (number, position) in parameter_positions(sql).into_iter().enumerate() {
        out.extend_from_slice(&sql.as_bytes()[from..position]);
        let _ = write!(out, "${}", number + 1);
        from = position + 1;
    }
    out.extend_from_slice(&sql.as_bytes()[from..]);
}

/// Bind to the unnamed portal, Execute, Sync.
#[inline]
fn bind<'a>(id: u32, params: impl ExactSizeIterator<Item = Param<'a>>, out: &mut Vec<u8>) {
    bind_and_execute(id, params, out);
    sync(out);
}

#[inline]
fn bind_and_execute<'a>(id: u32, params: impl ExactSizeIterator<Item = Param<'a>>, out: &mut Vec<u8>) {
    message(b'B', out, |out| {
        out.extend_from_slice(b"\0s");
        let mut digits = [0u8; 10];
        out.extend_from_slice(decimal(u64::from(id), &mut digits));
        out.extend_from_slice(&[0, 0, 0]);
        out.extend_from_slice(&(params.len() as u16).to_be_bytes());
        for param in params {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            if matches!(param, Param::Null) {
                out[start..].copy_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            value(param, out);
            let length = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        out.extend_from_slice(&[0, 0]);
    });
    out.extend_from_slice(EXECUTE);
}

#[inline]
fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

fn decimal(mut value: u64, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 || at == 0 {
            return &digits[at..];
        }
    }
}

#[inline]
fn value(param: Param<'_>, out: &mut Vec<u8>) {
    match param {
        Param::Null => {}
        Param::Bool(value) => out.push(if value { b't' } else { b'f' }),
        Param::Int(value) => {
            if let Ok(small) = u32::try_from(value) {
                let mut digits = [0u8; 10];
                out.extend_from_slice(decimal(u64::from(small), &mut digits));
            } else {
                let _ = write!(out, "{value}");
            }
        }
        Param::Float(value) => {
            let _ = write!(out, "{value:e}");
        }
        Param::Decimal(value) => {
            let _ = write!(out, "{value}");
        }
        Param::Str(text) => out.extend_from_slice(text.as_bytes()),
        Param::Bytes(bytes) => {
            out.extend_from_slice(b"\\x");
            bytes.iter().for_each(|byte| {
                let _ = write!(out, "{byte:02x}");
            });
        }
        Param::Timestamp(us) => out.extend_from_slice(civil::timestamp_text(us).as_bytes()),
    }
}

/// Appends a message whose body `fill` writes.
#[inline]
fn message(kind: u8, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    fill(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}
