//! How late answers are: a fixed time, or one drawn from a distribution.

use std::time::Duration;

use rand::SeedableRng;
use rand::distributions::Distribution;
use rand::rngs::SmallRng;
use rand_distr::{Exp1, LogNormal, Normal, Uniform};

/// Longer than this nobody waits.
const LONGEST_S: f64 = 3_600.0;

/// A delay as it was asked for: `2ms`, `exponential:2ms` (mean), `lognormal:2ms,0.5` (median, sigma of the
/// logarithm), `normal:2ms,300us` (mean, standard deviation; never below zero), `uniform:1ms,3ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Exponential with a mean in seconds.
    Exponential(f64),
    /// Lognormal: the median in seconds, sigma of the logarithm.
    Lognormal(f64, f64),
    /// Normal, cut off at zero: mean and standard deviation in seconds.
    Normal(f64, f64),
    /// Uniform between two times in seconds.
    Uniform(f64, f64),
}

impl Delay {
    /// Reads a delay. Error: one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "a delay is TIME, exponential:MEAN, lognormal:MEDIAN,SIGMA, normal:MEAN,DEVIATION or \
                 uniform:LOW,HIGH with times like 250us, 2ms or 1.5s, not {text}"
            )
        };
        let Some((kind, numbers)) = text.split_once(':') else {
            return Ok(Delay::Fixed(Duration::from_secs_f64(time_s(text).ok_or_else(wrong)?)));
        };
        let (first, second) = numbers.split_once(',').map_or((numbers, None), |(a, b)| (a, Some(b)));
        let first = time_s(first).ok_or_else(wrong)?;
        let second_s = second.and_then(time_s);
        Ok(match (kind, second) {
            ("exponential", None) => Delay::Exponential(first),
            ("lognormal", Some(sigma)) => {
                let sigma = sigma.trim().parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
                Delay::Lognormal(first, sigma.ok_or_else(wrong)?)
            }
            ("normal", Some(_)) => Delay::Normal(first, second_s.ok_or_else(wrong)?),
            ("uniform", Some(_)) => {
                let high = second_s.filter(|high| *high >= first).ok_or_else(wrong)?;
                Delay::Uniform(first, high)
            }
            _ => return Err(wrong()),
        })
    }

    /// The next time.
    pub(crate) fn draw(self, random: &mut SmallRng) -> Duration {
        let seconds = match self {
            Delay::Fixed(delay) => return delay,
            Delay::Exponential(mean) => {
                let unit: f64 = Exp1.sample(random);
                unit * mean
            }
            Delay::Lognormal(median, sigma) => {
                LogNormal::new(0.0, sigma).map_or(median, |shape| median * shape.sample(random))
            }
            Delay::Normal(mean, deviation) => {
                Normal::new(mean, deviation).map_or(mean, |shape| shape.sample(random))
            }
            Delay::Uniform(low, high) => Uniform::new_inclusive(low, high).sample(random),
        };
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_S))
    }

    /// Draws that are the same for the same seed.
    pub(crate) fn random(seed: u64) -> SmallRng {
        SmallRng::seed_from_u64(seed)
    }
}

/// Seconds of `250us`, `2ms`, `1.5s`, `10ns`; a bare number is in seconds.
pub(crate) fn time_s(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("", 1.0)];
    let (number, unit) = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let number: f64 = number.trim().parse().ok()?;
    let seconds = number * unit;
    (seconds.is_finite() && (0.0..=LONGEST_S).contains(&seconds)).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_s(text: &str) -> f64 {
        let (delay, mut random) = (Delay::parse(text).unwrap(), Delay::random(7));
        (0..20_000).map(|_| delay.draw(&mut random).as_secs_f64()).sum::<f64>() / 20_000.0
    }

    #[test]
    fn distributions_have_the_means_that_they_are_named_by() {
        for (text, mean) in [
            ("2ms", 0.002),
            ("exponential:2ms", 0.002),
            ("lognormal:2ms,0.5", 0.002 * (0.125f64).exp()),
            ("normal:2ms,300us", 0.002),
            ("uniform:1ms,3ms", 0.002),
        ] {
            assert!((mean_s(text) / mean - 1.0).abs() < 0.03, "{text}: {}", mean_s(text));
        }
    }

    #[test]
    fn a_seed_gives_the_same_delays_again() {
        let draw = |seed| {
            let mut random = Delay::random(seed);
            [(); 5].map(|()| Delay::Exponential(0.001).draw(&mut random))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn what_is_no_delay_gets_a_sentence() {
        for text in
            ["", "x", "-1ms", "2h", "exponential", "exponential:1ms,2ms", "lognormal:1ms", "normal:1ms,x"]
        {
            assert!(Delay::parse(text).unwrap_err().starts_with("a delay is"), "{text}");
        }
        assert_eq!(Delay::parse("1.5s"), Ok(Delay::Fixed(Duration::from_millis(1500))));
    }
}
