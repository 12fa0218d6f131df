//! Both directions of PostgreSQL's protocol.

use std::fmt::Debug;

use bytes::BytesMut;
use dbdyno_wire::postgresql::{
    BackendMessage, Field, FrontendMessage, Startup, decode, decode_data_row, error_field, format_of,
    parse_startup, type_oid,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES, Result};

use crate::{pieces, within_allowance};

/// Types that have a binary form here, and one that has none.
const TYPES: [u32; 10] = [
    type_oid::BOOL,
    type_oid::INT8,
    type_oid::INT2,
    type_oid::FLOAT4,
    type_oid::FLOAT8,
    type_oid::NUMERIC,
    type_oid::DATE,
    type_oid::TIMESTAMPTZ,
    type_oid::BYTEA,
    type_oid::UNKNOWN,
];

pub(crate) fn server(input: &[u8]) {
    let Some((&settings, bytes)) = input.split_first() else { return };
    let mut fields: Vec<Field> = Vec::new();
    for message in both_ways(settings, bytes, |buffer| BackendMessage::parse(buffer, MESSAGE_CEILING_BYTES)) {
        again(&message, BackendMessage::write, |buffer| BackendMessage::parse(buffer, MESSAGE_CEILING_BYTES));
        match message {
            BackendMessage::RowDescription(known) => fields = known,
            BackendMessage::ErrorResponse(all) => {
                let _ = (error_field(&all, b'C'), error_field(&all, b'M'));
            }
            BackendMessage::DataRow(body) => row(&body, &fields, settings),
            _ => {}
        }
    }
}

fn row(body: &bytes::Bytes, fields: &[Field], settings: u8) {
    let Ok(row) = within_allowance(body.len(), || decode_data_row(body)) else { return };
    let mut wire = BytesMut::new();
    BackendMessage::data_row(&row).write(&mut wire);
    let Ok(Some(BackendMessage::DataRow(written))) = BackendMessage::parse(&mut wire, MESSAGE_CEILING_BYTES)
    else {
        panic!("a row that was written is read");
    };
    assert_eq!(decode_data_row(&written).as_ref(), Ok(&row));
    for (position, value) in row.iter().enumerate() {
        let known =
            fields.get(position).map_or(TYPES[usize::from(settings) % TYPES.len()], |one| one.type_oid);
        for format in [0, 1] {
            let _ = within_allowance(body.len(), || decode(known, format, value.as_ref()));
        }
    }
}

pub(crate) fn client(input: &[u8]) {
    let Some((&settings, bytes)) = input.split_first() else { return };
    for startup in both_ways(settings, bytes, parse_startup) {
        if bytes.len() < 3000 {
            again(&startup, Startup::write, parse_startup);
        }
    }
    for message in both_ways(settings, bytes, |buffer| FrontendMessage::parse(buffer, MESSAGE_CEILING_BYTES))
    {
        again(&message, FrontendMessage::write, |buffer| {
            FrontendMessage::parse(buffer, MESSAGE_CEILING_BYTES)
        });
        if let FrontendMessage::Bind { formats, values, .. } = message {
            for position in 0..=values.len() {
                let _ = format_of(&formats, position);
            }
        }
    }
}

/// Every message of the input, taken whole and in pieces.
fn both_ways<T: PartialEq + Debug>(
    settings: u8,
    bytes: &[u8],
    parse: impl Fn(&mut BytesMut) -> Result<Option<T>>,
) -> Vec<T> {
    let whole = taken([bytes].into_iter(), bytes.len(), &parse);
    assert_eq!(whole, taken(pieces(settings, bytes), bytes.len(), &parse));
    whole.0
}

fn taken<'a, T>(
    pieces: impl Iterator<Item = &'a [u8]>,
    total: usize,
    parse: impl Fn(&mut BytesMut) -> Result<Option<T>>,
) -> (Vec<T>, Option<Error>) {
    let (mut buffer, mut messages) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let before = buffer.len();
            match within_allowance(total, || parse(&mut buffer)) {
                Ok(None) => break,
                Ok(Some(message)) => {
                    assert!(buffer.len() < before, "a message out of no bytes");
                    messages.push(message);
                }
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

/// What was read is read again from what is written.
fn again<T: PartialEq + Debug>(
    message: &T,
    write: impl Fn(&T, &mut BytesMut),
    parse: impl Fn(&mut BytesMut) -> Result<Option<T>>,
) {
    let mut wire = BytesMut::new();
    write(message, &mut wire);
    assert_eq!(parse(&mut wire).as_ref().map(Option::as_ref), Ok(Some(message)));
    assert!(wire.is_empty());
}
