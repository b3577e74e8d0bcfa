"""Words that stand for a missing value: the same in files and in data frames."""

SPREADSHEET_ERRORS = ("#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!")
MISSING_WORDS = frozenset(
    ("", "?", "na", "n/a", "nan", "null", "none", "<na>", "nat", "-", ".", *SPREADSHEET_ERRORS)
)
"""Entries of a column, in lower case, that stand for a missing value."""
