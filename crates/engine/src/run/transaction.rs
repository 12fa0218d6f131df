//! One transaction: what the machine wants, what the server answers, what an error means.
//!
//! Retryable error: ROLLBACK, then the same transaction again with the same values, up to `max_tries`.
//! Connection lost before COMMIT was sent: reopened and retried; after it: unknown, never retried.
//! Times cover all attempts (language.md).

use std::io::Write as _;

use super::event_loop::{EventLoop, Phase, READS_PER_TURN};
use super::figures::{Booking, Ending, Figures};
use super::job::ErrorClass;
use super::pipeline::Deferred;
use super::terminal::{After, Outage, Step};
use crate::Stream;
use crate::link::{Answer, ServerError};
use crate::program::{Action, Event, StatementKind, Values, Want};

/// The server does not have a prepared statement (any more), or has one of that name from another client of a
/// pooler: nothing was executed, the text is prepared anew and the transaction tried again.
const FORGOTTEN: [&str; 3] = ["1243", "26000", "42P05"];
/// Times that a transaction is tried again for that, beside its tries: behind a pooler each of its texts may
/// be unknown to the server's session that it gets.
const RENEWALS: u32 = 64;

impl EventLoop<'_> {
    /// Begins transaction `number` on a free terminal.
    #[inline]
    pub(super) fn begin(&mut self, index: usize, seat: u64, number: u64, intended_ns: u64, now: u64) {
        let kind = self.pick(seat, number);
        let now_us = if self.program.uses_now() { self.now_us(number) } else { 0 };
        let program = self.program;
        let terminal = &mut self.terminals[index];
        terminal.last += 1;
        (terminal.tries, terminal.renewals) = (1, 0);
        terminal.running = true;
        terminal.outcome_unknown = false;
        (terminal.pipelined, terminal.queueing) = (false, false);
        terminal.booking =
            Booking { kind, intended_ns: intended_ns.min(now), begun_ns: now, ..Booking::default() };
        terminal.think_s = program.transactions[kind].think_s;
        terminal.vm.begin(program, kind, seat, number, now_us);
        if terminal.link.is_none() {
            self.reopen(index, After::Again, "");
            return;
        }
        self.resume(index, Event::Start);
    }

    pub(super) fn pick(&self, seat: u64, number: u64) -> usize {
        if self.program.transactions.len() == 1 {
            return 0;
        }
        let mut mix = Stream::new(self.job.seed, "mix", seat, number, self.program.distribution());
        self.program.pick(mix.real())
    }

    /// Runs the machine until it needs the server.
    #[inline]
    pub(super) fn resume(&mut self, index: usize, mut event: Event) {
        loop {
            let program = self.program;
            let terminal = &mut self.terminals[index];
            let action = terminal.vm.resume(program, &mut self.texts, event);
            let Some(link) = terminal.link.as_mut() else { return };
            match action {
                Action::Statement { text, want, columns } => {
                    if terminal.queueing && terminal.vm.transaction_open() {
                        if !self.enqueue(index, text, want) {
                            return;
                        }
                        event = Event::Done;
                        continue;
                    }
                    let sql = self.texts.get(text);
                    (terminal.text, terminal.want) = (text, want);
                    terminal.columns = if terminal.pipelined { 0 } else { columns };
                    terminal.step = Step::Statement;
                    if link.needs_preparing(text) {
                        terminal.step = Step::Preparing;
                    } else {
                        terminal.outcome_unknown |=
                            !terminal.vm.transaction_open() && sql.kind != StatementKind::Read;
                    }
                    link.statement(text, sql, terminal.vm.params(program));
                }
                Action::Begin { .. } => {
                    if terminal.queueing {
                        self.enqueue_control(index, false);
                        event = Event::Done;
                        continue;
                    }
                    terminal.step = Step::Begin;
                    link.simple(&self.job.begin);
                }
                Action::Commit => {
                    if !terminal.queue.is_empty() {
                        self.enqueue_control(index, true);
                        self.end_pipeline(index, Deferred::Commit);
                        return;
                    }
                    terminal.outcome_unknown = true;
                    terminal.step = Step::Commit;
                    link.simple("COMMIT");
                }
                Action::PipelineBegin => {
                    (terminal.pipelined, terminal.pipeline_matched) = (true, 0);
                    terminal.queueing = program.pipelines() && link.pipelines();
                    event = Event::Done;
                    continue;
                }
                Action::PipelineEnd => {
                    (terminal.pipelined, terminal.queueing) = (false, false);
                    if !terminal.queue.is_empty() {
                        self.end_pipeline(index, Deferred::End);
                        return;
                    }
                    event = Event::Matched(terminal.pipeline_matched);
                    continue;
                }
                Action::Done => {
                    if terminal.vm.transaction_open() {
                        let name =
                            program.transactions.get(terminal.booking.kind).map(|kind| kind.name.clone());
                        let name =
                            if terminal.starting { "start".to_owned() } else { name.unwrap_or_default() };
                        self.wrong(
                            index,
                            format!(
                                "in {name}: it returned with an open transaction; end it with db.commit()"
                            ),
                        );
                        return;
                    }
                    self.end(index, Ending::Committed);
                    return;
                }
                Action::Rollback => {
                    if !terminal.queue.is_empty() {
                        self.end_pipeline(index, Deferred::Rollback);
                        return;
                    }
                    if terminal.vm.transaction_open() || link.in_transaction() {
                        terminal.step = Step::Rollback(After::Ended(Ending::RolledBack));
                        link.simple("ROLLBACK");
                    } else {
                        self.end(index, Ending::RolledBack);
                        return;
                    }
                }
                Action::Error(failure) => {
                    self.wrong(index, failure.to_string());
                    return;
                }
            }
            self.send(index);
            return;
        }
    }

    #[inline]
    pub(super) fn send(&mut self, index: usize) {
        if let Some(link) = self.terminals[index].link.as_mut() {
            if let Err(error) = link.flush() {
                self.unsendable(index, &error.to_string());
            }
        }
    }

    /// A statement cannot be sent any more. What the server said before it closed, if anything, says why.
    #[cold]
    pub(super) fn unsendable(&mut self, index: usize, why: &str) {
        for _ in 0..READS_PER_TURN {
            let Some(link) = self.terminals[index].link.as_mut() else { return };
            match link.receive(&mut self.scratch, 0, None) {
                (Answer::Pending, _) => {}
                (Answer::Failed(error), _) if self.job.errors.class(&error.code) == ErrorClass::Lost => {
                    self.lost_with(index, &error.code, &error.message);
                    return;
                }
                _ => break,
            }
        }
        self.lost(index, why);
    }

    /// The workload is wrong: the transaction is rolled back, counted as failed, and the run ends.
    #[cold]
    pub(super) fn wrong(&mut self, index: usize, sentence: String) {
        let terminal = &mut self.terminals[index];
        if !terminal.queue.is_empty() {
            // an error among the statements sent so far would have come first
            self.end_pipeline(index, Deferred::Wrong(sentence));
            return;
        }
        self.fatal.get_or_insert(sentence);
        self.count_error(index, "workload");
        let terminal = &mut self.terminals[index];
        match terminal.link.as_mut() {
            Some(link) if terminal.vm.transaction_open() || link.in_transaction() => {
                terminal.step = Step::Rollback(After::Ended(Ending::Failed));
                link.simple("ROLLBACK");
                self.send(index);
            }
            _ => self.end(index, Ending::Failed),
        }
    }

    /// What a connection's bytes came to. False: nothing more to read there now.
    #[inline]
    pub(super) fn answer(&mut self, index: usize, answer: Answer) -> bool {
        match answer {
            Answer::Pending => {}
            Answer::Done { rows, matched } => self.answered(index, rows, matched),
            Answer::Prepared => self.execute(index),
            Answer::NotPreparable(code) => {
                let terminal = &self.terminals[index];
                self.unprepared.note(code, &self.texts.get(terminal.text).sql, terminal.number);
                self.execute(index);
            }
            Answer::Pipeline(answer) => self.pipeline_answered(index, &answer),
            Answer::Failed(error) => self.failed(index, &error),
            Answer::Lost(why) => self.lost(index, &why),
        }
        self.terminals[index].link.is_some()
    }

    /// Executes the statement that was prepared, or that the server does not prepare.
    fn execute(&mut self, index: usize) {
        let terminal = &mut self.terminals[index];
        if let Some(link) = terminal.link.as_mut() {
            terminal.step = Step::Statement;
            let sql = self.texts.get(terminal.text);
            terminal.outcome_unknown |= !terminal.vm.transaction_open() && sql.kind != StatementKind::Read;
            link.statement(terminal.text, sql, terminal.vm.params(self.program));
            self.send(index);
        }
    }

    #[inline]
    fn answered(&mut self, index: usize, rows: u64, matched: u64) {
        let terminal = &mut self.terminals[index];
        let event = match terminal.step {
            Step::Statement => {
                terminal.booking.rows += rows;
                terminal.booking.count(self.texts.get(terminal.text).kind);
                if terminal.pipelined {
                    terminal.pipeline_matched += matched;
                    let (text, place) = (terminal.text, terminal.vm.place());
                    match rows {
                        2.. if terminal.want == Want::Row => Event::SecondRow { text, rows, place },
                        _ => Event::Done,
                    }
                } else if terminal.want == Want::Matched {
                    Event::Matched(matched)
                } else {
                    Event::Rows(rows)
                }
            }
            Step::Begin | Step::Commit => {
                terminal.booking.others += 1;
                Event::Done
            }
            Step::Rollback(after) => {
                terminal.booking.others += 1;
                self.after(index, after);
                return;
            }
            _ => return,
        };
        self.resume(index, event);
    }

    /// The server answered an error.
    #[cold]
    pub(super) fn failed(&mut self, index: usize, error: &ServerError) {
        self.break_pipeline(index);
        let stale = self.job.errors.is_stale(&error.code, &error.message);
        let anew = stale || FORGOTTEN.contains(&error.code.as_str());
        let class = if anew { ErrorClass::Retryable } else { self.job.errors.class(&error.code) };
        let terminal = &mut self.terminals[index];
        if let Some(link) = terminal.link.as_mut().filter(|_| stale) {
            link.forget(terminal.text);
        }
        if !terminal.awaits_answer() {
            // said without being asked, on its way to closing the connection
            self.lost_with(index, &error.code.clone(), &error.message);
            return;
        }
        if class == ErrorClass::Lost {
            self.lost_with(index, &error.code.clone(), &error.message);
            return;
        }
        match terminal.step {
            Step::Statement | Step::Preparing => terminal.booking.count(self.texts.get(terminal.text).kind),
            _ => terminal.booking.others += 1,
        }
        terminal.outcome_unknown = false; // an answered error settles what became of the statement
        terminal.last_error = self.job.errors.told(&error.code, &error.message);
        self.count_error(index, &error.code);
        let terminal = &mut self.terminals[index];
        let after = match class {
            _ if anew && terminal.renewals < RENEWALS => {
                terminal.renewals += 1;
                terminal.tries = terminal.tries.saturating_sub(1);
                After::Again
            }
            ErrorClass::Retryable if !self.ignored(&error.code) => After::Again,
            ErrorClass::Fatal if !self.ignored(&error.code) => After::Failed { fatal: true },
            _ => After::Failed { fatal: false },
        };
        let terminal = &mut self.terminals[index];
        let Some(link) = terminal.link.as_mut() else { return };
        if matches!(terminal.step, Step::Rollback(_)) {
            // what cannot be rolled back is cut: the server rolls back then
            self.reopen(index, after, &error.code.clone());
        } else if terminal.vm.transaction_open() || link.in_transaction() {
            terminal.step = Step::Rollback(after);
            link.simple("ROLLBACK");
            self.send(index);
        } else {
            self.after(index, after);
        }
    }

    /// Counts an error where the transaction that met it is counted; one that began in the warm-up and goes on after
    /// it is in no figure.
    fn count_error(&mut self, index: usize, code: &str) {
        let now = self.now();
        let terminal = &self.terminals[index];
        let due = if terminal.running { terminal.booking.intended_ns } else { now };
        if due >= self.measure_ns || now < self.measure_ns {
            self.span(due).error(code);
        }
    }

    /// The figures that what was due then belongs to.
    fn span(&mut self, due_ns: u64) -> &mut Figures {
        if due_ns >= self.measure_ns { &mut self.figures } else { &mut self.warm }
    }

    fn ignored(&self, code: &str) -> bool {
        self.job.ignore_errors.iter().any(|ignored| ignored == code || ignored == "all")
    }

    /// The connection broke without a word from the server.
    #[cold]
    pub(super) fn lost(&mut self, index: usize, why: &str) {
        let code = self.job.lost_code.clone();
        self.lost_with(index, &code, why);
    }

    fn lost_with(&mut self, index: usize, code: &str, why: &str) {
        self.break_pipeline(index);
        let terminal = &mut self.terminals[index];
        if terminal.link.is_none() {
            return;
        }
        terminal.last_error = self.job.errors.told(code, why);
        if !terminal.running {
            // idle: reopened quietly; the next transaction finds a connection
            let waiting = terminal.step;
            if waiting == Step::Ended {
                self.detach(index);
                return;
            }
            self.count_error(index, code);
            self.reopen(index, After::Nothing, code);
            return;
        }
        self.count_error(index, code);
        let terminal = &mut self.terminals[index];
        let after = match terminal.step {
            Step::Rollback(after @ After::Ended(_)) => after,
            _ if terminal.outcome_unknown => After::Ended(Ending::Unknown),
            Step::Rollback(after) => after,
            _ => After::Again,
        };
        let terminal = &mut self.terminals[index];
        if terminal.cancelled {
            self.detach(index);
            self.give_up(index);
            return;
        }
        self.reopen(index, after, code);
    }

    /// A lost connection is there again.
    pub(super) fn reopened(&mut self, index: usize, after: After) {
        let now = self.now();
        self.end_outage(index);
        let terminal = &mut self.terminals[index];
        if terminal.running {
            terminal.booking.reconnects += 1;
        } else {
            self.span(now).counts.reconnects += 1;
        }
        let terminal = &self.terminals[index];
        if terminal.cancelled {
            self.give_up(index);
            return;
        }
        self.after(index, after);
    }

    /// A ROLLBACK was answered, or a connection reopened, or neither was needed.
    fn after(&mut self, index: usize, after: After) {
        let ignored = after == After::Again && self.ignored_loss(index);
        let terminal = &mut self.terminals[index];
        if terminal.cancelled && !matches!(after, After::Nothing | After::Ended(_)) {
            self.end(index, Ending::Unfinished);
            return;
        }
        match after {
            After::Again if terminal.tries < self.job.max_tries && !ignored => {
                let values =
                    if self.job.new_values { Values::New { tries: terminal.tries } } else { Values::Same };
                terminal.vm.retry(self.program, values);
                terminal.tries += 1;
                terminal.booking.retries += 1;
                terminal.outcome_unknown = false;
                (terminal.pipelined, terminal.queueing) = (false, false);
                self.resume(index, Event::Start);
            }
            After::Again => self.end(index, Ending::Failed),
            After::Failed { fatal } => {
                if fatal {
                    let sentence = self.terminals[index].last_error.clone();
                    self.fatal.get_or_insert(sentence);
                }
                self.end(index, Ending::Failed);
            }
            After::Ended(ending) => self.end(index, ending),
            After::Nothing => {
                terminal.step = Step::Free;
                self.ready.push_back(index);
            }
        }
    }

    /// Whether the loss that this terminal comes back from is among the ignored errors.
    fn ignored_loss(&self, index: usize) -> bool {
        let code = self.terminals[index].last_error.split(':').next().unwrap_or_default();
        !self.job.ignore_errors.is_empty() && self.ignored(code)
    }

    /// The transaction has ended: it is booked, and the terminal is free or rests.
    #[inline]
    fn end(&mut self, index: usize, ending: Ending) {
        let now = self.now();
        let terminal = &mut self.terminals[index];
        terminal.running = false;
        if terminal.starting {
            terminal.starting = false;
            terminal.step = Step::Free;
            terminal.last = 0;
            if ending != Ending::Committed {
                let sentence = format!("the workload's start failed: {}", terminal.last_error);
                self.fatal.get_or_insert(sentence);
            }
            return;
        }
        if ending == Ending::Committed {
            if let Some(file) = self.acks.as_mut().filter(|_| !terminal.vm.acks().is_empty()) {
                if let Err(error) = file.write_all(terminal.vm.acks().as_bytes()) {
                    let sentence = format!("the acknowledgement file cannot be written: {error}");
                    self.fatal.get_or_insert(sentence);
                }
            }
        } else {
            terminal.vm.restore_state();
        }
        let booking = terminal.booking;
        if booking.intended_ns >= self.measure_ns {
            self.figures.book(&booking, ending, now);
        } else if now < self.measure_ns {
            self.warm.book(&booking, ending, now);
        }
        // begun in the warm-up, ended after it: in no figure (as many begin inside and end after)
        let rest_s = terminal.think_s;
        terminal.since_reconnect += 1;
        if rest_s > 0.0 && !self.ending {
            self.rest(index, now, rest_s);
        } else {
            self.release(index);
        }
    }

    /// The terminal has rested: it is free, or its connection is renewed first.
    #[inline]
    pub(super) fn release(&mut self, index: usize) {
        let terminal = &mut self.terminals[index];
        let every = self.job.reconnect_every;
        if every > 0 && terminal.since_reconnect >= every && !self.ending && self.phase == Phase::Running {
            terminal.since_reconnect = 0;
            self.reopen(index, After::Nothing, "");
        } else {
            terminal.step = Step::Free;
            self.ready.push_back(index);
        }
    }

    /// The time without a connection is over, or the run is: it goes on the record.
    pub(super) fn end_outage(&mut self, index: usize) {
        let end_ns = self.now();
        let terminal = &mut self.terminals[index];
        let code = std::mem::take(&mut terminal.lost_code);
        if !code.is_empty() {
            let (connection, begin_ns) = (terminal.number, terminal.lost_ns);
            self.outages.push(Outage { connection, begin_ns, end_ns, code });
        }
    }

    /// The run is over and this transaction is not: it is unfinished, its connection is cut.
    #[cold]
    pub(super) fn give_up(&mut self, index: usize) {
        let now = self.now();
        self.detach(index);
        self.end_outage(index);
        let terminal = &mut self.terminals[index];
        terminal.step = Step::Ended;
        if std::mem::take(&mut terminal.running) && !terminal.starting {
            terminal.vm.restore_state();
            let booking = terminal.booking;
            if booking.intended_ns >= self.measure_ns {
                self.figures.book(&booking, Ending::Unfinished, now);
            }
        }
    }
}
