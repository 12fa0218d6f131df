//! The virtual machine: one for each connection. `resume` runs until the program needs the database.

use super::action::{Action, Event, Failure, Param, RowWriter};
use super::batch::Batch;
use super::fault::{Class, Fault, fault};
use super::formatting;
use super::image::{Fragment, Kept, Program, Want};
use super::opcode::{Instruction, NOWHERE};
use super::texts::Texts;
use super::value::{Heap, Pool, Value};
use crate::Stream;

/// Instructions that may run without a statement (language.md).
const BUDGET: u32 = 1_000_000;
/// Parameters and rows that a connection keeps room for.
const KEPT_VALUES: usize = 1024;
/// Purpose of the streams of transactions.
const PURPOSE: &str = "transaction";

/// Which values a retry draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Those of the first attempt.
    Same,
    /// New ones, after that many tries (sysbench's way).
    New {
        /// How many attempts there were.
        tries: u32,
    },
}

/// What the next event must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// `begin` or `retry` must come first.
    Nothing,
    Start,
    /// The answer to the instruction at `pc`.
    Answer,
    /// As `Answer`, and nobody reads it: the usual case, told apart to be quick.
    Any,
    /// As `Any`, but a second row is an error.
    Row,
}

/// A connection's program counter, registers and heap.
#[derive(Debug)]
pub struct Vm {
    pub(super) registers: Vec<Value>,
    pub(super) heap: Heap,
    pub(super) streams: Vec<Stream>,
    /// Values of the statement's parameters.
    pub(super) args: Vec<Value>,
    /// Rows of the answer that is being received.
    pub(super) rows: Vec<Value>,
    pub(super) receive_fault: Option<Fault>,
    pub(super) batch: Batch,
    pub(super) acks: String,
    pub(super) state: Vec<Kept>,
    saved: Vec<Kept>,
    seed: u64,
    terminal: u64,
    seat: u64,
    number: u64,
    own_purpose: bool,
    pub(super) block: usize,
    pub(super) pc: usize,
    pub(super) now_us: i64,
    pub(super) budget: u32,
    pub(super) open: bool,
    pub(super) pipelined: bool,
    pub(super) awaited: Awaited,
}

impl Vm {
    /// A machine for that terminal (from 1), with the declared state at its defaults.
    pub fn new(program: &Program, seed: u64, terminal: u64) -> Self {
        let registers = program.blocks.iter().map(|block| block.registers).max().unwrap_or(0);
        let streams = program.blocks.iter().map(|block| block.streams).max().unwrap_or(1);
        let stream = Stream::new(seed, PURPOSE, terminal, 0, program.distribution);
        Self {
            registers: vec![Value::Unbound; registers as usize],
            heap: Heap::default(),
            streams: vec![stream; streams.max(1) as usize],
            args: Vec::new(),
            rows: Vec::new(),
            receive_fault: None,
            batch: Batch::default(),
            acks: String::new(),
            state: program.state.iter().map(|(_, default)| default.clone()).collect(),
            saved: Vec::new(),
            seed,
            terminal,
            seat: terminal,
            number: 0,
            own_purpose: true,
            block: 0,
            pc: 0,
            now_us: 0,
            budget: BUDGET,
            open: false,
            pipelined: false,
            awaited: Awaited::Nothing,
        }
    }

    /// A transaction of kind `kind` begins: number `number` of seat `seat` (the terminal, unless an open loop
    /// deals numbers to whoever is free). `now_us`: what `db.now()` gives, microseconds since 1970.
    /// `resume` with `Event::Start` follows.
    pub fn begin(&mut self, program: &Program, kind: usize, seat: u64, number: u64, now_us: i64) {
        self.block = kind.min(program.transactions.len() - 1);
        (self.seat, self.number, self.now_us) = (seat, number, now_us);
        if self.own_purpose {
            self.streams[0].reseat(seat, number);
        } else {
            self.streams[0] = Stream::new(self.seed, PURPOSE, seat, number, program.distribution);
            self.own_purpose = true;
        }
        if !self.state.is_empty() {
            self.saved.clone_from(&self.state);
        }
        self.attempt(program);
    }

    /// The workload's `start` begins, once for each terminal. Does nothing when there is none: `false`.
    pub fn begin_start(&mut self, program: &Program, now_us: i64) -> bool {
        let Some(block) = program.start else { return false };
        (self.seat, self.number, self.now_us) = (self.terminal, 0, now_us);
        self.block = block;
        self.streams[0] = Stream::new(self.seed, "start", self.terminal, 0, program.distribution);
        self.own_purpose = false;
        self.saved.clone_from(&self.state);
        self.attempt(program);
        true
    }

    /// The same transaction again after a retryable error and its ROLLBACK, with the same `db.now()` and the
    /// state that it began with. `resume` with `Event::Start` follows.
    pub fn retry(&mut self, program: &Program, values: Values) {
        match values {
            Values::Same => self.streams[0].rewind(),
            Values::New { tries } => {
                let purpose = format!("{PURPOSE}, try {tries}");
                self.streams[0] =
                    Stream::new(self.seed, &purpose, self.seat, self.number, program.distribution);
                self.own_purpose = false;
            }
        }
        self.restore_state();
        self.attempt(program);
    }

    /// The transaction did not commit: `db.state` is again what it was when the transaction began.
    pub fn restore_state(&mut self) {
        if !self.state.is_empty() {
            self.state.clone_from(&self.saved);
        }
        self.awaited = Awaited::Nothing;
    }

    #[inline]
    fn attempt(&mut self, program: &Program) {
        self.heap.clear();
        if program.blocks[self.block].checks_bound {
            self.registers.fill(Value::Unbound);
        }
        if self.receive_fault.is_some() {
            self.receive_fault = None;
        }
        self.rows.clear();
        self.acks.clear();
        self.batch = Batch::default();
        if self.args.capacity() > KEPT_VALUES {
            self.args = Vec::new();
        }
        self.pc = 0;
        (self.open, self.pipelined, self.awaited) = (false, false, Awaited::Start);
    }

    /// Number of the terminal.
    pub fn terminal(&self) -> u64 {
        self.terminal
    }

    /// Whether `db.begin()` was answered and `db.commit()` was not: an error must be followed by ROLLBACK.
    pub fn transaction_open(&self) -> bool {
        self.open
    }

    /// Where the program is, for `Event::SecondRow`.
    pub fn place(&self) -> usize {
        self.pc
    }

    /// Values of the parameters of the statement that `resume` asked for, in order.
    #[inline]
    pub fn params<'a>(&'a self, program: &'a Program) -> impl ExactSizeIterator<Item = Param<'a>> {
        self.args.iter().map(|value| self.param(program, *value))
    }

    fn param<'a>(&'a self, program: &'a Program, value: Value) -> Param<'a> {
        match value {
            Value::Int(i) => Param::Int(i),
            Value::Str(span) => Param::Str(self.heap.str(&program.constants, span)),
            Value::Bool(b) => Param::Bool(b),
            Value::Float(x) => Param::Float(x),
            Value::Timestamp(us) => Param::Timestamp(us),
            Value::Decimal(index) => Param::Decimal(self.heap.decimal(&program.constants, index)),
            Value::Bytes(span) => Param::Bytes(self.heap.bytes(&program.constants, span)),
            _ => Param::Null,
        }
    }

    /// Where the rows of the answer go, as far as the statement's `columns` say that they are read.
    pub fn rows(&mut self) -> RowWriter<'_> {
        RowWriter::new(&mut self.heap, &mut self.rows, &mut self.receive_fault)
    }

    /// The acknowledgements of `db.ack` as JSON lines: for the acknowledgement file once the transaction has
    /// committed.
    pub fn acks(&self) -> &str {
        &self.acks
    }

    /// A value of `db.state`, by its place in `Program::state_names`.
    pub fn state_value(&self, index: usize) -> Option<Param<'_>> {
        Some(match self.state.get(index)? {
            Kept::Plain(Value::Int(i)) => Param::Int(*i),
            Kept::Plain(Value::Bool(b)) => Param::Bool(*b),
            Kept::Plain(Value::Float(x)) => Param::Float(*x),
            Kept::Plain(Value::Timestamp(us)) => Param::Timestamp(*us),
            Kept::Plain(_) => Param::Null,
            Kept::Decimal(decimal) => Param::Decimal(*decimal),
            Kept::Str(text) => Param::Str(text),
            Kept::Bytes(bytes) => Param::Bytes(bytes),
        })
    }

    /// Runs on with the answer of the last action until the next one. After `Done`, `Rollback` or `Error` the
    /// next call is `begin` or `retry`; after a database error it is `retry`, or `restore_state` and `begin`.
    #[inline]
    pub fn resume(&mut self, program: &Program, texts: &mut Texts, event: Event) -> Action {
        self.budget = BUDGET;
        let plain = match (self.awaited, event) {
            (Awaited::Start, Event::Start) | (Awaited::Any, Event::Rows(_) | Event::Matched(_)) => true,
            (Awaited::Row, Event::Rows(n)) => n <= 1,
            _ => false,
        };
        if plain {
            self.pc += usize::from(self.awaited != Awaited::Start);
            self.awaited = Awaited::Answer;
            return self.run(program, texts);
        }
        match self.deliver(program, texts, event) {
            Ok(Some(action)) => action,
            Ok(None) => self.run(program, texts),
            Err(error) => self.failed(program, error),
        }
    }

    #[cold]
    pub(super) fn failed(&mut self, program: &Program, Fault(inner): Fault) -> Action {
        self.awaited = Awaited::Nothing;
        let block = &program.blocks[self.block];
        let (file, line) = block.lines.get(self.pc).copied().unwrap_or_default();
        let name = program.transactions.get(self.block).map_or("start", |kind| &kind.name);
        Action::Error(Box::new(Failure {
            file: program.files.get(file as usize).cloned().unwrap_or_default(),
            line,
            transaction: name.to_owned(),
            class: inner.0,
            message: inner.1,
        }))
    }

    /// Takes the answer to the action of the instruction at `pc`. Some: that instruction has another action.
    fn deliver(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        event: Event,
    ) -> Result<Option<Action>, Fault> {
        use super::opcode::Op;
        if self.awaited != Awaited::Answer && !matches!((self.awaited, event), (Awaited::Row, Event::Rows(_)))
        {
            return fault(Class::Internal, format!("{event:?} does not follow the last action"));
        }
        if let Some(error) = self.receive_fault.take() {
            return Err(error);
        }
        let block = &program.blocks[self.block];
        let instruction = block.code[self.pc];
        match (instruction.op, event) {
            (_, Event::SecondRow { text, rows, place }) => {
                self.pc = place.min(block.lines.len().saturating_sub(1));
                let sql = &texts.get(text).sql;
                return fault(
                    Class::WrongUse,
                    format!("db.row got {rows} rows from {sql:?}; use db.query for several"),
                );
            }
            (Op::Statement, _) if self.pipelined && event == Event::Done => {}
            (Op::Statement, Event::Matched(n))
                if block.statements[instruction.b as usize].want == Want::Matched =>
            {
                self.set(instruction.a, Value::Int(n as i64));
            }
            (Op::Statement, Event::Rows(n))
                if block.statements[instruction.b as usize].want != Want::Matched =>
            {
                let site = &block.statements[instruction.b as usize];
                let value = self.received(program, texts, site.want, site.columns, n)?;
                self.set(instruction.a, value);
            }
            (Op::Batch, _) => {
                return match self.batch_step(program, texts, block, instruction, Some(event))? {
                    Some(action) => Ok(Some(action)),
                    None => {
                        self.pc += 1;
                        Ok(None)
                    }
                };
            }
            (Op::Begin, Event::Done) => self.open = true,
            (Op::Commit, Event::Done) => self.open = false,
            (Op::PipelineBegin, Event::Done) => self.pipelined = true,
            (Op::PipelineEnd, Event::Done | Event::Matched(_)) => self.pipelined = false,
            _ => return fault(Class::Internal, format!("{event:?} does not answer the last action")),
        }
        self.pc += 1;
        Ok(None)
    }

    #[inline]
    pub(super) fn set(&mut self, register: u16, value: Value) {
        if register != NOWHERE {
            self.registers[register as usize] = value;
        }
    }

    /// What a statement that gives rows gave.
    fn received(
        &mut self,
        program: &Program,
        texts: &Texts,
        want: Want,
        columns: u64,
        n: u64,
    ) -> Result<Value, Fault> {
        let count = usize::try_from(n).unwrap_or(usize::MAX);
        if want == Want::Row && n > 1 {
            let block = &program.blocks[self.block];
            let site = &block.statements[block.code[self.pc].b as usize];
            let sql = self.text_id(program, site.text).map_or("", |id| &texts.get(id).sql);
            return fault(
                Class::WrongUse,
                format!("db.row got {n} rows from {sql:?}; use db.query for several"),
            );
        }
        if columns == 0 {
            // nobody looks inside, but a row is true and a list has its length
            let unread = program.blocks[self.block].code[self.pc].a == NOWHERE;
            if unread || (want == Want::Row && n == 0) {
                return Ok(Value::None);
            }
            let row = self.heap.new_tuple(&[Value::None])?;
            if want == Want::Row {
                return Ok(row);
            }
            super::value::check_length(count)?;
            return self.heap.list_of(&vec![row; count]);
        }
        if self.rows.len() != count {
            return fault(Class::Internal, format!("{n} rows were announced, {} came", self.rows.len()));
        }
        let value = match want {
            Want::Row => self.rows.first().copied().unwrap_or(Value::None),
            _ => self.heap.list_of(&self.rows)?,
        };
        self.rows.clear();
        if self.rows.capacity() > KEPT_VALUES {
            self.rows = Vec::new();
        }
        Ok(value)
    }

    #[inline]
    pub(super) fn get(&self, program: &Program, source: u16) -> Value {
        super::interpreter::operand(&self.registers, &program.values, source)
    }

    pub(super) fn terminal_value(&self) -> Value {
        Value::Int(self.terminal as i64)
    }

    #[inline(never)]
    pub(super) fn fstring(&mut self, program: &Program, fragments: &[Fragment]) -> Result<Value, Fault> {
        let mark = self.heap.mark();
        for fragment in fragments {
            match fragment {
                Fragment::Literal(text) => self.heap.writer().push_str(text),
                Fragment::Hole { value, spec } => {
                    let value = self.get(program, *value);
                    formatting::write_value(&mut self.heap, &program.constants, value, *spec)?;
                }
            }
        }
        self.heap.text_since(mark)
    }

    pub(super) fn state_get(&mut self, index: usize) -> Result<Value, Fault> {
        match &self.state[index] {
            Kept::Plain(value) => Ok(*value),
            Kept::Decimal(decimal) => Ok(self.heap.new_decimal(*decimal)),
            Kept::Str(text) => self.heap.new_str(text),
            Kept::Bytes(bytes) => self.heap.new_bytes(bytes),
        }
    }

    pub(super) fn state_set(&mut self, constants: &Pool, index: usize, value: Value) -> Result<(), Fault> {
        self.state[index] = match value {
            Value::Str(span) => Kept::Str(self.heap.str(constants, span).to_owned()),
            Value::Bytes(span) => Kept::Bytes(self.heap.bytes(constants, span).to_owned()),
            Value::Decimal(index) => Kept::Decimal(self.heap.decimal(constants, index)),
            Value::List(_) | Value::Tuple(_) | Value::Frozen(_) | Value::Text(_) | Value::Unbound => {
                return fault(
                    Class::WrongUse,
                    format!("db.state keeps numbers, strings and None, not a {}", value.type_name()),
                );
            }
            plain => Kept::Plain(plain),
        };
        Ok(())
    }

    pub(super) fn ack(&mut self, program: &Program, base: usize, count: usize) -> Result<(), Fault> {
        let values = &self.registers[base..base + count];
        formatting::write_json_line(&self.heap, &program.constants, values, &mut self.acks)
    }

    pub(super) fn instruction_name(&self, program: &Program) -> String {
        program.transactions.get(self.block).map_or("start", |kind| &kind.name).to_owned()
    }

    pub(super) fn unbound(&self, program: &Program, instruction: Instruction) -> Result<(), Fault> {
        match self.get(program, instruction.a) {
            Value::Unbound => fault(
                Class::UnboundLocal,
                format!(
                    "cannot access local variable '{}' where it is not associated with a value",
                    program.names[instruction.b as usize]
                ),
            ),
            _ => Ok(()),
        }
    }
}
