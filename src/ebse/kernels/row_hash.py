"""Numbers for rows, made of what is in them."""

import numpy as np
from numba import prange

from ebse.kernels.words import F32, GOLDEN, U64, kernel, mixed

STEPS = F32(2**20)
"""Values that differ by less than half of one in so many are the same."""
MISSING = F32(2.0)
"""What NaN counts as: no value of a unit."""


@kernel
def number_rows(v, numbers):  # type: ignore[no-untyped-def]
    """A 64-bit number for each row of v (N, D): Σ_i mix(x_i + i · golden), mixed, x_i being v_i in steps."""
    for n in prange(len(v)):
        v_n, total = v[n], U64(0)
        for i in range(v.shape[1]):
            x = v_n[i] if v_n[i] == v_n[i] else MISSING
            total += mixed(U64(np.rint(x * STEPS)) + U64(i) * GOLDEN)
        numbers[n] = mixed(total)
