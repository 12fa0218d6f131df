//! `db.batch`: many rows through one text, as multi-row INSERTs or one statement a row.
//!
//! Packets are those of the other life (workload/batch.py): at most 512 KiB as sysbench's bulk insert
//! estimates them, and at most as many parameters as the server takes.

use super::action::{Action, Event};
use super::fault::{Class, Fault, fault};
use super::image::{Block, Program, Want};
use super::machine::Vm;
use super::opcode::Instruction;
use super::texts::Texts;
use super::value::{Heap, Pool, Value};

const PACKET_BYTES: usize = 512 * 1024;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    /// Packets, or rows one by one.
    Sending,
    /// The batch's own pipeline is being opened.
    Opening,
    /// Rows are queued in the batch's own pipeline.
    Queueing,
    Closing,
}

/// How far the batch that runs now has come.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    phase: Phase,
    next: usize,
    matched: i64,
}

/// An upper estimate of a value's bytes in a packet.
fn value_bytes(heap: &Heap, constants: &Pool, value: Value) -> usize {
    match value {
        Value::Str(span) => {
            let text = heap.str(constants, span);
            2 + if text.is_ascii() { text.len() } else { 4 * text.chars().count() }
        }
        Value::Bytes(span) => 2 + span.len as usize,
        _ => 24,
    }
}

impl Vm {
    /// The batch's next action; None when it is over and its result stored.
    pub(super) fn batch_step(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        block: &Block,
        instruction: Instruction,
        event: Option<Event>,
    ) -> Result<Option<Action>, Fault> {
        let site = &block.batches[instruction.b as usize];
        let rows = self.get(program, site.rows);
        let Some(count) = self.heap.elements(&program.constants, rows).map(<[Value]>::len) else {
            return fault(
                Class::Type,
                format!("db.batch(sql, rows) needs a list of rows, not {}", rows.type_name()),
            );
        };
        let text = self.text_id(program, site.text)?;
        match (self.batch.phase, event) {
            (Phase::Idle, None) => {
                let repeatable = program.multi_row && texts.get(text).repeatable;
                let pipelined = program.pipeline && !repeatable && !self.pipelined && count > 1;
                self.batch = Batch { phase: Phase::Sending, next: 0, matched: 0 };
                if pipelined {
                    self.batch.phase = Phase::Opening;
                    return Ok(Some(Action::PipelineBegin));
                }
            }
            (Phase::Sending, Some(Event::Matched(n))) => self.batch.matched += n as i64,
            (Phase::Sending, Some(Event::Done)) if self.pipelined => {}
            (Phase::Opening, Some(Event::Done)) => self.batch.phase = Phase::Queueing,
            (Phase::Queueing, Some(Event::Done)) => {}
            (Phase::Closing, Some(Event::Matched(n))) => self.batch.matched = n as i64,
            _ => return fault(Class::Internal, "this does not answer a batch".to_owned()),
        }
        if self.batch.phase == Phase::Closing
            || (self.batch.phase == Phase::Sending && self.batch.next == count)
        {
            let matched = self.batch.matched;
            self.set(instruction.a, Value::Int(matched));
            self.batch = Batch::default();
            return Ok(None);
        }
        if self.batch.next == count {
            self.batch.phase = Phase::Closing;
            return Ok(Some(Action::PipelineEnd));
        }
        let repeatable = program.multi_row && texts.get(text).repeatable;
        let taken = self.packet(program, rows, repeatable)?;
        self.batch.next += taken;
        let text = if repeatable { texts.multi_row(text, taken)? } else { text };
        self.statement(texts, text, Want::Matched, 0).map(Some)
    }

    /// Puts the next packet's values where parameters are; how many rows it has.
    fn packet(&mut self, program: &Program, rows: Value, several: bool) -> Result<usize, Fault> {
        self.args.clear();
        let (heap, constants) = (&self.heap, &program.constants);
        let rows = heap.elements(constants, rows).unwrap_or(&[]);
        let (mut taken, mut size) = (0, 0);
        for row in &rows[self.batch.next..] {
            let Some(cells) = heap.elements(constants, *row) else {
                return fault(
                    Class::Type,
                    format!("a row of db.batch(sql, rows) must be a tuple, not {}", row.type_name()),
                );
            };
            let weight: usize =
                cells.iter().map(|value| value_bytes(heap, constants, *value)).sum::<usize>() + 4;
            let full = size + weight > PACKET_BYTES || (taken + 1) * cells.len() > program.max_parameters;
            if taken > 0 && (full || !several) {
                break;
            }
            self.args.extend_from_slice(cells);
            taken += 1;
            size += weight;
        }
        Ok(taken)
    }
}
