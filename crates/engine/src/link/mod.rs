//! Connections: how one is opened and logged in, and how statements are spoken on it.
//!
//! Logging in is rare and may block (`open`, on a helper thread); statements are the hot path and never do
//! (`Link`, on an event loop). Both sit on `dbdyno_wire`.

mod civil;
mod input;
mod login;
mod mysql;
mod mysql_values;
mod postgresql;
#[doc(hidden)]
pub mod rehearsal;
mod socket;
mod speech;

pub use login::Logins;
pub use socket::{Flow, Socket};
pub use speech::{Answer, Link, PipelineAnswer, ServerError};

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// MySQL, MariaDB, OceanBase, TiDB and what speaks like them.
    MySql,
    /// PostgreSQL, protocol 3.
    PostgreSql,
}

/// What TLS must do (libpq's sslmode, MySQL's ssl-mode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Never.
    Disable,
    /// Where the server offers it; its certificate is not looked at.
    Prefer,
    /// Always; its certificate is not looked at.
    Require,
    /// Its certificate must be signed by the given authority; its name is not looked at (MySQL's own
    /// certificates carry none).
    VerifyCa,
    /// Signed by the given authority and for the host that was asked for.
    VerifyFull,
}

/// Where a server listens.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of a unix socket (a file, also for PostgreSQL); empty: TCP.
    #[serde(default)]
    pub socket: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.socket.is_empty() {
            f.write_str(&self.socket)
        } else if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A secret that never prints.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself: for the login alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Who logs in, and how.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Protocol of the server.
    pub protocol: Protocol,
    /// User name, for OceanBase with tenant and cluster.
    pub user: String,
    /// Password; none: an empty one is sent where the server asks.
    #[serde(default)]
    pub password: Option<Secret>,
    /// Database to use.
    pub database: String,
    /// TLS.
    pub tls: TlsMode,
    /// PEM file of the certificate authority for the verifying modes; empty: the system's own
    /// (verify modes need one of both).
    #[serde(default)]
    pub tls_ca: String,
    /// PEM files of a client certificate and its key; empty: none. An empty key is in the certificate's file.
    #[serde(default)]
    pub tls_cert: String,
    /// See `tls_cert`.
    #[serde(default)]
    pub tls_key: String,
    /// Session settings that travel with the login (PostgreSQL's start-up message).
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// The statement that cancels another connection's, before that connection's number (MySQL's protocol).
    #[serde(default)]
    pub cancel: String,
    /// Longest time for connecting and logging in, seconds.
    pub timeout_s: f64,
    /// Statements that each connection runs once before it is used (isolation level, the workload's set-up).
    #[serde(default)]
    pub setup: Vec<String>,
}

impl Login {
    /// The time-out.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s.clamp(0.001, 86_400.0))
    }
}

/// A connection that is logged in, as `open` hands it over. The socket is non-blocking from here on.
#[derive(Debug)]
pub struct Opened {
    /// The transport.
    pub socket: Socket,
    /// What both sides agreed on.
    pub session: Session,
}

/// What the login settled.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// MySQL capabilities in use (`dbdyno_wire::mysql::capability`); 0 for PostgreSQL.
    pub capabilities: u32,
    /// As the server wrote it.
    pub server_version: String,
    /// MySQL's CONNECTION_ID(), PostgreSQL's backend process id: what a cancellation names.
    pub connection_id: u64,
    /// PostgreSQL's secret for a cancellation.
    pub cancel_key: Vec<u8>,
    /// Whether a TLS session is in use.
    pub tls: bool,
}

/// Why a connection could not be opened.
#[derive(Debug, Clone)]
pub struct OpenError {
    /// The server's code (MySQL's number, PostgreSQL's SQLSTATE), empty when it did not come that far.
    pub code: String,
    /// With a code the server's own words, else one sentence. Without credentials.
    pub message: String,
    /// Where; empty when it was nowhere.
    pub endpoint: String,
}

impl OpenError {
    /// A sentence of ours.
    pub(crate) fn sentence(message: String) -> Self {
        Self { code: String::new(), message, endpoint: String::new() }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpenError {}
