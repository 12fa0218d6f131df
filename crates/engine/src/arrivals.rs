//! The schedule of an open loop: when each transaction is meant to start, whatever the server does.

use crate::distribution::Distribution;
use crate::stream::Stream;
use crate::{BadValue, bad};

const NS_PER_S: f64 = 1e9;

/// How arrivals are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Independent, exponentially distributed gaps.
    Poisson,
    /// Equal gaps, the first arrival at 0.
    Even,
}

impl Spacing {
    /// The spacing of that name, "poisson" or "even".
    pub fn parse(name: &str) -> Result<Self, BadValue> {
        match name {
            "poisson" => Ok(Self::Poisson),
            "even" => Ok(Self::Even),
            _ => bad(format!("unknown spacing of arrivals {name:?}: it must be poisson or even")),
        }
    }
}

/// Intended starts in ns since the schedule began; never decreasing.
#[derive(Debug, Clone)]
pub struct Arrivals {
    stream: Stream,
    rate_per_s: f64,
    spacing: Spacing,
    /// Number of arrivals handed out.
    count: u64,
    last_ns: u64,
    /// Part of a ns that a Poisson arrival was rounded down by, in [0, 1): no drift over days.
    remainder_ns: f64,
}

impl Arrivals {
    /// A schedule of `rate_per_s` arrivals a second. Error unless 0 < rate <= 1e9.
    pub fn new(seed: u64, rate_per_s: f64, spacing: Spacing) -> Result<Self, BadValue> {
        if !(rate_per_s > 0.0 && rate_per_s <= NS_PER_S) {
            return bad(format!(
                "the rate must be above 0 and at most 1e9 transactions a second, not {rate_per_s}"
            ));
        }
        Ok(Self {
            stream: Stream::new(seed, "arrivals", 0, 0, Distribution::default()),
            rate_per_s,
            spacing,
            count: 0,
            last_ns: 0,
            remainder_ns: 0.0,
        })
    }

    /// The next intended start in ns since the begin, at least the one before it.
    pub fn next_ns(&mut self) -> u64 {
        self.last_ns = match self.spacing {
            // Each from the count, not from the one before: rounding does not add up.
            Spacing::Even => (self.count as f64 * NS_PER_S / self.rate_per_s).round() as u64,
            Spacing::Poisson => {
                let gap_ns = -NS_PER_S / self.rate_per_s * libm::log1p(-self.stream.real());
                let exact_ns = gap_ns + self.remainder_ns;
                let whole_ns = exact_ns.floor();
                self.remainder_ns = exact_ns - whole_ns;
                self.last_ns.saturating_add(whole_ns as u64)
            }
        };
        self.count += 1;
        self.last_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_arrivals_do_not_drift() {
        let mut arrivals = Arrivals::new(1, 3.0, Spacing::Even).unwrap();
        let starts: Vec<u64> = (0..30_001).map(|_| arrivals.next_ns()).collect();
        assert_eq!(&starts[..4], &[0, 333_333_333, 666_666_667, 1_000_000_000]);
        assert_eq!(starts[30_000], 10_000_000_000_000);
    }

    #[test]
    fn poisson_arrivals_have_their_rate_and_spread() {
        let mut arrivals = Arrivals::new(7, 1000.0, Spacing::Poisson).unwrap();
        let mut per_second = vec![0f64; 101];
        let mut last = 0;
        while last < 100_000_000_000 {
            let next = arrivals.next_ns();
            assert!(next >= last);
            last = next;
            per_second[(last / 1_000_000_000) as usize] += 1.0;
        }
        let mean = per_second[..100].iter().sum::<f64>() / 100.0;
        let variance = per_second[..100].iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 99.0;
        assert!((mean - 1000.0).abs() < 15.0, "{mean}");
        assert!((0.6..1.5).contains(&(variance / mean)), "counts of a Poisson process: {variance} / {mean}");
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
            assert!(Arrivals::new(1, rate, Spacing::Even).is_err(), "{rate}");
        }
    }
}
