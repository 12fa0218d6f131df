//! What both proxies have in common: how a connection is received, how it breaks, and what a rule does to a
//! statement on its way.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::delay::Delay;
use crate::script::{ConnectFault, ErrorSpec, Fault, Moment, Script};

/// The two sockets of a proxied connection.
pub(crate) struct Passage {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
    broken: AtomicBool,
}

impl Passage {
    pub(crate) fn new(client: TcpStream, server: TcpStream) -> io::Result<Self> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Self { client, server, broken: AtomicBool::new(false) })
    }

    /// The client gets a reset; the server sees its client go.
    pub(crate) fn reset(&self) -> io::Result<()> {
        self.broken.store(true, Ordering::SeqCst);
        reset_on_close(&self.client)?;
        // Both directions wake up and end; closing the client's socket is what resets it.
        let _ = self.client.shutdown(Shutdown::Read);
        let _ = self.server.shutdown(Shutdown::Both);
        Ok(())
    }

    /// The server closed: the client sees an orderly end, unless it is to be reset.
    pub(crate) fn server_closed(&self) {
        if !self.broken.load(Ordering::SeqCst) {
            let _ = self.client.shutdown(Shutdown::Both);
        }
    }

    /// The client closed.
    pub(crate) fn client_closed(&self) {
        let _ = self.server.shutdown(Shutdown::Write);
    }
}

fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// Reads until the client gives up.
pub(crate) fn discard(mut client: &TcpStream) -> io::Result<()> {
    let mut chunk = [0; 4096];
    while client.read(&mut chunk)? > 0 {}
    Ok(())
}

/// Whether a new connection goes on to the server.
pub(crate) fn receive(client: &TcpStream, script: &Script, connection: u64) -> io::Result<bool> {
    let reception = script.reception(connection);
    thread::sleep(reception.delay);
    match reception.fault {
        Some(ConnectFault::Refuse | ConnectFault::Reset) => reset_on_close(client)?,
        Some(ConnectFault::Silence) => discard(client)?,
        Some(ConnectFault::Error) | None => return Ok(true),
    }
    Ok(false)
}

/// What becomes of a statement on its way to the server.
pub(crate) enum Verdict {
    Pass,
    /// The server executes it; its answer is a reset.
    ResetAtAnswer,
    /// The server does not see it; its answer is this error.
    Fail(ErrorSpec),
    Reset,
    Silence,
}

/// Applies the rule whose turn it is, its delay included.
pub(crate) fn verdict(script: &Script, sql: &str) -> Verdict {
    let Some(rule) = script.rule(sql, Moment::Execute) else {
        return Verdict::Pass;
    };
    if let Some(delay) = rule.delay() {
        thread::sleep(delay.draw(&mut Delay::random(0)));
    }
    match (rule.error(), rule.fault(), rule.moment()) {
        (Some(error), ..) => Verdict::Fail(error.clone()),
        (None, Some(Fault::Reset), Moment::Answer) => Verdict::ResetAtAnswer,
        (None, Some(Fault::Reset), _) => Verdict::Reset,
        (None, Some(Fault::Silence), _) => Verdict::Silence,
        _ => Verdict::Pass,
    }
}
