"""The Bernoulli law of appendix A (DropConnect): a connection is present with probability p, or absent."""

from typing import Self, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from ebse._tensors import as_float_tensor, same_shape, within
from ebse.laws.law import Alpha, Law, small_normal

EPSILON = 1e-4
"""Training keeps p in [ε, 1 − ε] (end of appendix B), so that no connection becomes deterministic."""


def log_mixture(logit_p: Tensor, x: Tensor) -> Tensor:
    """log(1 − p + p e^x) for p = sigmoid(logit_p), exactly 0 at x = 0.

    softplus(l + x) − softplus(l) cancels where l is large and positive, as after a gauge transformation;
    there the same identity is written for the other branch of softplus.
    """
    low = log1p_exp(logit_p + x) - log1p_exp(logit_p)
    high = x + log1p_exp(-logit_p - x) - log1p_exp(-logit_p)
    return torch.where(logit_p > 0, high, low)


def log1p_exp(x: Tensor) -> Tensor:
    """log(1 + e^x), also beyond 20, where the default of torch returns x (an error of 2e-9)."""
    return softplus(x, threshold=50)


def presence(name: str, p: Tensor) -> Tensor:
    """``p`` as probabilities of presence, checked."""
    remedy = (
        "p is the probability that a connection is present: use the Point law for p = 1 (or 0, with zeros)"
    )
    return within(name, p, 0, 1, closed=False, remedy=remedy)


def settle_absence(before: Tensor, after: Tensor, absent: Tensor, share: float) -> Tensor:
    """1 − p once K(1) went from ``before`` to ``after``: Δp = κ δ C / (A² + κ C²), with p and q(1) >= ε.

    p is at most 1 − ε, too, except where K(1) is too far below 0 for that: it cannot be less than log(1 − p).
    """
    x, p = torch.exp(-before), 1 - absent
    A, C = 1 - absent * x, (1 - x) / p
    absent = absent - share * (after - before) * C / (A**2 + share * C**2)
    most = (1 - EPSILON) * torch.exp(after.clamp(max=0))
    return torch.minimum(torch.maximum(absent, most.clamp(max=EPSILON)), most)


@final
class Bernoulli(Law):
    """K(t) = log(1 − p + p exp(t θ_bar)): θ = θ_bar with probability p, else 0 (DropConnect).

    Under the tilt t the connection is present with probability q(t) = sigmoid(logit p + t θ_bar)  (A4).

    Parameters
    ----------
    theta_bar : Tensor or float
        Strength of a connection that is present.
    p : Tensor or float
        Probability that it is present, in (0, 1). Smaller values are more noise; 0.5 is usual.

    References
    ----------
    L. Wan, M. Zeiler, S. Zhang, Y. LeCun and R. Fergus, "Regularization of neural networks using
    DropConnect", 2013.

    Examples
    --------
    >>> law = Bernoulli(torch.tensor([1.0]), p=0.5)
    >>> law.mean()
    tensor([0.5000])
    >>> law.mean(t=1.0)
    tensor([0.7311])

    Notes
    -----
    A gauge transformation returns the logit of p, because p itself rounds to 1 where the effective weight is
    very negative. The α of such a law are (theta_bar, logit_p), and it is trained in them.
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
        """The law with p = sigmoid(logit_p)."""
        law = cls.__new__(cls)
        law.names, law.noise_names = ("theta_bar", "logit_p"), ("logit_p",)
        law.theta_bar, law.logit_p = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar), logit_p=as_float_tensor("logit_p", logit_p)
        )
        return law

    @property
    def p(self) -> Tensor:
        """Probability that the connection is present."""
        return torch.sigmoid(self._presence) if "logit_p" in self.names else self._presence

    @p.setter
    def p(self, p: Tensor) -> None:
        self._presence = torch.logit(p) if "logit_p" in self.names else p

    @property
    def logit_p(self) -> Tensor:
        """log p − log(1 − p)."""
        return self._presence if "logit_p" in self.names else torch.logit(self._presence)

    @logit_p.setter
    def logit_p(self, logit_p: Tensor) -> None:
        self._presence = logit_p if "logit_p" in self.names else torch.sigmoid(logit_p)

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
        """Keep p in [ε, 1 − ε]; any logit is allowed."""
        if "p" in alpha:
            alpha["p"].clamp_(EPSILON, 1 - EPSILON)

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator, p: Tensor | float = 0.5) -> Self:
        """θ_bar ~ N(0, 0.01²), with probability p."""
        return cls(small_normal(shape, generator=generator), p)

    def settled(self, effective: Tensor, *, share: float = 1.0) -> Self:
        """Δp = κ δ C / (A² + κ C²) with A = q(1), C = (1 − e^−K(1)) / p; θ_bar follows from K(1) and p.

        No θ_bar gives an effective weight below log(1 − p): p is raised until q(1) reaches ε. The law stores
        the logit of p, because p itself may round to 1.
        """
        absent = settle_absence(self.effective(), effective, torch.sigmoid(-self.logit_p), share)
        return self.with_effective(effective, absent)

    @classmethod
    def with_effective(cls, effective: Tensor, absent: Tensor) -> Self:
        """The law with 1 − p = ``absent`` and K(1) = ``effective``.

        θ_bar = K(1) + log(1 − (1 − p) e^−K(1)) − log p.
        """
        log_p, log_absent = torch.log1p(-absent), torch.log(absent)
        log_q = torch.log(-torch.expm1(log_absent - effective))
        return cls.from_logit(effective + log_q - log_p, log_p - log_absent)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = −log p on θ_bar, −log(1 − p) on 0, infinite elsewhere; one atom of mass 1 if θ_bar = 0."""
        atom = torch.where(theta == 0, -logsigmoid(-self.logit_p), torch.inf)
        phi = torch.where(theta == self.theta_bar, -logsigmoid(self.logit_p), atom)
        return torch.where((self.theta_bar == 0) & (theta == 0), 0.0, phi)

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
        """Mean of p, and mean entropy of the Bernoulli variable, in nats."""
        p, logit_p = self.p.detach(), self.logit_p.detach()
        entropy = -(p * logsigmoid(logit_p) + (1 - p) * logsigmoid(-logit_p))
        return {"mean_p": float(p.mean()), "entropy_p": float(entropy.mean())}
