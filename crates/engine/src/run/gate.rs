//! Where loops wait for each other: measuring begins when all connections of all of them are ready.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

#[derive(Debug, Default)]
struct State {
    waiting: usize,
    begin_ns: Option<u64>,
    broken: bool,
}

/// The run's clock and its begin.
#[derive(Debug)]
pub(crate) struct Gate {
    clock: Instant,
    loops: usize,
    state: Mutex<State>,
    opened: Condvar,
}

impl Gate {
    pub fn new(loops: usize) -> Self {
        Self { clock: Instant::now(), loops, state: Mutex::default(), opened: Condvar::new() }
    }

    /// The clock that all loops share.
    pub fn clock(&self) -> Instant {
        self.clock
    }

    /// Waits for all loops; gives the begin (ns of the clock), the same to each. None: one of them has failed.
    pub fn pass(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == self.loops {
            state.begin_ns = Some(self.clock.elapsed().as_nanos() as u64);
            self.opened.notify_all();
        }
        while state.begin_ns.is_none() && !state.broken {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.begin_ns
    }

    /// A loop has ended: who waits for it does not any more.
    pub fn break_down(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).broken = true;
        self.opened.notify_all();
    }
}
