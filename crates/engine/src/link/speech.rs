//! Statements on one connection, whichever protocol: prepare once, execute, understand the answer.

use std::io;

use super::input::Leftover;
use super::mysql::MySqlSpeech;
use super::postgresql::PostgreSqlSpeech;
use super::socket::{Flow, Socket};
use super::{Opened, Protocol, Session};
use crate::program::{Param, RowWriter, Text};

/// An error that the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// MySQL's number or PostgreSQL's SQLSTATE.
    pub code: String,
    /// The server's text, one line.
    pub message: String,
}

/// What came of the command that was sent last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The answer is not complete yet.
    Pending,
    /// The text was prepared: execute it.
    Prepared,
    /// The statement succeeded.
    Done {
        /// Rows of its result.
        rows: u64,
        /// Rows that it matched.
        matched: u64,
    },
    /// All statements of a pipeline were answered, or skipped by the server after one that failed.
    Pipeline(PipelineAnswer),
    /// The statement failed; the connection goes on.
    Failed(ServerError),
    /// The server does not prepare this text here, it said with that code: the same call again sends it with
    /// its parameters written into it, from now on.
    NotPreparable(String),
    /// The server closed the connection, or its bytes make no sense: the connection is of no more use.
    Lost(String),
}

/// What came of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineAnswer {
    /// How many of its statements succeeded; the next one has `failure`.
    pub answered: usize,
    /// Rows of all results.
    pub rows: u64,
    /// Rows that all statements matched.
    pub matched: u64,
    /// First statement (from 0) that may have one row and had so many.
    pub second_row: Option<(usize, u64)>,
    /// Why a statement failed.
    pub failure: Option<ServerError>,
}

/// How the rows of an answer are taken.
pub(crate) struct Sink<'a> {
    /// Where read columns go, if any is read.
    pub rows: Option<RowWriter<'a>>,
    /// Bit n: column n is read (bit 63: all from there on).
    pub columns: u64,
}

/// Most that a connection keeps allocated between statements.
const KEPT_BYTES: usize = 8 << 10;

#[derive(Debug)]
pub(crate) enum Speech {
    MySql(Box<MySqlSpeech>),
    PostgreSql(Box<PostgreSqlSpeech>),
}

impl Speech {
    pub(crate) fn new(protocol: Protocol, capabilities: u32) -> Self {
        match protocol {
            Protocol::MySql => Speech::MySql(Box::new(MySqlSpeech::new(capabilities))),
            Protocol::PostgreSql => Speech::PostgreSql(Box::default()),
        }
    }
}

/// Goes on with the answer: `fresh` bytes after those left over.
#[inline]
pub(crate) fn hear(
    speech: &mut Speech,
    leftover: &mut Leftover,
    fresh: &[u8],
    sink: &mut Sink<'_>,
) -> Result<Answer, dbdyno_wire::Error> {
    let mut answer = Answer::Pending;
    leftover.feed(fresh, |bytes| {
        let (used, result) = match speech {
            Speech::MySql(speech) => speech.take(bytes, sink)?,
            Speech::PostgreSql(speech) => speech.take(bytes, sink)?,
        };
        answer = result;
        Ok(used)
    })?;
    Ok(answer)
}

/// A connection on an event loop.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    session: Session,
    speech: Speech,
    leftover: Leftover,
    unsent: Vec<u8>,
    sent: usize,
}

impl Link {
    /// Takes over a connection that is logged in.
    pub fn new(opened: Opened, protocol: Protocol) -> Self {
        let speech = Speech::new(protocol, opened.session.capabilities);
        Self {
            socket: opened.socket,
            session: opened.session,
            speech,
            leftover: Leftover::default(),
            unsent: Vec::new(),
            sent: 0,
        }
    }

    /// The login is over: from here on reading and writing never wait.
    ///
    /// # Errors
    /// The socket option cannot be set.
    pub fn go_nonblocking(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// Whether this connection has yet to prepare that text, in a round trip of its own.
    #[inline]
    pub fn needs_preparing(&self, id: u32) -> bool {
        match &self.speech {
            Speech::MySql(speech) => !speech.has_prepared(id),
            Speech::PostgreSql(_) => false,
        }
    }

    /// The server's prepared statement of that text is out of date: it is prepared anew when next used.
    pub fn forget(&mut self, id: u32) {
        match &mut self.speech {
            Speech::MySql(speech) => speech.forget(id),
            Speech::PostgreSql(speech) => speech.forget(id),
        }
    }

    /// The transport, for registering with the loop.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What the login settled.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the server said that a transaction is open.
    pub fn in_transaction(&self) -> bool {
        match &self.speech {
            Speech::MySql(speech) => speech.in_transaction(),
            Speech::PostgreSql(speech) => speech.in_transaction(),
        }
    }

    /// Begins a statement: executes it, or where the text `needs_preparing` prepares it (the answer is then
    /// `Prepared`, and the same call again executes it). Call `flush` afterwards.
    #[inline]
    pub fn statement<'a>(&mut self, id: u32, text: &Text, params: impl ExactSizeIterator<Item = Param<'a>>) {
        match &mut self.speech {
            Speech::MySql(speech) => speech.statement(id, text, params, &mut self.unsent),
            Speech::PostgreSql(speech) => speech.statement(id, text, params, &mut self.unsent),
        }
    }

    /// Sends a statement as text: BEGIN, COMMIT, ROLLBACK and what needs no parameters.
    pub fn simple(&mut self, sql: &str) {
        match &mut self.speech {
            Speech::MySql(speech) => speech.query(sql.as_bytes(), &mut self.unsent),
            Speech::PostgreSql(speech) => speech.query(sql.as_bytes(), &mut self.unsent),
        }
    }

    /// Whether statements can be sent before the last one was answered.
    pub fn pipelines(&self) -> bool {
        matches!(self.speech, Speech::PostgreSql(_))
    }

    /// Adds a statement to the pipeline (which it begins); `one_row`: two rows are an error. Only where
    /// `pipelines`.
    pub fn enqueue<'a>(
        &mut self,
        id: u32,
        text: &Text,
        one_row: bool,
        params: impl ExactSizeIterator<Item = Param<'a>>,
    ) {
        if let Speech::PostgreSql(speech) = &mut self.speech {
            speech.enqueue(id, text, one_row, params, &mut self.unsent);
        }
    }

    /// Adds BEGIN or COMMIT to the pipeline.
    pub fn enqueue_control(&mut self, sql: &str) {
        if let Speech::PostgreSql(speech) = &mut self.speech {
            speech.enqueue_control(sql, &mut self.unsent);
        }
    }

    /// The pipeline is complete; `Answer::Pipeline` follows. Call `flush` afterwards.
    pub fn end_pipeline(&mut self) {
        if let Speech::PostgreSql(speech) = &mut self.speech {
            speech.end_pipeline(&mut self.unsent);
        }
    }

    /// Statements of the pipeline that were answered so far.
    pub fn answered(&self) -> usize {
        match &self.speech {
            Speech::PostgreSql(speech) => speech.answered(),
            Speech::MySql(_) => 0,
        }
    }

    /// Bytes that wait to be sent.
    pub fn unsent(&self) -> usize {
        self.unsent.len() - self.sent
    }

    /// Sends what is queued; false when the kernel takes no more for now (writability will be announced).
    ///
    /// # Errors
    /// The connection broke.
    #[inline]
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.unsent.len() {
            let n = self.socket.write(&self.unsent[self.sent..])?;
            if n == 0 {
                return Ok(false);
            }
            self.sent += n;
        }
        self.unsent.clear();
        self.sent = 0;
        if self.unsent.capacity() > KEPT_BYTES {
            self.unsent = Vec::new();
        }
        if self.socket.is_tls() { self.socket.flush_tls() } else { Ok(true) }
    }

    /// Reads once and goes on with the answer. Second: whether the kernel may have more.
    pub fn receive(
        &mut self,
        scratch: &mut [u8],
        columns: u64,
        rows: Option<RowWriter<'_>>,
    ) -> (Answer, bool) {
        let (n, more, closed) = match self.socket.read(scratch) {
            Ok(Flow::Some(n)) => (n, true, false),
            Ok(Flow::Drained(n)) => (n, false, false),
            Ok(Flow::Closed(n)) => (n, false, true),
            Err(error) => return (self.ended(format!("the connection broke: {error}")), false),
        };
        let mut sink = Sink { rows, columns };
        let mut answer = Answer::Pending;
        if n > 0 {
            match hear(&mut self.speech, &mut self.leftover, &scratch[..n], &mut sink) {
                Ok(heard) => answer = heard,
                Err(error) => {
                    return (Answer::Lost(format!("the server's answer makes no sense: {error}")), false);
                }
            }
        }
        if closed && answer == Answer::Pending {
            answer = self.ended("the server closed the connection".to_owned());
        }
        (answer, more)
    }

    /// The connection is over; an error that the server sent before says why, its class is for the families to tell.
    #[cold]
    fn ended(&mut self, why: String) -> Answer {
        let said = match &mut self.speech {
            Speech::MySql(speech) => speech.take_failure(),
            Speech::PostgreSql(speech) => speech.take_failure(),
        };
        said.map_or(Answer::Lost(why), Answer::Failed)
    }

    /// Bytes received and not understood yet.
    pub fn held(&self) -> usize {
        self.leftover.len()
    }
}
