//! What was executed: two counters, and one JSON line a statement.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Counts and writes the statements of all connections.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    file: Option<Mutex<File>>,
    statements: AtomicU64,
    connections: AtomicU64,
}

impl Recorder {
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Self> {
        Ok(Self { file: path.map(File::create).transpose()?.map(Mutex::new), ..Self::default() })
    }

    /// The number of a new connection, from 1.
    pub(crate) fn connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether values are worth decoding.
    pub(crate) fn is_recording(&self) -> bool {
        self.file.is_some()
    }

    /// A statement was sent, and nobody records it.
    pub(crate) fn count(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// A statement was sent. The line is in the file when this returns: a test may look at once.
    pub(crate) fn statement(&self, connection: u64, sql: &str, values: Vec<Value>) {
        self.count();
        if let Some(file) = &self.file {
            let line = json!({"conn": connection, "sql": sql, "values": values}).to_string() + "\n";
            let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Err(error) = file.write_all(line.as_bytes()) {
                eprintln!("fakeserver: the record cannot be written: {error}");
            }
        }
    }

    /// The line that SIGUSR1 and the end print.
    pub(crate) fn summary(&self) -> String {
        format!(
            "statements {} connections {}",
            self.statements.load(Ordering::SeqCst),
            self.connections.load(Ordering::SeqCst)
        )
    }
}
