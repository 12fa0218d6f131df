//! The messages of a prepared execution, read where they stand: a null server must not pay for copies.

use std::ops::Range;

/// Bytes of type and length before a message's body.
pub(crate) const HEADER_BYTES: usize = 5;

/// Bind, as positions in its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind<'a> {
    pub(crate) portal: &'a str,
    pub(crate) statement: &'a str,
    pub(crate) result_formats: Formats<'a>,
}

/// Format codes as they stand in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = i16> + '_ {
        self.0.chunks_exact(2).map(|code| i16::from_be_bytes([code[0], code[1]]))
    }
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let range: Range<usize> = self.at..self.at.checked_add(length)?;
        let taken = self.body.get(range)?;
        self.at += length;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a str> {
        let rest = self.body.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).ok()
    }

    fn count(&mut self) -> Option<usize> {
        self.take(2).map(|two| usize::from(u16::from_be_bytes([two[0], two[1]])))
    }
}

/// None: not of the form that the protocol gives it.
pub(crate) fn bind(body: &[u8]) -> Option<Bind<'_>> {
    let mut reader = Reader { body, at: 0 };
    let (portal, statement) = (reader.text()?, reader.text()?);
    let formats = reader.count()?;
    reader.take(2 * formats)?;
    for _ in 0..reader.count()? {
        let length = reader.take(4)?;
        // -1 is NULL and has no bytes.
        let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
        reader.take(usize::try_from(length).unwrap_or(0))?;
    }
    let formats = reader.count()?;
    Some(Bind { portal, statement, result_formats: Formats(reader.take(2 * formats)?) })
}

/// The portal and the most rows (0: all) of Execute.
pub(crate) fn execute(body: &[u8]) -> Option<(&str, i32)> {
    let mut reader = Reader { body, at: 0 };
    let portal = reader.text()?;
    let most = reader.take(4)?;
    Some((portal, i32::from_be_bytes([most[0], most[1], most[2], most[3]])))
}

/// Whether a statement ('S') or a portal ('P') is described, and its name.
pub(crate) fn describe(body: &[u8]) -> Option<(u8, &str)> {
    let mut reader = Reader { body, at: 0 };
    let kind = reader.take(1)?[0];
    Some((kind, reader.text()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::{Bytes, BytesMut};
    use dbdyno_wire::postgresql::FrontendMessage;

    fn body(message: &FrontendMessage) -> Vec<u8> {
        let mut out = BytesMut::new();
        message.write(&mut out);
        out[HEADER_BYTES..].to_vec()
    }

    #[test]
    fn what_the_library_writes_is_read_where_it_stands() {
        let message = FrontendMessage::Bind {
            portal: "p".into(),
            statement: "s1".into(),
            formats: vec![1],
            values: vec![None, Some(Bytes::from("12"))],
            result_formats: vec![0, 1],
        };
        let body_of_bind = body(&message);
        let read = bind(&body_of_bind).unwrap();
        assert_eq!((read.portal, read.statement), ("p", "s1"));
        assert_eq!(read.result_formats.iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(bind(&body_of_bind[..body_of_bind.len() - 1]), None);
        let message = FrontendMessage::Execute { portal: "p".into(), max_rows: 7 };
        assert_eq!(execute(&body(&message)), Some(("p", 7)));
        let message = FrontendMessage::Describe { kind: b'S', name: String::new() };
        assert_eq!(describe(&body(&message)), Some((b'S', "")));
    }
}
