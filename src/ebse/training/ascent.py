"""The M-step: stochastic gradient ascent on α, with the constraints of each law."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from ebse.arguments import option
from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.leaves import Gradient
from ebse.training.gradients import Offsets

OptimizerFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]
Schedule = str | Callable[[float], float]

OFFSET_RATE = 0.01
"""Rate of the moving averages of the centring offsets, as Melchior, Fischer and Wiskott (2016) use."""


@final
@dataclass(frozen=True)
class GradientAscent:
    """Settings of the M-step.

    Parameters
    ----------
    learning_rate, noise_rate
        Rates for the means (θ_bar) and for the noise (p, σ, …) of every law; the noise's is the
        means' own where it is None, and 0 holds the noise as it is.
    momentum, weight_decay
        Of the ascent; the decay pulls the means of W towards 0.
    schedule
        "constant", "linear" (down to 0 at the end of the run), or a function from the fraction of
        the run that is done to a factor on the rates.
    centred
        Take the gradient of the centred machine (binary units).
    optimizer
        Any ``torch.optim`` optimiser that steps without a closure, instead of plain ascent: a function from
        parameter groups to the optimiser. The groups carry the rates above as ``lr``, which takes precedence
        over an ``lr`` given in the function. Gradients are those of a loss, −log-likelihood.

    Notes
    -----
    Rates that worked on binary data: ``learning_rate`` 1, ``noise_rate`` 0.01 to 0.1, ``centred=True``.
    Without centring, contrastive divergence often learns little more than the mean of the data.

    >>> GradientAscent(optimizer=lambda groups: torch.optim.Adam(groups, betas=(0.5, 0.99))).momentum
    0.0
    """

    learning_rate: float = 0.1
    noise_rate: float | None = None
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: Schedule = "constant"
    centred: bool = False
    optimizer: OptimizerFactory | None = None

    def __post_init__(self) -> None:
        for name in ("learning_rate", "noise_rate", "momentum", "weight_decay"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, (int, float)):
                raise TypeError(f"{name} must be a number, got {value!r}; pass a float >= 0")
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"{name} must lie in [0, inf), got {value}; pass a number >= 0")
        if self.momentum >= 1:
            raise ValueError(f"momentum must lie in [0, 1), got {self.momentum}; try 0.5 or 0.9")
        if self.optimizer is not None and not callable(self.optimizer):
            raise TypeError(
                f"optimizer must be a function from parameter groups to an optimiser, got "
                f"{type(self.optimizer).__name__}; write optimizer=lambda groups: torch.optim.Adam(groups)"
            )
        if self.optimizer is not None and self.momentum:
            raise ValueError(
                f"momentum must be 0 where optimizer is given, got {self.momentum}; "
                "give the momentum to the optimiser itself"
            )
        if not callable(self.schedule):
            option("schedule", self.schedule, ("constant", "linear"))

    def factor(self, done: float) -> float:
        """The schedule's factor once the fraction ``done`` of the run is over."""
        if callable(self.schedule):
            return self.schedule(done)
        return 1.0 - done if self.schedule == "linear" else 1.0

    def build(self, laws: dict[str, Law], alpha: Gradient) -> torch.optim.Optimizer:
        """The optimiser of the leaves ``alpha``, in groups of one rate and one decay."""
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


@torch.no_grad()
def ascend(
    ensemble: RestrictedBoltzmannEnsemble,
    alpha: Gradient,
    slopes: Gradient,
    optimizer: torch.optim.Optimizer,
    offsets: Offsets | None,
) -> None:
    """One step on the leaves ``alpha``, in place: optimiser, constraints, and the centred biases.

    With ``offsets`` the biases give back what W really changed, Δb = −ΔW λ and Δc = −μᵀ ΔW in
    effective parameters, whatever the optimiser or a constraint made of the gradient.
    """
    before = None if offsets is None else _effective(ensemble.W, alpha["W"])
    for letter, part in alpha.items():
        for name, x in part.items():
            x.grad = -slopes[letter][name]
    optimizer.step()
    for letter, law in ensemble.laws.items():
        law.project_(alpha[letter])
    if before is not None and offsets is not None:
        change = _effective(ensemble.W, alpha["W"]) - before
        _shift_(ensemble.b, alpha["b"], -change @ offsets.lam)
        _shift_(ensemble.c, alpha["c"], -offsets.mu @ change)


def moved_offsets(offsets: Offsets, v: Tensor, h: Tensor) -> Offsets:
    """μ and λ a little nearer to the means of the data phase."""
    return Offsets(
        torch.lerp(offsets.mu, v.mean(0), OFFSET_RATE), torch.lerp(offsets.lam, h.mean(0), OFFSET_RATE)
    )


def _effective(law: Law, alpha: dict[str, Tensor]) -> Tensor:
    return law.with_alpha(alpha).effective()


def _shift_(law: Law, alpha: dict[str, Tensor], delta: Tensor) -> None:
    for name, value in law.with_alpha(alpha).shifted(delta).alpha.items():
        alpha[name].copy_(value)
