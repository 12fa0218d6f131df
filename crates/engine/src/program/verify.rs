//! Proof that a decoded program cannot point outside itself: every register, constant, jump, text and site of
//! every instruction exists, code only jumps back through `loop` (which is budgeted), and ends.

use super::formatting::{Spec, WIDTH_CEILING};
use super::image::{Block, Fragment, Program, TextSource};
use super::opcode::{CONSTANT, Field, Instruction, NOWHERE, OPCODES, Op};
use super::texts::Piece;
use super::value::Value;
use crate::{BadValue, bad};

pub(super) fn verify(program: &Program) -> Result<(), BadValue> {
    let lengths = [program.values.len(), program.names.len(), program.state.len(), program.files.len()];
    if lengths.iter().any(|len| *len > CONSTANT as usize) {
        return bad("a program has more than 32,768 constants, names or files".to_owned());
    }
    // text numbers are made by templates alone, never by constants
    if program.values.iter().any(|value| matches!(value, Value::Text(_) | Value::Unbound)) {
        return bad("a program has a damaged constant".to_owned());
    }
    for block in &program.blocks {
        Verifier { program, block }.block()?;
    }
    Ok(())
}

struct Verifier<'a> {
    program: &'a Program,
    block: &'a Block,
}

impl Verifier<'_> {
    fn block(&self) -> Result<(), BadValue> {
        let Block { code, lines, registers, streams, .. } = self.block;
        if code.len() > u16::MAX as usize {
            return bad(format!("{} instructions in a transaction; at most 65,535 are allowed", code.len()));
        }
        if lines.len() != code.len() || *streams == 0 || *registers > NOWHERE {
            return bad("a transaction has a damaged frame".to_owned());
        }
        if lines.iter().any(|(file, _)| *file as usize >= self.program.files.len()) {
            return bad("a transaction names a file that is not there".to_owned());
        }
        if !matches!(code.last(), Some(last) if matches!(last.op, Op::Return | Op::Rollback | Op::Loop)) {
            return bad("a transaction does not end".to_owned());
        }
        for (at, instruction) in code.iter().enumerate() {
            self.instruction(at, instruction).map_err(|word| {
                BadValue(format!("instruction {at} {instruction:?} of a transaction: {word}"))
            })?;
        }
        self.sites()
    }

    fn instruction(&self, at: usize, instruction: &Instruction) -> Result<(), String> {
        let Some((_, _, fields)) = OPCODES.get(instruction.op as usize) else {
            return Err("unknown".to_owned());
        };
        let Instruction { s, a, b, c, .. } = *instruction;
        let operands = [u16::from(s), a, b, c];
        let count = fields.iter().position(|field| *field == Field::Count).map_or(0, |n| operands[n]);
        for (field, value) in fields.iter().zip(operands) {
            if !self.field(*field, value, at, count) {
                return Err(format!("{field:?} {value} points nowhere"));
            }
        }
        if instruction.op == Op::At && (s == 0 || a >= u16::from(self.block.streams)) {
            return Err("the transaction's own stream cannot be replaced".to_owned());
        }
        Ok(())
    }

    fn field(&self, field: Field, value: u16, at: usize, count: u16) -> bool {
        let (program, block) = (self.program, self.block);
        let index = value as usize;
        let registers = |n: u16| index + n as usize <= block.registers as usize;
        match field {
            Field::No => value == 0,
            Field::Dest => registers(1),
            Field::OptDest => value == NOWHERE || registers(1),
            Field::Source => self.source(value),
            Field::OptSource => value == NOWHERE || self.source(value),
            Field::Registers(n) => registers(n),
            Field::Base => registers(count),
            Field::Count | Field::Number => true,
            Field::Forward => index > at && index < block.code.len(),
            Field::Back => index < block.code.len(),
            Field::Name => index < program.names.len(),
            Field::State => index < program.state.len(),
            Field::Stream => index < block.streams as usize,
            Field::Statement => index < block.statements.len(),
            Field::Batch => index < block.batches.len(),
            Field::Template => index < block.templates.len(),
            Field::Fstring => index < block.fstrings.len(),
            Field::Range => index < block.ranges.len(),
        }
    }

    fn source(&self, value: u16) -> bool {
        if value & CONSTANT == 0 {
            value < self.block.registers
        } else {
            ((value & !CONSTANT) as usize) < self.program.values.len()
        }
    }

    fn text(&self, text: TextSource) -> bool {
        match text {
            TextSource::Id(id) => (id as usize) < self.program.texts.len(),
            TextSource::Source(source) => self.source(source),
            TextSource::Template(site) => site < self.block.templates.len(),
        }
    }

    fn sites(&self) -> Result<(), BadValue> {
        let block = self.block;
        let statements = block.statements.iter().all(|site| {
            self.text(site.text)
                && site.star.is_none_or(|star| self.source(star))
                && site.params.iter().all(|param| self.source(*param))
        });
        let batches = block.batches.iter().all(|site| self.text(site.text) && self.source(site.rows));
        let templates = block.templates.iter().all(|site| {
            self.program.templates.get(site.template).is_some_and(|pieces| {
                let holes = pieces.iter().filter(|piece| !matches!(piece, Piece::Literal(_))).count();
                holes == site.holes.len()
            }) && site.holes.iter().all(|hole| self.source(*hole))
        });
        let fstrings = block.fstrings.iter().flatten().all(|fragment| match fragment {
            Fragment::Literal(_) => true,
            Fragment::Hole { value, spec } => {
                self.source(*value)
                    && match spec {
                        Spec::Plain => true,
                        Spec::Zeros(n) | Spec::Blanks(n) | Spec::Fixed(n) => *n <= WIDTH_CEILING,
                    }
            }
        });
        if statements && batches && templates && fstrings {
            Ok(())
        } else {
            bad("a statement, text or format of a transaction points nowhere".to_owned())
        }
    }
}
