"""Words that are numbers or dates as people write them: with units, currencies, or names of months."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

MOST = 0.9
"""Part of the words from which on a column is one of numbers, or of dates; the other words are missing."""
CODE = re.compile(r"0\d+")
"""Digits behind a leading zero, as in postal codes, which are no numbers."""
NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s*[$€£¥]?\s*(?P<digits>[-+]?\d[\d.,' ]*(?:e[-+]?\d+)?|[-+]?\.\d+(?:e[-+]?\d+)?)\s*"
    r"(?P<unit>[%‰$€£¥]|[^\W\d_]{1,6}(?:/[^\W\d_]{1,4})?|°[CF]?)?",
    re.IGNORECASE,
)
POINTS = re.compile(
    r"[-+]?(\d+|\d{1,3}(?:[,' ]\d{3})+)(?:\.\d*)?(?:e[-+]?\d+)?|[-+]?\.\d+(?:e[-+]?\d+)?", re.I
)
"""With a decimal point, and commas, apostrophes or blanks between thousands."""
COMMAS = re.compile(r"[-+]?(\d+|\d{1,3}(?:[.' ]\d{3})+)(?:,\d*)?(?:e[-+]?\d+)?", re.I)
"""With a decimal comma."""
INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
DATE = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})([T ]\d{1,2}:\d{2}.*)?")
DAY_MONTH = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th)?[-. ]*([^\W\d_]{3,9})\.?[-., ]*(\d{4}|\d{2})([T ]\d{1,2}:\d{2}.*)?"
)
MONTH_DAY = re.compile(r"([^\W\d_]{3,9})\.? +(\d{1,2})(?:st|nd|rd|th)?,? +(\d{4})([T ]\d{1,2}:\d{2}.*)?")
MONTH_ALONE = re.compile(r"([^\W\d_]{3,9})\.?[-., ]+(\d{4})")
YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
GERMAN = {"mär": "mar", "mrz": "mar", "mai": "may", "okt": "oct", "dez": "dec"}


class Read(NamedTuple):
    """What words were read as."""

    values: list[Any]
    """A float or a text year-month-day for each word; None where it cannot be read so."""
    unread: list[str]
    """Words that could not be read."""

    def mostly(self) -> bool:
        """Whether so many words were read that the column is one of such."""
        n = len(self.values)
        return n > 0 and n - len(self.unread) >= MOST * n


def numbers_in(words: list[str]) -> Read | None:
    """Words as numbers, if most are; units, percent signs and currencies are left out where all are the same.

    >>> numbers_in(["$1,200", "$50", "$3.5"]).values
    [1200.0, 50.0, 3.5]
    >>> numbers_in(["5 kg", "7,5 kg"] * 9 + ["broken"]).unread
    ['broken']
    >>> numbers_in(["12a", "12b", "7c"]) is None
    True
    """
    if any(CODE.fullmatch(word) for word in words):
        return None
    found = read_numbers(words)
    return found if found.mostly() else None


def read_numbers(words: list[str]) -> Read:
    """Words as numbers, as many as can be read."""
    parts = [NUMBER.fullmatch(word) for word in words]
    units = Counter((part["unit"] or "").lower() for part in parts if part)
    unit = units.most_common(1)[0][0] if units else ""
    digits = [
        part["sign"] + part["digits"].strip() if part and (part["unit"] or "").lower() in ("", unit) else None
        for part in parts
    ]
    some = [text for text in digits if text is not None]
    with_points = sum(POINTS.fullmatch(text) is not None for text in some)
    # Words such as 1,234 are read as thousands, unless others show that the comma is a decimal one.
    commas = sum(COMMAS.fullmatch(text) is not None for text in some) > with_points
    values = [None if text is None else _number(text, commas=commas) for text in digits]
    # They are no words, and whoever uses the numbers refuses them.
    values = [float(word) if word.lower() in INFINITE else x for word, x in zip(words, values, strict=True)]
    return Read(values, [word for word, value in zip(words, values, strict=True) if value is None])


def _number(text: str, *, commas: bool) -> float | None:
    if not (COMMAS if commas else POINTS).fullmatch(text):
        return None
    plain = text.replace("'", "").replace(" ", "")
    plain = plain.replace(".", "").replace(",", ".") if commas else plain.replace(",", "")
    return float(plain)


def dates_in(words: list[str]) -> tuple[Read, bool] | None:
    """Words as dates year-month-day, if most are, and whether the day comes before the month.

    >>> dates_in(["19-Apr-2023", "March 5, 2021", "2023-04"])[0].values
    ['2023-04-19', '2021-03-05', '2023-04-01']
    """
    found = read_dates(words)
    return found if found[0].mostly() else None


def read_dates(words: list[str], *, day_first: bool = False) -> tuple[Read, bool]:
    """Words as dates, as many as can be read, and whether the day comes first: as given, or as they say."""
    day_first = day_first or _day_first([word for word in words if DATE.fullmatch(word)])
    values = [_year_first(word, day_first=day_first) for word in words]
    return Read(values, [word for word, value in zip(words, values, strict=True) if value is None]), day_first


def _day_first(words: list[str]) -> bool:
    """Whether dates have the day before the month, as 25/12/2020 has; if none says so, those with points."""
    parts = [re.split("[-/.]", word, maxsplit=2) for word in words]
    short = [(int(first), int(second)) for first, second, _ in parts if len(first) <= 2]
    if any(first > 12 or second > 12 for first, second in short):
        return all(second <= 12 for _, second in short)
    return bool(short) and "." in words[0][:3]


def _year_first(word: str, *, day_first: bool) -> str | None:
    """A date as year-month-day, for a parser that would otherwise guess the order in every row."""
    named: list[tuple[re.Pattern[str], Callable[[Any], tuple[Any, ...]]]] = [
        (DAY_MONTH, lambda g: (g[2], _month(g[1]), g[0], g[3])),
        (MONTH_DAY, lambda g: (g[2], _month(g[0]), g[1], g[3])),
        (MONTH_ALONE, lambda g: (g[1], _month(g[0]), 1, None)),
        (YEAR_MONTH, lambda g: (g[0], g[1], 1, None)),
    ]
    parts = DATE.fullmatch(word)
    if parts is not None:
        first, second, third, time = parts.groups()
        if len(first) > 2:
            return _written(first, second, third, time)
        month, day = (second, first) if day_first else (first, second)
        return _written(third, month, day, time)
    for pattern, order in named:
        parts = pattern.fullmatch(word)
        if parts is not None:
            year, month, day, time = order(parts.groups())
            return None if month is None else _written(year, month, day, time)
    return None


def _month(name: str) -> int | None:
    short = name[:3].lower()
    short = GERMAN.get(short, short)
    return MONTHS.index(short) + 1 if short in MONTHS else None


def _written(year: str, month: Any, day: Any, time: str | None) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    # Years of two digits as POSIX has them.
    century = 0 if len(year) > 2 else 2000 if int(year) < 69 else 1900
    return f"{century + int(year):04d}-{int(month):02d}-{int(day):02d}{time or ''}"
