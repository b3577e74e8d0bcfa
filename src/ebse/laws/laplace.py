"""The Laplace law: a peak with exponential tails."""

import math
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from ebse._tensors import as_float_tensor, same_shape, within
from ebse.laws.law import Alpha, Law, small_normal

LARGEST_SCALE = 0.99
"""Training keeps the scale below 1, where K(1), the effective weight, is infinite."""


@final
class Laplace(Law):
    """K(t) = t θ_bar − log(1 − t² s²) for abs(t) s < 1: P(θ) = exp(−abs(θ − θ_bar) / s) / 2s.

    Under the tilt t, θ − θ_bar is exponential on each side with scales s/(1 − ts) and s/(1 + ts),
    and positive with probability (1 + ts)/2.

    Parameters
    ----------
    theta_bar : Tensor or float
        Mean.
    scale : Tensor or float
        s, >= 0. Larger values are more noise; it must be below 1 for binary units, and 0.2 is usual.

    Examples
    --------
    >>> Laplace(torch.tensor([0.0]), scale=0.5).variance()
    tensor([0.5000])
    """

    names = ("theta_bar", "scale")
    noise_names = ("scale",)
    support = "real line"

    def __init__(self, theta_bar: Tensor | float, scale: Tensor | float) -> None:
        self.theta_bar, scale = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar),
            scale=as_float_tensor("scale", scale),
        )
        remedy = "scale is a width: pass its absolute value, or 0 for no noise"
        self.scale = within("scale", scale, 0, math.inf, remedy=remedy)

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = t θ_bar − log(1 − ts) − log(1 + ts)."""
        t = self.tilt(t)
        ts = self._finite(t)
        return t * self.theta_bar - torch.log1p(-ts) - torch.log1p(ts)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) by the inverse of its distribution function, q = (1 + ts)/2 of it above θ_bar.

        θ_bar − s/(1 − ts) log(u/q) where u < q, else θ_bar + s/(1 + ts) log((1 − u)/(1 − q)).
        """
        ts = self._finite(t)
        q = (1 + ts.to(torch.float64)) / 2
        above = -self.scale / (1 - ts) * torch.log(torch.where(u < q, u / q, 1.0))
        below = self.scale / (1 + ts) * torch.log(torch.where(u < q, 1.0, (1 - u) / (1 - q)))
        return (self.theta_bar + torch.where(u < q, above, below)).to(self.dtype)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep the scale in [0, 0.99]."""
        alpha["scale"].clamp_(0, LARGEST_SCALE)

    @classmethod
    def start(
        cls, shape: tuple[int, ...], *, generator: torch.Generator, scale: Tensor | float = 0.2
    ) -> Self:
        """θ_bar ~ N(0, 0.01²), the given scale."""
        return cls(small_normal(shape, generator=generator), scale)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = abs(θ − θ_bar) / s + log 2s."""
        if not bool((self.scale > 0).all()):
            raise ValueError(
                "scale must be > 0 for θ to have a density, got 0; "
                "use the Point law for parameters without noise"
            )
        return (theta - self.theta_bar).abs() / self.scale + torch.log(2 * self.scale)

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """Gauss–Laguerre nodes on either side of θ_bar, n_nodes in all."""
        x, w = np.polynomial.laguerre.laggauss(max(n_nodes // 2, 1))
        column = (-1,) + (1,) * self.theta_bar.ndim
        both = self.theta_bar.new_tensor(np.concatenate([-x[::-1], x])).reshape(column)
        log_w = self.theta_bar.new_tensor(np.log(np.concatenate([w[::-1], w]) / 2)).reshape(column)
        values = self.theta_bar + self.scale * both
        return values, log_w.expand(values.shape)

    def shifted(self, delta: Tensor) -> Self:
        """The Laplace law around θ_bar + delta."""
        return self.with_alpha({"theta_bar": self.theta_bar + delta})

    def _finite(self, t: Tensor) -> Tensor:
        """The product ts, where K(t) is finite."""
        ts = t * self.scale
        infinite = ~(ts.abs() < 1)
        if bool(infinite.any()):
            scale = self.scale.expand(ts.shape)[infinite].flatten()[0].item()
            tilt = t.expand(ts.shape)[infinite].flatten()[0].item()
            raise ValueError(
                f"E[exp(tθ)] of a Laplace law is infinite where |t| * scale >= 1, "
                f"got scale = {scale:g} at t = {tilt:g}; lower scale below {1 / abs(tilt):g}"
            )
        return ts
