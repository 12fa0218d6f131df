//! Values as text: `str()`, f-strings with `{x}`, `{x:0Nd}`, `{x:.Nf}`, and the JSON of acknowledgements.

use std::fmt::Write;

use super::fault::{Class, Fault, fault};
use super::value::{Heap, Pool, TEXT_CEILING, Value};

/// Largest width and precision.
pub(crate) const WIDTH_CEILING: u32 = 1000;

/// How a hole of an f-string is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spec {
    /// `{x}`
    Plain,
    /// `{x:0Nd}`: at least N characters, the sign included, filled with zeros.
    Zeros(u32),
    /// `{x:Nd}`: at least N characters, filled with blanks from the left.
    Blanks(u32),
    /// `{x:.Nf}`: N digits after the point.
    Fixed(u32),
}

/// Appends `value` to the heap's string that is being written.
pub(crate) fn write_value(heap: &mut Heap, constants: &Pool, value: Value, spec: Spec) -> Result<(), Fault> {
    match spec {
        Spec::Plain => plain(heap, constants, value),
        Spec::Zeros(width) | Spec::Blanks(width) => {
            let Some(i) = value.as_int() else { return wrong_code('d', value) };
            let out = heap.writer();
            let width = width as usize;
            let _ = match spec {
                Spec::Zeros(_) => write!(out, "{i:0width$}"),
                _ => write!(out, "{i:width$}"),
            };
            Ok(())
        }
        Spec::Fixed(places) => {
            if let Value::Decimal(index) = value {
                return heap.decimal(constants, index).write_fixed(places, heap.writer());
            }
            let x = match (value, value.as_int()) {
                (Value::Float(x), _) => x,
                (_, Some(i)) => i as f64,
                _ => return wrong_code('f', value),
            };
            fixed(x, places as usize, heap.writer());
            Ok(())
        }
    }
}

fn wrong_code(code: char, value: Value) -> Result<(), Fault> {
    let name = value.type_name();
    match value {
        Value::Str(_) | Value::Float(_) => {
            fault(Class::Value, format!("Unknown format code '{code}' for object of type '{name}'"))
        }
        Value::Decimal(_) => fault(Class::Value, "invalid format string".to_owned()),
        _ => fault(Class::Type, format!("unsupported format string passed to {name}.__format__")),
    }
}

fn plain(heap: &mut Heap, constants: &Pool, value: Value) -> Result<(), Fault> {
    match value {
        Value::Str(span) => heap.copy_str(constants, span),
        Value::Int(i) => {
            let _ = write!(heap.writer(), "{i}");
        }
        Value::Bool(true) => heap.writer().push_str("True"),
        Value::Bool(false) => heap.writer().push_str("False"),
        Value::None => heap.writer().push_str("None"),
        Value::Float(x) => float_repr(x, heap.writer()),
        Value::Decimal(index) => heap.decimal(constants, index).write(heap.writer()),
        _ => {
            return fault(
                Class::Type,
                format!("a {} cannot be made a string here; numbers and strings can", value.type_name()),
            );
        }
    }
    if heap.writer().len() > u32::MAX as usize / 2 {
        return fault(Class::Limit, format!("a string of more than {TEXT_CEILING} bytes"));
    }
    Ok(())
}

/// As Python's `repr`: the shortest digits that read back the same, with an exponent from 1e16 on and below
/// 1e-4.
pub(crate) fn float_repr(x: f64, out: &mut String) {
    if x.is_nan() {
        return out.push_str("nan");
    }
    if x.is_infinite() {
        return out.push_str(if x > 0.0 { "inf" } else { "-inf" });
    }
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let _ = write!(out, "{x}");
        if x == x.trunc() {
            out.push_str(".0");
        }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
    }
}

fn fixed(x: f64, places: usize, out: &mut String) {
    if x.is_nan() {
        out.push_str("nan");
    } else {
        let _ = write!(out, "{x:.places$}");
    }
}

/// `values` as a JSON array in one line, as Python's `json.dumps(values, default=str)` writes it.
pub(crate) fn write_json_line(
    heap: &Heap,
    constants: &Pool,
    values: &[Value],
    out: &mut String,
) -> Result<(), Fault> {
    json_list(heap, constants, values, out, 16)?;
    out.push('\n');
    Ok(())
}

fn json_list(
    heap: &Heap,
    constants: &Pool,
    values: &[Value],
    out: &mut String,
    depth: u32,
) -> Result<(), Fault> {
    let Some(depth) = depth.checked_sub(1) else {
        return fault(Class::Limit, "db.ack() of a list nested more than 16 deep".to_owned());
    };
    out.push('[');
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        match *value {
            Value::None => out.push_str("null"),
            Value::Bool(b) => out.push_str(if b { "true" } else { "false" }),
            Value::Int(i) => {
                let _ = write!(out, "{i}");
            }
            Value::Float(x) if x.is_nan() => out.push_str("NaN"),
            Value::Float(x) if x.is_infinite() => {
                out.push_str(if x > 0.0 { "Infinity" } else { "-Infinity" })
            }
            Value::Float(x) => float_repr(x, out),
            Value::Decimal(index) => {
                out.push('"');
                heap.decimal(constants, index).write(out);
                out.push('"');
            }
            Value::Str(span) => json_string(heap.str(constants, span), out),
            Value::Timestamp(us) => {
                out.push('"');
                timestamp(us, out);
                out.push('"');
            }
            Value::List(_) | Value::Tuple(_) | Value::Frozen(_) => {
                json_list(heap, constants, heap.elements(constants, *value).unwrap_or(&[]), out, depth)?;
            }
            Value::Bytes(span) => json_string(&bytes_repr(heap.bytes(constants, span)), out),
            Value::Text(_) | Value::Unbound => {
                return fault(Class::Type, format!("db.ack() takes no {}", value.type_name()));
            }
        }
    }
    out.push(']');
    Ok(())
}

/// As Python's `repr` of bytes.
fn bytes_repr(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut out = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => {
                if char::from(*byte) == quote {
                    out.push('\\');
                }
                out.push(char::from(*byte));
            }
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(quote);
    out
}

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// As `str()` of a Python datetime in UTC: `2020-01-31 12:00:00.000001+00:00`, no fraction when it is 0.
fn timestamp(us: i64, out: &mut String) {
    let (seconds, fraction) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        let _ = write!(out, ".{fraction:06}");
    }
    out.push_str("+00:00");
}

/// Year, month and day of a count of days since 1970-01-01, in the proleptic Gregorian calendar. Years begin
/// in March here, so that the leap day is a year's last, and 400 of them always have 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let since_march_0 = days + 719_468;
    let (era, day) = (since_march_0.div_euclid(146_097), since_march_0.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153; // 0 = March
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr(x: f64) -> String {
        let mut out = String::new();
        float_repr(x, &mut out);
        out
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (x, expected) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(repr(x), expected);
        }
    }

    #[test]
    fn halves_round_to_even() {
        let text = |x, places| {
            let mut out = String::new();
            fixed(x, places, &mut out);
            out
        };
        assert_eq!(
            (text(0.5, 0), text(1.5, 0), text(2.5, 0), text(0.125, 2)),
            ("0".to_owned(), "2".to_owned(), "2".to_owned(), "0.12".to_owned())
        );
    }

    #[test]
    fn dates_follow_the_calendar() {
        let text = |us| {
            let mut out = String::new();
            timestamp(us, &mut out);
            out
        };
        assert_eq!(text(0), "1970-01-01 00:00:00+00:00");
        assert_eq!(text(-1), "1969-12-31 23:59:59.999999+00:00");
        assert_eq!(text(951_782_400_000_000), "2000-02-29 00:00:00+00:00");
        assert_eq!(text(1_577_836_800_001_000), "2020-01-01 00:00:00.001000+00:00");
    }
}
