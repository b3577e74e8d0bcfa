"""Gradients of the log-likelihood: ⟨∂K/∂α⟩_data − ⟨∂K/∂α⟩_model (Eq. 6 with B2 and B6).

For every law it is autograd of the log weight, so that no derivative is written by hand.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ebse._validation import count
from ebse.models import EnergyEnsemble, LinearEnsemble, RestrictedBoltzmannEnsemble
from ebse.models._leaves import Gradient, gradient_of, leaves_of, rebuilt
from ebse.sampling import ModelState, State, general_sweeps, start_chains
from ebse.sampling.metropolis import LANGEVIN_STEP
from ebse.training.phases import Phases


class Offsets(NamedTuple):
    """μ (D,) and λ (K,), around which the centered gradient measures v and h."""

    mu: Tensor
    lam: Tensor


@torch.enable_grad()
def gradient(
    ensemble: RestrictedBoltzmannEnsemble | LinearEnsemble,
    phases: Phases,
    offsets: Offsets | None = None,
) -> Gradient:
    """Gradient of the log-likelihood, ⟨∂ log_weight(v, h)/∂α⟩_data − ⟨same⟩_model, for each of α.

    With ``offsets`` (binary units), the gradient at fixed b + W λ and c + μᵀ W, the biases of the centered
    machine: that of W is taken around μ and λ, those of b and c are unchanged.
    """
    alpha = leaves_of(ensemble)
    ensemble = rebuilt(ensemble, alpha)
    both = State(*(torch.cat(pair) for pair in zip(*phases, strict=True)))
    log_weight = ensemble.log_weight(*both) if offsets is None else _centered(ensemble, both, offsets)
    n = len(phases.data.v)
    return gradient_of(log_weight[:n].mean() - log_weight[n:].mean(), alpha)


def _centered(
    ensemble: RestrictedBoltzmannEnsemble | LinearEnsemble, state: State, offsets: Offsets
) -> Tensor:
    """(v − μ)ᵀ W (h − λ) + bᵀ v + cᵀ h of the effective parameters, for each row."""
    if not isinstance(ensemble, RestrictedBoltzmannEnsemble) or ensemble.visible != "binary":
        raise ValueError(
            "centered gradients need an ensemble of binary units, got one without effective parameters; "
            "use visible='binary' or centered=False"
        )
    W, b, c = ensemble.effective()
    v, h = state
    pairs = (((v - offsets.mu) @ W) * (h - offsets.lam)).sum(-1)
    return pairs + v @ b + h @ c


@torch.enable_grad()
def monte_carlo_gradient(
    ensemble: EnergyEnsemble,
    v: Tensor,
    *,
    n_samples: int,
    n_sweeps: int,
    generator: torch.Generator,
    langevin_step: float = LANGEVIN_STEP,
) -> Gradient:
    """Monte Carlo gradient E[∂φ/∂α]_{P(θ)} − E[∂φ/∂α]_{P(θ|v)} of any energy (Eq. 10).

    Parameters
    ----------
    ensemble : EnergyEnsemble
        Any energy and laws.
    v : Tensor of shape (N, D)
        Binary rows.
    n_samples : int
        Chains a row, the M of the paper. More chains lower the variance.
    n_sweeps : int
        Sweeps of each chain. More sweeps lower the bias.
    generator : torch.Generator
        Source of random numbers.
    langevin_step : float
        Step of the Langevin proposals, see :func:`ebse.sampling.general_sweeps`.

    Notes
    -----
    α that move the support of a law (locations of atoms, bounds) have no score; their gradient goes through
    the path of θ: E[−∂E/∂θ · ∂θ/∂α].
    """
    rows = v.repeat_interleave(count("n_samples", n_samples), 0)
    start = start_chains(ensemble, rows, generator=generator)
    data = general_sweeps(
        ensemble, start, n_sweeps, generator=generator, clamp_v=True, langevin_step=langevin_step
    )
    model = general_sweeps(ensemble, start, n_sweeps, generator=generator, langevin_step=langevin_step)
    alpha = leaves_of(ensemble)
    ensemble = rebuilt(ensemble, alpha)
    return gradient_of(_log_weight(ensemble, data) - _log_weight(ensemble, model), alpha)


def _log_weight(ensemble: EnergyEnsemble, state: ModelState) -> Tensor:
    """⟨−φ(θ; α) − E(v, h, θ(α))⟩, whose derivative in α is score plus path."""
    moved = {name: law.path(state.theta[name]) for name, law in ensemble.laws.items()}
    score = -ensemble.potential(state.theta)
    return (score - ensemble.energy(state.v, state.h, moved)).mean()
