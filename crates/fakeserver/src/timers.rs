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
    /// How long before a deadline it rings.
    early: Duration,
}

/// Time since the machine's start.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

impl Timers {
    pub(crate) fn new(early: Duration) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, waiting: BinaryHeap::new(), armed: None, early })
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

    /// Lets the timer ring at the first deadline; false when that is so near that one must not sleep.
    pub(crate) fn arm(&mut self, now: Duration) -> io::Result<bool> {
        let Some(Reverse((deadline, _))) = self.waiting.peek() else {
            return Ok(true);
        };
        let ring = deadline.saturating_sub(self.early);
        if ring <= now {
            return Ok(false);
        }
        if self.armed != Some(ring) {
            let it_value =
                Timespec { tv_sec: ring.as_secs() as i64, tv_nsec: i64::from(ring.subsec_nanos()) };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
            self.armed = Some(ring);
        }
        Ok(true)
    }
}

impl AsFd for Timers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
