//! The virtual machine without a compiler: programs put together by hand, and bytes that are no programs.

use dbdyno_engine::Stream;
use dbdyno_engine::program::{Action, Class, Event, Param, Program, TEXT_LIMIT, Texts, Values, Vm, Want};
use serde_json::{Value as Json, json};

/// A source that is a constant.
const C: u32 = 32_768;
const NOWHERE: u32 = 0x7FFF;

/// A block with everything empty but its code; `patch` replaces fields.
fn block(registers: u32, code: &[Json], patch: Json) -> Json {
    let lines: Vec<Json> = (0..code.len()).map(|n| json!([0, 100 + n])).collect();
    let full: Vec<Json> = code
        .iter()
        .map(|short| {
            let mut fields = short.as_array().expect("an instruction is an array").clone();
            while fields.len() < 5 {
                fields.push(json!(0));
            }
            Json::Array(fields)
        })
        .collect();
    let mut block = json!({
        "registers": registers, "streams": 2, "code": full, "lines": lines,
        "statements": [], "batches": [], "templates": [], "fstrings": [],
    });
    merge(&mut block, patch);
    block
}

fn merge(into: &mut Json, patch: Json) {
    let (Json::Object(fields), Json::Object(more)) = (into, patch) else { return };
    fields.extend(more);
}

fn program(block: Json, patch: Json) -> Vec<u8> {
    let mut whole = json!({
        "format": 1, "name": "by hand", "files": ["hand.py"], "names": ["x"], "constants": [],
        "state": [], "texts": [], "templates": [], "terminals": 4, "multi_row": true, "pipeline": false,
        "max_parameters": 65535, "setup": [], "reconnect_every": 0, "start": null,
        "distribution": {"kind": "uniform", "spec_iter": 12, "spec_pct": 1, "spec_res": 75,
                         "pareto_h": 0.2, "zipfian_exp": 0.8},
        "transactions": [{"name": "event", "weight": 1.0, "keying_s": 0.0, "think_s": 0.0,
                          "writes": true, "block": block}],
    });
    merge(&mut whole, patch);
    whole.to_string().into_bytes()
}

fn statement(text: Json, params: &[u32], want: &str, columns: u64) -> Json {
    json!({"text": text, "params": params, "star": null, "want": want, "columns": columns})
}

struct Run {
    program: Program,
    texts: Texts,
    vm: Vm,
}

impl Run {
    fn new(bytes: &[u8]) -> Self {
        let program = Program::load(bytes).expect("a program");
        let (texts, vm) = (program.texts(), Vm::new(&program, 7, 2));
        Self { program, texts, vm }
    }

    fn begin(&mut self, number: u64) -> Action {
        self.vm.begin(&self.program, 0, 2, number, 1_000);
        self.resume(Event::Start)
    }

    fn resume(&mut self, event: Event) -> Action {
        self.vm.resume(&self.program, &mut self.texts, event)
    }

    /// The statement's text and integer parameters.
    fn sent(&self, action: &Action) -> (String, Vec<i64>) {
        let Action::Statement { text, .. } = action else { panic!("{action:?}") };
        let params = self.vm.params(&self.program).map(|param| match param {
            Param::Int(i) => i,
            other => panic!("{other:?}"),
        });
        (self.texts.get(*text).sql.clone(), params.collect())
    }
}

/// `db.query(f"SELECT c FROM t{rand.uniform(1, 5)} WHERE id = ?", rand.pick(1, 1000))`
fn point_select() -> Vec<u8> {
    let code = [
        json!(["uniform", 0, 0, C, C + 1]),
        json!(["text", 0, 1, 0]),
        json!(["pick", 0, 2, C, C + 2]),
        json!(["statement", 0, NOWHERE, 0]),
        json!(["return"]),
    ];
    let sites = json!({
        "statements": [statement(json!({"source": 1}), &[2], "rows", 0)],
        "templates": [{"template": 0, "holes": [0]}],
    });
    let texts = json!({
        "constants": [1, 5, 1000],
        "templates": [["SELECT c FROM t", {"hole": "int"}, " WHERE id = ?"]],
    });
    program(block(3, &code, sites), texts)
}

#[test]
fn values_are_those_of_the_stream_and_a_retry_repeats_them() {
    let mut run = Run::new(&point_select());
    let mut stream = Stream::new(7, "transaction", 2, 0, run.program.distribution());
    for number in 1..50 {
        stream.reseat(2, number);
        let (table, id) = (stream.uniform(1, 5).unwrap(), stream.pick(1, 1000).unwrap());
        let expected = (format!("SELECT c FROM t{table} WHERE id = ?"), vec![id]);
        let action = run.begin(number);
        assert_eq!(run.sent(&action), expected);
        run.vm.retry(&run.program, Values::Same);
        let action = run.resume(Event::Start);
        assert_eq!(run.sent(&action), expected);
        assert!(matches!(run.resume(Event::Rows(1)), Action::Done));
    }
    assert_eq!(run.texts.len(), 5, "each text has one number");
    let mut other = Stream::new(7, "transaction, try 1", 2, 49, run.program.distribution());
    run.vm.retry(&run.program, Values::New { tries: 1 });
    let action = run.resume(Event::Start);
    let (table, id) = (other.uniform(1, 5).unwrap(), other.pick(1, 1000).unwrap());
    assert_eq!(run.sent(&action), (format!("SELECT c FROM t{table} WHERE id = ?"), vec![id]));
}

#[test]
fn an_event_that_answers_nothing_is_an_error_not_a_panic() {
    for event in [Event::Done, Event::Start] {
        let mut run = Run::new(&point_select());
        run.begin(1);
        let Action::Error(failure) = run.resume(event) else { panic!("{event:?} was taken") };
        assert_eq!(failure.class, Class::Internal);
        assert!(matches!(run.resume(Event::Rows(0)), Action::Error(_)), "it stays ended");
        assert!(matches!(run.begin(2), Action::Statement { .. }), "the next transaction runs");
    }
}

/// `db.row(…)`, then its second column goes back as a parameter.
fn row_and_back(want: &str, columns: u64) -> Vec<u8> {
    let code = [
        json!(["statement", 0, 0, 0]),
        json!(["index", 0, 1, 0, C]),
        json!(["statement", 0, NOWHERE, 1]),
        json!(["return"]),
    ];
    let statements = json!({"statements": [
        statement(json!({"id": 0}), &[], want, columns),
        statement(json!({"id": 1}), &[1], "matched", 0),
    ]});
    program(
        block(2, &code, statements),
        json!({"constants": [1], "texts": ["SELECT a, b FROM t", "UPDATE t SET a = ?"]}),
    )
}

#[test]
fn a_row_is_read_as_far_as_the_program_reads_it() {
    let mut run = Run::new(&row_and_back("row", 2));
    let Action::Statement { want, columns, .. } = run.begin(1) else { panic!() };
    assert_eq!((want, columns), (Want::Row, 2));
    let mut rows = run.vm.rows();
    rows.skip();
    rows.text("grün");
    rows.end_row();
    run.resume(Event::Rows(1));
    let params: Vec<String> = run.vm.params(&run.program).map(|param| format!("{param:?}")).collect();
    assert_eq!(params, ["Str(\"grün\")"]);
    assert!(matches!(run.resume(Event::Matched(1)), Action::Done));
}

#[test]
fn two_rows_for_a_row_and_none_where_one_is_read_are_errors_with_their_line() {
    let mut run = Run::new(&row_and_back("row", 2));
    run.begin(1);
    for _ in 0..2 {
        run.vm.rows().end_row();
    }
    let Action::Error(two) = run.resume(Event::Rows(2)) else { panic!() };
    assert_eq!((two.class, two.line), (Class::WrongUse, 100));
    run.begin(2);
    let Action::Error(none) = run.resume(Event::Rows(0)) else { panic!() };
    assert_eq!(none.to_string(), "hand.py:101: in event: TypeError: 'NoneType' object is not subscriptable");
}

#[test]
fn a_decimal_beyond_28_digits_from_the_server_is_an_error_of_the_program() {
    let mut run = Run::new(&row_and_back("row", u64::MAX));
    run.begin(1);
    let mut rows = run.vm.rows();
    rows.decimal_text("1.5");
    rows.decimal_text(&"9".repeat(40));
    rows.end_row();
    assert!(matches!(run.resume(Event::Rows(1)), Action::Error(failure) if failure.class == Class::Overflow));
}

#[test]
fn transactions_must_be_opened_and_closed() {
    let code = |words: &[&str]| -> Vec<u8> {
        let code: Vec<Json> = words.iter().map(|word| json!([word])).collect();
        program(block(0, &code, json!({})), json!({}))
    };
    let mut run = Run::new(&code(&["begin", "commit", "return"]));
    assert!(matches!(run.begin(1), Action::Begin { write: true }));
    assert!(matches!(run.resume(Event::Done), Action::Commit));
    assert!(run.vm.transaction_open());
    assert!(matches!(run.resume(Event::Done), Action::Done));
    let mut run = Run::new(&code(&["begin", "return"]));
    run.begin(1);
    assert!(matches!(run.resume(Event::Done), Action::Error(failure) if failure.class == Class::WrongUse));
    let mut run = Run::new(&code(&["commit", "return"]));
    assert!(matches!(run.begin(1), Action::Error(failure) if failure.class == Class::WrongUse));
    let mut run = Run::new(&code(&["rollback"]));
    assert!(matches!(run.begin(1), Action::Rollback));
}

#[test]
fn an_endless_loop_is_an_error_and_statements_set_the_count_back() {
    let endless = program(block(1, &[json!(["loop", 0, 0, 0])], json!({})), json!({}));
    assert!(matches!(Run::new(&endless).begin(1), Action::Error(failure) if failure.class == Class::Limit));
    let code = [json!(["statement", 0, NOWHERE, 0]), json!(["loop", 0, 0, 30_000])];
    let sites = json!({"statements": [statement(json!({"id": 0}), &[], "rows", 0)]});
    let polite = program(block(1, &code, sites), json!({"texts": ["SELECT 1"]}));
    let mut run = Run::new(&polite);
    run.begin(1);
    for _ in 0..1000 {
        assert!(matches!(run.resume(Event::Rows(1)), Action::Statement { .. }));
    }
}

#[test]
fn state_outlives_transactions_and_comes_back_when_one_fails() {
    let code = [
        json!(["state_get", 0, 0, 0]),
        json!(["add", 0, 0, 0, C]),
        json!(["state_set", 0, 0, 0]),
        json!(["statement", 0, NOWHERE, 0]),
        json!(["return"]),
    ];
    let sites = json!({"statements": [statement(json!({"id": 0}), &[0], "matched", 0)]});
    let bytes = program(
        block(1, &code, sites),
        json!({"constants": [1], "texts": ["UPDATE t SET a = ?"], "state": [{"name": "n", "default": 10}]}),
    );
    let mut run = Run::new(&bytes);
    for (number, expected) in [(1, 11), (2, 12), (3, 13)] {
        let action = run.begin(number);
        assert_eq!(run.sent(&action).1, [expected]);
        run.vm.retry(&run.program, Values::Same);
        let action = run.resume(Event::Start);
        assert_eq!(run.sent(&action).1, [expected], "a retry begins with the same state");
        run.resume(Event::Matched(1));
    }
    run.begin(4);
    run.vm.restore_state();
    let action = run.begin(5);
    assert_eq!(run.sent(&action).1, [14], "a failed transaction leaves no trace");
}

/// `db.batch("INSERT INTO t VALUES (?, ?)", [(0, 0), …])` of seven rows.
fn batch(patch: Json, text: &str) -> Run {
    let code = [
        json!(["move", 0, 0, C]),
        json!(["move", 0, 1, C]),
        json!(["tuple", 0, 2, 0, 2]),
        json!(["list", 0, 3, 2, 1]),
        json!(["mul", 0, 3, 3, C + 1]),
        json!(["batch", 0, 2, 0]),
        json!(["statement", 0, NOWHERE, 0]),
        json!(["return"]),
    ];
    let sites = json!({
        "batches": [{"text": {"id": 0}, "rows": 3}],
        "statements": [statement(json!({"id": 1}), &[2], "matched", 0)],
    });
    let mut shared = json!({"constants": [0, 7], "texts": [text, "UPDATE t SET n = ?"]});
    merge(&mut shared, patch);
    Run::new(&program(block(4, &code, sites), shared))
}

#[test]
fn a_batch_becomes_multi_row_statements_within_the_servers_limit() {
    let mut run = batch(json!({"max_parameters": 6}), "INSERT INTO t VALUES (?, ?)");
    let mut action = run.begin(1);
    for rows in [3, 3, 1] {
        let (sql, params) = run.sent(&action);
        assert_eq!((sql.matches("(?, ?)").count(), params.len()), (rows, 2 * rows));
        action = run.resume(Event::Matched(rows as u64));
    }
    assert_eq!(run.sent(&action), ("UPDATE t SET n = ?".to_owned(), vec![7]));
}

#[test]
fn another_batch_is_sent_row_by_row_pipelined_where_the_target_can() {
    let mut run = batch(json!({"multi_row": false, "pipeline": true}), "INSERT INTO t VALUES (?, ?)");
    assert!(matches!(run.begin(1), Action::PipelineBegin));
    let mut action = run.resume(Event::Done);
    for _ in 0..7 {
        assert_eq!(run.sent(&action).0, "INSERT INTO t VALUES (?, ?)");
        action = run.resume(Event::Done);
    }
    assert!(matches!(action, Action::PipelineEnd));
    let action = run.resume(Event::Matched(5));
    assert_eq!(run.sent(&action).1, [5]);
    let mut run = batch(json!({}), "UPDATE t SET a = ? WHERE b = ?");
    let mut action = run.begin(1);
    for _ in 0..7 {
        assert_eq!(run.sent(&action).0, "UPDATE t SET a = ? WHERE b = ?");
        action = run.resume(Event::Matched(2));
    }
    assert_eq!(run.sent(&action).1, [14]);
}

#[test]
fn a_wrong_number_of_parameters_is_an_error() {
    let mut run = batch(json!({}), "UPDATE t SET a = ?");
    assert!(matches!(run.begin(1), Action::Error(failure) if failure.class == Class::WrongUse));
}

#[test]
fn more_texts_than_the_limit_are_an_error_not_a_leak() {
    let code = [
        json!(["move", 0, 0, C]),
        json!(["text", 0, 1, 0]),
        json!(["statement", 0, NOWHERE, 0]),
        json!(["add", 0, 0, 0, C]),
        json!(["loop", 0, 1, 0]),
    ];
    let sites = json!({
        "statements": [statement(json!({"source": 1}), &[], "rows", 0)],
        "templates": [{"template": 0, "holes": [0]}],
    });
    let bytes = program(
        block(2, &code, sites),
        json!({"constants": [1], "templates": [["SELECT ", {"hole": "int"}]]}),
    );
    let mut run = Run::new(&bytes);
    let mut action = run.begin(1);
    for _ in 0..TEXT_LIMIT {
        assert!(matches!(action, Action::Statement { .. }));
        action = run.resume(Event::Rows(0));
    }
    assert!(matches!(action, Action::Error(failure) if failure.class == Class::Limit));
    assert_eq!(run.texts.len(), TEXT_LIMIT);
}

#[test]
fn what_points_nowhere_is_refused_on_load() {
    let refuse = |code: &[Json], patch: Json| {
        let bytes = program(block(4, code, patch), json!({"constants": [1], "texts": ["SELECT 1"]}));
        assert!(Program::load(&bytes).is_err(), "{code:?}");
    };
    let end = [json!(["return"])];
    for step in [
        json!(["move", 0, 4, 0]),
        json!(["move", 0, 0, 4]),
        json!(["move", 0, 0, C + 1]),
        json!(["move", 1, 0, 0]),
        json!(["jump", 0, 0]),
        json!(["jump", 0, 2]),
        json!(["loop", 0, 9]),
        json!(["range_next", 0, 0, 2, 1]),
        json!(["unpack", 0, 3, 2, 0]),
        json!(["list", 0, 0, 2, 3]),
        json!(["uniform", 2, 0, 0, 0]),
        json!(["at", 0, 0, 0, 0]),
        json!(["at", 1, 2, 0, 0]),
        json!(["bound", 0, 0, 1]),
        json!(["state_get", 0, 0, 0]),
        json!(["statement", 0, NOWHERE, 0]),
        json!(["batch", 0, NOWHERE, 0]),
        json!(["text", 0, 0, 0]),
        json!(["fstring", 0, 0, 0]),
        json!(["nonsense"]),
    ] {
        refuse(&[step, end[0].clone()], json!({}));
    }
    refuse(&[json!(["move", 0, 0, 0])], json!({}));
    refuse(&[], json!({}));
    refuse(&end, json!({"lines": []}));
    refuse(&end, json!({"lines": [[1, 1]]}));
    refuse(&end, json!({"streams": 0}));
    refuse(&end, json!({"statements": [statement(json!({"id": 1}), &[], "rows", 0)]}));
    refuse(&end, json!({"statements": [statement(json!({"id": 0}), &[9], "rows", 0)]}));
    refuse(&end, json!({"statements": [statement(json!({"id": 0}), &[], "none", 0)]}));
    refuse(&end, json!({"fstrings": [[{"value": 9, "spec": "plain", "n": 0}]]}));
    refuse(&end, json!({"fstrings": [[{"value": 0, "spec": "zeros", "n": 100000}]]}));
}

#[test]
fn damaged_bytes_never_panic() {
    let good = point_select();
    assert!(Program::load(&good).is_ok());
    let mut stream = Stream::new(1, "damage", 0, 0, Default::default());
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=stream.uniform(0, 3).unwrap() {
            let at = stream.uniform(0, bytes.len() as i64 - 1).unwrap() as usize;
            bytes[at] = match stream.uniform(0, 2).unwrap() {
                0 => b"0123456789,[]{}\"-"[stream.uniform(0, 16).unwrap() as usize],
                _ => stream.word() as u8,
            };
        }
        bytes.truncate(stream.uniform(bytes.len() as i64 / 2, 2 * bytes.len() as i64).unwrap() as usize);
        // whatever loads must also run: to an end, to a statement or to an error
        if let Ok(program) = Program::load(&bytes) {
            let (mut texts, mut vm) = (program.texts(), Vm::new(&program, 1, 1));
            vm.begin(&program, 0, 1, 1, 0);
            let _ = vm.resume(&program, &mut texts, Event::Start);
            let _ = vm.resume(&program, &mut texts, Event::Rows(0));
        }
    }
}

#[test]
fn the_hash_is_that_of_the_bytes() {
    let (one, two) = (point_select(), row_and_back("row", 2));
    let hash = |bytes: &[u8]| Program::load(bytes).unwrap().hash;
    assert_eq!(hash(&one), hash(&one.clone()));
    assert_ne!(hash(&one), hash(&two));
    assert_eq!(hash(&one).len(), 64);
}
