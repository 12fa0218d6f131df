//! The script: which statements get which answer, which connections fail and how.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regex_lite::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::delay::Delay;

/// How an answer, or a connection, goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// The connection is reset instead of an answer.
    Reset,
    /// No answer, the connection stays open.
    Silence,
    /// The first half of the answer, then the end of the connection.
    HalfPacket,
    /// The whole answer, a byte at a time.
    SlowBytes,
    /// Bytes that are no answer, then the end of the connection.
    Garbage,
    /// The answer with a wrong length in its first header, then the end of the connection.
    WrongLength,
}

/// How a connection is received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConnectFault {
    /// Reset before a byte is exchanged.
    Refuse,
    /// Reset in the middle of logging in.
    Reset,
    /// Accepted, and never a byte sent.
    Silence,
    /// An error packet instead of being let in.
    Error,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Code {
    Number(u16),
    Text(String),
}

/// An error packet's contents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorSpec {
    code: Code,
    sqlstate: Option<String>,
    message: String,
}

impl ErrorSpec {
    /// MySQL's number; 1105 (unknown error) for a code that is a SQLSTATE.
    pub(crate) fn number(&self) -> u16 {
        match &self.code {
            Code::Number(number) => *number,
            Code::Text(text) => text.parse().unwrap_or(1105),
        }
    }

    /// The SQLSTATE as given, or the server's own for the commonest numbers.
    pub(crate) fn sqlstate(&self) -> &str {
        match (&self.sqlstate, &self.code) {
            (Some(given), _) => given,
            (None, Code::Text(text)) if text.len() == 5 => text,
            (None, _) => match self.number() {
                1213 => "40001",
                1040 => "08004",
                1045 => "28000",
                1049 => "42000",
                1062 => "23000",
                1064 => "42000",
                1146 => "42S02",
                _ => "HY000",
            },
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

/// A column of a canned result; the type is one of int, double, decimal, text, timestamp.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    #[serde(rename = "type", default = "text_type")]
    pub(crate) kind: String,
}

fn text_type() -> String {
    "text".to_owned()
}

/// When a rule acts on a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    /// When it is executed, and when a text is sent.
    #[default]
    Execute,
    /// When it is prepared.
    Prepare,
    /// When its answer arrives: through a proxy the real server has executed it. Without one as `Execute`.
    Answer,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleSpec {
    #[serde(rename = "match")]
    pattern: String,
    nth: Option<u64>,
    #[serde(default)]
    at: Moment,
    columns: Option<Vec<ColumnSpec>>,
    rows: Option<Vec<Vec<serde_json::Value>>>,
    parameters: Option<Vec<String>>,
    affected: Option<u64>,
    error: Option<ErrorSpec>,
    repeat: Option<usize>,
    #[serde(default)]
    delay_ms: f64,
    delay: Option<String>,
    fault: Option<Fault>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StallSpec {
    at_s: f64,
    for_s: f64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectSpec {
    fault: Option<ConnectFault>,
    error: Option<ErrorSpec>,
    nth: Option<u64>,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(ConnectSpec),
    Many(Vec<ConnectSpec>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptSpec {
    #[serde(default)]
    rules: Vec<RuleSpec>,
    connect: Option<OneOrMany>,
    #[serde(default)]
    stalls: Vec<StallSpec>,
    stalls_from: Option<String>,
}

/// Whether a statement is meant: it begins with a text, or a regular expression is found in it; letter case
/// does not count.
#[derive(Debug)]
struct Pattern {
    prefix: String,
    regex: Option<Regex>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self {
            prefix: text.to_lowercase(),
            regex: RegexBuilder::new(text).case_insensitive(true).build().ok(),
        }
    }

    fn matches(&self, sql: &str) -> bool {
        sql.to_lowercase().starts_with(&self.prefix)
            || self.regex.as_ref().is_some_and(|regex| regex.is_match(sql))
    }
}

/// A time in which the whole server stands still, counted from the first statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
}

impl Stall {
    /// Error: a time that is negative or longer than an hour.
    pub(crate) fn new(at_s: f64, for_s: f64) -> Result<Self, String> {
        let time = |seconds: f64| match seconds {
            0.0..=3_600.0 => Ok(Duration::from_secs_f64(seconds)),
            _ => Err(format!("a stall begins and lasts 0 to 3600 seconds, not {seconds}")),
        };
        Ok(Self { at: time(at_s)?, lasts: time(for_s)? })
    }
}

/// A statement's rule.
#[derive(Debug)]
pub(crate) struct Rule {
    spec: RuleSpec,
    pattern: Pattern,
    delay: Option<Delay>,
    seen: AtomicU64,
}

impl Rule {
    fn new(spec: RuleSpec) -> Result<Self, String> {
        let named = spec.delay.as_deref().map(Delay::parse).transpose()?;
        let delay = match named {
            None if spec.delay_ms > 0.0 => Some(Delay::Fixed(Duration::from_secs_f64(spec.delay_ms / 1e3))),
            named => named,
        };
        Ok(Self { pattern: Pattern::new(&spec.pattern), delay, spec, seen: AtomicU64::new(0) })
    }

    fn matches(&self, sql: &str) -> bool {
        self.pattern.matches(sql)
    }

    pub(crate) fn columns(&self) -> Option<&[ColumnSpec]> {
        self.spec.columns.as_deref()
    }

    pub(crate) fn rows(&self) -> Option<&[Vec<serde_json::Value>]> {
        self.spec.rows.as_deref()
    }

    pub(crate) fn parameters(&self) -> Option<&[String]> {
        self.spec.parameters.as_deref()
    }

    pub(crate) fn affected(&self) -> Option<u64> {
        self.spec.affected
    }

    pub(crate) fn error(&self) -> Option<&ErrorSpec> {
        self.spec.error.as_ref()
    }

    /// None: as late as every statement is.
    pub(crate) fn delay(&self) -> Option<Delay> {
        self.delay
    }

    /// How often `rows` are given, one after the other.
    pub(crate) fn repeat(&self) -> usize {
        self.spec.repeat.unwrap_or(1)
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        self.spec.fault
    }

    pub(crate) fn moment(&self) -> Moment {
        self.spec.at
    }

    fn acts_at(&self, at: Moment) -> bool {
        at == if self.spec.at == Moment::Answer { Moment::Execute } else { self.spec.at }
    }
}

/// How one connection is to be received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reception {
    pub(crate) fault: Option<ConnectFault>,
    pub(crate) error: Option<ErrorSpec>,
    pub(crate) delay: Duration,
}

/// All rules of a script, with how often each has matched.
#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
    connect: Vec<ConnectSpec>,
    stalls: Vec<Stall>,
    stalls_from: Option<Pattern>,
}

impl Script {
    /// Reads a script file. Error: one sentence with file and place.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads a script. Error: what is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spec: ScriptSpec = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let connect = match spec.connect {
            None => Vec::new(),
            Some(OneOrMany::One(one)) => vec![one],
            Some(OneOrMany::Many(many)) => many,
        };
        Ok(Self {
            rules: spec.rules.into_iter().map(Rule::new).collect::<Result<_, _>>()?,
            connect,
            stalls: spec
                .stalls
                .iter()
                .map(|one| Stall::new(one.at_s, one.for_s))
                .collect::<Result<_, _>>()?,
            stalls_from: spec.stalls_from.as_deref().map(Pattern::new),
        })
    }

    /// Whether a proxy can do all that the script asks for. Error: what it cannot.
    pub(crate) fn check_for_proxy(&self) -> Result<(), String> {
        for rule in &self.rules {
            let pattern = &rule.spec.pattern;
            if !matches!(rule.spec.fault, None | Some(Fault::Reset | Fault::Silence)) {
                return Err(format!("rule {pattern:?}: with --proxy the fault can only be reset or silence"));
            }
            if rule.spec.columns.is_some() || rule.spec.rows.is_some() || rule.spec.affected.is_some() {
                return Err(format!("rule {pattern:?}: with --proxy the answer comes from the server"));
            }
            if rule.spec.at == Moment::Prepare {
                return Err(format!("rule {pattern:?}: with --proxy a rule acts on executions only"));
            }
        }
        if self.connect.iter().any(|spec| spec.error.is_some() || spec.fault == Some(ConnectFault::Error)) {
            return Err("with --proxy a connection can be refused, reset or met with silence".to_owned());
        }
        Ok(())
    }

    /// The rule that answers a statement: the first one that matches it and whose turn it is. Counts the
    /// match for every rule of that moment that matches.
    pub(crate) fn rule(&self, sql: &str, at: Moment) -> Option<&Rule> {
        self.choose(&self.matching(sql, at)).map(|index| &self.rules[index])
    }

    /// The numbers of the rules of a moment that match a statement, counting nothing.
    pub(crate) fn matching(&self, sql: &str, at: Moment) -> Vec<usize> {
        let matches = |(_, rule): &(usize, &Rule)| rule.acts_at(at) && rule.matches(sql);
        self.rules.iter().enumerate().filter(matches).map(|(index, _)| index).collect()
    }

    /// Among matching rules the first whose turn it is; counts a match for each of them.
    pub(crate) fn choose(&self, matching: &[usize]) -> Option<usize> {
        let mut chosen = None;
        for index in matching {
            let rule = &self.rules[*index];
            let is_its_turn = match rule.spec.nth {
                None => true,
                Some(nth) => rule.seen.fetch_add(1, Ordering::SeqCst) + 1 == nth,
            };
            if chosen.is_none() && is_its_turn {
                chosen = Some(*index);
            }
        }
        chosen
    }

    pub(crate) fn rule_of(&self, index: usize) -> &Rule {
        &self.rules[index]
    }

    /// When the server stands still.
    pub(crate) fn stalls(&self) -> &[Stall] {
        &self.stalls
    }

    /// Whether a statement begins the time from which stalls are counted.
    pub(crate) fn begins_stalls(&self, sql: &str) -> bool {
        self.stalls_from.as_ref().is_none_or(|pattern| pattern.matches(sql))
    }

    /// The rule that says which columns and parameters a statement has, counting nothing.
    pub(crate) fn description(&self, sql: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            (rule.spec.columns.is_some() || rule.spec.rows.is_some() || rule.spec.parameters.is_some())
                && rule.matches(sql)
        })
    }

    /// How the connection of that number, from 1, is received.
    pub(crate) fn reception(&self, connection: u64) -> Reception {
        match self.connect.iter().find(|spec| spec.nth.is_none_or(|nth| nth == connection)) {
            Some(spec) => Reception {
                fault: spec.fault,
                error: spec.error.clone(),
                delay: Duration::from_millis(spec.delay_ms),
            },
            None => Reception::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_match_counts_over_all_rules() {
        let script = Script::parse(
            r#"{"rules": [{"match": "COMMIT", "nth": 2, "fault": "reset"}, {"match": "^commit$", "affected": 7}]}"#,
        )
        .unwrap();
        assert_eq!(script.rule("COMMIT", Moment::Execute).unwrap().affected(), Some(7));
        assert_eq!(script.rule("commit", Moment::Execute).unwrap().fault(), Some(Fault::Reset));
        assert_eq!(script.rule("COMMIT", Moment::Execute).unwrap().affected(), Some(7));
        assert!(script.rule("COMMIT", Moment::Prepare).is_none());
        assert!(script.rule("BEGIN", Moment::Execute).is_none());
    }

    #[test]
    fn a_prefix_with_marks_of_regular_expressions_matches_as_it_is() {
        let script =
            Script::parse(r#"{"rules": [{"match": "SELECT c FROM t WHERE id=?", "affected": 1}]}"#).unwrap();
        assert!(script.rule("SELECT c FROM t WHERE id=? LIMIT 1", Moment::Execute).is_some());
    }

    #[test]
    fn unknown_words_are_refused() {
        assert!(Script::parse(r#"{"rules": [{"match": "x", "fault": "explode"}]}"#).is_err());
        assert!(Script::parse(r#"{"rule": []}"#).is_err());
    }
}
