"""Chains of (v, h, θ) for any energy: Metropolis–Hastings for θ | v, h, and Gibbs for each unit given θ."""

from typing import NamedTuple

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import units
from ebse._validation import count
from ebse.models import EnergyEnsemble
from ebse.models.energy import Parameters, draw_laws
from ebse.sampling.metropolis import LANGEVIN_STEP, theta_sweep
from ebse.sampling.sites import binary_state, site_sweep
from ebse.sampling.state import State


class ModelState(NamedTuple):
    """A batch of chains: v (N, D), h (N, K) and θ of each, arrays ``(N, *shape)`` by name."""

    v: Tensor
    h: Tensor
    theta: Parameters
    acceptance: float = 1.0
    """Acceptance rate of Langevin moves in the last call; near 0 the chain does not move."""


@torch.no_grad()
def start_chains(ensemble: EnergyEnsemble, v: Tensor, *, generator: torch.Generator) -> ModelState:
    """Chains at binary v (N, D), with uniformly random h and θ from its law."""
    key = rng.draw_key(generator)
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    h = rng.bernoulli(v.new_full((len(v), ensemble.K), 0.5), rng.subkey(key, 0))
    zeros = {name: v.new_zeros(len(v), *law.shape) for name, law in ensemble.laws.items()}
    return ModelState(v, h, draw_laws(ensemble.laws, zeros, rng.subkey(key, 1)))


@torch.no_grad()
def general_sweeps(
    ensemble: EnergyEnsemble,
    state: ModelState,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    clamp_v: bool = False,
    langevin_step: float = LANGEVIN_STEP,
) -> ModelState:
    """Sample θ | v, h, then v and h | θ (or h alone), n_sweeps times; P(v, h, θ) stays invariant."""
    count("n_sweeps", n_sweeps, least=0)
    key = rng.draw_key(generator)
    v, h = binary_state(ensemble, State(state.v, state.h))
    theta, accepted = state.theta, 0.0
    for sweep in range(n_sweeps):
        step = rng.subkey(key, sweep)
        theta, acceptance = theta_sweep(ensemble, State(v, h), theta, rng.subkey(step, 0), step=langevin_step)
        accepted += acceptance / n_sweeps
        v, h = site_sweep(
            lambda v, h, theta=theta: -ensemble.energy(v, h, theta),  # type: ignore[misc]
            State(v, h),
            rng.subkey(step, 1),
            clamp_v=clamp_v,
        )
    return ModelState(v, h, theta, accepted if n_sweeps else state.acceptance)
