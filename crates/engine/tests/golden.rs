//! What real servers sent (crates/wire/tests/golden) means the same to the hot path's parsers, value by value and
//! however the bytes are cut.

use dbdyno_engine::link::rehearsal::Rehearsal;
use dbdyno_engine::link::{Answer, Protocol};
use dbdyno_engine::program::Param;
use serde_json::Value;

fn golden(name: &str) -> Vec<Value> {
    let path = format!("{}/../wire/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    golden["exchanges"].as_array().unwrap().clone()
}

fn said(exchange: &Value, side: &str) -> Vec<u8> {
    let turns = exchange["turns"].as_array().unwrap().iter();
    let digits: String = turns.filter(|turn| turn[0] == side).map(|turn| turn[1].as_str().unwrap()).collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// The one answer in `bytes`, given in pieces of that many.
fn heard(client: &mut Rehearsal, bytes: &[u8], piece: usize, name: &str) -> Answer {
    let mut answer = Answer::Pending;
    for (number, piece) in bytes.chunks(piece).enumerate() {
        assert_eq!(answer, Answer::Pending, "{name}: piece {number} comes after the answer");
        answer = client.hear(piece).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(client.held(), 0, "{name}");
    answer
}

fn check(client: &mut Rehearsal, exchange: &Value, answer: &Answer, code: Option<String>) {
    let name = exchange["name"].as_str().unwrap();
    match (code, answer) {
        (Some(code), Answer::Failed(error)) => assert_eq!(error.code, code, "{name}"),
        (None, answer) => assert_eq!(format!("{answer:?}"), exchange["answer"].as_str().unwrap(), "{name}"),
        (_, other) => panic!("{name}: {other:?}"),
    }
    let rows = client.take_rows();
    if !exchange["rows"].is_null() {
        let text = |cell: &Value| cell.as_str().unwrap().to_owned();
        let row = |row: &Value| row.as_array().unwrap().iter().map(text).collect();
        let expected: Vec<Vec<String>> = exchange["rows"].as_array().unwrap().iter().map(row).collect();
        assert_eq!(rows, expected, "{name}");
    }
    if let Some(open) = exchange["in_transaction"].as_bool() {
        assert_eq!(client.in_transaction(), open, "{name}");
    }
}

fn mysql(name: &str, piece: usize) {
    let exchanges = golden(name);
    let commands: Vec<&Value> = exchanges.iter().filter(|exchange| exchange["ask"] != "login").collect();
    let mut clients = std::collections::BTreeMap::new();
    for (number, exchange) in commands.iter().enumerate() {
        let capabilities = exchange["capabilities"].as_u64().unwrap() as u32;
        // one connection for each half of the recording
        let half = number * 2 / commands.len();
        let client =
            clients.entry(half).or_insert_with(|| Rehearsal::new(Protocol::MySql, capabilities, u64::MAX));
        let sql = exchange["statement"].as_str().unwrap_or("SELECT nothing FROM golden");
        let code = exchange["error"][0].as_u64().map(|code| code.to_string());
        let asked = match exchange["ask"].as_str().unwrap() {
            "query" => client.query(sql).to_vec(),
            "prepare" => {
                client.statement(number as u32 / 100 + u32::from(code.is_some()), sql, none()).to_vec()
            }
            _ => client.statement(0, sql, [Param::Int(0)].into_iter()).to_vec(),
        };
        assert_eq!(asked, said(exchange, "client"), "{}", exchange["name"]);
        let answer = heard(client, &said(exchange, "server"), piece, exchange["name"].as_str().unwrap());
        if exchange["ask"] == "prepare" && code.is_none() {
            assert_eq!(answer, Answer::Prepared);
        } else {
            check(client, exchange, &answer, code);
        }
    }
}

fn none() -> std::iter::Empty<Param<'static>> {
    std::iter::empty()
}

fn postgresql(piece: usize) {
    let mut client = Rehearsal::new(Protocol::PostgreSql, 0, u64::MAX);
    for exchange in golden("postgresql-18") {
        let name = exchange["name"].as_str().unwrap();
        let sql = exchange["statement"].as_str().unwrap_or_default();
        let asked = match exchange["ask"].as_str().unwrap() {
            "query" => client.query(sql).to_vec(),
            "statement" if exchange["error"].is_null() => {
                client.statement(0, &sql.replace("$1", "?"), [Param::Int(0)].into_iter()).to_vec()
            }
            "statement" => client.statement(2, sql, none()).to_vec(),
            "statement again" => client.statement(0, "", [Param::Int(0)].into_iter()).to_vec(),
            _ => continue,
        };
        assert_eq!(asked, said(&exchange, "client"), "{name}");
        let answer = heard(&mut client, &said(&exchange, "server"), piece, name);
        check(&mut client, &exchange, &answer, exchange["error"].as_str().map(str::to_owned));
    }
}

#[test]
fn rows_of_mariadb_10_11_reach_the_program_as_they_are() {
    [usize::MAX, 1, 7].into_iter().for_each(|piece| mysql("mariadb-10.11", piece));
}

#[test]
fn rows_of_mysql_9_7_reach_the_program_as_they_are() {
    [usize::MAX, 1, 7].into_iter().for_each(|piece| mysql("mysql-9.7", piece));
}

#[test]
fn rows_of_seekdb_reach_the_program_as_they_are() {
    [usize::MAX, 1, 7].into_iter().for_each(|piece| mysql("seekdb-1.4", piece));
}

#[test]
fn rows_of_postgresql_18_reach_the_program_as_they_are() {
    [usize::MAX, 1, 7].into_iter().for_each(postgresql);
}
