"""Rows from whatever holds them: tables, NumPy's files, images; refused where they are not what they say."""

from ebse.reading.arrays import read_arrays
from ebse.reading.files import read_rows
from ebse.reading.rows import Rows, word

__all__ = ["Rows", "read_arrays", "read_rows", "word"]
