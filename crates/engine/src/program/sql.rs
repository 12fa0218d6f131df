//! Reading SQL texts: parameters, kind, and how an INSERT becomes multi-row. Nothing here knows a database.

/// What a statement does, as sysbench counts it: SELECT; INSERT, UPDATE, DELETE …; the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StatementKind {
    Read,
    Write,
    Other,
}

impl StatementKind {
    /// `read`, `write` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            StatementKind::Read => "read",
            StatementKind::Write => "write",
            StatementKind::Other => "other",
        }
    }
}

/// End of the quoted string, identifier or comment that begins at `at`; None when none begins there or it is
/// never closed.
fn quoted_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes[at] {
        quote @ (b'\'' | b'"' | b'`') => {
            let mut end = at + 1;
            loop {
                end += bytes.get(end..)?.iter().position(|byte| *byte == quote)? + 1;
                if quote == b'`' || bytes.get(end) != Some(&quote) {
                    return Some(end);
                }
                end += 1; // a doubled quote
            }
        }
        b'-' if bytes.get(at + 1) == Some(&b'-') => {
            Some(bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n))
        }
        b'/' if bytes.get(at + 1) == Some(&b'*') => {
            bytes.get(at + 2..)?.windows(2).position(|pair| pair == b"*/").map(|n| at + n + 4)
        }
        _ => None,
    }
}

/// Offsets of the `?` outside quotes and comments.
pub fn parameter_positions(sql: &str) -> Vec<usize> {
    let bytes = sql.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'?' {
            found.push(at);
        }
        at = quoted_end(bytes, at).unwrap_or(at + 1);
    }
    found
}

/// The kind by the first word; blanks, comments and opening parentheses before it do not matter.
pub fn statement_kind(sql: &str) -> StatementKind {
    let bytes = sql.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => at += 1,
            b'-' | b'/' => match quoted_end(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            _ => match sql[at..].chars().next() {
                Some(blank) if blank.is_whitespace() => at += blank.len_utf8(),
                _ => break,
            },
        }
    }
    let word: String = sql[at..].chars().take_while(char::is_ascii_alphabetic).collect();
    match word.to_ascii_uppercase().as_str() {
        "SELECT" | "WITH" => StatementKind::Read,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => StatementKind::Write,
        _ => StatementKind::Other,
    }
}

/// The `(?, ?)` at the end of an `INSERT … VALUES (?, ?)`; None when the text cannot be made multi-row.
pub fn row_group(sql: &str) -> Option<&str> {
    let first = sql.trim_start().get(..6)?.to_ascii_uppercase();
    if first != "INSERT" && first != "REPLAC" {
        return None;
    }
    let whole = sql.trim_end();
    let open = whole.rfind('(')?;
    let group = &whole[open..];
    if !group.ends_with(')') || group[..group.len() - 1].contains(')') {
        return None;
    }
    let before = whole[..open].trim_end();
    let start = before.len().checked_sub(6)?;
    let values = before.get(start..)?.eq_ignore_ascii_case("VALUES");
    let word_before = before[..start].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    (values && !word_before).then_some(group)
}

/// `sql` with its row group repeated for `rows` rows.
pub fn multi_row(sql: &str, rows: usize) -> Option<String> {
    let group = row_group(sql)?;
    let mut text = String::with_capacity(sql.len() + (group.len() + 2) * rows);
    text.push_str(sql.trim_end());
    for _ in 1..rows {
        text.push_str(", ");
        text.push_str(group);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_quotes_and_comments_are_no_parameters() {
        let sql = "SELECT '?', 'it''s ?', \"a?\", `b?` -- ?\n, /* ? */ ? FROM t WHERE a = ?";
        assert_eq!(parameter_positions(sql).len(), 2);
        assert_eq!(parameter_positions("SELECT ?, 'open ? ").len(), 2);
        assert_eq!(parameter_positions("SELECT ? /* open ?").len(), 2);
    }

    #[test]
    fn the_kind_is_that_of_the_first_word() {
        assert_eq!(statement_kind(" /* x */ (SELECT 1)"), StatementKind::Read);
        assert_eq!(statement_kind("-- x\nupdate t set a = 1"), StatementKind::Write);
        assert_eq!(statement_kind("CREATE TABLE t"), StatementKind::Other);
        assert_eq!(statement_kind(""), StatementKind::Other);
    }

    #[test]
    fn an_insert_becomes_multi_row() {
        let sql = "INSERT INTO t (a, b) VALUES (?, ?) ";
        assert_eq!(multi_row(sql, 2).as_deref(), Some("INSERT INTO t (a, b) VALUES (?, ?), (?, ?)"));
        assert_eq!(row_group("UPDATE t SET a = (?)"), None);
        assert_eq!(row_group("INSERT INTO t VALUES (now())"), None);
        assert_eq!(row_group("INSERT INTO t SELECT (?)"), None);
        assert_eq!(row_group("INSERT INTO xvalues (?)"), None);
    }
}
