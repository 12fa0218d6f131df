//! Counts and histograms of a span of time. The accounting identity of a measured span:
//!
//! scheduled = committed + rolled_back + failed + unknown + skipped + unfinished

use std::collections::HashMap;

use crate::Histogram;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// COMMIT (or the last autocommitted statement) was answered.
    Committed,
    /// By its own wish.
    RolledBack,
    /// Tries used up, or an error that is not retried.
    Failed,
    /// The connection was lost after COMMIT was sent.
    Unknown,
    /// Cancelled at the end of the run.
    Unfinished,
}

/// Numbers of transactions unless named otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Due in the span.
    pub scheduled: u64,
    /// See `Ending`.
    pub committed: u64,
    /// See `Ending`.
    pub rolled_back: u64,
    /// See `Ending`.
    pub failed: u64,
    /// See `Ending`.
    pub unknown: u64,
    /// Due but deliberately not begun.
    pub skipped: u64,
    /// See `Ending`.
    pub unfinished: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Connections reopened.
    pub reconnects: u64,
    /// Statements answered: SELECT.
    pub reads: u64,
    /// INSERT, UPDATE, DELETE, REPLACE, MERGE.
    pub writes: u64,
    /// BEGIN, COMMIT, ROLLBACK and the rest.
    pub others: u64,
    /// Rows fetched.
    pub rows: u64,
}

impl Counts {
    /// Name and value of each, in the order above.
    pub fn named(&self) -> [(&'static str, u64); 13] {
        [
            ("scheduled", self.scheduled),
            ("committed", self.committed),
            ("rolled_back", self.rolled_back),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("skipped", self.skipped),
            ("unfinished", self.unfinished),
            ("retries", self.retries),
            ("reconnects", self.reconnects),
            ("reads", self.reads),
            ("writes", self.writes),
            ("others", self.others),
            ("rows", self.rows),
        ]
    }

    /// Adds another loop's.
    pub fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.unfinished += other.unfinished;
        self.retries += other.retries;
        self.reconnects += other.reconnects;
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.rows += other.rows;
    }

    fn end(&mut self, ending: Ending) {
        self.scheduled += 1;
        *match ending {
            Ending::Committed => &mut self.committed,
            Ending::RolledBack => &mut self.rolled_back,
            Ending::Failed => &mut self.failed,
            Ending::Unknown => &mut self.unknown,
            Ending::Unfinished => &mut self.unfinished,
        } += 1;
    }

    fn statements(&mut self, booking: &Booking) {
        self.retries += booking.retries;
        self.reads += booking.reads;
        self.writes += booking.writes;
        self.others += booking.others;
        self.rows += booking.rows;
    }
}

/// Everything about one ended transaction. Times in ns of the run's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Booking {
    /// Number of its kind.
    pub kind: usize,
    /// When it was due.
    pub intended_ns: u64,
    /// When it began.
    pub begun_ns: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Connections reopened within it.
    pub reconnects: u64,
    /// Statements answered.
    pub reads: u64,
    /// Statements answered.
    pub writes: u64,
    /// Statements answered.
    pub others: u64,
    /// Rows fetched.
    pub rows: u64,
}

/// Figures of one transaction kind.
#[derive(Debug, Default)]
pub struct KindFigures {
    /// Its counts (reconnects are counted for all kinds together).
    pub counts: Counts,
    /// Response times of committed ones, ns.
    pub response: Histogram,
}

/// Figures of a span.
#[derive(Debug, Default)]
pub struct Figures {
    /// Counts of all kinds.
    pub counts: Counts,
    /// Attempts that failed, by code.
    pub errors: HashMap<String, u64>,
    /// From the intended start, committed transactions, ns.
    pub response: Histogram,
    /// From the actual start, committed transactions, ns.
    pub service: Histogram,
    /// From the intended to the actual start, ns.
    pub lag: Histogram,
    /// By kind; empty when the program has one only.
    pub kinds: Vec<KindFigures>,
}

impl Figures {
    /// With room for `kinds` kinds.
    pub fn new(kinds: usize) -> Self {
        let kinds = if kinds > 1 { kinds } else { 0 };
        Self { kinds: (0..kinds).map(|_| KindFigures::default()).collect(), ..Self::default() }
    }

    /// Counts an ended transaction.
    #[inline]
    pub fn book(&mut self, booking: &Booking, ending: Ending, ended_ns: u64) {
        self.counts.end(ending);
        self.counts.statements(booking);
        self.counts.reconnects += booking.reconnects;
        self.lag.record(booking.begun_ns - booking.intended_ns);
        if ending == Ending::Committed {
            self.response.record(ended_ns - booking.intended_ns);
            self.service.record(ended_ns - booking.begun_ns);
        }
        if let Some(kind) = self.kinds.get_mut(booking.kind) {
            kind.counts.end(ending);
            kind.counts.statements(booking);
            if ending == Ending::Committed {
                kind.response.record(ended_ns - booking.intended_ns);
            }
        }
    }

    /// Adds another loop's figures of the same span.
    pub fn merge(&mut self, other: Self) {
        self.counts.add(&other.counts);
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        for (mine, kind) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.counts.add(&kind.counts);
            mine.response.merge(&kind.response);
        }
        if self.kinds.is_empty() {
            self.kinds = other.kinds;
        }
    }

    /// Counts an attempt that failed.
    #[cold]
    pub fn error(&mut self, code: &str) {
        *self.errors.entry(code.to_owned()).or_default() += 1;
    }
}
