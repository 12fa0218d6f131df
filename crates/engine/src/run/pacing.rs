//! When transactions are due: closed loop (as soon as the last one ended) or open loop (a seeded schedule).
//!
//! The open loop neither drops nor delays silently: an arrival that finds every terminal busy waits in the
//! backlog, its response time counts from when it was due, and one that was never begun is unfinished.

use std::collections::VecDeque;

use super::job::{ArrivalKind, Job};
use crate::{Arrivals, BadValue, Spacing};

/// What a free terminal does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Begin this transaction.
    Begin {
        /// Whose stream it draws from: the terminal, or 0 in an open loop.
        seat: u64,
        /// Its number, from 1.
        number: u64,
        /// When it was due, ns of the run's clock.
        intended_ns: u64,
    },
    /// Wait for an arrival.
    Wait,
    /// There is none any more.
    End,
}

/// Deals transactions to terminals.
#[derive(Debug)]
pub enum Pacing {
    /// Each terminal in a loop; its share when the run ends by count.
    Closed {
        /// Transactions of each terminal; None: until the end.
        quota: Option<Vec<u64>>,
    },
    /// A schedule for all terminals.
    Open(Box<OpenLoop>),
}

/// The schedule and its backlog.
#[derive(Debug)]
pub struct OpenLoop {
    schedule: Arrivals,
    limit: Option<u64>,
    /// This loop's share: arrivals whose number is `part` modulo `parts`.
    part: u64,
    parts: u64,
    number: u64,
    begin_ns: u64,
    /// When arrival `number + 1` is due, if that is known yet.
    next_ns: Option<u64>,
    backlog: VecDeque<(u64, u64)>,
    /// Arrivals that were due in the measured span.
    pub arrived: u64,
}

impl Pacing {
    /// The pacing that the job asks for, as one of `parts` loops: together they run the schedule's
    /// transactions, however many they are.
    ///
    /// # Errors
    /// A rate out of range.
    pub fn new(job: &Job, part: usize, parts: usize) -> Result<Self, BadValue> {
        let Some(rate) = job.rate else {
            let connections = u64::from(job.connections.max(1));
            let quota = job.transactions.map(|all| {
                (0..connections).map(|n| all / connections + u64::from(n < all % connections)).collect()
            });
            return Ok(Self::Closed { quota });
        };
        let spacing = match job.arrivals {
            ArrivalKind::Poisson => Spacing::Poisson,
            ArrivalKind::Even => Spacing::Even,
        };
        Ok(Self::Open(Box::new(OpenLoop {
            schedule: Arrivals::new(job.seed, rate, spacing)?,
            limit: job.transactions,
            part: part as u64,
            parts: parts as u64,
            number: 0,
            begin_ns: 0,
            next_ns: None,
            backlog: VecDeque::new(),
            arrived: 0,
        })))
    }

    /// The run begins now.
    pub fn begin(&mut self, now_ns: u64) {
        if let Self::Open(open) = self {
            open.begin_ns = now_ns;
        }
    }

    /// What terminal `terminal` (from 1), which has run `last` transactions, does at `now_ns`. `end_ns`: when no
    /// transaction begins any more in a closed loop.
    #[inline]
    pub fn next(&mut self, terminal: u64, last: u64, now_ns: u64, end_ns: u64) -> Next {
        match self {
            Self::Closed { quota } => {
                let over = quota.as_ref().is_some_and(|shares| last >= shares[terminal as usize - 1]);
                if over || now_ns >= end_ns {
                    return Next::End;
                }
                Next::Begin { seat: terminal, number: last + 1, intended_ns: now_ns }
            }
            Self::Open(open) => match open.backlog.pop_front() {
                Some((number, intended_ns)) => Next::Begin { seat: 0, number, intended_ns },
                None if open.limit.is_some_and(|limit| open.number >= limit) => Next::End,
                None => Next::Wait,
            },
        }
    }

    /// Moves arrivals that are due into the backlog; how many wait there. `measure_ns`: begin of measuring.
    pub fn arrive(&mut self, now_ns: u64, end_ns: u64, measure_ns: u64) -> usize {
        let Self::Open(open) = self else { return 0 };
        while let Some(due) = open.due(end_ns) {
            if due > now_ns {
                break;
            }
            open.next_ns = None;
            open.number += 1;
            open.arrived += u64::from(due >= measure_ns);
            open.backlog.push_back((open.number, due));
        }
        open.backlog.len()
    }

    /// When the next arrival is due.
    pub fn next_arrival(&mut self, end_ns: u64) -> Option<u64> {
        match self {
            Self::Open(open) => open.due(end_ns),
            Self::Closed { .. } => None,
        }
    }

    /// Whether all arrivals of the run are in and none waits.
    pub fn exhausted(&mut self, end_ns: u64) -> bool {
        match self {
            Self::Open(open) => open.backlog.is_empty() && open.due(end_ns).is_none(),
            Self::Closed { .. } => true,
        }
    }

    /// Measured arrivals that no terminal began.
    pub fn never_begun(&self, measure_ns: u64) -> u64 {
        match self {
            Self::Open(open) => open.backlog.iter().filter(|(_, due)| *due >= measure_ns).count() as u64,
            Self::Closed { .. } => 0,
        }
    }

    /// Arrivals of the measured span.
    pub fn arrived(&self) -> u64 {
        match self {
            Self::Open(open) => open.arrived,
            Self::Closed { .. } => 0,
        }
    }
}

impl OpenLoop {
    fn due(&mut self, end_ns: u64) -> Option<u64> {
        if self.limit.is_some_and(|limit| self.number >= limit) {
            return None;
        }
        // other loops' arrivals are passed over, so that this one is not woken for them
        while self.next_ns.is_none() {
            let due = self.begin_ns + self.schedule.next_ns();
            if (self.number + 1) % self.parts == self.part || due >= end_ns {
                self.next_ns = Some(due);
            } else {
                self.number += 1;
                if self.limit.is_some_and(|limit| self.number >= limit) {
                    return None;
                }
            }
        }
        self.next_ns.filter(|due| *due < end_ns)
    }
}
