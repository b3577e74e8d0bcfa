"""Pseudo-log-likelihood of binary rows; the plain version is in :mod:`ebse.training.monitors`."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from ebse.kernels.row_sweeps import array, log
from ebse.kernels.words import F32, exp, kernel, sigmoid

SMALLEST, LARGEST = F32(1e-37), 88.0
"""Smallest number with a logarithm, and largest with an exponential, in single precision."""


def pseudo_terms(v: Tensor, a: Tensor, W: Tensor, b: Tensor, every: int = 1) -> Tensor:
    """Σ_i log P(v_i | v_−i) of binary rows v (N, D) with hidden inputs a (N, K), float32 on the CPU.

    Of row n only the terms i = n mod min(every, D), + every, … are summed, and scaled up to all.

    log odds of v_i are b_i + Σ_j log(1 − p_j + p_j e^W_ij) where v_i = 0, and
    b_i − Σ_j log(1 − p_j + p_j e^−W_ij) where it is 1, with p_j = sigmoid(a_j): one logarithm a connection.
    """
    total = torch.empty(len(v), dtype=v.dtype)
    up, down = (array(torch.exp(x.clamp(max=LARGEST))) for x in (W, -W))
    _pseudo(v.numel() * W.shape[1] // every, array(v), array(a), up, down, array(b), every, total.numpy())
    return total


@kernel
def _pseudo(v, a, up, down, b, every, total):  # type: ignore[no-untyped-def]
    N, D = v.shape
    K = a.shape[1]
    one = F32(1.0)
    for n in prange(N):
        p, absent = np.empty(K, dtype=np.float32), np.empty(K, dtype=np.float32)
        for j in range(K):
            # Not 1 − p, which is 0 where p is near 1.
            p[j], absent[j] = sigmoid(a[n, j]), sigmoid(-a[n, j])
        found, n_terms = 0.0, 0
        for i in range(n % min(every, D), D, every):
            on = v[n, i] > F32(0.0)
            factor = down[i] if on else up[i]
            odds = F32(0.0)
            for j in range(K):
                odds += log(max(absent[j] + p[j] * factor[j], SMALLEST))
            # Log odds of the state that the unit is in.
            towards = b[i] - odds if on else -(b[i] + odds)
            found -= log(one + exp(-abs(towards))) - min(towards, F32(0.0))
            n_terms += 1
        total[n] = found * D / n_terms
