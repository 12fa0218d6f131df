//! The PostgreSQL frontend/backend protocol, version 3 (PostgreSQL manual, chapter "Frontend/Backend Protocol").

pub mod auth;
mod backend;
mod frame;
mod frontend;
mod value;

pub use backend::{Authentication, BackendMessage, Field, decode_data_row, fields as error_field};
pub use frontend::{FrontendMessage, Startup, format_of, parse_startup};
pub use value::{Value, decode, encode_binary};

/// Object ids of the types that parameters and columns have here.
pub mod type_oid {
    #![allow(missing_docs)]
    pub const UNKNOWN: u32 = 0;
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN_LITERAL: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const NUMERIC: u32 = 1700;
}

/// Most columns of a row; the server's own limit is 1664.
pub const COLUMN_CEILING: usize = 2048;
/// Most parameters of a statement: their count has 16 bits.
pub const PARAMETER_CEILING: usize = 65_535;
/// Longest startup message (the server's own limit).
pub const STARTUP_CEILING_BYTES: usize = 10_000;
