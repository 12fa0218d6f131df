//! Strings, lists and tuples: joining, repeating, index, slice, length.

use super::fault::{Class, Fault, fault};
use super::value::{Heap, Pool, TEXT_CEILING, Value, check_length};

/// `a + b` of two strings, two lists, two tuples; None for other types.
pub(crate) fn concatenate(
    heap: &mut Heap,
    constants: &Pool,
    a: Value,
    b: Value,
) -> Result<Option<Value>, Fault> {
    match (a, b) {
        (Value::Str(x), Value::Str(y)) => {
            let mark = heap.mark();
            heap.copy_str(constants, x);
            heap.copy_str(constants, y);
            heap.text_since(mark).map(Some)
        }
        (Value::Bytes(x), Value::Bytes(y)) => {
            let joined = [heap.bytes(constants, x), heap.bytes(constants, y)].concat();
            heap.new_bytes(&joined).map(Some)
        }
        (Value::Tuple(x), Value::Tuple(y)) => {
            let joined = [heap.cells(constants, x), heap.cells(constants, y)].concat();
            heap.new_tuple(&joined).map(Some)
        }
        (Value::List(_) | Value::Frozen(_), Value::List(_) | Value::Frozen(_)) => {
            let joined =
                [heap.elements(constants, a).unwrap_or(&[]), heap.elements(constants, b).unwrap_or(&[])]
                    .concat();
            heap.list_of(&joined).map(Some)
        }
        (Value::Str(_), _) => {
            fault(Class::Type, format!("can only concatenate str (not \"{}\") to str", b.type_name()))
        }
        _ => Ok(None),
    }
}

/// `a * b` of a sequence and an integer, in either order; None for other types.
pub(crate) fn repeat(heap: &mut Heap, constants: &Pool, a: Value, b: Value) -> Result<Option<Value>, Fault> {
    let (sequence, times) = match (a.as_int(), b.as_int()) {
        (None, Some(times)) => (a, times),
        (Some(times), None) => (b, times),
        _ => return Ok(None),
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match sequence {
        Value::Str(span) => {
            let whole = (span.len as usize).saturating_mul(times);
            if whole > TEXT_CEILING {
                return fault(
                    Class::Limit,
                    format!("a string of {whole} bytes; at most {TEXT_CEILING} are allowed"),
                );
            }
            let mark = heap.mark();
            for _ in 0..if span.len == 0 { 0 } else { times } {
                heap.copy_str(constants, span);
            }
            heap.text_since(mark).map(Some)
        }
        Value::List(_) | Value::Frozen(_) | Value::Tuple(_) => {
            let elements = heap.elements(constants, sequence).unwrap_or(&[]);
            check_length(elements.len().saturating_mul(times))?;
            let all = elements.repeat(if elements.is_empty() { 0 } else { times });
            if let Value::Tuple(_) = sequence {
                return heap.new_tuple(&all).map(Some);
            }
            heap.list_of(&all).map(Some)
        }
        _ => Ok(None),
    }
}

/// `len(value)`: characters of a string, elements of a list.
pub(crate) fn length(heap: &Heap, constants: &Pool, value: Value) -> Result<usize, Fault> {
    match value {
        Value::Str(span) => Ok(heap.str(constants, span).chars().count()),
        Value::Bytes(span) => Ok(span.len as usize),
        _ => match heap.elements(constants, value) {
            Some(list) => Ok(list.len()),
            None => fault(Class::Type, format!("object of type '{}' has no len()", value.type_name())),
        },
    }
}

/// What is no list, tuple or row; Python also goes through strings.
#[cold]
pub(crate) fn not_iterable<T>(value: Value) -> Result<T, Fault> {
    let name = value.type_name();
    match value {
        Value::Str(_) | Value::Bytes(_) => {
            fault(Class::Type, format!("'{name}' object is not iterable here; lists, tuples and rows are"))
        }
        _ => fault(Class::Type, format!("'{name}' object is not iterable")),
    }
}

/// Where index `i` (negative: from the end) points in `len` elements.
fn position(i: i64, len: usize) -> Option<usize> {
    let at = if i < 0 { i + len as i64 } else { i };
    usize::try_from(at).ok().filter(|at| *at < len)
}

/// `container[index]`.
pub(crate) fn index(
    heap: &mut Heap,
    constants: &Pool,
    container: Value,
    index: Value,
) -> Result<Value, Fault> {
    let kind = container.type_name();
    let subscript = |index: Value| match index.as_int() {
        Some(i) => Ok(i),
        None => {
            let name = if kind == "str" { "string" } else { kind };
            fault(Class::Type, format!("{name} indices must be integers, not {}", index.type_name()))
        }
    };
    if let Some(list) = heap.elements(constants, container) {
        let i = subscript(index)?;
        return match position(i, list.len()) {
            Some(at) => Ok(list[at]),
            None => fault(Class::Index, format!("{kind} index out of range")),
        };
    }
    match container {
        Value::Str(span) => {
            let i = subscript(index)?;
            let text = heap.str(constants, span);
            let len = text.chars().count();
            let Some(at) = position(i, len) else {
                return fault(Class::Index, "string index out of range".to_owned());
            };
            let (from, to) = (offset(text, at), offset(text, at + 1));
            Ok(Value::Str(span.part(from, to)))
        }
        Value::Bytes(span) => {
            let i = subscript(index)?;
            let bytes = heap.bytes(constants, span);
            match position(i, bytes.len()) {
                Some(at) => Ok(Value::Int(i64::from(bytes[at]))),
                None => fault(Class::Index, "index out of range".to_owned()),
            }
        }
        _ => fault(Class::Type, format!("'{kind}' object is not subscriptable")),
    }
}

/// Byte offset of character `at`.
fn offset(text: &str, at: usize) -> usize {
    if text.is_ascii() {
        return at.min(text.len());
    }
    text.char_indices().nth(at).map_or(text.len(), |(offset, _)| offset)
}

/// `list[index] = value`.
pub(crate) fn set_index(heap: &mut Heap, container: Value, index: Value, value: Value) -> Result<(), Fault> {
    match container {
        Value::List(id) => {
            let Some(i) = index.as_int() else {
                return fault(
                    Class::Type,
                    format!("list indices must be integers, not {}", index.type_name()),
                );
            };
            let slot = heap.list_mut(id).and_then(|list| {
                let at = position(i, list.len())?;
                list.get_mut(at)
            });
            match slot {
                Some(slot) => {
                    *slot = value;
                    Ok(())
                }
                None => fault(Class::Index, "list assignment index out of range".to_owned()),
            }
        }
        Value::Frozen(_) => fault(
            Class::WrongUse,
            "a list of the module or of self is a constant; copy it with [x for x in it] first".to_owned(),
        ),
        _ => {
            fault(Class::Type, format!("'{}' object does not support item assignment", container.type_name()))
        }
    }
}

/// `container[low:high]`; None stands for an end that was left out.
pub(crate) fn slice(
    heap: &mut Heap,
    constants: &Pool,
    container: Value,
    low: Value,
    high: Value,
) -> Result<Value, Fault> {
    let end = |value: Value, absent: usize, len: usize| match (value, value.as_int()) {
        (Value::None, _) => Ok(absent),
        (_, Some(i)) => Ok(if i < 0 { (i + len as i64).max(0) } else { i.min(len as i64) } as usize),
        _ => fault(
            Class::Type,
            "slice indices must be integers or None or have an __index__ method".to_owned(),
        ),
    };
    let ends = |len: usize| -> Result<(usize, usize), Fault> {
        let (from, to) = (end(low, 0, len)?, end(high, len, len)?);
        Ok((from, to.max(from)))
    };
    match container {
        Value::Str(span) => {
            let text = heap.str(constants, span);
            let (from, to) = ends(if text.is_ascii() { text.len() } else { text.chars().count() })?;
            let (from, to) = (offset(text, from), offset(text, to));
            Ok(Value::Str(span.part(from, to)))
        }
        Value::Bytes(span) => {
            let (from, to) = ends(span.len as usize)?;
            Ok(Value::Bytes(span.part(from, to)))
        }
        Value::Tuple(span) => {
            let (from, to) = ends(span.len as usize)?;
            Ok(Value::Tuple(span.part(from, to)))
        }
        Value::List(_) | Value::Frozen(_) => {
            let list = heap.elements(constants, container).unwrap_or(&[]);
            let (from, to) = ends(list.len())?;
            let part = list[from..to].to_vec();
            heap.list_of(&part)
        }
        _ => fault(Class::Type, format!("'{}' object is not subscriptable", container.type_name())),
    }
}

/// `list.append(value)`, and the elements of a starred argument one by one.
pub(crate) fn append(heap: &mut Heap, container: Value, value: Value) -> Result<(), Fault> {
    match container {
        Value::List(id) => {
            heap.account(1)?;
            if let Some(list) = heap.list_mut(id) {
                check_length(list.len() + 1)?;
                list.push(value);
            }
            Ok(())
        }
        Value::Frozen(_) => fault(
            Class::WrongUse,
            "a list of the module or of self is a constant; copy it with [x for x in it] first".to_owned(),
        ),
        _ => fault(Class::Type, format!("'{}' object has no attribute 'append'", container.type_name())),
    }
}

/// `a, b, c = value`: exactly `want` elements.
pub(crate) fn unpacked<'a>(
    heap: &'a Heap,
    constants: &'a Pool,
    value: Value,
    want: usize,
) -> Result<&'a [Value], Fault> {
    let Some(list) = heap.elements(constants, value) else {
        if let Value::Str(_) | Value::Bytes(_) = value {
            return not_iterable(value);
        }
        return fault(Class::Type, format!("cannot unpack non-iterable {} object", value.type_name()));
    };
    if list.len() > want {
        return fault(Class::Value, format!("too many values to unpack (expected {want})"));
    }
    if list.len() < want {
        return fault(
            Class::Value,
            format!("not enough values to unpack (expected {want}, got {})", list.len()),
        );
    }
    Ok(list)
}
