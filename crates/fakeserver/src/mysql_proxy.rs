//! Between a MySQL client and a real server: bytes pass as they are, statements are recorded.
//!
//! The greeting loses the capabilities that would hide the statements (TLS, compression) or change their
//! encoding (query attributes, MariaDB's extensions).

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dbdyno_wire::mysql::{
    self, Command, Event, Handshake, HandshakeResponse, ParameterType, ResponseReader, Shape, capability,
};
use dbdyno_wire::{Error, MESSAGE_CEILING_BYTES};

use crate::mysql_session::record;
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
}

#[derive(Default)]
struct State {
    logged_in: bool,
    capabilities: u32,
    owed: VecDeque<Owed>,
    statements: HashMap<u32, Prepared>,
    last_prepared: Option<u32>,
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

pub(crate) fn serve(
    client: TcpStream,
    upstream: &str,
    shared: &Arc<Shared>,
    connection: u64,
) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
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
    let ended = pass_commands(&client, &server, &conversation, shared, connection);
    let _ = server.shutdown(Shutdown::Write);
    let answered = answers.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    ended.and(answered)
}

fn pass_commands(
    mut client: &TcpStream,
    mut server: &TcpStream,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    let mut chunk = vec![0; READ_BYTES];
    let mut pending = BytesMut::new();
    let mut greeted = false;
    loop {
        let read = client.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        while let Some(packet) = mysql::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)? {
            if !greeted {
                greeted = true;
                let answer = HandshakeResponse::parse(&packet.payload).map_err(invalid)?;
                conversation.lock().capabilities = answer.capabilities;
            } else if conversation.lock().logged_in && packet.sequence == first_sequence(&packet.payload) {
                command(
                    &Command::parse(&packet.payload).map_err(invalid)?,
                    conversation,
                    shared,
                    connection,
                )?;
            }
        }
        // Only now may the server see them: an answer must never overtake its command.
        server.write_all(&chunk[..read])?;
    }
}

/// The last sequence number of a command's packet: 0, or one more for each full chunk.
fn first_sequence(payload: &[u8]) -> u8 {
    (payload.len() / 0xFF_FFFF) as u8
}

fn command(
    command: &Command,
    conversation: &Conversation,
    shared: &Shared,
    connection: u64,
) -> io::Result<()> {
    let mut state = conversation.lock();
    let capabilities = state.capabilities;
    let owed = |shape, preparing| Owed { reader: ResponseReader::new(shape, capabilities), preparing };
    match command {
        Command::Query(text) => {
            for statement in sql::statements(&String::from_utf8_lossy(text)) {
                shared.recorder.statement(connection, statement, Vec::new());
            }
            state.owed.push_back(owed(Shape::Generic, None));
        }
        Command::Prepare(text) => {
            let text = String::from_utf8_lossy(text).into_owned();
            state.owed.push_back(owed(Shape::Prepare, Some(text)));
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
            // The server answers an unknown number with an error; there is nothing to record.
            if let Some(prepared) = state.statements.get_mut(&id) {
                let long_data = std::mem::take(&mut prepared.long_data);
                let values = mysql::decode_parameters(
                    parameters,
                    prepared.parameters,
                    &mut prepared.types,
                    &long_data,
                )
                .map_err(invalid)?;
                record(&shared.recorder, connection, &prepared.sql, &values);
            }
            state.owed.push_back(owed(Shape::Generic, None));
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
            state.owed.push_back(owed(Shape::Generic, None));
        }
        Command::ResetConnection => {
            state.statements.clear();
            state.owed.push_back(owed(Shape::Generic, None));
        }
        Command::ChangeUser(_) => {
            state.statements.clear();
            state.logged_in = false;
        }
        Command::Fetch { .. } => state.owed.push_back(owed(Shape::Rows, None)),
        Command::FieldList(_) => state.owed.push_back(owed(Shape::Definitions, None)),
        Command::Statistics => state.owed.push_back(owed(Shape::Line, None)),
        other if other.has_answer() => state.owed.push_back(owed(Shape::Generic, None)),
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
    let mut greeted = false;
    loop {
        let read = server.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        pending.extend_from_slice(&chunk[..read]);
        if !greeted {
            let Some(packet) = mysql::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)? else {
                continue;
            };
            greeted = true;
            let mut out = BytesMut::new();
            let mut sequence = packet.sequence;
            mysql::write(&mut out, &mut sequence, &plain_greeting(&packet.payload)?);
            client.write_all(&out)?;
            continue;
        }
        while let Some(packet) = mysql::parse(&mut pending, MESSAGE_CEILING_BYTES).map_err(invalid)? {
            answer(&packet.payload, conversation)?;
        }
        client.write_all(&chunk[..read])?;
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

fn answer(payload: &[u8], conversation: &Conversation) -> io::Result<()> {
    let mut state = conversation.lock();
    if !state.logged_in {
        state.logged_in = payload.first() == Some(&0);
        return Ok(());
    }
    let Some(owed) = state.owed.front_mut() else {
        return Ok(());
    };
    let event = owed.reader.next(payload).map_err(invalid)?;
    let complete = owed.reader.is_complete();
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
    Ok(())
}
