//! Fuzz targets: functions that take any bytes and panic where a promise of the codecs is broken.
//!
//! The promises: no panic, no memory beyond what the bytes that really came account for, an end, the same
//! answer however the bytes are cut, and what was read once is read again from what is written. The first byte
//! of an input chooses settings, the others are what a peer sends.
#![warn(missing_docs)]

pub mod allocation;
pub mod corpus;
mod engine;
mod wire_mysql;
mod wire_postgresql;

/// A target: what is called with each input.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Target); 6] = [
    ("wire_mysql", wire_mysql::server),
    ("wire_mysql_client", wire_mysql::client),
    ("wire_postgresql", wire_postgresql::server),
    ("wire_postgresql_client", wire_postgresql::client),
    ("engine_mysql", engine::mysql),
    ("engine_postgresql", engine::postgresql),
];

/// Most memory that reading `bytes` bytes may hold at once. A column costs 16 bytes, a growing vector holds its
/// old and new place while it moves, and a binary numeric of eight bytes is written out to 160 KiB of digits.
fn allowance(bytes: usize) -> usize {
    (1 << 20) + 64 * bytes
}

/// Runs `read` on behalf of `bytes` bytes of input and holds it to the allowance.
fn within_allowance<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    let (value, peak) = allocation::peak_of(read);
    assert!(peak <= allowance(bytes), "{bytes} bytes of input made it hold {peak} bytes");
    value
}

/// Cuts an input as its settings say: pieces of 1 to 7 bytes.
fn pieces(settings: u8, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(1 + usize::from(settings >> 5) % 7)
}
