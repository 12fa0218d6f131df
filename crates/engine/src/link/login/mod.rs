//! Opening a connection: connecting, TLS, authentication, the set-up statements. Blocking, within a time-out;
//! for helper threads.

mod conversation;
mod mysql;
mod postgresql;
mod scram;
mod tls;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use conversation::Conversation;
use rsa::RsaPublicKey;
use rustls::ClientConfig;
use scram::SaltedPasswords;

use super::speech::{Answer, Link};
use super::{Endpoint, Login, OpenError, Opened, Protocol, Session};

/// How one run logs in, and what its logins learn for the next one: TLS configuration, addresses, salted
/// passwords, the servers' RSA keys.
pub struct Logins {
    login: Login,
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    salted: SaltedPasswords,
    addresses: Mutex<HashMap<(String, u16), Vec<SocketAddr>>>,
    rsa_keys: Mutex<HashMap<String, RsaPublicKey>>,
}

impl Logins {
    /// Nothing is known yet.
    pub fn new(login: Login) -> Self {
        Self {
            login,
            tls: OnceLock::new(),
            salted: SaltedPasswords::default(),
            addresses: Mutex::default(),
            rsa_keys: Mutex::default(),
        }
    }

    /// Connects, logs in and runs the set-up statements; the connection is non-blocking then.
    ///
    /// # Errors
    /// One sentence without credentials: nothing listens, the login was refused, a set-up statement failed.
    pub fn open(&self, endpoint: &Endpoint) -> Result<Link, OpenError> {
        let mut scratch = vec![0; SET_UP_BYTES];
        let (deadline, mut link) = self.logged_in(endpoint)?;
        for sql in &self.login.setup {
            set_up(&mut link, sql, deadline, &mut scratch).map_err(|message| {
                OpenError::sentence(format!("the set-up statement {sql:?} failed: {message}"))
            })?;
        }
        link.go_nonblocking().map_err(|error| OpenError::sentence(format!("{endpoint}: {error}")))?;
        Ok(link)
    }

    fn logged_in(&self, endpoint: &Endpoint) -> Result<(Instant, Link), OpenError> {
        let mut talk = self.connect(endpoint)?;
        let protocol = self.login.protocol;
        let session = match protocol {
            Protocol::MySql => mysql::log_in(self, endpoint, &mut talk),
            Protocol::PostgreSql => postgresql::log_in(self, endpoint, &mut talk),
        }
        .map_err(|trouble| trouble.told(&self.login, endpoint))?;
        let (deadline, socket) = talk.into_socket().map_err(|trouble| trouble.told(&self.login, endpoint))?;
        Ok((deadline, Link::new(Opened { socket, session }, protocol)))
    }

    /// Cancels what a session runs, over a connection of its own.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn cancel(&self, endpoint: &Endpoint, session: &Session) -> Result<(), OpenError> {
        match self.login.protocol {
            Protocol::MySql => {
                let kill = format!("{} {}", self.login.cancel, session.connection_id);
                let (deadline, mut link) = self.logged_in(endpoint)?;
                set_up(&mut link, &kill, deadline, &mut vec![0; SET_UP_BYTES]).map_err(OpenError::sentence)
            }
            Protocol::PostgreSql => {
                let mut talk = self.connect(endpoint)?;
                postgresql::cancel(session, &mut talk).map_err(|trouble| trouble.told(&self.login, endpoint))
            }
        }
    }

    fn connect(&self, endpoint: &Endpoint) -> Result<Conversation, OpenError> {
        let deadline = Instant::now() + self.login.timeout();
        let result = if endpoint.socket.is_empty() {
            self.tcp(endpoint).and_then(|stream| Conversation::tcp(stream, deadline))
        } else {
            UnixStream::connect(&endpoint.socket).and_then(|stream| Conversation::unix(stream, deadline))
        };
        result.map_err(|error| Trouble::Io(error).told(&self.login, endpoint))
    }

    /// To the first address that answers. Names are looked up once, and again when none of a name's addresses
    /// answers any more.
    fn tcp(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        let place = (endpoint.host.clone(), endpoint.port);
        let known = self.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        let addresses = match known {
            Some(addresses) => addresses,
            None => {
                let found: Vec<SocketAddr> =
                    (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?.collect();
                let mut kept = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
                kept.insert(place.clone(), found.clone());
                found
            }
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.login.timeout()) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
        Err(last)
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, Trouble> {
        self.tls.get_or_init(|| tls::config(&self.login)).clone().map_err(Trouble::Other)
    }

    fn rsa_key(&self, place: &str) -> Option<RsaPublicKey> {
        self.rsa_keys.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    fn keep_rsa_key(&self, place: String, key: RsaPublicKey) {
        self.rsa_keys.lock().unwrap_or_else(PoisonError::into_inner).insert(place, key);
    }

    fn forget_rsa_key(&self, place: &str) {
        self.rsa_keys.lock().unwrap_or_else(PoisonError::into_inner).remove(place);
    }
}

/// Room for a set-up statement's answer.
const SET_UP_BYTES: usize = 16 << 10;

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
            Answer::Prepared | Answer::NotPreparable(_) | Answer::Pipeline(_) => {
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
