//! What the server sends.

use bytes::{Bytes, BytesMut};

use super::{COLUMN_CEILING, PARAMETER_CEILING, frame};
use crate::reader::Reader;
use crate::{Result, check_ceiling};

/// What the server wants to know before it lets a client in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Nothing more.
    Ok,
    /// The password in clear text.
    Cleartext,
    /// The password by `auth::md5_password`.
    Md5 {
        /// Four random bytes.
        salt: [u8; 4],
    },
    /// One of these SASL mechanisms.
    Sasl(Vec<String>),
    /// The server's part of a SASL exchange.
    SaslContinue(Bytes),
    /// The last one.
    SaslFinal(Bytes),
    /// A method that is not spoken here, by its number.
    Other(u32),
}

/// A column of RowDescription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The table that it comes from, or 0.
    pub table_oid: u32,
    /// Its number in that table, or 0.
    pub column: i16,
    /// Its type.
    pub type_oid: u32,
    /// Bytes of a value; negative: variable.
    pub type_size: i16,
    /// Such as a VARCHAR's length; -1: none.
    pub type_modifier: i32,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// A server's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendMessage {
    /// Authentication…
    Authentication(Authentication),
    /// ParameterStatus: a run-time parameter and its value.
    ParameterStatus(String, String),
    /// BackendKeyData: what cancels this connection's statement.
    BackendKeyData {
        /// The server process.
        process_id: u32,
        /// Its secret.
        secret: Bytes,
    },
    /// ReadyForQuery: 'I' idle, 'T' in a transaction, 'E' in a failed one.
    ReadyForQuery(u8),
    /// RowDescription.
    RowDescription(Vec<Field>),
    /// DataRow as it came: see `decode_data_row`.
    DataRow(Bytes),
    /// CommandComplete with its tag, such as "UPDATE 1".
    CommandComplete(String),
    /// The text was empty.
    EmptyQueryResponse,
    /// ErrorResponse: fields by their letter.
    ErrorResponse(Vec<(u8, String)>),
    /// NoticeResponse: likewise.
    NoticeResponse(Vec<(u8, String)>),
    /// The statement or portal gives no rows.
    NoData,
    /// Types of a statement's parameters.
    ParameterDescription(Vec<u32>),
    /// Answer to Parse.
    ParseComplete,
    /// Answer to Bind.
    BindComplete,
    /// Answer to Close.
    CloseComplete,
    /// Execute stopped at its limit of rows.
    PortalSuspended,
    /// CopyInResponse, its formats as they came.
    CopyIn(Bytes),
    /// CopyOutResponse, likewise.
    CopyOut(Bytes),
    /// CopyData.
    CopyData(Bytes),
    /// CopyDone.
    CopyDone,
    /// Any other message by its type.
    Other(u8, Bytes),
}

impl BackendMessage {
    /// Takes the next message off `buffer`; None when more bytes are needed.
    pub fn parse(buffer: &mut BytesMut, ceiling: usize) -> Result<Option<Self>> {
        match frame::parse(buffer, ceiling)? {
            Some((kind, body)) => Self::decode(kind, &body).map(Some),
            None => Ok(None),
        }
    }

    fn decode(kind: u8, body: &Bytes) -> Result<Self> {
        let mut reader = Reader::new("server message", body);
        Ok(match kind {
            b'R' => BackendMessage::Authentication(read_authentication(&mut reader)?),
            b'S' => BackendMessage::ParameterStatus(reader.text_until_zero()?, reader.text_until_zero()?),
            b'K' => BackendMessage::BackendKeyData {
                process_id: reader.u32_be()?,
                secret: Bytes::copy_from_slice(reader.rest()),
            },
            b'Z' => BackendMessage::ReadyForQuery(reader.u8()?),
            b'T' => BackendMessage::RowDescription(read_fields(&mut reader)?),
            b'D' => BackendMessage::DataRow(body.clone()),
            b'C' => BackendMessage::CommandComplete(reader.text_until_zero()?),
            b'I' => BackendMessage::EmptyQueryResponse,
            b'E' => BackendMessage::ErrorResponse(read_notice(&mut reader)?),
            b'N' => BackendMessage::NoticeResponse(read_notice(&mut reader)?),
            b'n' => BackendMessage::NoData,
            b't' => {
                let count = u64::from(reader.i16_be()? as u16);
                let count = check_ceiling("number of parameters", count, PARAMETER_CEILING)?;
                let mut types = Vec::with_capacity(count.min(body.len()));
                for _ in 0..count {
                    types.push(reader.u32_be()?);
                }
                BackendMessage::ParameterDescription(types)
            }
            b'1' => BackendMessage::ParseComplete,
            b'2' => BackendMessage::BindComplete,
            b'3' => BackendMessage::CloseComplete,
            b's' => BackendMessage::PortalSuspended,
            b'G' => BackendMessage::CopyIn(body.clone()),
            b'H' => BackendMessage::CopyOut(body.clone()),
            b'd' => BackendMessage::CopyData(body.clone()),
            b'c' => BackendMessage::CopyDone,
            other => BackendMessage::Other(other, body.clone()),
        })
    }

    /// Appends the message.
    pub fn write(&self, out: &mut BytesMut) {
        use BackendMessage as M;
        let kind = match self {
            M::Authentication(_) => b'R',
            M::ParameterStatus(..) => b'S',
            M::BackendKeyData { .. } => b'K',
            M::ReadyForQuery(_) => b'Z',
            M::RowDescription(_) => b'T',
            M::DataRow(_) => b'D',
            M::CommandComplete(_) => b'C',
            M::EmptyQueryResponse => b'I',
            M::ErrorResponse(_) => b'E',
            M::NoticeResponse(_) => b'N',
            M::NoData => b'n',
            M::ParameterDescription(_) => b't',
            M::ParseComplete => b'1',
            M::BindComplete => b'2',
            M::CloseComplete => b'3',
            M::PortalSuspended => b's',
            M::CopyIn(_) => b'G',
            M::CopyOut(_) => b'H',
            M::CopyData(_) => b'd',
            M::CopyDone => b'c',
            M::Other(kind, _) => *kind,
        };
        frame::write(out, Some(kind), |body| match self {
            M::Authentication(request) => put_authentication(body, request),
            M::ParameterStatus(name, value) => {
                frame::put_text(body, name);
                frame::put_text(body, value);
            }
            M::BackendKeyData { process_id, secret } => {
                body.extend(process_id.to_be_bytes());
                body.extend(secret);
            }
            M::ReadyForQuery(state) => body.push(*state),
            M::RowDescription(fields) => {
                frame::put_count(body, fields.len());
                for field in fields {
                    frame::put_text(body, &field.name);
                    body.extend(field.table_oid.to_be_bytes());
                    body.extend(field.column.to_be_bytes());
                    body.extend(field.type_oid.to_be_bytes());
                    body.extend(field.type_size.to_be_bytes());
                    body.extend(field.type_modifier.to_be_bytes());
                    body.extend(field.format.to_be_bytes());
                }
            }
            M::CommandComplete(tag) => frame::put_text(body, tag),
            M::ErrorResponse(fields) | M::NoticeResponse(fields) => {
                for (letter, text) in fields {
                    body.push(*letter);
                    frame::put_text(body, text);
                }
                body.push(0);
            }
            M::ParameterDescription(types) => {
                frame::put_count(body, types.len());
                types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
            }
            M::DataRow(data) | M::CopyIn(data) | M::CopyOut(data) | M::CopyData(data) | M::Other(_, data) => {
                body.extend(data);
            }
            M::EmptyQueryResponse
            | M::NoData
            | M::ParseComplete
            | M::BindComplete
            | M::CloseComplete
            | M::PortalSuspended
            | M::CopyDone => {}
        });
    }

    /// A DataRow of these values; None is NULL.
    pub fn data_row(values: &[Option<Bytes>]) -> Self {
        let mut body = Vec::new();
        frame::put_count(&mut body, values.len());
        values.iter().for_each(|value| frame::put_nullable(&mut body, value.as_deref()));
        BackendMessage::DataRow(Bytes::from(body))
    }

    /// An ErrorResponse with severity, SQLSTATE and text.
    pub fn error(severity: &str, sqlstate: &str, message: &str) -> Self {
        BackendMessage::ErrorResponse(vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', sqlstate.to_owned()),
            (b'M', message.to_owned()),
        ])
    }
}

/// The text of an error's field: 'C' SQLSTATE, 'M' message, 'S' severity.
pub fn fields(all: &[(u8, String)], letter: u8) -> Option<&str> {
    all.iter().find(|(known, _)| *known == letter).map(|(_, text)| text.as_str())
}

/// The values of a DataRow's body; None is NULL.
pub fn decode_data_row(body: &Bytes) -> Result<Vec<Option<Bytes>>> {
    let mut reader = Reader::new("data row", body);
    let count = check_ceiling("column count", u64::from(reader.i16_be()? as u16), COLUMN_CEILING)?;
    let mut row = Vec::with_capacity(count);
    for _ in 0..count {
        row.push(match reader.i32_be()? {
            -1 => None,
            length => match usize::try_from(length) {
                Ok(length) => Some(body.slice_ref(reader.take(length)?)),
                Err(_) => return reader.malformed(),
            },
        });
    }
    Ok(row)
}

fn read_authentication(reader: &mut Reader<'_>) -> Result<Authentication> {
    Ok(match reader.u32_be()? {
        0 => Authentication::Ok,
        3 => Authentication::Cleartext,
        5 => Authentication::Md5 { salt: reader.array()? },
        10 => {
            let mut mechanisms = Vec::new();
            loop {
                let name = reader.text_until_zero()?;
                if name.is_empty() {
                    break;
                }
                mechanisms.push(name);
            }
            Authentication::Sasl(mechanisms)
        }
        11 => Authentication::SaslContinue(Bytes::copy_from_slice(reader.rest())),
        12 => Authentication::SaslFinal(Bytes::copy_from_slice(reader.rest())),
        other => Authentication::Other(other),
    })
}

fn put_authentication(body: &mut Vec<u8>, request: &Authentication) {
    let code: u32 = match request {
        Authentication::Ok => 0,
        Authentication::Cleartext => 3,
        Authentication::Md5 { .. } => 5,
        Authentication::Sasl(_) => 10,
        Authentication::SaslContinue(_) => 11,
        Authentication::SaslFinal(_) => 12,
        Authentication::Other(code) => *code,
    };
    body.extend(code.to_be_bytes());
    match request {
        Authentication::Md5 { salt } => body.extend(salt),
        Authentication::Sasl(mechanisms) => {
            mechanisms.iter().for_each(|name| frame::put_text(body, name));
            body.push(0);
        }
        Authentication::SaslContinue(data) | Authentication::SaslFinal(data) => body.extend(data),
        Authentication::Ok | Authentication::Cleartext | Authentication::Other(_) => {}
    }
}

fn read_fields(reader: &mut Reader<'_>) -> Result<Vec<Field>> {
    let count = check_ceiling("column count", u64::from(reader.i16_be()? as u16), COLUMN_CEILING)?;
    let mut fields = Vec::new();
    for _ in 0..count {
        fields.push(Field {
            name: reader.text_until_zero()?,
            table_oid: reader.u32_be()?,
            column: reader.i16_be()?,
            type_oid: reader.u32_be()?,
            type_size: reader.i16_be()?,
            type_modifier: reader.i32_be()?,
            format: reader.i16_be()?,
        });
    }
    Ok(fields)
}

fn read_notice(reader: &mut Reader<'_>) -> Result<Vec<(u8, String)>> {
    let mut fields = Vec::new();
    loop {
        match reader.u8()? {
            0 => return Ok(fields),
            letter => fields.push((letter, reader.text_until_zero()?)),
        }
    }
}
