"""Hashes of rows by their values."""

import numpy as np
from numba import prange

from ebse.kernels.words import F32, GOLDEN, U64, kernel, mixed

STEPS = F32(2**20)
"""Values are rounded to multiples of 1 / STEPS."""
MISSING = F32(2.0)
"""The value that NaN is hashed as: no unit has it."""


@kernel
def number_rows(v, numbers):  # type: ignore[no-untyped-def]
    """A 64-bit hash of each row of v (N, D): mix(Σ_i mix(x_i + i · golden)), x_i = v_i · STEPS rounded."""
    for n in prange(len(v)):
        v_n, total = v[n], U64(0)
        for i in range(v.shape[1]):
            x = v_n[i] if v_n[i] == v_n[i] else MISSING
            total += mixed(U64(np.rint(x * STEPS)) + U64(i) * GOLDEN)
        numbers[n] = mixed(total)
