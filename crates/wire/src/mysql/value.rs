//! Values of the binary protocol.

use bytes::Bytes;

use super::{column_type, put_length_encoded_bytes};
use crate::reader::Reader;
use crate::{Error, Result};

/// A parameter of an execution or a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    UInt(u64),
    /// Single precision.
    Float(f32),
    /// Double precision.
    Double(f64),
    /// Strings, decimals, blobs: as sent.
    Bytes(Bytes),
    /// A date, time or timestamp as SQL writes it, with six decimals where there is a fraction.
    Temporal(String),
}

impl Value {
    /// Reads a binary value of a type.
    pub(crate) fn read(reader: &mut Reader<'_>, kind: u8, unsigned: bool) -> Result<Self> {
        use column_type as t;
        Ok(match kind {
            t::NULL => Value::Null,
            t::TINY if unsigned => Value::UInt(u64::from(reader.u8()?)),
            t::TINY => Value::Int(i64::from(reader.u8()? as i8)),
            t::SHORT | t::YEAR if unsigned => Value::UInt(u64::from(reader.u16_le()?)),
            t::SHORT | t::YEAR => Value::Int(i64::from(reader.u16_le()? as i16)),
            t::LONG | t::INT24 if unsigned => Value::UInt(u64::from(reader.u32_le()?)),
            t::LONG | t::INT24 => Value::Int(i64::from(reader.u32_le()? as i32)),
            t::LONGLONG if unsigned => Value::UInt(reader.u64_le()?),
            t::LONGLONG => Value::Int(reader.u64_le()? as i64),
            t::FLOAT => Value::Float(f32::from_bits(reader.u32_le()?)),
            t::DOUBLE => Value::Double(f64::from_bits(reader.u64_le()?)),
            t::DATE | t::DATETIME | t::TIMESTAMP => Value::Temporal(read_datetime(reader, kind)?),
            t::TIME => Value::Temporal(read_time(reader)?),
            t::DECIMAL | t::VARCHAR | t::BIT | t::VECTOR | t::JSON..=t::GEOMETRY => {
                Value::Bytes(Bytes::copy_from_slice(reader.length_encoded_bytes()?))
            }
            _ => return Err(Error::Malformed("type of a binary value")),
        })
    }

    /// Appends the value in the binary form of its own kind. NULL has none: it is a bit of the bitmap.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => {}
            Value::Int(value) => out.extend(value.to_le_bytes()),
            Value::UInt(value) => out.extend(value.to_le_bytes()),
            Value::Float(value) => out.extend(value.to_le_bytes()),
            Value::Double(value) => out.extend(value.to_le_bytes()),
            Value::Bytes(bytes) => put_length_encoded_bytes(out, bytes),
            Value::Temporal(text) => put_length_encoded_bytes(out, text.as_bytes()),
        }
    }

    /// The type and the unsigned flag under which `write` sends it. Temporal values go as strings, which
    /// servers convert.
    pub(crate) fn parameter_type(&self) -> (u8, bool) {
        match self {
            Value::Null => (column_type::NULL, false),
            Value::Int(_) => (column_type::LONGLONG, false),
            Value::UInt(_) => (column_type::LONGLONG, true),
            Value::Float(_) => (column_type::FLOAT, false),
            Value::Double(_) => (column_type::DOUBLE, false),
            Value::Bytes(_) | Value::Temporal(_) => (column_type::VAR_STRING, false),
        }
    }

    /// As the text protocol writes it; None for NULL.
    pub fn to_text(&self) -> Option<Bytes> {
        Some(match self {
            Value::Null => return None,
            Value::Int(value) => Bytes::from(value.to_string()),
            Value::UInt(value) => Bytes::from(value.to_string()),
            Value::Float(value) => Bytes::from(value.to_string()),
            Value::Double(value) => Bytes::from(value.to_string()),
            Value::Bytes(bytes) => bytes.clone(),
            Value::Temporal(text) => Bytes::from(text.clone()),
        })
    }
}

fn read_datetime(reader: &mut Reader<'_>, kind: u8) -> Result<String> {
    let length = reader.u8()?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Error::Malformed("binary date"));
    }
    let mut fields = Reader::new("binary date", reader.take(usize::from(length))?);
    let (mut date, mut time, mut micros) = ((0, 0, 0), (0, 0, 0), None);
    if length >= 4 {
        date = (fields.u16_le()?, fields.u8()?, fields.u8()?);
    }
    if length >= 7 {
        time = (fields.u8()?, fields.u8()?, fields.u8()?);
    }
    if length == 11 {
        micros = Some(fields.u32_le()?);
    }
    let mut text = format!("{:04}-{:02}-{:02}", date.0, date.1, date.2);
    if kind != column_type::DATE {
        text += &format!(" {:02}:{:02}:{:02}", time.0, time.1, time.2);
    }
    if let Some(micros) = micros {
        text += &format!(".{micros:06}");
    }
    Ok(text)
}

fn read_time(reader: &mut Reader<'_>) -> Result<String> {
    let length = reader.u8()?;
    if !matches!(length, 0 | 8 | 12) {
        return Err(Error::Malformed("binary time"));
    }
    let mut fields = Reader::new("binary time", reader.take(usize::from(length))?);
    if length == 0 {
        return Ok("00:00:00".to_owned());
    }
    let sign = if fields.u8()? == 0 { "" } else { "-" };
    let hours = u64::from(fields.u32_le()?) * 24 + u64::from(fields.u8()?);
    let mut text = format!("{sign}{hours:02}:{:02}:{:02}", fields.u8()?, fields.u8()?);
    if length == 12 {
        text += &format!(".{:06}", fields.u32_le()?);
    }
    Ok(text)
}
