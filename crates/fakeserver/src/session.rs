//! What a client's conversation is to the event loop: bytes in, bytes out, and what comes next.

use std::time::Duration;

use bytes::BytesMut;
use dbdyno_wire::Result;

use crate::plan::Context;
use crate::script::Fault;

/// What the loop does after a step of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Send everything, then wait for more input.
    More,
    /// Send what stands before this position, keep the rest, wait for more input.
    Hold(usize),
    /// Send what stands before `from`, wait, send the rest in the way that a fault has it, then go on.
    Deliver {
        /// How late the rest is.
        delay: Duration,
        /// What becomes of it.
        fault: Option<Fault>,
        /// Where it begins.
        from: usize,
    },
    /// Send everything, then close.
    Over,
}

impl Turn {
    /// The answer that begins at `from` is whole.
    pub(crate) fn answered(delay: Duration, fault: Option<Fault>, from: usize) -> Self {
        if delay.is_zero() && fault.is_none() { Turn::More } else { Turn::Deliver { delay, fault, from } }
    }

    /// A connection that is not to be answered.
    pub(crate) fn broken(fault: Fault, from: usize) -> Self {
        Turn::Deliver { delay: Duration::ZERO, fault: Some(fault), from }
    }
}

/// A conversation without a socket.
pub(crate) trait Conversation {
    /// What tells the forms of an answer apart.
    type Key: PartialEq;

    /// A client that has just been accepted.
    fn new(context: &Context<Self::Key>, connection: u64) -> Self;

    /// Takes messages off `input` and appends to `out` until the input is used up or something is due. Says how
    /// many bytes it took. Error: bytes that are no message; the connection ends.
    fn step(
        &mut self,
        context: &mut Context<Self::Key>,
        input: &[u8],
        out: &mut BytesMut,
    ) -> Result<(usize, Turn)>;

    /// Makes the first header of an answer lie about its length.
    fn lie(output: &mut [u8]);
}
