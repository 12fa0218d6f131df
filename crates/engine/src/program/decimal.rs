//! Decimals: a 128-bit integer with a scale. `+ - *` are exact; Python's `decimal` rounds beyond 28 digits
//! without a word, so a longer result is a fault here and both lives can never differ silently.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::fault::{Class, Fault, fault};

/// Digits that a decimal may have (the precision of Python's default context).
const DIGITS: u32 = 28;
/// Largest scale: digits after the point.
pub(crate) const SCALE_CEILING: u32 = 28;

/// `unscaled` × 10 to the power of minus `scale`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decimal {
    /// The digits, with the sign.
    pub unscaled: i128,
    /// How many of them stand after the point.
    pub scale: u32,
}

fn power(n: u32) -> Option<i128> {
    10i128.checked_pow(n)
}

fn too_long<T>() -> Result<T, Fault> {
    fault(Class::Overflow, format!("a decimal of more than {DIGITS} digits"))
}

impl Decimal {
    pub(crate) fn new(unscaled: i128, scale: u32) -> Result<Self, Fault> {
        let limit = power(DIGITS).expect("28 digits fit 128 bits");
        if unscaled.abs() >= limit || scale > SCALE_CEILING {
            return too_long();
        }
        Ok(Self { unscaled, scale })
    }

    pub(crate) fn from_int(value: i64) -> Self {
        Self { unscaled: i128::from(value), scale: 0 }
    }

    /// Both with the larger of the two scales.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let one = self.unscaled.checked_mul(power(scale - self.scale)?)?;
        let two = other.unscaled.checked_mul(power(scale - other.scale)?)?;
        Some((one, two, scale))
    }

    pub(crate) fn add(self, other: Self) -> Result<Self, Fault> {
        match self.aligned(other).and_then(|(a, b, scale)| Some((a.checked_add(b)?, scale))) {
            Some((sum, scale)) => Self::new(sum, scale),
            None => too_long(),
        }
    }

    pub(crate) fn negated(self) -> Self {
        Self { unscaled: -self.unscaled, scale: self.scale }
    }

    pub(crate) fn mul(self, other: Self) -> Result<Self, Fault> {
        match self.unscaled.checked_mul(other.unscaled) {
            Some(product) => Self::new(product, self.scale + other.scale),
            None => too_long(),
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((a, b, _)) => a.cmp(&b),
            // only one side can overflow, and it is the larger in magnitude
            None if self.scale < other.scale => self.unscaled.cmp(&0),
            None => 0.cmp(&other.unscaled),
        }
    }

    /// The integer part, towards zero, as `int()` gives it.
    pub(crate) fn truncated(self) -> Result<i64, Fault> {
        let whole = power(self.scale).map_or(0, |unit| self.unscaled / unit);
        i64::try_from(whole)
            .or_else(|_| fault(Class::Overflow, "int() of a decimal goes beyond 64 bits".to_owned()))
    }

    /// With `scale` digits after the point; what is cut off is rounded half away from zero, or half to even.
    pub(crate) fn rescaled(self, scale: u32, half_even: bool) -> Result<Self, Fault> {
        if scale >= self.scale {
            return match power(scale - self.scale).and_then(|unit| self.unscaled.checked_mul(unit)) {
                Some(unscaled) => Self::new(unscaled, scale),
                None => too_long(),
            };
        }
        let Some(unit) = power(self.scale - scale) else { return Self::new(0, scale) };
        let (whole, rest) = (self.unscaled / unit, (self.unscaled % unit).abs());
        let up = match (rest * 2).cmp(&unit) {
            Ordering::Greater => true,
            Ordering::Equal => !half_even || whole % 2 != 0,
            Ordering::Less => false,
        };
        let step = if self.unscaled < 0 { -1 } else { 1 };
        Self::new(if up { whole + step } else { whole }, scale)
    }

    /// A literal such as `-12.50`, also with an exponent.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let (unscaled, scale) = parsed(text)?;
        if scale < 0 {
            let unit = u32::try_from(-scale).ok().and_then(power);
            return match unit.and_then(|unit| unscaled.checked_mul(unit)) {
                Some(unscaled) => Self::new(unscaled, 0),
                None => too_long(),
            };
        }
        Self::new(unscaled, u32::try_from(scale).unwrap_or(u32::MAX))
    }

    /// `text` with `scale` digits after the point, rounded half away from zero, also when it has more digits
    /// than a decimal may have.
    pub(crate) fn parse_rounded(text: &str, scale: u32) -> Result<Self, Fault> {
        // one digit more than is kept decides a half; what follows it cannot turn it
        let keep = text.find('.').map_or(text.len(), |point| (point + 2 + scale as usize).min(text.len()));
        let rest = text.get(keep..).unwrap_or_default();
        let plain = rest.bytes().all(|byte| byte.is_ascii_digit());
        let (unscaled, found) = parsed(if plain { &text[..text.len() - rest.len()] } else { text })?;
        match u32::try_from(found) {
            Ok(found) => Self { unscaled, scale: found }.rescaled(scale, false),
            Err(_) => Self::parse(text)?.rescaled(scale, false),
        }
    }

    /// As Python's `str()`: plain, or with an exponent when the first digit is beyond the sixth place
    /// (General Decimal Arithmetic Specification, to-scientific-string).
    pub(crate) fn write(self, out: &mut String) {
        let digits = self.unscaled.unsigned_abs().to_string();
        let adjusted = digits.len() as i64 - 1 - i64::from(self.scale);
        if self.unscaled < 0 {
            out.push('-');
        }
        if self.scale > 0 && adjusted < -6 {
            out.push_str(&digits[..1]);
            if digits.len() > 1 {
                out.push('.');
                out.push_str(&digits[1..]);
            }
            let _ = write!(out, "E{adjusted}");
            return;
        }
        write_point(&digits, self.scale as usize, out);
    }

    /// With exactly `places` digits after the point, half to even, never with an exponent.
    pub(crate) fn write_fixed(self, places: u32, out: &mut String) -> Result<(), Fault> {
        let exact = self.rescaled(places.min(SCALE_CEILING), true)?;
        if self.unscaled < 0 {
            out.push('-');
        }
        write_point(&exact.unscaled.unsigned_abs().to_string(), exact.scale as usize, out);
        out.extend(std::iter::repeat_n('0', places.saturating_sub(SCALE_CEILING) as usize));
        Ok(())
    }
}

/// Digits and scale of a literal; the scale is negative where an exponent makes it so.
fn parsed(text: &str) -> Result<(i128, i64), Fault> {
    let wrong = || fault(Class::Value, format!("{text:?} is not a decimal"));
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()),
        None => (text, Some(0)),
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all: String = [whole, part].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return wrong();
    }
    match (exponent, all.parse::<i128>()) {
        (Some(exponent), Ok(unscaled)) => Ok((sign * unscaled, part.len() as i64 - i64::from(exponent))),
        (None, _) => wrong(),
        _ => too_long(),
    }
}

/// Plain digits, as SQL takes them: never with an exponent.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_point(&self.unscaled.unsigned_abs().to_string(), self.scale as usize, &mut text);
        write!(f, "{}{text}", if self.unscaled < 0 { "-" } else { "" })
    }
}

fn write_point(digits: &str, scale: usize, out: &mut String) {
    if scale == 0 {
        out.push_str(digits);
        return;
    }
    if digits.len() > scale {
        out.push_str(&digits[..digits.len() - scale]);
    } else {
        out.push('0');
    }
    out.push('.');
    out.extend(std::iter::repeat_n('0', scale.saturating_sub(digits.len())));
    out.push_str(&digits[digits.len().saturating_sub(scale)..]);
}
