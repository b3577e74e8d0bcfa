"""Laws that follow their effective parameters during training.

The likelihood of binary units depends on a law through K(1) alone. Training changes K(1) as it would the
weight of an RBM, and the law is settled to it at intervals (:meth:`ebse.laws.Law.settled`).
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from torch import Tensor

from ebse.kernels.settle import settle_absence as fused_absence
from ebse.kernels.settle import settle_sigma as fused_sigma
from ebse.kernels.units import fast
from ebse.kernels.words import F32
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.laws.bernoulli import EPSILON
from ebse.training.optim.m_step import Tensors

LARGEST, LARGEST_BERNOULLI = 1e15, 80.0
"""Effective parameters beyond this count as diverged: inputs would soon overflow, and 1 − p <= exp K(1)
underflows in float32 not far below −80."""


class SettledLaw(ABC):
    """A law and its effective parameters ``x``, which the ascent changes in place."""

    def __init__(self, law: Law, share: float) -> None:
        self.law, self.share = law, share
        self.x = law.effective().detach().clone(memory_format=torch.contiguous_format)

    def is_finite(self) -> bool:
        """Whether x is finite and small enough for a law with this K(1)."""
        low, high = self.x.aminmax()
        limit = LARGEST_BERNOULLI if isinstance(self.law, Bernoulli) else LARGEST
        return max(-float(low), float(high)) < limit

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether the law can follow every x exactly."""

    @abstractmethod
    def settle(self) -> Tensor | None:
        """Let the law follow x; the change of x, if the law could not follow exactly."""

    @abstractmethod
    def current(self) -> Law:
        """The law settled to x, in memory of its own."""

    @abstractmethod
    def tensors(self) -> Tensors:
        """All arrays of the state, by name, to be written to in place."""


@final
class PlainLaw(SettledLaw):
    """The law itself is the reference that :meth:`ebse.laws.Law.settled` starts from."""

    def __init__(self, law: Law, share: float) -> None:
        # Settled to its own K(1): in memory of its own, within the constraints, in the form that settling
        # keeps.
        super().__init__(law.settled(law.effective().detach(), share=0.0), share)

    @property
    def exact(self) -> bool:
        """Only for a fixed parameter."""
        return isinstance(self.law, Point)

    def settle(self) -> Tensor | None:
        """Settle the law, and set x to its K(1)."""
        if isinstance(self.law, Point):
            return None
        settled = self.law.settled(self.x, share=self.share)
        for name, value in settled.alpha.items():
            self.law.alpha[name].copy_(value)
        change = self.law.effective() - self.x
        self.x += change
        return change

    def current(self) -> Law:
        """Settled to x."""
        return self.law.settled(self.x, share=self.share)

    def tensors(self) -> Tensors:
        """x and α."""
        return {"x": self.x, **self.law.alpha}


class _Fused(SettledLaw):
    """The noise and the K(1) it was settled at, in place, by a kernel."""

    noise: str

    def __init__(self, law: Law, share: float, amount: Tensor) -> None:
        super().__init__(law, share)
        self.reference = self.x.clone()
        self.amount = amount.detach().clone(memory_format=torch.contiguous_format)

    @property
    def exact(self) -> bool:
        """Both laws have a mean for every K(1)."""
        return True

    def is_finite(self) -> bool:
        """Whether x and the noise are finite."""
        return super().is_finite() and bool(torch.isfinite(self.amount.sum()))

    def tensors(self) -> Tensors:
        """x, K(1) at the last settling, and the noise."""
        return {"x": self.x, "reference": self.reference, self.noise: self.amount}


@final
class FusedBernoulli(_Fused):
    """1 − p beside K(1); θ_bar is computed on demand."""

    noise = "absent"

    def settle(self) -> Tensor | None:
        """Δp = κ δ C / (A² + κ C²)."""
        self._follow(self.reference, self.amount)
        return None

    def current(self) -> Law:
        """The Bernoulli law with p settled to x."""
        absent = self.amount.clone()
        self._follow(self.reference.clone(), absent)
        return Bernoulli.with_effective(self.x.clone(), absent)

    def _follow(self, reference: Tensor, absent: Tensor) -> None:
        arrays = (reference.numpy(), self.x.numpy(), absent.numpy())
        fused_absence(self.x.numel(), *arrays, F32(self.share), F32(EPSILON))


@final
class FusedGaussian(_Fused):
    """σ beside K(1)."""

    noise = "sigma"

    def settle(self) -> Tensor | None:
        """Δσ = κ δ σ / (1 + κ σ²)."""
        arrays = (self.reference.numpy(), self.x.numpy(), self.amount.numpy())
        fused_sigma(self.x.numel(), *arrays, F32(self.share))
        return None

    def current(self) -> Law:
        """The Gaussian law with σ settled to x."""
        law = self.law.with_alpha({"theta_bar": self.reference - self.amount**2 / 2, "sigma": self.amount})
        return law.settled(self.x, share=self.share)


def settled_law(law: Law, share: float, *, fused: bool = True) -> SettledLaw:
    """The state of a law: fused where there is a kernel for it, plain elsewhere."""
    if fused and len(law.shape) == 2 and fast(law.alpha[law.names[0]]):
        if isinstance(law, Gaussian):
            return FusedGaussian(law, share, law.sigma)
        if isinstance(law, Bernoulli):
            law = law.settled(law.effective().detach(), share=0.0)
            return FusedBernoulli(law, share, torch.sigmoid(-law.logit_p))
    return PlainLaw(law, share)
