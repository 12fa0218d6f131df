//! What a client sees on the wire, byte for byte, when a connection or an answer goes wrong.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use dbdyno_wire::MESSAGE_CEILING_BYTES;
use dbdyno_wire::mysql::{self, Command, ErrPacket, Handshake, HandshakeResponse, OkPacket, capability};
use dbdyno_wire::postgresql::{Authentication, BackendMessage, FrontendMessage, Startup, error_field};
use fakeserver::{Options, Protocol, Script, Server};

const QUIET: Duration = Duration::from_millis(300);

fn server(protocol: Protocol, script: &str) -> Server {
    Server::start_scripted(Options::new(protocol), Script::parse(script).unwrap()).unwrap()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// All bytes up to the end, or the error that ended the connection.
fn rest(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map(|_| bytes)
}

/// Whether nothing arrives for a while, the connection staying open.
fn is_silent(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(QUIET)).unwrap();
    let error = stream.read(&mut [0]).map(|_| ()).unwrap_err();
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

struct MysqlClient {
    stream: TcpStream,
    buffer: BytesMut,
}

impl MysqlClient {
    fn receive(&mut self) -> io::Result<Bytes> {
        loop {
            if let Some(packet) =
                mysql::parse(&mut self.buffer, MESSAGE_CEILING_BYTES).map_err(io::Error::other)?
            {
                return Ok(packet.payload);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => self.buffer.extend_from_slice(&chunk[..read]),
            }
        }
    }

    fn send(&mut self, mut sequence: u8, payload: &[u8]) {
        let mut out = BytesMut::new();
        mysql::write(&mut out, &mut sequence, payload);
        self.stream.write_all(&out).unwrap();
    }

    /// Up to the server's answer to the login.
    fn log_in(server: &Server) -> io::Result<(Self, Bytes)> {
        let mut client = Self { stream: connect(server), buffer: BytesMut::new() };
        let greeting = Handshake::parse(&client.receive()?).unwrap();
        let answer = HandshakeResponse {
            capabilities: greeting.capabilities & !capability::CONNECT_ATTRS & !capability::CONNECT_WITH_DB,
            max_packet: 1 << 24,
            collation: 45,
            user: "u".into(),
            auth: Bytes::new(),
            database: None,
            plugin: Some(greeting.plugin),
            attributes: vec![],
        };
        client.send(1, &answer.encode());
        let payload = client.receive()?;
        Ok((client, payload))
    }

    /// Logged in, a query sent.
    fn query(server: &Server, sql: &'static str) -> Self {
        let (mut client, answer) = Self::log_in(server).unwrap();
        OkPacket::parse(&answer).unwrap();
        client.send(0, &Command::Query(Bytes::from(sql)).encode());
        client
    }
}

/// A PostgreSQL connection with the startup message sent.
fn postgresql_start(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    let mut out = BytesMut::new();
    Startup::version_3(vec![("user".into(), "u".into())]).write(&mut out);
    stream.write_all(&out).unwrap();
    stream
}

fn backend_messages(stream: &mut TcpStream, until: fn(&BackendMessage) -> bool) -> Vec<BackendMessage> {
    let (mut buffer, mut messages) = (BytesMut::new(), Vec::new());
    loop {
        while let Some(message) = BackendMessage::parse(&mut buffer, MESSAGE_CEILING_BYTES).unwrap() {
            let done = until(&message);
            messages.push(message);
            if done {
                return messages;
            }
        }
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "ended after {messages:?}");
        buffer.extend_from_slice(&chunk[..read]);
    }
}

fn is_ready(message: &BackendMessage) -> bool {
    matches!(message, BackendMessage::ReadyForQuery(_))
}

fn postgresql_query(server: &Server, sql: &str) -> TcpStream {
    let mut stream = postgresql_start(server);
    let login = backend_messages(&mut stream, is_ready);
    assert_eq!(login[0], BackendMessage::Authentication(Authentication::Ok));
    let mut out = BytesMut::new();
    FrontendMessage::Query(sql.into()).write(&mut out);
    stream.write_all(&out).unwrap();
    stream
}

#[test]
fn a_refused_connection_is_reset_before_a_byte() {
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        let server = server(protocol, r#"{"connect": {"fault": "refuse"}}"#);
        assert_eq!(rest(&mut connect(&server)).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_reset_connection_breaks_in_the_middle_of_the_login() {
    let mysql = server(Protocol::Mysql, r#"{"connect": {"fault": "reset"}}"#);
    assert_eq!(MysqlClient::log_in(&mysql).map(|_| ()).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let postgresql = server(Protocol::Postgresql, r#"{"connect": {"fault": "reset"}}"#);
    assert_eq!(rest(&mut postgresql_start(&postgresql)).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_silent_server_accepts_and_says_nothing() {
    let mysql = server(Protocol::Mysql, r#"{"connect": {"fault": "silence"}}"#);
    assert!(is_silent(&mut connect(&mysql)));
    let postgresql = server(Protocol::Postgresql, r#"{"connect": {"fault": "silence"}}"#);
    assert!(is_silent(&mut postgresql_start(&postgresql)));
}

#[test]
fn an_error_comes_instead_of_the_login() {
    let full = server(Protocol::Mysql, r#"{"connect": {"fault": "error", "nth": 1}}"#);
    let mut client = MysqlClient { stream: connect(&full), buffer: BytesMut::new() };
    assert_eq!(ErrPacket::parse(&client.receive().unwrap()).unwrap().code, 1040);
    assert!(MysqlClient::log_in(&full).is_ok());

    let denied = server(
        Protocol::Mysql,
        r#"{"connect": {"fault": "error", "error": {"code": 1045, "message": "Access denied"}}}"#,
    );
    let (_, answer) = MysqlClient::log_in(&denied).unwrap();
    let error = ErrPacket::parse(&answer).unwrap();
    assert_eq!(
        (error.code, error.sqlstate.as_str(), error.message.as_str()),
        (1045, "28000", "Access denied")
    );

    let full = server(Protocol::Postgresql, r#"{"connect": {"fault": "error"}}"#);
    let mut stream = postgresql_start(&full);
    let messages =
        backend_messages(&mut stream, |message| matches!(message, BackendMessage::ErrorResponse(_)));
    let [BackendMessage::ErrorResponse(fields)] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((error_field(fields, b'S'), error_field(fields, b'C')), (Some("FATAL"), Some("53300")));
    assert_eq!(rest(&mut stream).unwrap(), b"");
}

#[test]
fn a_late_connection_is_late() {
    let server = server(Protocol::Mysql, r#"{"connect": {"delay_ms": 200}}"#);
    let began = Instant::now();
    MysqlClient::log_in(&server).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn answers_break_as_the_script_says() {
    let script = |fault: &str| format!(r#"{{"rules": [{{"match": "SELECT", "fault": "{fault}"}}]}}"#);
    let whole_mysql = {
        let mut client = MysqlClient::query(&server(Protocol::Mysql, "{}"), "SELECT 1");
        std::thread::sleep(QUIET);
        let mut bytes = [0; 4096];
        let read = client.stream.read(&mut bytes).unwrap();
        bytes[..read].to_vec()
    };
    let whole_postgresql = {
        let mut stream = postgresql_query(&server(Protocol::Postgresql, "{}"), "SELECT 1");
        std::thread::sleep(QUIET);
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        bytes[..read].to_vec()
    };
    for (protocol, whole) in [(Protocol::Mysql, whole_mysql), (Protocol::Postgresql, whole_postgresql)] {
        let asked = |fault: &str| {
            let server = server(protocol, &script(fault));
            match protocol {
                Protocol::Mysql => MysqlClient::query(&server, "SELECT 1").stream,
                Protocol::Postgresql => postgresql_query(&server, "SELECT 1"),
            }
        };
        assert_eq!(rest(&mut asked("reset")).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(is_silent(&mut asked("silence")));
        assert_eq!(rest(&mut asked("half_packet")).unwrap(), whole[..whole.len() / 2]);
        let garbage = rest(&mut asked("garbage")).unwrap();
        assert!(garbage.len() == 64 && !whole.starts_with(&garbage[..8]));
        let wrong = rest(&mut asked("wrong_length")).unwrap();
        assert!(wrong.len() == whole.len() && wrong != whole);

        let mut slow = asked("slow_bytes");
        let began = Instant::now();
        let mut bytes = vec![0; whole.len()];
        slow.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, whole);
        assert!(began.elapsed() >= Duration::from_millis(whole.len() as u64));
    }
}

#[test]
fn statements_and_connections_are_counted() {
    let server = server(Protocol::Mysql, "{}");
    let mut client = MysqlClient::query(&server, "SELECT 1; SELECT 2");
    client.receive().unwrap();
    MysqlClient::log_in(&server).unwrap();
    assert_eq!(server.summary(), "statements 2 connections 2");
}

#[test]
fn wrong_words_get_a_sentence() {
    let parse = |words: &[&str]| Options::parse(words.iter().map(|word| (*word).to_owned())).map(|_| ());
    assert_eq!(parse(&[]), Err("--protocol mysql or --protocol postgresql is needed".into()));
    assert_eq!(
        parse(&["--protocol", "oracle"]),
        Err("--protocol must be mysql or postgresql, not oracle".into())
    );
    assert_eq!(parse(&["--protocol=mysql", "--port", "x"]), Err("--port must be 0 to 65535, not x".into()));
    assert_eq!(
        parse(&["--protocol=mysql", "--prot=1"]),
        Err("unknown option --prot; --help lists them".into())
    );
    assert_eq!(parse(&["--protocol"]), Err("--protocol needs a value".into()));
}
