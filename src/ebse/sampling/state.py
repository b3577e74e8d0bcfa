"""The state of a chain."""

from typing import Literal, NamedTuple

from torch import Tensor

from ebse._tensors import units as checked_units
from ebse.models import RestrictedBoltzmannEnsemble

Units = Literal["sampled", "mean"]
"""Whether units take sampled values or their conditional means (mean field)."""


START = 2**63
"""Number of the subkey for the start of a chain; those of sweeps count from 0."""


class State(NamedTuple):
    """Units of a batch of chains: v (N, D) and h (N, K)."""

    v: Tensor
    h: Tensor


def checked_state(ensemble: RestrictedBoltzmannEnsemble, state: State, units: Units, key: int) -> State:
    """v (N, D) and h (N, K) of the ensemble's type; probabilities are sampled where units are."""
    if not isinstance(state, tuple) or len(state) != 2:
        raise TypeError(f"state must be a State, got {type(state).__name__}; pass State(v, h)")
    v = checked_units("v", state[0], ensemble.D, dtype=ensemble.dtype)
    h = checked_units("h", state[1], ensemble.K, dtype=ensemble.dtype)
    if v.ndim != 2 or h.ndim != 2 or len(v) != len(h):
        raise ValueError(
            f"v and h must have shapes (N, {ensemble.D}) and (N, {ensemble.K}), "
            f"got {tuple(v.shape)} and {tuple(h.shape)}; pass one row per chain"
        )
    return State(*ensemble.binary_units(v, h, key)) if units == "sampled" else State(v, h)
