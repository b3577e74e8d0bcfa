"""Checks of arguments, with error messages that name the argument and what is allowed."""

import operator
from collections.abc import Sequence

LARGEST = 1e20
"""Numbers from this size on are refused in data: their squares overflow single precision."""


def count(name: str, value: int, *, least: int = 1) -> int:
    """``value`` as a whole number of at least ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, got {value!r}; pass an int >= {least}")
    value = operator.index(value)
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}; pass an int >= {least}")
    return value


def option(name: str, value: str, allowed: Sequence[str]) -> str:
    """``value`` where it is one of the ``allowed`` words."""
    if value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ValueError(f"{name} must be one of {words}, got {value!r}; pick one of these")
    return value
