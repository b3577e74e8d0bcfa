"""Plain ascent on α under way: leaves of an optimizer, the constraints of each law, centered biases."""

from typing import final

import torch
from torch import Tensor

from ebse.laws import Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models._leaves import Gradient, rebuilt
from ebse.training.gradients import Offsets, gradient
from ebse.training.optim.m_step import OFFSET_RATE, GradientAscent, Tensors
from ebse.training.phases import Phases


@final
class AlphaClimb:
    """α of every law on their way, as the leaves of an optimizer, and the offsets of centering."""

    keeps_every_step = True

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
        self.keep()
        self._begin_ascent()

    @property
    def watched(self) -> RestrictedBoltzmannEnsemble:
        """The same, with its effective parameters computed once."""
        return self.ensemble.frozen()

    @property
    def acting(self) -> RestrictedBoltzmannEnsemble:
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

    def keep(self) -> None:
        """Keep a copy of the leaves as the ensemble, which later steps do not touch."""
        copies = {
            letter: {name: x.detach().clone() for name, x in part.items()}
            for letter, part in self.alpha.items()
        }
        self.ensemble = rebuilt(self.ensemble, copies)

    def take_back(self) -> None:
        """The leaves as they were kept, and an optimizer that remembers nothing else."""
        with torch.no_grad():
            for letter, law in self.ensemble.laws.items():
                for name, value in law.alpha.items():
                    self.alpha[letter][name].copy_(value)
        self._begin_ascent()

    def fault(self) -> str | None:
        """What is wrong with a parameter, or the effective one it makes, and what to lower, if anything is.

        Numbers whose squares overflow count as not finite: the inputs that they make would not be.
        """
        values = {
            (letter, name): x.detach()
            for letter, law in rebuilt(self.ensemble, self.alpha).laws.items()
            for name, x in {**law.alpha, "K(1)": law.effective()}.items()
        }
        sums = torch.stack([x.square().sum() for x in values.values()])
        # One number tells that all is well, which is the usual case.
        if bool(torch.isfinite(sums.sum())):
            return None
        (letter, name), x = next(
            item for item, squares in zip(values.items(), sums, strict=True) if not bool(squares.isfinite())
        )
        return f"{name} of {letter} {grown(x)}; lower {self._rates_of(letter, name)}"

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
        """Hold the arrays that :meth:`tensors` of another run gave."""
        for path, value in tensors.items():
            head, *rest = path.split("/")
            if head == "optimizer":
                letter, name, kind = rest
                self._optimizer.state[self.alpha[letter][name]][kind] = value.clone()
            elif head in ("mu", "lam"):
                getattr(self.offsets, head).copy_(value)
            else:
                self.alpha[head][rest[0]].copy_(value)
        self.keep()

    def _leaves(self) -> list[tuple[str, str, Tensor]]:
        return [(letter, name, x) for letter, part in self.alpha.items() for name, x in part.items()]

    def _begin_ascent(self) -> None:
        self._optimizer = self.settings.build(self.ensemble.laws, self.alpha)
        self._rates = [group["lr"] for group in self._optimizer.param_groups]

    def _rates_of(self, letter: str, name: str) -> str:
        """The settings that move a parameter, with their values."""
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

    With ``offsets`` the biases give back what W really changed, Δb = −ΔW λ and Δc = −μᵀ ΔW in
    effective parameters, whatever the optimizer or a constraint made of the gradient.
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
    """Move μ and λ, in place, a little nearer to the means of the data phase."""
    offsets.mu.lerp_(v.mean(0), OFFSET_RATE)
    offsets.lam.lerp_(h.mean(0), OFFSET_RATE)


def grown(x: Tensor) -> str:
    """What became of a parameter that cannot be computed with."""
    return f"has grown to {x.abs().max():.2g}" if bool(torch.isfinite(x).all()) else "is not finite"


def _effective(law: Law, alpha: dict[str, Tensor]) -> Tensor:
    return law.with_alpha(alpha).effective()


def _shift_(law: Law, alpha: dict[str, Tensor], delta: Tensor) -> None:
    for name, value in law.with_alpha(alpha).shifted(delta).alpha.items():
        alpha[name].copy_(value)


def _require_shifts(ensemble: RestrictedBoltzmannEnsemble) -> None:
    """Binary units, and biases that can give back what W changed."""
    if ensemble.visible != "binary":
        raise ValueError("visible must be 'binary' for centered gradients, got 'real'; use centered=False")
    for name in ("b", "c"):
        law = ensemble.laws[name]
        try:
            law.shifted(torch.zeros_like(law.effective()))
        except TypeError as error:
            raise TypeError(f"{name} cannot be shifted: {error}") from None
