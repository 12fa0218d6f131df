//! Columns of MySQL rows, binary and text.

use dbdyno_wire::Error;
use dbdyno_wire::mysql::column_type as kind;

use super::civil;
use super::mysql::length_encoded;
use crate::program::RowWriter;

const MALFORMED: Error = Error::Malformed("value of a row");

/// Passes over the bytes of a binary value and returns them, without their length.
pub(crate) fn binary_value<'a>(payload: &'a [u8], at: &mut usize, column: u8) -> Result<&'a [u8], Error> {
    let length = match column {
        kind::NULL => 0,
        kind::TINY => 1,
        kind::SHORT | kind::YEAR => 2,
        kind::LONG | kind::INT24 | kind::FLOAT => 4,
        kind::LONGLONG | kind::DOUBLE => 8,
        kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::TIME => {
            let length = usize::from(*payload.get(*at).ok_or(MALFORMED)?);
            *at += 1;
            length
        }
        _ => length_encoded(payload, at)? as usize,
    };
    let end = at.checked_add(length).ok_or(MALFORMED)?;
    let bytes = payload.get(*at..end).ok_or(MALFORMED)?;
    *at = end;
    Ok(bytes)
}

/// Hands a binary value to the program.
pub(crate) fn from_binary(
    column: u8,
    unsigned: bool,
    binary: bool,
    bytes: &[u8],
    writer: &mut RowWriter<'_>,
) -> Result<(), Error> {
    match column {
        kind::TINY | kind::SHORT | kind::YEAR | kind::LONG | kind::INT24 | kind::LONGLONG => {
            integer(bytes, unsigned, writer);
        }
        kind::FLOAT => {
            let value = f32::from_le_bytes(bytes.try_into().map_err(|_| MALFORMED)?);
            // through its shortest text: 0.1 stays 0.1
            writer.float(value.to_string().parse().unwrap_or(f64::NAN));
        }
        kind::DOUBLE => writer.float(f64::from_le_bytes(bytes.try_into().map_err(|_| MALFORMED)?)),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => writer.timestamp(temporal(bytes)?),
        kind::TIME => writer.text(&time(bytes)?),
        kind::NULL => writer.null(),
        _ => return text_like(column, binary, bytes, writer),
    }
    Ok(())
}

fn integer(bytes: &[u8], unsigned: bool, writer: &mut RowWriter<'_>) {
    let mut wide = [0; 8];
    wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    let value = u64::from_le_bytes(wide);
    if unsigned {
        match i64::try_from(value) {
            Ok(value) => writer.int(value),
            Err(_) => writer.decimal(i128::from(value), 0),
        }
    } else {
        let shift = 64 - 8 * bytes.len().min(8) as u32;
        writer.int((value << shift) as i64 >> shift);
    }
}

fn text_like(column: u8, binary: bool, bytes: &[u8], writer: &mut RowWriter<'_>) -> Result<(), Error> {
    match column {
        kind::DECIMAL | kind::NEWDECIMAL => {
            writer.decimal_text(std::str::from_utf8(bytes).map_err(|_| MALFORMED)?);
        }
        kind::BIT | kind::GEOMETRY => writer.bytes(bytes),
        _ if binary && column != kind::JSON => writer.bytes(bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => writer.text(text),
            Err(_) => writer.bytes(bytes),
        },
    }
    Ok(())
}

fn temporal(bytes: &[u8]) -> Result<i64, Error> {
    let mut all = [0u8; 11];
    all.get_mut(..bytes.len()).ok_or(MALFORMED)?.copy_from_slice(bytes);
    let year = u16::from_le_bytes([all[0], all[1]]);
    let micros = u32::from_le_bytes([all[7], all[8], all[9], all[10]]);
    Ok(civil::micros(
        i64::from(year),
        u32::from(all[2]),
        u32::from(all[3]),
        [u32::from(all[4]), u32::from(all[5]), u32::from(all[6])],
        micros,
    ))
}

fn time(bytes: &[u8]) -> Result<String, Error> {
    let mut all = [0u8; 12];
    all.get_mut(..bytes.len()).ok_or(MALFORMED)?.copy_from_slice(bytes);
    let days = u32::from_le_bytes([all[1], all[2], all[3], all[4]]);
    let sign = if all[0] == 1 { "-" } else { "" };
    let mut text =
        format!("{sign}{:02}:{:02}:{:02}", u64::from(days) * 24 + u64::from(all[5]), all[6], all[7]);
    if bytes.len() > 8 {
        let micros = u32::from_le_bytes([all[8], all[9], all[10], all[11]]);
        text += &format!(".{micros:06}");
    }
    Ok(text)
}

/// Calls `each` with every column of a text row; NULLs go to it as None.
pub(crate) fn text_row(
    payload: &[u8],
    columns: usize,
    mut each: impl FnMut(usize, Option<&[u8]>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut at = 0;
    for position in 0..columns {
        if payload.get(at) == Some(&0xFB) {
            at += 1;
            each(position, None)?;
            continue;
        }
        let length = length_encoded(payload, &mut at)? as usize;
        let end = at.checked_add(length).ok_or(MALFORMED)?;
        each(position, Some(payload.get(at..end).ok_or(MALFORMED)?))?;
        at = end;
    }
    Ok(())
}

/// Hands a value of the text protocol to the program.
pub(crate) fn from_text(
    column: u8,
    binary: bool,
    bytes: Option<&[u8]>,
    writer: &mut RowWriter<'_>,
) -> Result<(), Error> {
    let Some(bytes) = bytes else {
        writer.null();
        return Ok(());
    };
    let text = || std::str::from_utf8(bytes).map_err(|_| MALFORMED);
    match column {
        kind::TINY | kind::SHORT | kind::YEAR | kind::LONG | kind::INT24 | kind::LONGLONG => {
            match text()?.parse::<i128>().map_err(|_| MALFORMED)? {
                value if i64::try_from(value).is_ok() => writer.int(value as i64),
                value => writer.decimal(value, 0),
            }
        }
        kind::FLOAT | kind::DOUBLE => writer.float(text()?.parse().map_err(|_| MALFORMED)?),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => {
            writer.timestamp(civil::parse(text()?).ok_or(MALFORMED)?);
        }
        kind::TIME => writer.text(text()?),
        _ => return text_like(column, binary, bytes, writer),
    }
    Ok(())
}
