"""The Bernoulli law of appendix A: a connection is present with probability p, or absent."""

from typing import Self, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from ebse.arguments import as_float_tensor, same_shape, within
from ebse.laws.law import Alpha, Law, small_normal

EPSILON = 1e-4
"""Training keeps p in [ε, 1 − ε] (end of appendix B), so that no connection becomes certain."""


def log_mixture(logit_p: Tensor, x: Tensor) -> Tensor:
    """log(1 − p + p e^x) for p = sigmoid(logit_p), exactly 0 at x = 0.

    softplus(l + x) − softplus(l) cancels where l is large and positive, as a gauge transformation
    makes it; there the same identity is written for the other branch of softplus.
    """
    low = softplus(logit_p + x) - softplus(logit_p)
    high = x + softplus(-logit_p - x) - softplus(-logit_p)
    return torch.where(logit_p > 0, high, low)


def presence(name: str, p: Tensor) -> Tensor:
    """``p`` as probabilities of presence, checked."""
    remedy = "p is the probability that a connection is present: use the Point law for p = 1"
    return within(name, p, 0, 1, closed=False, remedy=remedy)


@final
class Bernoulli(Law):
    """θ = θ_bar with probability p, else 0: K(t) = log(1 − p + p exp(t θ_bar)).

    Tilted by t, the connection is present with q(t) = sigmoid(logit p + t θ_bar)  (A4).

    >>> law = Bernoulli(torch.tensor([1.0]), p=0.5)
    >>> law.mean()
    tensor([0.5000])
    >>> law.mean(t=1.0)
    tensor([0.7311])

    Notes
    -----
    The law keeps the logit of p where a gauge transformation supplied it: p itself rounds to 1
    where the effective weight is very negative.
    """

    names = ("theta_bar", "p")
    noise_names = ("p",)
    support = "atoms"

    def __init__(self, theta_bar: Tensor | float, p: Tensor | float) -> None:
        self.theta_bar, p = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar), p=as_float_tensor("p", p)
        )
        self.p = presence("p", p)

    @classmethod
    def from_logit(cls, theta_bar: Tensor, logit_p: Tensor) -> Self:
        """The law with presence sigmoid(logit_p)."""
        law = cls.__new__(cls)
        law.theta_bar, law._logit_p = same_shape(theta_bar=theta_bar, logit_p=logit_p)
        return law

    @property
    def p(self) -> Tensor:
        """Probability that the connection is present."""
        return self._p if self._logit_p is None else torch.sigmoid(self._logit_p)

    @p.setter
    def p(self, p: Tensor) -> None:
        self._p = p
        self._logit_p: Tensor | None = None

    @property
    def logit_p(self) -> Tensor:
        """log p − log(1 − p)."""
        return torch.logit(self._p) if self._logit_p is None else self._logit_p

    def rows(self, part: slice) -> Self:
        """The law of the rows ``part`` of θ."""
        if self._logit_p is None:
            return super().rows(part)
        return self.from_logit(self.theta_bar[part], self._logit_p[part])

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = log(1 − p + p exp(t θ_bar))."""
        return log_mixture(self.logit_p, self.tilt(t) * self.theta_bar)

    def tilted_presence(self, t: Tensor | float) -> Tensor:
        """q(t) = sigmoid(logit p + t θ_bar), the probability of presence under the tilt."""
        return torch.sigmoid(self.logit_p + self.tilt(t) * self.theta_bar)

    def mean(self, t: Tensor | float = 0.0) -> Tensor:
        """K′(t) = θ_bar q(t)."""
        return self.theta_bar * self.tilted_presence(t)

    def variance(self, t: Tensor | float = 0.0) -> Tensor:
        """K″(t) = θ_bar² q(t) (1 − q(t))."""
        x = self.logit_p + self.tilt(t) * self.theta_bar
        return self.theta_bar**2 * torch.sigmoid(x) * torch.sigmoid(-x)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) = θ_bar where u < q(t), else 0."""
        return torch.where(u < self.tilted_presence(t), self.theta_bar, 0.0)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep p in [ε, 1 − ε]."""
        alpha["p"].clamp_(EPSILON, 1 - EPSILON)

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator, p: Tensor | float = 0.5) -> Self:
        """θ_bar ~ N(0, 0.01²), presence p."""
        return cls(small_normal(shape, generator=generator), p)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = −log p on θ_bar and −log(1 − p) on 0; where θ_bar = 0 they are one atom of mass 1."""
        present = -logsigmoid(self.logit_p)
        absent = -logsigmoid(-self.logit_p)
        phi = torch.where(theta != 0, present, absent)
        return torch.where(self.theta_bar == 0, 0.0, phi)

    def path(self, theta: Tensor) -> Tensor:
        """θ = θ_bar z moves with θ_bar where the connection is present (z = 1).

        Where θ_bar = 0 both atoms coincide and z given θ has its mean p.
        """
        z = torch.where(self.theta_bar == 0, self.p, (theta != 0).to(self.dtype)).detach()
        return self.theta_bar * z

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """The atoms 0 and θ_bar with weights 1 − p and p."""
        values = torch.stack([torch.zeros_like(self.theta_bar), self.theta_bar])
        return values, torch.stack([logsigmoid(-self.logit_p), logsigmoid(self.logit_p)])

    def summary(self) -> dict[str, float]:
        """Mean of p and mean entropy of presence, in nats."""
        p = self.p.detach()
        entropy = -(p * logsigmoid(self.logit_p) + (1 - p) * logsigmoid(-self.logit_p))
        return {"mean_p": float(p.mean()), "entropy_p": float(entropy.mean())}
