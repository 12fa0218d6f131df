//! Messages: one byte of type, four of length (themselves included), the body.

use bytes::{Buf, Bytes, BytesMut};

use crate::{Error, Result, check_ceiling};

const LENGTH_BYTES: usize = 4;

/// Takes the next message off `buffer`: its type and body.
pub(crate) fn parse(buffer: &mut BytesMut, ceiling: usize) -> Result<Option<(u8, Bytes)>> {
    let Some(&[kind, a, b, c, d]) = buffer.get(..1 + LENGTH_BYTES) else {
        return Ok(None);
    };
    let length = body_length([a, b, c, d], ceiling)?;
    if buffer.len() < 1 + LENGTH_BYTES + length {
        return Ok(None);
    }
    buffer.advance(1 + LENGTH_BYTES);
    Ok(Some((kind, buffer.split_to(length).freeze())))
}

/// Takes a message without a type off `buffer`: the first of a connection.
pub(crate) fn parse_untyped(buffer: &mut BytesMut, ceiling: usize) -> Result<Option<Bytes>> {
    let Some(&[a, b, c, d]) = buffer.get(..LENGTH_BYTES) else {
        return Ok(None);
    };
    let length = body_length([a, b, c, d], ceiling)?;
    if buffer.len() < LENGTH_BYTES + length {
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}

fn body_length(bytes: [u8; 4], ceiling: usize) -> Result<usize> {
    let length = u32::from_be_bytes(bytes);
    if (length as usize) < LENGTH_BYTES {
        return Err(Error::Malformed("message length"));
    }
    check_ceiling("message length", u64::from(length) - LENGTH_BYTES as u64, ceiling)
}

/// Appends a message whose body `fill` writes.
pub(crate) fn write(out: &mut BytesMut, kind: Option<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    fill(&mut body);
    if let Some(kind) = kind {
        out.extend_from_slice(&[kind]);
    }
    out.extend_from_slice(&((body.len() + LENGTH_BYTES) as u32).to_be_bytes());
    out.extend_from_slice(&body);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.as_bytes());
    out.push(0);
}

pub(crate) fn put_nullable(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(bytes) => {
            out.extend((bytes.len() as i32).to_be_bytes());
            out.extend(bytes);
        }
        None => out.extend((-1i32).to_be_bytes()),
    }
}

pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u16).to_be_bytes());
}
