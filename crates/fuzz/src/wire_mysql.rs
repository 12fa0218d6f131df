//! Both directions of MySQL's protocol.

use std::collections::HashMap;
use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::{
    AuthSwitch, ColumnDefinition, Command, ErrPacket, Event, Handshake, HandshakeResponse, OkPacket,
    ParameterType, PrepareOk, ResponseReader, Shape, capability, decode_binary_row, decode_parameters,
    decode_text_row, is_tls_request, parse, write,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES, Result};

use crate::{pieces, within_allowance};

/// Payloads longer than this are not written again: replaced characters make them grow past ceilings.
const REWRITTEN_BYTES: usize = 4096;

pub(crate) fn server(input: &[u8]) {
    let Some((&settings, bytes)) = input.split_first() else { return };
    let payloads = packets(settings, bytes);
    let shape = match settings & 7 {
        0..=2 => Shape::Generic,
        3 | 4 => Shape::Prepare,
        5 => Shape::Rows,
        6 => Shape::Definitions,
        _ => Shape::Line,
    };
    let capabilities = if settings & 8 != 0 { capability::DEPRECATE_EOF } else { 0 };
    let mut reader = ResponseReader::new(shape, capabilities);
    let mut columns = Vec::new();
    for payload in &payloads {
        within_allowance(payload.len(), || {
            messages(payload);
            if reader.is_complete() {
                reader = ResponseReader::new(shape, capabilities);
            }
            match reader.next(payload) {
                Ok(Event::Columns(_)) => columns.clear(),
                Ok(Event::Definition) => columns.extend(ColumnDefinition::parse(payload)),
                Ok(Event::Row) => {
                    let _ = decode_text_row(payload, columns.len());
                    let _ = decode_binary_row(payload, &columns);
                }
                _ => {}
            }
        });
    }
}

/// Every packet of the input, taken whole and in pieces.
fn packets(settings: u8, bytes: &[u8]) -> Vec<Bytes> {
    let (whole, end) = taken([bytes].into_iter(), bytes.len());
    assert_eq!((&whole, &end), (&taken(pieces(settings, bytes), bytes.len()).0, &end));
    if end.is_none() {
        for payload in &whole {
            let (mut wire, mut sequence) = (BytesMut::new(), 0);
            write(&mut wire, &mut sequence, payload);
            let again = parse(&mut wire, MESSAGE_CEILING_BYTES).map(|packet| packet.map(|one| one.payload));
            assert_eq!(again.as_ref(), Ok(&Some(payload.clone())));
        }
    }
    whole
}

fn taken<'a>(pieces: impl Iterator<Item = &'a [u8]>, total: usize) -> (Vec<Bytes>, Option<Error>) {
    let (mut buffer, mut payloads) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let before = buffer.len();
            match within_allowance(total, || parse(&mut buffer, MESSAGE_CEILING_BYTES)) {
                Ok(None) => break,
                Ok(Some(packet)) => {
                    assert!(buffer.len() < before, "a packet out of no bytes");
                    payloads.push(packet.payload);
                }
                Err(error) => return (payloads, Some(error)),
            }
        }
    }
    (payloads, None)
}

/// Each message that a payload may be, read, written and read again.
fn messages(payload: &Bytes) {
    stable(payload, Handshake::parse, Handshake::encode);
    stable(payload, AuthSwitch::parse, AuthSwitch::encode);
    stable(payload, ColumnDefinition::parse, ColumnDefinition::encode);
    stable(payload, OkPacket::parse, OkPacket::encode);
    stable(payload, OkPacket::parse, OkPacket::encode_as_eof);
    stable(payload, PrepareOk::parse, PrepareOk::encode);
    if payload.is_ascii() || payload.first() == Some(&0xFF) && payload.get(3..).is_some_and(<[u8]>::is_ascii)
    {
        stable(payload, ErrPacket::parse, ErrPacket::encode);
    }
}

fn stable<T: PartialEq + Debug>(
    payload: &[u8],
    parse: impl Fn(&[u8]) -> Result<T>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(first) = parse(payload) else { return };
    if payload.len() > REWRITTEN_BYTES {
        return;
    }
    let second = parse(&encode(&first)).expect("what was written is read");
    assert_eq!(parse(&encode(&second)), Ok(second), "from {first:?}");
}

pub(crate) fn client(input: &[u8]) {
    let Some((&settings, bytes)) = input.split_first() else { return };
    for payload in packets(settings, bytes) {
        within_allowance(payload.len(), || {
            let _ = is_tls_request(&payload);
            stable(&payload, HandshakeResponse::parse, HandshakeResponse::encode);
            let Ok(command) = Command::parse(&payload) else { return };
            assert_eq!(Command::parse(&Bytes::from(command.encode())).as_ref(), Ok(&command));
            let _ = command.has_answer();
            if let Command::Execute { parameters, .. } = command {
                let mut types = vec![ParameterType { kind: settings, unsigned: false }; 3];
                let long_data = HashMap::from([(1, Bytes::from_static(b"sent before"))]);
                for count in [0, 1, 3, 9, usize::from(settings) * 300] {
                    let _ = decode_parameters(&parameters, count, &mut types, &long_data);
                }
            }
        });
    }
}
