//! The scripted server's event loop: one thread, edge-triggered, one receive for each event, answers sent
//! inline. Delays and slow bytes are timers; only an injected stall stops the loop itself.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::link::{Link, Listener};
use crate::plan::Context;
use crate::script::{Fault, Stall};
use crate::server::Shared;
use crate::session::{Conversation, Turn};
use crate::timers::{Timers, now};

const SCRATCH_BYTES: usize = 64 << 10;
const EVENTS: usize = 512;
/// In an event's data and as a timer's slot; connections have theirs from 0.
const LISTENER: u64 = u64::MAX - 16;
const TIMER: u64 = u64::MAX;
const STALLS: usize = usize::MAX;
/// So many are accepted before those that are connected have their turn again.
const ACCEPTS_PER_TURN: usize = 64;
const SLOW_BYTE: Duration = Duration::from_millis(2);

/// What a connection is at.
#[derive(Debug)]
enum State {
    /// Takes input.
    Open,
    /// Its answer is late; until then input waits.
    Late(Option<Fault>),
    /// Its answer goes out byte by byte.
    Dripping(usize),
    /// Takes no notice of input until the client closes.
    Silent,
    /// Closes when everything is sent.
    Ending,
}

struct Connection<C> {
    link: Link,
    session: C,
    state: State,
    /// Input that is not yet taken.
    input: BytesMut,
    /// Output that is not yet due.
    held: BytesMut,
    age: u64,
    /// An event came that was not read up to its end.
    is_unread: bool,
}

/// A connection that is to be closed.
struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Gone
    }
}

pub(crate) struct EventLoop<'a, C: Conversation> {
    context: Context<'a, C::Key>,
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    connections: Vec<Option<Connection<C>>>,
    free: Vec<usize>,
    timers: Timers,
    stalls: Vec<Stall>,
    stalls_have_begun: bool,
    now: Duration,
    /// Why nobody is accepted now.
    is_full: bool,
    scratch: Vec<u8>,
    out: BytesMut,
}

impl<'a, C: Conversation> EventLoop<'a, C> {
    pub(crate) fn new(shared: &'a Shared, listeners: Vec<Listener>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timers = Timers::new(shared.options.spin)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &timers, epoll::EventData::new_u64(TIMER), edge)?;
        let mut this = Self {
            context: Context::new(shared),
            epoll,
            listeners,
            connections: Vec::new(),
            free: Vec::new(),
            timers,
            stalls: [shared.script.stalls(), shared.options.stalls.as_slice()].concat(),
            stalls_have_begun: false,
            now: now(),
            is_full: true,
            scratch: vec![0; SCRATCH_BYTES],
            out: BytesMut::with_capacity(SCRATCH_BYTES),
        };
        this.open_doors()?;
        Ok(this)
    }

    /// Until the process ends.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let sleeps = self.timers.arm(self.now)?;
            events.clear();
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let timeout = if sleeps { None } else { Some(&at_once) };
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.now = now();
            for event in &events {
                let event: &epoll::Event = event;
                match event.data.u64() {
                    TIMER => {}
                    listener @ LISTENER.. => self.accept((listener - LISTENER) as usize)?,
                    slot => self.happens(slot as usize, event.flags),
                }
            }
            if !self.timers.is_empty() {
                self.ring();
            }
            if self.free.len() > 64 && self.is_full {
                self.open_doors()?;
            }
        }
    }

    fn open_doors(&mut self) -> io::Result<()> {
        for (number, listener) in self.listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(LISTENER + number as u64);
            epoll::add(&self.epoll, listener, data, epoll::EventFlags::IN)?;
        }
        self.is_full = false;
        Ok(())
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        for _ in 0..ACCEPTS_PER_TURN {
            let link = match self.listeners[listener].accept() {
                Ok(link) => link,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    let code = Errno::from_io_error(&error);
                    if matches!(code, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) {
                        // Asking again at once would get the same answer.
                        eprintln!("fakeserver: no more connections are accepted for now: {error}");
                        for listener in &self.listeners {
                            epoll::delete(&self.epoll, listener)?;
                        }
                        self.is_full = true;
                        break;
                    }
                    continue;
                }
            };
            let number = self.context.shared.recorder.connection();
            let session = C::new(&self.context, number);
            let slot = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let flags = epoll::EventFlags::IN
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            if let Err(error) = epoll::add(&self.epoll, &link, epoll::EventData::new_u64(slot as u64), flags)
            {
                eprintln!("fakeserver: connection {number}: {error}");
                self.free.push(slot);
                continue;
            }
            self.connections[slot] = Some(Connection {
                link,
                session,
                state: State::Open,
                input: BytesMut::new(),
                held: BytesMut::new(),
                age: number,
                is_unread: false,
            });
            // A server greets before it is asked.
            self.turn(slot, |this, connection| this.step(connection, slot, &[]));
        }
        Ok(())
    }

    /// Lets something happen to a connection, which may be its end.
    fn turn(&mut self, slot: usize, what: impl FnOnce(&mut Self, &mut Connection<C>) -> Result<(), Gone>) {
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else {
            return;
        };
        match what(self, &mut connection) {
            Ok(()) => self.connections[slot] = Some(connection),
            Err(Gone) => self.free.push(slot),
        }
    }

    fn happens(&mut self, slot: usize, flags: epoll::EventFlags) {
        use epoll::EventFlags as E;
        self.turn(slot, |this, connection| {
            if flags.intersects(E::ERR | E::HUP) {
                return Err(Gone);
            }
            if flags.contains(E::OUT) {
                connection.link.resume()?;
                if matches!(connection.state, State::Ending) {
                    return end(connection);
                }
            }
            let has_ended = flags.contains(E::RDHUP);
            if has_ended || flags.contains(E::IN) { this.read(connection, slot, has_ended) } else { Ok(()) }
        });
    }

    /// Takes what came. One receive, unless the buffer came back full or `to_the_end`: the client may have closed.
    fn read(&mut self, connection: &mut Connection<C>, slot: usize, to_the_end: bool) -> Result<(), Gone> {
        let mut scratch = mem::take(&mut self.scratch);
        let mut outcome = Ok(());
        loop {
            match connection.state {
                State::Open | State::Silent | State::Ending => {}
                State::Late(_) | State::Dripping(_) => {
                    connection.is_unread = true;
                    break;
                }
            }
            let count = match connection.link.receive(&mut scratch) {
                Ok(Some(0)) | Err(_) => {
                    outcome = Err(Gone);
                    break;
                }
                Ok(Some(count)) => count,
                Ok(None) => break,
            };
            if matches!(connection.state, State::Open) {
                outcome = self.step(connection, slot, &scratch[..count]);
                if outcome.is_err() {
                    break;
                }
            }
            // A short read leaves nothing behind: what comes later is an event of its own.
            if count < scratch.len() && !to_the_end {
                break;
            }
        }
        self.scratch = scratch;
        outcome
    }

    /// Gives the session what came after what it has not taken yet.
    fn step(&mut self, connection: &mut Connection<C>, slot: usize, came: &[u8]) -> Result<(), Gone> {
        if connection.input.is_empty() {
            let (taken, outcome) = self.converse(connection, slot, came);
            connection.input.extend_from_slice(&came[taken..]);
            return outcome;
        }
        let mut input = mem::take(&mut connection.input);
        input.extend_from_slice(came);
        let (taken, outcome) = self.converse(connection, slot, &input);
        input.advance(taken);
        if !input.is_empty() {
            connection.input = input;
        }
        outcome
    }

    /// Lets the session speak until it needs more input or is late; says how much of the input it took.
    fn converse(
        &mut self,
        connection: &mut Connection<C>,
        slot: usize,
        input: &[u8],
    ) -> (usize, Result<(), Gone>) {
        let mut out = mem::take(&mut self.out);
        let mut taken = 0;
        let outcome = loop {
            out.clear();
            if !connection.held.is_empty() {
                out.extend_from_slice(&mem::take(&mut connection.held));
            }
            let turn = match connection.session.step(&mut self.context, &input[taken..], &mut out) {
                Ok((length, turn)) => {
                    taken += length;
                    turn
                }
                Err(error) => {
                    eprintln!("fakeserver: connection {}: {error}", connection.age);
                    let _ = connection.link.send(&out);
                    break Err(Gone);
                }
            };
            match turn {
                Turn::More => break connection.link.send(&out).map_err(Gone::from),
                Turn::Hold(from) => {
                    connection.held = BytesMut::from(&out[from..]);
                    break connection.link.send(&out[..from]).map_err(Gone::from);
                }
                Turn::Over => {
                    let sent = connection.link.send(&out);
                    connection.state = State::Ending;
                    break sent.map_err(Gone::from).and_then(|()| end(connection));
                }
                Turn::Deliver { delay, fault, from } => {
                    if let Err(error) = connection.link.send(&out[..from]) {
                        break Err(error.into());
                    }
                    connection.held = BytesMut::from(&out[from..]);
                    if !delay.is_zero() {
                        connection.state = State::Late(fault);
                        self.timers.add(self.now + delay, (slot, connection.age));
                        break Ok(());
                    }
                    if let Err(gone) = self.deliver(connection, slot, fault) {
                        break Err(gone);
                    }
                    if !matches!(connection.state, State::Open) {
                        break Ok(());
                    }
                }
            }
        };
        if self.context.stalls_begin && !self.stalls_have_begun {
            self.stalls_have_begun = true;
            for (number, stall) in self.stalls.iter().enumerate() {
                self.timers.add(self.now + stall.at, (STALLS, number as u64));
            }
        }
        self.out = out;
        (taken, outcome)
    }

    /// Sends what was held, in the way that a fault has it.
    fn deliver(
        &mut self,
        connection: &mut Connection<C>,
        slot: usize,
        fault: Option<Fault>,
    ) -> Result<(), Gone> {
        connection.state = State::Open;
        if fault == Some(Fault::SlowBytes) {
            connection.state = State::Dripping(0);
            return self.drip(connection, slot, 0);
        }
        let mut held = mem::take(&mut connection.held);
        match fault {
            None => return Ok(connection.link.send(&held)?),
            Some(Fault::Reset) => {
                connection.link.reset();
                return Err(Gone);
            }
            Some(Fault::Silence) => {
                connection.state = State::Silent;
                return Ok(());
            }
            Some(Fault::HalfPacket) => held.truncate(held.len() / 2),
            Some(Fault::Garbage) => {
                held.clear();
                held.extend((0..64u8).map(|byte| byte.wrapping_mul(197).wrapping_add(91)));
            }
            Some(Fault::WrongLength | Fault::SlowBytes) => C::lie(&mut held),
        }
        connection.link.send(&held)?;
        connection.state = State::Ending;
        end(connection)
    }

    fn drip(&mut self, connection: &mut Connection<C>, slot: usize, at: usize) -> Result<(), Gone> {
        match connection.held.get(at) {
            Some(byte) => {
                connection.link.send(&[*byte])?;
                connection.state = State::Dripping(at + 1);
                self.timers.add(self.now + SLOW_BYTE, (slot, connection.age));
            }
            None => {
                connection.held = BytesMut::new();
                connection.state = State::Open;
            }
        }
        Ok(())
    }

    /// Everything whose time has come.
    fn ring(&mut self) {
        loop {
            // Also what came due while events were taken: it needs no bell.
            self.now = now();
            let Some(who) = self.timers.expired(self.now) else { return };
            self.rings(who);
        }
    }

    fn rings(&mut self, (slot, age): (usize, u64)) {
        if slot == STALLS {
            thread::sleep(self.stalls[age as usize].lasts);
            self.now = now();
            return;
        }
        if self.connections.get(slot).and_then(Option::as_ref).is_none_or(|one| one.age != age) {
            return;
        }
        self.turn(slot, |this, connection| {
            match connection.state {
                State::Late(fault) => this.deliver(connection, slot, fault)?,
                State::Dripping(at) => this.drip(connection, slot, at)?,
                _ => return Ok(()),
            }
            if matches!(connection.state, State::Open) {
                this.step(connection, slot, &[])?;
            }
            if mem::take(&mut connection.is_unread) { this.read(connection, slot, true) } else { Ok(()) }
        });
    }
}

/// Closes once everything is sent.
fn end<C>(connection: &mut Connection<C>) -> Result<(), Gone> {
    if connection.link.is_sent() {
        let _ = connection.link.finish();
        return Err(Gone);
    }
    Ok(())
}
