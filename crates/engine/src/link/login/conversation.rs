//! The blocking transport of a login.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::Trouble;
use crate::link::socket::{Flow, Socket};

/// A stream before it is handed over.
pub(crate) struct Conversation {
    socket: Option<Socket>,
    deadline: Instant,
    pub input: BytesMut,
    /// Hash of the server's certificate, for channel binding.
    pub certificate: Option<Vec<u8>>,
    local: bool,
}

fn within(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Conversation {
    pub fn tcp(stream: TcpStream, deadline: Instant) -> io::Result<Self> {
        stream.set_read_timeout(Some(within(deadline)?))?;
        stream.set_write_timeout(Some(within(deadline)?))?;
        Ok(Self::new(Socket::tcp(stream)?, deadline, false))
    }

    pub fn unix(stream: UnixStream, deadline: Instant) -> io::Result<Self> {
        stream.set_read_timeout(Some(within(deadline)?))?;
        stream.set_write_timeout(Some(within(deadline)?))?;
        Ok(Self::new(Socket::unix(stream), deadline, true))
    }

    fn new(socket: Socket, deadline: Instant, local: bool) -> Self {
        Self { socket: Some(socket), deadline, input: BytesMut::new(), certificate: None, local }
    }

    /// Whether what is sent stays on this machine or is encrypted: a password may pass in clear text.
    pub fn is_private(&self) -> bool {
        self.local || self.is_tls()
    }

    pub fn is_unix(&self) -> bool {
        self.local
    }

    pub fn is_tls(&self) -> bool {
        self.socket.as_ref().is_some_and(Socket::is_tls)
    }

    /// Goes on over TLS.
    pub fn start_tls(&mut self, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<(), Trouble> {
        let socket = self.take()?;
        let mut tls = ClientConnection::new(config, name)
            .map_err(|error| Trouble::Other(format!("TLS cannot begin: {error}")))?;
        {
            let mut stream = socket.blocking();
            while tls.is_handshaking() {
                tls.complete_io(&mut stream).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => Trouble::Other(format!("TLS failed: {error}")),
                    _ => Trouble::Io(error),
                })?;
            }
        }
        self.certificate = tls
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|certificate| super::tls::end_point_hash(certificate));
        self.socket = Some(socket.with_tls(tls));
        Ok(())
    }

    fn take(&mut self) -> Result<Socket, Trouble> {
        self.socket.take().ok_or_else(|| Trouble::Other("the connection is gone".into()))
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let mut rest = bytes;
        let socket = self.socket.as_mut().ok_or_else(|| Trouble::Other("the connection is gone".into()))?;
        while !rest.is_empty() {
            let n = socket.write(rest)?;
            if n == 0 {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            rest = &rest[n..];
        }
        if !socket.flush_tls()? {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        Ok(())
    }

    /// Waits for more bytes in `input`.
    pub fn fill(&mut self) -> Result<(), Trouble> {
        within(self.deadline)?;
        let mut buffer = [0; 8192];
        let socket = self.socket.as_mut().ok_or_else(|| Trouble::Other("the connection is gone".into()))?;
        match socket.read(&mut buffer)? {
            Flow::Some(n) | Flow::Drained(n) if n > 0 => {
                self.input.extend_from_slice(&buffer[..n]);
                Ok(())
            }
            Flow::Closed(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }

    /// One byte, waited for: PostgreSQL's answer to SSLRequest.
    pub fn byte(&mut self) -> Result<u8, Trouble> {
        while self.input.is_empty() {
            self.fill()?;
        }
        Ok(self.input.split_to(1)[0])
    }

    /// The transport, still blocking, and until when the set-up may take.
    pub fn into_socket(mut self) -> Result<(Instant, Socket), Trouble> {
        if !self.input.is_empty() {
            return Err(Trouble::Other("the server sent more than the login".into()));
        }
        Ok((self.deadline, self.take()?))
    }

    pub fn flush(&mut self) -> Result<(), Trouble> {
        if let Some(socket) = self.socket.as_ref() {
            socket.blocking().flush()?;
        }
        Ok(())
    }
}
