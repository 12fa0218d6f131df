//! The MySQL client/server protocol, version 4.1 and later (MySQL Internals Manual, chapter 14).

pub mod auth;
mod command;
mod frame;
mod handshake;
mod packet;
mod response;
mod result_set;
mod value;

pub use command::{Command, ParameterType, decode_parameters, encode_execute};
pub use frame::{Packet, parse, write};
pub use handshake::{AuthSwitch, Handshake, HandshakeResponse, is_tls_request};
pub use packet::{EofPacket, ErrPacket, OkPacket, PrepareOk};
pub use response::{Event, ResponseReader, Shape};
pub use result_set::{
    ColumnDefinition, decode_binary_row, decode_text_row, encode_binary_row, encode_text_row,
};
pub use value::Value;

/// Capability flags of the handshake.
pub mod capability {
    #![allow(missing_docs)]
    pub const LONG_PASSWORD: u32 = 1;
    pub const FOUND_ROWS: u32 = 1 << 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const COMPRESS: u32 = 1 << 5;
    pub const LOCAL_FILES: u32 = 1 << 7;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const SSL: u32 = 1 << 11;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const MULTI_STATEMENTS: u32 = 1 << 16;
    pub const MULTI_RESULTS: u32 = 1 << 17;
    pub const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC_DATA: u32 = 1 << 21;
    pub const SESSION_TRACK: u32 = 1 << 23;
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    pub const OPTIONAL_RESULTSET_METADATA: u32 = 1 << 25;
    pub const ZSTD_COMPRESSION: u32 = 1 << 26;
    pub const QUERY_ATTRIBUTES: u32 = 1 << 27;
}

/// Status flags of OK and EOF packets.
pub mod status {
    #![allow(missing_docs)]
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS: u16 = 8;
    pub const CURSOR_EXISTS: u16 = 64;
}

/// Column and parameter types.
pub mod column_type {
    #![allow(missing_docs)]
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const VECTOR: u8 = 242;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Collation ids that the handshake and column definitions carry.
pub mod collation {
    #![allow(missing_docs)]
    pub const UTF8MB4_GENERAL_CI: u8 = 45;
    pub const BINARY: u8 = 63;
}

/// Most columns of a table or result (the server's own limit).
pub const COLUMN_CEILING: usize = 4096;
/// Most parameters of a statement: their count has 16 bits.
pub const PARAMETER_CEILING: usize = 65_535;

pub(crate) fn put_length_encoded(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xFA => out.push(value as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend((value as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend(value.to_le_bytes());
        }
    }
}

pub(crate) fn put_length_encoded_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length_encoded(out, bytes.len() as u64);
    out.extend(bytes);
}

pub(crate) fn put_zero_terminated(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes);
    out.push(0);
}
