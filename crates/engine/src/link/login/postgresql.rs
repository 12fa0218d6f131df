//! Logging in to PostgreSQL (manual, "Message Flow": start-up and SASL authentication).

use bytes::BytesMut;
use dbdyno_wire::postgresql::{Authentication, BackendMessage, FrontendMessage, Startup, auth};

use super::conversation::Conversation;
use super::scram::{Binding, Exchange, SCRAM_SHA_256, SCRAM_SHA_256_PLUS};
use super::{Logins, Trouble, tls};
use crate::link::{Endpoint, Session, TlsMode};

const LOGIN_CEILING_BYTES: usize = 1 << 20;

fn message(talk: &mut Conversation) -> Result<BackendMessage, Trouble> {
    loop {
        match BackendMessage::parse(&mut talk.input, LOGIN_CEILING_BYTES)? {
            Some(BackendMessage::NoticeResponse(_)) => {}
            Some(BackendMessage::ErrorResponse(fields)) => {
                let field = |letter| {
                    fields.iter().find(|(kind, _)| *kind == letter).map_or("", |(_, text)| text).to_owned()
                };
                return Err(Trouble::Refused { code: field(b'C'), message: field(b'M') });
            }
            Some(message) => return Ok(message),
            None => talk.fill()?,
        }
    }
}

fn send(talk: &mut Conversation, message: &FrontendMessage) -> Result<(), Trouble> {
    let mut out = BytesMut::new();
    message.write(&mut out);
    talk.send(&out)
}

fn begin(talk: &mut Conversation, startup: &Startup) -> Result<(), Trouble> {
    let mut out = BytesMut::new();
    startup.write(&mut out);
    talk.send(&out)
}

pub(crate) fn log_in(
    logins: &Logins,
    endpoint: &Endpoint,
    talk: &mut Conversation,
) -> Result<Session, Trouble> {
    let login = &logins.login;
    // over a unix socket there is nothing to encrypt, and the server offers no TLS there
    let wanted = login.tls != TlsMode::Disable && !talk.is_unix();
    if wanted {
        begin(talk, &Startup::Tls)?;
        match talk.byte()? {
            b'S' => talk.start_tls(logins.tls()?, tls::name(endpoint)?)?,
            b'N' if login.tls == TlsMode::Prefer => {}
            b'N' => {
                return Err(Trouble::Other("the server offers no TLS, and this TLS mode asks for it".into()));
            }
            _ => return Err(Trouble::Other("it is not a PostgreSQL server".into())),
        }
    }
    let ours = [
        ("user", login.user.as_str()),
        ("database", login.database.as_str()),
        ("application_name", "dbdyno"),
        ("client_encoding", "UTF8"),
        ("extra_float_digits", "1"),
    ];
    let asked = login.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let parameters =
        ours.into_iter().chain(asked).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    begin(talk, &Startup::version_3(parameters))?;
    let mut session = Session { tls: talk.is_tls(), ..Session::default() };
    loop {
        match message(talk)? {
            BackendMessage::Authentication(wanted) => authenticate(logins, wanted, talk)?,
            BackendMessage::ParameterStatus(name, value) if name == "server_version" => {
                session.server_version = value;
            }
            BackendMessage::BackendKeyData { process_id, secret } => {
                session.connection_id = u64::from(process_id);
                session.cancel_key = secret.to_vec();
            }
            BackendMessage::ReadyForQuery(_) => return Ok(session),
            _ => {}
        }
    }
}

fn authenticate(logins: &Logins, wanted: Authentication, talk: &mut Conversation) -> Result<(), Trouble> {
    let login = &logins.login;
    let password = login.password.as_ref().map_or("", |secret| secret.reveal());
    match wanted {
        Authentication::Ok => Ok(()),
        Authentication::Cleartext if talk.is_private() || login.tls == TlsMode::Disable => {
            let answer = [password.as_bytes(), b"\0"].concat();
            send(talk, &FrontendMessage::Password(answer.into()))
        }
        Authentication::Cleartext => Err(Trouble::Other(
            "the server wants the password in clear text on a connection without TLS; use tls=require, or say \
             tls=disable if that is what you want"
                .into(),
        )),
        Authentication::Md5 { salt } => {
            let answer = auth::md5_password(&login.user, password, salt);
            send(talk, &FrontendMessage::Password([answer.as_bytes(), b"\0"].concat().into()))
        }
        Authentication::Sasl(mechanisms) => scram(logins, password, &mechanisms, talk),
        Authentication::SaslContinue(_) | Authentication::SaslFinal(_) => {
            Err(Trouble::Other("the server's questions come out of order".into()))
        }
        Authentication::Other(number) => {
            Err(Trouble::Other(format!("the server asks for authentication method {number}, which is not spoken here")))
        }
    }
}

fn scram(
    logins: &Logins,
    password: &str,
    mechanisms: &[String],
    talk: &mut Conversation,
) -> Result<(), Trouble> {
    let offered = |name: &str| mechanisms.iter().any(|mechanism| mechanism == name);
    let (mechanism, binding) = match &talk.certificate {
        Some(hash) if offered(SCRAM_SHA_256_PLUS) => (SCRAM_SHA_256_PLUS, Binding::Certificate(hash)),
        Some(_) if offered(SCRAM_SHA_256) => (SCRAM_SHA_256, Binding::NotOffered),
        None if offered(SCRAM_SHA_256) => (SCRAM_SHA_256, Binding::Unsupported),
        _ => {
            return Err(Trouble::Other(format!("the server offers only {}", mechanisms.join(", "))));
        }
    };
    let mut exchange = Exchange::new(&binding);
    let first = exchange.first();
    let mut answer = mechanism.as_bytes().to_vec();
    answer.push(0);
    answer.extend((first.len() as u32).to_be_bytes());
    answer.extend(first.as_bytes());
    send(talk, &FrontendMessage::Password(answer.into()))?;
    let proof = match message(talk)? {
        BackendMessage::Authentication(Authentication::SaslContinue(challenge)) => {
            exchange.proof(&challenge, password, &logins.salted)
        }
        _ => return Err(Trouble::Other("the server's questions come out of order".into())),
    };
    let proof = proof.ok_or_else(|| Trouble::Other("the server's SCRAM challenge makes no sense".into()))?;
    send(talk, &FrontendMessage::Password(proof.into_bytes().into()))?;
    match message(talk)? {
        BackendMessage::Authentication(Authentication::SaslFinal(last)) if exchange.is_proved_by(&last) => {
            Ok(())
        }
        BackendMessage::Authentication(Authentication::SaslFinal(_)) => {
            Err(Trouble::Other("the server's proof of knowing the password is wrong".into()))
        }
        _ => Err(Trouble::Other("the server's questions come out of order".into())),
    }
}

/// Cancels what a session runs; the server answers nothing and closes.
pub(crate) fn cancel(session: &Session, talk: &mut Conversation) -> Result<(), Trouble> {
    let startup = Startup::Cancel {
        process_id: session.connection_id as u32,
        secret: session.cancel_key.clone().into(),
    };
    begin(talk, &startup)?;
    talk.flush()
}
