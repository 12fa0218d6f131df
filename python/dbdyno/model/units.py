"""Durations, sizes and counts as people write and read them. The only module that formats them.

Inside dbdyno times are ``_ns`` (int) or ``_s`` (float), sizes are bytes; only here do they become words.
"""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s|m|min|h|d)?", re.ASCII)
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration_s(text: str | float | int) -> float:
    """Seconds from ``"30s"``, ``"1.5m"``, ``"200ms"``, ``"1h30m"`` or a bare number of seconds.

    Raises:
        ValueError: not a duration; the message says what one looks like.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        if text < 0:
            raise ValueError(f"{text} is negative; a duration is like 30s, 1.5m, 200ms or 1h30m")
        return float(text)
    seconds, position, source = 0.0, 0, str(text).strip()
    while position < len(source):
        match = _DURATION.match(source, position)
        if match is None:
            break
        seconds += float(match[1]) * _SECONDS[match[2] or "s"]
        position = match.end()
    if not source or position != len(source):
        raise ValueError(f"{text!r} is not a duration; write for example 30s, 1.5m, 200ms or 1h30m")
    return seconds


def format_duration(seconds: float) -> str:
    """``"1 h 05 min"``, ``"2 min 03 s"``, ``"12.3 s"``, ``"250 ms"`` – two figures, never more."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    if seconds >= 1:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    return f"{seconds * 1000:.0f} ms"


def ms(value_ns: float) -> float:
    """Nanoseconds to milliseconds, rounded to a tenth of a microsecond (the histogram's resolution)."""
    return round(value_ns / 1e6, 4)


def format_ms(value_ms: float) -> str:
    """Latency in milliseconds with three significant figures: ``"0.123"``, ``"1.23"``, ``"123"``."""
    if value_ms >= 100:
        return f"{value_ms:,.0f}"
    if value_ms >= 10:
        return f"{value_ms:.1f}"
    return f"{value_ms:.2f}" if value_ms >= 1 else f"{value_ms:.3f}"


def format_rate(per_second: float) -> str:
    """Events per second: whole with thousands separators from 100 on, else three significant figures."""
    if per_second >= 100:
        return f"{per_second:,.0f}"
    return f"{per_second:.1f}" if per_second >= 10 else f"{per_second:.2f}"


def format_bytes(size: int) -> str:
    """``"512 B"``, ``"1.5 KiB"``, ``"2.0 GiB"``: powers of 1024, as the servers count."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def format_percent(ratio: float) -> str:
    """A change as a signed percentage: 1.034 → ``"+3.4 %"``; growth, never a ratio."""
    change = (ratio - 1) * 100
    return f"{change:+.1f} %" if abs(change) < 100 else f"{change:+,.0f} %"
