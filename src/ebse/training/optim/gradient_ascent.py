"""Gradient ascent on α: settings, optimizer, constraints of each law, and centered biases."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models._leaves import Gradient, rebuilt
from ebse.training.gradients import Offsets, gradient
from ebse.training.optim.m_step import OFFSET_RATE, Schedule, Tensors, divergence_of, require_rates
from ebse.training.phases import Phases

OptimizerFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


@final
@dataclass(frozen=True)
class GradientAscent:
    """Stochastic gradient ascent on the parameters α of every law, as in the paper.

    α ← α + ε (⟨∂ log w/∂α⟩_data − ⟨∂ log w/∂α⟩_model)  (Eq. 6), for binary and for real visible units.

    Parameters
    ----------
    learning_rate : float, default=0.1
        ε of the means (θ_bar). Larger steps learn faster, and diverge from some point on. With binary units
        and centering, rates up to 1 worked.
    noise_rate : float, optional
        Learning rate of the noise (p, σ, …) of every law; None takes ``learning_rate``, 0 keeps the noise
        fixed. Sensible values are 0.01 to 0.1. It applies to the logit of p where a Bernoulli law is stored
        by its logit (after ``with_noise``).
    momentum : float, default=0.0
        Momentum of the ascent, in [0, 1), for the parameters of all laws, also with real visible units.
        Larger values smooth the noise of the gradient and act like a larger learning rate; 0.5 and 0.9 are
        usual.
    weight_decay : float, default=0.0
        L2 penalty on the means of W. Larger values pull them towards 0; 1e-4 is usual.
    schedule : {"constant", "linear"} or callable, default="constant"
        Factor on both rates: "linear" falls to 0 at the end of the run; a function maps the fraction of the
        run that is done to the factor.
    centered : bool, default=False
        Take the gradient of the centered machine (binary units only). Off by default, as in the paper.
    optimizer : callable, optional
        A function from parameter groups to a ``torch.optim`` optimizer that steps without a closure, instead
        of plain ascent. The groups carry the rates above as ``lr``, which takes precedence over an ``lr``
        given in the function. Gradients are those of a loss, −log-likelihood.

    Notes
    -----
    Binary units learn faster and more evenly by :class:`ebse.training.EffectiveAscent`: a step in θ_bar
    moves the effective weight of a Bernoulli law only q(1)² as far as a weight of an RBM. Without centering,
    contrastive divergence often learns little more than the mean of the data.

    References
    ----------
    G. Montavon and K.-R. Müller, "Deep Boltzmann machines and the centering trick", 2012.

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

    def start(self, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> "GradientState":
        """An ascent from the ensemble; ``mu`` is the mean of the data."""
        return GradientState(self, ensemble, mu)

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


@final
class GradientState:
    """The state of gradient ascent: α of every law as leaves of an optimizer, and the centering offsets."""

    snapshots_every_step = True

    def __init__(self, settings: GradientAscent, ensemble: RestrictedBoltzmannEnsemble, mu: Tensor) -> None:
        if settings.centered:
            _require_shifts(ensemble)
        self.settings = settings
        self.alpha: Gradient = {
            letter: {name: x.detach().clone().requires_grad_() for name, x in law.alpha.items()}
            for letter, law in ensemble.laws.items()
        }
        with torch.no_grad():
            for letter, law in ensemble.laws.items():
                law.project_(self.alpha[letter])
        self.offsets = Offsets(mu.clone(), mu.new_full((ensemble.K,), 0.5)) if settings.centered else None
        self.ensemble = ensemble
        self.snapshot()
        self._new_optimizer()

    @property
    def monitored(self) -> RestrictedBoltzmannEnsemble:
        """The same, with its effective parameters computed once."""
        return self.ensemble.frozen()

    @property
    def collapsed(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble itself."""
        return self.ensemble

    def step(self, phases: Phases, factor: float) -> None:
        """One step from the states of the two phases."""
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        slopes = gradient(self.ensemble, phases, self.offsets)
        ascend(self.ensemble, self.alpha, slopes, self._optimizer, self.offsets)
        if self.offsets is not None:
            move_offsets(self.offsets, *phases.data)

    def snapshot(self) -> None:
        """Copy the leaves into the ensemble, which later steps do not change."""
        copies = {
            letter: {name: x.detach().clone() for name, x in part.items()}
            for letter, part in self.alpha.items()
        }
        self.ensemble = rebuilt(self.ensemble, copies)

    def roll_back(self) -> None:
        """Restore the leaves of the last snapshot, with a new optimizer."""
        with torch.no_grad():
            for letter, law in self.ensemble.laws.items():
                for name, value in law.alpha.items():
                    self.alpha[letter][name].copy_(value)
        self._new_optimizer()

    def divergence(self) -> str | None:
        """The parameter, or effective parameter, that diverged, and the settings to lower, or None.

        Values whose squares overflow count as diverged: the inputs of units would not be finite.
        """
        values = {
            (letter, name): x.detach()
            for letter, law in rebuilt(self.ensemble, self.alpha).laws.items()
            for name, x in {**law.alpha, "K(1)": law.effective()}.items()
        }
        sums = torch.stack([x.square().sum() for x in values.values()])
        # One sum suffices in the usual case that all are finite.
        if bool(torch.isfinite(sums.sum())):
            return None
        (letter, name), x = next(
            item for item, squares in zip(values.items(), sums, strict=True) if not bool(squares.isfinite())
        )
        return f"{name} of {letter} {divergence_of(x)}; lower {self._rates_of(letter, name)}"

    def tensors(self) -> Tensors:
        """α, the offsets, and the arrays of the optimizer."""
        held = {f"{letter}/{name}": x.detach() for letter, name, x in self._leaves()}
        if self.offsets is not None:
            held |= {"mu": self.offsets.mu, "lam": self.offsets.lam}
        for letter, name, leaf in self._leaves():
            for kind, value in self._optimizer.state.get(leaf, {}).items():
                if isinstance(value, Tensor):
                    held[f"optimizer/{letter}/{name}/{kind}"] = value
        return held

    @torch.no_grad()
    def load(self, tensors: Tensors) -> None:
        """Take over the arrays that :meth:`tensors` of another run returned."""
        for path, value in tensors.items():
            head, *rest = path.split("/")
            if head == "optimizer":
                letter, name, kind = rest
                self._optimizer.state[self.alpha[letter][name]][kind] = value.clone()
            elif head in ("mu", "lam"):
                getattr(self.offsets, head).copy_(value)
            else:
                self.alpha[head][rest[0]].copy_(value)
        self.snapshot()

    def _leaves(self) -> list[tuple[str, str, Tensor]]:
        return [(letter, name, x) for letter, part in self.alpha.items() for name, x in part.items()]

    def _new_optimizer(self) -> None:
        self._optimizer = self.settings.build(self.ensemble.laws, self.alpha)
        self._rates = [group["lr"] for group in self._optimizer.param_groups]

    def _rates_of(self, letter: str, name: str) -> str:
        """The settings that change a parameter, with their values."""
        rates = {"learning_rate": self.settings.learning_rate, "noise_rate": self.settings.noise_rate}
        law = self.ensemble.laws[letter]
        if name in law.names and rates["noise_rate"] is not None:
            rates.pop("learning_rate" if name in law.noise_names else "noise_rate")
        if self.settings.momentum:
            rates["momentum"] = self.settings.momentum
        return " and ".join(f"{rate} (now {value:g})" for rate, value in rates.items() if value is not None)


@torch.no_grad()
def ascend(
    ensemble: RestrictedBoltzmannEnsemble,
    alpha: Gradient,
    slopes: Gradient,
    optimizer: torch.optim.Optimizer,
    offsets: Offsets | None,
) -> None:
    """One step on the leaves ``alpha``, in place: optimizer, constraints, and the centered biases.

    With ``offsets`` the biases are corrected by the actual change of W, Δb = −ΔW λ and Δc = −μᵀ ΔW in
    effective parameters, whatever the optimizer or a constraint did to the gradient.
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


def move_offsets(offsets: Offsets, v: Tensor, h: Tensor) -> None:
    """Update the moving averages μ and λ by the means of the data phase, in place."""
    offsets.mu.lerp_(v.mean(0), OFFSET_RATE)
    offsets.lam.lerp_(h.mean(0), OFFSET_RATE)


def _effective(law: Law, alpha: dict[str, Tensor]) -> Tensor:
    return law.with_alpha(alpha).effective()


def _shift_(law: Law, alpha: dict[str, Tensor], delta: Tensor) -> None:
    for name, value in law.with_alpha(alpha).shifted(delta).alpha.items():
        alpha[name].copy_(value)


def _require_shifts(ensemble: RestrictedBoltzmannEnsemble) -> None:
    """Require binary units, and biases that can be shifted by the change of W."""
    if ensemble.visible != "binary":
        raise ValueError("visible must be 'binary' for centered gradients, got 'real'; use centered=False")
    for name in ("b", "c"):
        law = ensemble.laws[name]
        try:
            law.shifted(torch.zeros_like(law.effective()))
        except TypeError as error:
            raise TypeError(f"{name} cannot be shifted: {error}") from None
