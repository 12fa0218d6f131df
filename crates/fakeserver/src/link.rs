//! A client's socket, TCP or unix, and what waits to be sent over it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::net::{SendFlags, send};
use socket2::SockRef;

#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(crate) fn accept(&self) -> io::Result<Link> {
        let stream = match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Stream::Unix(stream)
            }
        };
        Ok(Link { stream, unsent: Vec::new() })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    /// What the kernel did not take.
    unsent: Vec<u8>,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Link {
    /// How many bytes came; None when there are none now. 0: the client closed.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match &self.stream {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
        };
        match read {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.receive(buffer),
            Err(error) => Err(error),
        }
    }

    /// Sends as much as the kernel takes; the rest follows when it takes more.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = if self.unsent.is_empty() { self.push(bytes)? } else { 0 };
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Goes on with what was left.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        if !self.unsent.is_empty() {
            let sent = self.push(&self.unsent)?;
            self.unsent.drain(..sent);
            if self.unsent.is_empty() {
                self.unsent = Vec::new();
            }
        }
        Ok(())
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    fn push(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match send(self.as_fd(), &bytes[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sent)
    }

    /// Nothing more follows.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => {
                stream.flush()?;
                stream.shutdown(Shutdown::Write)
            }
        }
    }

    /// The client gets a reset when this is dropped (over a unix socket: an end in the middle of things).
    pub(crate) fn reset(&self) {
        if let Stream::Tcp(stream) = &self.stream {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}
