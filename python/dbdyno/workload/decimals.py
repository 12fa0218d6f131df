"""``decimal(x, scale)``: the one way to a decimal of a given scale (language.md). Compiled as an instruction.

Not to be confused with the column type of the same name in :mod:`dbdyno.workload.table`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

SCALE_LIMIT = 28


def decimal(x: int | float | str | Decimal, scale: int) -> Decimal:
    """``x`` with ``scale`` digits after the point, rounded half away from zero.

    A float is taken by its shortest digits (``repr``), a string by its own.

    Raises:
        ValueError: not a number, or ``scale`` not from 0 to 28.
        OverflowError: more than 28 digits.
        TypeError: another type.
    """
    if not isinstance(scale, int):
        raise TypeError(f"the scale of decimal(x, scale) must be an integer, not {type(scale).__name__}")
    if not 0 <= scale <= SCALE_LIMIT:
        raise ValueError(f"decimal(x, scale) takes from 0 to {SCALE_LIMIT} places of a decimal, not {scale}")
    if not isinstance(x, (int, float, str, Decimal)):
        raise TypeError(f"decimal(x, scale) takes no {type(x).__name__}")
    try:
        value = Decimal(repr(x) if isinstance(x, float) else x)
    except InvalidOperation:
        raise ValueError(f"{x!r} is not a decimal") from None
    if not value.is_finite():
        raise ValueError(f"{x!r} is not a decimal")
    try:
        # + 0: no negative zero, which no database has
        return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP) + 0
    except InvalidOperation:
        raise OverflowError("a decimal of more than 28 digits") from None


decimal.__dbdyno_builtin__ = "decimal"  # type: ignore[attr-defined]
