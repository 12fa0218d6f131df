//! A client's connection: buffers around a socket, and the ways in which it fails.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use socket2::SockRef;

use crate::script::Fault;

const READ_BYTES: usize = 16 << 10;
const SLOW_BYTE: Duration = Duration::from_millis(2);

pub(crate) struct Link {
    stream: TcpStream,
    chunk: Vec<u8>,
    pub(crate) input: BytesMut,
    pub(crate) output: BytesMut,
}

/// Whether a connection is still of use after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward {
    Continue,
    Over,
}

impl Link {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, chunk: vec![0; READ_BYTES], input: BytesMut::new(), output: BytesMut::new() })
    }

    /// Waits for more bytes; false at the end of the connection.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        let read = self.stream.read(&mut self.chunk)?;
        self.input.extend_from_slice(&self.chunk[..read]);
        Ok(read > 0)
    }

    /// Sends what is in `output`.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Sends what is in `output` the way a fault has it. `wrong_length` makes a header lie.
    pub(crate) fn deliver(
        &mut self,
        fault: Option<Fault>,
        wrong_length: fn(&mut [u8]),
    ) -> io::Result<Onward> {
        match fault {
            None => {
                self.flush()?;
                return Ok(Onward::Continue);
            }
            Some(Fault::SlowBytes) => {
                for byte in std::mem::take(&mut self.output) {
                    self.stream.write_all(&[byte])?;
                    thread::sleep(SLOW_BYTE);
                }
                return Ok(Onward::Continue);
            }
            Some(Fault::Reset) => self.reset()?,
            Some(Fault::Silence) => self.silence()?,
            Some(Fault::HalfPacket) => {
                let half = self.output.len() / 2;
                self.output.truncate(half);
                self.flush()?;
                self.stream.shutdown(Shutdown::Write)?;
            }
            Some(Fault::Garbage) => {
                self.output.clear();
                self.output.extend((0..64u8).map(|byte| byte.wrapping_mul(197).wrapping_add(91)));
                self.flush()?;
                self.stream.shutdown(Shutdown::Write)?;
            }
            Some(Fault::WrongLength) => {
                wrong_length(&mut self.output);
                self.flush()?;
                self.stream.shutdown(Shutdown::Write)?;
            }
        }
        Ok(Onward::Over)
    }

    /// The peer gets a reset instead of an orderly end.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))
    }

    /// Says nothing until the client gives up.
    pub(crate) fn silence(&mut self) -> io::Result<()> {
        while self.fill()? {
            self.input.clear();
        }
        Ok(())
    }
}
