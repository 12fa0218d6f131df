//! Where an answer begins and ends: a command is answered by one packet or by thousands.

use super::{COLUMN_CEILING, EofPacket, ErrPacket, OkPacket, PrepareOk, capability, status};
use crate::reader::Reader;
use crate::{Error, Result, check_ceiling};

/// The form of a command's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// OK, ERR, or result sets: COM_QUERY, COM_STMT_EXECUTE and most others.
    Generic,
    /// COM_STMT_PREPARE.
    Prepare,
    /// Rows and nothing before them: COM_STMT_FETCH.
    Rows,
    /// Column definitions and nothing before them: COM_FIELD_LIST.
    Definitions,
    /// One packet of any form: COM_STATISTICS.
    Line,
}

/// What a packet of the answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The statement succeeded, or the rows of one result end here.
    Done(OkPacket),
    /// The statement failed.
    Failed(ErrPacket),
    /// A statement was prepared.
    Prepared(PrepareOk),
    /// A result of that many columns begins.
    Columns(usize),
    /// A column or parameter definition.
    Definition,
    /// The end of definitions, for clients without DEPRECATE_EOF.
    EndOfDefinitions,
    /// A row.
    Row,
    /// The server asks for a local file of the client.
    LocalFile,
    /// The line of COM_STATISTICS.
    Line,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    /// Definitions still to come, then what follows them.
    Definitions {
        left: usize,
        then: Then,
    },
    /// The EOF after definitions, then what follows it.
    EndOfDefinitions(Then),
    Rows,
    OpenDefinitions,
    Complete,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Rows,
    Columns(usize),
    Complete,
}

/// Follows the packets of one answer.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    shape: Shape,
    deprecate_eof: bool,
    state: State,
}

impl ResponseReader {
    /// At the first packet of an answer, under the capabilities that both sides agreed on.
    pub fn new(shape: Shape, capabilities: u32) -> Self {
        let state = match shape {
            Shape::Rows => State::Rows,
            Shape::Definitions => State::OpenDefinitions,
            _ => State::Head,
        };
        Self { shape, deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0, state }
    }

    /// Whether the answer has ended.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Takes the payload of the next packet. Error: a packet that does not belong there.
    pub fn next(&mut self, payload: &[u8]) -> Result<Event> {
        let first = *payload.first().ok_or(Error::Malformed("answer: an empty packet"))?;
        match self.state {
            State::Complete => Err(Error::Malformed("answer: a packet after its end")),
            State::Head => self.head(first, payload),
            State::Definitions { left, then } => {
                if left > 1 {
                    self.state = State::Definitions { left: left - 1, then };
                } else if self.deprecate_eof {
                    self.after(then);
                } else {
                    self.state = State::EndOfDefinitions(then);
                }
                Ok(Event::Definition)
            }
            State::EndOfDefinitions(then) => {
                let eof = EofPacket::parse(payload)?;
                // A cursor's rows are fetched by a command of their own.
                if matches!(then, Then::Rows) && eof.status & status::CURSOR_EXISTS != 0 {
                    self.state = State::Complete;
                } else {
                    self.after(then);
                }
                Ok(Event::EndOfDefinitions)
            }
            State::Rows => self.row(first, payload),
            State::OpenDefinitions => match first {
                0xFF => self.failed(payload),
                0xFE if payload.len() <= EofPacket::CEILING_BYTES => {
                    self.state = State::Complete;
                    Ok(Event::EndOfDefinitions)
                }
                _ => Ok(Event::Definition),
            },
        }
    }

    fn head(&mut self, first: u8, payload: &[u8]) -> Result<Event> {
        match (self.shape, first) {
            (Shape::Line, _) => {
                self.state = State::Complete;
                Ok(Event::Line)
            }
            (_, 0xFF) => self.failed(payload),
            (Shape::Prepare, _) => {
                let prepared = PrepareOk::parse(payload)?;
                self.definitions(
                    usize::from(prepared.parameters),
                    Then::Columns(usize::from(prepared.columns)),
                );
                Ok(Event::Prepared(prepared))
            }
            (_, 0x00) => {
                let ok = OkPacket::parse(payload)?;
                self.end_of_result(ok.status);
                Ok(Event::Done(ok))
            }
            // An EOF that stands alone is how some servers answer COM_SET_OPTION.
            (_, 0xFE) if payload.len() <= EofPacket::CEILING_BYTES => {
                let eof = EofPacket::parse(payload)?;
                self.end_of_result(eof.status);
                Ok(Event::Done(OkPacket {
                    status: eof.status,
                    warnings: eof.warnings,
                    ..OkPacket::default()
                }))
            }
            (_, 0xFB) => Ok(Event::LocalFile),
            _ => {
                let count = Reader::new("column count", payload).length_encoded()?;
                let count = check_ceiling("column count", count, COLUMN_CEILING)?;
                self.definitions(count, Then::Rows);
                Ok(Event::Columns(count))
            }
        }
    }

    fn row(&mut self, first: u8, payload: &[u8]) -> Result<Event> {
        if first == 0xFF {
            return self.failed(payload);
        }
        if first != 0xFE || payload.len() > 0xFF_FFFF {
            return Ok(Event::Row);
        }
        if payload.len() <= EofPacket::CEILING_BYTES && !self.deprecate_eof {
            let eof = EofPacket::parse(payload)?;
            self.end_of_result(eof.status);
            return Ok(Event::Done(OkPacket {
                status: eof.status,
                warnings: eof.warnings,
                ..OkPacket::default()
            }));
        }
        if self.deprecate_eof {
            let ok = OkPacket::parse(payload)?;
            self.end_of_result(ok.status);
            return Ok(Event::Done(ok));
        }
        Ok(Event::Row)
    }

    fn failed(&mut self, payload: &[u8]) -> Result<Event> {
        self.state = State::Complete;
        Ok(Event::Failed(ErrPacket::parse(payload)?))
    }

    fn end_of_result(&mut self, flags: u16) {
        let more = self.shape == Shape::Generic && flags & status::MORE_RESULTS != 0;
        self.state = if more { State::Head } else { State::Complete };
    }

    fn definitions(&mut self, count: usize, then: Then) {
        if count == 0 {
            self.after(then);
        } else {
            self.state = State::Definitions { left: count, then };
        }
    }

    fn after(&mut self, then: Then) {
        match then {
            Then::Rows => self.state = State::Rows,
            Then::Columns(count) => self.definitions(count, Then::Complete),
            Then::Complete => self.state = State::Complete,
        }
    }
}
