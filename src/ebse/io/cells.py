"""Cells of csv files that spreadsheet programs would run as formulas: written with an apostrophe in front.

A cell that starts with = + @ or a tab, or with a hyphen where it is not a number, is a formula to a
spreadsheet program ("CSV injection"). :func:`escaped` puts an apostrophe in front of it, which marks text for
these programs; :func:`unescaped` removes exactly that. Text that already starts with apostrophes in front of
such a character gets one more, so that every text survives the round trip.
"""

import csv
from pathlib import Path

FORMULA = ("=", "+", "@", "\t", "\r")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet program runs.

    >>> escaped("=1+1"), escaped("-0.5"), escaped("-a")
    ("'=1+1", '-0.5', "'-a")
    """
    return f"'{text}" if _is_formula(text.lstrip("'")) else text


def unescaped(cell: str) -> str:
    """The text of a cell that :func:`escaped` made.

    >>> unescaped("'=1+1"), unescaped("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _is_formula(cell.lstrip("'")) else cell


def read_cells(path: Path) -> list[list[str]]:
    """All lines of a csv file that ebse wrote, as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return [[unescaped(cell) for cell in line] for line in csv.reader(file)]


def is_number(text: str) -> bool:
    """Whether a text is a number as people write it."""
    try:
        value = float(text)
    except ValueError:
        return False
    return "_" not in text and value == value


def _is_formula(text: str) -> bool:
    return text.startswith(FORMULA) or (text.startswith("-") and not is_number(text))
