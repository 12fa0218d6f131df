//! The listener: a thread a connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::link::Link;
use crate::options::{Options, Protocol};
use crate::recorder::Recorder;
use crate::script::Script;
use crate::{mysql_proxy, mysql_session, postgresql_proxy, postgresql_session};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) script: Script,
    pub(crate) recorder: Recorder,
}

/// A server that listens on 127.0.0.1 until its process ends.
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
        }
        let recorder = Recorder::new(options.record.as_deref())
            .map_err(|error| format!("the record cannot be written: {error}"))?;
        let listener = TcpListener::bind(("127.0.0.1", options.port))
            .map_err(|error| format!("port {} on 127.0.0.1: {error}", options.port))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared { options, script, recorder });
        let server = Self { address, shared };
        let accepting = server.clone();
        thread::spawn(move || accepting.accept(&listener));
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `statements N connections M` so far.
    pub fn summary(&self) -> String {
        self.shared.recorder.summary()
    }

    fn accept(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            let shared = Arc::clone(&self.shared);
            let connection = shared.recorder.connection();
            let spawned = thread::Builder::new().stack_size(256 << 10).spawn(move || {
                match serve(stream, &shared, connection) {
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

fn serve(stream: TcpStream, shared: &Arc<Shared>, connection: u64) -> io::Result<()> {
    match (shared.options.protocol, shared.options.proxy.as_deref()) {
        (Protocol::Mysql, Some(upstream)) => mysql_proxy::serve(stream, upstream, shared, connection),
        (Protocol::Postgresql, Some(upstream)) => {
            postgresql_proxy::serve(stream, upstream, shared, connection)
        }
        (Protocol::Mysql, None) => mysql_session::serve(Link::new(stream)?, shared, connection),
        (Protocol::Postgresql, None) => postgresql_session::serve(Link::new(stream)?, shared, connection),
    }
}
