"""The law of a parameter that is not random, as in a plain restricted Boltzmann machine."""

from typing import Self, final

import torch
from torch import Tensor

from ebse._tensors import as_float_tensor
from ebse.laws.law import Alpha, Law, small_normal


@final
class Point(Law):
    """K(t) = t θ_bar: θ = θ_bar with probability 1.

    Parameters
    ----------
    theta_bar : Tensor or float
        The value.

    Examples
    --------
    >>> Point(torch.tensor([0.5, -1.0])).log_mgf(2.0)
    tensor([ 1., -2.])
    """

    names = ("theta_bar",)
    random = False
    support = "atoms"

    def __init__(self, theta_bar: Tensor | float) -> None:
        self.theta_bar = as_float_tensor("theta_bar", theta_bar)

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = t θ_bar."""
        return self.tilt(t) * self.theta_bar

    def mean(self, t: Tensor | float = 0.0) -> Tensor:
        """K′(t) = θ_bar."""
        if not isinstance(t, Tensor):
            return self.theta_bar
        return self.theta_bar.expand(self.full_tilt(t).shape)

    def variance(self, t: Tensor | float = 0.0) -> Tensor:
        """K″(t) = 0."""
        return torch.zeros_like(self.full_tilt(t))

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) = θ_bar."""
        return self.theta_bar.expand(t.shape)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Any θ_bar is allowed."""

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator) -> Self:
        """θ_bar ~ N(0, 0.01²)."""
        return cls(small_normal(shape, generator=generator))

    def potential(self, theta: Tensor) -> Tensor:
        """φ(θ) = −log 1 = 0 on the one atom, infinite elsewhere."""
        return torch.where(theta == self.theta_bar, 0.0, torch.inf)

    def path(self, theta: Tensor) -> Tensor:
        """The atom moves with θ_bar."""
        return self.theta_bar.expand(theta.shape)

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """The atom itself, with weight 1."""
        return self.theta_bar.unsqueeze(0), torch.zeros_like(self.theta_bar).unsqueeze(0)

    def settled(self, effective: Tensor, *, share: float = 1.0) -> Self:
        """The atom at ``effective``."""
        return self.with_alpha({"theta_bar": effective.clone()})

    def shifted(self, delta: Tensor) -> Self:
        """The atom at θ_bar + delta."""
        return self.with_alpha({"theta_bar": self.theta_bar + delta})
