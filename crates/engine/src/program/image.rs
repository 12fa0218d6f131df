//! A program as it runs: decoded, verified, shared by all connections of a run.

use sha2::{Digest, Sha256};

use super::decimal::Decimal;
use super::format::{
    FORMAT, RawBlock, RawDistribution, RawFragment, RawPiece, RawProgram, RawText, SIZE_CEILING,
};
use super::formatting::{Spec, WIDTH_CEILING};
use super::opcode::{CONSTANT, Instruction, OPCODES, Op};
use super::sql::parameter_positions;
use super::texts::{Piece, TEXT_LIMIT, Texts, parameters_of};
use super::value::{Pool, Span, TEXT_CEILING, Value};
use super::verify;
use crate::{BadValue, Distribution, Kind, Parameters, bad, purpose_hash};

/// What the answer of a statement must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// One row or none; a second one is an error of the program.
    Row,
    /// All rows.
    Rows,
    /// The number of rows matched (not: changed).
    Matched,
}

/// A compiled workload. Made by `Program::load`, immutable, the same for every connection.
#[derive(Debug)]
pub struct Program {
    /// The workload's name.
    pub name: String,
    /// sha256 of the serialised program, in hexadecimal.
    pub hash: String,
    /// Transaction kinds in the order written.
    pub transactions: Vec<TransactionKind>,
    /// Statements that each connection runs once after it opened.
    pub setup: Vec<String>,
    /// Close and reopen a terminal's connection after that many transactions; 0 = never.
    pub reconnect_every: u64,
    /// How many terminals the program was compiled for (`db.terminals`).
    pub terminals: u64,
    pub(super) distribution: Distribution,
    pub(super) constants: Pool,
    pub(super) values: Vec<Value>,
    pub(super) names: Vec<String>,
    /// Stream purposes "table:NAME" of `names`.
    pub(super) purposes: Vec<u64>,
    pub(super) files: Vec<String>,
    pub(super) state: Vec<(String, Kept)>,
    pub(super) texts: Vec<String>,
    pub(super) templates: Vec<Vec<Piece>>,
    pub(super) blocks: Vec<Block>,
    pub(super) start: Option<usize>,
    pub(super) multi_row: bool,
    pub(super) pipeline: bool,
    pub(super) max_parameters: usize,
    uses_now: bool,
}

/// One kind of transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionKind {
    /// Its name.
    pub name: String,
    /// Its share relative to the others'.
    pub weight: f64,
    /// Cumulative share of this kind and those before it, in (0, 1].
    pub upto: f64,
    /// Keying time before it, in seconds; the drive waits.
    pub keying_s: f64,
    /// Mean think time after it, in seconds; the drive waits.
    pub think_s: f64,
    /// Whether it may write: some databases must know at BEGIN.
    pub writes: bool,
}

/// A value of `db.state`, which outlives the heap of a transaction.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    /// A value without a span.
    Plain(Value),
    Decimal(Decimal),
    Str(String),
    Bytes(Vec<u8>),
}

/// The code of one transaction, or of `start`.
#[derive(Debug)]
pub(super) struct Block {
    pub registers: u16,
    pub streams: u8,
    pub writes: bool,
    pub code: Vec<Instruction>,
    pub lines: Vec<(u16, u32)>,
    pub statements: Vec<StatementSite>,
    pub batches: Vec<BatchSite>,
    pub templates: Vec<TemplateSite>,
    pub fstrings: Vec<Vec<Fragment>>,
    /// Some instruction asks whether a variable has a value yet; otherwise none is read before it has.
    pub checks_bound: bool,
    /// Ranges of `UniformFixed` and `PickFixed`: the lower end and the span.
    pub ranges: Vec<(i64, u64)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum TextSource {
    Id(u32),
    Source(u16),
    /// A template site, when nothing else needs the text.
    Template(usize),
}

#[derive(Debug)]
pub(super) struct StatementSite {
    pub text: TextSource,
    pub params: Vec<u16>,
    pub star: Option<u16>,
    pub want: Want,
    pub columns: u64,
    /// There are as many values as the text has parameters: found on load.
    pub counted: bool,
}

#[derive(Debug)]
pub(super) struct BatchSite {
    pub text: TextSource,
    pub rows: u16,
}

#[derive(Debug)]
pub(super) struct TemplateSite {
    pub template: usize,
    pub holes: Vec<u16>,
}

#[derive(Debug)]
pub(super) enum Fragment {
    Literal(String),
    Hole { value: u16, spec: Spec },
}

impl Program {
    /// Decodes and verifies a serialised program.
    ///
    /// Errors: not a program of this version; any number in it that points nowhere. What is returned runs
    /// without panics, whatever the bytes were.
    pub fn load(bytes: &[u8]) -> Result<Self, BadValue> {
        if bytes.len() > SIZE_CEILING {
            return bad(format!("a program of {} bytes; at most {SIZE_CEILING} are allowed", bytes.len()));
        }
        let raw: RawProgram = serde_json::from_slice(bytes)
            .map_err(|error| BadValue(format!("not a program of this version of the engine: {error}")))?;
        if raw.format != FORMAT {
            return bad(format!("a program of format {}; this engine reads format {FORMAT}", raw.format));
        }
        let hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut program = Self::decode(raw, hash)?;
        verify::verify(&program)?;
        for block in &mut program.blocks {
            block.specialise(&program.values, &program.texts, &program.templates);
        }
        Ok(program)
    }

    fn decode(raw: RawProgram, hash: String) -> Result<Self, BadValue> {
        if raw.texts.len() > TEXT_LIMIT {
            return bad(format!("{} SQL texts; at most {TEXT_LIMIT} are allowed", raw.texts.len()));
        }
        let Ok(terminals) = u64::try_from(raw.terminals) else {
            return bad(format!("a program for {} terminals", raw.terminals));
        };
        let mut constants = Pool::default();
        let values =
            raw.constants.iter().map(|value| constant(&mut constants, value)).collect::<Result<_, _>>()?;
        let state = raw
            .state
            .iter()
            .map(|entry| Ok((entry.name.clone(), kept(&entry.default)?)))
            .collect::<Result<_, BadValue>>()?;
        let templates = raw
            .templates
            .into_iter()
            .map(|pieces| pieces.into_iter().map(piece).collect())
            .collect::<Result<_, _>>()?;
        let mut blocks = Vec::new();
        let mut transactions = Vec::new();
        let whole: f64 = raw.transactions.iter().map(|kind| kind.weight).sum();
        let mut upto = 0.0;
        for kind in raw.transactions {
            let times = [kind.weight, kind.keying_s, kind.think_s];
            if !times.iter().all(|x| x.is_finite() && *x >= 0.0) || kind.weight == 0.0 {
                return bad(format!("transaction {:?} has a weight or a time below 0", kind.name));
            }
            upto += kind.weight / whole;
            blocks.push(block(kind.block, kind.writes)?);
            transactions.push(TransactionKind {
                name: kind.name,
                weight: kind.weight,
                upto,
                keying_s: kind.keying_s,
                think_s: kind.think_s,
                writes: kind.writes,
            });
        }
        if transactions.is_empty() {
            return bad("a program without a transaction".to_owned());
        }
        let start = match raw.start {
            Some(code) => {
                blocks.push(block(code, true)?);
                Some(blocks.len() - 1)
            }
            None => None,
        };
        Ok(Self {
            name: raw.name,
            hash,
            transactions,
            setup: raw.setup,
            reconnect_every: raw.reconnect_every,
            terminals,
            distribution: distribution(&raw.distribution)?,
            constants,
            values,
            purposes: raw.names.iter().map(|name| purpose_hash(&format!("table:{name}"))).collect(),
            names: raw.names,
            files: raw.files,
            state,
            texts: raw.texts,
            templates,
            uses_now: blocks.iter().flat_map(|block| &block.code).any(|step| step.op == Op::Now),
            blocks,
            start,
            multi_row: raw.multi_row,
            pipeline: raw.pipeline,
            max_parameters: raw.max_parameters as usize,
        })
    }

    /// A text table for one event loop.
    pub fn texts(&self) -> Texts {
        Texts::new(&self.texts, self.templates.len())
    }

    /// How `rand.pick` draws.
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Whether terminals have something to do once before their first transaction.
    pub fn has_start(&self) -> bool {
        self.start.is_some()
    }

    /// Whether statements may be sent without waiting for the last one's answer.
    pub fn pipelines(&self) -> bool {
        self.pipeline
    }

    /// Whether any transaction asks for `db.now()`: the others need no clock.
    pub fn uses_now(&self) -> bool {
        self.uses_now
    }

    /// The kind that a value drawn from [0, 1) picks by weight.
    pub fn pick(&self, drawn: f64) -> usize {
        let last = self.transactions.len() - 1;
        self.transactions.iter().position(|kind| drawn < kind.upto).unwrap_or(last)
    }

    /// Names of the declared per-terminal values.
    pub fn state_names(&self) -> impl Iterator<Item = &str> {
        self.state.iter().map(|(name, _)| name.as_str())
    }
}

fn constant(pool: &mut Pool, value: &serde_json::Value) -> Result<Value, BadValue> {
    use serde_json::Value as Json;
    let wrong = || BadValue(format!("a constant of a program is damaged: {value}"));
    match value {
        Json::Null => Ok(Value::None),
        Json::Bool(b) => Ok(Value::Bool(*b)),
        Json::Number(n) => n.as_i64().map(Value::Int).ok_or_else(wrong),
        Json::String(text) => {
            let start = pool.text.len();
            if text.len() > TEXT_CEILING || start + text.len() >= 1 << 31 {
                return bad(format!("a constant string of {} bytes", text.len()));
            }
            pool.text.push_str(text);
            Ok(Value::Str(Pool::constant(Span { start: start as u32, len: text.len() as u32 })))
        }
        Json::Array(_) => Err(wrong()),
        Json::Object(fields) => {
            let (kind, inner) = fields.iter().next().filter(|_| fields.len() == 1).ok_or_else(wrong)?;
            match (kind.as_str(), inner) {
                ("float", Json::Number(n)) => {
                    n.as_u64().map(|bits| Value::Float(f64::from_bits(bits))).ok_or_else(wrong)
                }
                ("timestamp", Json::Number(n)) => n.as_i64().map(Value::Timestamp).ok_or_else(wrong),
                ("decimal", Json::String(text)) => {
                    pool.decimals.push(Decimal::parse(text).map_err(|_| wrong())?);
                    Ok(Pool::constant_decimal((pool.decimals.len() - 1) as u32))
                }
                ("bytes", Json::String(hex)) => {
                    let start = pool.blobs.len();
                    pool.blobs.extend(unhex(hex).ok_or_else(wrong)?);
                    let len = pool.blobs.len() - start;
                    Ok(Value::Bytes(Pool::constant(Span { start: start as u32, len: len as u32 })))
                }
                ("tuple" | "list", Json::Array(items)) => {
                    let cells: Vec<Value> =
                        items.iter().map(|item| constant(pool, item)).collect::<Result<_, _>>()?;
                    let start = pool.cells.len();
                    let span = Pool::constant(Span { start: start as u32, len: cells.len() as u32 });
                    pool.cells.extend(cells);
                    Ok(if kind == "tuple" { Value::Tuple(span) } else { Value::Frozen(span) })
                }
                _ => Err(wrong()),
            }
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn kept(value: &serde_json::Value) -> Result<Kept, BadValue> {
    let mut pool = Pool::default();
    match constant(&mut pool, value)? {
        Value::Str(_) => Ok(Kept::Str(pool.text)),
        Value::Bytes(_) => Ok(Kept::Bytes(pool.blobs)),
        Value::Decimal(_) => Ok(Kept::Decimal(pool.decimals[0])),
        Value::Tuple(_) | Value::Frozen(_) => bad("a list cannot be a value of db.state".to_owned()),
        plain => Ok(Kept::Plain(plain)),
    }
}

fn piece(raw: RawPiece) -> Result<Piece, BadValue> {
    match raw {
        RawPiece::Literal(text) => Ok(Piece::Literal(text)),
        RawPiece::Hole { hole, width } if width <= WIDTH_CEILING => match hole.as_str() {
            "int" => Ok(Piece::Integer(width)),
            "marks" => Ok(Piece::Marks),
            _ => bad(format!("unknown piece {hole:?} of an SQL text")),
        },
        RawPiece::Hole { width, .. } => bad(format!("an integer of {width} characters in an SQL text")),
    }
}

fn distribution(raw: &RawDistribution) -> Result<Distribution, BadValue> {
    let parameters = Parameters {
        spec_iter: raw.spec_iter,
        spec_pct: raw.spec_pct,
        spec_res: raw.spec_res,
        pareto_h: raw.pareto_h,
        zipfian_exp: raw.zipfian_exp,
    };
    Distribution::new(Kind::parse(&raw.kind)?, parameters)
}

fn text_source(raw: &RawText) -> TextSource {
    match raw {
        RawText::Id(id) => TextSource::Id(*id),
        RawText::Source(source) => TextSource::Source(*source),
        RawText::Template(site) => TextSource::Template(*site as usize),
    }
}

fn block(raw: RawBlock, writes: bool) -> Result<Block, BadValue> {
    let code = raw
        .code
        .iter()
        .map(|(word, s, a, b, c)| match OPCODES.iter().find(|(_, known, _)| known == word) {
            Some((op, _, _)) => Ok(Instruction { op: *op, s: *s, a: *a, b: *b, c: *c }),
            None => bad(format!("unknown instruction {word:?}")),
        })
        .collect::<Result<_, _>>()?;
    let statements = raw
        .statements
        .iter()
        .map(|site| {
            let want = match site.want.as_str() {
                "row" => Want::Row,
                "rows" => Want::Rows,
                "matched" => Want::Matched,
                other => return bad(format!("unknown answer {other:?} of a statement")),
            };
            Ok(StatementSite {
                text: text_source(&site.text),
                params: site.params.clone(),
                star: site.star,
                want,
                columns: site.columns,
                counted: false,
            })
        })
        .collect::<Result<_, _>>()?;
    let fstrings = raw
        .fstrings
        .into_iter()
        .map(|fragments| fragments.into_iter().map(fragment).collect())
        .collect::<Result<_, _>>()?;
    Ok(Block {
        registers: raw.registers,
        streams: raw.streams,
        writes,
        code,
        lines: raw.lines,
        statements,
        batches: raw
            .batches
            .iter()
            .map(|site| BatchSite { text: text_source(&site.text), rows: site.rows })
            .collect(),
        templates: raw
            .templates
            .into_iter()
            .map(|site| TemplateSite { template: site.template as usize, holes: site.holes })
            .collect(),
        fstrings,
        checks_bound: false,
        ranges: Vec::new(),
    })
}

impl Block {
    /// Settles what constants decide, once the block is verified.
    fn specialise(&mut self, values: &[Value], texts: &[String], templates: &[Vec<Piece>]) {
        self.checks_bound = self.code.iter().any(|step| step.op == Op::Bound);
        for site in &mut self.statements {
            let parameters = match site.text {
                TextSource::Id(id) => Some(parameter_positions(&texts[id as usize]).len()),
                TextSource::Template(at) => parameters_of(&templates[self.templates[at].template]),
                TextSource::Source(_) => None,
            };
            site.counted = site.star.is_none() && parameters == Some(site.params.len());
        }
        let constant = |source: u16| match values.get((source & !CONSTANT) as usize) {
            Some(Value::Int(i)) if source & CONSTANT != 0 => Some(*i),
            _ => None,
        };
        for step in &mut self.code {
            let op = match step.op {
                Op::Uniform => Op::UniformFixed,
                Op::Pick => Op::PickFixed,
                _ => continue,
            };
            if let (Some(low), Some(high)) = (constant(step.b), constant(step.c)) {
                if low <= high {
                    self.ranges.push((low, high.wrapping_sub(low) as u64));
                    (step.op, step.b, step.c) = (op, (self.ranges.len() - 1) as u16, 0);
                }
            }
        }
    }
}

fn fragment(raw: RawFragment) -> Result<Fragment, BadValue> {
    match raw {
        RawFragment::Literal(text) => Ok(Fragment::Literal(text)),
        RawFragment::Hole { value, spec, n } => {
            let spec = match spec.as_str() {
                "plain" => Spec::Plain,
                "zeros" => Spec::Zeros(n),
                "blanks" => Spec::Blanks(n),
                "fixed" => Spec::Fixed(n),
                _ => return bad(format!("unknown format {spec:?}")),
            };
            Ok(Fragment::Hole { value, spec })
        }
    }
}
