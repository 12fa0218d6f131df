//! A scripted server for the MySQL and PostgreSQL protocols on one event loop: canned rows, delays, error
//! packets, half packets, resets, silence. With `--proxy` it passes everything to a real server and records the decoded
//! statements. The fault maker of the tests, the witness of what a client really sent, and the null server
//! of the benchmarks.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod delay;
mod event_loop;
mod link;
mod mysql_answer;
mod mysql_login;
mod mysql_proxy;
mod mysql_session;
mod options;
mod passage;
mod plan;
mod postgresql_answer;
mod postgresql_login;
mod postgresql_message;
mod postgresql_proxy;
mod postgresql_session;
mod process;
mod recorder;
mod script;
mod server;
mod session;
mod sql;
mod timers;

pub use delay::Delay;
pub use options::{Options, Protocol, USAGE};
pub use process::serve;
pub use script::{Script, Stall};
pub use server::Server;
