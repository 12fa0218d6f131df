//! An event loop's connections: opened before the run, lost and reopened during it.

use std::cmp::Reverse;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::event_loop::{EVENTS, EventLoop, Phase};
use super::terminal::{After, Step};
use crate::link::{Link, OpenError};

const FIRST_BACKOFF_NS: u64 = 10_000_000;
const LONGEST_BACKOFF_NS: u64 = 1_000_000_000;

impl EventLoop<'_> {
    pub(super) fn open_all(&mut self) -> Result<(), OpenError> {
        for index in 0..self.terminals.len() {
            self.opener.open(index, &self.job.endpoints[self.terminals[index].endpoint]);
        }
        let mut events = Vec::with_capacity(EVENTS);
        while self.connected < self.terminals.len() {
            if self.shared.stop_requested() {
                return Err(OpenError::sentence("stopped while connecting".into()));
            }
            events.clear();
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            self.shared.hush(self.number);
            self.opener.hush();
            while let Some((index, result)) = self.opener.result() {
                self.attach(index, result?)?;
            }
        }
        Ok(())
    }

    fn attach(&mut self, index: usize, link: Link) -> Result<(), OpenError> {
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.epoll, link.socket(), epoll::EventData::new_u64(index as u64), flags)
            .map_err(|error| OpenError::sentence(format!("a connection cannot be watched: {error}")))?;
        self.terminals[index].link = Some(link);
        self.connected += 1;
        Ok(())
    }

    /// Connections that were opened, or could not be.
    pub(super) fn bell(&mut self) {
        self.opener.hush();
        while let Some((index, result)) = self.opener.result() {
            let Step::Opening(after) = self.terminals[index].step else { continue };
            match result.and_then(|link| self.attach(index, link)) {
                Ok(()) => self.reopened(index, after),
                Err(_) if self.terminals[index].cancelled || self.phase == Phase::Over => {
                    self.give_up(index);
                }
                Err(_) => {
                    let terminal = &mut self.terminals[index];
                    terminal.backoff_ns =
                        (terminal.backoff_ns * 2).clamp(FIRST_BACKOFF_NS, LONGEST_BACKOFF_NS);
                    let due = terminal.backoff_ns;
                    let now = self.now();
                    self.timers.push(Reverse((now + due, index)));
                }
            }
        }
    }

    /// Drops a terminal's connection.
    pub(super) fn detach(&mut self, index: usize) {
        if let Some(link) = self.terminals[index].link.take() {
            let _ = epoll::delete(&self.epoll, link.socket());
            self.connected -= 1;
        }
    }

    /// Asks for a new connection; `after` follows when it is there.
    pub(super) fn reopen(&mut self, index: usize, after: After, code: &str) {
        self.detach(index);
        let now = self.now();
        let terminal = &mut self.terminals[index];
        terminal.lost_ns = now;
        code.clone_into(&mut terminal.lost_code);
        terminal.backoff_ns = 0;
        terminal.step = Step::Opening(after);
        self.opener.open(index, &self.job.endpoints[terminal.endpoint]);
    }
}
