//! Bytes received and not yet understood.
//!
//! A loop reads into one large buffer that all its connections share; only what is left of an incomplete
//! message is kept by the connection, so that ten thousand idle connections hold no buffers.

/// What is left of incomplete messages.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    bytes: Vec<u8>,
}

/// Most that a connection keeps allocated between answers.
const KEPT_BYTES: usize = 16 << 10;

impl Leftover {
    /// Gives `fresh` bytes, after those left, to `take`, which returns how many it used; keeps the rest.
    pub fn feed<E>(
        &mut self,
        fresh: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        if self.bytes.is_empty() {
            let used = take(fresh)?;
            if used < fresh.len() {
                self.bytes.extend_from_slice(&fresh[used..]);
            }
            return Ok(());
        }
        self.bytes.extend_from_slice(fresh);
        let used = take(&self.bytes)?;
        if used == self.bytes.len() {
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
        } else if used > 0 {
            self.bytes.drain(..used);
        }
        Ok(())
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
