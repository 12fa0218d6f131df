//! Statements that are sent without waiting: `with db.pipeline()` and batches, inside an open transaction.
//!
//! One synchronization ends a pipeline. After a statement that failed the server skips the rest, so that what
//! is left, counted and retried is what sending them one by one leaves. Outside of a transaction that would not
//! hold (each statement commits for itself): there they are sent one by one.

use std::mem;

use super::event_loop::EventLoop;
use super::figures::{Booking, Ending};
use super::terminal::{After, Queued, Step};
use crate::link::PipelineAnswer;
use crate::program::{Event, StatementKind, Want};

/// Queued bytes that are handed to the kernel before the pipeline is complete.
const FLUSH_BYTES: usize = 64 << 10;

/// What follows when all statements of a pipeline have succeeded.
#[derive(Debug, Default)]
pub(crate) enum Deferred {
    /// The program goes on after it.
    #[default]
    End,
    /// Its last statement was COMMIT.
    Commit,
    /// ROLLBACK, by the program's own wish.
    Rollback,
    /// The workload is wrong.
    Wrong(String),
}

impl Booking {
    /// Counts an answered statement.
    pub(super) fn count(&mut self, kind: StatementKind) {
        match kind {
            StatementKind::Read => self.reads += 1,
            StatementKind::Write => self.writes += 1,
            StatementKind::Other => self.others += 1,
        }
    }
}

impl EventLoop<'_> {
    /// Queues the statement that the program is at. False: the connection was lost meanwhile.
    pub(super) fn enqueue(&mut self, index: usize, text: u32, want: Want) -> bool {
        let terminal = &mut self.terminals[index];
        let Some(link) = terminal.link.as_mut() else { return false };
        link.enqueue(text, self.texts.get(text), want == Want::Row, terminal.vm.params(self.program));
        let full = link.unsent() > FLUSH_BYTES;
        terminal.queue.push(Queued { text: Some(text), place: terminal.vm.place() });
        terminal.step = Step::Pipeline;
        if full {
            self.send(index);
        }
        !self.terminals[index].queue.is_empty()
    }

    /// Queues BEGIN or COMMIT.
    pub(super) fn enqueue_control(&mut self, index: usize, commit: bool) {
        let terminal = &mut self.terminals[index];
        let Some(link) = terminal.link.as_mut() else { return };
        link.enqueue_control(if commit { "COMMIT" } else { &self.job.begin });
        terminal.queue.push(Queued { text: None, place: terminal.vm.place() });
        terminal.step = Step::Pipeline;
        terminal.outcome_unknown |= commit;
    }

    /// The pipeline is complete: its answers are awaited, then `deferred` follows.
    pub(super) fn end_pipeline(&mut self, index: usize, deferred: Deferred) {
        let terminal = &mut self.terminals[index];
        terminal.deferred = deferred;
        terminal.step = Step::Pipeline;
        if let Some(link) = terminal.link.as_mut() {
            link.end_pipeline();
        }
        self.send(index);
    }

    /// All its statements were answered, up to one that failed.
    pub(super) fn pipeline_answered(&mut self, index: usize, answer: &PipelineAnswer) {
        let second_row = answer.second_row.and_then(|(position, rows)| {
            self.terminals[index].queue.get(position).map(|queued| (queued.text, rows, queued.place))
        });
        let deferred = mem::take(&mut self.terminals[index].deferred);
        self.leave_pipeline(index, answer.answered);
        let terminal = &mut self.terminals[index];
        terminal.booking.rows += answer.rows;
        terminal.pipeline_matched += answer.matched;
        if let Some((Some(text), rows, place)) = second_row {
            // statements after it would not have been sent
            self.resume(index, Event::SecondRow { text, rows, place });
            return;
        }
        if let Some(failure) = &answer.failure {
            self.failed(index, failure);
            return;
        }
        match deferred {
            Deferred::End => {
                let matched = self.terminals[index].pipeline_matched;
                self.resume(index, Event::Matched(matched));
            }
            Deferred::Commit => self.resume(index, Event::Done),
            Deferred::Rollback => {
                terminal.step = Step::Rollback(After::Ended(Ending::RolledBack));
                if let Some(link) = terminal.link.as_mut() {
                    link.simple("ROLLBACK");
                }
                self.send(index);
            }
            Deferred::Wrong(sentence) => self.wrong(index, sentence),
        }
    }

    /// Counts the pipeline's statements that were answered; the terminal is then at the first one that was not.
    pub(super) fn leave_pipeline(&mut self, index: usize, answered: usize) {
        let terminal = &mut self.terminals[index];
        for (position, queued) in terminal.queue.iter().enumerate() {
            if position < answered {
                let kind = queued.text.map_or(StatementKind::Other, |text| self.texts.get(text).kind);
                terminal.booking.count(kind);
            } else {
                terminal.step = Step::Begin;
                if let Some(text) = queued.text {
                    terminal.text = text;
                    terminal.step = Step::Statement;
                }
                break;
            }
        }
        terminal.queue.clear();
    }

    /// The connection ended, or is about to, before the pipeline was answered.
    pub(super) fn break_pipeline(&mut self, index: usize) {
        let terminal = &mut self.terminals[index];
        if !terminal.queue.is_empty() {
            let answered = terminal.link.as_ref().map_or(0, |link| link.answered());
            terminal.deferred = Deferred::End;
            self.leave_pipeline(index, answered);
        }
    }
}
