//! The connection phase: the server's greeting, the client's answer, a change of plug-in.

use bytes::Bytes;

use super::{capability, put_length_encoded, put_length_encoded_bytes, put_zero_terminated};
use crate::reader::{Reader, text};
use crate::{Error, Result};

/// Length of the nonce that password plug-ins scramble with.
pub const NONCE_BYTES: usize = 20;
/// A greeting's or answer's fixed part that TLS clients send alone before they start TLS.
const TLS_REQUEST_BYTES: usize = 32;
/// Most connection attributes taken (the server's own limit is 64 KiB in all).
const ATTRIBUTES_CEILING_BYTES: usize = 65_536;

/// Protocol::HandshakeV10, the server's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// As `SELECT VERSION()` says it.
    pub server_version: String,
    /// As `SELECT CONNECTION_ID()` says it.
    pub connection_id: u32,
    /// What the client scrambles its password with.
    pub nonce: [u8; NONCE_BYTES],
    /// What the server can do (`capability`).
    pub capabilities: u32,
    /// The server's default collation.
    pub collation: u8,
    /// Status flags.
    pub status: u16,
    /// The plug-in that the nonce is for; empty without PLUGIN_AUTH.
    pub plugin: String,
    /// MariaDB's second set of capabilities, 0 from others.
    pub mariadb_capabilities: u32,
}

impl Handshake {
    /// Reads the payload. Errors: another protocol version, a short packet. An ERR packet in its place is
    /// for the caller to tell apart by its first byte, 0xFF.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("handshake", payload);
        if reader.u8()? != 10 {
            return Err(Error::Malformed("protocol version of the handshake"));
        }
        let server_version = reader.text_until_zero()?;
        let connection_id = reader.u32_le()?;
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(reader.take(8)?);
        reader.take(1)?;
        let low = u32::from(reader.u16_le()?);
        let collation = reader.u8()?;
        let status = reader.u16_le()?;
        let capabilities = low | u32::from(reader.u16_le()?) << 16;
        let nonce_length = reader.u8()?;
        reader.take(6)?;
        let mariadb_capabilities = reader.u32_le()?;
        let tail = reader.take(usize::from(nonce_length).saturating_sub(8).max(13))?;
        nonce[8..].copy_from_slice(&tail[..12]);
        let plugin = if capabilities & capability::PLUGIN_AUTH != 0 {
            // Servers before 5.5.10 leave the final zero out.
            let rest = reader.rest();
            text(rest.strip_suffix(&[0]).unwrap_or(rest))
        } else {
            String::new()
        };
        Ok(Self {
            server_version,
            connection_id,
            nonce,
            capabilities,
            collation,
            status,
            plugin,
            mariadb_capabilities,
        })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![10];
        put_zero_terminated(&mut out, self.server_version.as_bytes());
        out.extend(self.connection_id.to_le_bytes());
        out.extend(&self.nonce[..8]);
        out.push(0);
        out.extend(&self.capabilities.to_le_bytes()[..2]);
        out.push(self.collation);
        out.extend(self.status.to_le_bytes());
        out.extend(&self.capabilities.to_le_bytes()[2..]);
        out.push(NONCE_BYTES as u8 + 1);
        out.extend([0; 6]);
        out.extend(self.mariadb_capabilities.to_le_bytes());
        put_zero_terminated(&mut out, &self.nonce[8..]);
        if self.capabilities & capability::PLUGIN_AUTH != 0 {
            put_zero_terminated(&mut out, self.plugin.as_bytes());
        }
        out
    }
}

/// Whether a client's first packet asks for TLS instead of logging in.
pub fn is_tls_request(payload: &[u8]) -> bool {
    payload.len() == TLS_REQUEST_BYTES
        && u32::from_le_bytes([payload[0], payload[1], payload[2], payload[3]]) & capability::SSL != 0
}

/// Protocol::HandshakeResponse41, the client's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeResponse {
    /// What both sides use from now on.
    pub capabilities: u32,
    /// Longest packet that the client takes.
    pub max_packet: u32,
    /// The client's collation.
    pub collation: u8,
    /// Who logs in.
    pub user: String,
    /// The plug-in's answer to the nonce.
    pub auth: Bytes,
    /// The database to use, if any.
    pub database: Option<String>,
    /// The plug-in that `auth` is from.
    pub plugin: Option<String>,
    /// Connection attributes such as program_name.
    pub attributes: Vec<(String, String)>,
}

impl HandshakeResponse {
    /// Reads the payload. Errors: a client older than 4.1, a short packet.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("handshake response", payload);
        let capabilities = reader.u32_le()?;
        if capabilities & capability::PROTOCOL_41 == 0 {
            return Err(Error::Malformed("handshake response: a client older than 4.1"));
        }
        let max_packet = reader.u32_le()?;
        let collation = reader.u8()?;
        reader.take(23)?;
        let user = reader.text_until_zero()?;
        let auth = if capabilities & capability::PLUGIN_AUTH_LENENC_DATA != 0 {
            reader.length_encoded_bytes()?
        } else if capabilities & capability::SECURE_CONNECTION != 0 {
            let length = reader.u8()?;
            reader.take(usize::from(length))?
        } else {
            reader.until_zero()?
        };
        let auth = Bytes::copy_from_slice(auth);
        let has_more = |flag, reader: &Reader<'_>| capabilities & flag != 0 && !reader.is_empty();
        let database = if has_more(capability::CONNECT_WITH_DB, &reader) {
            Some(reader.text_until_zero()?).filter(|name| !name.is_empty())
        } else {
            None
        };
        let plugin =
            if has_more(capability::PLUGIN_AUTH, &reader) { Some(reader.text_until_zero()?) } else { None };
        let mut attributes = Vec::new();
        if has_more(capability::CONNECT_ATTRS, &reader) {
            let all = reader.length_encoded_bytes()?;
            crate::check_ceiling("connection attributes", all.len() as u64, ATTRIBUTES_CEILING_BYTES)?;
            let mut reader = Reader::new("connection attributes", all);
            while !reader.is_empty() {
                let name = text(reader.length_encoded_bytes()?);
                attributes.push((name, text(reader.length_encoded_bytes()?)));
            }
        }
        Ok(Self { capabilities, max_packet, collation, user, auth, database, plugin, attributes })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.capabilities.to_le_bytes().to_vec();
        out.extend(self.max_packet.to_le_bytes());
        out.push(self.collation);
        out.extend([0; 23]);
        put_zero_terminated(&mut out, self.user.as_bytes());
        if self.capabilities & capability::PLUGIN_AUTH_LENENC_DATA != 0 {
            put_length_encoded_bytes(&mut out, &self.auth);
        } else if self.capabilities & capability::SECURE_CONNECTION != 0 {
            out.push(self.auth.len() as u8);
            out.extend(&self.auth);
        } else {
            put_zero_terminated(&mut out, &self.auth);
        }
        if self.capabilities & capability::CONNECT_WITH_DB != 0 {
            put_zero_terminated(&mut out, self.database.as_deref().unwrap_or_default().as_bytes());
        }
        if self.capabilities & capability::PLUGIN_AUTH != 0 {
            put_zero_terminated(&mut out, self.plugin.as_deref().unwrap_or_default().as_bytes());
        }
        if self.capabilities & capability::CONNECT_ATTRS != 0 {
            let mut all = Vec::new();
            for (name, value) in &self.attributes {
                put_length_encoded_bytes(&mut all, name.as_bytes());
                put_length_encoded_bytes(&mut all, value.as_bytes());
            }
            put_length_encoded(&mut out, all.len() as u64);
            out.extend(all);
        }
        out
    }
}

/// Protocol::AuthSwitchRequest: the server wants another plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthSwitch {
    /// The plug-in to use.
    pub plugin: String,
    /// Its nonce, without the final zero.
    pub nonce: Bytes,
}

impl AuthSwitch {
    /// Reads the payload, its first byte 0xFE included.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("request to switch authentication", payload);
        if reader.u8()? != 0xFE {
            return reader.malformed();
        }
        let plugin = reader.text_until_zero()?;
        let rest = reader.rest();
        Ok(Self { plugin, nonce: Bytes::copy_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest)) })
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0xFE];
        put_zero_terminated(&mut out, self.plugin.as_bytes());
        put_zero_terminated(&mut out, &self.nonce);
        out
    }
}
