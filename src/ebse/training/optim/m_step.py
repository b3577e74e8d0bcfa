"""The M-step: what every ascent has, and the settings of plain gradient ascent on α."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, final

import torch
from torch import Tensor

from ebse._validation import option
from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models._leaves import Gradient
from ebse.training.phases import Phases

OptimizerFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]
Schedule = str | Callable[[float], float]
Tensors = dict[str, Tensor]

OFFSET_RATE = 0.01
"""Rate of the moving averages of the centering offsets, as Melchior, Fischer and Wiskott (2016) use."""


class Climb(Protocol):
    """An ascent under way: what it moves, how it steps, and how it goes back."""

    keeps_every_step: bool
    """Whether :meth:`keep` is called after every step, or once an epoch."""

    @property
    def ensemble(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble as the last step made it, in memory of its own."""

    @property
    def watched(self) -> RestrictedBoltzmannEnsemble:
        """The same, with its effective parameters computed once."""

    @property
    def acting(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble that collapsed chains run on; it may change in place."""

    def step(self, phases: Phases, factor: float) -> None:
        """One step from the states of the two phases, at the given factor of the rates."""

    def fault(self) -> str | None:
        """What is wrong with a parameter and what to lower, if anything is."""

    def keep(self) -> None:
        """Keep the present state for :meth:`take_back`."""

    def take_back(self) -> None:
        """Go back to the state that was kept."""

    def tensors(self) -> Tensors:
        """All arrays of the ascent, by name."""

    def load(self, tensors: Tensors) -> None:
        """Hold the arrays that :meth:`tensors` of another run gave."""


class MStep(Protocol):
    """Settings from which an ascent begins."""

    @property
    def learning_rate(self) -> float:
        """Of the means."""

    @property
    def momentum(self) -> float:
        """Of the ascent."""

    @property
    def schedule(self) -> Schedule:
        """Of the rates."""

    def begin(self, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> Climb:
        """An ascent from the ensemble; ``mu`` is the mean of the data."""


def require_rates(settings: MStep, names: tuple[str, ...]) -> None:
    """Rates that are numbers >= 0, a momentum below 1, and a schedule that is known."""
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
    """The factor on the rates once the fraction ``done`` of the run is over."""
    if callable(schedule):
        factor = schedule(done)
        if not (isinstance(factor, Real) and math.isfinite(factor)):
            raise ValueError(f"schedule must return a finite number, got {factor!r}; check the function")
        return float(factor)
    return 1.0 - done if schedule == "linear" else 1.0


@final
@dataclass(frozen=True)
class GradientAscent:
    """Settings of plain gradient ascent on α, as in the paper.

    Parameters
    ----------
    learning_rate, noise_rate
        Rates for the means (θ_bar) and for the noise (p, σ, …) of every law; the noise's is the
        means' own where it is None, and 0 holds the noise as it is. It acts on the logit of p where a
        Bernoulli law has that (after ``with_noise``).
    momentum, weight_decay
        Of the ascent; the decay pulls the means of W towards 0.
    schedule
        "constant", "linear" (down to 0 at the end of the run), or a function from the fraction of
        the run that is done to a factor on the rates.
    centered
        Take the gradient of the centered machine (binary units).
    optimizer
        Any ``torch.optim`` optimizer that steps without a closure, instead of plain ascent: a function from
        parameter groups to the optimizer. The groups carry the rates above as ``lr``, which takes precedence
        over an ``lr`` given in the function. Gradients are those of a loss, −log-likelihood.

    Notes
    -----
    Binary units learn faster and more evenly by :class:`ebse.training.EffectiveAscent`: a step in θ_bar
    moves the effective weight of a Bernoulli law only q(1)² as far as an RBM's. Rates that worked on
    binary data: ``learning_rate`` 1, ``noise_rate`` 0.01 to 0.1, ``centered=True``. Without centering,
    contrastive divergence often learns little more than the mean of the data.

    Examples
    --------
    >>> GradientAscent(optimizer=lambda groups: torch.optim.Adam(groups, betas=(0.5, 0.99))).momentum
    0.0
    """

    learning_rate: float = 0.1
    noise_rate: float | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    centered: bool = False
    optimizer: OptimizerFactory | None = None

    def __post_init__(self) -> None:
        require_rates(self, ("learning_rate", "noise_rate", "momentum", "weight_decay"))
        if self.optimizer is not None and not callable(self.optimizer):
            raise TypeError(
                f"optimizer must be a function from parameter groups to an optimizer, got "
                f"{type(self.optimizer).__name__}; write optimizer=lambda groups: torch.optim.Adam(groups)"
            )
        if self.optimizer is not None and self.momentum:
            raise ValueError(
                f"momentum must be 0 where optimizer is given, got {self.momentum}; "
                "give the momentum to the optimizer itself"
            )

    def begin(self, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> Climb:
        """An ascent from the ensemble; ``mu`` is the mean of the data."""
        # The ascent takes its settings from this module.
        from ebse.training.optim.gradient_ascent import AlphaClimb

        return AlphaClimb(self, ensemble, mu)

    def build(self, laws: dict[str, Law], alpha: Gradient) -> torch.optim.Optimizer:
        """The optimizer of the leaves ``alpha``, in groups of one rate and one decay."""
        noise_rate = self.learning_rate if self.noise_rate is None else self.noise_rate
        members: dict[tuple[float, float], list[Tensor]] = {}
        for letter, law in laws.items():
            for name, x in alpha[letter].items():
                is_noise = name in law.noise_names
                rate = noise_rate if is_noise else self.learning_rate
                decay = self.weight_decay if letter == "W" and not is_noise else 0.0
                members.setdefault((rate, decay), []).append(x)
        groups: list[dict[str, Any]] = [
            {"params": params, "lr": rate} | ({"weight_decay": decay} if decay else {})
            for (rate, decay), params in members.items()
        ]
        if self.optimizer is not None:
            return self.optimizer(groups)
        return torch.optim.SGD(groups, momentum=self.momentum)
