"""Input rows as tensors, in blocks, with one number per row that seeds its random draws."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ebse import rng
from ebse.kernels.row_hash import number_rows

BLOCK = 2**22
"""Values that are converted to dense, or computed, at once."""


def is_image(X: Any) -> bool:
    """Whether X, an array or a csr matrix, holds 8-bit integers: gray values of images."""
    return getattr(X, "dtype", None) == np.uint8


def as_tensor(v: Any) -> Tensor:
    """Rows (n, D) as a dense float32 tensor; read-only arrays are copied."""
    if hasattr(v, "toarray"):
        v = v.toarray()
    v = np.ascontiguousarray(v, dtype=np.float32)
    return torch.from_numpy(v if v.flags.writeable else v.copy())


def row_blocks(v: Any, width: int = 1) -> list[slice]:
    """Slices of rows (n, D) so that neither they nor ``width`` results for each exceed BLOCK values."""
    step = max(BLOCK // max(v.shape[1], width), 1)
    return [slice(start, start + step) for start in range(0, v.shape[0], step)]


def row_numbers(v: npt.NDArray[np.float32]) -> rng.Numbers:
    """A 64-bit hash of each row (n, D) of values >= 0, computed from the row alone.

    Values are rounded to steps of 2⁻²⁰, so that rows that differ only by rounding get the same number. Two
    different rows get the same number with a probability of about 2⁻⁶⁴.
    """
    numbers = np.empty(len(v), dtype=np.uint64)
    number_rows(v.size, v, numbers)
    return numbers


def generator_of(seed: int) -> torch.Generator:
    """A generator with that seed."""
    return torch.Generator().manual_seed(seed)
