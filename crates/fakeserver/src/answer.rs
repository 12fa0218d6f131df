//! What a statement is answered, before any protocol has encoded it.

use serde_json::Value as Json;

use crate::delay::Delay;
use crate::options::Protocol;
use crate::script::{ColumnSpec, ErrorSpec, Fault, Rule, Script};
use crate::sql;

/// The types that canned columns have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Double,
    Decimal,
    Text,
    Timestamp,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "int" | "bigint" | "integer" => Kind::Int,
            "double" | "float" => Kind::Double,
            "decimal" | "numeric" => Kind::Decimal,
            "timestamp" | "datetime" => Kind::Timestamp,
            _ => Kind::Text,
        }
    }

    fn of(value: &Json) -> Self {
        match value {
            Json::Number(number) if number.is_f64() => Kind::Double,
            Json::Number(_) | Json::Bool(_) => Kind::Int,
            _ => Kind::Text,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Column {
    fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Rows { columns: Vec<Column>, rows: Vec<Vec<Option<String>>> },
    Done { affected: u64 },
    Failed(ErrorSpec),
}

/// An answer with the ways in which it is to be late or wrong.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) body: Body,
    /// None: as late as every statement is.
    pub(crate) delay: Option<Delay>,
    pub(crate) fault: Option<Fault>,
}

/// What a session knows that statements may ask for.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) protocol: Protocol,
    pub(crate) server_version: String,
    pub(crate) connection: u64,
    pub(crate) user: String,
    pub(crate) database: String,
}

impl Session {
    /// The answer to a statement by the rule whose turn it is.
    pub(crate) fn answer(&self, script: &Script, statement: &str, rule: Option<&Rule>) -> Answer {
        let Some(rule) = rule else {
            let body = self.default_body(statement);
            return Answer { body, delay: None, fault: None };
        };
        let body = match rule.error() {
            Some(error) => Body::Failed(error.clone()),
            None => canned(rule).unwrap_or_else(|| match script.description(statement).and_then(canned) {
                // A fault on top of a canned answer of another rule keeps that one's columns.
                Some(body) if rule.affected().is_none() => body,
                _ => self.with_affected(rule, statement),
            }),
        };
        Answer { body, delay: rule.delay(), fault: rule.fault() }
    }

    fn with_affected(&self, rule: &Rule, statement: &str) -> Body {
        match rule.affected() {
            Some(affected) => Body::Done { affected },
            None => self.default_body(statement),
        }
    }

    /// The columns that a statement will return when it is executed; empty for none.
    pub(crate) fn columns(&self, script: &Script, statement: &str) -> Vec<Column> {
        let body =
            script.description(statement).and_then(canned).unwrap_or_else(|| self.default_body(statement));
        match body {
            Body::Rows { columns, .. } => columns,
            _ => Vec::new(),
        }
    }

    /// Whether the default answer differs from one connection to another.
    pub(crate) fn is_personal(statement: &str) -> bool {
        let text = statement.to_lowercase();
        ["connection_id", "pg_backend_pid", "database", "schema", "user"]
            .iter()
            .any(|word| text.contains(word))
    }

    fn default_body(&self, statement: &str) -> Body {
        let (verb, second) = sql::verbs(statement);
        if let Some(items) = sql::returned_items(statement) {
            let (columns, row) = items.iter().map(|item| self.item(item)).unzip();
            return Body::Rows { columns, rows: vec![row] };
        }
        let one_text = |name: &str, value: &str| Body::Rows {
            columns: vec![Column::new(name, Kind::Text)],
            rows: vec![vec![Some(value.to_owned())]],
        };
        match (self.protocol, verb.as_str()) {
            (Protocol::Mysql, "SHOW") => Body::Rows {
                columns: vec![Column::new("Variable_name", Kind::Text), Column::new("Value", Kind::Text)],
                rows: Vec::new(),
            },
            (Protocol::Postgresql, "SHOW") => match second.as_str() {
                "SERVER_VERSION" => one_text("server_version", &self.server_version),
                "TRANSACTION" => one_text("transaction_isolation", "read committed"),
                _ => one_text(&second.to_lowercase(), "1"),
            },
            (_, "EXPLAIN" | "DESCRIBE" | "DESC") => one_text("QUERY PLAN", "Result"),
            (_, "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE") => Body::Done { affected: 1 },
            _ => Body::Done { affected: 0 },
        }
    }

    fn item(&self, item: &str) -> (Column, Option<String>) {
        let name = sql::item_name(item);
        let expression = item.to_lowercase();
        let expression = expression.split(" as ").next().unwrap_or_default().trim();
        let text = |value: &str| (Column::new(&name, Kind::Text), Some(value.to_owned()));
        match expression {
            "version()" | "@@version" => match self.protocol {
                Protocol::Mysql => text(&self.server_version),
                Protocol::Postgresql => text(&format!("PostgreSQL {} (fakeserver)", self.server_version)),
            },
            "@@version_comment" => text("fakeserver"),
            "database()" | "schema()" | "current_database()" => text(&self.database),
            "current_schema()" | "current_schema" => text("public"),
            "user()" | "current_user()" | "current_user" | "session_user" => text(&self.user),
            "@@tx_isolation" | "@@transaction_isolation" => text("REPEATABLE-READ"),
            "connection_id()" | "pg_backend_pid()" => {
                (Column::new(&name, Kind::Int), Some(self.connection.to_string()))
            }
            _ => (Column::new(&name, Kind::Int), Some("1".to_owned())),
        }
    }
}

/// The rows that a rule gives; None when it says nothing of rows.
fn canned(rule: &Rule) -> Option<Body> {
    if rule.columns().is_none() && rule.rows().is_none() {
        return None;
    }
    let rows = rule.rows().unwrap_or_default();
    let columns = match rule.columns() {
        Some(columns) => {
            columns.iter().map(|ColumnSpec { name, kind }| Column::new(name, Kind::parse(kind))).collect()
        }
        None => rows.first().map_or_else(Vec::new, |row| {
            row.iter()
                .enumerate()
                .map(|(i, value)| Column::new(&format!("c{}", i + 1), Kind::of(value)))
                .collect()
        }),
    };
    let cell = |value: &Json| match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        Json::Bool(value) => Some(u8::from(*value).to_string()),
        other => Some(other.to_string()),
    };
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let count = rows.len() * rule.repeat();
    Some(Body::Rows { columns, rows: rows.into_iter().cycle().take(count).collect() })
}
