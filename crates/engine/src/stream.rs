//! Random streams. A value is a function of (seed, purpose, terminal, transaction, position) and of
//! nothing else: not of time, connection, attempt, or the number of generators. A retry rewinds its
//! stream and draws the same parameters again; any transaction can be replayed alone.

use crate::distribution::{Distribution, Kind};
use crate::permutation::Permutation;
use crate::philox::philox4x64_10;
use crate::{BadValue, bad};

const WORDS_PER_BLOCK: usize = 4;
/// Longest string that `text` makes: MySQL's MEDIUMTEXT.
const TEXT_CEILING: i64 = 16_777_215;

/// FNV-1a, 64 bits: the second word of a stream's key.
pub fn purpose_hash(purpose: &str) -> u64 {
    purpose.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// One transaction's random values for one purpose.
///
/// Philox4x64-10 with key (seed, FNV-1a of the purpose) and counter (block, transaction, terminal, 0).
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u64; 2],
    terminal: u64,
    transaction: u64,
    next_block: u64,
    words: [u64; WORDS_PER_BLOCK],
    used: usize,
    distribution: Distribution,
    permutation: Option<Permutation>,
}

impl Stream {
    /// The stream at its first value. `pick` draws by `distribution`.
    pub fn new(
        seed: u64,
        purpose: &str,
        terminal: u64,
        transaction: u64,
        distribution: Distribution,
    ) -> Self {
        Self {
            key: [seed, purpose_hash(purpose)],
            terminal,
            transaction,
            next_block: 0,
            words: [0; WORDS_PER_BLOCK],
            used: WORDS_PER_BLOCK,
            distribution,
            permutation: None,
        }
    }

    /// Moves to the first value of another transaction of the same purpose.
    pub fn reseat(&mut self, terminal: u64, transaction: u64) {
        self.terminal = terminal;
        self.transaction = transaction;
        self.rewind();
    }

    /// Back to the first value: a retry repeats its parameters.
    pub fn rewind(&mut self) {
        self.next_block = 0;
        self.used = WORDS_PER_BLOCK;
    }

    /// The stream that `unit` of `table` uses: purpose "table:NAME", terminal 0, transaction `unit`.
    pub fn at(&self, table: &str, unit: u64) -> Self {
        Self::new(self.key[0], &format!("table:{table}"), 0, unit, self.distribution)
    }

    /// `at` with the hash of "table:NAME" known; takes the round keys over from `last` if it was of the same
    /// table.
    pub(crate) fn at_purpose(&self, purpose: u64, unit: u64, last: &Self) -> Self {
        let key = [self.key[0], purpose];
        let permutation = if last.key == key { last.permutation.clone() } else { None };
        Self {
            key,
            terminal: 0,
            transaction: unit,
            next_block: 0,
            words: [0; WORDS_PER_BLOCK],
            used: WORDS_PER_BLOCK,
            distribution: self.distribution,
            permutation,
        }
    }

    /// The number of the terminal that the stream belongs to.
    pub fn terminal(&self) -> u64 {
        self.terminal
    }

    /// The number of the transaction that the stream belongs to.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// 64 random bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        if let Some(word) = self.words.get(self.used) {
            self.used += 1;
            return *word;
        }
        self.next_words()
    }

    /// The next block, and its first word. Out of line: three of four words are at hand.
    #[inline(never)]
    fn next_words(&mut self) -> u64 {
        self.words = philox4x64_10([self.next_block, self.transaction, self.terminal, 0], self.key);
        self.next_block += 1;
        self.used = 1;
        self.words[0]
    }

    /// Uniform in 0..=limit, without bias: multiply and reject (Lemire: "Fast random integer generation
    /// in an interval", ACM TOMACS 29(1), 2019).
    #[inline]
    pub(crate) fn below_or_equal(&mut self, limit: u64) -> u64 {
        let Some(count) = limit.checked_add(1) else {
            return self.word();
        };
        let mut product = u128::from(self.word()) * u128::from(count);
        if (product as u64) < count {
            let threshold = count.wrapping_neg() % count;
            while (product as u64) < threshold {
                product = u128::from(self.word()) * u128::from(count);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in a..=b. Error when a > b.
    #[inline]
    pub fn uniform(&mut self, a: i64, b: i64) -> Result<i64, BadValue> {
        let span = span("uniform", a, b)?;
        Ok(a.wrapping_add(self.below_or_equal(span) as i64))
    }

    /// In a..=b by the stream's distribution. Error when a > b.
    #[inline]
    pub fn pick(&mut self, a: i64, b: i64) -> Result<i64, BadValue> {
        let span = span("pick", a, b)?;
        Ok(a.wrapping_add(self.picked(span) as i64))
    }

    /// A distance in 0..=span by the stream's distribution.
    #[inline]
    pub(crate) fn picked(&mut self, span: u64) -> u64 {
        if self.distribution.kind() == Kind::Uniform {
            return self.below_or_equal(span);
        }
        let distribution = self.distribution;
        distribution.offset(self, span)
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn real(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`. Error unless 0 <= p <= 1.
    pub fn chance(&mut self, p: f64) -> Result<bool, BadValue> {
        if !(0.0..=1.0).contains(&p) {
            return bad(format!("chance(p) needs a probability from 0 to 1, not {p}"));
        }
        Ok(self.real() < p)
    }

    /// Exponentially distributed with that mean, in the mean's unit. Error unless the mean is finite and
    /// at least 0.
    pub fn exponential(&mut self, mean: f64) -> Result<f64, BadValue> {
        if !(mean >= 0.0 && mean.is_finite()) {
            return bad(format!("exponential(mean) needs a finite mean of at least 0, not {mean}"));
        }
        Ok(-mean * libm::log1p(-self.real()))
    }

    /// NURand of TPC-C clause 2.1.6: (((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x.
    ///
    /// Errors: x > y; a negative A, x or C; a sum beyond 64 bits.
    pub fn nurand(&mut self, a: i64, x: i64, y: i64, c: i64) -> Result<i64, BadValue> {
        let sentence = || {
            BadValue(format!(
                "nurand(A, x, y, C) needs 0 <= A, 0 <= x <= y and 0 <= C, not ({a}, {x}, {y}, {c})"
            ))
        };
        if a < 0 || x < 0 || x > y || c < 0 {
            return Err(sentence());
        }
        let size = (y - x).checked_add(1).ok_or_else(sentence)?;
        let mixed = self.uniform(0, a)? | self.uniform(x, y)?;
        Ok(mixed.checked_add(c).ok_or_else(sentence)? % size + x)
    }

    /// A string of `lo` to `hi` characters, its length uniform, each character uniform over `alphabet`
    /// (a repeated character is drawn that much more often).
    ///
    /// Errors: an empty alphabet; not 0 <= lo <= hi <= 16777215.
    pub fn text(&mut self, lo: i64, hi: i64, alphabet: &str) -> Result<String, BadValue> {
        let mut text = String::new();
        self.text_into(lo, hi, alphabet, &mut text)?;
        Ok(text)
    }

    /// `text`, appended to a buffer.
    pub(crate) fn text_into(
        &mut self,
        lo: i64,
        hi: i64,
        alphabet: &str,
        out: &mut String,
    ) -> Result<(), BadValue> {
        if !(0 <= lo && lo <= hi && hi <= TEXT_CEILING) {
            return bad(format!(
                "text(lo, hi, alphabet) needs 0 <= lo <= hi <= {TEXT_CEILING}, not {lo} and {hi}"
            ));
        }
        let letters: Vec<char> = alphabet.chars().collect();
        let Some(last) = letters.len().checked_sub(1) else {
            return bad("text(lo, hi, alphabet) needs an alphabet of at least one character".to_owned());
        };
        let length = self.uniform(lo, hi)?;
        out.extend((0..length).map(|_| letters[self.below_or_equal(last as u64) as usize]));
        Ok(())
    }

    /// `pattern` with each '#' replaced by a digit and each '@' by a letter from a to z, as sysbench's
    /// `sb_rand_str` does.
    pub fn template(&mut self, pattern: &str) -> String {
        let mut text = String::with_capacity(pattern.len());
        self.template_into(pattern, &mut text);
        text
    }

    /// `template`, appended to a buffer.
    pub(crate) fn template_into(&mut self, pattern: &str, out: &mut String) {
        if !pattern.is_ascii() {
            out.extend(pattern.chars().map(|mark| match mark {
                '#' | '@' => self.marked(mark as u8) as char,
                other => other,
            }));
            return;
        }
        // by pieces on the stack: pushing characters one by one costs as much as drawing them
        let mut piece = [0u8; 64];
        for part in pattern.as_bytes().chunks(piece.len()) {
            for (slot, mark) in piece.iter_mut().zip(part) {
                *slot = self.marked(*mark);
            }
            out.push_str(std::str::from_utf8(&piece[..part.len()]).unwrap_or_default());
        }
    }

    /// A character of a template.
    #[inline]
    fn marked(&mut self, mark: u8) -> u8 {
        match mark {
            b'#' => b'0' + self.below_or_equal(9) as u8,
            b'@' => b'a' + self.below_or_equal(25) as u8,
            other => other,
        }
    }

    /// Where `i` goes in a bijection of 0..n-1 that depends on seed and purpose alone: every transaction
    /// of every terminal sees the same one, and no value is drawn. Error unless 0 <= i < n.
    pub fn permute(&mut self, n: i64, i: i64) -> Result<i64, BadValue> {
        if !(0 <= i && i < n) {
            return bad(format!("permute(n, i) needs 0 <= i < n, not n = {n} and i = {i}"));
        }
        let key = self.key;
        let permutation = self.permutation.get_or_insert_with(|| Permutation::new(key));
        Ok(permutation.apply(n as u64, i as u64) as i64)
    }
}

#[inline]
fn span(method: &str, a: i64, b: i64) -> Result<u64, BadValue> {
    if a > b {
        return bad(format!("{method}(a, b) needs a <= b, not {a} and {b}"));
    }
    Ok(b.wrapping_sub(a) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(terminal: u64, transaction: u64) -> Stream {
        Stream::new(42, "event", terminal, transaction, Distribution::default())
    }

    #[test]
    fn purpose_hash_is_fnv_1a() {
        assert_eq!(purpose_hash(""), 0xcbf29ce484222325);
        assert_eq!(purpose_hash("a"), 0xaf63dc4c8601ec8c);
        assert_eq!(purpose_hash("foobar"), 0x85944171f73967e8);
    }

    #[test]
    fn rewinding_and_reseating_repeat_the_values() {
        let mut one = stream(3, 9);
        let first: Vec<u64> = (0..11).map(|_| one.word()).collect();
        one.rewind();
        assert_eq!(first, (0..11).map(|_| one.word()).collect::<Vec<_>>());
        let mut other = stream(1, 1);
        other.word();
        other.reseat(3, 9);
        assert_eq!(first, (0..11).map(|_| other.word()).collect::<Vec<_>>());
    }

    #[test]
    fn uniform_covers_the_full_range_and_single_values() {
        let mut s = stream(1, 1);
        assert_eq!(s.uniform(5, 5), Ok(5));
        let values: Vec<i64> = (0..64).map(|_| s.uniform(i64::MIN, i64::MAX).unwrap()).collect();
        assert!(values.iter().any(|v| *v < 0) && values.iter().any(|v| *v > 0));
        assert!(s.uniform(2, 1).is_err());
    }

    #[test]
    fn uniform_has_no_bias_where_a_remainder_would() {
        // Three quarters of 2^64 values: a remainder would give the low third twice as often.
        let top = (3u64 << 62) as i64;
        let mut s = stream(1, 2);
        let low = (0..30_000)
            .filter(|_| {
                (s.uniform(i64::MIN, i64::MIN.wrapping_add(top).wrapping_sub(1)).unwrap()) < i64::MIN / 2
            })
            .count();
        assert!((9_600..10_400).contains(&low), "{low}");
    }

    #[test]
    fn nurand_follows_the_clause() {
        let (mut drawn, mut parts) = (stream(1, 1), stream(1, 1));
        for _ in 0..1000 {
            let expected =
                (((parts.uniform(0, 255).unwrap() | parts.uniform(1, 3000).unwrap()) + 7) % 3000) + 1;
            assert_eq!(drawn.nurand(255, 1, 3000, 7), Ok(expected));
        }
        assert!(drawn.nurand(255, 10, 9, 0).is_err());
        assert!(drawn.nurand(1, 0, i64::MAX, 0).is_err());
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut s = stream(1, 1);
        let mean = (0..100_000).map(|_| s.exponential(3.0).unwrap()).sum::<f64>() / 100_000.0;
        assert!((mean - 3.0).abs() < 0.04, "{mean}");
        assert!(s.exponential(f64::INFINITY).is_err());
    }

    #[test]
    fn template_keeps_what_is_not_a_mark() {
        let text = stream(1, 1).template("é-###-@@@");
        let tail: Vec<char> = text.chars().collect();
        assert_eq!((tail[0], tail[1], tail[5]), ('é', '-', '-'));
        assert!(
            tail[2..5].iter().all(char::is_ascii_digit) && tail[6..].iter().all(char::is_ascii_lowercase)
        );
    }

    #[test]
    fn permuting_draws_no_value_and_ignores_the_transaction() {
        let (mut one, mut other) = (stream(1, 1), stream(8, 77));
        let expected = other.clone().word();
        assert_eq!(one.permute(1000, 17), other.permute(1000, 17));
        assert_eq!(other.word(), expected);
        assert!(one.permute(10, 10).is_err() && one.permute(0, 0).is_err());
    }

    #[test]
    fn a_unit_of_a_table_has_one_stream_for_everybody() {
        let mut loader = Stream::new(42, "table:customer", 0, 12, Distribution::default());
        assert_eq!(stream(4, 5).at("customer", 12).word(), loader.word());
    }
}
