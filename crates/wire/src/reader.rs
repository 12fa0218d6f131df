//! Takes fields off the front of a message; running out is an error that names the message.

use crate::{Error, Result};

pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    message: &'static str,
}

macro_rules! integers {
    ($($name:ident $kind:ty, $from:ident;)*) => {
        $(pub(crate) fn $name(&mut self) -> Result<$kind> {
            Ok(<$kind>::$from(self.array()?))
        })*
    };
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message }
    }

    pub(crate) fn malformed<T>(&self) -> Result<T> {
        Err(Error::Malformed(self.message))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(length) {
            Some((head, tail)) => {
                self.rest = tail;
                Ok(head)
            }
            None => self.malformed(),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.take(N)?.try_into() {
            Ok(array) => Ok(array),
            Err(_) => self.malformed(),
        }
    }

    integers! {
        u8 u8, from_le_bytes;
        u16_le u16, from_le_bytes;
        u32_le u32, from_le_bytes;
        u64_le u64, from_le_bytes;
        i16_be i16, from_be_bytes;
        i32_be i32, from_be_bytes;
        u32_be u32, from_be_bytes;
        i64_be i64, from_be_bytes;
    }

    pub(crate) fn u24_le(&mut self) -> Result<u32> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Up to the next zero byte, which is taken too.
    pub(crate) fn until_zero(&mut self) -> Result<&'a [u8]> {
        match self.rest.iter().position(|byte| *byte == 0) {
            Some(length) => {
                let text = self.take(length)?;
                self.take(1)?;
                Ok(text)
            }
            None => self.malformed(),
        }
    }

    /// A zero-terminated string; bytes that are not UTF-8 are replaced.
    pub(crate) fn text_until_zero(&mut self) -> Result<String> {
        Ok(text(self.until_zero()?))
    }

    /// MySQL's length-encoded integer; the marker of NULL is malformed here.
    pub(crate) fn length_encoded(&mut self) -> Result<u64> {
        match self.u8()? {
            short @ 0..=0xFA => Ok(u64::from(short)),
            0xFC => Ok(u64::from(self.u16_le()?)),
            0xFD => Ok(u64::from(self.u24_le()?)),
            0xFE => self.u64_le(),
            _ => self.malformed(),
        }
    }

    /// A string with its length before it.
    pub(crate) fn length_encoded_bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length_encoded()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => self.malformed(),
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
