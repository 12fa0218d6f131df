//! A scripted server for the MySQL and PostgreSQL protocols: canned rows, delays, error packets, half
//! packets, resets, silence. With `--proxy` it passes everything to a real server and records the decoded
//! statements. The fault maker of the tests, the witness of what a client really sent, and the null server
//! of the benchmarks.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod link;
mod mysql_proxy;
mod mysql_session;
mod options;
mod passage;
mod postgresql_proxy;
mod postgresql_session;
mod recorder;
mod script;
mod server;
mod sql;

pub use options::{Options, Protocol, USAGE};
pub use script::Script;
pub use server::Server;
