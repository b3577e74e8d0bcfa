"""Rows from whatever holds them: tables, NumPy's files, images; refused where they are not what they say."""

from ebse.io.arrays import read_arrays
from ebse.io.reader import read_rows
from ebse.io.rows import Rows, word

__all__ = ["Rows", "read_arrays", "read_rows", "word"]
