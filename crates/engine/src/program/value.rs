//! Values of a running program, and where their bytes live.
//!
//! A value is 16 bytes and copied freely; strings, tuples and decimals are spans of a pool. There are two
//! pools: the program's constants, shared by all connections, and a heap for each connection, which is
//! forgotten whole when a transaction begins.

use super::decimal::Decimal;
use super::fault::{Class, Fault, fault};

/// A span that lies in the program's constants, not in the connection's heap.
const CONSTANT: u32 = 1 << 31;
/// Bytes or cells that one transaction may hold; beyond it the workload is wrong, not large.
const HEAP_CEILING: usize = 256 << 20;
/// What a connection keeps allocated between transactions.
const KEPT_BYTES: usize = 8 << 10;
/// Elements that a list may have (language.md: at most 10,000).
pub(crate) const LIST_CEILING: usize = 10_000;
/// Bytes that a string may have: MySQL's MEDIUMTEXT.
pub(crate) const TEXT_CEILING: usize = 16_777_215;

/// Where something lies in a pool; the top bit of `start` says in which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    fn range(self) -> std::ops::Range<usize> {
        let start = (self.start & !CONSTANT) as usize;
        start..start + self.len as usize
    }

    pub fn part(self, from: usize, to: usize) -> Self {
        Self { start: self.start + from as u32, len: (to - from) as u32 }
    }
}

/// A value in a register. Those that can be parameters come first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    Decimal(u32),
    Str(Span),
    Bytes(Span),
    /// A local variable that nothing was assigned to yet.
    Unbound,
    Tuple(Span),
    /// A list of the module or of an option: a constant that must not be changed.
    Frozen(Span),
    List(u32),
    /// A text of the text table: only statements read it.
    Text(u32),
}

impl Value {
    /// Python's name of the type, for messages.
    pub fn type_name(self) -> &'static str {
        match self {
            Value::Unbound => "nothing",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Timestamp(_) => "datetime.datetime",
            Value::Decimal(_) => "decimal.Decimal",
            Value::Str(_) | Value::Text(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::Tuple(_) => "tuple",
            Value::Frozen(_) | Value::List(_) => "list",
        }
    }

    /// Whether it can be sent: neither a list nor something that is no value.
    #[inline]
    pub fn is_parameter(self) -> bool {
        !matches!(self, Value::Unbound | Value::Tuple(_) | Value::Frozen(_) | Value::List(_) | Value::Text(_))
    }

    /// An integer, a bool being 0 or 1, as in Python.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(i),
            Value::Bool(b) => Some(i64::from(b)),
            _ => None,
        }
    }
}

/// Strings, bytes, cells of tuples and decimals, in the order in which they were made.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pool {
    pub text: String,
    pub blobs: Vec<u8>,
    pub cells: Vec<Value>,
    pub decimals: Vec<Decimal>,
}

impl Pool {
    /// Marks spans as the constants'.
    pub fn constant(span: Span) -> Span {
        Span { start: span.start | CONSTANT, len: span.len }
    }

    pub fn is_constant(span: Span) -> bool {
        span.start & CONSTANT != 0
    }

    pub fn constant_decimal(index: u32) -> Value {
        Value::Decimal(index | CONSTANT)
    }

    pub fn text_at(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }
}

/// A connection's own values, with the constants at hand.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pool: Pool,
    /// A string on its way from one place of the pool to another.
    scratch: String,
    lists: Vec<Vec<Value>>,
    live_lists: usize,
    /// Elements put into lists since the transaction began.
    listed: usize,
}

impl Heap {
    /// Forgets everything; what was allocated is kept up to a bound.
    #[inline]
    pub fn clear(&mut self) {
        let pool = &self.pool;
        let used = pool.text.len() | pool.cells.len() | pool.decimals.len() | pool.blobs.len();
        if used | self.live_lists != 0 {
            self.forget();
        }
    }

    #[inline(never)]
    fn forget(&mut self) {
        self.pool.text.clear();
        self.pool.cells.clear();
        self.pool.decimals.clear();
        self.pool.blobs.clear();
        if self.live_lists != 0 {
            for list in &mut self.lists[..self.live_lists] {
                list.clear();
            }
            self.live_lists = 0;
            self.listed = 0;
            if self.lists.len() > 16 || self.lists.iter().any(|list| list.capacity() > KEPT_BYTES / 16) {
                self.lists = Vec::new();
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.scratch.capacity() > KEPT_BYTES {
            self.scratch = String::new();
        }
        if self.pool.text.capacity() > KEPT_BYTES {
            self.pool.text.shrink_to(KEPT_BYTES);
        }
        if self.pool.cells.capacity() > KEPT_BYTES / 16 {
            self.pool.cells.shrink_to(KEPT_BYTES / 16);
        }
        if self.pool.blobs.capacity() > KEPT_BYTES {
            self.pool.blobs.shrink_to(KEPT_BYTES);
        }
    }

    pub fn str<'a>(&'a self, constants: &'a Pool, span: Span) -> &'a str {
        self.pool_of(constants, span.start).text_at(span)
    }

    pub fn bytes<'a>(&'a self, constants: &'a Pool, span: Span) -> &'a [u8] {
        self.pool_of(constants, span.start).blobs.get(span.range()).unwrap_or(&[])
    }

    pub fn cells<'a>(&'a self, constants: &'a Pool, span: Span) -> &'a [Value] {
        self.pool_of(constants, span.start).cells.get(span.range()).unwrap_or(&[])
    }

    pub fn decimal(&self, constants: &Pool, index: u32) -> Decimal {
        let pool = self.pool_of(constants, index);
        pool.decimals.get((index & !CONSTANT) as usize).copied().unwrap_or_default()
    }

    /// The elements of a list or tuple.
    pub fn elements<'a>(&'a self, constants: &'a Pool, value: Value) -> Option<&'a [Value]> {
        match value {
            Value::Tuple(span) | Value::Frozen(span) => Some(self.cells(constants, span)),
            Value::List(id) => self.lists.get(id as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    #[inline]
    fn pool_of<'a>(&'a self, constants: &'a Pool, start: u32) -> &'a Pool {
        if start & CONSTANT == 0 { &self.pool } else { constants }
    }

    /// Where the next string begins; `text_since` makes a value of what was written since.
    pub fn mark(&self) -> usize {
        self.pool.text.len()
    }

    /// The buffer to write a string to.
    pub fn writer(&mut self) -> &mut String {
        &mut self.pool.text
    }

    /// The string written since `mark`.
    pub fn text_since(&mut self, mark: usize) -> Result<Value, Fault> {
        let len = self.pool.text.len() - mark;
        if len > TEXT_CEILING || self.pool.text.len() > HEAP_CEILING {
            return fault(
                Class::Limit,
                format!("a string of {len} bytes; at most {TEXT_CEILING} are allowed"),
            );
        }
        Ok(Value::Str(Span { start: mark as u32, len: len as u32 }))
    }

    pub fn new_str(&mut self, text: &str) -> Result<Value, Fault> {
        let mark = self.mark();
        self.pool.text.push_str(text);
        self.text_since(mark)
    }

    /// A copy of a part of another string of either pool.
    pub fn copy_str(&mut self, constants: &Pool, span: Span) {
        if span.start & CONSTANT == 0 {
            self.scratch.clear();
            self.scratch.push_str(self.pool.text_at(span));
            self.pool.text.push_str(&self.scratch);
        } else {
            self.pool.text.push_str(constants.text_at(Span { start: span.start, len: span.len }));
        }
    }

    pub fn new_bytes(&mut self, bytes: &[u8]) -> Result<Value, Fault> {
        let start = self.pool.blobs.len();
        if start + bytes.len() > HEAP_CEILING {
            return fault(Class::Limit, "a transaction holds more than 256 MiB of bytes".to_owned());
        }
        self.pool.blobs.extend_from_slice(bytes);
        Ok(Value::Bytes(Span { start: start as u32, len: bytes.len() as u32 }))
    }

    pub fn new_decimal(&mut self, decimal: Decimal) -> Value {
        self.pool.decimals.push(decimal);
        Value::Decimal((self.pool.decimals.len() - 1) as u32)
    }

    pub fn new_tuple(&mut self, cells: &[Value]) -> Result<Value, Fault> {
        let start = self.tuple_start();
        self.pool.cells.extend_from_slice(cells);
        self.tuple_since(start)
    }

    /// Where the next tuple begins; `push_cell` and `tuple_since` make it.
    pub fn tuple_start(&self) -> usize {
        self.pool.cells.len()
    }

    pub fn push_cell(&mut self, value: Value) {
        self.pool.cells.push(value);
    }

    pub fn tuple_since(&mut self, start: usize) -> Result<Value, Fault> {
        let len = self.pool.cells.len() - start;
        if self.pool.cells.len() > HEAP_CEILING / 16 {
            return fault(Class::Limit, "a transaction holds more than 256 MiB of rows".to_owned());
        }
        Ok(Value::Tuple(Span { start: start as u32, len: len as u32 }))
    }

    /// An empty list; allocations of earlier lists are used again.
    fn new_list(&mut self) -> u32 {
        if self.live_lists == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.live_lists += 1;
        (self.live_lists - 1) as u32
    }

    pub fn list_mut(&mut self, id: u32) -> Option<&mut Vec<Value>> {
        self.lists.get_mut(id as usize)
    }

    /// A new list of these elements.
    pub fn list_of(&mut self, elements: &[Value]) -> Result<Value, Fault> {
        check_length(elements.len())?;
        self.account(elements.len() + 1)?;
        let id = self.new_list();
        self.lists[id as usize].extend_from_slice(elements);
        Ok(Value::List(id))
    }

    /// Counts elements that go into lists, which are not part of the pool.
    pub fn account(&mut self, elements: usize) -> Result<(), Fault> {
        self.listed += elements;
        if self.listed > HEAP_CEILING / 16 {
            return fault(Class::Limit, "a transaction holds more than 256 MiB of lists".to_owned());
        }
        Ok(())
    }
}

/// The limit of a list.
pub(crate) fn check_length(elements: usize) -> Result<(), Fault> {
    if elements > LIST_CEILING {
        return fault(
            Class::Limit,
            format!("a list of {elements} elements; at most {LIST_CEILING} are allowed"),
        );
    }
    Ok(())
}
