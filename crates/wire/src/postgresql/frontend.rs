//! What the client sends.

use bytes::{Bytes, BytesMut};

use super::{PARAMETER_CEILING, STARTUP_CEILING_BYTES, frame};
use crate::reader::Reader;
use crate::{Result, check_ceiling};

const VERSION_3: u32 = 3 << 16;
const CANCEL_CODE: u32 = 80_877_102;
const TLS_CODE: u32 = 80_877_103;
const GSS_CODE: u32 = 80_877_104;

/// The first message of a connection; it has no type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Startup {
    /// SSLRequest: answered by one byte, 'S' or 'N'; a startup message follows.
    Tls,
    /// GSSENCRequest: answered likewise, 'G' or 'N'.
    Gss,
    /// CancelRequest: no answer, the connection closes.
    Cancel {
        /// From BackendKeyData.
        process_id: u32,
        /// From BackendKeyData.
        secret: Bytes,
    },
    /// StartupMessage.
    Start {
        /// 3 in the high half; 0 or 2 in the low half.
        version: u32,
        /// user, database and run-time parameters.
        parameters: Vec<(String, String)>,
    },
}

impl Startup {
    /// A startup message of protocol 3.0.
    pub fn version_3(parameters: Vec<(String, String)>) -> Self {
        Startup::Start { version: VERSION_3, parameters }
    }

    /// Appends the message.
    pub fn write(&self, out: &mut BytesMut) {
        frame::write(out, None, |body| match self {
            Startup::Tls => body.extend(TLS_CODE.to_be_bytes()),
            Startup::Gss => body.extend(GSS_CODE.to_be_bytes()),
            Startup::Cancel { process_id, secret } => {
                body.extend(CANCEL_CODE.to_be_bytes());
                body.extend(process_id.to_be_bytes());
                body.extend(secret);
            }
            Startup::Start { version, parameters } => {
                body.extend(version.to_be_bytes());
                for (name, value) in parameters {
                    frame::put_text(body, name);
                    frame::put_text(body, value);
                }
                body.push(0);
            }
        });
    }
}

/// Takes the first message off `buffer`; None when more bytes are needed. Errors: longer than 10,000
/// bytes, a protocol other than version 3.
pub fn parse_startup(buffer: &mut BytesMut) -> Result<Option<Startup>> {
    let Some(body) = frame::parse_untyped(buffer, STARTUP_CEILING_BYTES)? else {
        return Ok(None);
    };
    let mut reader = Reader::new("startup message", &body);
    let code = reader.u32_be()?;
    Ok(Some(match code {
        TLS_CODE => Startup::Tls,
        GSS_CODE => Startup::Gss,
        CANCEL_CODE => {
            let process_id = reader.u32_be()?;
            Startup::Cancel { process_id, secret: Bytes::copy_from_slice(reader.rest()) }
        }
        version if version >> 16 == 3 => {
            let mut parameters = Vec::new();
            loop {
                let name = reader.text_until_zero()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, reader.text_until_zero()?));
            }
            Startup::Start { version, parameters }
        }
        _ => return reader.malformed(),
    }))
}

/// A client's message after the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendMessage {
    /// PasswordMessage, SASLInitialResponse or SASLResponse, as it came: which one, the state says.
    Password(Bytes),
    /// Query: the simple protocol.
    Query(String),
    /// Parse: prepare a statement.
    Parse {
        /// Empty: the unnamed one.
        name: String,
        /// With $1, $2, … for parameters.
        sql: String,
        /// Types of the first parameters; 0 leaves one to the server.
        types: Vec<u32>,
    },
    /// Bind: a portal from a statement and values.
    Bind {
        /// Empty: the unnamed one.
        portal: String,
        /// The statement's name.
        statement: String,
        /// None: all text; one: for all; else one a parameter. 0 text, 1 binary.
        formats: Vec<i16>,
        /// None is NULL.
        values: Vec<Option<Bytes>>,
        /// As `formats`, for the columns of the result.
        result_formats: Vec<i16>,
    },
    /// Describe a statement ('S') or a portal ('P').
    Describe {
        /// 'S' or 'P'.
        kind: u8,
        /// Its name.
        name: String,
    },
    /// Execute a portal.
    Execute {
        /// Its name.
        portal: String,
        /// 0: all.
        max_rows: i32,
    },
    /// Close a statement ('S') or a portal ('P').
    Close {
        /// 'S' or 'P'.
        kind: u8,
        /// Its name.
        name: String,
    },
    /// Sync: end of a pipeline's part; answered by ReadyForQuery.
    Sync,
    /// Flush: send what is buffered.
    Flush,
    /// Terminate: the client is about to close.
    Terminate,
    /// CopyData.
    CopyData(Bytes),
    /// CopyDone.
    CopyDone,
    /// CopyFail with its reason.
    CopyFail(String),
    /// Any other message by its type.
    Other(u8, Bytes),
}

impl FrontendMessage {
    /// Takes the next message off `buffer`; None when more bytes are needed.
    pub fn parse(buffer: &mut BytesMut, ceiling: usize) -> Result<Option<Self>> {
        match frame::parse(buffer, ceiling)? {
            Some((kind, body)) => Self::decode(kind, &body).map(Some),
            None => Ok(None),
        }
    }

    fn decode(kind: u8, body: &Bytes) -> Result<Self> {
        let mut reader = Reader::new("client message", body);
        Ok(match kind {
            b'p' => FrontendMessage::Password(body.clone()),
            b'Q' => FrontendMessage::Query(reader.text_until_zero()?),
            b'P' => {
                let (name, sql) = (reader.text_until_zero()?, reader.text_until_zero()?);
                let count = parameter_count(&mut reader)?;
                let mut types = Vec::with_capacity(count.min(body.len()));
                for _ in 0..count {
                    types.push(reader.u32_be()?);
                }
                FrontendMessage::Parse { name, sql, types }
            }
            b'B' => {
                let (portal, statement) = (reader.text_until_zero()?, reader.text_until_zero()?);
                let formats = read_formats(&mut reader)?;
                let count = parameter_count(&mut reader)?;
                let mut values = Vec::with_capacity(count.min(body.len()));
                for _ in 0..count {
                    values.push(match reader.i32_be()? {
                        -1 => None,
                        length => match usize::try_from(length) {
                            Ok(length) => Some(Bytes::copy_from_slice(reader.take(length)?)),
                            Err(_) => return reader.malformed(),
                        },
                    });
                }
                FrontendMessage::Bind {
                    portal,
                    statement,
                    formats,
                    values,
                    result_formats: read_formats(&mut reader)?,
                }
            }
            b'D' => FrontendMessage::Describe { kind: reader.u8()?, name: reader.text_until_zero()? },
            b'E' => {
                FrontendMessage::Execute { portal: reader.text_until_zero()?, max_rows: reader.i32_be()? }
            }
            b'C' => FrontendMessage::Close { kind: reader.u8()?, name: reader.text_until_zero()? },
            b'S' => FrontendMessage::Sync,
            b'H' => FrontendMessage::Flush,
            b'X' => FrontendMessage::Terminate,
            b'd' => FrontendMessage::CopyData(body.clone()),
            b'c' => FrontendMessage::CopyDone,
            b'f' => FrontendMessage::CopyFail(reader.text_until_zero()?),
            other => FrontendMessage::Other(other, body.clone()),
        })
    }

    /// Appends the message.
    pub fn write(&self, out: &mut BytesMut) {
        use FrontendMessage as M;
        let kind = match self {
            M::Password(_) => b'p',
            M::Query(_) => b'Q',
            M::Parse { .. } => b'P',
            M::Bind { .. } => b'B',
            M::Describe { .. } => b'D',
            M::Execute { .. } => b'E',
            M::Close { .. } => b'C',
            M::Sync => b'S',
            M::Flush => b'H',
            M::Terminate => b'X',
            M::CopyData(_) => b'd',
            M::CopyDone => b'c',
            M::CopyFail(_) => b'f',
            M::Other(kind, _) => *kind,
        };
        frame::write(out, Some(kind), |body| match self {
            M::Password(data) | M::CopyData(data) | M::Other(_, data) => body.extend(data),
            M::Query(text) | M::CopyFail(text) => frame::put_text(body, text),
            M::Parse { name, sql, types } => {
                frame::put_text(body, name);
                frame::put_text(body, sql);
                frame::put_count(body, types.len());
                types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
            }
            M::Bind { portal, statement, formats, values, result_formats } => {
                frame::put_text(body, portal);
                frame::put_text(body, statement);
                put_formats(body, formats);
                frame::put_count(body, values.len());
                values.iter().for_each(|value| frame::put_nullable(body, value.as_deref()));
                put_formats(body, result_formats);
            }
            M::Describe { kind, name } | M::Close { kind, name } => {
                body.push(*kind);
                frame::put_text(body, name);
            }
            M::Execute { portal, max_rows } => {
                frame::put_text(body, portal);
                body.extend(max_rows.to_be_bytes());
            }
            M::Sync | M::Flush | M::Terminate | M::CopyDone => {}
        });
    }
}

/// The format of a parameter or column among format codes as the protocol abbreviates them.
pub fn format_of(formats: &[i16], position: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(position).copied().unwrap_or(0),
    }
}

fn parameter_count(reader: &mut Reader<'_>) -> Result<usize> {
    let count = reader.i16_be()? as u16;
    check_ceiling("number of parameters", u64::from(count), PARAMETER_CEILING)
}

fn read_formats(reader: &mut Reader<'_>) -> Result<Vec<i16>> {
    let count = parameter_count(reader)?;
    let mut formats = Vec::new();
    for _ in 0..count {
        formats.push(reader.i16_be()?);
    }
    Ok(formats)
}

fn put_formats(body: &mut Vec<u8>, formats: &[i16]) {
    frame::put_count(body, formats.len());
    formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
}
