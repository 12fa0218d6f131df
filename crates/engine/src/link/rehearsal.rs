//! A connection without a socket: what tests and fuzzers let the hot path's parsers hear.

use super::Protocol;
use super::input::Leftover;
use super::speech::{Answer, Sink, Speech, hear};
use crate::program::{Param, Received, Text};

/// Asks and hears; what is asked goes nowhere.
#[derive(Debug)]
pub struct Rehearsal {
    speech: Speech,
    leftover: Leftover,
    received: Received,
    columns: u64,
    unsent: Vec<u8>,
}

impl Rehearsal {
    /// A connection that is logged in with these capabilities (MySQL's). Bit n of `columns`: column n is read.
    pub fn new(protocol: Protocol, capabilities: u32, columns: u64) -> Self {
        Self {
            speech: Speech::new(protocol, capabilities),
            leftover: Leftover::default(),
            received: Received::default(),
            columns,
            unsent: Vec::new(),
        }
    }

    /// The statement is sent as text.
    pub fn query(&mut self, sql: &str) -> &[u8] {
        self.unsent.clear();
        match &mut self.speech {
            Speech::MySql(speech) => speech.query(sql.as_bytes(), &mut self.unsent),
            Speech::PostgreSql(speech) => speech.query(sql.as_bytes(), &mut self.unsent),
        }
        &self.unsent
    }

    /// The statement is executed if it is prepared here, else it is prepared.
    pub fn statement<'a>(
        &mut self,
        id: u32,
        sql: &str,
        params: impl ExactSizeIterator<Item = Param<'a>>,
    ) -> &[u8] {
        self.unsent.clear();
        let text = Text::new(sql.to_owned());
        match &mut self.speech {
            Speech::MySql(speech) => speech.statement(id, &text, params, &mut self.unsent),
            Speech::PostgreSql(speech) => speech.statement(id, &text, params, &mut self.unsent),
        }
        &self.unsent
    }

    /// BEGIN, the statements (two rows of each are an error) and COMMIT are sent without waiting; PostgreSQL's
    /// protocol alone does that.
    pub fn pipeline(&mut self, statements: &[(u32, &str)]) {
        self.unsent.clear();
        let Speech::PostgreSql(speech) = &mut self.speech else { return };
        speech.enqueue_control("BEGIN", &mut self.unsent);
        for (id, sql) in statements {
            speech.enqueue(*id, &Text::new((*sql).to_owned()), true, std::iter::empty(), &mut self.unsent);
        }
        speech.enqueue_control("COMMIT", &mut self.unsent);
        speech.end_pipeline(&mut self.unsent);
    }

    /// Bytes came. What follows a whole answer is kept: it is heard with the next bytes, of which there may be
    /// none.
    ///
    /// # Errors
    /// They make no sense.
    pub fn hear(&mut self, fresh: &[u8]) -> Result<Answer, dbdyno_wire::Error> {
        let rows = Some(self.received.writer());
        hear(&mut self.speech, &mut self.leftover, fresh, &mut Sink { rows, columns: self.columns })
    }

    /// Rows since the last call: see `Received`.
    pub fn take_rows(&mut self) -> Vec<Vec<String>> {
        self.received.take_rows()
    }

    /// Bytes heard and not understood yet.
    pub fn held(&self) -> usize {
        self.leftover.len()
    }

    /// Whether the server said that a transaction is open.
    pub fn in_transaction(&self) -> bool {
        match &self.speech {
            Speech::MySql(speech) => speech.in_transaction(),
            Speech::PostgreSql(speech) => speech.in_transaction(),
        }
    }
}
