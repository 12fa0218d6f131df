//! What to run: everything but the program.

use std::collections::HashMap;

use serde::Deserialize;

use crate::link::{Endpoint, Login};

/// What a server's error means for the run; the families' tables say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorClass {
    /// ROLLBACK and again.
    Retryable,
    /// The transaction fails, the run goes on.
    Ignorable,
    /// The connection is gone.
    Lost,
    /// The run makes no sense any more.
    Fatal,
}

/// Error codes and their classes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorTable {
    /// By whole code.
    pub codes: HashMap<String, ErrorClass>,
    /// By the first two characters (SQLSTATE classes).
    #[serde(default)]
    pub prefixes: HashMap<String, ErrorClass>,
    /// What a code that is in neither means; without it fatal.
    #[serde(default)]
    pub other: Option<ErrorClass>,
    /// Code and part of the message of an error that says a prepared statement is out of date: it is prepared
    /// anew, the transaction retried.
    #[serde(default)]
    pub stale: HashMap<String, String>,
    /// What a code means, put before its message.
    #[serde(default)]
    pub sentences: HashMap<String, String>,
}

impl ErrorTable {
    /// The class of a code.
    pub fn class(&self, code: &str) -> ErrorClass {
        self.codes
            .get(code)
            .or_else(|| self.prefixes.get(code.get(..2).unwrap_or_default()))
            .copied()
            .or(self.other)
            .unwrap_or(ErrorClass::Fatal)
    }

    /// Whether the error says that the statement must be prepared anew.
    pub fn is_stale(&self, code: &str, message: &str) -> bool {
        self.stale.get(code).is_some_and(|part| message.contains(part))
    }

    /// Code, meaning where it is known, message.
    pub fn told(&self, code: &str, message: &str) -> String {
        match self.sentences.get(code) {
            Some(sentence) => format!("{code}: {sentence}: {message}"),
            None => format!("{code}: {message}"),
        }
    }
}

/// How arrivals are spaced in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalKind {
    /// Exponential gaps.
    Poisson,
    /// Equal gaps.
    Even,
}

fn one() -> u32 {
    1
}

/// One job. Durations in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// How to log in.
    pub login: Login,
    /// Where to; dealt round robin over the terminals.
    pub endpoints: Vec<Endpoint>,
    /// Connections, each with a terminal.
    pub connections: u32,
    /// Event loops, each on a thread of its own with its share of the connections; at most one for each.
    #[serde(default = "one")]
    pub loops: u32,
    /// Never sleep while waiting for answers: a core's whole time for some microseconds less.
    #[serde(default)]
    pub spin: bool,
    /// Measured time; None: by count.
    pub duration_s: Option<f64>,
    /// Transactions in all, dealt evenly, the first terminals getting the remainder; None: by time.
    pub transactions: Option<u64>,
    /// Time before measuring begins.
    pub warmup_s: f64,
    /// Length of a sample.
    pub interval_s: f64,
    /// Arrivals a second; None: closed loop.
    pub rate: Option<f64>,
    /// Spacing of arrivals.
    pub arrivals: ArrivalKind,
    /// Attempts of a transaction, the first included.
    pub max_tries: u32,
    /// Whether a retry draws new values.
    pub new_values: bool,
    /// Codes whose transactions fail without more; "all".
    pub ignore_errors: Vec<String>,
    /// Close and reopen a connection after that many transactions; 0: never.
    pub reconnect_every: u64,
    /// How long open transactions may go on after the end.
    pub drain_s: f64,
    /// Seed of every stream.
    pub seed: u64,
    /// `db.now()` is a seeded clock: 2020-01-01 + transaction number × 1 ms.
    pub replay: bool,
    /// File for acknowledgements, appended to; empty: none.
    pub ack_path: String,
    /// What errors mean.
    pub errors: ErrorTable,
    /// What opens a transaction.
    pub begin: String,
    /// The code that a connection lost without an error is counted under.
    pub lost_code: String,
}
