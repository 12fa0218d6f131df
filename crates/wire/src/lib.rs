//! Framing and messages of the MySQL and PostgreSQL protocols: bytes in, typed messages out.
//!
//! No sockets and no clock: whoever owns a connection appends what it received to a buffer, takes whole
//! messages out of it, and sends what `write` appended to another. Both sides of each protocol are here,
//! so that a server played by a test and the client that is measured share one codec.
//!
//! Every length that comes from the wire has a ceiling; a peer that exceeds one gets an error, never
//! memory.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod mysql;
pub mod postgresql;
mod reader;

use std::fmt;

/// Longest message taken from a peer unless its owner says otherwise: MySQL's default max_allowed_packet.
pub const MESSAGE_CEILING_BYTES: usize = 64 << 20;

/// What is wrong with bytes from a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A message that its format does not allow; the text names the part.
    Malformed(&'static str),
    /// A length or count above its ceiling.
    TooLong {
        /// What the length belongs to.
        what: &'static str,
        /// The length that the peer announced.
        length: u64,
        /// The most that is accepted.
        ceiling: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(part) => write!(f, "malformed {part}"),
            Error::TooLong { what, length, ceiling } => {
                write!(f, "{what} of {length} is above the ceiling of {ceiling}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A value, or what is wrong with the bytes that should have held it.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn check_ceiling(what: &'static str, length: u64, ceiling: usize) -> Result<usize> {
    if length > ceiling as u64 {
        return Err(Error::TooLong { what, length, ceiling: ceiling as u64 });
    }
    Ok(length as usize)
}
