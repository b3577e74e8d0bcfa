"""What is watched while training: one row of numbers an epoch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ebse._tensors import fractional
from ebse.kernels.pseudo_likelihood import pseudo_terms
from ebse.kernels.units import fast
from ebse.laws.bernoulli import log1p_exp
from ebse.models import RestrictedBoltzmannEnsemble, exact

Row = dict[str, float]
Monitor = Callable[[RestrictedBoltzmannEnsemble, Tensor, Tensor | None], Row]
"""Maps the ensemble, some training rows and the held-out rows (or None) to named numbers."""

SMALL = 12
"""Exact likelihoods are watched where the smaller side has at most this many units."""
WORK, TERMS = 2**17, 4
"""Hidden inputs that a pseudo-likelihood may compute; above, its sum has so many terms a row."""
STRONG = 80.0
"""Weights from which on the kernel's exponentials leave single precision."""
BLOCK = 2**19
"""Hidden inputs that are held at once where terms are thinned."""


def reconstruction_error(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor | None) -> Row:
    """Mean squared distance of v to E[v | E[h | v]], per unit."""
    back = ensemble.mean_v_given_h(ensemble.mean_h_given_v(v))
    return {"reconstruction_error": float(((v - back) ** 2).mean())}


def pseudo_log_likelihood(ensemble: RestrictedBoltzmannEnsemble, v: Tensor, *, every: int = 1) -> Tensor:
    """Σ_i log P(v_i | v_−i) of each row; a value in (0, 1) is averaged over.

    log odds of v_i are b_i + Σ_j log1p_exp(a_j + (1 − v_i) W_ij) − log1p_exp(a_j − v_i W_ij), a_j the
    input to hidden unit j. With ``every`` > 1 only each so-many-th term is computed, from a place of its
    own in every row, and the sum is scaled up.
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
    """Binary rows, and numbers that the kernel's exponentials can do with: it does not know NaN."""
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
    # Rows take turns with the units, so that every unit has its turn only where there are enough of them.
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
