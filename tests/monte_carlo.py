"""Verdicts on samples, with tolerances from the Monte-Carlo error and one stated failure rate.

Each test of a right sampler fails by chance with probability FAILURE_RATE at most; its twin, on a broken
sampler, must fail by the same criterion.
"""

import torch
from scipy import stats
from torch import Tensor

FAILURE_RATE = 1e-6


def states_depart(v: Tensor, h: Tensor, log_p: Tensor, *, failure_rate: float = FAILURE_RATE) -> bool:
    """Whether independent chains (v, h) depart from the table log P(v, h): Pearson's chi-squared."""
    D, K = v.shape[-1], h.shape[-1]
    row = (v.long() << torch.arange(D - 1, -1, -1)).sum(-1)
    column = (h.long() << torch.arange(K - 1, -1, -1)).sum(-1)
    observed = torch.bincount(row * 2**K + column, minlength=2 ** (D + K))
    expected = log_p.flatten().exp() * len(v)
    assert expected.min() > 20, "too few chains for Pearson's test"
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return bool(stats.chi2.sf(statistic, 2 ** (D + K) - 1) < failure_rate)


def means_depart(
    samples: Tensor, expected: Tensor, *, variance: Tensor | None = None, failure_rate: float = FAILURE_RATE
) -> bool:
    """Whether means over the first axis depart from ``expected`` anywhere (Bonferroni over elements)."""
    n = len(samples)
    spread = samples.var(0) if variance is None else variance
    error = (spread / n).sqrt()
    # With a variance that is itself estimated the ratio is Student's.
    law = stats.t(n - 1) if variance is None else stats.norm
    z = law.isf(failure_rate / 2 / max(expected.numel(), 1))
    # A constant has no Monte-Carlo error, but still rounds.
    rounding = 1e-9 * (1 + expected.abs())
    return bool(((samples.mean(0) - expected).abs() > z * error + rounding).any())
