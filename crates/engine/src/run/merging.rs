//! The spans of several loops as one sequence.
//!
//! Every loop ends a span at each interval of the same clock. A merged span has one of each loop that is still
//! at work; where a loop was late, the others' wait for it, so that nothing is counted in two.

use std::collections::VecDeque;

use super::shared::Span;

/// Takes each loop's spans, gives merged ones.
#[derive(Debug)]
pub(crate) struct Merging {
    loops: Vec<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Span>,
    /// Its last span has come, or it ended without one.
    over: bool,
}

impl Merging {
    pub fn new(loops: usize) -> Self {
        Self { loops: (0..loops).map(|_| Waiting::default()).collect() }
    }

    /// A span of that loop.
    pub fn push(&mut self, number: usize, span: Span) {
        let waiting = &mut self.loops[number];
        waiting.over |= span.last;
        waiting.spans.push_back(span);
    }

    /// That loop gives none any more.
    pub fn over(&mut self, number: usize) {
        self.loops[number].over = true;
    }

    /// The next merged span, if every loop has come so far.
    pub fn next(&mut self) -> Option<Span> {
        if self.loops.iter().any(|one| one.spans.is_empty() && !one.over) {
            return None;
        }
        let warm = self.loops.iter().any(|one| one.spans.front().is_some_and(|span| span.warm));
        let mut merged: Option<Span> = None;
        for one in &mut self.loops {
            if one.spans.front().is_none_or(|span| span.warm != warm) {
                continue;
            }
            let Some(span) = one.spans.pop_front() else { continue };
            match &mut merged {
                None => merged = Some(span),
                Some(merged) => merged.merge(span),
            }
        }
        let last = self.loops.iter().all(|one| one.over && one.spans.is_empty());
        merged.map(|span| Span { last, ..span })
    }
}

impl Span {
    fn merge(&mut self, other: Self) {
        let end_s = (self.begin_s + self.seconds).max(other.begin_s + other.seconds);
        self.begin_s = self.begin_s.min(other.begin_s);
        self.seconds = end_s - self.begin_s;
        self.figures.merge(other.figures);
        self.connected += other.connected;
        self.busy = self.busy.max(other.busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Figures;

    fn span(begin_s: f64, committed: u64, last: bool) -> Span {
        let mut figures = Figures::new(1);
        figures.counts.committed = committed;
        let warm = begin_s < 0.0;
        Span { begin_s, seconds: 1.0, figures, warm, last, connected: 2, busy: committed as f64 / 10.0 }
    }

    #[test]
    fn spans_of_the_same_interval_are_one_and_the_warm_up_mixes_with_nothing() {
        let mut merging = Merging::new(2);
        merging.push(0, span(-1.0, 1, false));
        assert!(merging.next().is_none(), "the other loop has not come so far");
        merging.push(1, span(-2.0, 1, false));
        let merged = merging.next().expect("both came");
        assert_eq!((merged.figures.counts.committed, merged.connected, merged.last), (2, 4, false));
        assert!((merged.begin_s + 2.0).abs() < 1e-9 && (merged.seconds - 2.0).abs() < 1e-9);

        merging.push(0, span(0.0, 3, false));
        merging.push(1, span(-1.0, 5, false));
        let merged = merging.next().expect("both came");
        assert!(merged.warm && merged.figures.counts.committed == 5, "measured spans wait");
        merging.push(1, span(0.0, 7, true));
        let merged = merging.next().expect("both came");
        assert!(!merged.warm && !merged.last && merged.figures.counts.committed == 10);
        assert!((merged.busy - 0.7).abs() < 1e-9, "the busiest loop's share");
        merging.push(0, span(1.0, 1, true));
        assert!(merging.next().expect("the rest").last);
        assert!(merging.next().is_none());
    }
}
