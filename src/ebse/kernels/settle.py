"""Settling of the noise of a Bernoulli or Gaussian law to a new K(1), in place and in one pass.

The plain versions are :func:`ebse.laws.bernoulli.settle_absence` and :meth:`ebse.laws.Gaussian.settled`.
"""

from numba import prange

from ebse.kernels.words import F32, exp, kernel


@kernel
def settle_absence(before, after, absent, share, epsilon):  # type: ignore[no-untyped-def]
    """1 − p and ``before`` once K(1) went from ``before`` to ``after``: Δp = κ δ C / (A² + κ C²)."""
    one = F32(1.0)
    for i in prange(before.shape[0]):
        before_i, after_i, absent_i = before[i], after[i], absent[i]
        for j in range(before_i.shape[0]):
            w, new, s = before_i[j], after_i[j], absent_i[j]
            x, p = exp(-w), one - s
            # Both derivatives times p, which saves a division.
            A, C = p * (one - s * x), one - x
            s -= share * (new - w) * C * p / (A * A + share * C * C)
            most = (one - epsilon) * exp(min(new, F32(0.0)))
            absent_i[j] = min(max(s, min(most, epsilon)), most)
            before_i[j] = new


@kernel
def settle_sigma(before, after, sigma, share):  # type: ignore[no-untyped-def]
    """σ and ``before`` once K(1) went from ``before`` to ``after``: Δσ = κ δ σ / (1 + κ σ²), σ >= 0."""
    for i in prange(before.shape[0]):
        before_i, after_i, sigma_i = before[i], after[i], sigma[i]
        for j in range(before_i.shape[0]):
            w, new, s = before_i[j], after_i[j], sigma_i[j]
            sigma_i[j] = max(s + share * (new - w) * s / (F32(1.0) + share * s * s), F32(0.0))
            before_i[j] = new
