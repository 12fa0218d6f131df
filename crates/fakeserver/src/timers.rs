//! Deadlines of connections, exact to the kernel's timer: epoll's own time-outs are in whole milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Who waits for a deadline; a connection's slot is used again, so its age must agree as well.
pub(crate) type Waiting = (usize, u64);

#[derive(Debug)]
pub(crate) struct Timers {
    timer: OwnedFd,
    waiting: BinaryHeap<Reverse<(Duration, Waiting)>>,
    armed: Option<Duration>,
}

/// Time since the machine's start.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

impl Timers {
    pub(crate) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, waiting: BinaryHeap::new(), armed: None })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn add(&mut self, deadline: Duration, who: Waiting) {
        self.waiting.push(Reverse((deadline, who)));
    }

    /// The next one whose time has come.
    pub(crate) fn expired(&mut self, now: Duration) -> Option<Waiting> {
        let Reverse((deadline, _)) = self.waiting.peek()?;
        if *deadline > now {
            return None;
        }
        self.waiting.pop().map(|Reverse((_, who))| who)
    }

    /// Lets the timer ring at the first deadline.
    pub(crate) fn arm(&mut self) -> io::Result<()> {
        let first = self.waiting.peek().map(|Reverse((deadline, _))| *deadline);
        if first == self.armed || first.is_none() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = first.map_or(zero, |deadline| Timespec {
            tv_sec: deadline.as_secs() as i64,
            tv_nsec: i64::from(deadline.subsec_nanos()),
        });
        timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec { it_interval: zero, it_value: value },
        )?;
        self.armed = first;
        Ok(())
    }
}

impl AsFd for Timers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
