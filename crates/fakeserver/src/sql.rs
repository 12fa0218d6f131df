//! As much of SQL as a server needs that executes none of it: where statements end, how many parameters
//! and columns they have, which verb they begin with.

/// Calls `visit` with each byte's position that is outside quotes and comments.
fn outside_quotes(sql: &str, mut visit: impl FnMut(usize, u8)) {
    let bytes = sql.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &sql[at..];
        let skipped = match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => quoted_length(rest, quote),
            b'-' if rest.starts_with("-- ") || rest.starts_with("--\n") => {
                rest.find('\n').unwrap_or(rest.len())
            }
            b'#' => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") && !rest.starts_with("/*!") => {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            }
            byte => {
                visit(at, byte);
                1
            }
        };
        // Positions stay on character boundaries: every construct above ends on one, and the bytes of
        // a longer character are visited together.
        at += skipped;
        while at < bytes.len() && !sql.is_char_boundary(at) {
            at += 1;
        }
    }
}

fn quoted_length(rest: &str, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The statements of a text, trimmed, without empty ones.
pub(crate) fn statements(sql: &str) -> Vec<&str> {
    let mut ends = Vec::new();
    outside_quotes(sql, |at, byte| {
        if byte == b';' {
            ends.push(at);
        }
    });
    ends.push(sql.len());
    let mut start = 0;
    let mut found = Vec::new();
    for end in ends {
        found.push(sql[start..end].trim());
        start = end + 1;
    }
    found.retain(|statement| !statement.is_empty());
    found
}

/// The number of `?` marks.
pub(crate) fn question_marks(sql: &str) -> usize {
    let mut count = 0;
    outside_quotes(sql, |_, byte| count += usize::from(byte == b'?'));
    count
}

/// The highest n of the `$n` marks.
pub(crate) fn dollar_marks(sql: &str) -> usize {
    let mut highest = 0;
    outside_quotes(sql, |at, byte| {
        if byte == b'$' {
            let digits: String = sql[at + 1..].chars().take_while(char::is_ascii_digit).collect();
            highest = highest.max(digits.parse().unwrap_or(0));
        }
    });
    highest
}

/// The first two words in upper case, comments before them skipped.
pub(crate) fn verbs(sql: &str) -> (String, String) {
    let mut rest = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
    }
    let mut words = rest
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '@'))
        .filter(|word| !word.is_empty())
        .map(str::to_uppercase);
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// The items of the list that a statement returns: of SELECT up to FROM, or after RETURNING. None when it
/// returns no rows.
pub(crate) fn returned_items(sql: &str) -> Option<Vec<String>> {
    let (verb, _) = verbs(sql);
    let list = if matches!(verb.as_str(), "SELECT" | "WITH" | "VALUES" | "TABLE") {
        let start = keyword(sql, "SELECT", 0).map_or(0, |at| at + "SELECT".len());
        let ends = ["FROM", "LIMIT", "FOR", "WHERE", "ORDER", "UNION"];
        let end = ends.iter().filter_map(|word| keyword(sql, word, start)).min().unwrap_or(sql.len());
        &sql[start..end]
    } else {
        let start = keyword(sql, "RETURNING", 0)? + "RETURNING".len();
        &sql[start..]
    };
    let mut cuts = Vec::new();
    let mut depth = 0i32;
    outside_quotes(list, |at, byte| match byte {
        b'(' | b'[' => depth += 1,
        b')' | b']' => depth -= 1,
        b',' if depth == 0 => cuts.push(at),
        _ => {}
    });
    cuts.push(list.len());
    let mut start = 0;
    let mut items = Vec::new();
    for cut in cuts {
        let item = list[start..cut].trim();
        let item = item.strip_prefix("DISTINCT ").or(item.strip_prefix("distinct ")).unwrap_or(item);
        items.push(item.trim_end_matches(';').to_owned());
        start = cut + 1;
    }
    Some(items)
}

/// The name under which an item is returned: its alias, its column, or itself.
pub(crate) fn item_name(item: &str) -> String {
    let name = item.rsplit(|c: char| c.is_whitespace() || c == '.').next().unwrap_or(item);
    name.trim_matches(|c| c == '`' || c == '"').to_owned()
}

/// Where a word stands by itself, outside quotes and parentheses, at or after `from`.
fn keyword(sql: &str, word: &str, from: usize) -> Option<usize> {
    let mut depth = 0i32;
    let mut found = None;
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    outside_quotes(sql, |at, byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        let end = at + word.len();
        if found.is_none()
            && depth == 0
            && at >= from
            && sql.as_bytes().get(at..end).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()))
            && !is_part(at.checked_sub(1).and_then(|before| sql.as_bytes().get(before)))
            && !is_part(sql.as_bytes().get(end))
        {
            found = Some(at);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_quotes_and_comments_do_not_count() {
        assert_eq!(
            question_marks("SELECT '?', \"?\", `?` /* ? */ FROM t WHERE a = ? AND b = 'it''s ?' AND c = ?"),
            2
        );
        assert_eq!(dollar_marks("SELECT $2, '$9' FROM t WHERE a = $1 -- $7"), 2);
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes() {
        assert_eq!(statements("BEGIN; SELECT ';' ;; COMMIT;"), ["BEGIN", "SELECT ';'", "COMMIT"]);
        assert_eq!(statements("INSERT INTO t VALUES ('ü;')"), ["INSERT INTO t VALUES ('ü;')"]);
        assert!(statements("  ").is_empty());
    }

    #[test]
    fn columns_are_counted_at_the_top_level() {
        let count = |sql: &str| returned_items(sql).map(|items| items.len());
        assert_eq!(count("SELECT a, f(b, c), 'x,y' FROM t"), Some(3));
        assert_eq!(count("select 1"), Some(1));
        assert_eq!(count("SELECT (SELECT 1, 2 FROM x), from_unixtime(1) FROM t"), Some(2));
        assert_eq!(count("UPDATE t SET a = 1"), None);
        assert_eq!(count("INSERT INTO t VALUES (1) RETURNING id, k"), Some(2));
        assert_eq!(returned_items("SELECT DISTINCT c FROM t").unwrap(), ["c"]);
        assert_eq!(item_name("t.`c`"), "c");
        assert_eq!(item_name("SUM(k) AS total"), "total");
    }

    #[test]
    fn verbs_are_the_first_words() {
        assert_eq!(verbs("/* hint */ create  index k on t(a)").0, "CREATE");
        assert_eq!(verbs("START TRANSACTION").1, "TRANSACTION");
    }
}
