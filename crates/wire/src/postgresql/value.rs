//! Values of parameters and columns, text or binary.

use bytes::Bytes;

use super::type_oid as oid;
use crate::reader::Reader;
use crate::{Error, Result};

/// Microseconds and days of PostgreSQL's binary times count from 2000-01-01: this many days after 1970.
const EPOCH_DAYS: i64 = 10_957;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A decoded value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// bool.
    Bool(bool),
    /// int2, int4, int8, oid.
    Int(i64),
    /// float4, float8.
    Double(f64),
    /// Everything else as its text: strings, numeric, date, timestamp; bytea as \x and hex digits.
    Text(String),
    /// A binary value of a type that is not known here.
    Bytes(Bytes),
}

/// Decodes a value of a type (0: not known) in format 0 (text) or 1 (binary). Error: a binary value that
/// its type does not allow.
pub fn decode(type_oid: u32, format: i16, value: Option<&Bytes>) -> Result<Value> {
    let Some(bytes) = value else {
        return Ok(Value::Null);
    };
    if format == 0 { Ok(from_text(type_oid, bytes)) } else { from_binary(type_oid, bytes) }
}

fn from_text(type_oid: u32, bytes: &Bytes) -> Value {
    let text = crate::reader::text(bytes);
    let parsed = match type_oid {
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => text.trim().parse().ok().map(Value::Int),
        oid::FLOAT4 | oid::FLOAT8 => text.trim().parse().ok().map(Value::Double),
        oid::BOOL => match text.as_str() {
            "t" | "true" | "1" => Some(Value::Bool(true)),
            "f" | "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    };
    parsed.unwrap_or(Value::Text(text))
}

fn from_binary(type_oid: u32, bytes: &Bytes) -> Result<Value> {
    let mut reader = Reader::new("binary value", bytes);
    let value = match type_oid {
        oid::BOOL => Value::Bool(reader.u8()? != 0),
        oid::INT2 => Value::Int(i64::from(reader.i16_be()?)),
        oid::INT4 => Value::Int(i64::from(reader.i32_be()?)),
        oid::OID => Value::Int(i64::from(reader.u32_be()?)),
        oid::INT8 => Value::Int(reader.i64_be()?),
        // Through its shortest text: 0.1 stays 0.1 in double precision.
        oid::FLOAT4 => {
            Value::Double(f32::from_bits(reader.u32_be()?).to_string().parse().unwrap_or(f64::NAN))
        }
        oid::FLOAT8 => Value::Double(f64::from_bits(reader.i64_be()? as u64)),
        oid::NUMERIC => Value::Text(numeric(&mut reader)?),
        oid::DATE => Value::Text(date(i64::from(reader.i32_be()?))),
        oid::TIMESTAMP => Value::Text(timestamp(reader.i64_be()?)),
        oid::TIMESTAMPTZ => Value::Text(format!("{}+00", timestamp(reader.i64_be()?))),
        oid::BYTEA => {
            let digits: String = reader.rest().iter().map(|byte| format!("{byte:02x}")).collect();
            Value::Text(format!("\\x{digits}"))
        }
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN_LITERAL => {
            Value::Text(crate::reader::text(reader.rest()))
        }
        _ => return Ok(Value::Bytes(bytes.clone())),
    };
    if reader.is_empty() { Ok(value) } else { reader.malformed() }
}

/// The binary form of a value given as text; None for a type that has none here or a text that its type
/// does not allow.
pub fn encode_binary(type_oid: u32, text: &str) -> Option<Bytes> {
    Some(match type_oid {
        oid::BOOL => Bytes::copy_from_slice(&[u8::from(matches!(text, "t" | "true" | "1"))]),
        oid::INT2 => Bytes::copy_from_slice(&text.parse::<i16>().ok()?.to_be_bytes()),
        oid::INT4 => Bytes::copy_from_slice(&text.parse::<i32>().ok()?.to_be_bytes()),
        oid::INT8 => Bytes::copy_from_slice(&text.parse::<i64>().ok()?.to_be_bytes()),
        oid::FLOAT8 => Bytes::copy_from_slice(&text.parse::<f64>().ok()?.to_be_bytes()),
        oid::NUMERIC => encode_numeric(text)?,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME => Bytes::copy_from_slice(text.as_bytes()),
        _ => return None,
    })
}

fn encode_numeric(text: &str) -> Option<Bytes> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (0x4000u16, rest),
        None => (0, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !(whole.to_owned() + fraction).bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Whole groups of four on both sides of the point.
    let padding = (4 - whole.len() % 4) % 4;
    let padded =
        format!("{}{whole}{fraction:0<width$}", "0".repeat(padding), width = fraction.len().div_ceil(4) * 4);
    let weight = (whole.len() + padding) / 4 - 1;
    let mut body = Vec::new();
    for number in [(padded.len() / 4) as u16, weight as u16, sign, fraction.len() as u16] {
        body.extend(number.to_be_bytes());
    }
    for group in padded.as_bytes().chunks(4) {
        let group = group.iter().fold(0u16, |value, digit| value * 10 + u16::from(digit - b'0'));
        body.extend(group.to_be_bytes());
    }
    Some(Bytes::from(body))
}

/// Groups of four decimal digits, the first weighing 10000 to the power of `weight`.
fn numeric(reader: &mut Reader<'_>) -> Result<String> {
    let groups = reader.i16_be()? as u16;
    let weight = i32::from(reader.i16_be()?);
    let sign = reader.i16_be()? as u16;
    let scale = reader.i16_be()? as u16;
    let mut digits = Vec::new();
    for _ in 0..groups {
        let group = reader.i16_be()?;
        if !(0..10_000).contains(&group) {
            return Err(Error::Malformed("binary numeric"));
        }
        digits.push(group);
    }
    match sign {
        0xC000 => return Ok("NaN".to_owned()),
        0xD000 => return Ok("Infinity".to_owned()),
        0xF000 => return Ok("-Infinity".to_owned()),
        _ => {}
    }
    let group =
        |position: i32| usize::try_from(position).ok().and_then(|i| digits.get(i)).copied().unwrap_or(0);
    let mut text = if sign == 0x4000 { "-".to_owned() } else { String::new() };
    if weight < 0 {
        text.push('0');
    }
    for position in 0..=weight {
        text += &if position == 0 { group(0).to_string() } else { format!("{:04}", group(position)) };
    }
    if scale > 0 {
        let fraction: String = (1..=i32::from(scale).div_euclid(4) + 1)
            .map(|place| format!("{:04}", group(weight + place)))
            .collect();
        text.push('.');
        text += &fraction[..usize::from(scale)];
    }
    Ok(text)
}

/// The civil date of a day number (Hinnant: "chrono-compatible low-level date algorithms").
fn date(days_since_2000: i64) -> String {
    let shifted = days_since_2000 + EPOCH_DAYS + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn timestamp(micros_since_2000: i64) -> String {
    let micros = micros_since_2000.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let day = date(micros_since_2000.div_euclid(MICROS_PER_DAY));
    let mut text = format!("{day} {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        text += format!(".{fraction:06}").trim_end_matches('0');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(type_oid: u32, bytes: &[u8]) -> Value {
        decode(type_oid, 1, Some(&Bytes::copy_from_slice(bytes))).unwrap()
    }

    fn shorts(numbers: &[i16]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
    }

    #[test]
    fn numerics_read_as_sql_writes_them() {
        let text = |numbers: &[i16]| binary(oid::NUMERIC, &shorts(numbers));
        assert_eq!(text(&[2, 1, 0, 0, 1, 2345]), Value::Text("12345".into()));
        assert_eq!(text(&[3, 1, 0x4000, 3, 1, 2345, 6780]), Value::Text("-12345.678".into()));
        assert_eq!(text(&[1, -1, 0, 2, 500]), Value::Text("0.05".into()));
        assert_eq!(text(&[1, -2, 0, 8, 12]), Value::Text("0.00000012".into()));
        assert_eq!(text(&[1, 2, 0, 0, 7]), Value::Text("700000000".into()));
        assert_eq!(text(&[0, 0, 0, 2]), Value::Text("0.00".into()));
    }

    #[test]
    fn binary_values_read_back_as_their_text() {
        for text in ["0", "12345", "-12345.678", "0.05", "99999999.12345678", "700000000"] {
            let bytes = encode_binary(oid::NUMERIC, text).unwrap();
            assert_eq!(binary(oid::NUMERIC, &bytes), Value::Text(text.into()));
        }
        assert_eq!(binary(oid::INT8, &encode_binary(oid::INT8, "-9").unwrap()), Value::Int(-9));
        assert_eq!(encode_binary(oid::INT8, "nine"), None);
        assert_eq!(encode_binary(oid::NUMERIC, "1e5"), None);
    }

    #[test]
    fn times_read_as_sql_writes_them() {
        assert_eq!(binary(oid::DATE, &0i32.to_be_bytes()), Value::Text("2000-01-01".into()));
        assert_eq!(binary(oid::DATE, &(-10_957i32).to_be_bytes()), Value::Text("1970-01-01".into()));
        assert_eq!(binary(oid::DATE, &59i32.to_be_bytes()), Value::Text("2000-02-29".into()));
        assert_eq!(
            binary(oid::TIMESTAMP, &(-1i64).to_be_bytes()),
            Value::Text("1999-12-31 23:59:59.999999".into())
        );
    }

    #[test]
    fn integers_are_integers_in_both_formats() {
        assert_eq!(binary(oid::INT4, &(-7i32).to_be_bytes()), Value::Int(-7));
        assert_eq!(decode(oid::INT8, 0, Some(&Bytes::from("42"))).unwrap(), Value::Int(42));
        assert_eq!(decode(0, 0, Some(&Bytes::from("42"))).unwrap(), Value::Text("42".into()));
        assert_eq!(decode(oid::INT8, 1, None).unwrap(), Value::Null);
        assert!(decode(oid::INT4, 1, Some(&Bytes::from_static(&[0; 5]))).is_err());
    }
}
