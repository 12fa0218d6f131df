//! The event loop against a server of both protocols: what is counted, what a fault leads to, how a run ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_engine::Histogram;
use dbdyno_engine::program::Program;
use dbdyno_engine::run::{Conclusion, Counts, Job, Run};
use fakeserver::{Options, Protocol, Script, Server};
use serde_json::{Value as Json, json};

const PROTOCOLS: [Protocol; 2] = [Protocol::Mysql, Protocol::Postgresql];
/// A source that is a constant.
const C: u32 = 32_768;
const NOWHERE: u32 = 0x7FFF;
/// Longer than any run here takes, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// `db.begin(); row = db.row(SELECT …, id); db.execute(UPDATE …, row[0], id); db.commit()`, id from 1 to 1000.
fn transaction() -> Arc<Program> {
    let code = json!([
        ["begin", 0, 0, 0, 0],
        ["uniform", 0, 0, C + 1, C + 2],
        ["statement", 0, 1, 0, 0],
        ["index", 0, 2, 1, C],
        ["statement", 0, NOWHERE, 1, 0],
        ["commit", 0, 0, 0, 0],
        ["return", 0, 0, 0, 0],
    ]);
    let statements = json!([
        {"text": {"id": 0}, "params": [0], "star": null, "want": "row", "columns": 1},
        {"text": {"id": 1}, "params": [2, 0], "star": null, "want": "matched", "columns": 0},
    ]);
    let texts = json!(["SELECT k FROM t WHERE id = ?", "UPDATE t SET k = ? WHERE id = ?"]);
    program(&json!([0, 1, 1000]), &texts, &code, 3, &statements)
}

/// A program of one transaction.
fn program(constants: &Json, texts: &Json, code: &Json, registers: u16, statements: &Json) -> Arc<Program> {
    resting([0.0, 0.0], constants, texts, code, registers, statements)
}

/// A program of one transaction with keying and think time, seconds.
fn resting(
    [keying_s, think_s]: [f64; 2],
    constants: &Json,
    texts: &Json,
    code: &Json,
    registers: u16,
    statements: &Json,
) -> Arc<Program> {
    let whole = image([keying_s, think_s], constants, texts, code, registers, statements);
    Arc::new(Program::load(whole.to_string().as_bytes()).expect("a program"))
}

fn image(
    [keying_s, think_s]: [f64; 2],
    constants: &Json,
    texts: &Json,
    code: &Json,
    registers: u16,
    statements: &Json,
) -> Json {
    let lines: Vec<[usize; 2]> = (0..code.as_array().map_or(0, Vec::len)).map(|n| [0, 100 + n]).collect();
    let block = json!({
        "registers": registers, "streams": 1, "code": code, "lines": lines, "statements": statements,
        "batches": [], "templates": [], "fstrings": [],
    });
    json!({
        "format": 1, "name": "by hand", "files": ["hand.py"], "names": [], "constants": constants,
        "state": [], "texts": texts, "templates": [], "terminals": 4, "multi_row": true, "pipeline": false,
        "max_parameters": 65535, "setup": [], "reconnect_every": 0, "start": null,
        "distribution": {"kind": "uniform", "spec_iter": 12, "spec_pct": 1, "spec_res": 75,
                         "pareto_h": 0.2, "zipfian_exp": 0.8},
        "transactions": [{"name": "event", "weight": 1.0, "keying_s": keying_s, "think_s": think_s,
                          "writes": true, "block": block}],
    })
}

/// `db.begin()`, then `with db.pipeline():` two UPDATEs around `db.row(SELECT …)`, then `db.commit()`.
fn pipeline(waiting: bool) -> Arc<Program> {
    let code = json!([
        ["begin", 0, 0, 0, 0],
        ["uniform", 0, 0, C + 1, C + 2],
        ["pipeline_begin", 0, 0, 0, 0],
        ["statement", 0, NOWHERE, 1, 0],
        ["statement", 0, NOWHERE, 0, 0],
        ["statement", 0, NOWHERE, 1, 0],
        ["pipeline_end", 0, 0, 0, 0],
        ["commit", 0, 0, 0, 0],
        ["return", 0, 0, 0, 0],
    ]);
    let statements = json!([
        {"text": {"id": 0}, "params": [0], "star": null, "want": "row", "columns": 0},
        {"text": {"id": 1}, "params": [0, 0], "star": null, "want": "matched", "columns": 0},
    ]);
    let texts = json!(["SELECT k FROM t WHERE id = ?", "UPDATE t SET k = ? WHERE id = ?"]);
    let mut whole = image([0.0, 0.0], &json!([0, 1, 1000]), &texts, &code, 3, &statements);
    whole["pipeline"] = json!(!waiting);
    Arc::new(Program::load(whole.to_string().as_bytes()).expect("a program"))
}

/// `db.execute("SELECT 1")`
fn one_statement(rests_s: [f64; 2]) -> Arc<Program> {
    let code = json!([["statement", 0, NOWHERE, 0, 0], ["return", 0, 0, 0, 0]]);
    let statement = json!({"text": {"id": 0}, "params": [], "star": null, "want": "rows", "columns": 0});
    resting(rests_s, &json!([]), &json!(["SELECT 1"]), &code, 0, &json!([statement]))
}

/// A server whose SELECT answers 7, with more rules before that one.
fn server(protocol: Protocol, faults: &Json, record: Option<PathBuf>) -> Server {
    let mut rules = faults.as_array().expect("rules").clone();
    rules.push(json!({"match": "SELECT k", "columns": [{"name": "k", "type": "int"}], "rows": [[7]],
                      "parameters": ["int"]}));
    rules.push(json!({"match": "UPDATE t", "parameters": ["int", "int"], "affected": 1}));
    let script = Script::parse(&json!({ "rules": rules }).to_string()).expect("a script");
    Server::start_scripted(Options { record, ..Options::new(protocol) }, script).expect("a server")
}

/// Four connections in a closed loop without an end; `patch` replaces fields.
fn job(server: &Server, protocol: Protocol, patch: Json) -> Job {
    let name = match protocol {
        Protocol::Mysql => "mysql",
        Protocol::Postgresql => "postgresql",
    };
    let mut whole = json!({
        "login": {"protocol": name, "user": "u", "database": "d", "tls": "disable", "timeout_s": 20.0},
        "endpoints": [{"host": "127.0.0.1", "port": server.address().port()}],
        "connections": 4, "duration_s": null, "transactions": null, "warmup_s": 0.0, "interval_s": 0.05,
        "rate": null, "arrivals": "poisson", "max_tries": 3, "new_values": false, "ignore_errors": [],
        "reconnect_every": 0, "drain_s": 5.0, "seed": 7, "replay": false, "ack_path": "",
        "errors": {"codes": {"1213": "retryable", "40P01": "retryable"}},
        "begin": "BEGIN", "lost_code": "lost",
    });
    if let (Json::Object(fields), Json::Object(more)) = (&mut whole, patch) {
        fields.extend(more);
    }
    serde_json::from_value(whole).expect("a job")
}

/// What a run came to, all its spans together.
struct Outcome {
    counts: Counts,
    errors: Vec<(String, u64)>,
    response: Histogram,
    service: Histogram,
    lag: Histogram,
    lasts: usize,
    conclusion: Conclusion,
}

impl Outcome {
    fn of(run: Run) -> Self {
        let begun = Instant::now();
        let mut sums = [0; 13];
        let (mut response, mut service, mut lag) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        let (mut errors, mut lasts) = (Vec::new(), 0);
        while !run.is_over() {
            assert!(begun.elapsed() < PATIENCE, "the run does not end");
            let Some(span) = run.next(Duration::from_millis(200)) else { continue };
            for (sum, (_, value)) in sums.iter_mut().zip(span.figures.counts.named()) {
                *sum += value;
            }
            errors.extend(span.figures.errors);
            response.merge(&span.figures.response);
            service.merge(&span.figures.service);
            lag.merge(&span.figures.lag);
            lasts += usize::from(span.last);
        }
        let [scheduled, committed, rolled_back, failed, unknown, skipped, unfinished, ..] = sums;
        let [.., retries, reconnects, reads, writes, others, rows] = sums;
        let counts = Counts {
            scheduled,
            committed,
            rolled_back,
            failed,
            unknown,
            skipped,
            unfinished,
            retries,
            reconnects,
            reads,
            writes,
            others,
            rows,
        };
        let conclusion = run.conclusion().expect("the connections opened");
        let outcome = Self { counts, errors, response, service, lag, lasts, conclusion };
        outcome.check();
        outcome
    }

    /// What holds of every run.
    fn check(&self) {
        let counts = &self.counts;
        assert_eq!(self.conclusion.fatal, None);
        assert_eq!(
            counts.scheduled,
            counts.committed
                + counts.rolled_back
                + counts.failed
                + counts.unknown
                + counts.skipped
                + counts.unfinished,
            "{counts:?}"
        );
        assert_eq!(self.response.count(), counts.committed, "{counts:?}");
        assert_eq!(self.service.count(), counts.committed, "{counts:?}");
        assert_eq!(self.lag.count(), counts.scheduled, "{counts:?}");
        assert_eq!(self.lasts, 1, "one span is the last one");
    }
}

fn by_count(protocol: Protocol, faults: &Json) -> Outcome {
    let server = server(protocol, faults, None);
    let job = job(&server, protocol, json!({"transactions": 200}));
    Outcome::of(Run::start(job, transaction()).expect("a thread"))
}

#[test]
fn a_run_by_count_runs_every_transaction_once_and_counts_every_statement() {
    for protocol in PROTOCOLS {
        let record = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("drive-{protocol:?}.jsonl"));
        let server = server(protocol, &json!([]), Some(record.clone()));
        let job = job(&server, protocol, json!({"transactions": 200}));
        let outcome = Outcome::of(Run::start(job, transaction()).expect("a thread"));
        let expected = Counts {
            scheduled: 200,
            committed: 200,
            reads: 200,
            writes: 200,
            others: 400,
            rows: 200,
            ..Counts::default()
        };
        assert_eq!(outcome.counts, expected, "{protocol:?}");
        assert_eq!(outcome.errors, [], "{protocol:?}");
        assert!(!outcome.conclusion.interrupted);

        let lines = std::fs::read_to_string(&record).expect("the server's record");
        let statements: Vec<Json> =
            lines.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
        for connection in 1..=4 {
            let mut of_it = statements.iter().filter(|line| line["conn"] == connection);
            for _ in 0..50 {
                let words: Vec<&Json> = of_it.by_ref().take(4).collect();
                assert_eq!(words.len(), 4, "{protocol:?}: connection {connection} ran fewer than 50");
                assert_eq!((&words[0]["sql"], &words[3]["sql"]), (&json!("BEGIN"), &json!("COMMIT")));
                let id = &words[1]["values"][0];
                assert_eq!(words[2]["values"].as_array().map(Vec::len), Some(2), "{protocol:?}");
                assert_eq!(&words[2]["values"][1], id, "{protocol:?}: both statements name the same row");
                let k = &words[2]["values"][0];
                assert!(
                    *k == json!(7) || *k == json!("7"),
                    "{protocol:?}: the row's value was read, not {k}"
                );
            }
            assert_eq!(of_it.next(), None, "{protocol:?}: connection {connection} ran more than 50");
        }
    }
}

#[test]
fn a_deadlock_is_rolled_back_and_tried_again() {
    for (protocol, code) in PROTOCOLS.into_iter().zip(["1213", "40P01"]) {
        let outcome = by_count(
            protocol,
            &json!([{"match": "UPDATE t", "nth": 3, "error": {"code": code, "message": "deadlock"}}]),
        );
        let expected = Counts {
            scheduled: 200,
            committed: 200,
            retries: 1,
            reads: 201,
            writes: 201,
            others: 402, // ROLLBACK and a second BEGIN
            rows: 201,
            ..Counts::default()
        };
        assert_eq!(outcome.counts, expected, "{protocol:?}");
        assert_eq!(outcome.errors, [(code.to_owned(), 1)]);
    }
}

/// Statements that the server executed, without their connections; and what the run counted.
fn executed(waiting: bool, faults: &Json) -> (Vec<[Json; 2]>, Counts, Vec<(String, u64)>) {
    let record = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pipeline-{waiting}.jsonl"));
    let _ = std::fs::remove_file(&record);
    let server = server(Protocol::Postgresql, faults, Some(record.clone()));
    let job = job(&server, Protocol::Postgresql, json!({"transactions": 20, "connections": 1}));
    let outcome = Outcome::of(Run::start(job, pipeline(waiting)).expect("a thread"));
    let lines = std::fs::read_to_string(&record).expect("the server's record");
    let statements = lines
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("a line"))
        .map(|line| [line["sql"].clone(), line["values"].clone()])
        .collect();
    (statements, outcome.counts, outcome.errors)
}

#[test]
fn a_pipeline_executes_and_counts_what_statements_one_by_one_do_also_with_an_error_at_each() {
    let deadlock = json!({"code": "40P01", "message": "deadlock"});
    let mut faults = vec![json!([])];
    for (text, nths) in [("UPDATE t", 1..=4), ("SELECT k", 1..=2)] {
        faults.extend(nths.map(|nth| json!([{"match": text, "nth": nth, "error": deadlock}])));
        faults.push(json!([{"match": text, "nth": 3, "fault": "reset"}]));
    }
    for fault in faults {
        let (one_by_one, mut counts, errors) = executed(true, &fault);
        let (piped, piped_counts, piped_errors) = executed(false, &fault);
        if fault[0]["fault"] == json!("reset") {
            // answers that were on their way are lost with the connection
            assert!(piped_counts.committed == 20 && piped_counts.retries == 1, "{fault}: {piped_counts:?}");
            (counts.reads, counts.writes, counts.rows) =
                (piped_counts.reads, piped_counts.writes, piped_counts.rows);
        }
        assert_eq!(piped, one_by_one, "{fault}");
        assert_eq!((piped_counts, piped_errors), (counts, errors), "{fault}");
    }
}

#[test]
fn a_pipeline_whose_row_is_two_rows_ends_the_run_with_the_statement_and_its_line() {
    for waiting in [true, false] {
        let two = json!([{"match": "SELECT k", "columns": [{"name": "k", "type": "int"}], "rows": [[7], [8]],
                          "parameters": ["int"]}]);
        let server = server(Protocol::Postgresql, &two, None);
        let job = job(&server, Protocol::Postgresql, json!({"transactions": 20, "connections": 1}));
        let run = Run::start(job, pipeline(waiting)).expect("a thread");
        let begun = Instant::now();
        while !run.is_over() {
            assert!(begun.elapsed() < PATIENCE, "the run does not end");
            run.next(Duration::from_millis(200));
        }
        let fatal = run.conclusion().expect("the connections opened").fatal.expect("a sentence");
        assert!(fatal.starts_with("hand.py:104: in event: "), "{fatal}");
        assert!(
            fatal.ends_with(
                "db.row got 2 rows from \"SELECT k FROM t WHERE id = ?\"; use db.query for several"
            )
        );
    }
}

#[test]
fn a_transaction_fails_when_its_tries_are_used_up() {
    for (protocol, code) in PROTOCOLS.into_iter().zip(["1213", "40P01"]) {
        let faults = json!([{"match": "UPDATE t", "error": {"code": code, "message": "deadlock"}}]);
        let server = server(protocol, &faults, None);
        let job = job(&server, protocol, json!({"transactions": 8}));
        let outcome = Outcome::of(Run::start(job, transaction()).expect("a thread"));
        let counts = outcome.counts;
        assert_eq!((counts.scheduled, counts.failed, counts.retries), (8, 8, 16), "{protocol:?}: {counts:?}");
        assert_eq!((counts.reads, counts.writes, counts.others), (24, 24, 48), "{protocol:?}");
    }
}

#[test]
fn a_connection_lost_on_commit_leaves_one_unknown_transaction_that_is_not_repeated() {
    for protocol in PROTOCOLS {
        let outcome = by_count(protocol, &json!([{"match": "COMMIT", "nth": 5, "fault": "reset"}]));
        let expected = Counts {
            scheduled: 200,
            committed: 199,
            unknown: 1,
            reconnects: 1,
            reads: 200,
            writes: 200,
            others: 399,
            rows: 200,
            ..Counts::default()
        };
        assert_eq!(outcome.counts, expected, "{protocol:?}");
        assert_eq!(outcome.errors, [("lost".to_owned(), 1)]);
        let outages = &outcome.conclusion.outages;
        assert_eq!(outages.len(), 1);
        assert!(outages[0].end_ns > outages[0].begin_ns && outages[0].code == "lost", "{outages:?}");
    }
}

#[test]
fn a_connection_lost_before_commit_is_reopened_and_its_transaction_repeated() {
    for protocol in PROTOCOLS {
        let outcome = by_count(protocol, &json!([{"match": "UPDATE t", "nth": 5, "fault": "reset"}]));
        let counts = outcome.counts;
        assert_eq!(
            (counts.committed, counts.unknown, counts.retries, counts.reconnects),
            (200, 0, 1, 1),
            "{protocol:?}: {counts:?}"
        );
    }
}

#[test]
fn a_run_by_time_ends_by_itself() {
    for protocol in PROTOCOLS {
        let server = server(protocol, &json!([]), None);
        let job = job(&server, protocol, json!({"duration_s": 0.3}));
        let outcome = Outcome::of(Run::start(job, transaction()).expect("a thread"));
        assert!(outcome.counts.committed > 4, "{protocol:?}: {:?}", outcome.counts);
        assert_eq!(outcome.counts.committed, outcome.counts.scheduled, "what was begun was finished");
        assert!((outcome.conclusion.seconds - 0.3).abs() < 1e-6, "{}", outcome.conclusion.seconds);
        assert!(!outcome.conclusion.interrupted);
    }
}

#[test]
fn an_open_loop_begins_every_arrival_and_ends_by_itself() {
    for protocol in PROTOCOLS {
        let server = server(protocol, &json!([]), None);
        let patch = json!({"duration_s": 0.3, "rate": 200.0, "arrivals": "even"});
        let job = job(&server, protocol, patch);
        let outcome = Outcome::of(Run::start(job, transaction()).expect("a thread"));
        let counts = outcome.counts;
        assert_eq!(counts.scheduled, outcome.conclusion.arrived, "{protocol:?}: {counts:?}");
        assert!((59..=61).contains(&counts.scheduled), "{protocol:?}: {counts:?}");
        assert_eq!(counts.committed, counts.scheduled, "{protocol:?}: {counts:?}");
    }
}

#[test]
fn keying_and_think_times_pass_between_transactions_and_in_no_response_time() {
    for protocol in PROTOCOLS {
        let server = server(protocol, &json!([]), None);
        for rests_s in [[0.1, 0.0], [0.0, 0.1], [0.05, 0.05]] {
            let patch = json!({"transactions": 16, "reconnect_every": 2});
            let begun = Instant::now();
            let run = Run::start(job(&server, protocol, patch), one_statement(rests_s)).expect("a thread");
            let outcome = Outcome::of(run);
            let counts = outcome.counts;
            assert_eq!((counts.committed, counts.reads), (16, 16), "{protocol:?}: {counts:?}");
            // each terminal ran four, renewing its connection after the second and the fourth
            assert_eq!(counts.reconnects, 8, "{protocol:?}: {counts:?}");
            assert!(begun.elapsed() >= Duration::from_millis(300), "{rests_s:?}: {:?}", begun.elapsed());
            let median_ns = outcome.response.percentile(50.0).expect("a percentile");
            assert!(median_ns < 50_000_000, "{rests_s:?}: {median_ns}");
        }
    }
}

/// Values of every UPDATE, sorted.
fn updated(record: &PathBuf) -> Vec<String> {
    let lines = std::fs::read_to_string(record).expect("the server's record");
    let mut values: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("a line"))
        .filter(|line| line["sql"].as_str().is_some_and(|sql| sql.starts_with("UPDATE")))
        .map(|line| line["values"].to_string())
        .collect();
    values.sort();
    values
}

#[test]
fn several_loops_run_the_same_transactions_as_one() {
    for (protocol, open) in PROTOCOLS.into_iter().zip([false, true]) {
        let mut seen = Vec::new();
        for loops in [1, 3] {
            let name = format!("loops-{protocol:?}-{loops}.jsonl");
            let record = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
            let _ = std::fs::remove_file(&record);
            let server = server(protocol, &json!([]), Some(record.clone()));
            let mut patch = json!({"transactions": 103, "loops": loops});
            if open {
                patch["rate"] = json!(2000.0);
            }
            let run = Run::start(job(&server, protocol, patch), transaction()).expect("a thread");
            assert_eq!(run.thread_ids().len(), loops);
            let outcome = Outcome::of(run);
            assert_eq!((outcome.counts.scheduled, outcome.counts.committed), (103, 103), "{protocol:?}");
            assert_eq!(outcome.conclusion.arrived, if open { 103 } else { 0 });
            seen.push(updated(&record));
        }
        assert_eq!(seen[0], seen[1], "{protocol:?}");
    }
}

#[test]
fn several_loops_end_together_by_time_by_request_and_when_one_of_them_fails() {
    for protocol in PROTOCOLS {
        let run_of = |server: &Server, patch| {
            Run::start(job(server, protocol, patch), transaction()).expect("a thread")
        };
        let healthy = server(protocol, &json!([]), None);
        let outcome = Outcome::of(run_of(&healthy, json!({"duration_s": 0.3, "loops": 2, "warmup_s": 0.1})));
        assert!((outcome.conclusion.seconds - 0.3).abs() < 1e-6, "{}", outcome.conclusion.seconds);
        assert!(outcome.counts.committed == outcome.counts.scheduled && !outcome.conclusion.interrupted);

        let run = run_of(&healthy, json!({"loops": 2, "spin": true}));
        run.next(PATIENCE).expect("a span");
        run.stop(false);
        assert!(Outcome::of(run).conclusion.interrupted);

        // the workload is wrong on one loop's connection
        let code = if protocol == Protocol::Mysql { "1064" } else { "42601" };
        let fatal = json!([{"match": "UPDATE t", "nth": 20, "error": {"code": code, "message": "what"}}]);
        let run = run_of(&server(protocol, &fatal, None), json!({"loops": 4}));
        let begun = Instant::now();
        while !run.is_over() {
            assert!(begun.elapsed() < PATIENCE, "the run does not end");
            run.next(Duration::from_millis(200));
        }
        let conclusion = run.conclusion().expect("the connections opened");
        assert_eq!(conclusion.fatal.as_deref(), Some(format!("{code}: what").as_str()));
        assert!(!conclusion.interrupted);

        // one of the connections is refused
        let script =
            Script::parse(&json!({"connect": {"fault": "refuse", "nth": 3}}).to_string()).expect("a script");
        let refusing = Server::start_scripted(Options::new(protocol), script).expect("a server");
        let run = run_of(&refusing, json!({"loops": 2, "duration_s": 60.0}));
        while !run.is_over() {
            assert!(begun.elapsed() < PATIENCE, "the run does not end");
            run.next(Duration::from_millis(200));
        }
        let error = run.conclusion().expect_err("a connection is refused");
        assert!(error.message.contains("closed the connection during the login"), "{error}");
    }
}

#[test]
fn a_stopped_run_finishes_what_is_open_and_ends() {
    for protocol in PROTOCOLS {
        let server = server(protocol, &json!([]), None);
        let run = Run::start(job(&server, protocol, json!({})), transaction()).expect("a thread");
        let first = run.next(PATIENCE).expect("a span");
        assert!(!first.last && !run.is_over());
        run.stop(false);
        let outcome = Outcome::of(run);
        assert_eq!(outcome.counts.committed, outcome.counts.scheduled, "{:?}", outcome.counts);
        assert!(outcome.conclusion.interrupted);
    }
}

#[test]
fn an_immediate_stop_does_not_wait_for_a_server_that_is_silent() {
    let stop = |protocol| {
        let server = server(protocol, &json!([{"match": "UPDATE t", "nth": 1, "fault": "silence"}]), None);
        let patch = json!({"connections": 1, "drain_s": 600.0});
        let run = Run::start(job(&server, protocol, patch), transaction()).expect("a thread");
        run.next(PATIENCE).expect("a span");
        let asked = Instant::now();
        run.stop(true);
        let outcome = Outcome::of(run);
        assert!(asked.elapsed() < Duration::from_secs(20), "{protocol:?}: {:?}", asked.elapsed());
        let counts = outcome.counts;
        assert_eq!((counts.scheduled, counts.unfinished), (1, 1), "{protocol:?}: {counts:?}");
    };
    // the server is given some seconds to obey the cancellation: both at once
    std::thread::scope(|scope| {
        PROTOCOLS.into_iter().for_each(|protocol| drop(scope.spawn(move || stop(protocol))))
    });
}

#[test]
fn a_wrong_password_is_refused_in_a_sentence_that_does_not_tell_it() {
    for (protocol, code) in PROTOCOLS.into_iter().zip(["1045", "28P01"]) {
        for cleartext in [false, true] {
            let options = Options { password: Some("right-one".into()), cleartext, ..Options::new(protocol) };
            let server = Server::start(options).expect("a server");
            let with = |password: &str| {
                let mut job = job(&server, protocol, json!({"duration_s": 0.01}));
                job.login.password = serde_json::from_value(json!(password)).expect("a secret");
                let run = Run::start(job, one_statement([0.0, 0.0])).expect("a thread");
                while !run.is_over() {
                    run.next(Duration::from_millis(200));
                }
                run.conclusion()
            };
            assert_eq!(with("right-one").expect("let in").fatal, None, "{protocol:?}");
            let error = with("wrong-one").expect_err("refused");
            assert_eq!(error.code, code, "{error:?}");
            assert!(!format!("{error:?} {error}").contains("wrong-one"), "{error:?}");
        }
    }
}
