//! Latency histograms: HdrHistogram over nanoseconds, with what lies above the ceiling counted.

use std::fmt;
use std::io::Read;

use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::{BadValue, bad};

/// Cookie of the deflate-compressed V2 encoding, and of the V2 encoding inside it.
const DEFLATE_COOKIE: u32 = 0x1c84_9314;
const PLAIN_COOKIE: u32 = 0x1c84_9313;
/// The V2 header: cookie, payload length, offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;
/// Far above what the finest histogram in use encodes to; an encoding that inflates to more is refused.
const INFLATED_CEILING_BYTES: u64 = 16 << 20;

/// Counts of durations in ns, within 0.1 % of each value from 100 ns to one hour.
///
/// A longer duration is recorded at one hour and counted in `saturated`. That count is not part of the
/// standard encoding: whoever stores a histogram stores it beside.
#[derive(Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    saturated: u64,
}

impl PartialEq for Histogram {
    /// Equal counts in all buckets; the library's own comparison also sees what `reset` leaves behind.
    fn eq(&self, other: &Self) -> bool {
        self.saturated == other.saturated && self.buckets() == other.buckets()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("mean", &self.mean())
            .field("max", &self.max())
            .field("saturated", &self.saturated)
            .finish()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Lowest duration told apart from 0, in ns.
    pub const LOWEST_NS: u64 = 100;
    /// Longest duration recorded as it is: one hour, in ns.
    pub const HIGHEST_NS: u64 = 3_600_000_000_000;
    /// Decimal digits kept of each value.
    pub const SIGNIFICANT_DIGITS: u8 = 3;

    /// An empty histogram.
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(
            Self::LOWEST_NS,
            Self::HIGHEST_NS,
            Self::SIGNIFICANT_DIGITS,
        )
        .expect("the bounds are valid");
        Self { counts, saturated: 0 }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` durations of the same length.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if ns > Self::HIGHEST_NS {
            self.saturated = self.saturated.saturating_add(n);
        }
        self.counts.record_n(ns.min(Self::HIGHEST_NS), n).expect("at most the ceiling");
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("both have the same bounds");
        self.saturated = self.saturated.saturating_add(other.saturated);
    }

    /// Forgets everything, keeps the memory.
    pub fn reset(&mut self) {
        self.counts.reset();
        self.saturated = 0;
    }

    /// Number of durations recorded, saturated ones included.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Number of durations above the ceiling.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Shortest duration in ns, rounded down to its bucket; 0 when empty.
    pub fn min(&self) -> u64 {
        self.counts.min()
    }

    /// Longest duration in ns, rounded up to its bucket, at most the ceiling; 0 when empty.
    pub fn max(&self) -> u64 {
        // A histogram that was reset keeps the width of its first bucket as maximum.
        if self.counts.is_empty() { 0 } else { self.counts.max().min(Self::HIGHEST_NS) }
    }

    /// Mean in ns, from the middles of the buckets; 0 when empty.
    pub fn mean(&self) -> f64 {
        self.counts.mean()
    }

    /// Standard deviation in ns (of the population), from the middles of the buckets; 0 when empty.
    pub fn stddev(&self) -> f64 {
        self.counts.stdev()
    }

    /// The least bucket bound in ns that at least `p` per cent of the durations do not exceed; the
    /// minimum for p = 0; 0 when empty. Error unless 0 <= p <= 100.
    pub fn percentile(&self, p: f64) -> Result<u64, BadValue> {
        if !(0.0..=100.0).contains(&p) {
            return bad(format!("percentile(p) needs a p from 0 to 100, not {p}"));
        }
        Ok(self.counts.value_at_quantile(p / 100.0).min(Self::HIGHEST_NS))
    }

    /// The buckets that hold something, ascending: (upper bound in ns, count).
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to().min(Self::HIGHEST_NS), bucket.count_at_value()))
            .collect()
    }

    /// The standard HdrHistogram V2 encoding, deflate-compressed.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.counts, &mut bytes).expect("memory takes any length");
        bytes
    }

    /// Reads a V2 encoding, compressed or not, of whole values.
    ///
    /// One made with other bounds or digits is counted again into these: each of its buckets at its upper
    /// bound, what lies above one hour as saturated.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadValue> {
        let plain = plain_encoding(bytes)?;
        let counts: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut plain.as_slice())
            .map_err(|error| BadValue(format!("not a HdrHistogram V2 encoding: {error}")))?;
        let own = Self::new();
        let same_bounds = (counts.low(), counts.high(), counts.sigfig())
            == (own.counts.low(), own.counts.high(), own.counts.sigfig());
        if same_bounds {
            return Ok(Self { counts, saturated: 0 });
        }
        let mut converted = own;
        for bucket in counts.iter_recorded() {
            converted.record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        Ok(converted)
    }
}

/// The uncompressed encoding, its lengths checked: the decoder behind reserves what the header asks for.
fn plain_encoding(bytes: &[u8]) -> Result<Vec<u8>, BadValue> {
    let short = || BadValue("not a HdrHistogram V2 encoding: it ends too early".to_owned());
    let plain = match word(bytes, 0).ok_or_else(short)? {
        PLAIN_COOKIE => bytes.to_vec(),
        DEFLATE_COOKIE => {
            let length = word(bytes, 4).ok_or_else(short)? as usize;
            let packed = bytes.get(8..).and_then(|rest| rest.get(..length)).ok_or_else(short)?;
            let mut plain = Vec::new();
            ZlibDecoder::new(packed)
                .take(INFLATED_CEILING_BYTES + 1)
                .read_to_end(&mut plain)
                .map_err(|error| BadValue(format!("not a HdrHistogram V2 encoding: {error}")))?;
            if plain.len() as u64 > INFLATED_CEILING_BYTES {
                return bad("the HdrHistogram encoding inflates to more than 16 MiB".to_owned());
            }
            plain
        }
        cookie => return bad(format!("not a HdrHistogram V2 encoding: it begins with {cookie:#010x}")),
    };
    let payload = word(&plain, 4).ok_or_else(short)? as usize;
    if plain.len() < HEADER_BYTES || plain.len() - HEADER_BYTES < payload {
        return Err(short());
    }
    Ok(plain)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> Histogram {
        let mut histogram = Histogram::new();
        let mut ns = 90u64;
        while ns < 10_000_000_000_000 {
            histogram.record_n(ns, 1 + ns % 7);
            ns += ns / 3;
        }
        histogram
    }

    #[test]
    fn encoding_round_trips_all_but_saturated() {
        let original = filled();
        assert!(original.saturated() > 0);
        let decoded = Histogram::decode(&original.encode()).unwrap();
        assert_eq!((decoded.buckets(), decoded.saturated()), (original.buckets(), 0));
        assert_eq!(decoded.encode(), original.encode());
    }

    #[test]
    fn values_above_the_ceiling_are_counted_and_recorded_at_it() {
        let mut histogram = Histogram::new();
        histogram.record(Histogram::HIGHEST_NS);
        assert_eq!(histogram.saturated(), 0);
        histogram.record_n(u64::MAX, 3);
        assert_eq!((histogram.saturated(), histogram.count()), (3, 4));
        assert_eq!(histogram.max(), Histogram::HIGHEST_NS);
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut one, mut other, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for ns in [1, 5_000, 70_000, 4_000_000_000_000] {
            one.record(ns);
            both.record(ns);
        }
        for ns in [70_000, 900_000_000] {
            other.record_n(ns, 5);
            both.record_n(ns, 5);
        }
        one.merge(&other);
        assert_eq!(one, both);
        one.reset();
        assert_eq!(one, Histogram::new());
    }

    #[test]
    fn foreign_bounds_are_converted() {
        let mut foreign = hdrhistogram::Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 2).unwrap();
        foreign.record_n(1_000_000, 10).unwrap();
        foreign.record_n(u64::MAX / 2, 2).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&foreign, &mut bytes).unwrap();
        let decoded = Histogram::decode(&bytes).unwrap();
        assert_eq!((decoded.count(), decoded.saturated()), (12, 2));
        assert!(decoded.percentile(50.0).unwrap().abs_diff(1_000_000) <= 10_000);
    }

    #[test]
    fn broken_encodings_are_refused_without_large_allocations() {
        let good = filled().encode();
        for length in 0..good.len() {
            assert!(Histogram::decode(&good[..length]).is_err(), "cut at {length}");
        }
        let mut huge = PLAIN_COOKIE.to_be_bytes().to_vec();
        huge.extend(u32::MAX.to_be_bytes());
        huge.extend([0; 40]);
        assert!(Histogram::decode(&huge).is_err());
        assert!(Histogram::decode(b"not a histogram").is_err());
    }
}
