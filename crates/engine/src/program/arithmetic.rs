//! Operators on numbers, with Python's results and Python's errors.

use super::decimal::Decimal;
use super::fault::{Class, Fault, fault};
use super::sequences;
use super::value::{Heap, Pool, Value};

/// Operands of an arithmetic operator after Python's widening.
enum Pair {
    Ints(i64, i64),
    Floats(f64, f64),
    Decimals(Decimal, Decimal),
    Other,
}

fn pair(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Pair {
    let decimal = |index| heap.decimal(constants, index);
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => Pair::Floats(x, y),
        (Value::Decimal(x), Value::Decimal(y)) => Pair::Decimals(decimal(x), decimal(y)),
        (Value::Float(x), _) => b.as_int().map_or(Pair::Other, |y| Pair::Floats(x, y as f64)),
        (_, Value::Float(y)) => a.as_int().map_or(Pair::Other, |x| Pair::Floats(x as f64, y)),
        (Value::Decimal(x), _) => {
            b.as_int().map_or(Pair::Other, |y| Pair::Decimals(decimal(x), Decimal::from_int(y)))
        }
        (_, Value::Decimal(y)) => {
            a.as_int().map_or(Pair::Other, |x| Pair::Decimals(Decimal::from_int(x), decimal(y)))
        }
        _ => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => Pair::Ints(x, y),
            _ => Pair::Other,
        },
    }
}

#[cold]
fn unsupported(sign: &str, a: Value, b: Value) -> Fault {
    let (left, right) = (a.type_name(), b.type_name());
    Fault(Box::new((Class::Type, format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'"))))
}

fn in_64_bits(value: Option<i64>, sign: &str, a: i64, b: i64) -> Result<Value, Fault> {
    match value {
        Some(value) => Ok(Value::Int(value)),
        None => fault(Class::Overflow, format!("{a} {sign} {b} goes beyond 64 bits")),
    }
}

#[inline]
pub(crate) fn add(heap: &mut Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    if let (Value::Int(x), Value::Int(y)) = (a, b) {
        if let Some(sum) = x.checked_add(y) {
            return Ok(Value::Int(sum));
        }
    }
    add_any(heap, constants, a, b)
}

#[inline(never)]
fn add_any(heap: &mut Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(x, y) => in_64_bits(x.checked_add(y), "+", x, y),
        Pair::Floats(x, y) => Ok(Value::Float(x + y)),
        Pair::Decimals(x, y) => Ok(heap.new_decimal(x.add(y)?)),
        Pair::Other => match sequences::concatenate(heap, constants, a, b)? {
            Some(value) => Ok(value),
            None => Err(unsupported("+", a, b)),
        },
    }
}

#[inline]
pub(crate) fn sub(heap: &mut Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(x, y) => in_64_bits(x.checked_sub(y), "-", x, y),
        Pair::Floats(x, y) => Ok(Value::Float(x - y)),
        Pair::Decimals(x, y) => Ok(heap.new_decimal(x.add(y.negated())?)),
        Pair::Other => Err(unsupported("-", a, b)),
    }
}

#[inline]
pub(crate) fn mul(heap: &mut Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(x, y) => in_64_bits(x.checked_mul(y), "*", x, y),
        Pair::Floats(x, y) => Ok(Value::Float(x * y)),
        Pair::Decimals(x, y) => Ok(heap.new_decimal(x.mul(y)?)),
        Pair::Other => match sequences::repeat(heap, constants, a, b)? {
            Some(value) => Ok(value),
            None => Err(unsupported("*", a, b)),
        },
    }
}

fn no_division<T>(sign: &str) -> Result<T, Fault> {
    fault(Class::Type, format!("decimals have no {sign}; multiply, or round with decimal(x, scale)"))
}

pub(crate) fn div(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(_, 0) => fault(Class::ZeroDivision, "division by zero".to_owned()),
        Pair::Ints(x, y) => Ok(Value::Float(true_quotient(x, y))),
        Pair::Floats(_, 0.0) => fault(Class::ZeroDivision, "float division by zero".to_owned()),
        Pair::Floats(x, y) => Ok(Value::Float(x / y)),
        Pair::Decimals(..) => no_division("/"),
        Pair::Other => Err(unsupported("/", a, b)),
    }
}

/// x / y rounded once, as Python's integers divide; converting both first would round thrice.
fn true_quotient(x: i64, y: i64) -> f64 {
    const EXACT: u64 = 1 << 53;
    let (n, d) = (x.unsigned_abs(), y.unsigned_abs());
    let negative = (x < 0) != (y < 0);
    let quotient = if n == 0 || (n <= EXACT && d <= EXACT) {
        n as f64 / d as f64
    } else {
        // 64 bits above the divisor's length leave at least 63 bits of quotient; the last bit is sticky.
        let shift = 64 + n.leading_zeros() as i32;
        let wide = u128::from(n) << shift;
        let (mut whole, rest) = (wide / u128::from(d), wide % u128::from(d));
        whole |= u128::from(rest != 0);
        libm::ldexp(whole as f64, -shift)
    };
    if negative { -quotient } else { quotient }
}

pub(crate) fn floor_div(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(_, 0) => fault(Class::ZeroDivision, "integer division or modulo by zero".to_owned()),
        Pair::Ints(x, y) => in_64_bits(x.checked_div(y).map(|q| q - i64::from(floors(x, y))), "//", x, y),
        Pair::Floats(_, 0.0) => fault(Class::ZeroDivision, "float floor division by zero".to_owned()),
        Pair::Floats(x, y) => Ok(Value::Float(float_floor(x, y).0)),
        Pair::Decimals(..) => no_division("//"),
        Pair::Other => Err(unsupported("//", a, b)),
    }
}

pub(crate) fn modulo(heap: &Heap, constants: &Pool, a: Value, b: Value) -> Result<Value, Fault> {
    match pair(heap, constants, a, b) {
        Pair::Ints(_, 0) => fault(Class::ZeroDivision, "integer division or modulo by zero".to_owned()),
        Pair::Ints(x, y) => {
            let rest = x.wrapping_rem(y);
            Ok(Value::Int(if floors(x, y) { rest + y } else { rest }))
        }
        Pair::Floats(_, 0.0) => fault(Class::ZeroDivision, "float modulo".to_owned()),
        Pair::Floats(x, y) => Ok(Value::Float(float_floor(x, y).1)),
        Pair::Decimals(..) => no_division("%"),
        Pair::Other => Err(unsupported("%", a, b)),
    }
}

/// Whether rounding x / y towards zero is one above rounding it down.
fn floors(x: i64, y: i64) -> bool {
    let rest = x.wrapping_rem(y);
    rest != 0 && (rest < 0) != (y < 0)
}

/// Quotient and remainder of floats as Python divides: the remainder has the divisor's sign.
fn float_floor(x: f64, y: f64) -> (f64, f64) {
    let mut rest = libm::fmod(x, y);
    let mut quotient = (x - rest) / y;
    if rest == 0.0 {
        rest = 0f64.copysign(y);
    } else if (y < 0.0) != (rest < 0.0) {
        rest += y;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(x / y), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

pub(crate) fn pow(a: Value, b: Value) -> Result<Value, Fault> {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) if y >= 0 => {
            let value = match x {
                0 | 1 => Some(if y == 0 { 1 } else { x }),
                -1 => Some(if y % 2 == 0 { 1 } else { -1 }),
                _ => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
            };
            in_64_bits(value, "**", x, y)
        }
        (Some(_), Some(_)) => fault(Class::Type, "** takes no negative exponent here".to_owned()),
        _ => fault(Class::Type, "** takes integers only".to_owned()),
    }
}

/// `&`, `|`, `^`, `<<`, `>>` on integers; on two bools the first three give a bool.
pub(crate) fn bits(sign: &str, a: Value, b: Value) -> Result<Value, Fault> {
    if let (Value::Bool(x), Value::Bool(y)) = (a, b) {
        match sign {
            "&" => return Ok(Value::Bool(x & y)),
            "|" => return Ok(Value::Bool(x | y)),
            "^" => return Ok(Value::Bool(x ^ y)),
            _ => {}
        }
    }
    let (Some(x), Some(y)) = (a.as_int(), b.as_int()) else {
        return Err(unsupported(sign, a, b));
    };
    match sign {
        "&" => Ok(Value::Int(x & y)),
        "|" => Ok(Value::Int(x | y)),
        "^" => Ok(Value::Int(x ^ y)),
        _ if y < 0 => fault(Class::Value, "negative shift count".to_owned()),
        ">>" => Ok(Value::Int(x >> y.min(63))),
        _ => {
            let wide = if y < 64 { Some(i128::from(x) << y) } else { (x == 0).then_some(0) };
            in_64_bits(wide.and_then(|wide| i64::try_from(wide).ok()), "<<", x, y)
        }
    }
}

/// The unary signs: `-`, `+`, `~`; also `abs`.
pub(crate) fn unary(heap: &mut Heap, constants: &Pool, sign: &str, a: Value) -> Result<Value, Fault> {
    let beyond = || Fault(Box::new((Class::Overflow, "the value goes beyond 64 bits".to_owned())));
    match (a, a.as_int(), sign) {
        (_, Some(x), "-") => x.checked_neg().map(Value::Int).ok_or_else(beyond),
        (_, Some(x), "abs()") => x.checked_abs().map(Value::Int).ok_or_else(beyond),
        (_, Some(x), "+") => Ok(Value::Int(x)),
        (_, Some(x), "~") => Ok(Value::Int(!x)),
        (Value::Float(x), _, "-") => Ok(Value::Float(-x)),
        (Value::Float(x), _, "+") => Ok(Value::Float(x)),
        (Value::Float(x), _, "abs()") => Ok(Value::Float(x.abs())),
        (Value::Decimal(index), _, "-" | "+" | "abs()") => {
            let decimal = heap.decimal(constants, index);
            let flip = sign == "-" || (sign == "abs()" && decimal.unscaled < 0);
            Ok(heap.new_decimal(if flip { decimal.negated() } else { decimal }))
        }
        _ if sign == "abs()" => {
            fault(Class::Type, format!("bad operand type for abs(): '{}'", a.type_name()))
        }
        _ => fault(Class::Type, format!("bad operand type for unary {sign}: '{}'", a.type_name())),
    }
}
