"""Log-likelihood of data: exact where one side is small enough to sum, else bracketed by AIS."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import fractional, units
from ebse.laws import Point
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.sampling.annealed import LogPartition, Progress, annealed_log_partition, require_binary

SMALLEST_SIDE = 20
"""Units on the smaller side up to which ζ is summed exactly: 2^20 terms."""
BLOCK = 2**22
"""Values of data rows in float64 in memory at once."""


class LogLikelihood(NamedTuple):
    """Mean log P(v; α) over rows, in nats.

    Attributes
    ----------
    forward, reverse
        With log ζ from forward and from reverse annealing. Forward log ζ is low, so ``forward`` is high (the
        optimistic figure that is usually published) and ``reverse`` is low. Equal where ``exact``.
    exact
        Whether log ζ was summed over all states.
    log_partition
        log ζ from both directions, with errors and effective sample sizes. Errors of log ζ are errors of
        ``forward`` and ``reverse``, too. Where ``exact`` they are 0 and the sizes infinite.
    log_weights
        −F(v) of each row (N,), float64: log P(v) of a row is this minus log ζ.
    """

    forward: float
    reverse: float
    exact: bool
    log_partition: LogPartition
    log_weights: Tensor

    def __repr__(self) -> str:
        words = f"forward={self.forward:.6g}, reverse={self.reverse:.6g}, exact={self.exact}"
        return f"LogLikelihood({words}, {len(self.log_weights)} rows)"


@torch.no_grad()
def log_likelihood(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    *,
    generator: torch.Generator,
    n_chains: int = 100,
    n_temperatures: int = 10_000,
    base: Tensor | None = None,
    start: Tensor | None = None,
    n_burn: int = 1_000,
    callback: Progress | None = None,
) -> LogLikelihood:
    """Mean log-likelihood log P(v; α) = −F(v) − log ζ(α) over the rows of binary v (N, D).

    Where min(D, K) ≤ 20, log ζ is summed exactly, without random numbers. Elsewhere it is bracketed by
    :func:`ebse.sampling.annealed_log_partition`, which gets all other options. Sums are float64 whatever the
    type of the ensemble.

    Parameters
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        An ensemble of binary units.
    v : Tensor of shape (N, D)
        Binary rows. Gray values are refused: their likelihood depends on how they are binarized.
    generator : torch.Generator
        Source of random numbers.
    n_chains, n_temperatures, base, n_burn, callback
        See :func:`ebse.sampling.annealed_log_partition`.
    start : Tensor of shape (N, D), optional
        Rows at which the reverse chains start, by default v itself: a mode of v that the forward chains miss,
        which would bias the forward figure upwards, then shows as a wide bracket.

    Examples
    --------
    >>> from ebse.laws import Bernoulli, Point
    >>> W, b, c = Bernoulli(torch.ones(6, 4), 0.5), Point(torch.zeros(6)), Point(torch.zeros(4))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> found = log_likelihood(ensemble, torch.ones(1, 6), generator=torch.Generator().manual_seed(0))
    >>> found.exact, round(found.forward, 2)
    (True, -0.53)
    """
    require_binary(ensemble)
    rng.require_generator(generator)
    v = _binary_rows(ensemble, v)
    wide = _float64(ensemble)
    step = max(BLOCK // (ensemble.D + ensemble.K), 1)
    log_weights = torch.cat([-wide.free_energy(v[i : i + step]) for i in range(0, len(v), step)])
    small = min(ensemble.D, ensemble.K) <= SMALLEST_SIDE
    if small:
        log_z = float(exact.log_zeta(wide))
        log_partition = LogPartition(log_z, 0.0, log_z, 0.0, math.inf, math.inf)
    else:
        log_partition = annealed_log_partition(
            ensemble,
            generator=generator,
            n_chains=n_chains,
            n_temperatures=n_temperatures,
            base=base,
            start=v if start is None else start,
            n_burn=n_burn,
            callback=callback,
        )
    mean = float(log_weights.mean())
    return LogLikelihood(
        mean - log_partition.forward, mean - log_partition.reverse, small, log_partition, log_weights
    )


def _binary_rows(ensemble: RestrictedBoltzmannEnsemble, v: Tensor) -> Tensor:
    """``v`` as at least one row of zeros and ones."""
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    if v.ndim != 2 or len(v) == 0:
        raise ValueError(
            f"v must have shape (N, {ensemble.D}) with N >= 1, got {tuple(v.shape)}; pass one row per example"
        )
    if fractional(v):
        raise ValueError(
            "v must be binary, 0 or 1, got values between; make them binary first, by a threshold "
            "(v > 0.5) or by sampling, and state which: the likelihood depends on it"
        )
    return v


def _float64(ensemble: RestrictedBoltzmannEnsemble) -> RestrictedBoltzmannEnsemble:
    """The effective RBM in float64."""
    W, b, c = (Point(x.double()) for x in ensemble.effective())
    return RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
