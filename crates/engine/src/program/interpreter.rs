//! The instruction loop: what a short transaction needs, and nothing that would make it slower.

use super::action::Action;
use super::fault::{Class, Fault, fault};
use super::image::{Block, Program, TextSource, Want};
use super::machine::{Awaited, Vm};
use super::opcode::{CONSTANT, NOWHERE, Op};
use super::operations::Flow;
use super::texts::{Piece, Texts};
use super::value::Value;

impl Vm {
    /// Runs from `pc` until an action. On a fault `pc` is at the instruction that raised it.
    pub(super) fn run(&mut self, program: &Program, texts: &mut Texts) -> Action {
        let block = &program.blocks[self.block];
        let mut pc = self.pc;
        loop {
            let Some(step) = block.code.get(pc) else {
                return self.failed(program, Fault::internal("the program ran past its end"));
            };
            macro_rules! get {
                ($source:expr) => {
                    operand(&self.registers, &program.values, $source)
                };
            }
            macro_rules! put {
                ($value:expr) => {{
                    self.registers[step.a as usize] = $value;
                    pc += 1;
                    continue;
                }};
            }
            macro_rules! compare {
                ($sign:tt) => {
                    if let (Value::Int(x), Value::Int(y)) = (get!(step.b), get!(step.c)) {
                        put!(Value::Bool(x $sign y));
                    }
                };
            }
            match step.op {
                Op::Move => put!(get!(step.b)),
                Op::Add if step.s == 0 => {
                    if let (Value::Int(x), Value::Int(y)) = (get!(step.b), get!(step.c)) {
                        if let Some(sum) = x.checked_add(y) {
                            put!(Value::Int(sum));
                        }
                    }
                }
                Op::Sub => {
                    if let (Value::Int(x), Value::Int(y)) = (get!(step.b), get!(step.c)) {
                        if let Some(difference) = x.checked_sub(y) {
                            put!(Value::Int(difference));
                        }
                    }
                }
                Op::Eq => compare!(==),
                Op::Ne => compare!(!=),
                Op::Lt => compare!(<),
                Op::Le => compare!(<=),
                Op::Gt => compare!(>),
                Op::Ge => compare!(>=),
                Op::IsNone => put!(Value::Bool(matches!(get!(step.b), Value::None))),
                Op::IsNotNone => put!(Value::Bool(!matches!(get!(step.b), Value::None))),
                Op::Jump => {
                    pc = step.a as usize;
                    continue;
                }
                Op::JumpIf | Op::JumpUnless => {
                    if let Value::Bool(truth) = get!(step.a) {
                        pc = if truth == (step.op == Op::JumpIf) { step.b as usize } else { pc + 1 };
                        continue;
                    }
                }
                Op::Loop => {
                    let cost = u32::from(step.b) + 1;
                    if self.budget >= cost {
                        self.budget -= cost;
                        pc = step.a as usize;
                        continue;
                    }
                }
                Op::RangeNext => {
                    let base = step.b as usize;
                    let range = (self.registers[base], self.registers[base + 1], self.registers[base + 2]);
                    if let (Value::Int(next), Value::Int(end), Value::Int(stride)) = range {
                        if if stride > 0 { next >= end } else { next <= end } {
                            pc = step.c as usize;
                            continue;
                        }
                        self.registers[base] = Value::Int(next.checked_add(stride).unwrap_or(end));
                        put!(Value::Int(next));
                    }
                }
                Op::UniformFixed => {
                    let (low, span) = block.ranges[step.b as usize];
                    let drawn = self.streams[step.s as usize].below_or_equal(span);
                    put!(Value::Int(low.wrapping_add(drawn as i64)));
                }
                Op::PickFixed => {
                    let (low, span) = block.ranges[step.b as usize];
                    let drawn = self.streams[step.s as usize].picked(span);
                    put!(Value::Int(low.wrapping_add(drawn as i64)));
                }
                Op::Statement => {
                    let site = &block.statements[step.b as usize];
                    self.pc = pc;
                    match self.simple_statement(program, texts, block, site) {
                        Ok(Some(text)) => {
                            if step.a == NOWHERE && !self.pipelined {
                                self.awaited =
                                    if site.want == Want::Row { Awaited::Row } else { Awaited::Any };
                            }
                            return Action::Statement { text, want: site.want, columns: site.columns };
                        }
                        Ok(None) => {}
                        Err(error) => return self.failed(program, error),
                    }
                }
                Op::Return if !self.open => {
                    self.pc = pc;
                    return Action::Done;
                }
                _ => {}
            }
            // whatever is not done by now
            self.pc = pc;
            match self.operation(program, texts, block, *step) {
                Ok(Flow::Next) => pc += 1,
                Ok(Flow::To(target)) => pc = target,
                Ok(Flow::Act(action)) => return action,
                Err(error) => return self.failed(program, error),
            }
        }
    }

    /// The text of a statement without a starred list, whose values are put into `args`; None if it has one.
    #[inline]
    fn simple_statement(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        block: &Block,
        site: &super::image::StatementSite,
    ) -> Result<Option<u32>, Fault> {
        if site.star.is_some() {
            return Ok(None);
        }
        let text = match site.text {
            TextSource::Id(id) => id,
            TextSource::Template(site) => self.template(program, texts, block, site)?,
            TextSource::Source(_) => return Ok(None),
        };
        let (registers, values) = (&self.registers, &program.values);
        let count = site.params.len();
        if self.args.len() != count {
            self.args.resize(count, Value::None);
        }
        let mut plain = site.counted;
        for (slot, source) in self.args.iter_mut().zip(&site.params) {
            let value = operand(registers, values, *source);
            plain &= value.is_parameter();
            *slot = value;
        }
        if !plain {
            self.check_params(texts, text)?;
        }
        Ok(Some(text))
    }

    /// The number of a template's text with the integers that its holes have now.
    #[inline]
    pub(super) fn template(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        block: &Block,
        site: usize,
    ) -> Result<u32, Fault> {
        let site = &block.templates[site];
        if let [hole] = site.holes[..] {
            if let Value::Int(i) = operand(&self.registers, &program.values, hole) {
                if let Some(id) = texts.known(site.template, i) {
                    return Ok(id);
                }
            }
        }
        self.new_text(program, texts, site)
    }

    #[inline(never)]
    fn new_text(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        site: &super::image::TemplateSite,
    ) -> Result<u32, Fault> {
        let pieces = &program.templates[site.template];
        let holes = site
            .holes
            .iter()
            .enumerate()
            .map(|(n, hole)| self.hole(program, pieces, n, *hole))
            .collect::<Result<Vec<i64>, Fault>>()?;
        texts.resolve(site.template, pieces, &holes)
    }

    #[inline]
    fn hole(&self, program: &Program, pieces: &[Piece], n: usize, source: u16) -> Result<i64, Fault> {
        match self.get(program, source) {
            Value::Int(i) => Ok(i),
            other => {
                let marks = pieces.iter().filter(|piece| !matches!(piece, Piece::Literal(_))).nth(n)
                    == Some(&Piece::Marks);
                match other.as_int() {
                    Some(i) if marks => Ok(i),
                    _ => fault(
                        Class::WrongUse,
                        format!(
                            "a {} in an SQL text; its holes take integers, other values are parameters (?)",
                            other.type_name()
                        ),
                    ),
                }
            }
        }
    }

    #[inline]
    pub(super) fn text_id(&self, program: &Program, text: TextSource) -> Result<u32, Fault> {
        match text {
            TextSource::Id(id) => Ok(id),
            TextSource::Template(_) => fault(Class::Internal, "a text that is made on its way".to_owned()),
            TextSource::Source(source) => match self.get(program, source) {
                Value::Text(id) => Ok(id),
                other => fault(Class::Internal, format!("a {} where an SQL text must be", other.type_name())),
            },
        }
    }

    /// The action of a statement whose values are in `args`.
    #[inline]
    pub(super) fn statement(
        &mut self,
        texts: &Texts,
        text: u32,
        want: Want,
        columns: u64,
    ) -> Result<Action, Fault> {
        self.check_params(texts, text)?;
        Ok(Action::Statement { text, want, columns })
    }

    /// That there are as many values as parameters, and each can be one.
    #[inline(never)]
    fn check_params(&self, texts: &Texts, text: u32) -> Result<(), Fault> {
        let entry = texts.get(text);
        if entry.parameters as usize != self.args.len() {
            return fault(
                Class::WrongUse,
                format!("{} parameters but {} values: {:?}", entry.parameters, self.args.len(), entry.sql),
            );
        }
        for value in &self.args {
            if !value.is_parameter() {
                return fault(
                    Class::WrongUse,
                    format!("a {} as the value of a parameter: {:?}", value.type_name(), entry.sql),
                );
            }
        }
        Ok(())
    }
}

/// The value of a source.
#[inline(always)]
pub(super) fn operand(registers: &[Value], constants: &[Value], source: u16) -> Value {
    if source & CONSTANT == 0 { registers[source as usize] } else { constants[(source & !CONSTANT) as usize] }
}
