//! Rows of an answer without a machine, for tests of what the links read.

use super::action::RowWriter;
use super::fault::Fault;
use super::value::{Heap, Pool, Value};

/// Where rows go, and what they are.
#[derive(Debug, Default)]
pub(crate) struct Received {
    heap: Heap,
    constants: Pool,
    rows: Vec<Value>,
    trouble: Option<Fault>,
}

impl Received {
    pub fn writer(&mut self) -> RowWriter<'_> {
        RowWriter::new(&mut self.heap, &mut self.rows, &mut self.trouble)
    }

    /// The rows since the last call, each value after the name of its kind: `int -5`, `str "a"`, `bytes 00ff`,
    /// `timestamp` in microseconds since 1970. Values above a limit are the last row.
    pub fn take_rows(&mut self) -> Vec<Vec<String>> {
        let rows = std::mem::take(&mut self.rows);
        let mut read: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| {
                let cells = self.heap.elements(&self.constants, row).unwrap_or_default();
                cells.iter().map(|cell| self.text(*cell)).collect()
            })
            .collect();
        if let Some(trouble) = self.trouble.take() {
            read.push(vec![format!("trouble {trouble:?}")]);
        }
        self.heap.clear();
        read
    }

    fn text(&self, value: Value) -> String {
        match value {
            Value::None => "null".to_owned(),
            Value::Bool(value) => format!("bool {value}"),
            Value::Int(value) => format!("int {value}"),
            Value::Float(value) => format!("float {value:?}"),
            Value::Timestamp(us) => format!("timestamp {us}"),
            Value::Decimal(index) => format!("decimal {}", self.heap.decimal(&self.constants, index)),
            Value::Str(span) => format!("str {:?}", self.heap.str(&self.constants, span)),
            Value::Bytes(span) => {
                let digits = self.heap.bytes(&self.constants, span).iter().map(|byte| format!("{byte:02x}"));
                format!("bytes {}", digits.collect::<String>())
            }
            other => other.type_name().to_owned(),
        }
    }
}
