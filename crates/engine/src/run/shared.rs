//! What the loop's thread and the thread that reads its samples share.
//!
//! The loop pushes a span at every interval and never waits; a reader that is slow finds several.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use super::figures::Figures;
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
    /// Share of it that the loop worked, in [0, 1].
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
    /// Times without a connection.
    pub outages: Vec<Outage>,
    /// What was done otherwise than asked, a sentence each.
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Inbox {
    spans: VecDeque<Span>,
    conclusion: Option<Result<Conclusion, OpenError>>,
    ended: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Shared {
    inbox: Mutex<Inbox>,
    news: Condvar,
    stop: AtomicBool,
    immediate: AtomicBool,
    bell: OwnedFd,
}

impl Shared {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            inbox: Mutex::default(),
            news: Condvar::new(),
            stop: AtomicBool::new(false),
            immediate: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, span: Span) {
        self.lock().spans.push_back(span);
        self.news.notify_all();
    }

    pub(crate) fn conclude(&self, conclusion: Conclusion) {
        self.lock().conclusion = Some(Ok(conclusion));
        self.news.notify_all();
    }

    pub(crate) fn refuse(&self, error: OpenError) {
        self.lock().conclusion = Some(Err(error));
        self.news.notify_all();
    }

    /// The loop's thread has ended, however.
    pub(crate) fn ended(&self) {
        self.lock().ended = true;
        self.news.notify_all();
    }

    /// The next span; None when there is none for that long, or none will come (`is_over`).
    pub fn next(&self, timeout: Duration) -> Option<Span> {
        let mut inbox = self.lock();
        if inbox.spans.is_empty() && !inbox.ended {
            inbox = self.news.wait_timeout(inbox, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
        inbox.spans.pop_front()
    }

    /// Whether the loop's thread has ended and every span was taken.
    pub fn is_over(&self) -> bool {
        let inbox = self.lock();
        inbox.ended && inbox.spans.is_empty()
    }

    /// How the run ended; None while it runs, or when its thread panicked.
    pub fn take_conclusion(&self) -> Option<Result<Conclusion, OpenError>> {
        self.lock().conclusion.take()
    }

    /// Begin no further transaction; `immediate`: cancel the open ones, too.
    pub fn stop(&self, immediate: bool) {
        if immediate {
            self.immediate.store(true, Ordering::SeqCst);
        }
        self.stop.store(true, Ordering::SeqCst);
        ring(&self.bell);
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn immediate(&self) -> bool {
        self.immediate.load(Ordering::Relaxed)
    }

    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    pub(crate) fn hush(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
    }
}
