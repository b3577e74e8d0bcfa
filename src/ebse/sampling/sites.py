"""Gibbs over binary units one at a time, for any log weight of (v, h)."""

from collections.abc import Callable

import torch
from torch import Tensor

from ebse import noise
from ebse.arguments import count
from ebse.models import LinearEnsemble
from ebse.sampling.state import State

LogWeight = Callable[[Tensor, Tensor], Tensor]


def site_sweep(log_weight: LogWeight, state: State, key: int, *, clamp_v: bool = False) -> State:
    """Sample each unit from its conditional: logit P(x = 1 | rest) is a difference of log weights."""
    v, h = state.v.clone(), state.h.clone()
    for offset, units in ((0, v), (state.v.shape[-1], h)):
        if units is v and clamp_v:
            continue
        for i in range(units.shape[-1]):
            units[..., i] = 1
            present = log_weight(v, h)
            units[..., i] = 0
            odds = present - log_weight(v, h)
            units[..., i] = noise.bernoulli(torch.sigmoid(odds), noise.subkey(key, offset + i))
    return State(v, h)


def linear_sweeps(
    ensemble: LinearEnsemble,
    state: State,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    clamp_v: bool = False,
) -> State:
    """Sweep over v and h (or h alone) of an ensemble whose θ is integrated out."""
    count("n_sweeps", n_sweeps, least=0)
    key = noise.draw_key(generator)
    for sweep in range(n_sweeps):
        step = noise.subkey(key, sweep)
        state = site_sweep(ensemble.log_weight, state, step, clamp_v=clamp_v)
    return state
