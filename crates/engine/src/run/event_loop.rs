//! The event loop: owns its connections and terminals, no locks on the way of a statement.
//!
//! Edge-triggered: one read for each event (another only when the buffer came back full), the next statement
//! sent inline; a short write waits for the writability that the registration announces anyway.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;

use super::alarm::Alarm;
use super::figures::Figures;
use super::job::Job;
use super::notes::Unprepared;
use super::opener::Opener;
use super::pacing::{Next, Pacing};
use super::shared::Shared;
use super::terminal::{Outage, Step, Terminal};
use crate::link::{Logins, OpenError};
use crate::program::{Program, Texts, Vm};

/// What all connections read into: a point select's answer takes 150 bytes, a range's some ten thousand.
const SCRATCH_BYTES: usize = 256 << 10;
pub(super) const EVENTS: usize = 512;
/// Bell of the opener in an event's data; terminals have their index.
const BELL: u64 = u64::MAX;
/// Bell of stop requests.
const STOP: u64 = u64::MAX - 1;
const ALARM: u64 = u64::MAX - 2;
/// How long a cancelled statement may take to come back.
const CANCEL_NS: u64 = 5_000_000_000;
/// Reads of one connection in a turn, so that a huge result does not starve the others.
pub(super) const READS_PER_TURN: usize = 16;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Running,
    /// Open transactions may finish, until then (ns).
    Draining(u64),
    /// They were cancelled; until then they may come back.
    Cancelling(u64),
    Over,
}

pub(crate) struct EventLoop<'a> {
    pub(super) job: &'a Job,
    pub(super) program: &'a Program,
    pub(super) texts: Texts,
    pub(super) terminals: Vec<Terminal>,
    pub(super) pacing: Pacing,
    pub(super) phase: Phase,
    pub(super) opener: Opener,
    pub(super) epoll: OwnedFd,
    pub(super) alarm: Alarm,
    pub(super) clock: Instant,
    pub(super) scratch: Vec<u8>,
    /// Terminals that are free to begin, or whose connection has more to read.
    pub(super) ready: VecDeque<usize>,
    unread: Vec<usize>,
    /// Terminals that wait for an arrival, the one that waits longest first.
    waiting: VecDeque<usize>,
    pub(super) timers: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) begin_ns: u64,
    pub(super) measure_ns: u64,
    pub(super) end_ns: u64,
    /// No transaction begins any more.
    pub(super) ending: bool,
    pub(super) interrupted: bool,
    pub(super) measuring: bool,
    pub(super) last_ns: u64,
    pub(super) figures: Figures,
    pub(super) warm: Figures,
    pub(super) outages: Vec<Outage>,
    pub(super) fatal: Option<String>,
    pub(super) alive: usize,
    pub(super) connected: usize,
    pub(super) idle_ns: u64,
    pub(super) shared: &'a Shared,
    /// Among the loops, from 0.
    pub(super) number: usize,
    pub(super) acks: Option<std::fs::File>,
    pub(super) unprepared: Unprepared,
}

impl<'a> EventLoop<'a> {
    /// Opens every connection.
    ///
    /// # Errors
    /// The first connection that cannot be opened, in one sentence.
    pub fn new(
        job: &'a Job,
        logins: &Arc<Logins>,
        program: &'a Program,
        shared: &'a Shared,
        number: usize,
    ) -> Result<Self, OpenError> {
        let trouble =
            |error: std::io::Error| OpenError::sentence(format!("the load engine cannot start: {error}"));
        let loops = shared.loops();
        let mine = (0..job.connections as usize).skip(number).step_by(loops);
        let connections = mine.len();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| trouble(error.into()))?;
        let opener = Opener::new(logins, connections).map_err(trouble)?;
        let input = epoll::EventFlags::IN;
        for (fd, data) in [(opener.bell(), BELL), (shared.bell(number), STOP)] {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(data), input)
                .map_err(|error| trouble(error.into()))?;
        }
        let alarm = Alarm::new().map_err(trouble)?;
        epoll::add(&epoll, &alarm, epoll::EventData::new_u64(ALARM), input | epoll::EventFlags::ET)
            .map_err(|error| trouble(error.into()))?;
        let pacing = Pacing::new(job, number, loops).map_err(|error| OpenError::sentence(error.0))?;
        let acks = match job.ack_path.as_str() {
            "" => None,
            path => Some(std::fs::File::options().append(true).create(true).open(path).map_err(|error| {
                OpenError::sentence(format!("cannot write the acknowledgement file {path}: {error}"))
            })?),
        };
        let terminals = mine
            .map(|index| {
                let vm = Vm::new(program, job.seed, index as u64 + 1);
                Terminal::new(index as u64 + 1, index % job.endpoints.len().max(1), vm)
            })
            .collect();
        let mut this = Self {
            job,
            program,
            texts: program.texts(),
            terminals,
            pacing,
            phase: Phase::Starting,
            opener,
            epoll,
            alarm,
            clock: shared.gate().clock(),
            scratch: vec![0; SCRATCH_BYTES],
            ready: VecDeque::with_capacity(connections),
            unread: Vec::new(),
            waiting: VecDeque::new(),
            timers: BinaryHeap::new(),
            begin_ns: 0,
            measure_ns: 0,
            end_ns: u64::MAX,
            ending: false,
            interrupted: false,
            measuring: false,
            last_ns: 0,
            figures: Figures::new(program.transactions.len()),
            warm: Figures::new(program.transactions.len()),
            outages: Vec::new(),
            fatal: None,
            alive: connections,
            connected: 0,
            idle_ns: 0,
            shared,
            number,
            acks,
            unprepared: Unprepared::default(),
        };
        this.open_all()?;
        Ok(this)
    }

    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// Runs the whole job; spans of time go to the shared queue as they end.
    pub fn run(mut self) {
        self.start_all();
        let mut events = Vec::with_capacity(EVENTS);
        let hangup = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        while self.phase != Phase::Over {
            let now = self.now();
            self.pass_time(now);
            self.turn();
            if self.phase == Phase::Over {
                break;
            }
            let timeout = self.timeout();
            let before = self.now();
            events.clear();
            let result = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref());
            self.idle_ns += self.now() - before;
            if result.is_err() {
                continue; // interrupted by a signal
            }
            for event in events.drain(..) {
                let flags = event.flags;
                match event.data.u64() {
                    BELL => self.bell(),
                    STOP => self.shared.hush(self.number),
                    ALARM => {}
                    index => self.event(index as usize, flags.intersects(hangup)),
                }
            }
        }
        self.finish();
    }

    /// The workload's `start` on every terminal; the clock starts when the last one is through.
    fn start_all(&mut self) {
        let now_us = self.now_us(0);
        for index in 0..self.terminals.len() {
            let terminal = &mut self.terminals[index];
            if terminal.vm.begin_start(self.program, now_us) {
                terminal.starting = true;
                terminal.running = true;
                self.resume(index, crate::program::Event::Start);
            }
        }
    }

    fn start_clock(&mut self, now: u64) {
        self.phase = Phase::Running;
        self.begin_ns = now;
        self.last_ns = now;
        self.measure_ns = now + seconds(self.job.warmup_s);
        if let Some(duration) = self.job.duration_s {
            self.end_ns = self.measure_ns + seconds(duration);
        }
        self.idle_ns = 0;
        self.pacing.begin(now);
        self.ready.extend(0..self.terminals.len());
    }

    /// Everything that happens because time passed.
    fn pass_time(&mut self, now: u64) {
        if self.phase == Phase::Starting {
            self.fire_timers(now);
            let stopped = self.fatal.is_some() || self.shared.stop_requested();
            if !stopped && self.terminals.iter().any(|terminal| terminal.starting) {
                return;
            }
            let Some(begin_ns) = self.shared.gate().pass() else {
                self.phase = Phase::Over;
                return;
            };
            self.start_clock(begin_ns);
        }
        self.emit_due(now);
        self.fire_timers(now);
        let due = self.pacing.arrive(now, self.end_ns, self.measure_ns).min(self.waiting.len());
        self.ready.extend(self.waiting.drain(..due));
        if self.job.transactions.is_some() && self.pacing.exhausted(self.end_ns) {
            self.ready.append(&mut self.waiting);
        }
        match self.phase {
            Phase::Running => {
                let stopped = self.shared.stop_requested() || self.fatal.is_some();
                if stopped || now >= self.end_ns || self.alive == 0 {
                    self.begin_draining(now, stopped);
                }
            }
            Phase::Draining(until) => {
                if now >= until || self.shared.immediate() {
                    self.cancel_all(now);
                } else if self.idle() && (self.ending || self.pacing.exhausted(self.end_ns)) {
                    self.phase = Phase::Over;
                }
            }
            Phase::Cancelling(until) => {
                if now >= until || self.idle() {
                    self.phase = Phase::Over;
                }
            }
            Phase::Starting | Phase::Over => {}
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(&Reverse((due, index))) = self.timers.peek() {
            if due > now {
                break;
            }
            self.timers.pop();
            self.timer(index);
        }
    }

    /// Whether no transaction runs and none is about to begin.
    fn idle(&self) -> bool {
        self.ready.is_empty() && self.terminals.iter().all(|terminal| !terminal.running)
    }

    fn begin_draining(&mut self, now: u64, stopped: bool) {
        self.end_ns = self.end_ns.min(now.max(self.measure_ns.min(self.end_ns)));
        if stopped {
            self.end_ns = self.end_ns.min(now);
            self.interrupted = self.fatal.is_none() && !self.shared.has_failed();
            if self.fatal.is_some() {
                self.shared.fail();
            }
        }
        // an open loop goes on with its backlog for as long as open transactions may
        self.ending = stopped || self.job.rate.is_none();
        self.phase = Phase::Draining(now + seconds(self.job.drain_s));
    }

    fn cancel_all(&mut self, now: u64) {
        self.ending = true;
        self.phase = Phase::Cancelling(now + CANCEL_NS);
        for index in 0..self.terminals.len() {
            let terminal = &mut self.terminals[index];
            terminal.cancelled = true;
            if terminal.running && terminal.awaits_answer() {
                if let Some(link) = &terminal.link {
                    self.opener.cancel(&self.job.endpoints[terminal.endpoint], link.session());
                }
            } else if terminal.running {
                self.give_up(index);
            }
        }
    }

    /// Begins transactions on free terminals, reads on where the kernel had more.
    fn turn(&mut self) {
        for index in mem::take(&mut self.unread) {
            self.event(index, true);
        }
        for _ in 0..self.ready.len() {
            let Some(index) = self.ready.pop_front() else { break };
            self.next(index);
        }
    }

    /// A free terminal looks for its next transaction.
    fn next(&mut self, index: usize) {
        if self.terminals[index].step != Step::Free {
            return;
        }
        let now = self.now();
        let terminal = &self.terminals[index];
        let next = match self.ending || self.fatal.is_some() {
            true => Next::End,
            false => self.pacing.next(terminal.number, terminal.last, now, self.end_ns),
        };
        match next {
            Next::Begin { seat, number, intended_ns } => {
                let keying_s = if self.job.rate.is_none() { self.keying_s(index, seat, number) } else { 0.0 };
                if keying_s > 0.0 {
                    self.terminals[index].keyed = true;
                    self.rest(index, now, keying_s);
                } else {
                    self.terminals[index].keyed = false;
                    self.begin(index, seat, number, intended_ns, now);
                }
            }
            Next::Wait => self.waiting.push_back(index),
            Next::End => {
                self.terminals[index].step = Step::Ended;
                self.alive -= 1;
            }
        }
    }

    /// Keying time that has yet to pass before a closed loop's transaction; an open loop's schedule has none.
    fn keying_s(&self, index: usize, seat: u64, number: u64) -> f64 {
        let nowhere = self.program.transactions.iter().all(|kind| kind.keying_s == 0.0);
        if nowhere || self.terminals[index].keyed {
            return 0.0;
        }
        self.program.transactions[self.pick(seat, number)].keying_s
    }

    pub(super) fn rest(&mut self, index: usize, now: u64, rest_s: f64) {
        self.terminals[index].step = Step::Resting;
        self.timers.push(Reverse((now + seconds(rest_s), index)));
    }

    fn timer(&mut self, index: usize) {
        match self.terminals[index].step {
            Step::Resting => self.release(index),
            Step::Opening(_) => {
                self.opener.open(index, &self.job.endpoints[self.terminals[index].endpoint]);
            }
            _ => {}
        }
    }

    /// How long to wait for events; None: until one comes, the alarm being one.
    fn timeout(&mut self) -> Option<Timespec> {
        if !self.ready.is_empty() || !self.unread.is_empty() {
            return Some(AT_ONCE);
        }
        if self.job.spin {
            return Some(AT_ONCE);
        }
        let mut due = self.timers.peek().map_or(u64::MAX, |Reverse((timer, _))| *timer);
        match self.phase {
            Phase::Starting if due == u64::MAX => return None,
            Phase::Starting | Phase::Over => {}
            Phase::Running => due = due.min(self.end_ns),
            Phase::Draining(until) | Phase::Cancelling(until) => due = due.min(until),
        }
        if self.phase != Phase::Starting {
            due = due.min(self.sample_due());
            if let Some(arrival) = self.pacing.next_arrival(self.end_ns) {
                due = due.min(arrival);
            }
        }
        let now = self.now();
        (!self.alarm.set(due, now)).then_some(AT_ONCE)
    }

    /// A socket has something to say. With `hangup` the peer's end may follow what it said, in the same event: a
    /// short read is not all then, and no other event would come.
    fn event(&mut self, index: usize, hangup: bool) {
        let mut once_more = hangup;
        for _ in 0..READS_PER_TURN {
            let terminal = &mut self.terminals[index];
            let Some(link) = terminal.link.as_mut() else { return };
            if let Err(error) = link.flush() {
                self.unsendable(index, &error.to_string());
                return;
            }
            let rows = if terminal.step == Step::Statement && terminal.columns != 0 {
                Some(terminal.vm.rows())
            } else {
                None
            };
            let columns = if rows.is_some() { terminal.columns } else { 0 };
            let (answer, more) = link.receive(&mut self.scratch, columns, rows);
            let connected = self.answer(index, answer);
            // The next transaction goes out before another answer is read: the server is not kept waiting for all
            // of them. One that needs no server ends at once and waits for its turn.
            if self.ready.back() == Some(&index) {
                self.ready.pop_back();
                self.next(index);
            }
            if !connected {
                return;
            }
            if !more && !std::mem::take(&mut once_more) {
                return;
            }
        }
        self.unread.push(index);
    }

    pub(super) fn now_us(&self, number: u64) -> i64 {
        if self.job.replay {
            REPLAY_EPOCH_US + number as i64 * 1_000
        } else {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_micros() as i64)
        }
    }
}

/// 2020-01-01, UTC.
const REPLAY_EPOCH_US: i64 = 1_577_836_800_000_000;

pub(super) fn seconds(value: f64) -> u64 {
    (value.max(0.0) * 1e9) as u64
}
