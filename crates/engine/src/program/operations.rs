//! Instructions out of the hot loop: everything that is rare, or costs more than getting there.

use super::action::Action;
use super::arithmetic as math;
use super::compare;
use super::convert;
use super::fault::{Class, Fault, fault};
use super::image::{Block, Program, TextSource};
use super::interpreter::operand;
use super::machine::Vm;
use super::opcode::{Instruction, NOWHERE, Op};
use super::sequences::{self, not_iterable};
use super::texts::Texts;
use super::value::{Pool, Value, check_length};

/// Elements that an instruction may look through for the price of one.
const ELEMENTS_PER_INSTRUCTION: usize = 16;

/// Where an instruction leads.
pub(super) enum Flow {
    Next,
    To(usize),
    Act(Action),
}

impl Vm {
    /// One instruction. On a fault `pc` is at the instruction that raised it.
    #[inline(never)]
    pub(super) fn operation(
        &mut self,
        program: &Program,
        texts: &mut Texts,
        block: &Block,
        instruction: Instruction,
    ) -> Result<Flow, Fault> {
        let constants = &program.constants;
        let (a, b, c) = (instruction.a, instruction.b, instruction.c);
        macro_rules! get {
            ($source:expr) => {
                operand(&self.registers, &program.values, $source)
            };
        }
        macro_rules! put {
            ($value:expr) => {{
                let value = $value;
                self.registers[a as usize] = value;
            }};
        }
        macro_rules! stream {
            () => {
                self.streams[instruction.s as usize]
            };
        }
        match instruction.op {
            Op::Move => put!(get!(b)),
            Op::Unset => put!(Value::Unbound),
            Op::Bound => self.unbound(program, instruction)?,

            Op::Add | Op::Mul if instruction.s != 0 && is_list(get!(b)) => {
                let list = get!(b);
                if instruction.op == Op::Mul {
                    return fault(Class::Type, "a list has no *= here; write x = x * n".to_owned());
                }
                self.extend(constants, list, get!(c))?;
                put!(list);
            }
            Op::Add => put!(math::add(&mut self.heap, constants, get!(b), get!(c))?),
            Op::Sub => put!(math::sub(&mut self.heap, constants, get!(b), get!(c))?),
            Op::Mul => put!(math::mul(&mut self.heap, constants, get!(b), get!(c))?),
            Op::Div => put!(math::div(&self.heap, constants, get!(b), get!(c))?),
            Op::FloorDiv => put!(math::floor_div(&self.heap, constants, get!(b), get!(c))?),
            Op::Mod => put!(math::modulo(&self.heap, constants, get!(b), get!(c))?),
            Op::Pow => put!(math::pow(get!(b), get!(c))?),
            Op::And => put!(math::bits("&", get!(b), get!(c))?),
            Op::Or => put!(math::bits("|", get!(b), get!(c))?),
            Op::Xor => put!(math::bits("^", get!(b), get!(c))?),
            Op::Shl => put!(math::bits("<<", get!(b), get!(c))?),
            Op::Shr => put!(math::bits(">>", get!(b), get!(c))?),
            Op::Neg => put!(math::unary(&mut self.heap, constants, "-", get!(b))?),
            Op::Pos => put!(math::unary(&mut self.heap, constants, "+", get!(b))?),
            Op::Invert => put!(math::unary(&mut self.heap, constants, "~", get!(b))?),
            Op::Abs => put!(math::unary(&mut self.heap, constants, "abs()", get!(b))?),
            Op::Not => put!(Value::Bool(!compare::truth(&self.heap, constants, get!(b)))),

            Op::Eq => put!(Value::Bool(compare::equal(&self.heap, constants, get!(b), get!(c))?)),
            Op::Ne => put!(Value::Bool(!compare::equal(&self.heap, constants, get!(b), get!(c))?)),
            Op::Lt => put!(self.ordered(constants, "<", get!(b), get!(c))?),
            Op::Le => put!(self.ordered(constants, "<=", get!(b), get!(c))?),
            Op::Gt => put!(self.ordered(constants, ">", get!(b), get!(c))?),
            Op::Ge => put!(self.ordered(constants, ">=", get!(b), get!(c))?),
            Op::IsNone => put!(Value::Bool(matches!(get!(b), Value::None))),
            Op::IsNotNone => put!(Value::Bool(!matches!(get!(b), Value::None))),
            Op::Contains => {
                self.charge_elements(constants, get!(c));
                let found = compare::contains(&self.heap, constants, get!(b), get!(c))?;
                put!(Value::Bool(found != (instruction.s != 0)));
            }

            Op::Jump => {
                return Ok(Flow::To(a as usize));
            }
            Op::JumpIf => {
                if compare::truth(&self.heap, constants, get!(a)) {
                    return Ok(Flow::To(b as usize));
                }
            }
            Op::JumpUnless => {
                if !compare::truth(&self.heap, constants, get!(a)) {
                    return Ok(Flow::To(b as usize));
                }
            }
            Op::Loop => {
                let cost = u32::from(b) + 1;
                if self.budget < cost {
                    return fault(
                        Class::Limit,
                        "a million instructions without a statement: does this loop end?".to_owned(),
                    );
                }
                self.budget -= cost;
                return Ok(Flow::To(a as usize));
            }
            Op::RangeInit => self.range_init(a as usize)?,
            Op::RangeNext => {
                let base = b as usize;
                let (next, end, step) =
                    match (self.registers[base], self.registers[base + 1], self.registers[base + 2]) {
                        (Value::Int(next), Value::Int(end), Value::Int(step)) => (next, end, step),
                        _ => return fault(Class::Internal, "a range that was not begun".to_owned()),
                    };
                if if step > 0 { next >= end } else { next <= end } {
                    return Ok(Flow::To(c as usize));
                }
                put!(Value::Int(next));
                self.registers[base] = Value::Int(next.checked_add(step).unwrap_or(end));
            }
            Op::IterInit => {
                let list = get!(b);
                if self.heap.elements(constants, list).is_none() {
                    return not_iterable(list);
                }
                self.registers[a as usize] = list;
                self.registers[a as usize + 1] = Value::Int(0);
            }
            Op::IterNext => {
                let base = b as usize;
                let at = self.registers[base + 1].as_int().unwrap_or(0);
                let list = self.heap.elements(constants, self.registers[base]).unwrap_or(&[]);
                let Some(element) = list.get(at as usize).copied() else {
                    return Ok(Flow::To(c as usize));
                };
                self.registers[base + 1] = Value::Int(at + 1);
                put!(element);
            }

            Op::List => {
                let elements = &self.registers[b as usize..(b + c) as usize];
                put!(self.heap.list_of(elements)?);
            }
            Op::Tuple => {
                let elements = &self.registers[b as usize..(b + c) as usize];
                put!(self.heap.new_tuple(elements)?);
            }
            Op::Append => sequences::append(&mut self.heap, get!(a), get!(b))?,
            Op::Extend => self.extend(constants, get!(a), get!(b))?,
            Op::Index => put!(sequences::index(&mut self.heap, constants, get!(b), get!(c))?),
            Op::SetIndex => sequences::set_index(&mut self.heap, get!(a), get!(b), get!(c))?,
            Op::Slice => {
                let (low, high) = (self.registers[c as usize], self.registers[c as usize + 1]);
                put!(sequences::slice(&mut self.heap, constants, get!(b), low, high)?);
            }
            Op::Unpack => {
                let (base, count) = (a as usize, b as usize);
                let elements = sequences::unpacked(&self.heap, constants, get!(c), count)?;
                self.registers[base..base + count].copy_from_slice(elements);
            }

            Op::Len => put!(Value::Int(sequences::length(&self.heap, constants, get!(b))? as i64)),
            Op::Sorted => put!(self.sorted(constants, get!(b), instruction.s != 0)?),
            Op::Min | Op::Max => {
                let sign = if instruction.op == Op::Min { "<" } else { ">" };
                let values = &self.registers[b as usize..(b + c) as usize];
                put!(convert::extreme(&self.heap, constants, sign, values)?);
            }
            Op::MinOf | Op::MaxOf => {
                let sign = if instruction.op == Op::MinOf { "<" } else { ">" };
                let list = get!(b);
                self.charge_elements(constants, list);
                let Some(values) = self.heap.elements(constants, list) else {
                    return not_iterable(list);
                };
                put!(convert::extreme(&self.heap, constants, sign, values)?);
            }
            Op::Sum => {
                self.charge_elements(constants, get!(b));
                put!(convert::sum(&mut self.heap, constants, get!(b))?);
            }
            Op::Int => put!(convert::to_int(&self.heap, constants, get!(b))?),
            Op::Float => put!(convert::to_float(&self.heap, constants, get!(b))?),
            Op::Str => put!(self.string_of(constants, get!(b))?),
            Op::Round => {
                let places = (c != NOWHERE).then(|| get!(c));
                put!(convert::round(&mut self.heap, constants, get!(b), places)?);
            }
            Op::Decimal => put!(convert::to_decimal(&mut self.heap, constants, get!(b), get!(c))?),
            Op::Fstring => put!(self.fstring(program, &block.fstrings[b as usize])?),
            Op::Text => put!(Value::Text(self.template(program, texts, block, b as usize)?)),

            Op::Uniform => {
                let (low, high) = (int(get!(b))?, int(get!(c))?);
                put!(Value::Int(stream!().uniform(low, high)?));
            }
            Op::Pick => {
                let (low, high) = (int(get!(b))?, int(get!(c))?);
                put!(Value::Int(stream!().pick(low, high)?));
            }
            Op::UniformFixed => {
                let (low, span) = block.ranges[b as usize];
                put!(Value::Int(low.wrapping_add(stream!().below_or_equal(span) as i64)));
            }
            Op::PickFixed => {
                let (low, span) = block.ranges[b as usize];
                put!(Value::Int(low.wrapping_add(stream!().picked(span) as i64)));
            }
            Op::Real => put!(Value::Float(stream!().real())),
            Op::Chance => {
                let p = float(get!(b))?;
                put!(Value::Bool(stream!().chance(p)?));
            }
            Op::Exponential => {
                let mean = float(get!(b))?;
                put!(Value::Float(stream!().exponential(mean)?));
            }
            Op::Nurand => {
                let base = b as usize;
                let (a1, x) = (int(self.registers[base])?, int(self.registers[base + 1])?);
                let (y, c1) = (int(self.registers[base + 2])?, int(self.registers[base + 3])?);
                put!(Value::Int(stream!().nurand(a1, x, y, c1)?));
            }
            Op::RandText => put!(self.rand_text(constants, instruction.s as usize, b as usize)?),
            Op::RandTemplate => put!(self.rand_template(constants, instruction.s as usize, get!(b))?),
            Op::Permute => {
                let (n, i) = (int(get!(b))?, int(get!(c))?);
                put!(Value::Int(stream!().permute(n, i)?));
            }
            Op::At => {
                let unit = int(get!(c))?;
                let Ok(unit) = u64::try_from(unit) else {
                    return fault(Class::Value, format!("unit must be from 0 to 2**64 - 1, not {unit}"));
                };
                let purpose = program.purposes[b as usize];
                let other = self.streams[a as usize].at_purpose(purpose, unit, &stream!());
                stream!() = other;
            }

            Op::Terminal => put!(self.terminal_value()),
            Op::Now => put!(Value::Timestamp(self.now_us)),
            Op::StateGet => put!(self.state_get(b as usize)?),
            Op::StateSet => self.state_set(constants, a as usize, get!(b))?,
            Op::Ack => self.ack(program, a as usize, b as usize)?,

            Op::Statement => {
                let site = &block.statements[b as usize];
                let text = match site.text {
                    TextSource::Template(site) => self.template(program, texts, block, site)?,
                    other => self.text_id(program, other)?,
                };
                self.args.clear();
                for source in &site.params {
                    let value = get!(*source);
                    self.args.push(value);
                }
                if let Some(star) = site.star {
                    self.star(constants, get!(star))?;
                }
                return self.statement(texts, text, site.want, site.columns).map(Flow::Act);
            }
            Op::Batch => {
                if let Some(action) = self.batch_step(program, texts, block, instruction, None)? {
                    return Ok(Flow::Act(action));
                }
            }
            Op::Begin if self.open => {
                return fault(Class::WrongUse, "db.begin() in an open transaction".to_owned());
            }
            Op::Begin => return Ok(Flow::Act(Action::Begin { write: block.writes })),
            Op::Commit if !self.open => {
                return fault(Class::WrongUse, "db.commit() without db.begin()".to_owned());
            }
            Op::Commit => return Ok(Flow::Act(Action::Commit)),
            Op::PipelineBegin => return Ok(Flow::Act(Action::PipelineBegin)),
            Op::PipelineEnd => return Ok(Flow::Act(Action::PipelineEnd)),
            Op::Return if self.open => {
                let name = self.instruction_name(program);
                return fault(
                    Class::WrongUse,
                    format!("{name} returned with an open transaction; end it with db.commit()"),
                );
            }
            Op::Return => return Ok(Flow::Act(Action::Done)),
            Op::Rollback => return Ok(Flow::Act(Action::Rollback)),
        }
        Ok(Flow::Next)
    }

    #[inline]
    fn ordered(&self, constants: &Pool, sign: &'static str, a: Value, b: Value) -> Result<Value, Fault> {
        if let (Value::Int(x), Value::Int(y)) = (a, b) {
            return Ok(Value::Bool(match sign {
                "<" => x < y,
                "<=" => x <= y,
                ">" => x > y,
                _ => x >= y,
            }));
        }
        compare::ordered(&self.heap, constants, sign, a, b).map(Value::Bool)
    }

    /// An instruction that looks through a list costs more than one.
    fn charge_elements(&mut self, constants: &Pool, list: Value) {
        let elements = self.heap.elements(constants, list).map_or(0, <[Value]>::len);
        self.budget = self.budget.saturating_sub((elements / ELEMENTS_PER_INSTRUCTION) as u32);
    }

    fn range_init(&mut self, base: usize) -> Result<(), Fault> {
        for register in &mut self.registers[base..base + 3] {
            match register.as_int() {
                Some(i) => *register = Value::Int(i),
                None => {
                    return fault(
                        Class::Type,
                        format!("'{}' object cannot be interpreted as an integer", register.type_name()),
                    );
                }
            }
        }
        if self.registers[base + 2].as_int() == Some(0) {
            return fault(Class::Value, "range() arg 3 must not be zero".to_owned());
        }
        Ok(())
    }

    fn extend(&mut self, constants: &Pool, list: Value, more: Value) -> Result<(), Fault> {
        let Some(elements) = self.heap.elements(constants, more).map(<[Value]>::to_vec) else {
            return not_iterable(more);
        };
        elements.into_iter().try_for_each(|element| sequences::append(&mut self.heap, list, element))
    }

    fn star(&mut self, constants: &Pool, list: Value) -> Result<(), Fault> {
        let Some(elements) = self.heap.elements(constants, list) else {
            return fault(
                Class::Type,
                format!("Value after * must be an iterable, not {}", list.type_name()),
            );
        };
        self.args.extend_from_slice(elements);
        Ok(())
    }

    fn sorted(&mut self, constants: &Pool, list: Value, descending: bool) -> Result<Value, Fault> {
        let Some(elements) = self.heap.elements(constants, list) else {
            return not_iterable(list);
        };
        check_length(elements.len())?;
        let sorted = compare::sorted(&self.heap, constants, elements, descending)?;
        self.budget = self.budget.saturating_sub(sorted.len() as u32);
        self.heap.list_of(&sorted)
    }

    fn string_of(&mut self, constants: &Pool, value: Value) -> Result<Value, Fault> {
        if let Value::Str(_) = value {
            return Ok(value);
        }
        let mark = self.heap.mark();
        super::formatting::write_value(&mut self.heap, constants, value, super::formatting::Spec::Plain)?;
        self.heap.text_since(mark)
    }

    fn rand_text(&mut self, constants: &Pool, stream: usize, base: usize) -> Result<Value, Fault> {
        let (low, high) = (int(self.registers[base])?, int(self.registers[base + 1])?);
        let Value::Str(alphabet) = self.registers[base + 2] else {
            return no_string(self.registers[base + 2]);
        };
        let alphabet = self.heap.str(constants, alphabet).to_owned();
        let mark = self.heap.mark();
        self.streams[stream].text_into(low, high, &alphabet, self.heap.writer())?;
        self.heap.text_since(mark)
    }

    fn rand_template(&mut self, constants: &Pool, stream: usize, pattern: Value) -> Result<Value, Fault> {
        let Value::Str(span) = pattern else { return no_string(pattern) };
        let mark = self.heap.mark();
        if Pool::is_constant(span) {
            let pattern = constants.text_at(span);
            self.streams[stream].template_into(pattern, self.heap.writer());
        } else {
            let pattern = self.heap.str(constants, span).to_owned();
            self.streams[stream].template_into(&pattern, self.heap.writer());
        }
        self.heap.text_since(mark)
    }
}

#[inline]
fn is_list(value: Value) -> bool {
    matches!(value, Value::List(_) | Value::Frozen(_))
}

#[inline]
fn int(value: Value) -> Result<i64, Fault> {
    match value.as_int() {
        Some(i) => Ok(i),
        None => {
            fault(Class::Type, format!("'{}' object cannot be interpreted as an integer", value.type_name()))
        }
    }
}

fn float(value: Value) -> Result<f64, Fault> {
    match (value, value.as_int()) {
        (Value::Float(x), _) => Ok(x),
        (_, Some(i)) => Ok(i as f64),
        _ => fault(Class::Type, format!("must be real number, not {}", value.type_name())),
    }
}

fn no_string(value: Value) -> Result<Value, Fault> {
    fault(Class::Type, format!("'{}' object cannot be converted to 'PyString'", value.type_name()))
}
