//! What a run did otherwise than asked, for its record.

use std::collections::{BTreeMap, BTreeSet};

/// Texts that the server did not prepare.
#[derive(Debug, Default)]
pub(crate) struct Unprepared(BTreeMap<String, (BTreeSet<u32>, BTreeSet<u64>)>);

impl Unprepared {
    /// The server refused with `code` to prepare `text` on `connection`.
    #[cold]
    pub fn note(&mut self, code: String, text: u32, connection: u64) {
        let (texts, connections) = self.0.entry(code).or_default();
        texts.insert(text);
        connections.insert(connection);
    }

    /// One sentence for each code.
    pub fn sentences(&self) -> Vec<String> {
        let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        self.0
            .iter()
            .map(|(code, (texts, connections))| {
                format!(
                    "{} went as text, not prepared, on {}: the server refused to prepare (error {code})",
                    counted(texts.len(), "statement text"),
                    counted(connections.len(), "connection")
                )
            })
            .collect()
    }
}
