"""The door: whatever holds rows, as arrays that scikit-learn checks; and numbers made of what is in a row."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ebse import rng
from ebse.kernels.row_hash import number_rows

BLOCK = 2**22
"""Values that are densified or made at once."""


def is_image(X: Any) -> bool:
    """Whether X, an array or a csr matrix, holds 8-bit numbers, the gray values of images."""
    return getattr(X, "dtype", None) == np.uint8


def as_tensor(v: Any) -> Tensor:
    """Rows (n, D) as a float32 tensor; read-only arrays are copied, csr ones made dense."""
    if hasattr(v, "toarray"):
        v = v.toarray()
    v = np.ascontiguousarray(v, dtype=np.float32)
    return torch.from_numpy(v if v.flags.writeable else v.copy())


def row_blocks(v: Any, width: int = 1) -> list[slice]:
    """Slices of rows (n, D) that have, or make ``width`` numbers each, no more than BLOCK values."""
    step = max(BLOCK // max(v.shape[1], width), 1)
    return [slice(start, start + step) for start in range(0, v.shape[0], step)]


def row_numbers(v: npt.NDArray[np.float32]) -> rng.Numbers:
    """A 64-bit number for each row (n, D) of values from 0 on, made of these alone.

    Values count in steps of 2⁻²⁰, so that a feature that was scaled in another precision, or in another
    order, gives the same number. Two different rows share one with a probability of about 2⁻⁶⁴.
    """
    numbers = np.empty(len(v), dtype=np.uint64)
    number_rows(v.size, v, numbers)
    return numbers


def generator_of(seed: int) -> torch.Generator:
    """A generator for that seed."""
    return torch.Generator().manual_seed(seed)
