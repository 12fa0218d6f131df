//! Truth, equality and order, as Python has them between values of all types.

use std::cmp::Ordering;

use super::decimal::Decimal;
use super::fault::{Class, Fault, fault};
use super::value::{Heap, Pool, Value};

/// The truth of a value.
#[inline]
pub(crate) fn truth(heap: &Heap, constants: &Pool, value: Value) -> bool {
    match value {
        Value::Bool(b) => b,
        Value::Int(i) => i != 0,
        Value::None | Value::Unbound => false,
        Value::Float(x) => x != 0.0,
        Value::Str(span) | Value::Bytes(span) | Value::Tuple(span) | Value::Frozen(span) => span.len != 0,
        Value::List(_) => heap.elements(constants, value).is_some_and(|list| !list.is_empty()),
        Value::Decimal(index) => heap.decimal(constants, index).unscaled != 0,
        Value::Timestamp(_) | Value::Text(_) => true,
    }
}

/// How nested a value may be: the language makes lists of tuples, not more.
const DEPTH: u32 = 16;

/// `a == b`.
pub(crate) fn equal(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<bool, Fault> {
    equal_within(heap, constants, a, b, DEPTH)
}

fn too_deep<T>() -> Result<T, Fault> {
    fault(Class::Limit, format!("lists nested more than {DEPTH} deep cannot be compared"))
}

fn equal_within(heap: &Heap, constants: &Pool, a: Value, b: Value, depth: u32) -> Result<bool, Fault> {
    Ok(match (a, b) {
        (Value::Int(x), Value::Int(y)) => x == y,
        (Value::Str(x), Value::Str(y)) => heap.str(constants, x) == heap.str(constants, y),
        (Value::Bytes(x), Value::Bytes(y)) => heap.bytes(constants, x) == heap.bytes(constants, y),
        (Value::Timestamp(x), Value::Timestamp(y)) => x == y,
        (Value::None, Value::None) => true,
        (Value::Tuple(_), Value::Tuple(_))
        | (Value::List(_) | Value::Frozen(_), Value::List(_) | Value::Frozen(_)) => {
            let Some(depth) = depth.checked_sub(1) else { return too_deep() };
            let (x, y) = (elements(heap, constants, a), elements(heap, constants, b));
            if x.len() != y.len() {
                return Ok(false);
            }
            for (one, other) in x.iter().zip(y) {
                if !equal_within(heap, constants, *one, *other, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => numbers(heap, constants, a, b)?.is_some_and(|order| order == Some(Ordering::Equal)),
    })
}

fn elements<'a>(heap: &'a Heap, constants: &'a Pool, value: Value) -> &'a [Value] {
    heap.elements(constants, value).unwrap_or(&[])
}

/// The order of two numbers of any types; the inner None is that of a NaN, the outer one of other types.
fn numbers(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<Option<Option<Ordering>>, Fault> {
    let as_decimal = |value: Value| match value {
        Value::Decimal(index) => Some(heap.decimal(constants, index)),
        _ => value.as_int().map(Decimal::from_int),
    };
    if let (Value::Float(_), Value::Decimal(_)) | (Value::Decimal(_), Value::Float(_)) = (a, b) {
        return fault(
            Class::Type,
            "a float and a decimal are not comparable here; make both decimals with decimal(x, scale)"
                .to_owned(),
        );
    }
    Ok(match (a, b) {
        (Value::Float(x), Value::Float(y)) => Some(x.partial_cmp(&y)),
        (Value::Float(x), _) => b.as_int().map(|y| int_and_float(y, x).map(Ordering::reverse)),
        (_, Value::Float(y)) => a.as_int().map(|x| int_and_float(x, y)),
        _ => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => Some(Some(x.cmp(&y))),
            _ => match (as_decimal(a), as_decimal(b)) {
                (Some(x), Some(y)) => Some(Some(x.compare(y))),
                _ => None,
            },
        },
    })
}

/// Exact, also where the integer has more digits than a float.
fn int_and_float(x: i64, y: f64) -> Option<Ordering> {
    const END: f64 = 9_223_372_036_854_775_808.0; // 2 to the power of 63
    if y.is_nan() {
        return None;
    }
    if y >= END {
        return Some(Ordering::Less);
    }
    if y < -END {
        return Some(Ordering::Greater);
    }
    let whole = y.trunc();
    Some(x.cmp(&(whole as i64)).then_with(|| 0.0f64.partial_cmp(&(y - whole)).unwrap_or(Ordering::Equal)))
}

/// `a < b`, `a <= b`, `a > b` or `a >= b`.
pub(crate) fn ordered(heap: &Heap, constants: &Pool, sign: &str, a: Value, b: Value) -> Result<bool, Fault> {
    let order = order(heap, constants, sign, a, b, DEPTH)?;
    Ok(match (sign, order) {
        (_, None) => false,
        ("<", Some(order)) => order == Ordering::Less,
        ("<=", Some(order)) => order != Ordering::Greater,
        (">", Some(order)) => order == Ordering::Greater,
        (_, Some(order)) => order != Ordering::Less,
    })
}

fn order(
    heap: &Heap,
    constants: &Pool,
    sign: &str,
    a: Value,
    b: Value,
    depth: u32,
) -> Result<Option<Ordering>, Fault> {
    Ok(match (a, b) {
        (Value::Int(x), Value::Int(y)) => Some(x.cmp(&y)),
        (Value::Str(x), Value::Str(y)) => Some(heap.str(constants, x).cmp(heap.str(constants, y))),
        (Value::Bytes(x), Value::Bytes(y)) => Some(heap.bytes(constants, x).cmp(heap.bytes(constants, y))),
        (Value::Timestamp(x), Value::Timestamp(y)) => Some(x.cmp(&y)),
        (Value::Tuple(_), Value::Tuple(_))
        | (Value::List(_) | Value::Frozen(_), Value::List(_) | Value::Frozen(_)) => {
            let Some(depth) = depth.checked_sub(1) else { return too_deep() };
            let (x, y) = (elements(heap, constants, a), elements(heap, constants, b));
            for (one, other) in x.iter().zip(y) {
                // Python looks for the first pair that differs and orders by that alone.
                if !equal_within(heap, constants, *one, *other, depth)? {
                    return order(heap, constants, sign, *one, *other, depth);
                }
            }
            Some(x.len().cmp(&y.len()))
        }
        _ => match numbers(heap, constants, a, b)? {
            Some(order) => order,
            None => {
                let (left, right) = (a.type_name(), b.type_name());
                return fault(
                    Class::Type,
                    format!("'{sign}' not supported between instances of '{left}' and '{right}'"),
                );
            }
        },
    })
}

/// `a in b`.
pub(crate) fn contains(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<bool, Fault> {
    match (a, b) {
        (Value::Str(part), Value::Str(whole)) => {
            Ok(heap.str(constants, whole).contains(heap.str(constants, part)))
        }
        (_, Value::Str(_)) => fault(
            Class::Type,
            format!("'in <string>' requires string as left operand, not {}", a.type_name()),
        ),
        _ => {
            let Some(list) = heap.elements(constants, b) else {
                return fault(Class::Type, format!("argument of type '{}' is not iterable", b.type_name()));
            };
            for element in list {
                if equal(heap, constants, a, *element)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// The elements in order, equal ones as they stood (reversed order keeps that too), by merging: unlike the
/// library's sort it may meet values that cannot be compared, and NaN.
pub(crate) fn sorted(
    heap: &Heap,
    constants: &Pool,
    list: &[Value],
    descending: bool,
) -> Result<Vec<Value>, Fault> {
    let mut from = list.to_vec();
    let mut to = from.clone();
    let mut width = 1;
    while width < from.len() {
        for start in (0..from.len()).step_by(2 * width) {
            let (middle, end) = ((start + width).min(from.len()), (start + 2 * width).min(from.len()));
            let (mut left, mut right) = (start, middle);
            for slot in &mut to[start..end] {
                let take_right = left == middle
                    || (right < end && {
                        let (a, b) = (from[left], from[right]);
                        let (a, b) = if descending { (a, b) } else { (b, a) };
                        ordered(heap, constants, "<", a, b)?
                    });
                let next = if take_right { &mut right } else { &mut left };
                *slot = from[*next];
                *next += 1;
            }
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    Ok(from)
}
