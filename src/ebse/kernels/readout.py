"""Hidden inputs on one row with weights sampled at another state, and binary samples of probabilities."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from ebse import rng
from ebse.kernels.row_sweeps import CHAINS, Presence, array, normal, threshold
from ebse.kernels.units import fast, numbered
from ebse.kernels.words import F32, U32, U64, kernel, row_seed, sigmoid, word


def draw_binary(mean: Tensor, key: int, numbers: rng.Numbers | None = None) -> Tensor:
    """1 where u < mean (N, n), u the random numbers of ``key``; plain version: :func:`ebse.rng.bernoulli`."""
    if not fast(mean):
        return rng.bernoulli(mean, key, numbers)
    drawn = torch.empty(mean.shape, dtype=mean.dtype)
    _draw_binary(mean.numel(), array(mean), U64(key), numbered(len(mean), numbers), drawn.numpy())
    return drawn


def bernoulli_read(
    W: Presence,
    v: Tensor,
    state_v: Tensor | None,
    h: Tensor,
    key: int,
    *,
    source: Tensor,
    numbers: rng.Numbers | None,
    a: Tensor,
) -> None:
    """Add Σ_i v_i W_ij to a (N, K), W_ij sampled given the tilt v_s,i h_j of binary v_s (N, D), h (N, K).

    The input of chain n is row ``source``[n] of v, which is also its state without v_s.
    """
    read_at = source.numpy()
    state_at = read_at if state_v is None else np.arange(len(h))
    states = array(v if state_v is None else state_v)
    _bernoulli_read(
        len(h) * W.theta_bar.numel(),
        *(array(v), read_at, states, state_at, array(h)),
        *W.arrays(),
        U64(key),
        numbered(len(h), numbers),
        a.numpy(),
    )


def normal_read(a: Tensor, variance: Tensor, key: int, numbers: rng.Numbers | None = None) -> Tensor:
    """sigmoid(a + √variance ξ) with ξ ~ N(0, 1), all (N, K)."""
    if not fast(a):
        xi = torch.special.ndtri(rng.uniform(key, tuple(a.shape), device=a.device, numbers=numbers))
        return torch.sigmoid(a + variance.sqrt() * xi.to(a.dtype))
    mean = torch.empty(a.shape, dtype=a.dtype)
    arrays = (array(a), array(variance.sqrt()), U64(key), numbered(len(a), numbers), mean.numpy())
    _normal_read(a.numel(), *arrays)
    return mean


@kernel
def _draw_binary(mean, key, numbers, drawn):  # type: ignore[no-untyped-def]
    N, n = mean.shape
    for row in prange(N):
        low, high = row_seed(key, numbers[row])
        mean_row, drawn_row = mean[row], drawn[row]
        for j in range(n):
            drawn_row[j] = F32(1.0) if word(low, high, U32(j)) <= threshold(mean_row[j]) else F32(0.0)


@kernel
def _bernoulli_read(v, read_at, state_v, state_at, h, theta_bar, prior, tilted, key, numbers, a):  # type: ignore[no-untyped-def]
    N, K = h.shape
    D = v.shape[1]
    for block in prange((N + CHAINS - 1) // CHAINS):
        for i in range(D):
            theta_i, prior_i, tilted_i = theta_bar[i], prior[i], tilted[i]
            for n in range(block * CHAINS, min(block * CHAINS + CHAINS, N)):
                v_i = v[read_at[n], i]
                if v_i == F32(0.0):
                    continue
                low, high = row_seed(key, numbers[n] * U64(D) + U64(i))
                h_n, a_n = h[n], a[n]
                if state_v[state_at[n], i] > F32(0.0):
                    for j in range(K):
                        absent, present, theta = prior_i[j], tilted_i[j], theta_i[j]
                        bound = present if h_n[j] > F32(0.0) else absent
                        a_n[j] += v_i * theta if word(low, high, U32(j)) <= bound else F32(0.0)
                else:
                    for j in range(K):
                        absent, theta = prior_i[j], theta_i[j]
                        a_n[j] += v_i * theta if word(low, high, U32(j)) <= absent else F32(0.0)


@kernel
def _normal_read(a, deviation, key, numbers, mean):  # type: ignore[no-untyped-def]
    N, K = a.shape
    for n in prange(N):
        low, high = row_seed(key, numbers[n])
        a_n, deviation_n, mean_n = a[n], deviation[n], mean[n]
        for j in range(K):
            mean_n[j] = sigmoid(a_n[j] + deviation_n[j] * normal(word(low, high, U32(j))))
