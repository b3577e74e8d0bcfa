"""The door: whatever holds rows, as arrays that scikit-learn checks; and numbers made of what is in a row."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from ebse import noise

BLOCK = 2**22
"""Values that are densified, or hashed, at once."""


def at_the_door(X: Any) -> Any:
    """X with tensors as arrays, and 8-bit or boolean arrays as float32; anything else as it is."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = X.float().numpy() if X.dtype in (torch.bfloat16, torch.float16) else X.numpy()
    if isinstance(X, np.ndarray) and X.dtype in (np.uint8, np.bool_, np.float16):
        X = X.astype(np.float32)
    return X


def is_image(X: Any) -> bool:
    """Whether X holds 8-bit numbers, the grey values of images."""
    return isinstance(X, (np.ndarray, Tensor)) and X.dtype in (np.uint8, torch.uint8)


def as_tensor(v: Any) -> Tensor:
    """Rows (n, D) as a float32 tensor; read-only arrays are copied, csr ones made dense."""
    if hasattr(v, "toarray"):
        v = v.toarray()
    v = np.ascontiguousarray(v, dtype=np.float32)
    return torch.from_numpy(v if v.flags.writeable else v.copy())


def row_blocks(v: Any) -> list[slice]:
    """Slices of rows (n, D), none with more than BLOCK values."""
    step = max(BLOCK // max(v.shape[1], 1), 1)
    return [slice(start, start + step) for start in range(0, v.shape[0], step)]


def row_numbers(v: npt.NDArray[np.float32]) -> noise.Numbers:
    """A 64-bit number for each row (n, D), made of its values alone: Σ_i a_i x_i mod 2⁶⁴, mixed.

    x_i are the bits of v_i and a_i fixed odd words, so that two rows share a number with a probability of
    about 2⁻⁶⁴ for each pair.
    """
    a = np.arange(1, v.shape[1] + 1, dtype=np.uint64) * np.uint64(noise.GOLDEN)
    noise.mix(a)
    a |= np.uint64(1)
    numbers = np.empty(len(v), dtype=np.uint64)
    for rows in row_blocks(v):
        # The sum with 0 makes −0 the same as 0.
        bits = (v[rows] + np.float32(0)).view(np.uint32).astype(np.uint64)
        numbers[rows] = (bits * a).sum(1, dtype=np.uint64)
    noise.mix(numbers)
    return numbers


def seed_of(random_state: Any) -> int:
    """A seed from anything that scikit-learn takes for a random state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def generator_of(seed: int) -> torch.Generator:
    """A generator for that seed."""
    return torch.Generator().manual_seed(seed)
