//! A terminal: one connection, one machine, the transaction that it runs now.

use super::figures::{Booking, Ending};
use super::pipeline::Deferred;
use crate::link::Link;
use crate::program::{Vm, Want};

/// What a terminal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// For an arrival, or for its turn.
    Free,
    /// For a keying or think time to pass.
    Resting,
    /// For the answer to COM_STMT_PREPARE or Parse.
    Preparing,
    /// For a statement's answer.
    Statement,
    /// For BEGIN's.
    Begin,
    /// For COMMIT's.
    Commit,
    /// For the answers of a pipeline, which may still be growing.
    Pipeline,
    /// For ROLLBACK's, then …
    Rollback(After),
    /// For a new connection, then …
    Opening(After),
    /// For nothing: it has ended.
    Ended,
}

/// What follows a ROLLBACK or a reopened connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The transaction again, if it has tries left; else it failed.
    Again,
    /// It failed by an error that is not retried; `fatal` ends the run.
    Failed {
        /// Whether the run ends.
        fatal: bool,
    },
    /// It ended so.
    Ended(Ending),
    /// Nothing was running.
    Nothing,
}

/// A statement of a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queued {
    /// None: BEGIN or COMMIT.
    pub text: Option<u32>,
    /// Where in the program it is.
    pub place: usize,
}

/// A time away.
#[derive(Debug, Clone)]
pub struct Outage {
    /// Terminal, from 1.
    pub connection: u64,
    /// Loss, ns of the run's clock.
    pub begin_ns: u64,
    /// Reopened or given up.
    pub end_ns: u64,
    /// The code it was lost with.
    pub code: String,
}

pub(crate) struct Terminal {
    /// From 1.
    pub number: u64,
    pub endpoint: usize,
    pub vm: Vm,
    pub link: Option<Link>,
    pub step: Step,
    /// Whether `start` runs, not a transaction.
    pub starting: bool,
    /// Number of its last transaction.
    pub last: u64,
    pub booking: Booking,
    pub running: bool,
    pub tries: u32,
    /// Attempts that ended because a text had to be prepared anew; they are no tries.
    pub renewals: u32,
    pub text: u32,
    pub want: Want,
    pub columns: u64,
    /// Inside `with db.pipeline()`, and the rows matched in it so far.
    pub pipelined: bool,
    pub pipeline_matched: u64,
    /// Its statements are sent without waiting: those sent, and what follows them.
    pub queueing: bool,
    pub queue: Vec<Queued>,
    pub deferred: Deferred,
    /// A COMMIT or an autocommitted write was sent in this attempt.
    pub outcome_unknown: bool,
    pub cancelled: bool,
    pub since_reconnect: u64,
    /// The keying time of its next transaction has passed.
    pub keyed: bool,
    pub think_s: f64,
    pub lost_ns: u64,
    pub lost_code: String,
    pub backoff_ns: u64,
    /// The sentence of the error that ended its last attempt.
    pub last_error: String,
}

impl Terminal {
    pub fn new(number: u64, endpoint: usize, vm: Vm) -> Self {
        Self {
            number,
            endpoint,
            vm,
            link: None,
            step: Step::Free,
            starting: false,
            last: 0,
            booking: Booking::default(),
            running: false,
            tries: 0,
            renewals: 0,
            text: 0,
            want: Want::Matched,
            columns: 0,
            pipelined: false,
            pipeline_matched: 0,
            queueing: false,
            queue: Vec::new(),
            deferred: Deferred::default(),
            outcome_unknown: false,
            cancelled: false,
            since_reconnect: 0,
            keyed: false,
            think_s: 0.0,
            lost_ns: 0,
            lost_code: String::new(),
            backoff_ns: 0,
            last_error: String::new(),
        }
    }

    /// Whether a statement is under way on the server.
    pub fn awaits_answer(&self) -> bool {
        matches!(
            self.step,
            Step::Preparing
                | Step::Statement
                | Step::Begin
                | Step::Commit
                | Step::Pipeline
                | Step::Rollback(_)
        )
    }
}
