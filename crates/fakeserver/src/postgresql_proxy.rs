//! Between a PostgreSQL client and a real server: messages pass as they are, statements are recorded, rules
//! make some of them fail. Requests for TLS are answered with no.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::postgresql::{self, BackendMessage, FrontendMessage, Startup, Value};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::passage::{self, Passage, Verdict};
use crate::postgresql_answer::{decode_values, record};
use crate::script::ErrorSpec;
use crate::server::Shared;
use crate::sql;

const READ_BYTES: usize = 64 << 10;
/// A statement and a portal that nobody has: sent instead of one that is to fail, so that the server
/// itself aborts the transaction and skips the rest of the pipeline. Its error is then replaced.
const NO_STATEMENT: &str = "SELECT fakeserver_makes_this_statement_fail";
const NO_PORTAL: &str = "fakeserver makes this statement fail";

struct Prepared {
    sql: String,
    /// From Parse, then from the server's description: 0 where neither has said.
    types: Vec<u32>,
}

/// What the server still owes that matters here.
enum Owed {
    /// The description of a statement.
    Description(String),
    /// An error whose contents are replaced.
    Failure(ErrorSpec),
    /// A result that becomes a reset.
    Reset,
    /// The end of a pipeline's part.
    Ready,
}

/// What the server gets of a message.
enum Onward {
    Pass,
    Replace(FrontendMessage),
    Reset,
    Silence,
}

/// What the client gets of a message.
enum Instead {
    Same,
    Message(BackendMessage),
    Reset,
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
    if !passage::receive(&client, &shared.script, connection)? {
        return Ok(());
    }
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
    let mut out = BytesMut::new();
    start.write(&mut out);
    server.write_all(&out)?;
    if matches!(start, Startup::Cancel { .. }) {
        return Ok(());
    }
    let passage = Arc::new(Passage::new(client, server)?);
    let conversation = Arc::new(Conversation::default());
    let answers = {
        let (passage, conversation) = (Arc::clone(&passage), Arc::clone(&conversation));
        thread::spawn(move || {
            let ended = pass_answers(&passage, &conversation);
            passage.server_closed();
            ended
        })
    };
    let ended = pass_messages(&passage, pending, &conversation, shared, connection);
    passage.client_closed();
    let answered = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    ended.and(answered)
}

/// The bytes of the next message when they are all there; parsing takes as many.
fn whole_message(pending: &BytesMut) -> Option<Bytes> {
    let header: [u8; 4] = pending.get(1..5)?.try_into().ok()?;
    let length = usize::try_from(u32::from_be_bytes(header)).ok()?.checked_add(1)?;
    pending.get(..length).map(Bytes::copy_from_slice)
}

fn pass_messages(
    passage: &Passage,
    mut pending: BytesMut,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    let (mut client, mut server) = (&passage.client, &passage.server);
    let mut chunk = vec![0; READ_BYTES];
    let mut out = BytesMut::new();
    loop {
        out.clear();
        loop {
            let raw = whole_message(&pending).unwrap_or_default();
            let message = FrontendMessage::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)?;
            let Some(message) = message else { break };
            // What the server will answer is queued before it sees the message.
            match note(message, conversation, shared, connection)? {
                Onward::Pass => out.extend_from_slice(&raw),
                Onward::Replace(message) => message.write(&mut out),
                Onward::Reset => return passage.reset(),
                Onward::Silence => return passage::discard(client),
            }
        }
        server.write_all(&out)?;
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
    }
}

/// Records a statement, queues what matters of its answer, and says what the server gets of it.
fn note(
    message: FrontendMessage,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<Onward> {
    use FrontendMessage as M;
    let mut state = conversation.lock();
    let mut onward = Onward::Pass;
    match message {
        M::Query(text) => {
            for statement in sql::statements(&text) {
                shared.recorder.statement(connection, statement, Vec::new());
            }
            let failing = M::Query(NO_STATEMENT.to_owned());
            onward = execution(&mut state, shared, text.trim(), failing);
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
                let sql = sql.clone();
                let failing = M::Execute { portal: NO_PORTAL.to_owned(), max_rows: 0 };
                onward = execution(&mut state, shared, sql.trim(), failing);
            }
        }
        M::Describe { kind: b'S', name } => state.owed.push_back(Owed::Description(name)),
        M::Close { kind: b'S', name } => {
            state.statements.remove(&name);
        }
        M::Sync => state.owed.push_back(Owed::Ready),
        _ => {}
    }
    Ok(onward)
}

/// What a rule does to a statement.
fn execution(state: &mut State, shared: &Shared, sql: &str, failing: FrontendMessage) -> Onward {
    match passage::verdict(&shared.script, sql) {
        Verdict::Pass => Onward::Pass,
        Verdict::ResetAtAnswer => {
            state.owed.push_back(Owed::Reset);
            Onward::Pass
        }
        Verdict::Fail(error) => {
            state.owed.push_back(Owed::Failure(error));
            Onward::Replace(failing)
        }
        Verdict::Reset => Onward::Reset,
        Verdict::Silence => Onward::Silence,
    }
}

fn pass_answers(passage: &Passage, conversation: &Conversation) -> io::Result<()> {
    let (mut server, mut client) = (&passage.server, &passage.client);
    let mut chunk = vec![0; READ_BYTES];
    let (mut pending, mut out) = (BytesMut::new(), BytesMut::new());
    loop {
        let read = server.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        out.clear();
        loop {
            let raw = whole_message(&pending).unwrap_or_default();
            let message = BackendMessage::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)?;
            let Some(message) = message else { break };
            match answer(message, &mut conversation.lock()) {
                Instead::Same => out.extend_from_slice(&raw),
                Instead::Message(message) => message.write(&mut out),
                Instead::Reset => return passage.reset(),
            }
        }
        client.write_all(&out)?;
    }
}

fn answer(message: BackendMessage, state: &mut State) -> Instead {
    match (message, state.owed.front()) {
        (BackendMessage::ParameterDescription(types), Some(Owed::Description(name))) => {
            if let Some(prepared) = state.statements.get_mut(name) {
                prepared.types = types;
            }
            state.owed.pop_front();
        }
        // An error of the server's own before it would have left the scripted one behind the others.
        (BackendMessage::ErrorResponse(_), Some(Owed::Failure(error))) => {
            let error = BackendMessage::error("ERROR", error.sqlstate(), error.message());
            state.owed.pop_front();
            return Instead::Message(error);
        }
        (BackendMessage::CommandComplete(_), Some(Owed::Reset)) => return Instead::Reset,
        // What an error skipped never comes; the login's own has nothing before it.
        (BackendMessage::ReadyForQuery(_), _) => {
            while !matches!(state.owed.pop_front(), None | Some(Owed::Ready)) {}
        }
        _ => {}
    }
    Instead::Same
}
