//! What an event loop hands out: the figures of spans as they end, and what the run came to.

use std::mem;

use super::event_loop::{EventLoop, Phase, seconds};
use super::figures::Figures;
use super::shared::{Conclusion, Span};

impl EventLoop<'_> {
    pub(super) fn sample_due(&self) -> u64 {
        if self.phase == Phase::Starting {
            return u64::MAX;
        }
        let regular = self.last_ns + seconds(self.job.interval_s).max(1_000_000);
        if !self.measuring && regular > self.measure_ns { self.measure_ns.max(self.last_ns) } else { regular }
    }

    /// Hands out the figures of spans that have ended.
    pub(super) fn emit_due(&mut self, now: u64) {
        if now < self.sample_due() {
            return;
        }
        if !self.measuring && now >= self.measure_ns {
            if self.measure_ns > self.begin_ns {
                let figures = mem::replace(&mut self.warm, Figures::new(0));
                self.emit(figures, self.measure_ns, true, false);
            }
            self.measuring = true;
            self.last_ns = self.measure_ns;
        } else if self.measuring && now < self.end_ns {
            let figures = mem::replace(&mut self.figures, Figures::new(self.program.transactions.len()));
            self.emit(figures, now, false, false);
        } else if !self.measuring {
            let figures = mem::replace(&mut self.warm, Figures::new(self.program.transactions.len()));
            self.emit(figures, now, true, false);
        }
    }

    fn emit(&mut self, figures: Figures, now: u64, warm: bool, last: bool) {
        let wall = now.saturating_sub(self.last_ns).max(1);
        let busy = 1.0 - (self.idle_ns as f64 / wall as f64).min(1.0);
        self.shared.push(
            self.number,
            Span {
                begin_s: (self.last_ns as f64 - self.measure_ns as f64) / 1e9,
                seconds: now.saturating_sub(self.last_ns) as f64 / 1e9,
                figures,
                warm,
                last,
                connected: self.connected,
                busy,
            },
        );
        self.last_ns = now;
        self.idle_ns = 0;
    }

    /// The last span, and what the run came to.
    pub(super) fn finish(mut self) {
        let mut stuck = 0;
        for index in 0..self.terminals.len() {
            if self.terminals[index].running {
                stuck += usize::from(self.terminals[index].awaits_answer());
                self.give_up(index);
            } else {
                self.end_outage(index);
            }
        }
        let now = self.now();
        if !self.measuring {
            if self.measure_ns > self.begin_ns {
                let figures = mem::replace(&mut self.warm, Figures::new(0));
                self.emit(figures, now.min(self.measure_ns), true, false);
            }
            self.last_ns = now.min(self.measure_ns);
        }
        let unbegun = self.pacing.never_begun(self.measure_ns);
        self.figures.counts.scheduled += unbegun;
        self.figures.counts.unfinished += unbegun;
        let figures = mem::replace(&mut self.figures, Figures::new(0));
        self.emit(figures, now, false, true);
        let end = if self.end_ns == u64::MAX { now } else { self.end_ns };
        let zero = self.measure_ns;
        self.shared.conclude(Conclusion {
            seconds: end.saturating_sub(zero) as f64 / 1e9,
            interrupted: self.interrupted,
            fatal: self.fatal.take(),
            arrived: self.pacing.arrived(),
            never_begun: unbegun,
            measure_ns: zero,
            stuck,
            outages: mem::take(&mut self.outages),
            notes: Vec::new(),
            unprepared: mem::take(&mut self.unprepared),
        });
    }
}
