//! Packets: three bytes of length, one of sequence, the payload. A payload of 2^24 - 1 bytes or more is
//! cut into chunks of that length, the last one shorter.

use bytes::{Buf, Bytes, BytesMut};

use crate::{Error, Result, check_ceiling};

const HEADER_BYTES: usize = 4;
const CHUNK_BYTES: usize = 0xFF_FFFF;

/// A whole payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Sequence number of its last chunk; an answer goes on with the next.
    pub sequence: u8,
    /// The payload, chunks joined.
    pub payload: Bytes,
}

/// Takes the next packet off `buffer`; None when more bytes are needed. Errors: a payload above `ceiling`
/// bytes (seen from its header), chunks whose sequence numbers do not follow each other.
pub fn parse(buffer: &mut BytesMut, ceiling: usize) -> Result<Option<Packet>> {
    let mut at = 0;
    let mut chunks = 0u64;
    let mut length = 0u64;
    let mut last: Option<u8> = None;
    loop {
        let Some(&[a, b, c, sequence]) = buffer.get(at..at + HEADER_BYTES) else {
            return Ok(None);
        };
        if last.is_some_and(|before| before.wrapping_add(1) != sequence) {
            return Err(Error::Malformed("sequence of packet chunks"));
        }
        last = Some(sequence);
        let chunk = u32::from_le_bytes([a, b, c, 0]) as usize;
        length += chunk as u64;
        check_ceiling("packet length", length, ceiling)?;
        at += HEADER_BYTES + chunk;
        chunks += 1;
        if buffer.len() < at {
            return Ok(None);
        }
        if chunk < CHUNK_BYTES {
            break;
        }
    }
    let sequence = last.unwrap_or_default();
    if chunks == 1 {
        buffer.advance(HEADER_BYTES);
        return Ok(Some(Packet { sequence, payload: buffer.split_to(length as usize).freeze() }));
    }
    let mut payload = BytesMut::with_capacity(length as usize);
    for _ in 0..chunks {
        let chunk = u32::from_le_bytes([buffer[0], buffer[1], buffer[2], 0]) as usize;
        buffer.advance(HEADER_BYTES);
        payload.extend_from_slice(&buffer.split_to(chunk));
    }
    Ok(Some(Packet { sequence, payload: payload.freeze() }))
}

/// Appends `payload` in as many chunks as it needs and moves `sequence` past them.
pub fn write(out: &mut BytesMut, sequence: &mut u8, payload: &[u8]) {
    let mut rest = payload;
    loop {
        let (chunk, tail) = rest.split_at(rest.len().min(CHUNK_BYTES));
        out.extend_from_slice(&(chunk.len() as u32).to_le_bytes()[..3]);
        out.extend_from_slice(&[*sequence]);
        out.extend_from_slice(chunk);
        *sequence = sequence.wrapping_add(1);
        rest = tail;
        if chunk.len() < CHUNK_BYTES {
            return;
        }
    }
}
