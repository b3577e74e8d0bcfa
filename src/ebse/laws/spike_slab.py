"""The spike-and-slab law: a connection is absent, or present with a Gaussian strength."""

from typing import Self, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ebse._tensors import as_float_tensor, same_shape
from ebse.laws.bernoulli import EPSILON, log_mixture, presence
from ebse.laws.gaussian import normal_nodes, normal_potential, standard_deviation
from ebse.laws.law import Alpha, Law, small_normal


@final
class SpikeSlab(Law):
    """K(t) = log(1 − p + p exp(t θ_bar + t² σ² / 2)): θ ~ N(θ_bar, σ²) with probability p, else 0.

    Under the tilt t it is present with probability sigmoid(logit p + t θ_bar + t² σ² / 2), and then
    N(θ_bar + t σ², σ²).

    Parameters
    ----------
    theta_bar : Tensor or float
        Mean of a connection that is present.
    p : Tensor or float
        Probability that it is present, in (0, 1). Smaller values are more noise.
    sigma : Tensor or float
        Standard deviation of a connection that is present, >= 0. Larger values are more noise.

    References
    ----------
    T. J. Mitchell and J. J. Beauchamp, "Bayesian variable selection in linear regression", 1988.

    Examples
    --------
    >>> SpikeSlab(torch.tensor([2.0]), p=0.25, sigma=1.0).mean()
    tensor([0.5000])
    """

    names = ("theta_bar", "p", "sigma")
    noise_names = ("p", "sigma")

    def __init__(self, theta_bar: Tensor | float, p: Tensor | float, sigma: Tensor | float) -> None:
        self.theta_bar, p, sigma = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar),
            p=as_float_tensor("p", p),
            sigma=as_float_tensor("sigma", sigma),
        )
        self.p = presence("p", p)
        self.sigma = standard_deviation("sigma", sigma)

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = log(1 − p + p exp(t θ_bar + t² σ² / 2))."""
        return log_mixture(torch.logit(self.p), self._slab(self.tilt(t)))

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) = θ_bar + t σ² + σ Φ⁻¹(u / q(t)) where u < q(t), else 0."""
        q = torch.sigmoid((torch.logit(self.p) + self._slab(t)).to(torch.float64))
        # Where u < q, u / q is uniform again and gives the slab; 0.5 keeps the other elements finite.
        slab = torch.special.ndtri(torch.where(u < q, u / q, 0.5)).to(self.dtype)
        return torch.where(u < q, self.theta_bar + t * self.sigma**2 + self.sigma * slab, 0.0)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep p in [ε, 1 − ε] and σ at or above 0."""
        alpha["p"].clamp_(EPSILON, 1 - EPSILON)
        alpha["sigma"].clamp_(min=0)

    @classmethod
    def start(
        cls,
        shape: tuple[int, ...],
        *,
        generator: torch.Generator,
        p: Tensor | float = 0.5,
        sigma: Tensor | float = 0.3,
    ) -> Self:
        """θ_bar ~ N(0, 0.01²), with probability p and standard deviation sigma."""
        return cls(small_normal(shape, generator=generator), p, sigma)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = −log(1 − p) on the atom 0, −log p − log N(θ; θ_bar, σ²) elsewhere."""
        logit_p = torch.logit(self.p)
        slab = normal_potential(theta, self.theta_bar, self.sigma) - logsigmoid(logit_p)
        return torch.where(theta != 0, slab, -logsigmoid(-logit_p))

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """The atom 0, and Gauss–Hermite nodes of the slab."""
        logit_p = torch.logit(self.p)
        values, log_w = normal_nodes(self.theta_bar, self.sigma, n_nodes)
        spike = torch.zeros_like(self.theta_bar).unsqueeze(0)
        log_w = torch.cat([logsigmoid(-logit_p).unsqueeze(0), log_w + logsigmoid(logit_p)])
        return torch.cat([spike, values]), log_w

    def _slab(self, t: Tensor) -> Tensor:
        """The cumulant generating function of the slab."""
        return t * self.theta_bar + (t * self.sigma) ** 2 / 2
