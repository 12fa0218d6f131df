//! What a run did otherwise than asked, for its record.

use std::collections::{BTreeMap, BTreeSet};

/// Texts that the server did not prepare, and connections where, by the error's code.
#[derive(Debug, Default)]
pub(crate) struct Unprepared(BTreeMap<String, (BTreeSet<String>, BTreeSet<u64>)>);

impl Unprepared {
    /// The server refused with `code` to prepare `text` on `connection`.
    #[cold]
    pub fn note(&mut self, code: String, sql: &str, connection: u64) {
        let (texts, connections) = self.0.entry(code).or_default();
        texts.insert(sql.to_owned());
        connections.insert(connection);
    }

    /// What another loop noted.
    pub fn merge(&mut self, other: Self) {
        for (code, (texts, connections)) in other.0 {
            let mine = self.0.entry(code).or_default();
            mine.0.extend(texts);
            mine.1.extend(connections);
        }
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
