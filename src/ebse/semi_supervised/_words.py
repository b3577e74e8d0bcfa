"""Words that are numbers or dates as people write them: with units, currencies, or names of months.

What a word means may depend on the other words of its column: 1,234 is 1.234 beside 0,5, and 5/6/2024 is in
June beside 25/12/2024. This is decided once, in ``fit``, and kept as a style.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

MOST = 0.9
"""Part of the words from which on a column is one of numbers, or of dates; the other words are missing."""
LONGEST = 40
"""Letters of a number or a date, at most."""
CODE = re.compile(r"0\d[\d ]*[^\W\d_]*")
"""Digits behind a leading zero, as in postal codes, which are no numbers."""
DIGITS = r"\d(?:[\d.,' ]*\d)?[.,]?(?:e[-+]?\d+)?|[.,]\d+(?:e[-+]?\d+)?"
UNIT = r"[%‰$€£¥]|[^\W\d_]{1,6}(?:/[^\W\d_]{1,4})?|°[CF]?"
NUMBER = re.compile(
    r"[<>≤≥~≈]? ?(?P<sign>[-+]?) ?(?P<currency>[$€£¥]?) ?(?P<inner>[-+]?)"
    rf"(?P<digits>{DIGITS}) ?(?P<unit>{UNIT})?",
    re.I,
)
"""A limit of detection, such as < 0.5, is read as the number 0.5."""
GROUPS = r"\d+|[1-9]\d{{0,2}}(?:[{0}' ]\d{{3}})+"
POINTS = re.compile(rf"(?:{GROUPS.format(',')})(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?", re.I)
"""With a decimal point, and commas, apostrophes or blanks between thousands."""
COMMAS = re.compile(rf"(?:{GROUPS.format('.')})(?:,\d*)?(?:e[-+]?\d+)?|,\d+(?:e[-+]?\d+)?", re.I)
"""With a decimal comma."""
INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in ("inf", "infinity"))
TIME = r"([T ]\d{1,2}:\d{2}.*)?"
DATE = re.compile(rf"(\d{{1,4}})[-/.](\d{{1,2}})[-/.](\d{{1,4}}){TIME}")
MONTH = r"([^\W\d_]{3,9})\.?"
DAY_MONTH = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?[-. ]{{0,2}}{MONTH}[-., ]{{0,2}}(\d{{4}}|\d{{2}}){TIME}")
MONTH_DAY = re.compile(rf"{MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}}){TIME}")
MONTH_ALONE = re.compile(rf"{MONTH}[-., ]{{1,2}}(\d{{4}})")
YEAR_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october"),
    *("november", "december"),
)
GERMAN = (
    *("januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober"),
    *("november", "dezember"),
)
NUMBERED = {
    name: month
    for month, names in enumerate(zip(MONTHS, GERMAN, strict=True), 1)
    for full in (*names, "sept" if month == 9 else names[0], "mrz" if month == 3 else names[0])
    for name in (full, full[:3])
}
"""Months by their names, English and German, and by the first three letters."""
DAY_FIRST, MONTH_FIRST = "day first", "month first"


class Read(NamedTuple):
    """What words were read as."""

    values: list[Any]
    """A float or a text year-month-day for each word; None where it cannot be read so."""
    style: str
    """Of numbers the decimal mark and the unit; of dates which of day and month comes first."""

    @property
    def n_unread(self) -> int:
        """Words that could not be read."""
        return sum(value is None for value in self.values)

    def mostly(self) -> bool:
        """Whether so many words were read that the column is one of such."""
        n = len(self.values)
        return n > 0 and n - self.n_unread >= MOST * n


def numbers_in(words: list[str]) -> Read | None:
    """Words as numbers, if most are; units, percent signs and currencies are left out where all are the same.

    >>> numbers_in(["$1,200", "$50", "$3.5"]).values
    [1200.0, 50.0, 3.5]
    >>> numbers_in(["< 0.5", "2.5"]).values
    [0.5, 2.5]
    >>> numbers_in(["5 kg", "7,5 kg"] * 9 + ["broken"]).style
    ',kg'
    >>> numbers_in(["12a", "12b", "7c"]) is None
    True
    """
    if any(CODE.fullmatch(word) for word in words):
        return None
    found = read_numbers(words)
    return found if found.mostly() else None


def read_numbers(words: list[str], style: str = "") -> Read:
    """Words as numbers, as many as can be read in this style; without one, in that which fits most words."""
    parts = [_split(word) for word in words]
    if not style:
        units = Counter(unit for _, unit in filter(None, parts))
        unit = units.most_common(1)[0][0] if units else ""
        some = [digits.lstrip("+-") for digits, own in filter(None, parts) if own in ("", unit)]
        points = [POINTS.fullmatch(text) is not None for text in some]
        commas = [COMMAS.fullmatch(text) is not None for text in some]
        # Words that are numbers in both ways, such as 1,234, decide nothing: then the mark is a point.
        alone = sum(c and not p for p, c in zip(points, commas, strict=True))
        against = sum(p and not c for p, c in zip(points, commas, strict=True))
        style = ("," if alone > against else ".") + unit
    mark, unit = style[0], style[1:]
    values = [
        None if part is None or part[1] not in ("", unit) else _number(part[0], commas=mark == ",")
        for part in parts
    ]
    # Infinities are no words, and whoever uses the numbers refuses them.
    values = [float(word) if word.lower() in INFINITE else x for word, x in zip(words, values, strict=True)]
    return Read(values, style)


def _split(word: str) -> tuple[str, str] | None:
    """Digits with their sign, and currency or unit, of a word; None if it is no number."""
    part = NUMBER.fullmatch(word) if len(word) <= LONGEST else None
    if part is None or (part["sign"] and part["inner"]) or (part["currency"] and part["unit"]):
        return None
    unit = (part["currency"] or part["unit"] or "").lower()
    return part["sign"] + part["inner"] + part["digits"], unit


def _number(text: str, *, commas: bool) -> float | None:
    if not (COMMAS if commas else POINTS).fullmatch(text.lstrip("+-")):
        return None
    plain = text.replace("'", "").replace(" ", "")
    plain = plain.replace(".", "").replace(",", ".") if commas else plain.replace(",", "")
    return float(plain)


def dates_in(words: list[str]) -> Read | None:
    """Words as dates year-month-day, if most are.

    >>> dates_in(["19-Apr-2023", "March 5, 2021", "2023-04"]).values
    ['2023-04-19', '2021-03-05', '2023-04-01']
    >>> dates_in(["25/12/2020", "5/6/2021"]).style
    'day first'
    """
    found = read_dates(words)
    return found if found.mostly() else None


def read_dates(words: list[str], style: str = "") -> Read:
    """Words as dates, as many as can be read in this style; without one, in that which the words show."""
    style = style or (
        DAY_FIRST if _day_first([word for word in words if DATE.fullmatch(word)]) else MONTH_FIRST
    )
    return Read([_year_first(word, day_first=style == DAY_FIRST) for word in words], style)


def _day_first(words: list[str]) -> bool:
    """Whether dates have the day before the month, as 25/12/2020 has; if none says so, those with points."""
    parts = [re.split("[-/.]", word, maxsplit=2) for word in words]
    short = [(int(first), int(second)) for first, second, _ in parts if len(first) <= 2]
    if any(first > 12 or second > 12 for first, second in short):
        return sum(first > 12 for first, _ in short) > sum(second > 12 for _, second in short)
    return bool(short) and "." in words[0][:3]


def _year_first(word: str, *, day_first: bool) -> str | None:
    """A date as year-month-day, for a parser that would otherwise guess the order in every row."""
    if len(word) > LONGEST:
        return None
    named: list[tuple[re.Pattern[str], Callable[[Any], tuple[Any, ...]]]] = [
        (DAY_MONTH, lambda g: (g[2], NUMBERED.get(g[1].lower()), g[0], g[3])),
        (MONTH_DAY, lambda g: (g[2], NUMBERED.get(g[0].lower()), g[1], g[3])),
        (MONTH_ALONE, lambda g: (g[1], NUMBERED.get(g[0].lower()), 1, None)),
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


def _written(year: str, month: Any, day: Any, time: str | None) -> str | None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return None
    # Years of two digits as POSIX has them.
    century = 0 if len(year) > 2 else 2000 if int(year) < 69 else 1900
    return f"{century + int(year):04d}-{int(month):02d}-{int(day):02d}{time or ''}"
