"""The Gaussian law of appendix A: a connection of normally distributed strength."""

import math
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from ebse._tensors import as_float_tensor, same_shape, within
from ebse.laws.law import Alpha, Law, small_normal


def standard_deviation(name: str, sigma: Tensor) -> Tensor:
    """``sigma`` as standard deviations, checked."""
    return within(
        name,
        sigma,
        0,
        math.inf,
        remedy=f"{name} is a standard deviation: pass its absolute value, or 0 for no noise",
    )


def normal_potential(theta: Tensor, theta_bar: Tensor, sigma: Tensor) -> Tensor:
    """φ = ((θ − θ_bar)/σ)²/2 + log σ + log(2π)/2."""
    if not bool((sigma > 0).all()):
        raise ValueError(
            "sigma must be > 0 for θ to have a density, got 0; use the Point law for parameters without noise"
        )
    return ((theta - theta_bar) / sigma) ** 2 / 2 + torch.log(sigma) + math.log(2 * math.pi) / 2


def normal_nodes(theta_bar: Tensor, sigma: Tensor, n_nodes: int) -> tuple[Tensor, Tensor]:
    """Gauss–Hermite nodes and log weights of N(θ_bar, σ²)."""
    x, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    column = (-1,) + (1,) * theta_bar.ndim
    nodes = theta_bar + sigma * theta_bar.new_tensor(x).reshape(column)
    log_w = theta_bar.new_tensor(np.log(w / w.sum())).reshape(column)
    return nodes, log_w.expand(nodes.shape)


@final
class Gaussian(Law):
    """K(t) = t θ_bar + t² σ² / 2: θ ~ N(θ_bar, σ²).

    Under the tilt t it is N(θ_bar + t σ², σ²)  (A5).

    Parameters
    ----------
    theta_bar : Tensor or float
        Mean.
    sigma : Tensor or float
        Standard deviation, >= 0. Larger values are more noise; 0.3 is usual.

    Examples
    --------
    >>> law = Gaussian(torch.tensor([1.0]), sigma=2.0)
    >>> law.log_mgf(1.0), law.mean(1.0)
    (tensor([3.]), tensor([5.]))
    """

    names = ("theta_bar", "sigma")
    noise_names = ("sigma",)
    support = "real line"

    def __init__(self, theta_bar: Tensor | float, sigma: Tensor | float) -> None:
        self.theta_bar, sigma = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar),
            sigma=as_float_tensor("sigma", sigma),
        )
        self.sigma = standard_deviation("sigma", sigma)

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = t θ_bar + t² σ² / 2."""
        t = self.tilt(t)
        return t * self.theta_bar + (t * self.sigma) ** 2 / 2

    def mean(self, t: Tensor | float = 0.0) -> Tensor:
        """K′(t) = θ_bar + t σ²."""
        return self.theta_bar + self.tilt(t) * self.sigma**2

    def variance(self, t: Tensor | float = 0.0) -> Tensor:
        """K″(t) = σ²."""
        return (self.sigma**2).expand(self.full_tilt(t).shape)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) = θ_bar + t σ² + σ Φ⁻¹(u)."""
        xi: Tensor = torch.special.ndtri(u)
        return self.mean(t) + self.sigma * xi.to(self.dtype)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep σ at or above 0."""
        alpha["sigma"].clamp_(min=0)

    @classmethod
    def start(
        cls, shape: tuple[int, ...], *, generator: torch.Generator, sigma: Tensor | float = 0.3
    ) -> Self:
        """θ_bar ~ N(0, 0.01²), standard deviation sigma."""
        return cls(small_normal(shape, generator=generator), sigma)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = ((θ − θ_bar)/σ)²/2 + log σ + log(2π)/2."""
        return normal_potential(theta, self.theta_bar, self.sigma)

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """Gauss–Hermite nodes, exact for polynomials up to degree 2 n_nodes − 1."""
        return normal_nodes(self.theta_bar, self.sigma, n_nodes)

    def settled(self, effective: Tensor, *, share: float = 1.0) -> Self:
        """Δσ = κ δ σ / (1 + κ σ²), and θ_bar = K(1) − σ²/2."""
        delta, sigma = effective - self.effective(), self.sigma
        sigma = (sigma + share * delta * sigma / (1 + share * sigma**2)).clamp(min=0)
        return self.with_alpha({"theta_bar": effective - sigma**2 / 2, "sigma": sigma})

    def shifted(self, delta: Tensor) -> Self:
        """N(θ_bar + delta, σ²)."""
        return self.with_alpha({"theta_bar": self.theta_bar + delta})
