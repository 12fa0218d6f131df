//! How a MySQL client is greeted, asked for its password, and let in or not.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::Result;
use dbdyno_wire::mysql::{self, AuthSwitch, Handshake, HandshakeResponse, auth, capability, collation};

use crate::mysql_answer::Form;
use crate::mysql_session::MysqlSession;
use crate::plan::Context;
use crate::script::{ConnectFault, Fault, Reception};
use crate::session::Turn;

const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA
    | capability::DEPRECATE_EOF;

/// How far a login is.
pub(crate) enum Login {
    Arrived(Reception),
    /// The delay of its reception is over.
    Received(Reception),
    /// The greeting is out.
    Greeted(Reception),
    /// Asked for the password in the other way.
    Switched,
}

impl Login {
    pub(crate) fn needs_input(&self) -> bool {
        matches!(self, Login::Greeted(_) | Login::Switched)
    }
}

impl MysqlSession {
    fn nonce(&self) -> [u8; 20] {
        std::array::from_fn(|i| b'!' + ((self.session.connection as usize * 31 + i * 7) % 90) as u8)
    }

    /// Everything before the client's first packet.
    pub(crate) fn greet(&mut self, context: &Context<Form>, out: &mut BytesMut) -> Turn {
        let reception = match self.login.take() {
            Some(Login::Arrived(reception)) => {
                let delay = reception.delay;
                self.login = Some(Login::Received(reception));
                return match Turn::answered(delay, None, out.len()) {
                    Turn::More => self.greet(context, out),
                    late => late,
                };
            }
            Some(Login::Received(reception)) => reception,
            other => {
                self.login = other;
                return Turn::More;
            }
        };
        match (reception.fault, &reception.error) {
            (Some(ConnectFault::Refuse), _) => return Turn::broken(Fault::Reset, out.len()),
            (Some(ConnectFault::Silence), _) => return Turn::broken(Fault::Silence, out.len()),
            // "Too many connections" comes instead of the greeting; other refusals after the password.
            (Some(ConnectFault::Error), None) => {
                self.writer(out).error(1040, "", "Too many connections");
                return Turn::Over;
            }
            (Some(ConnectFault::Error), Some(error)) if error.number() == 1040 => {
                self.writer(out).error(error.number(), "", error.message());
                return Turn::Over;
            }
            _ => {}
        }
        let greeting = Handshake {
            server_version: context.shared.options.server_version.clone(),
            connection_id: self.session.connection as u32,
            nonce: self.nonce(),
            capabilities: CAPABILITIES,
            collation: collation::UTF8MB4_GENERAL_CI,
            status: self.status(),
            plugin: auth::NATIVE_PASSWORD.to_owned(),
            mariadb_capabilities: 0,
        };
        self.writer(out).put(&greeting.encode());
        self.login = Some(Login::Greeted(reception));
        Turn::More
    }

    /// A packet of the login's.
    pub(crate) fn log_in(
        &mut self,
        context: &Context<Form>,
        payload: &Bytes,
        out: &mut BytesMut,
    ) -> Result<Turn> {
        let password = context.shared.options.password.as_deref();
        let reception = match self.login.take() {
            Some(Login::Greeted(reception)) => reception,
            _ => return Ok(self.judge(password.unwrap_or_default(), payload, out)),
        };
        if reception.fault == Some(ConnectFault::Reset) {
            return Ok(Turn::broken(Fault::Reset, out.len()));
        }
        if mysql::is_tls_request(payload) {
            self.writer(out).error(3159, "HY000", "This server speaks no TLS");
            return Ok(Turn::Over);
        }
        let answer = HandshakeResponse::parse(payload)?;
        self.capabilities = answer.capabilities & CAPABILITIES;
        self.session.user = answer.user;
        self.session.database = answer.database.unwrap_or_default();
        if let Some(error) = &reception.error {
            self.writer(out).error(error.number(), error.sqlstate(), error.message());
            return Ok(Turn::Over);
        }
        let Some(password) = password else {
            self.put_ok(out);
            return Ok(Turn::More);
        };
        if answer.plugin.as_deref().is_some_and(|plugin| plugin != auth::NATIVE_PASSWORD) {
            let nonce = Bytes::copy_from_slice(&self.nonce());
            let switch = AuthSwitch { plugin: auth::NATIVE_PASSWORD.to_owned(), nonce };
            self.writer(out).put(&switch.encode());
            self.login = Some(Login::Switched);
            return Ok(Turn::More);
        }
        Ok(self.judge(password, &answer.auth, out))
    }

    fn judge(&mut self, password: &str, given: &[u8], out: &mut BytesMut) -> Turn {
        if given == auth::native_password(password.as_bytes(), &self.nonce()) {
            self.put_ok(out);
            return Turn::More;
        }
        let user = &self.session.user;
        let message = format!("Access denied for user '{user}'@'127.0.0.1' (using password: YES)");
        self.writer(out).error(1045, "28000", &message);
        Turn::Over
    }
}
