//! The distributions of sysbench's `--rand-type`: uniform, gaussian, special and pareto as version
//! 1.0.20 draws them, zipfian as 1.1 does. Ids picked by them hit the same rows equally often.
//!
//! Transcendental functions come from `libm`, not from the machine's C library: its last bits differ
//! between libraries, and a seed must give the same ids everywhere.

use std::fmt;

use crate::stream::Stream;
use crate::{BadValue, bad};

/// Which distribution; the names are sysbench's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every value equally often.
    Uniform,
    /// The mean of `spec_iter` uniform values: a bell over the range.
    Gaussian,
    /// `spec_res` per cent of the values in a narrow band at the middle, the others as gaussian.
    Special,
    /// Low values most often: a power of a uniform value.
    Pareto,
    /// P(k-th value) proportional to k to the power of minus `zipfian_exp`.
    Zipfian,
}

impl Kind {
    /// All kinds with their names.
    pub const NAMES: [(&'static str, Kind); 5] = [
        ("uniform", Kind::Uniform),
        ("gaussian", Kind::Gaussian),
        ("special", Kind::Special),
        ("pareto", Kind::Pareto),
        ("zipfian", Kind::Zipfian),
    ];

    /// The kind of that name.
    pub fn parse(name: &str) -> Result<Self, BadValue> {
        match Self::NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, kind)) => Ok(*kind),
            None => bad(format!(
                "unknown distribution {name:?}: it must be uniform, gaussian, special, pareto or zipfian"
            )),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::NAMES.iter().find(|(_, kind)| kind == self).expect("every kind has a name");
        f.write_str(name)
    }
}

/// The options behind a distribution; the defaults are sysbench's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Uniform values averaged by gaussian and special, in 1..=10000 (`--rand-spec-iter`).
    pub spec_iter: u32,
    /// Width of the special band in per cent of the range, in 0..=100 (`--rand-spec-pct`).
    pub spec_pct: u32,
    /// Share of values in the special band in per cent, in 0..=100 (`--rand-spec-res`).
    pub spec_res: u32,
    /// Shape of pareto, between 0 and 1 exclusive (`--rand-pareto-h`).
    pub pareto_h: f64,
    /// Exponent of zipfian, at least 0 (`--rand-zipfian-exp`).
    pub zipfian_exp: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { spec_iter: 12, spec_pct: 1, spec_res: 75, pareto_h: 0.2, zipfian_exp: 0.8 }
    }
}

/// A distribution of integers over any range, with what it precomputes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    kind: Kind,
    parameters: Parameters,
    pareto_power: f64,
    zipf: Zipf,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new(Kind::Uniform, Parameters::default()).expect("the defaults are in range")
    }
}

impl Distribution {
    /// Checks the parameters, also those that this kind does not use.
    pub fn new(kind: Kind, parameters: Parameters) -> Result<Self, BadValue> {
        let Parameters { spec_iter, spec_pct, spec_res, pareto_h, zipfian_exp } = parameters;
        if !(1..=10_000).contains(&spec_iter) {
            return bad(format!("spec_iter must be from 1 to 10000, not {spec_iter}"));
        }
        for (name, value) in [("spec_pct", spec_pct), ("spec_res", spec_res)] {
            if value > 100 {
                return bad(format!("{name} is a percentage: it must be from 0 to 100, not {value}"));
            }
        }
        if !(pareto_h > 0.0 && pareto_h < 1.0) {
            return bad(format!("pareto_h must be above 0 and below 1, not {pareto_h}"));
        }
        if !(zipfian_exp >= 0.0 && zipfian_exp.is_finite()) {
            return bad(format!("zipfian_exp must be a finite number of at least 0, not {zipfian_exp}"));
        }
        Ok(Self {
            kind,
            parameters,
            pareto_power: libm::log(pareto_h) / libm::log(1.0 - pareto_h),
            zipf: Zipf::new(zipfian_exp),
        })
    }

    /// Which distribution it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The options it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// A value's distance from the lower end of a range whose ends are `span` apart, in 0..=span.
    pub(crate) fn offset(&self, stream: &mut Stream, span: u64) -> u64 {
        let offset = match self.kind {
            Kind::Uniform => return stream.below_or_equal(span),
            Kind::Gaussian => (self.mean_of_uniforms(stream) * (span as f64 + 1.0)) as u64,
            Kind::Special => self.special(stream, span as f64),
            Kind::Pareto => ((span as f64 + 1.0) * libm::pow(stream.real(), self.pareto_power)) as u64,
            Kind::Zipfian => self.zipf.rank(stream, span as f64 + 1.0) - 1,
        };
        // A range wider than 53 bits can round up to just past its end.
        offset.min(span)
    }

    fn mean_of_uniforms(&self, stream: &mut Stream) -> f64 {
        let n = self.parameters.spec_iter;
        let mut sum = 0.0;
        for _ in 0..n {
            sum += stream.real();
        }
        sum / f64::from(n)
    }

    /// One uniform value u decides: below 1 - spec_res/100 the bell is drawn, else the same u places
    /// the value in a band of spec_pct per cent at the middle. As u is then at least 1 - spec_res/100,
    /// the low part of the band stays empty; sysbench's does too.
    fn special(&self, stream: &mut Stream, span: f64) -> u64 {
        let u = stream.real();
        let bell_share = f64::from(100 - self.parameters.spec_res) / 100.0;
        if u * span < bell_share * span {
            return (self.mean_of_uniforms(stream) * span) as u64;
        }
        let band = span * f64::from(self.parameters.spec_pct) / 100.0;
        (u * (band + 1.0) + (span - band) / 2.0) as u64
    }
}

/// Rejection-inversion for the Zipf distribution on 1..=n (Hörmann and Derflinger: "Rejection-inversion
/// to generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996), with the hat's
/// integral shifted so that it also holds for exponents of 1 and less.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Zipf {
    exponent: f64,
    /// Distance from the rounded-up candidate within which it is accepted without another look.
    squeeze: f64,
    /// The hat's integral at 3/2 less the mass of rank 1: the low end of the inverted values.
    low_end: f64,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut zipf = Self { exponent, squeeze: 0.0, low_end: 0.0 };
        zipf.squeeze = 2.0 - zipf.inverse_integral(zipf.integral(2.5) - zipf.mass(2.0));
        zipf.low_end = zipf.integral(1.5) - 1.0;
        zipf
    }

    /// x to the power of minus the exponent.
    fn mass(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Integral of `mass` from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let slope = 1.0 - self.exponent;
        if slope == 0.0 { libm::log(x) } else { libm::expm1(slope * libm::log(x)) / slope }
    }

    fn inverse_integral(&self, y: f64) -> f64 {
        let slope = 1.0 - self.exponent;
        if slope == 0.0 {
            return libm::exp(y);
        }
        // Rounding may carry y just below the least value that the integral takes.
        libm::exp(libm::log1p((slope * y).max(-1.0)) / slope)
    }

    fn rank(&self, stream: &mut Stream, n: f64) -> u64 {
        let high_end = self.integral(n + 0.5);
        loop {
            let y = high_end + stream.real() * (self.low_end - high_end);
            let x = self.inverse_integral(y);
            let rank = (x + 0.5).floor().clamp(1.0, n);
            if rank - x <= self.squeeze || y >= self.integral(rank + 0.5) - self.mass(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(kind: Kind) -> Distribution {
        Distribution::new(kind, Parameters::default()).unwrap()
    }

    fn histogram(kind: Kind, n: usize, draws: usize) -> Vec<f64> {
        let mut stream = Stream::new(1, "distribution", 1, 1, distribution(kind));
        let mut counts = vec![0.0; n];
        for _ in 0..draws {
            counts[stream.pick(1, n as i64).unwrap() as usize - 1] += 1.0;
        }
        counts
    }

    fn chi_squared(observed: &[f64], shares: &[f64]) -> f64 {
        let draws: f64 = observed.iter().sum();
        observed.iter().zip(shares).map(|(o, p)| (o - p * draws).powi(2) / (p * draws)).sum()
    }

    #[test]
    fn uniform_and_zipfian_have_their_probabilities() {
        // 37.7 is the 0.999 quantile of chi-squared with 15 degrees of freedom.
        assert!(chi_squared(&histogram(Kind::Uniform, 16, 160_000), &[1.0 / 16.0; 16]) < 37.7);
        let weights: Vec<f64> = (1..=16).map(|k| f64::from(k).powf(-0.8)).collect();
        let total: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
        assert!(chi_squared(&histogram(Kind::Zipfian, 16, 160_000), &shares) < 37.7);
    }

    #[test]
    fn pareto_has_its_distribution_function() {
        // P(offset < x n) = x ^ (log(1-h) / log(h))
        let exponent = 0.8f64.ln() / 0.2f64.ln();
        let shares: Vec<f64> = (0..16)
            .map(|i| ((f64::from(i) + 1.0) / 16.0).powf(exponent) - (f64::from(i) / 16.0).powf(exponent))
            .collect();
        assert!(chi_squared(&histogram(Kind::Pareto, 16, 160_000), &shares) < 37.7);
    }

    #[test]
    fn three_quarters_of_special_values_fall_in_the_middle_band() {
        let counts = histogram(Kind::Special, 1000, 100_000);
        let middle: f64 = counts[494..506].iter().sum();
        assert!((0.75..0.80).contains(&(middle / 100_000.0)), "{middle}");
    }

    #[test]
    fn zipfian_exponents_around_one_join_smoothly() {
        let mean = |exponent: f64| {
            let parameters = Parameters { zipfian_exp: exponent, ..Parameters::default() };
            let distribution = Distribution::new(Kind::Zipfian, parameters).unwrap();
            let mut stream = Stream::new(5, "zipf", 1, 1, distribution);
            (0..20_000).map(|_| stream.pick(1, 1000).unwrap() as f64).sum::<f64>() / 20_000.0
        };
        let at_one = mean(1.0);
        assert!((mean(1.0 + 1e-12) - at_one).abs() < 1e-6 && (mean(1.0 - 1e-12) - at_one).abs() < 1e-6);
        assert!((mean(0.0) - 500.5).abs() < 8.0);
    }

    #[test]
    fn every_kind_stays_inside_every_range() {
        for (_, kind) in Kind::NAMES {
            let mut stream = Stream::new(1, "range", 1, 1, distribution(kind));
            for (a, b) in [(0, 0), (5, 6), (-3, 3), (i64::MIN, i64::MAX), (i64::MAX - 1, i64::MAX)] {
                for _ in 0..200 {
                    let value = stream.pick(a, b).unwrap();
                    assert!((a..=b).contains(&value), "{kind}: {value} outside {a}..={b}");
                }
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = [
            Parameters { spec_iter: 0, ..Parameters::default() },
            Parameters { spec_pct: 101, ..Parameters::default() },
            Parameters { pareto_h: 1.0, ..Parameters::default() },
            Parameters { pareto_h: f64::NAN, ..Parameters::default() },
            Parameters { zipfian_exp: -0.1, ..Parameters::default() },
        ];
        for parameters in wrong {
            assert!(Distribution::new(Kind::Uniform, parameters).is_err(), "{parameters:?}");
        }
    }
}
