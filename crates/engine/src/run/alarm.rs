//! The loop's alarm: a timer descriptor among the sockets.
//!
//! epoll's own time-out counts milliseconds, and its successor is missing from kernels before 5.11; a timer
//! descriptor is as exact as the clock on all of them, and is only set when another time is next.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// To be watched edge-triggered: it is never read.
pub(crate) struct Alarm {
    timer: OwnedFd,
    due_ns: u64,
}

impl Alarm {
    pub fn new() -> std::io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)?, due_ns: 0 })
    }

    /// Goes off at `due_ns` of the loop's clock, which shows `now_ns`. False: that time has come.
    #[inline]
    pub fn set(&mut self, due_ns: u64, now_ns: u64) -> bool {
        if due_ns <= now_ns {
            return false;
        }
        if due_ns != self.due_ns {
            let left = due_ns - now_ns;
            let value =
                Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let setting = Itimerspec { it_interval: never, it_value: value };
            if timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting).is_err() {
                return false;
            }
            self.due_ns = due_ns;
        }
        true
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
