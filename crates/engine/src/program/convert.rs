//! The functions of the language that turn one value into another: int, float, round, decimal, sum, min, max.

use super::arithmetic;
use super::compare;
use super::decimal::{Decimal, SCALE_CEILING};
use super::fault::{Class, Fault, fault};
use super::sequences::not_iterable;
use super::value::{Heap, Pool, Value};

/// `int(value)`.
pub(crate) fn to_int(heap: &Heap, constants: &Pool, value: Value) -> Result<Value, Fault> {
    match (value, value.as_int()) {
        (_, Some(i)) => Ok(Value::Int(i)),
        (Value::Float(x), _) => whole(x.trunc()),
        (Value::Decimal(index), _) => heap.decimal(constants, index).truncated().map(Value::Int),
        (Value::Str(span), _) => {
            let text = heap.str(constants, span);
            match parse_int(text.trim()) {
                Some(Ok(i)) => Ok(Value::Int(i)),
                Some(Err(())) => fault(Class::Overflow, format!("int({text:?}) goes beyond 64 bits")),
                None => fault(Class::Value, format!("invalid literal for int() with base 10: {text:?}")),
            }
        }
        _ => fault(
            Class::Type,
            format!("int() argument must be a string or a number, not '{}'", value.type_name()),
        ),
    }
}

/// Digits with a sign and single underscores between them; Err when too large.
fn parse_int(text: &str) -> Option<Result<i64, ()>> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let separated = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if separated || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return None;
    }
    Some(text.replace('_', "").parse().map_err(|_| ()))
}

fn whole(x: f64) -> Result<Value, Fault> {
    if x.is_nan() {
        return fault(Class::Value, "cannot convert float NaN to integer".to_owned());
    }
    // 2 to the power of 63 is the first float that does not fit
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) {
        return fault(Class::Overflow, format!("the integer of {x:e} goes beyond 64 bits"));
    }
    Ok(Value::Int(x as i64))
}

/// `float(value)`.
pub(crate) fn to_float(heap: &Heap, constants: &Pool, value: Value) -> Result<Value, Fault> {
    match (value, value.as_int()) {
        (_, Some(i)) => Ok(Value::Float(i as f64)),
        (Value::Float(_), _) => Ok(value),
        (Value::Decimal(index), _) => {
            let mut text = String::new();
            heap.decimal(constants, index).write(&mut text);
            Ok(Value::Float(text.parse().unwrap_or(f64::NAN)))
        }
        (Value::Str(span), _) => {
            let text = heap.str(constants, span);
            match text.trim().parse() {
                Ok(x) => Ok(Value::Float(x)),
                Err(_) => fault(Class::Value, format!("could not convert string to float: {text:?}")),
            }
        }
        _ => fault(
            Class::Type,
            format!("float() argument must be a string or a number, not '{}'", value.type_name()),
        ),
    }
}

/// `round(value)` and `round(value, places)`: halves go to the even neighbour.
pub(crate) fn round(
    heap: &mut Heap,
    constants: &Pool,
    value: Value,
    places: Option<Value>,
) -> Result<Value, Fault> {
    let places = match places {
        None | Some(Value::None) => None,
        Some(given) => match given.as_int() {
            Some(places) => Some(places),
            None => {
                return fault(
                    Class::Type,
                    format!("'{}' object cannot be interpreted as an integer", given.type_name()),
                );
            }
        },
    };
    match (value, value.as_int(), places) {
        (_, Some(i), None | Some(0..)) => Ok(Value::Int(i)),
        (Value::Float(x), _, None) => {
            if x.is_infinite() {
                return fault(Class::Overflow, "cannot convert float infinity to integer".to_owned());
            }
            whole(x.round_ties_even())
        }
        (Value::Float(x), _, Some(places @ 0..)) => {
            // beyond 22 digits nothing is left to round in a float of ordinary size, and Python agrees
            let digits = usize::try_from(places).unwrap_or(usize::MAX).min(330);
            Ok(Value::Float(if x.is_finite() { format!("{x:.digits$}").parse().unwrap_or(x) } else { x }))
        }
        (Value::Decimal(index), _, places) => {
            let decimal = heap.decimal(constants, index);
            match places {
                None => decimal.rescaled(0, true)?.truncated().map(Value::Int),
                Some(places) => {
                    let rounded = decimal.rescaled(scale_of(places, "round()")?, true)?;
                    Ok(heap.new_decimal(rounded))
                }
            }
        }
        (_, Some(_), Some(_)) | (Value::Float(_), _, Some(_)) => {
            fault(Class::Value, "round() takes no negative places here".to_owned())
        }
        _ => fault(Class::Type, format!("type {} doesn't define __round__ method", value.type_name())),
    }
}

fn scale_of(places: i64, function: &str) -> Result<u32, Fault> {
    match u32::try_from(places) {
        Ok(scale) if scale <= SCALE_CEILING => Ok(scale),
        _ => fault(
            Class::Value,
            format!("{function} takes from 0 to {SCALE_CEILING} places of a decimal, not {places}"),
        ),
    }
}

/// `decimal(value, scale)`: rounded half away from zero. Floats and strings are taken by their digits.
pub(crate) fn to_decimal(
    heap: &mut Heap,
    constants: &Pool,
    value: Value,
    scale: Value,
) -> Result<Value, Fault> {
    let scale = match scale.as_int() {
        Some(scale) => scale_of(scale, "decimal(x, scale)")?,
        None => {
            return fault(
                Class::Type,
                format!("the scale of decimal(x, scale) must be an integer, not {}", scale.type_name()),
            );
        }
    };
    let decimal = match (value, value.as_int()) {
        (_, Some(i)) => Decimal::from_int(i),
        (Value::Decimal(index), _) => heap.decimal(constants, index),
        (Value::Float(x), _) => {
            let mut text = String::new();
            super::formatting::float_repr(x, &mut text);
            Decimal::parse_rounded(&text, scale)?
        }
        (Value::Str(span), _) => Decimal::parse_rounded(heap.str(constants, span).trim(), scale)?,
        _ => return fault(Class::Type, format!("decimal(x, scale) takes no {}", value.type_name())),
    };
    let rounded = decimal.rescaled(scale, false)?;
    Ok(heap.new_decimal(rounded))
}

/// `sum(list)`, from the left, beginning with 0. Not of floats: Python 3.12 began to compensate their
/// rounding, so their sum depends on the version that runs the other life.
pub(crate) fn sum(heap: &mut Heap, constants: &Pool, list: Value) -> Result<Value, Fault> {
    let Some(elements) = heap.elements(constants, list).map(<[Value]>::to_vec) else {
        return not_iterable(list);
    };
    if elements.iter().any(|element| matches!(element, Value::Float(_))) {
        return fault(Class::Type, "sum() takes no floats here; add them in a loop".to_owned());
    }
    elements
        .into_iter()
        .try_fold(Value::Int(0), |total, element| arithmetic::add(heap, constants, total, element))
}

/// `min` (`sign` is `<`) or `max` (`>`) of values: the first of equal ones.
pub(crate) fn extreme(heap: &Heap, constants: &Pool, sign: &str, values: &[Value]) -> Result<Value, Fault> {
    let Some((first, rest)) = values.split_first() else {
        let name = if sign == "<" { "min" } else { "max" };
        return fault(Class::Value, format!("{name}() arg is an empty sequence"));
    };
    let mut best = *first;
    for value in rest {
        if compare::ordered(heap, constants, sign, *value, best)? {
            best = *value;
        }
    }
    Ok(best)
}
