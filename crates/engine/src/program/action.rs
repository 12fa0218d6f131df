//! What passes between a program and the drive: actions and events, parameters and rows.

use std::fmt;

use super::decimal::Decimal;
use super::fault::{Class, Fault};
use super::image::Want;
use super::value::{Heap, Value};

/// What the program wants from the database next.
#[derive(Debug)]
pub enum Action {
    /// Send text `text` with `Vm::params`. Answer: `Event::Rows` or `Event::Matched` as `want` says; inside a
    /// pipeline `Event::Done` as soon as it is queued.
    Statement {
        /// Number in the text table.
        text: u32,
        /// What its answer must be.
        want: Want,
        /// Bit n: column n is read (bit 63: all from there on). 0 = only the number of rows matters; nothing
        /// needs decoding or passing to `Vm::rows`.
        columns: u64,
    },
    /// Open a transaction. Answer: `Event::Done`.
    Begin {
        /// Whether it may write.
        write: bool,
    },
    /// Commit it. Answer: `Event::Done`.
    Commit,
    /// Statements from here to `PipelineEnd` are sent without waiting. Answer: `Event::Done`, at once.
    PipelineBegin,
    /// Send what is queued and await all answers. Answer: `Event::Matched` with the sum of the rows matched, or
    /// `Event::SecondRow`.
    PipelineEnd,
    /// The transaction has ended as it should.
    Done,
    /// `raise Rollback`: roll back, count as rolled back, never retry.
    Rollback,
    /// The workload is wrong: fatal, the run ends.
    Error(Box<Failure>),
}

/// The drive's answer to the last action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// First event after `begin`, `begin_start` or `retry`.
    Start,
    /// So many rows; passed to `Vm::rows` before, if any of their columns are read.
    Rows(u64),
    /// So many rows matched.
    Matched(u64),
    /// Done, or queued.
    Done,
    /// A text whose `want` was `Want::Row` was answered in a pipeline with more than one row. Where no
    /// pipeline is open, `Rows` says it.
    SecondRow {
        /// The text.
        text: u32,
        /// How many rows there were.
        rows: u64,
        /// `Vm::place` when the statement was asked for.
        place: usize,
    },
}

/// An error of the workload, with its place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file's name.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// The transaction kind, or `start`.
    pub transaction: String,
    /// What kind of error, as Python names it.
    pub class: Class,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: in {}: ", self.file, self.line, self.transaction)?;
        if self.class != Class::WrongUse {
            write!(f, "{}: ", self.class.name())?;
        }
        f.write_str(&self.message)
    }
}

/// A parameter's value, borrowed from the machine.
#[derive(Debug, Clone, Copy)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// 64 bits, signed.
    Int(i64),
    /// A double.
    Float(f64),
    /// A decimal of at most 28 digits.
    Decimal(Decimal),
    /// A string.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
}

/// Takes the columns of an answer's rows, in order: one call for each column, `end_row` after the last.
/// A value that exceeds a limit is reported by the next `resume`.
#[derive(Debug)]
pub struct RowWriter<'a> {
    heap: &'a mut Heap,
    rows: &'a mut Vec<Value>,
    trouble: &'a mut Option<Fault>,
    start: usize,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(heap: &'a mut Heap, rows: &'a mut Vec<Value>, trouble: &'a mut Option<Fault>) -> Self {
        let start = heap.tuple_start();
        Self { heap, rows, trouble, start }
    }

    fn take(&mut self, value: Result<Value, Fault>) {
        match value {
            Ok(value) => self.heap.push_cell(value),
            Err(error) => {
                self.trouble.get_or_insert(error);
            }
        }
    }

    /// NULL.
    pub fn null(&mut self) {
        self.heap.push_cell(Value::None);
    }

    /// A column that the program does not read.
    pub fn skip(&mut self) {
        self.heap.push_cell(Value::None);
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        self.heap.push_cell(Value::Bool(value));
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        self.heap.push_cell(Value::Int(value));
    }

    /// A float.
    pub fn float(&mut self, value: f64) {
        self.heap.push_cell(Value::Float(value));
    }

    /// A decimal; beyond 28 digits an error of the program.
    pub fn decimal(&mut self, unscaled: i128, scale: u32) {
        let value = Decimal::new(unscaled, scale).map(|decimal| self.heap.new_decimal(decimal));
        self.take(value);
    }

    /// A decimal as the server writes it: `-12.50`.
    pub fn decimal_text(&mut self, text: &str) {
        let value = Decimal::parse(text).map(|decimal| self.heap.new_decimal(decimal));
        self.take(value);
    }

    /// A string; CHAR comes without its trailing blanks.
    pub fn text(&mut self, value: &str) {
        let value = self.heap.new_str(value);
        self.take(value);
    }

    /// Bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        let value = self.heap.new_bytes(value);
        self.take(value);
    }

    /// Microseconds since 1970, UTC.
    pub fn timestamp(&mut self, us: i64) {
        self.heap.push_cell(Value::Timestamp(us));
    }

    /// The row is complete.
    pub fn end_row(&mut self) {
        match self.heap.tuple_since(self.start) {
            Ok(row) => self.rows.push(row),
            Err(error) => {
                self.trouble.get_or_insert(error);
            }
        }
        self.start = self.heap.tuple_start();
    }
}
