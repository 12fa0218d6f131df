//! Between a MySQL client and a real server: packets pass as they are, statements are recorded, rules make
//! some of them fail.
//!
//! The greeting loses the capabilities that would hide the statements (TLS, compression) or change their
//! encoding (query attributes, MariaDB's extensions).

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::{
    self, Command, ErrPacket, Event, Handshake, HandshakeResponse, ParameterType, ResponseReader, Shape,
    capability,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::mysql_answer::record;
use crate::passage::{self, Passage, Verdict};
use crate::server::Shared;
use crate::sql;

const READ_BYTES: usize = 64 << 10;
/// How long an execution of "the statement prepared last" waits for the server's answer to its preparation.
const PREPARATION: Duration = Duration::from_secs(10);
const HIDDEN: u32 = capability::SSL
    | capability::COMPRESS
    | capability::ZSTD_COMPRESSION
    | capability::QUERY_ATTRIBUTES
    | capability::OPTIONAL_RESULTSET_METADATA;

struct Prepared {
    sql: String,
    parameters: usize,
    types: Vec<ParameterType>,
    long_data: HashMap<u16, Bytes>,
}

/// An answer that the server still owes.
struct Owed {
    reader: ResponseReader,
    /// The text that is being prepared.
    preparing: Option<String>,
    /// What the client gets instead.
    instead: Option<Instead>,
}

enum Instead {
    Error(ErrPacket),
    Reset,
}

/// What the server gets of a command.
enum Onward {
    Pass,
    Replace(Command),
    Reset,
    Silence,
}

#[derive(Default)]
struct State {
    logged_in: bool,
    capabilities: u32,
    owed: VecDeque<Owed>,
    statements: HashMap<u32, Prepared>,
    last_prepared: Option<u32>,
}

impl State {
    fn owe(&mut self, shape: Shape, preparing: Option<String>, instead: Option<Instead>) {
        let reader = ResponseReader::new(shape, self.capabilities);
        self.owed.push_back(Owed { reader, preparing, instead });
    }
}

#[derive(Default)]
struct Conversation {
    state: Mutex<State>,
    answered: Condvar,
}

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The last sequence number of a packet whose first is 0: one more for each full chunk.
fn last_sequence(payload: &[u8]) -> u8 {
    (payload.len() / 0xFF_FFFF) as u8
}

pub(crate) fn serve(
    client: TcpStream,
    upstream: &str,
    shared: &Arc<Shared>,
    connection: u64,
) -> io::Result<()> {
    if !passage::receive(&client, &shared.script, connection)? {
        return Ok(());
    }
    let passage = Arc::new(Passage::new(client, TcpStream::connect(upstream)?)?);
    let conversation = Arc::new(Conversation::default());
    let answers = {
        let (passage, conversation) = (Arc::clone(&passage), Arc::clone(&conversation));
        thread::spawn(move || {
            let ended = pass_answers(&passage, &conversation);
            passage.server_closed();
            ended
        })
    };
    let ended = pass_commands(&passage, &conversation, shared, connection);
    passage.client_closed();
    let answered = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    ended.and(answered)
}

fn pass_commands(
    passage: &Passage,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    let (mut client, mut server) = (&passage.client, &passage.server);
    let mut chunk = vec![0; READ_BYTES];
    let (mut pending, mut out) = (BytesMut::new(), BytesMut::new());
    let mut greeted = false;
    loop {
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        while let Some(packet) = mysql::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)? {
            let chunks = last_sequence(&packet.payload);
            let mut payload = packet.payload;
            if !greeted {
                greeted = true;
                let answer = HandshakeResponse::parse(&payload).map_err(invalid)?;
                conversation.lock().capabilities = answer.capabilities;
            } else if conversation.lock().logged_in && packet.sequence == chunks {
                let command = Command::parse(&payload).map_err(invalid)?;
                // The answer is queued before the server sees the command: it cannot come too early.
                match note(&command, conversation, shared, connection)? {
                    Onward::Pass => {}
                    Onward::Replace(command) => payload = Bytes::from(command.encode()),
                    Onward::Reset => return passage.reset(),
                    Onward::Silence => return passage::discard(client),
                }
            }
            out.clear();
            mysql::write(&mut out, &mut packet.sequence.wrapping_sub(chunks), &payload);
            server.write_all(&out)?;
        }
    }
}

/// Records a statement, queues its answer, and says what the server gets of it.
fn note(
    command: &Command,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<Onward> {
    let mut state = conversation.lock();
    match command {
        Command::Query(text) => {
            let text = String::from_utf8_lossy(text);
            for statement in sql::statements(&text) {
                shared.recorder.statement(connection, statement, Vec::new());
            }
            return Ok(execution(state, shared, text.trim()));
        }
        Command::Prepare(text) => {
            state.owe(Shape::Prepare, Some(String::from_utf8_lossy(text).into_owned()), None);
            state.last_prepared = None;
        }
        Command::Execute { statement_id, parameters, .. } => {
            let mut id = *statement_id;
            if id == Command::LAST_PREPARED {
                let (guard, _) = conversation
                    .answered
                    .wait_timeout_while(state, PREPARATION, |state| state.last_prepared.is_none())
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                state = guard;
                id = state.last_prepared.unwrap_or(id);
            }
            if let Some(prepared) = state.statements.get_mut(&id) {
                let long_data = std::mem::take(&mut prepared.long_data);
                let values = mysql::decode_parameters(
                    parameters,
                    prepared.parameters,
                    &mut prepared.types,
                    &long_data,
                )
                .map_err(invalid)?;
                let text = prepared.sql.clone();
                record(&shared.recorder, connection, &text, &values);
                return Ok(execution(state, shared, text.trim()));
            }
            // The server answers an unknown number with an error; there is nothing to record.
            state.owe(Shape::Generic, None, None);
        }
        Command::LongData { statement_id, parameter, data } => {
            if let Some(prepared) = state.statements.get_mut(statement_id) {
                let before = prepared.long_data.remove(parameter).unwrap_or_default();
                prepared.long_data.insert(*parameter, Bytes::from([before, data.clone()].concat()));
            }
        }
        Command::CloseStatement(id) => {
            state.statements.remove(id);
        }
        Command::ResetStatement(id) => {
            if let Some(prepared) = state.statements.get_mut(id) {
                prepared.long_data.clear();
            }
            state.owe(Shape::Generic, None, None);
        }
        Command::ResetConnection => {
            state.statements.clear();
            state.owe(Shape::Generic, None, None);
        }
        Command::ChangeUser(_) => {
            state.statements.clear();
            state.logged_in = false;
        }
        Command::Fetch { .. } => state.owe(Shape::Rows, None, None),
        Command::FieldList(_) => state.owe(Shape::Definitions, None, None),
        Command::Statistics => state.owe(Shape::Line, None, None),
        other if other.has_answer() => state.owe(Shape::Generic, None, None),
        _ => {}
    }
    Ok(Onward::Pass)
}

/// What a rule does to a statement.
fn execution(mut state: MutexGuard<'_, State>, shared: &Shared, text: &str) -> Onward {
    let (instead, onward) = match passage::verdict(&shared.script, text) {
        Verdict::Pass => (None, Onward::Pass),
        Verdict::ResetAtAnswer => (Some(Instead::Reset), Onward::Pass),
        Verdict::Fail(error) => {
            let code = error.number();
            // A deadlock victim's transaction is rolled back; after other errors it goes on.
            let harmless = if code == 1213 { Command::Query(Bytes::from("ROLLBACK")) } else { Command::Ping };
            let (sqlstate, message) = (error.sqlstate().to_owned(), error.message().to_owned());
            (Some(Instead::Error(ErrPacket { code, sqlstate, message })), Onward::Replace(harmless))
        }
        Verdict::Reset => (None, Onward::Reset),
        Verdict::Silence => (None, Onward::Silence),
    };
    state.owe(Shape::Generic, None, instead);
    onward
}

fn pass_answers(passage: &Passage, conversation: &Conversation) -> io::Result<()> {
    let (mut server, mut client) = (&passage.server, &passage.client);
    let mut chunk = vec![0; READ_BYTES];
    let (mut pending, mut out) = (BytesMut::new(), BytesMut::new());
    let mut greeted = false;
    loop {
        let read = server.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        out.clear();
        while let Some(packet) = mysql::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)? {
            let mut sequence = packet.sequence.wrapping_sub(last_sequence(&packet.payload));
            if !greeted {
                greeted = true;
                mysql::write(&mut out, &mut sequence, &plain_greeting(&packet.payload)?);
                continue;
            }
            match answer(&packet.payload, conversation)? {
                None => mysql::write(&mut out, &mut sequence, &packet.payload),
                Some(Instead::Error(error)) => mysql::write(&mut out, &mut sequence, &error.encode()),
                Some(Instead::Reset) => return passage.reset(),
            }
        }
        client.write_all(&out)?;
    }
}

/// The greeting without what would hide or change the statements; an error packet as it is.
fn plain_greeting(payload: &[u8]) -> io::Result<Vec<u8>> {
    if payload.first() == Some(&0xFF) {
        return Ok(payload.to_vec());
    }
    let mut greeting = Handshake::parse(payload).map_err(invalid)?;
    greeting.capabilities &= !HIDDEN;
    greeting.mariadb_capabilities = 0;
    Ok(greeting.encode())
}

/// Follows an answer; says what the client gets instead of this packet.
fn answer(payload: &[u8], conversation: &Conversation) -> io::Result<Option<Instead>> {
    let mut state = conversation.lock();
    if !state.logged_in {
        state.logged_in = payload.first() == Some(&0);
        return Ok(None);
    }
    let Some(owed) = state.owed.front_mut() else {
        return Ok(None);
    };
    let event = owed.reader.next(payload).map_err(invalid)?;
    let complete = owed.reader.is_complete();
    let instead = owed.instead.take();
    let prepared = match event {
        Event::Prepared(head) => owed.preparing.take().map(|sql| (head, sql)),
        _ => None,
    };
    if complete {
        state.owed.pop_front();
    }
    if let Some((head, sql)) = prepared {
        let parameters = usize::from(head.parameters);
        let prepared = Prepared { sql, parameters, types: Vec::new(), long_data: HashMap::new() };
        state.statements.insert(head.statement_id, prepared);
        state.last_prepared = Some(head.statement_id);
        conversation.answered.notify_all();
    }
    Ok(instead)
}
