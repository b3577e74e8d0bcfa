"""The door: whatever holds rows, as arrays that scikit-learn checks; and numbers made of what is in a row."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import sparse
from sklearn.utils import check_random_state
from torch import Tensor

from ebse import noise
from ebse.kernels.numbers import number_rows

BLOCK = 2**22
"""Values that are densified or made at once."""


def at_the_door(X: Any) -> Any:
    """X with tensors as arrays, and boolean or half-precision ones as float32; anything else as it is."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = X.float().numpy() if X.dtype in (torch.bfloat16, torch.float16) else X.numpy()
    if isinstance(X, np.ndarray) and X.dtype in (np.bool_, np.float16):
        X = X.astype(np.float32)
    # Images (N, height, width) as rows of pixels.
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) and X.dtype == np.uint8 and X.ndim == 3 else X


def named(X: Any, names: Any) -> Any:
    """X as a frame, where what is asked learned from one."""
    return X if names is None or sparse.issparse(X) else pd.DataFrame(X, columns=names)


def is_image(X: Any) -> bool:
    """Whether X, an array or a csr matrix, holds 8-bit numbers, the grey values of images."""
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


def row_numbers(v: npt.NDArray[np.float32]) -> noise.Numbers:
    """A 64-bit number for each row (n, D) of values from 0 on, made of these alone.

    Values count in steps of 2⁻²⁰, so that a feature that was scaled in another precision, or in another
    order, gives the same number. Two different rows share one with a probability of about 2⁻⁶⁴.
    """
    numbers = np.empty(len(v), dtype=np.uint64)
    number_rows(v.size, v, numbers)
    return numbers


def seed_of(random_state: Any) -> int:
    """A seed from anything that scikit-learn takes for a random state, or from a NumPy Generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    try:
        state = check_random_state(random_state)
    except (ValueError, TypeError):
        raise ValueError(
            "random_state must be None, an int in [0, 2**32 - 1], a RandomState or a Generator, got "
            f"{random_state!r}; pass an int for results that repeat"
        ) from None
    return int(state.randint(np.iinfo(np.int32).max))


def generator_of(seed: int) -> torch.Generator:
    """A generator for that seed."""
    return torch.Generator().manual_seed(seed)
