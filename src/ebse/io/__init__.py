"""Readers of users' files: tables (csv, tsv, Parquet, Feather, Excel), NumPy arrays, images, idx files."""

from ebse.io.arrays import read_arrays
from ebse.io.cells import read_cells
from ebse.io.reader import read_rows
from ebse.io.rows import Rows, word

__all__ = ["Rows", "read_arrays", "read_cells", "read_rows", "word"]
