"""The uniform law: a strength between two bounds."""

import math
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from ebse._tensors import as_float_tensor, same_shape, within
from ebse.laws.law import Alpha, Law, small_normal


def log_sinhc(x: Tensor) -> Tensor:
    """log(sinh(x) / x), an even function that is 0 at 0.

    Below |x| = 0.5 by its Taylor series (error under 1e-13 there), above by
    |x| + log(1 − exp(−2|x|)) − log(2|x|), which cannot overflow.
    """
    small = x.abs() < 0.5
    y = torch.where(small, x, 0.0) ** 2
    # Coefficients 2^(2n) B_2n / (2n (2n)!) of the series in x², n = 1 … 8.
    series = torch.zeros_like(y)
    for coefficient in reversed(_SINHC):
        series = (series + coefficient) * y
    a = torch.where(small, 1.0, x.abs())
    return torch.where(small, series, a + torch.log1p(-torch.exp(-2 * a)) - torch.log(2 * a))


_SINHC = (
    1 / 6,
    -1 / 180,
    1 / 2835,
    -1 / 37800,
    1 / 467775,
    -691 / 3831077250,
    2 / 127702575,
    -3617 / 2605132530000,
)


@final
class Uniform(Law):
    """K(t) = t θ_bar + log(sinh(tw) / tw): θ uniform in [θ_bar − w, θ_bar + w].

    Parameters
    ----------
    theta_bar : Tensor or float
        Mean.
    half_width : Tensor or float
        w, >= 0. Larger values are more noise; 0.5 is usual.

    Examples
    --------
    >>> Uniform(torch.tensor([1.0]), half_width=3.0).variance()
    tensor([3.])
    """

    names = ("theta_bar", "half_width")
    noise_names = ("half_width",)

    def __init__(self, theta_bar: Tensor | float, half_width: Tensor | float) -> None:
        self.theta_bar, half_width = same_shape(
            theta_bar=as_float_tensor("theta_bar", theta_bar),
            half_width=as_float_tensor("half_width", half_width),
        )
        remedy = "half_width is a width: pass its absolute value, or 0 for no noise"
        self.half_width = within("half_width", half_width, 0, math.inf, remedy=remedy)

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = t θ_bar + log(sinh(tw) / tw)."""
        t = self.tilt(t)
        return t * self.theta_bar + log_sinhc(t * self.half_width)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t) = θ_bar ± w (1 + log(1 − (1 − u)(1 − exp(−2x))) / x), x = abs(tw), ± the sign of t."""
        k = (t * self.half_width).abs().to(torch.float64)
        flat = k == 0
        k = torch.where(flat, 1.0, k)
        tilted = 1 + torch.log1p((1 - u) * torch.expm1(-2 * k)) / k
        x = torch.where(flat, 2 * u - 1, torch.where(t < 0, -tilted, tilted))
        return self.theta_bar + self.half_width * x.to(self.dtype)

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep the half width at or above 0."""
        alpha["half_width"].clamp_(min=0)

    @classmethod
    def start(
        cls, shape: tuple[int, ...], *, generator: torch.Generator, half_width: Tensor | float = 0.5
    ) -> Self:
        """θ_bar ~ N(0, 0.01²), the given half width."""
        return cls(small_normal(shape, generator=generator), half_width)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = log 2w between the bounds, infinite outside; its α derivative is in the path.

        A constant between the bounds: moving the bounds moves θ, not the density at a fixed u.
        """
        if not bool((self.half_width > 0).all()):
            raise ValueError(
                "half_width must be > 0 for θ to have a density, got 0; "
                "use the Point law for parameters without noise"
            )
        inside = (theta - self.theta_bar).abs() <= self.half_width * (1 + 1e-6)
        phi = torch.log(2 * self.half_width).detach()
        return torch.where(inside, phi, math.inf)

    def path(self, theta: Tensor) -> Tensor:
        """θ = θ_bar + w x with x held, so that ∂θ/∂θ_bar = 1 and ∂θ/∂w = x."""
        width = torch.where(self.half_width > 0, self.half_width, 1.0)
        held = ((theta - self.theta_bar) / width).detach()
        return self.theta_bar + self.half_width * held

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """Gauss–Legendre nodes between the bounds."""
        x, w = np.polynomial.legendre.leggauss(n_nodes)
        column = (-1,) + (1,) * self.theta_bar.ndim
        values = self.theta_bar + self.half_width * self.theta_bar.new_tensor(x).reshape(column)
        log_w = self.theta_bar.new_tensor(np.log(w / 2)).reshape(column)
        return values, log_w.expand(values.shape)

    def shifted(self, delta: Tensor) -> Self:
        """The uniform law around θ_bar + delta."""
        return self.with_alpha({"theta_bar": self.theta_bar + delta})
