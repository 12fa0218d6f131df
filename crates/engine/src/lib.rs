//! The load engine: programs, connections, event loops, and what both lives of a workload share.
//!
//! Every random value, every intended start and every recorded latency of dbdyno comes from here, so
//! that a transaction called from Python and the same transaction run by the engine draw the same
//! values and are measured alike.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod arrivals;
mod distribution;
mod histogram;
pub mod link;
mod permutation;
mod philox;
pub mod program;
pub mod run;
mod stream;

use std::fmt;

pub use arrivals::{Arrivals, Spacing};
pub use distribution::{Distribution, Kind, Parameters};
pub use histogram::Histogram;
pub use permutation::Permutation;
pub use philox::philox4x64_10;
pub use stream::{Stream, purpose_hash};

/// Version of the engine; one wheel, one version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A value outside its range: one sentence that says what was wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue(pub String);

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadValue {}

pub(crate) fn bad<T>(sentence: String) -> Result<T, BadValue> {
    Err(BadValue(sentence))
}
