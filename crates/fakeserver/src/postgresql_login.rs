//! How a PostgreSQL client is let in or not.

use bytes::{Bytes, BytesMut};
use dbdyno_wire::postgresql::{self, Authentication, BackendMessage, FrontendMessage, Startup, auth};
use dbdyno_wire::{MESSAGE_CEILING_BYTES, Result};

use crate::plan::Context;
use crate::postgresql_answer::Form;
use crate::postgresql_session::{IDLE, PostgresqlSession};
use crate::script::{ConnectFault, Fault, Reception};
use crate::session::Turn;

/// How far a login is.
pub(crate) enum Login {
    Arrived(Reception),
    /// The delay of its reception is over; the startup message is to come.
    Received(Reception),
    /// The password that is to come.
    Asked(String),
}

impl PostgresqlSession {
    /// The next piece of a login and how many bytes of the input it took; 0 when more are to come.
    pub(crate) fn log_in(
        &mut self,
        context: &Context<Form>,
        input: &[u8],
        out: &mut BytesMut,
    ) -> Result<(usize, Turn)> {
        let mut rest = BytesMut::from(input);
        let turn = match self.login.take() {
            Some(Login::Arrived(reception)) => {
                let (delay, fault) = (reception.delay, reception.fault);
                self.login = Some(Login::Received(reception));
                let fault = match fault {
                    Some(ConnectFault::Refuse) => Some(Fault::Reset),
                    Some(ConnectFault::Silence) => Some(Fault::Silence),
                    _ => None,
                };
                match Turn::answered(delay, fault, out.len()) {
                    Turn::More => return self.log_in(context, input, out),
                    late => late,
                }
            }
            Some(Login::Received(reception)) => match postgresql::parse_startup(&mut rest)? {
                Some(Startup::Tls | Startup::Gss) => {
                    out.extend_from_slice(b"N");
                    self.login = Some(Login::Received(reception));
                    Turn::More
                }
                Some(Startup::Cancel { .. }) => Turn::Over,
                Some(Startup::Start { parameters, .. }) => self.start(context, &reception, &parameters, out),
                None => {
                    self.login = Some(Login::Received(reception));
                    Turn::More
                }
            },
            Some(Login::Asked(expected)) => match FrontendMessage::parse(&mut rest, MESSAGE_CEILING_BYTES)? {
                Some(FrontendMessage::Password(given)) => {
                    if given.strip_suffix(&[0]).unwrap_or(&given) == expected.as_bytes() {
                        self.welcome(context, out)
                    } else {
                        let user = &self.session.user;
                        fatal("28P01", &format!("password authentication failed for user \"{user}\""), out)
                    }
                }
                Some(_) => Turn::Over,
                None => {
                    self.login = Some(Login::Asked(expected));
                    Turn::More
                }
            },
            None => Turn::More,
        };
        Ok((input.len() - rest.len(), turn))
    }

    fn start(
        &mut self,
        context: &Context<Form>,
        reception: &Reception,
        parameters: &[(String, String)],
        out: &mut BytesMut,
    ) -> Turn {
        if reception.fault == Some(ConnectFault::Reset) {
            return Turn::broken(Fault::Reset, out.len());
        }
        let parameter =
            |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        self.session.user = parameter("user").unwrap_or_default();
        self.session.database = parameter("database").unwrap_or_else(|| self.session.user.clone());
        match (&reception.error, reception.fault) {
            (Some(error), _) => return fatal(error.sqlstate(), error.message(), out),
            (None, Some(ConnectFault::Error)) => {
                return fatal("53300", "sorry, too many clients already", out);
            }
            _ => {}
        }
        let options = &context.shared.options;
        let Some(password) = options.password.clone() else {
            return self.welcome(context, out);
        };
        let salt = (self.session.connection as u32 ^ 0x5A17_C0DE).to_be_bytes();
        let (request, expected) = if options.cleartext {
            (Authentication::Cleartext, password)
        } else {
            (Authentication::Md5 { salt }, auth::md5_password(&self.session.user, &password, salt))
        };
        BackendMessage::Authentication(request).write(out);
        self.login = Some(Login::Asked(expected));
        Turn::More
    }

    fn welcome(&mut self, context: &Context<Form>, out: &mut BytesMut) -> Turn {
        BackendMessage::Authentication(Authentication::Ok).write(out);
        for (name, value) in [
            ("server_version", context.shared.options.server_version.as_str()),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, MDY"),
            ("TimeZone", "UTC"),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
        ] {
            BackendMessage::ParameterStatus(name.to_owned(), value.to_owned()).write(out);
        }
        let process_id = self.session.connection as u32;
        let secret = Bytes::from_static(&[0, 0, 0, 1]);
        BackendMessage::BackendKeyData { process_id, secret }.write(out);
        BackendMessage::ReadyForQuery(IDLE).write(out);
        Turn::More
    }
}

fn fatal(sqlstate: &str, message: &str, out: &mut BytesMut) -> Turn {
    BackendMessage::error("FATAL", sqlstate, message).write(out);
    Turn::Over
}
