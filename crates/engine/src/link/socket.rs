//! A non-blocking stream, TCP or unix, with or without TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt;

/// What reading or writing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// So many bytes; more may be there.
    Some(usize),
    /// So many bytes (perhaps 0), and the kernel has none left or takes no more.
    Drained(usize),
    /// The peer closed, after so many bytes.
    Closed(usize),
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection's transport.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    tls: Option<Box<rustls::ClientConnection>>,
}

impl Socket {
    /// Over TCP; TCP_NODELAY is set, and a peer that is gone without a word is noticed.
    ///
    /// # Errors
    /// The socket option cannot be set.
    pub fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        watch_peer(&stream)?;
        Ok(Self { stream: Stream::Tcp(stream), tls: None })
    }

    /// Over a unix socket.
    pub fn unix(stream: UnixStream) -> Self {
        Self { stream: Stream::Unix(stream), tls: None }
    }

    /// Go on in this TLS session, whose handshake is complete.
    pub fn with_tls(mut self, tls: rustls::ClientConnection) -> Self {
        self.tls = Some(Box::new(tls));
        self
    }

    /// The stream under a login, for a TLS handshake.
    pub(crate) fn blocking(&self) -> impl Read + Write + '_ {
        &self.stream
    }

    /// Whether bytes are encrypted.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Blocking for the login, non-blocking afterwards.
    ///
    /// # Errors
    /// The socket option cannot be set.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(None)?;
                stream.set_write_timeout(None)?;
                stream.set_nonblocking(on)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(None)?;
                stream.set_write_timeout(None)?;
                stream.set_nonblocking(on)
            }
        }
    }

    /// Reads once into `buffer`. A short read says that the kernel has no more for now.
    ///
    /// # Errors
    /// The connection broke, or TLS found something wrong.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Flow> {
        let Some(tls) = self.tls.as_mut() else {
            return read_plain(&self.stream, buffer);
        };
        // plaintext that an earlier record left first
        loop {
            match tls.reader().read(buffer) {
                Ok(0) => return Ok(Flow::Closed(0)),
                Ok(n) => return Ok(Flow::Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut &self.stream) {
                Ok(0) => return Ok(Flow::Closed(0)),
                Ok(_) => {
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Drained(0)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much of `bytes` as is taken. With TLS all of them are taken; `flush` may have to follow.
    ///
    /// # Errors
    /// The connection broke.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.tls.as_mut() {
            None => write_plain(&self.stream, bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                self.flush_tls()?;
                Ok(bytes.len())
            }
        }
    }

    /// Sends encrypted bytes that are still held; true when none are left.
    ///
    /// # Errors
    /// The connection broke.
    pub fn flush_tls(&mut self) -> io::Result<bool> {
        let Some(tls) = self.tls.as_mut() else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut &self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// After how much silence of its kernel a peer counts as gone (targets/silence.py has the same for drivers): long
/// enough for a link that is down for some seconds, short enough for the outage to be on the record of a run. A
/// slow statement is no silence: the peer's kernel answers for it.
const SILENCE: Duration = Duration::from_secs(15);
const FIRST_PROBE: Duration = Duration::from_secs(5);
const PROBES_EVERY: Duration = Duration::from_secs(2);

fn watch_peer(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, FIRST_PROBE)?;
    sockopt::set_tcp_keepintvl(stream, PROBES_EVERY)?;
    sockopt::set_tcp_user_timeout(stream, SILENCE.as_millis() as u32)?;
    Ok(())
}

fn read_plain(stream: &Stream, buffer: &mut [u8]) -> io::Result<Flow> {
    loop {
        return match (&mut &*stream).read(buffer) {
            Ok(0) => Ok(Flow::Closed(0)),
            Ok(n) if n < buffer.len() => Ok(Flow::Drained(n)),
            Ok(n) => Ok(Flow::Some(n)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Flow::Drained(0)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

fn write_plain(stream: &Stream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        return match (&mut &*stream).write(bytes) {
            Ok(n) => Ok(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}
