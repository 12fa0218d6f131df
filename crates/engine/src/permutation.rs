//! A pseudo-random bijection of 0..n-1 for any n: a balanced Feistel network over the next even number
//! of bits, walked along its cycle until it lands inside the range (Black, Rogaway: "Ciphers with
//! arbitrary finite domains", CT-RSA 2002). Constant memory, whatever n is.

use crate::philox::philox4x64_10;

/// Narrow halves mix little in a round; eight keep domains of a few elements well shuffled.
const ROUNDS: usize = 8;
/// Fourth counter word of the blocks that give the round keys; streams have 0 there.
const ROUND_KEY_LANE: u64 = 1;

/// The round keys of one bijection family; `apply` gives the member for a size.
#[derive(Debug, Clone)]
pub struct Permutation {
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// The family that belongs to a Philox key.
    pub fn new(key: [u64; 2]) -> Self {
        let mut round_keys = [0; ROUNDS];
        for (block, keys) in round_keys.chunks_mut(4).enumerate() {
            keys.copy_from_slice(&philox4x64_10([block as u64, 0, 0, ROUND_KEY_LANE], key));
        }
        Self { round_keys }
    }

    /// Where `i` goes among 0..n-1. The caller has checked `i < n`.
    ///
    /// Fewer than four steps along the cycle are expected: the network's domain is less than 4 n.
    pub fn apply(&self, n: u64, i: u64) -> u64 {
        debug_assert!(i < n);
        if n == 1 {
            return 0;
        }
        let bits = 64 - (n - 1).leading_zeros();
        let half_bits = bits.div_ceil(2);
        let mask = (1u64 << half_bits) - 1;
        let mut value = i;
        loop {
            let (mut left, mut right) = (value >> half_bits, value & mask);
            for key in self.round_keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            value = (left << half_bits) | right;
            if value < n {
                return value;
            }
        }
    }
}

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_small_range_is_reached_once() {
        for n in (1..300).chain([1000, 1023, 1024, 1025, 3000, 65_537]) {
            let permutation = Permutation::new([7, n]);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let image = permutation.apply(n, i) as usize;
                assert!(!std::mem::replace(&mut seen[image], true), "{image} twice for n = {n}");
            }
        }
    }

    #[test]
    fn the_largest_ranges_stay_inside() {
        let permutation = Permutation::new([1, 2]);
        for n in [u64::MAX, i64::MAX as u64, (1 << 62) + 1, 1 << 33] {
            for i in [0, 1, n / 2, n - 1] {
                assert!(permutation.apply(n, i) < n);
            }
        }
    }

    #[test]
    fn first_images_are_spread_over_the_range() {
        // Over 5,000 keys each of five values should be the image of 0 about 1,000 times.
        let mut counts = [0f64; 5];
        for key in 0..5000 {
            counts[Permutation::new([key, 99]).apply(5, 0) as usize] += 1.0;
        }
        let chi_squared: f64 = counts.iter().map(|c| (c - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_squared < 18.47, "0.001 quantile of 4 degrees exceeded: {chi_squared}");
    }
}
