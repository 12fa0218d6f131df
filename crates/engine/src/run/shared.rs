//! What the loops' threads and the thread that reads their samples share.
//!
//! A loop pushes a span at every interval and never waits; a reader that is slow finds several.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use super::figures::Figures;
use super::gate::Gate;
use super::merging::Merging;
use super::notes::Unprepared;
use super::opener::ring;
use super::terminal::Outage;
use crate::link::OpenError;

/// The figures of a span of time.
#[derive(Debug)]
pub struct Span {
    /// Its begin, seconds after measuring began (negative: warm-up).
    pub begin_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Counts and histograms.
    pub figures: Figures,
    /// Whether it belongs to the warm-up.
    pub warm: bool,
    /// Whether it is the last one.
    pub last: bool,
    /// Connections open at its end.
    pub connected: usize,
    /// Share of it that the loop worked, in [0, 1]; of several loops the busiest one's.
    pub busy: f64,
}

/// How a run ended.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// Length of the measured span.
    pub seconds: f64,
    /// Stopped before its end.
    pub interrupted: bool,
    /// Why the run made no sense any more.
    pub fatal: Option<String>,
    /// Arrivals due in the measured span (open loop).
    pub arrived: u64,
    /// Those that no terminal began.
    pub never_begun: u64,
    /// Begin of measuring on the run's clock, which outages are given on.
    pub measure_ns: u64,
    /// Connections whose statement did not come back after it was cancelled.
    pub stuck: usize,
    /// Times without a connection.
    pub outages: Vec<Outage>,
    /// What was done otherwise than asked, a sentence each.
    pub notes: Vec<String>,
    pub(crate) unprepared: Unprepared,
}

impl Conclusion {
    /// Adds another loop's.
    fn merge(&mut self, other: Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.interrupted |= other.interrupted;
        self.fatal = self.fatal.take().or(other.fatal);
        self.arrived += other.arrived;
        self.never_begun += other.never_begun;
        self.stuck += other.stuck;
        self.outages.extend(other.outages);
        self.unprepared.merge(other.unprepared);
    }
}

#[derive(Debug)]
struct Inbox {
    merging: Merging,
    spans: VecDeque<Span>,
    conclusions: Vec<Conclusion>,
    error: Option<OpenError>,
    /// Loops that are still at work.
    left: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Shared {
    inbox: Mutex<Inbox>,
    news: Condvar,
    stop: AtomicBool,
    immediate: AtomicBool,
    /// A loop has failed: the others end, and that is no interruption.
    failed: AtomicBool,
    gate: Gate,
    bells: Vec<OwnedFd>,
}

impl Shared {
    pub(crate) fn new(loops: usize) -> std::io::Result<Self> {
        let bells = (0..loops)
            .map(|_| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
            .collect::<Result<_, _>>()?;
        let inbox = Inbox {
            merging: Merging::new(loops),
            spans: VecDeque::new(),
            conclusions: Vec::new(),
            error: None,
            left: loops,
        };
        Ok(Self {
            inbox: Mutex::new(inbox),
            news: Condvar::new(),
            stop: AtomicBool::new(false),
            immediate: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            gate: Gate::new(loops),
            bells,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many loops there are.
    pub(crate) fn loops(&self) -> usize {
        self.bells.len()
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn push(&self, number: usize, span: Span) {
        let mut inbox = self.lock();
        inbox.merging.push(number, span);
        inbox.collect();
        self.news.notify_all();
    }

    pub(crate) fn conclude(&self, conclusion: Conclusion) {
        self.lock().conclusions.push(conclusion);
    }

    /// The run cannot begin, or go on, for that reason.
    pub(crate) fn refuse(&self, error: OpenError) {
        self.lock().error.get_or_insert(error);
        self.fail();
    }

    /// The other loops end, too.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.stop(false);
    }

    /// A loop has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// A loop's thread has ended, however.
    pub(crate) fn ended(&self, number: usize) {
        let mut inbox = self.lock();
        inbox.merging.over(number);
        inbox.left -= 1;
        let unfinished = inbox.conclusions.len() + inbox.left < self.loops();
        inbox.collect();
        drop(inbox);
        self.news.notify_all();
        if unfinished {
            self.gate.break_down();
            self.fail();
        }
    }

    /// The next span; None when there is none for that long, or none will come (`is_over`).
    pub fn next(&self, timeout: Duration) -> Option<Span> {
        let mut inbox = self.lock();
        if inbox.spans.is_empty() {
            // a loop's span is no news until the other loops' have come
            let waits = |inbox: &mut Inbox| inbox.spans.is_empty() && inbox.left > 0;
            let woken = self.news.wait_timeout_while(inbox, timeout, waits);
            inbox = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        inbox.spans.pop_front()
    }

    /// Whether the loops' threads have ended and every span was taken.
    pub fn is_over(&self) -> bool {
        let inbox = self.lock();
        inbox.left == 0 && inbox.spans.is_empty()
    }

    /// How the run ended, once its loops have; None when a thread panicked.
    pub fn take_conclusion(&self) -> Option<Result<Conclusion, OpenError>> {
        let mut inbox = self.lock();
        if let Some(error) = inbox.error.take() {
            return Some(Err(error));
        }
        let conclusions = std::mem::take(&mut inbox.conclusions);
        if conclusions.len() < self.loops() {
            return None;
        }
        let mut whole = conclusions.into_iter().reduce(|mut whole, other| {
            whole.merge(other);
            whole
        })?;
        whole.interrupted &= whole.fatal.is_none();
        whole.notes.extend(whole.unprepared.sentences());
        Some(Ok(whole))
    }

    /// Begin no further transaction; `immediate`: cancel the open ones, too.
    pub fn stop(&self, immediate: bool) {
        if immediate {
            self.immediate.store(true, Ordering::SeqCst);
        }
        self.stop.store(true, Ordering::SeqCst);
        self.bells.iter().for_each(ring);
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn immediate(&self) -> bool {
        self.immediate.load(Ordering::Relaxed)
    }

    /// What wakes that loop.
    pub(crate) fn bell(&self, number: usize) -> &OwnedFd {
        &self.bells[number]
    }

    pub(crate) fn hush(&self, number: usize) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.bells[number], &mut count);
    }
}

impl Inbox {
    fn collect(&mut self) {
        while let Some(span) = self.merging.next() {
            self.spans.push_back(span);
        }
    }
}
