"""One pass over the rows of W for Bernoulli and Gaussian connections.

For chain n and row i: W_i· is sampled given v_i and h, v_i′ given Σ_j W_ij h_j + b_i, and v_i′ W_i· is added
to the input of the hidden units. Only one row of W of one chain is in memory at a time. The plain version is
``pass_over_rows`` of :mod:`ebse.sampling`.
"""

from typing import NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt
import torch
from llvmlite import ir  # type: ignore[import-untyped]
from numba import prange
from numba.extending import intrinsic
from torch import Tensor

from ebse.kernels.units import uniform
from ebse.kernels.words import F32, I32, U32, U64, Kernel, kernel, part, row_seed, sigmoid, word

CHAINS = 8
"""Chains that use a row of W together, while it is in the cache."""

_F64 = np.float64
_MIDDLE, _LARGEST = I32(2**30), I32(2**31 - 1)


class Presence(NamedTuple):
    """W of a Bernoulli law (D, K): W_bar where word <= threshold, for a tilt of 0 and of 1."""

    theta_bar: Tensor
    prior: Tensor
    tilted: Tensor

    @classmethod
    def of(cls, theta_bar: Tensor, logit_p: Tensor) -> Self:
        """Thresholds of q(0) = sigmoid(logit p) and of q(1) = sigmoid(logit p + W_bar), float32."""
        theta_bar = theta_bar.detach().contiguous()
        prior, tilted = (torch.empty(theta_bar.shape, dtype=torch.int32) for _ in range(2))
        _thresholds(theta_bar.numel(), array(theta_bar), array(logit_p), prior.numpy(), tilted.numpy())
        return cls(theta_bar, prior, tilted)

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """The three as arrays for the kernels."""
        return self.theta_bar.numpy(), self.prior.numpy(), self.tilted.numpy()


def bernoulli_pass(
    W: Presence, v: Tensor, h: Tensor, b: Tensor, keys: tuple[int, int], *, a: Tensor
) -> Tensor:
    """v′ ~ P(v | h, θ) of binary chains v (N, D) and h (N, K); Σ_i v_i′ W_ij is added to a (N, K).

    b is (N, D), or (1, D) for all chains; the keys are those of W and of v′.
    """
    v_new = torch.empty(v.shape, dtype=v.dtype)
    W_key, v_key = (U64(key) for key in keys)
    _bernoulli_pass(
        len(v) * W.theta_bar.numel(),
        array(v),
        array(h),
        *W.arrays(),
        array(b),
        W_key,
        v_key,
        v_new.numpy(),
        a.numpy(),
    )
    return v_new


def gaussian_pass(
    theta_bar: Tensor, sigma: Tensor, v: Tensor, h: Tensor, b: Tensor, keys: tuple[int, int], *, a: Tensor
) -> Tensor:
    """The same for W_ij ~ N(W_bar_ij + v_i h_j σ_ij², σ_ij²)."""
    v_new = torch.empty(v.shape, dtype=v.dtype)
    W_key, v_key = (U64(key) for key in keys)
    law = (array(theta_bar), array(sigma))
    _gaussian_pass(
        len(v) * theta_bar.numel(), array(v), array(h), *law, array(b), W_key, v_key, v_new.numpy(), a.numpy()
    )
    return v_new


def array(x: Tensor) -> npt.NDArray[np.generic]:
    """A tensor as an array for the kernels: contiguous, without its graph."""
    return x.detach().contiguous().numpy()


def _exponent(context, x):  # type: ignore[no-untyped-def]
    """e of x = m 2^e with m in [1/2, 1), for a positive, normal float32."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i32 = ir.IntType(32)
        bits = builder.bitcast(arguments[0], i32)
        return builder.sub(builder.lshr(bits, ir.Constant(i32, 23)), ir.Constant(i32, 126))

    return numba.int32(numba.float32), generate


def _fraction(context, x):  # type: ignore[no-untyped-def]
    """m of x = m 2^e with m in [1/2, 1), for a positive, normal float32."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        i32 = ir.IntType(32)
        bits = builder.and_(builder.bitcast(arguments[0], i32), ir.Constant(i32, 0x7FFFFF))
        return builder.bitcast(builder.or_(bits, ir.Constant(i32, 0x3F000000)), ir.FloatType())

    return numba.float32(numba.float32), generate


exponent: Kernel = intrinsic(_exponent)
fraction: Kernel = intrinsic(_fraction)


@part
def log(x):  # type: ignore[no-untyped-def]
    """log x of a positive, normal float32: logf of the Cephes library, which vectorizes."""
    e, m = F32(exponent(x)), fraction(x)
    small = m < F32(0.707106781)
    e = e - F32(1.0) if small else e
    m = m + m - F32(1.0) if small else m - F32(1.0)
    z = m * m
    y = F32(7.0376836292e-2)
    y = y * m + F32(-1.1514610310e-1)
    y = y * m + F32(1.1676998740e-1)
    y = y * m + F32(-1.2420140846e-1)
    y = y * m + F32(1.4249322787e-1)
    y = y * m + F32(-1.6668057665e-1)
    y = y * m + F32(2.0000714765e-1)
    y = y * m + F32(-2.4999993993e-1)
    y = y * m + F32(3.3333331174e-1)
    y = y * m * z + e * F32(-2.12194440e-4) - F32(0.5) * z
    return m + y + e * F32(0.693359375)


@part
def normal(word):  # type: ignore[no-untyped-def]
    """Φ⁻¹(u) in float32 for u = (word + 1/2) 2^−31: PPND7, algorithm AS 241 (Wichura 1988)."""
    # The distance to the nearer end keeps both tails as exact as float32 allows.
    mirrored = I32(_LARGEST - word)
    below = word < mirrored
    nearer = word if below else mirrored
    tail = (F32(nearer) + F32(0.5)) * F32(2.0**-31)
    q = (F32(I32(_MIDDLE - nearer)) - F32(0.5)) * F32(2.0**-31)
    r = F32(0.180625) - q * q
    top = ((F32(59.109374720) * r + F32(159.29113202)) * r + F32(50.434271938)) * r + F32(3.3871327179)
    bottom = ((F32(67.187563600) * r + F32(78.757757664)) * r + F32(17.895169469)) * r + F32(1.0)
    s = np.sqrt(-log(tail)) - F32(1.6)
    far_top = ((F32(0.17023821103) * s + F32(1.3067284816)) * s + F32(2.7568153900)) * s + F32(1.4234372777)
    far_bottom = (F32(0.12021132975) * s + F32(0.73700164250)) * s + F32(1.0)
    central = q <= F32(0.425)
    top = top * q if central else far_top
    bottom = bottom if central else far_bottom
    x = top / bottom
    return -x if below else x


@part
def threshold(q):  # type: ignore[no-untyped-def]
    """The largest word with (word + 1/2) 2^−31 < q, or −1: every word at q = 1."""
    return I32(np.ceil(_F64(q) * _F64(2.0**31) - _F64(0.5)) - _F64(1.0))


@part
def _unit(key, n, i, x):  # type: ignore[no-untyped-def]
    """Unit i of chain n with input x, sampled as in :mod:`ebse.kernels.units`."""
    low, high = row_seed(key, U64(n))
    return F32(1.0) if uniform(low, high, U32(i)) < sigmoid(x) else F32(0.0)


@kernel
def _thresholds(theta_bar, logit_p, prior, tilted):  # type: ignore[no-untyped-def]
    D, K = theta_bar.shape
    for i in prange(D):
        theta_i, logit_i, prior_i, tilted_i = theta_bar[i], logit_p[i], prior[i], tilted[i]
        for j in range(K):
            prior_i[j] = threshold(sigmoid(logit_i[j]))
            tilted_i[j] = threshold(sigmoid(logit_i[j] + theta_i[j]))


@kernel
def _bernoulli_pass(v, h, theta_bar, prior, tilted, b, W_key, v_key, v_new, a):  # type: ignore[no-untyped-def]
    N, D = v.shape
    K = h.shape[1]
    for block in prange((N + CHAINS - 1) // CHAINS):
        W = np.empty(K, dtype=np.float32)
        for i in range(D):
            theta_i, prior_i, tilted_i = theta_bar[i], prior[i], tilted[i]
            for n in range(block * CHAINS, min(block * CHAINS + CHAINS, N)):
                low, high = row_seed(W_key, U64(n * D + i))
                h_n = h[n]
                down = F32(0.0)
                if v[n, i] > F32(0.0):
                    for j in range(K):
                        # Both are loaded: a conditional load would keep the loop from vectorizing.
                        absent, present, theta = prior_i[j], tilted_i[j], theta_i[j]
                        bound = present if h_n[j] > F32(0.0) else absent
                        W_j = theta if word(low, high, U32(j)) <= bound else F32(0.0)
                        W[j] = W_j
                        down += W_j * h_n[j]
                else:
                    for j in range(K):
                        absent, theta = prior_i[j], theta_i[j]
                        W_j = theta if word(low, high, U32(j)) <= absent else F32(0.0)
                        W[j] = W_j
                        down += W_j * h_n[j]
                v_i = _unit(v_key, n, i, down + b[min(n, len(b) - 1), i])
                v_new[n, i] = v_i
                if v_i > F32(0.0):
                    a_n = a[n]
                    for j in range(K):
                        a_n[j] += W[j]


@kernel
def _gaussian_pass(v, h, theta_bar, sigma, b, W_key, v_key, v_new, a):  # type: ignore[no-untyped-def]
    N, D = v.shape
    K = h.shape[1]
    for block in prange((N + CHAINS - 1) // CHAINS):
        W = np.empty(K, dtype=np.float32)
        for i in range(D):
            theta_i, sigma_i = theta_bar[i], sigma[i]
            for n in range(block * CHAINS, min(block * CHAINS + CHAINS, N)):
                low, high = row_seed(W_key, U64(n * D + i))
                h_n = h[n]
                v_old = v[n, i]
                down = F32(0.0)
                for j in range(K):
                    s = sigma_i[j]
                    W_j = theta_i[j] + v_old * h_n[j] * s * s + s * normal(word(low, high, U32(j)))
                    W[j] = W_j
                    down += W_j * h_n[j]
                v_i = _unit(v_key, n, i, down + b[min(n, len(b) - 1), i])
                v_new[n, i] = v_i
                if v_i > F32(0.0):
                    a_n = a[n]
                    for j in range(K):
                        a_n[j] += W[j]
