//! The listeners, and the threads behind them: an event loop for the scripted server, a thread for each
//! connection of a proxy.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::event_loop::EventLoop;
use crate::link::Listener;
use crate::mysql_session::MysqlSession;
use crate::options::{Options, Protocol};
use crate::postgresql_session::PostgresqlSession;
use crate::recorder::Recorder;
use crate::script::Script;
use crate::session::Conversation;
use crate::{mysql_proxy, postgresql_proxy};

/// Clients that wait to be accepted; the kernel cuts it to net.core.somaxconn.
const BACKLOG: i32 = 65_535;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
}

/// A server that listens on 127.0.0.1, and on a unix socket where one is asked for, until its process ends.
#[derive(Debug, Clone)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens and serves on threads of its own. Error: one sentence; a port in use, a script that cannot
    /// be read, a record that cannot be written.
    pub fn start(options: Options) -> Result<Self, String> {
        let script = options.script.as_deref().map_or_else(|| Ok(Script::default()), Script::read)?;
        Self::start_scripted(options, script)
    }

    /// As `start`, with a script that is already read.
    pub fn start_scripted(options: Options, script: Script) -> Result<Self, String> {
        if options.proxy.is_some() {
            script.check_for_proxy()?;
            if options.socket.is_some() {
                return Err("--proxy listens on a port, not on a unix socket".to_owned());
            }
        }
        raise_open_files();
        let recorder = Recorder::new(options.record.as_deref())
            .map_err(|error| format!("the record cannot be written: {error}"))?;
        let listener = TcpListener::bind(("127.0.0.1", options.port))
            .map_err(|error| format!("port {} on 127.0.0.1: {error}", options.port))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let socket = options.socket.as_deref().map(bind_socket).transpose()?;
        let shared = Arc::new(Shared { options, script, recorder });
        let server = Self { address, shared: Arc::clone(&shared) };
        if let Some(upstream) = shared.options.proxy.clone() {
            let accepting = server.clone();
            thread::spawn(move || accepting.accept(&listener, &upstream));
            return Ok(server);
        }
        let trouble = |error: io::Error| format!("the server cannot listen: {error}");
        lengthen(&listener).and_then(|()| listener.set_nonblocking(true)).map_err(trouble)?;
        let mut listeners = vec![Listener::Tcp(listener)];
        if let Some(socket) = socket {
            lengthen(&socket).and_then(|()| socket.set_nonblocking(true)).map_err(trouble)?;
            listeners.push(Listener::Unix(socket));
        }
        thread::Builder::new()
            .name("fakeserver".to_owned())
            .spawn(move || match shared.options.protocol {
                Protocol::Mysql => serve::<MysqlSession>(&shared, listeners),
                Protocol::Postgresql => serve::<PostgresqlSession>(&shared, listeners),
            })
            .map_err(|error| format!("the server gets no thread: {error}"))?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The unix socket on which it listens, too.
    pub fn socket(&self) -> Option<&Path> {
        self.shared.options.socket.as_deref()
    }

    /// `statements N connections M` so far.
    pub fn summary(&self) -> String {
        self.shared.recorder.summary()
    }

    fn accept(&self, listener: &TcpListener, upstream: &str) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            let (shared, upstream) = (Arc::clone(&self.shared), upstream.to_owned());
            let connection = shared.recorder.connection();
            let spawned = thread::Builder::new().stack_size(256 << 10).spawn(move || {
                match pass(stream, &upstream, &shared, connection) {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        eprintln!("fakeserver: connection {connection}: {error}");
                    }
                    _ => {}
                }
            });
            if let Err(error) = spawned {
                eprintln!("fakeserver: connection {connection} gets no thread: {error}");
            }
        }
    }
}

fn serve<C: Conversation>(shared: &Shared, listeners: Vec<Listener>) {
    let ended = EventLoop::<C>::new(shared, listeners).and_then(|mut events| events.run());
    if let Err(error) = ended {
        eprintln!("fakeserver: {error}");
    }
}

fn pass(stream: TcpStream, upstream: &str, shared: &Arc<Shared>, connection: u64) -> io::Result<()> {
    match shared.options.protocol {
        Protocol::Mysql => mysql_proxy::serve(stream, upstream, shared, connection),
        Protocol::Postgresql => postgresql_proxy::serve(stream, upstream, shared, connection),
    }
}

/// As many connections as the machine allows this process; where it does not, fewer.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// std's own backlog is 128: ten thousand clients that come at once would wait for retransmissions.
fn lengthen(listener: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(listener, BACKLOG)?)
}

fn bind_socket(path: &Path) -> Result<UnixListener, String> {
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        // Left by a server that is gone.
        let _ = std::fs::remove_file(path);
    }
    UnixListener::bind(path).map_err(|error| format!("unix socket {}: {error}", path.display()))
}
