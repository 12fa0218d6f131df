//! Opens connections on helper threads: logging in may block, an event loop may not.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::link::{Endpoint, Link, Logins, OpenError, Session};

/// Logins that are under way at once.
const IN_FLIGHT: usize = 64;
/// Stack of a helper thread; TLS and RSA need less.
const STACK_BYTES: usize = 512 << 10;

enum Request {
    Open { terminal: usize, endpoint: Endpoint },
    Cancel { endpoint: Endpoint, session: Session },
}

/// The helper threads and their results. They end when this is dropped.
pub(crate) struct Opener {
    requests: Sender<Request>,
    results: Receiver<(usize, Result<Link, OpenError>)>,
    bell: Arc<OwnedFd>,
}

impl Opener {
    /// At most `connections` threads, never more than the bound.
    pub fn new(logins: &Arc<Logins>, connections: usize) -> std::io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (requests, inbox) = channel::<Request>();
        let (outbox, results) = channel();
        let inbox = Arc::new(Mutex::new(inbox));
        for number in 0..connections.clamp(1, IN_FLIGHT) {
            let (inbox, outbox, logins, bell) =
                (Arc::clone(&inbox), outbox.clone(), Arc::clone(logins), Arc::clone(&bell));
            let builder = thread::Builder::new().name(format!("login-{number}")).stack_size(STACK_BYTES);
            builder.spawn(move || {
                loop {
                    let request = match inbox.lock() {
                        Ok(inbox) => inbox.recv(),
                        Err(_) => return,
                    };
                    match request {
                        Ok(Request::Open { terminal, endpoint }) => {
                            let result = logins.open(&endpoint);
                            if outbox.send((terminal, result)).is_err() {
                                return;
                            }
                            ring(&bell);
                        }
                        Ok(Request::Cancel { endpoint, session }) => {
                            // a statement that has ended meanwhile, or a server that is gone: the loop sees it
                            let _ = logins.cancel(&endpoint, &session);
                        }
                        Err(_) => return,
                    }
                }
            })?;
        }
        Ok(Self { requests, results, bell })
    }

    /// Readable when results wait.
    pub fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    /// Opens a connection for that terminal.
    pub fn open(&self, terminal: usize, endpoint: &Endpoint) {
        let _ = self.requests.send(Request::Open { terminal, endpoint: endpoint.clone() });
    }

    /// Cancels the statement that runs in that session.
    pub fn cancel(&self, endpoint: &Endpoint, session: &Session) {
        let _ = self.requests.send(Request::Cancel { endpoint: endpoint.clone(), session: session.clone() });
    }

    /// The next result, if one is there.
    pub fn result(&self) -> Option<(usize, Result<Link, OpenError>)> {
        self.results.try_recv().ok()
    }

    /// Silences the bell.
    pub fn hush(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
    }
}

pub(crate) fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}
