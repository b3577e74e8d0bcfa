"""Columns of a table: numbers where every entry is one, otherwise words, dates or categories.

Numbers are float64 with NaN for missing entries; words are objects with None.
"""

import datetime
import decimal
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ebse._missing import MISSING_WORDS
from ebse.io.rows import word
from ebse.semi_supervised._words import MOST

Column = Any
"""An array or a pandas Series: float64, objects, dates, or a category."""

TRUTH = {"true": 1.0, "false": 0.0}
DECIMAL_COMMA = re.compile(
    r"[-+]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?(e[-+]?\d+)?|[-+]?,\d+", re.ASCII | re.IGNORECASE
)
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
NUMBERS = (bool, int, float, decimal.Decimal, np.bool_, np.number)
DATES = (datetime.date, np.datetime64)


def number(text: str) -> float | None:
    """The number that a stripped text is; true is 1 and false is 0. None for any other text.

    >>> [number(text) for text in ("1e3", "FALSE", "1_000", "nan", "red")]
    [1000.0, 0.0, None, None, None]
    """
    try:
        value = float(text)
    except ValueError:
        return TRUTH.get(text.lower())
    return None if "_" in text or value != value else value


def has_commas(text: str) -> bool:
    """Whether a text is a number with a decimal comma, or with commas between thousands.

    >>> has_commas("1,5"), has_commas("1,234.5"), has_commas("1, 5")
    (True, True, False)
    """
    return "," in text and bool(DECIMAL_COMMA.fullmatch(text) or THOUSANDS.fullmatch(text))


def is_code(text: str) -> bool:
    """Whether a text is digits behind a leading zero, as in postal codes.

    >>> is_code("01234"), is_code("0"), is_code("0.5")
    (True, False, False)
    """
    return len(text) > 1 and text[0] == "0" and text.isdecimal()


def from_words(
    cells: Column,
    notes: list[str],
    *,
    decimal_commas: bool = False,
    codes: bool = False,
    raw: bool = False,
    clean: Callable[[str], str] = str.strip,
) -> Column:
    """A column of texts as numbers, if all are, otherwise as words.

    Parameters
    ----------
    cells
        The texts; missing ones are None or NaN.
    notes
        Gets a sentence where commas are not taken literally.
    decimal_commas
        Whether 1,5 may be a number; 1,234 is one thousand and more otherwise.
    codes
        Whether numbers stay words, as postal codes do.
    raw
        Whether words that are not all numbers are for a classifier, which reads commas between thousands
        itself, in every file as in that of the fit. Among other words decimal commas become points.
    clean
        Makes a word of a cell.
    """
    import pandas as pd

    # Each different text is examined once; -1, which marks a missing one, is the last entry of what follows.
    at, levels = pd.factorize(cells)
    words = [clean(str(level)) for level in np.asarray(levels, dtype=object)]
    missing = [text.lower() in MISSING_WORDS for text in words]
    some = [text for text, none in zip(words, missing, strict=True) if not none]
    read = None if codes else _reader_of(some, notes, decimal_commas=decimal_commas, thousands=not raw)
    if read is None:
        if raw and decimal_commas and not codes:
            words = _with_points(words, some, notes)
        known: list[Any] = [None if none else text for text, none in zip(words, missing, strict=True)]
        return np.array([*known, None], dtype=object)[at]
    values = [np.nan if none else read(text) for text, none in zip(words, missing, strict=True)]
    return np.array([*values, np.nan], dtype=np.float64)[at]


def _with_points(words: list[str], some: list[str], notes: list[str]) -> list[str]:
    """Words with points for decimal commas, if most of the words that are not missing are such numbers."""
    shown = [text for text in some if "," in text and DECIMAL_COMMA.fullmatch(text)]
    n = sum(DECIMAL_COMMA.fullmatch(text) is not None for text in some)
    if not shown or n < MOST * len(some):
        return words
    _note_once(notes, "numbers with decimal commas are read as numbers", shown[0], _with_comma(shown[0]))
    return [repr(_with_comma(text)) if DECIMAL_COMMA.fullmatch(text) else text for text in words]


def _reader_of(
    words: list[str], notes: list[str], *, decimal_commas: bool, thousands: bool
) -> Callable[[str], float | None] | None:
    """What reads all the words as numbers; None if nothing does."""
    if all(number(text) is not None for text in words):
        return number
    shown = next((text for text in words if "," in text), None)
    if shown is None:
        return None
    if decimal_commas and all(DECIMAL_COMMA.fullmatch(text) for text in words):
        _note_once(notes, "numbers with decimal commas are read as numbers", shown, _with_comma(shown))
        return _with_comma
    if thousands and all(THOUSANDS.fullmatch(text) or number(text) is not None for text in words):
        _note_once(notes, "commas between thousands are left out", shown, _with_thousands(shown))
        return _with_thousands
    return None


def _note_once(notes: list[str], sentence: str, shown: str, value: float | None) -> None:
    if not any(note.startswith(sentence) for note in notes):
        notes.append(f"{sentence}: {shown} is {value:.15g}")


def _with_comma(text: str) -> float:
    return float(text.replace(".", "").replace(",", "."))


def _with_thousands(text: str) -> float | None:
    return number(text.replace(",", "") if THOUSANDS.fullmatch(text) else text)


def from_objects(values: Column, notes: list[str], *, raw: bool) -> Column:
    """A column of any type: numbers, dates, categories, or words; TypeError where an entry is none of them.

    Dates and categories stay what they are where the column is wanted ``raw``.
    """
    import pandas as pd

    column = pd.Series(values)
    dtype = column.dtype
    if column.isna().all():
        return np.full(len(column), np.nan)
    if isinstance(dtype, pd.CategoricalDtype):
        if raw:
            return column
        column = column.astype(object)
    elif getattr(dtype, "kind", "O") in "mM" or isinstance(dtype, pd.DatetimeTZDtype):
        return column
    elif pd.api.types.is_numeric_dtype(dtype) and dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(dtype, pd.StringDtype):
        return _from_texts(column, notes, raw=raw)
    entries = column.astype(object).to_numpy()
    missing = np.asarray(pd.isna(entries), dtype=bool)
    some = entries[~missing]
    if all(isinstance(entry, str) for entry in some):
        return _from_texts(entries, notes, raw=raw)
    if all(isinstance(entry, NUMBERS) for entry in some):
        return np.where(missing, np.nan, entries).astype(np.float64)
    if all(isinstance(entry, DATES) for entry in some):
        return np.where(missing, None, entries)
    return _from_texts([text_of(entry) for entry in entries], notes, raw=raw)


def _from_texts(cells: Column, notes: list[str], *, raw: bool) -> Column:
    """Texts that were stored as such: codes are found in all of them."""
    codes = raw and any(is_code(str(cell).strip()) for cell in cells)
    return from_words(np.asarray(cells, dtype=object), notes, codes=codes, raw=raw)


def text_of(entry: Any) -> str | None:
    """An entry as a text, None if it is missing; TypeError unless it is a word, a number or a time."""
    import pandas as pd

    if entry is None or entry is pd.NA or entry is pd.NaT:
        return None
    if isinstance(entry, str):
        return entry.strip()
    if isinstance(entry, NUMBERS):
        return word(entry) if entry == entry else None
    if isinstance(entry, (datetime.date, datetime.time)):
        return entry.isoformat()
    if isinstance(entry, datetime.timedelta):
        return str(entry)
    raise TypeError(type(entry).__name__)
