"""Annealed importance sampling (AIS) of log ζ, forward and reverse, on the effective RBM.

Forward: Neal 2001, Salakhutdinov and Murray 2008. Reverse: Burda, Grosse and Salakhutdinov 2015.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import as_float_tensor, units
from ebse._validation import count
from ebse.kernels.units import draw_units
from ebse.laws.bernoulli import log1p_exp
from ebse.models import RestrictedBoltzmannEnsemble

Progress = Callable[[float], None]
"""Called with the fraction of the work that is done, from above 0 to 1."""

FORWARD, REVERSE, BURN, BASE, START, CHOICE = range(6)
"""Numbers of the subkeys of a call, one for each purpose."""


class LogPartition(NamedTuple):
    """Estimates of log ζ by forward and by reverse annealing, in nats.

    Attributes
    ----------
    forward, reverse
        From the base to the ensemble: E[forward] ≤ log ζ, and forward > log ζ + x with a probability below
        e^(−x). From the ensemble to the base: E[reverse] ≥ log ζ, and reverse < log ζ − x with a probability
        below e^(−x), if the start is exact.
    forward_error, reverse_error
        Standard errors, std(w) / (√n mean(w)). They never exceed 1, however wrong the estimate is: where the
        effective sample size is small, the largest weights were not sampled and the error means nothing.
        Use the difference of forward and reverse instead.
    forward_ess, reverse_ess
        Effective sample sizes (Σ w)² / Σ w², from 1 to the number of chains.
    """

    forward: float
    forward_error: float
    reverse: float
    reverse_error: float
    forward_ess: float
    reverse_ess: float

    @property
    def width(self) -> float:
        """reverse − forward, the width of the bracket; negative only by Monte Carlo error."""
        return self.reverse - self.forward


class Path(NamedTuple):
    """p_β(v) ∝ exp(((1 − β) b0 + β b)ᵀ v) Π_j (1 + exp(β (vᵀ W + c)_j)): from the base, β = 0, to an RBM."""

    W: Tensor
    b: Tensor
    c: Tensor
    base: Tensor

    def log_base(self) -> float:
        """log Z_0 = Σ_i log(1 + exp(b0_i)) + K log 2."""
        return float(log1p_exp(self.base.double()).sum()) + len(self.c) * math.log(2)

    def hidden_input(self, v: Tensor) -> Tensor:
        """vᵀ W + c, (N, K), used for the weights and for the sweep of a temperature."""
        return torch.addmm(self.c, v, self.W)

    def log_ratio(self, v: Tensor, a: Tensor, before: float, beta: float) -> Tensor:
        """log p*_β(v) − log p*_before(v) of each row, float64; a is its hidden input."""
        # Differences are taken before the sum: float32 would lose small changes of a large sum.
        hidden = (log1p_exp(beta * a) - log1p_exp(before * a)).sum(-1, dtype=torch.float64)
        return hidden + (beta - before) * (v @ (self.b - self.base)).double()

    def sweep(self, a: Tensor, beta: float, key: int) -> Tensor:
        """v ~ p_β(v | h) after h ~ p_β(h | v), of the rows whose hidden input is a; reversible in p_β."""
        h = _drawn(beta * a, rng.subkey(key, 0))
        bias = torch.lerp(self.base, self.b, beta)
        return _drawn(torch.addmm(bias, h, self.W.T, alpha=beta), rng.subkey(key, 1))

    def anneal(
        self, v: Tensor, betas: list[float], key: int, tick: Callable[[], None]
    ) -> tuple[Tensor, Tensor]:
        """log w = Σ_k log p*_k(v_(k−1)) − log p*_(k−1)(v_(k−1)) of each chain, and the states v_n."""
        log_w = torch.zeros(len(v), dtype=torch.float64, device=v.device)
        a = self.hidden_input(v)
        for k, (before, beta) in enumerate(itertools.pairwise(betas)):
            log_w += self.log_ratio(v, a, before, beta)
            v = self.sweep(a, beta, rng.subkey(key, k))
            a = self.hidden_input(v)
            tick()
        return log_w, v


@torch.no_grad()
def annealed_log_partition(
    ensemble: RestrictedBoltzmannEnsemble,
    *,
    generator: torch.Generator,
    n_chains: int = 100,
    n_temperatures: int = 10_000,
    base: Tensor | None = None,
    start: Tensor | None = None,
    n_burn: int = 1_000,
    callback: Progress | None = None,
) -> LogPartition:
    """log ζ(α) of an ensemble of binary units by annealed importance sampling, forward and reverse.

    Forward, log ζ ≈ log Z_0 + log mean w over chains from the base; in reverse, log ζ ≈ log Z_0 − log mean w
    over chains from the ensemble. The two bracket log ζ.

    Parameters
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        An ensemble of binary units.
    generator : torch.Generator
        Source of random numbers.
    n_chains : int, default=100
        Chains in each direction. More chains only lower the variance of both estimates.
    n_temperatures : int, default=10_000
        Steps of the annealing path. More temperatures narrow the bracket.
    base : Tensor of shape (D,), optional
        Visible biases b0 of the base, whose W and c are zero. By default the log odds of the mean of
        ``start``, or zeros without it.
    start : Tensor of shape (N, D), optional
        Rows close to samples of the ensemble, such as training data, at which the reverse chains start;
        values between 0 and 1 are sampled. They reveal modes of the data that the forward chains miss
        (reverse is then far above forward), but no mode of the ensemble that the data and the forward chains
        both miss. Without ``start``, reverse chains start at the ends of the forward chains, resampled by
        weight. This shows the variance of the weights, but no mode that the forward chains miss; and with a
        small ``forward_ess`` the starts are copies of a few chains.
    n_burn : int, default=1_000
        Sweeps on the ensemble before the reverse chains start. Starts that are not samples of the ensemble
        bias reverse in either direction, and sweeps correct it only as far as they mix. Reverse below forward
        by more than their errors is a sign of it: raise n_burn.
    callback : callable, optional
        Called with the fraction of the work that is done, about once a percent.

    References
    ----------
    R. M. Neal, "Annealed importance sampling", 2001. R. Salakhutdinov and I. Murray, "On the quantitative
    analysis of deep belief networks", 2008. Y. Burda, R. Grosse and R. Salakhutdinov, "Accurate and
    conservative estimates of MRF log-likelihood using reverse annealing", 2015.

    Examples
    --------
    >>> from ebse.laws import Gaussian, Point
    >>> W, b, c = Gaussian(torch.zeros(30, 25), 0.2), Point(torch.zeros(30)), Point(torch.zeros(25))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> g = torch.Generator().manual_seed(0)
    >>> log_z = annealed_log_partition(ensemble, n_temperatures=100, n_burn=100, generator=g)
    >>> abs(log_z.width) < 1
    True
    """
    require_binary(ensemble)
    n_chains, n_burn = count("n_chains", n_chains, least=2), count("n_burn", n_burn, least=0)
    betas = temperatures(count("n_temperatures", n_temperatures))
    key = rng.draw_key(generator)
    rows = None if start is None else _rows(ensemble, start)
    path = Path(*ensemble.effective(), _base(ensemble, base, rows))
    tick = _ticker(callback, 2 * (len(betas) - 1) + n_burn)

    v = _drawn(path.base.expand(n_chains, -1), rng.subkey(key, BASE))
    log_w, v = path.anneal(v, betas, rng.subkey(key, FORWARD), tick)
    forward, forward_error, forward_ess = _log_mean(log_w)

    v = _resampled(v, log_w, rng.subkey(key, CHOICE)) if rows is None else _chosen(rows, n_chains, key)
    # With β = 1 throughout, annealing is plain Gibbs sampling and all weights are 1.
    _, v = path.anneal(v, [1.0] * (n_burn + 1), rng.subkey(key, BURN), tick)
    log_w, _ = path.anneal(v, betas[::-1], rng.subkey(key, REVERSE), tick)
    reverse, reverse_error, reverse_ess = _log_mean(log_w)

    log_base = path.log_base()
    return LogPartition(
        log_base + forward, forward_error, log_base - reverse, reverse_error, forward_ess, reverse_ess
    )


def temperatures(n: int) -> list[float]:
    """β_k = 1 − (1 − k / n)², k = 0 … n: denser near the ensemble, where chains mix slowest."""
    return [1 - (1 - k / n) ** 2 for k in range(n + 1)]


def require_binary(ensemble: RestrictedBoltzmannEnsemble) -> None:
    """Refuse real visible units, for which ζ is not a sum over states."""
    if ensemble.visible != "binary":
        raise ValueError(
            f"visible must be 'binary' for ζ to be a sum over states, got {ensemble.visible!r}; "
            "no normalized density over real visibles is claimed"
        )


def _rows(ensemble: RestrictedBoltzmannEnsemble, start: Tensor) -> Tensor:
    """``start`` as rows of unit values, at least one."""
    rows = units("start", start, ensemble.D, dtype=ensemble.dtype)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(
            f"start must have shape (N, {ensemble.D}) with N >= 1, got {tuple(rows.shape)}; "
            "pass rows of training data, or None"
        )
    return rows


def _base(ensemble: RestrictedBoltzmannEnsemble, base: Tensor | None, rows: Tensor | None) -> Tensor:
    """b0 (D,): as given, or the log odds of the rows' mean, or zeros."""
    if base is None:
        if rows is None:
            return torch.zeros_like(ensemble.b.effective())
        # One row of zeros and one of ones are added, so that a constant unit has finite log odds.
        on = rows.double().sum(0) + 1
        return torch.logit(on / (len(rows) + 2)).to(rows.dtype)
    base = as_float_tensor("base", base)
    if base.shape != (ensemble.D,):
        raise ValueError(
            f"base must have shape ({ensemble.D},), got {tuple(base.shape)}; pass one bias per visible unit"
        )
    return base.to(ensemble.dtype)


def _chosen(rows: Tensor, n: int, key: int) -> Tensor:
    """n of the rows in random order, each equally often up to one; values between 0 and 1 are sampled."""
    u = rng.uniform(rng.subkey(key, CHOICE), (len(rows),), device=rows.device)
    index = u.argsort()[torch.arange(n, device=rows.device) % len(rows)]
    return rng.bernoulli(rows[index], rng.subkey(key, START))


def _resampled(v: Tensor, log_w: Tensor, key: int) -> Tensor:
    """As many rows as v has, in proportion to their weights (systematic resampling)."""
    n = len(v)
    # One uniform number for all rows: a row with the expected number x is chosen floor(x) or ceil(x) times.
    comb = (torch.arange(n, device=v.device) + rng.uniform(key, (1,), device=v.device)) / n
    index = torch.searchsorted(torch.softmax(log_w, 0).cumsum(0), comb)
    return v[index.clamp(max=n - 1)]


def _log_mean(log_w: Tensor) -> tuple[float, float, float]:
    """log mean w, its standard error by the delta method, and the effective sample size."""
    n = len(log_w)
    w = torch.softmax(log_w, 0)
    error = n * w.std() / math.sqrt(n)
    return float(torch.logsumexp(log_w, 0)) - math.log(n), float(error), float(1 / (w**2).sum())


def _ticker(callback: Progress | None, total: int) -> Callable[[], None]:
    """A function that counts steps, and calls back after every percent of them."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if callback is not None and 100 * done // total > 100 * (done - 1) // total:
            callback(done / total)

    return tick


def _drawn(a: Tensor, key: int) -> Tensor:
    """Binary units sampled from the given log odds."""
    drawn = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    draw_units(a.contiguous(), a.new_zeros(a.shape[1]), key, drawn=drawn)
    return drawn
