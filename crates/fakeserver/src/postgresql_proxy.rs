//! Between a PostgreSQL client and a real server: bytes pass as they are, statements are recorded.
//! Requests for TLS are answered with no.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use bytes::BytesMut;
use dbdyno_wire::postgresql::{self, BackendMessage, FrontendMessage, Startup, Value};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::postgresql_session::{decode_values, record};
use crate::server::Shared;
use crate::sql;

const READ_BYTES: usize = 64 << 10;

struct Prepared {
    sql: String,
    /// From Parse, then from the server's description: 0 where neither has said.
    types: Vec<u32>,
}

/// What the server still owes that matters here.
enum Owed {
    /// The description of a statement.
    Description(String),
    /// The end of a pipeline's part.
    Ready,
}

#[derive(Default)]
struct State {
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, (String, Vec<Value>)>,
    owed: VecDeque<Owed>,
}

#[derive(Default)]
struct Conversation(Mutex<State>);

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

pub(crate) fn serve(
    mut client: TcpStream,
    upstream: &str,
    shared: &Arc<Shared>,
    connection: u64,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut pending = BytesMut::new();
    let mut chunk = vec![0; READ_BYTES];
    let start = loop {
        match postgresql::parse_startup(&mut pending).map_err(invalid)? {
            Some(Startup::Tls | Startup::Gss) => client.write_all(b"N")?,
            Some(start) => break start,
            None => {
                let read = client.read(&mut chunk)?;
                if read == 0 {
                    return Ok(());
                }
                pending.extend_from_slice(&chunk[..read]);
            }
        }
    };
    let mut server = TcpStream::connect(upstream)?;
    server.set_nodelay(true)?;
    let mut out = BytesMut::new();
    start.write(&mut out);
    server.write_all(&out)?;
    if matches!(start, Startup::Cancel { .. }) {
        return Ok(());
    }
    let conversation = Arc::new(Conversation::default());
    let answers = {
        let (client, server, conversation) =
            (client.try_clone()?, server.try_clone()?, Arc::clone(&conversation));
        thread::spawn(move || {
            let ended = pass_answers(&server, &client, &conversation);
            let _ = client.shutdown(Shutdown::Both);
            ended
        })
    };
    let ended = pass_messages(&client, &server, pending, &conversation, shared, connection);
    let _ = server.shutdown(Shutdown::Write);
    let answered = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    ended.and(answered)
}

fn pass_messages(
    mut client: &TcpStream,
    mut server: &TcpStream,
    mut pending: BytesMut,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    let mut unsent = pending.to_vec();
    loop {
        while let Some(message) =
            FrontendMessage::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)?
        {
            note(message, conversation, shared, connection)?;
        }
        // Only now may the server see them: an answer must never overtake its message.
        server.write_all(&unsent)?;
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        unsent = chunk[..read].to_vec();
        pending.extend_from_slice(&unsent);
    }
}

fn note(
    message: FrontendMessage,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    use FrontendMessage as M;
    let mut state = conversation.lock();
    match message {
        M::Query(text) => {
            for statement in sql::statements(&text) {
                shared.recorder.statement(connection, statement, Vec::new());
            }
            state.owed.push_back(Owed::Ready);
        }
        M::Parse { name, sql, types } => {
            state.statements.insert(name, Prepared { sql, types });
        }
        M::Bind { portal, statement, formats, values, .. } => {
            if let Some(prepared) = state.statements.get(&statement) {
                let values = decode_values(&prepared.types, &formats, &values).map_err(invalid)?;
                let bound = (prepared.sql.clone(), values);
                state.portals.insert(portal, bound);
            }
        }
        M::Execute { portal, .. } => {
            if let Some((sql, values)) = state.portals.get(&portal) {
                record(&shared.recorder, connection, sql, values);
            }
        }
        M::Describe { kind: b'S', name } => state.owed.push_back(Owed::Description(name)),
        M::Close { kind: b'S', name } => {
            state.statements.remove(&name);
        }
        M::Sync => state.owed.push_back(Owed::Ready),
        _ => {}
    }
    Ok(())
}

fn pass_answers(
    mut server: &TcpStream,
    mut client: &TcpStream,
    conversation: &Conversation,
) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    let mut pending = BytesMut::new();
    loop {
        let read = server.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        while let Some(message) =
            BackendMessage::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)?
        {
            let mut state = conversation.lock();
            match message {
                BackendMessage::ParameterDescription(types) => {
                    if let Some(Owed::Description(name)) = state.owed.pop_front() {
                        if let Some(prepared) = state.statements.get_mut(&name) {
                            prepared.types = types;
                        }
                    }
                }
                // Descriptions that an error skipped never come; the login's own has nothing before it.
                BackendMessage::ReadyForQuery(_) => {
                    while let Some(Owed::Description(_)) = state.owed.pop_front() {}
                }
                _ => {}
            }
        }
        client.write_all(&chunk[..read])?;
    }
}
