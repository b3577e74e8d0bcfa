"""Binary units from their inputs: sigmoid and sampling in one pass, and the plain versions."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from ebse import rng
from ebse.kernels.words import F32, I32, U32, U64, exp, kernel, part, row_seed, sigmoid, word

_BITS, _RESOLUTION = I32(8), F32(2.0**-23)
_HALF = F32(0.5)


def fast(x: Tensor) -> bool:
    """Whether the kernels support a tensor: float32 on the CPU."""
    return x.device.type == "cpu" and x.dtype == torch.float32


def mean_units(a: Tensor, bias: Tensor, *, mean: Tensor) -> None:
    """mean = sigmoid(a + bias), row by row of a (N, n)."""
    if fast(a):
        _mean(a.numel(), a.numpy(), bias.numpy(), mean.numpy())
    else:
        torch.add(a, bias, out=mean).sigmoid_()


def draw_units(
    a: Tensor, bias: Tensor, key: int, *, drawn: Tensor, numbers: rng.Numbers | None = None
) -> None:
    """drawn = 1 where u < sigmoid(a + bias), u the random numbers of ``key`` in rows ``numbers``."""
    if fast(a):
        draw(a.numel(), a.numpy(), bias.numpy(), U64(key), numbered(len(a), numbers), drawn.numpy())
    else:
        drawn.copy_(rng.bernoulli(torch.sigmoid(a + bias), key, numbers))


def numbered(n: int, numbers: rng.Numbers | None) -> rng.Numbers:
    """The numbers of n rows: as given, or 0, 1, … in order."""
    return np.arange(n, dtype=np.uint64) if numbers is None else numbers


@part
def uniform(low, high, unit):  # type: ignore[no-untyped-def]
    """u with the first 23 bits of a unit's word and a half: exact in float32, and neither 0 nor 1."""
    return (F32(word(low, high, unit) >> _BITS) + _HALF) * _RESOLUTION


@kernel
def _mean(a, bias, mean):  # type: ignore[no-untyped-def]
    N, n = a.shape
    for row in prange(N):
        a_row, mean_row = a[row], mean[row]
        for j in range(n):
            mean_row[j] = sigmoid(a_row[j] + bias[j])


@part
def draw_row(a, bias, key, row, drawn):  # type: ignore[no-untyped-def]
    """One row of :func:`draw_units`."""
    low, high = row_seed(key, row)
    for j in range(len(a)):
        # u < 1 / (1 + e) without the division.
        u, e = uniform(low, high, U32(j)), exp(-(a[j] + bias[j]))
        drawn[j] = F32(1.0) if u + u * e < F32(1.0) else F32(0.0)


@part
def mean_and_draw_row(a, bias, key, row, weight, mean, drawn):  # type: ignore[no-untyped-def]
    """One row of :func:`mean_and_draw`."""
    low, high = row_seed(key, U64(row))
    for j in range(len(a)):
        p = sigmoid(a[j] + bias[j])
        mean[j] = weight * p
        drawn[j] = F32(1.0) if uniform(low, high, U32(j)) < p else F32(0.0)


@kernel
def draw(a, bias, key, numbers, drawn):  # type: ignore[no-untyped-def]
    """:func:`draw_units` of arrays."""
    for row in prange(len(a)):
        draw_row(a[row], bias, key, numbers[row], drawn[row])


@kernel
def mean_and_draw(a, bias, key, weight, mean, drawn):  # type: ignore[no-untyped-def]
    """mean = weight · sigmoid(a + bias), and the samples of :func:`draw_units`, in one pass over arrays."""
    for row in prange(len(a)):
        mean_and_draw_row(a[row], bias, key, row, weight, mean[row], drawn[row])
