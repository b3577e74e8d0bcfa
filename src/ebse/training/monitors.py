"""Monitors of training: reconstruction error, pseudo-likelihood, free-energy gap, exact likelihood, noise."""

from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ebse._tensors import fractional
from ebse.kernels.pseudo_likelihood import pseudo_terms
from ebse.kernels.units import fast
from ebse.laws.bernoulli import log1p_exp
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.training.data import Description, Rows

Row = dict[str, float]
Monitor = Callable[[RestrictedBoltzmannEnsemble, Tensor, Tensor | None], Row]
"""Maps the ensemble, some training rows and some held-out rows (or None) to named numbers."""

SMALL = 12
"""Exact likelihoods are monitored where the smaller side has at most this many units."""
WORK, TERMS = 2**17, 4
"""Hidden inputs that a pseudo-likelihood may compute; above, only TERMS terms of each row are summed."""
STRONG = 80.0
"""Weights from which on the exponentials of the kernel overflow in single precision."""
BLOCK = 2**19
"""Hidden inputs in memory at once where terms are thinned."""


def reconstruction_error(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """Mean squared distance of v to E[v | E[h | v]], per unit."""
    back = ensemble.mean_v_given_h(ensemble.mean_h_given_v(v))
    return {"reconstruction_error": float(((v - back) ** 2).mean())}


def pseudo_log_likelihood(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, *, every: int = 1) -> Tensor:
    """Pseudo-log-likelihood Σ_i log P(v_i | v_−i) of each row (Besag 1975).

    The log odds of v_i are b_i + Σ_j log1p_exp(a_j + (1 − v_i) W_ij) − log1p_exp(a_j − v_i W_ij), a_j the
    input of hidden unit j. A value of v_i in (0, 1) is a probability, over which the term is averaged.

    Parameters
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        An ensemble of binary units.
    v : Tensor of shape (N, D)
        Rows in [0, 1].
    every : int, default=1
        Compute only every so-many-th term, starting at another unit in each row, and scale up the sum. Larger
        values are faster and noisier.

    References
    ----------
    J. Besag, "Statistical analysis of non-lattice data", 1975.
    """
    W, b, c = ensemble.effective()
    a = v @ W + c
    if fast(v) and fast(W) and not (a.requires_grad or b.requires_grad) and _plain(v, W, a):
        return pseudo_terms(v, a, W, b, every)
    if every > 1:
        step = max(BLOCK // (-(-ensemble.D // every) * ensemble.K), 1)
        first = torch.arange(len(v), device=v.device) % min(every, ensemble.D)
        parts = [slice(n, n + step) for n in range(0, len(v), step)]
        return torch.cat([_thinned(v[n], W, b, a[n], first[n], every) for n in parts])
    total = torch.zeros_like(v[:, 0])
    for i in range(ensemble.D):
        x = v[:, i : i + 1]
        odds = b[i] + (log1p_exp(a + (1 - x) * W[i]) - log1p_exp(a - x * W[i])).sum(-1)
        total += x[:, 0] * logsigmoid(odds) + (1 - x[:, 0]) * logsigmoid(-odds)
    return total


def _plain(v: Tensor, W: Tensor, a: Tensor) -> bool:
    """Whether rows are binary and values within the range of the kernel, which does not handle NaN."""
    return not fractional(v) and float(W.abs().max()) < STRONG and bool(torch.isfinite(a.sum()))


def _thinned(v: Tensor, W: Tensor, b: Tensor, a: Tensor, first: Tensor, every: int) -> Tensor:
    """The sum over units first_n, first_n + every, … of row n, scaled up."""
    D = len(b)
    i = first.unsqueeze(1) + torch.arange(0, D, every, device=v.device)  # (N, terms)
    within = i < D
    i = i.clamp_(max=D - 1)
    x, W_i, inputs = v.gather(1, i), W[i], a.unsqueeze(1)
    steps = log1p_exp(inputs + (1 - x).unsqueeze(-1) * W_i) - log1p_exp(inputs - x.unsqueeze(-1) * W_i)
    odds = b[i] + steps.sum(-1)
    terms = x * logsigmoid(odds) + (1 - x) * logsigmoid(-odds)
    return (terms * within).sum(1) * D / within.sum(1).to(v.dtype)


def _mean_pseudo_likelihood(ensemble: RestrictedBoltzmannEnsemble, v: Tensor) -> float:
    """The mean over rows, with terms thinned where there are many."""
    few = len(v) * ensemble.D * ensemble.K <= WORK
    # Rows start at different units, so that every unit is covered only where there are enough rows.
    every = 1 if few else min(max(ensemble.D // TERMS, 1), len(v))
    return float(pseudo_log_likelihood(ensemble, v, every=every).mean())


def pseudo_likelihood(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """Mean pseudo-log-likelihood of training rows, terms thinned evenly where they are many."""
    if ensemble.visible != "binary":
        return {}
    return {"pseudo_log_likelihood": _mean_pseudo_likelihood(ensemble, v)}


def held_out_pseudo_likelihood(
    ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None
) -> Row:
    """The same of held-out rows."""
    if ensemble.visible != "binary" or held_out is None:
        return {}
    return {"held_out_pseudo_log_likelihood": _mean_pseudo_likelihood(ensemble, held_out)}


def free_energy_gap(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """⟨F⟩ on held-out rows minus ⟨F⟩ on training rows: grows when the ensemble overfits."""
    if held_out is None:
        return {}
    thinned = v[:: max(len(v) // len(held_out), 1)]
    gap = ensemble.free_energy(held_out).mean() - ensemble.free_energy(thinned).mean()
    return {"free_energy_gap": float(gap)}


def exact_log_likelihood(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """Mean log P(v; α) of binary rows where one side is small enough to sum."""
    if ensemble.visible != "binary" or min(ensemble.D, ensemble.K) > SMALL or fractional(v):
        return {}
    return {"log_likelihood": float(exact.log_likelihood(ensemble, v).mean())}


def noise_summary(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """Mean and entropy of p, mean of σ, and the like, for each law that has noise."""
    return {
        f"{letter}_{name}": value
        for letter, law in ensemble.laws.items()
        for name, value in law.summary().items()
    }


DEFAULT_MONITORS: tuple[Monitor, ...] = (
    reconstruction_error,
    pseudo_likelihood,
    held_out_pseudo_likelihood,
    free_energy_gap,
    exact_log_likelihood,
    noise_summary,
)

MOST_ROWS, ONE_IN, CHEAP = 1000, 200, 2**22
"""Rows to monitor: one in ONE_IN, or as many as have CHEAP connections in all, and at most MOST_ROWS."""


@final
class Monitoring:
    """Monitors, and a subset of rows so small that evaluating it costs little beside training."""

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self.monitors = tuple(monitors)
        self.v: Tensor | None = None
        self.held_out: Tensor | None = None
        self.held_out_facts: Description | None = None

    @property
    def names(self) -> list[str]:
        """Names of the monitors."""
        return [_name(monitor) for monitor in self.monitors]

    def choose_rows(self, v: Rows, held_out: Rows | None, n_connections: int) -> None:
        """Choose rows of the training set and of the held-out rows."""
        n = min(max((v.n_rows or 0) // ONE_IN, CHEAP // n_connections, 1), MOST_ROWS)
        self.v = v.spread(n)
        self.held_out = None if held_out is None else held_out.spread(n)
        self.held_out_facts = None if held_out is None else held_out.describe()

    def row(self, ensemble: RestrictedBoltzmannEnsemble) -> Row:
        """The values of all monitors, as plain numbers that a file can hold."""
        assert self.v is not None
        row: Row = {}
        with torch.no_grad():
            for monitor in self.monitors:
                found = monitor(ensemble, self.v, self.held_out)
                try:
                    row |= {name: float(value) for name, value in found.items()}
                except (AttributeError, TypeError, ValueError):
                    raise TypeError(
                        f"monitors must return a dict of numbers by name, got {found!r} from "
                        f"{_name(monitor)}; return {{'name': float(value)}}"
                    ) from None
        return row


def _name(monitor: Monitor) -> str:
    return getattr(monitor, "__name__", type(monitor).__name__)
