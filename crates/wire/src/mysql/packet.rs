//! The generic answers: OK, ERR, EOF, and the head of an answer to COM_STMT_PREPARE.

use super::{put_length_encoded, status};
use crate::reader::{Reader, text};
use crate::{Error, Result};

/// OK_Packet, also in the place of EOF under DEPRECATE_EOF.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OkPacket {
    /// Rows changed, or matched under FOUND_ROWS.
    pub affected_rows: u64,
    /// The last AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// Text for people, and session changes; as it came.
    pub info: Vec<u8>,
}

impl OkPacket {
    /// Reads a payload that begins with 0x00 or 0xFE.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("OK packet", payload);
        if !matches!(reader.u8()?, 0x00 | 0xFE) {
            return reader.malformed();
        }
        Ok(Self {
            affected_rows: reader.length_encoded()?,
            last_insert_id: reader.length_encoded()?,
            status: reader.u16_le()?,
            warnings: reader.u16_le()?,
            info: reader.rest().to_vec(),
        })
    }

    /// The payload, with 0x00 first.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_after(0x00)
    }

    /// The payload that ends the rows of a result under DEPRECATE_EOF.
    pub fn encode_as_eof(&self) -> Vec<u8> {
        self.encode_after(0xFE)
    }

    fn encode_after(&self, first: u8) -> Vec<u8> {
        let mut out = vec![first];
        put_length_encoded(&mut out, self.affected_rows);
        put_length_encoded(&mut out, self.last_insert_id);
        out.extend(self.status.to_le_bytes());
        out.extend(self.warnings.to_le_bytes());
        out.extend(&self.info);
        out
    }
}

/// ERR_Packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrPacket {
    /// The server's error code.
    pub code: u16,
    /// SQLSTATE; empty in errors before the handshake.
    pub sqlstate: String,
    /// Text for people.
    pub message: String,
}

impl ErrPacket {
    /// Reads a payload that begins with 0xFF.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("ERR packet", payload);
        if reader.u8()? != 0xFF {
            return reader.malformed();
        }
        let code = reader.u16_le()?;
        let rest = reader.rest();
        let (sqlstate, message) = match rest {
            [b'#', tail @ ..] if tail.len() >= 5 => tail.split_at(5),
            _ => (&[][..], rest),
        };
        Ok(Self { code, sqlstate: text(sqlstate), message: text(message) })
    }

    /// The payload. A SQLSTATE that does not have five bytes is left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0xFF];
        out.extend(self.code.to_le_bytes());
        if self.sqlstate.len() == 5 {
            out.push(b'#');
            out.extend(self.sqlstate.as_bytes());
        }
        out.extend(self.message.as_bytes());
        out
    }
}

/// EOF_Packet, for clients without DEPRECATE_EOF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EofPacket {
    /// Number of warnings.
    pub warnings: u16,
    /// Status flags.
    pub status: u16,
}

impl EofPacket {
    /// Longest EOF packet: a longer one that begins with 0xFE is a row.
    pub const CEILING_BYTES: usize = 8;

    /// Reads a payload that begins with 0xFE.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("EOF packet", payload);
        if reader.u8()? != 0xFE {
            return reader.malformed();
        }
        Ok(Self { warnings: reader.u16_le()?, status: reader.u16_le()? })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0xFE];
        out.extend(self.warnings.to_le_bytes());
        out.extend(self.status.to_le_bytes());
        out
    }

    /// Whether another result follows.
    pub fn more_results(&self) -> bool {
        self.status & status::MORE_RESULTS != 0
    }
}

/// COM_STMT_PREPARE_OK: definitions of the parameters, then of the columns, follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrepareOk {
    /// The number that executes the statement on this connection.
    pub statement_id: u32,
    /// Columns of its result; 0 when it gives none.
    pub columns: u16,
    /// Its parameters.
    pub parameters: u16,
    /// Number of warnings.
    pub warnings: u16,
}

impl PrepareOk {
    /// Reads the payload.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("answer to COM_STMT_PREPARE", payload);
        if reader.u8()? != 0 {
            return Err(Error::Malformed("answer to COM_STMT_PREPARE"));
        }
        let statement_id = reader.u32_le()?;
        let columns = reader.u16_le()?;
        let parameters = reader.u16_le()?;
        let warnings = if reader.is_empty() {
            0
        } else {
            reader.take(1)?;
            reader.u16_le()?
        };
        Ok(Self { statement_id, columns, parameters, warnings })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0];
        out.extend(self.statement_id.to_le_bytes());
        out.extend(self.columns.to_le_bytes());
        out.extend(self.parameters.to_le_bytes());
        out.push(0);
        out.extend(self.warnings.to_le_bytes());
        out
    }
}
