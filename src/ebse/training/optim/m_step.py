"""The M-step: settings, the state of an ascent under way, and schedules of the learning rate."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Protocol

import torch
from torch import Tensor

from ebse._validation import option
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training.phases import Phases

Schedule = str | Callable[[float], float]
Tensors = dict[str, Tensor]

OFFSET_RATE = 0.01
"""Rate of the moving averages of the centering offsets, as Melchior, Fischer and Wiskott (2016) use."""


class AscentState(Protocol):
    """The state of an ascent: parameters, velocities and offsets, and the step that changes them."""

    snapshots_every_step: bool
    """Whether :meth:`snapshot` is called after every step, or once an epoch."""

    @property
    def ensemble(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble after the last step, in memory of its own."""

    @property
    def monitored(self) -> RestrictedBoltzmannEnsemble:
        """The same, with its effective parameters computed once."""

    @property
    def collapsed(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble that collapsed chains run on; it may change in place."""

    def step(self, phases: Phases, factor: float) -> None:
        """One step from the states of the two phases, at the given factor of the learning rates."""

    def divergence(self) -> str | None:
        """The parameter that diverged and the settings to lower, or None."""

    def snapshot(self) -> None:
        """Copy the present state for :meth:`roll_back`."""

    def roll_back(self) -> None:
        """Restore the last snapshot."""

    def tensors(self) -> Tensors:
        """All arrays of the state, by name."""

    def load(self, tensors: Tensors) -> None:
        """Take over the arrays that :meth:`tensors` of another run returned."""


class MStep(Protocol):
    """Settings of an ascent."""

    @property
    def learning_rate(self) -> float:
        """Learning rate of the means."""

    @property
    def momentum(self) -> float:
        """Momentum, in [0, 1)."""

    @property
    def schedule(self) -> Schedule:
        """Schedule of the learning rates."""

    def start(self, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> AscentState:
        """An ascent from the ensemble; ``mu`` is the mean of the data."""


def require_rates(settings: MStep, names: tuple[str, ...]) -> None:
    """Require rates that are numbers >= 0, a momentum below 1, and a known schedule."""
    for name in names:
        value = getattr(settings, name)
        if value is None and name == "noise_rate":
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, got {value!r}; pass a float >= 0")
        if not 0 <= float(value) < float("inf"):
            raise ValueError(f"{name} must lie in [0, inf), got {value}; pass a number >= 0")
    if settings.momentum >= 1:
        raise ValueError(f"momentum must lie in [0, 1), got {settings.momentum}; try 0.5 or 0.9")
    if not callable(settings.schedule):
        option("schedule", settings.schedule, ("constant", "linear"))


def schedule_factor(schedule: Schedule, done: float) -> float:
    """The factor on the learning rates after the fraction ``done`` of the run."""
    if callable(schedule):
        factor = schedule(done)
        if not (isinstance(factor, Real) and math.isfinite(factor)):
            raise ValueError(f"schedule must return a finite number, got {factor!r}; check the function")
        return float(factor)
    return 1.0 - done if schedule == "linear" else 1.0


def divergence_of(x: Tensor) -> str:
    """How a parameter diverged: it is too large, or not finite."""
    return f"has grown to {x.abs().max():.2g}" if bool(torch.isfinite(x).all()) else "is not finite"
