"""Chains of (v, h, θ) for any energy: θ | v, h by Metropolis, v and h | θ one unit at a time."""

from typing import NamedTuple

import torch
from torch import Tensor

from ebse import noise
from ebse.arguments import count
from ebse.models import EnergyEnsemble
from ebse.models.energy import Parameters
from ebse.sampling.metropolis import LANGEVIN_STEP, theta_sweep
from ebse.sampling.sites import site_sweep
from ebse.sampling.state import State


class ModelState(NamedTuple):
    """A batch of chains: v (N, D), h (N, K) and the model θ of each, arrays (N, *shape) by name."""

    v: Tensor
    h: Tensor
    theta: Parameters


def start_chains(ensemble: EnergyEnsemble, v: Tensor, *, generator: torch.Generator) -> ModelState:
    """Chains at v (N, D), with h by fair coins and θ from the law."""
    h = noise.bernoulli(v.new_full((len(v), ensemble.K), 0.5), noise.draw_key(generator))
    theta = {
        name: law.sample(v.new_zeros(len(v), *law.shape), generator=generator).detach()
        for name, law in ensemble.laws.items()
    }
    return ModelState(v, h, theta)


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
    key = noise.draw_key(generator)
    v, h, theta = state
    with torch.no_grad():
        for sweep in range(n_sweeps):
            step = noise.subkey(key, sweep)
            theta = theta_sweep(ensemble, State(v, h), theta, noise.subkey(step, 0), step=langevin_step)
            v, h = site_sweep(
                lambda v, h, theta=theta: -ensemble.energy(v, h, theta),  # type: ignore[misc]
                State(v, h),
                noise.subkey(step, 1),
                clamp_v=clamp_v,
            )
    return ModelState(v, h, theta)
