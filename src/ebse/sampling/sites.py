"""Gibbs sampling of binary units one at a time, for any log weight of (v, h)."""

from collections.abc import Callable

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import fractional, units
from ebse._validation import count
from ebse.models import EnergyEnsemble, LinearEnsemble
from ebse.sampling.state import State

LogWeight = Callable[[Tensor, Tensor], Tensor]


def binary_state(ensemble: LinearEnsemble | EnergyEnsemble, state: State) -> State:
    """v (..., D) and h (..., K) of the ensemble's type, which must be binary."""
    v = units("v", state[0], ensemble.D, dtype=ensemble.dtype)
    h = units("h", state[1], ensemble.K, dtype=ensemble.dtype)
    for name, x in (("v", v), ("h", h)):
        if fractional(x):
            raise ValueError(
                f"{name} must be binary, got values between 0 and 1; threshold or sample them first"
            )
    return State(v, h)


def site_sweep(log_weight: LogWeight, state: State, key: int, *, clamp_v: bool = False) -> State:
    """Sample each unit from its conditional: logit P(x = 1 | rest) is a difference of log weights."""
    v, h = state.v.clone(), state.h.clone()
    for offset, layer in ((0, v), (state.v.shape[-1], h)):
        if layer is v and clamp_v:
            continue
        for i in range(layer.shape[-1]):
            layer[..., i] = 1
            present = log_weight(v, h)
            layer[..., i] = 0
            odds = present - log_weight(v, h)
            layer[..., i] = rng.bernoulli(torch.sigmoid(odds), rng.subkey(key, offset + i))
    return State(v, h)


@torch.no_grad()
def linear_sweeps(
    ensemble: LinearEnsemble,
    state: State,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    clamp_v: bool = False,
) -> State:
    """Gibbs sweeps over the units of v and h (or of h alone), with θ integrated out."""
    count("n_sweeps", n_sweeps, least=0)
    key = rng.draw_key(generator)
    state = binary_state(ensemble, state)
    for sweep in range(n_sweeps):
        step = rng.subkey(key, sweep)
        state = site_sweep(ensemble.log_weight, state, step, clamp_v=clamp_v)
    return state
