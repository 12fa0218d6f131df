//! Opening a connection: connecting, TLS, authentication, the set-up statements. Blocking, within a time-out;
//! for helper threads.

mod conversation;
mod mysql;
mod postgresql;
mod tls;

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use conversation::Conversation;

use super::speech::{Answer, Link};
use super::{Endpoint, Login, OpenError, Opened, Protocol, Session};

/// Connects, logs in and runs the set-up statements; the connection is non-blocking then.
///
/// # Errors
/// One sentence without credentials: nothing listens, the login was refused, a set-up statement failed.
pub fn open(login: &Login, endpoint: &Endpoint) -> Result<Link, OpenError> {
    let mut talk = connect(login, endpoint)?;
    let session = match login.protocol {
        Protocol::MySql => mysql::log_in(login, endpoint, &mut talk),
        Protocol::PostgreSql => postgresql::log_in(login, endpoint, &mut talk),
    }
    .map_err(|trouble| trouble.told(login, endpoint))?;
    let (deadline, socket) = talk.into_socket().map_err(|trouble| trouble.told(login, endpoint))?;
    let mut link = Link::new(Opened { socket, session }, login.protocol);
    let mut scratch = vec![0; 64 << 10];
    for sql in &login.setup {
        set_up(&mut link, sql, deadline, &mut scratch).map_err(|message| {
            OpenError::sentence(format!("the set-up statement {sql:?} failed: {message}"))
        })?;
    }
    link.go_nonblocking().map_err(|error| OpenError::sentence(format!("{endpoint}: {error}")))?;
    Ok(link)
}

/// Cancels what a session runs, over a connection of its own.
///
/// # Errors
/// The server cannot be reached.
pub fn cancel(login: &Login, endpoint: &Endpoint, session: &Session) -> Result<(), OpenError> {
    match login.protocol {
        Protocol::MySql => {
            let kill =
                Login { setup: vec![format!("{} {}", login.cancel, session.connection_id)], ..login.clone() };
            open(&kill, endpoint).map(|_| ())
        }
        Protocol::PostgreSql => {
            let mut talk = connect(login, endpoint)?;
            postgresql::cancel(session, &mut talk).map_err(|trouble| trouble.told(login, endpoint))
        }
    }
}

fn connect(login: &Login, endpoint: &Endpoint) -> Result<Conversation, OpenError> {
    let deadline = Instant::now() + login.timeout();
    let result = if endpoint.socket.is_empty() {
        tcp(login, endpoint).and_then(|stream| Conversation::tcp(stream, deadline))
    } else {
        UnixStream::connect(&endpoint.socket).and_then(|stream| Conversation::unix(stream, deadline))
    };
    result.map_err(|error| Trouble::Io(error).told(login, endpoint))
}

fn tcp(login: &Login, endpoint: &Endpoint) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in (endpoint.host.as_str(), endpoint.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, login.timeout()) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn set_up(link: &mut Link, sql: &str, deadline: Instant, scratch: &mut [u8]) -> Result<(), String> {
    link.simple(sql);
    link.flush().map_err(|error| error.to_string())?;
    loop {
        match link.receive(scratch, 0, None).0 {
            Answer::Pending if Instant::now() < deadline => {}
            Answer::Pending => return Err("the server did not answer in time".into()),
            Answer::Done { .. } => return Ok(()),
            Answer::Failed(error) => return Err(format!("{}: {}", error.code, error.message)),
            Answer::Lost(why) => return Err(why),
            Answer::Prepared | Answer::NotPreparable | Answer::Pipeline(_) => {
                return Err("an answer out of place".into());
            }
        }
    }
}

/// What went wrong while logging in.
#[derive(Debug)]
pub(crate) enum Trouble {
    Io(io::Error),
    Wire(dbdyno_wire::Error),
    /// The server's own refusal.
    Refused {
        code: String,
        message: String,
    },
    /// Anything else, as a clause.
    Other(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<dbdyno_wire::Error> for Trouble {
    fn from(error: dbdyno_wire::Error) -> Self {
        Self::Wire(error)
    }
}

impl Trouble {
    fn told(self, login: &Login, endpoint: &Endpoint) -> OpenError {
        let message = match self {
            Self::Io(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused if endpoint.socket.is_empty() => {
                    format!("nothing listens at {endpoint}; start the server or correct host and port")
                }
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound if !endpoint.socket.is_empty() => {
                    format!("no server listens at the socket {endpoint}; start it or correct the path")
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
                    "{endpoint} did not answer within {} s; a firewall, a stopped server, or another service",
                    login.timeout_s
                ),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    format!("{endpoint} closed the connection during the login; is it this kind of database?")
                }
                _ => format!("{endpoint} cannot be reached: {error}"),
            },
            Self::Wire(error) => format!(
                "{endpoint} does not speak the protocol expected there; correct host and port, or the scheme ({error})"
            ),
            Self::Refused { code, message } => {
                return OpenError { code, message, endpoint: endpoint.to_string() };
            }
            Self::Other(clause) => format!("{endpoint}: {clause}"),
        };
        OpenError::sentence(message)
    }
}
