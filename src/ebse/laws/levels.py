"""The law of quantized levels, such as those of synapses in neuromorphic hardware."""

from typing import Self, final

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import as_float_tensor, within
from ebse.laws.law import Alpha, Law

SMALLEST_P = 1e-6
"""Training keeps every level possible: a probability of 0 could not grow again."""


@final
class Levels(Law):
    """K(t) = log Σ_l p_l exp(t θ_bar_l): θ = θ_bar_l with probability p_l.

    Parameters
    ----------
    theta_bar : Tensor of shape (L,)
        The levels, common to all elements.
    p : Tensor of shape (..., L)
        Positive weights of the levels of each element; they are divided by their sum.

    Examples
    --------
    >>> law = Levels(torch.tensor([-1.0, 0.0, 1.0]), p=torch.tensor([[0.25, 0.5, 0.25]]))
    >>> law.mean(), law.variance()
    (tensor([0.]), tensor([0.5000]))
    """

    names = ("theta_bar", "p")
    noise_names = ("p",)
    support = "atoms"

    def __init__(self, theta_bar: Tensor, p: Tensor) -> None:
        self.theta_bar = as_float_tensor("theta_bar", theta_bar)
        p = as_float_tensor("p", p).to(self.theta_bar.dtype)
        if self.theta_bar.ndim != 1 or p.ndim == 0 or p.shape[-1] != len(self.theta_bar):
            raise ValueError(
                f"theta_bar must have shape (L,) and p shape (..., L), got "
                f"{tuple(self.theta_bar.shape)} and {tuple(p.shape)}; one probability per level"
            )
        remedy = "give each level a positive weight; they are divided by their sum"
        self.p = within("p", p, 0, float("inf"), closed=False, remedy=remedy)

    @property
    def shape(self) -> torch.Size:
        """Shape of the array θ."""
        return self.p.shape[:-1]

    def rows(self, part: slice) -> Self:
        """The law of the rows ``part`` of θ."""
        return self.with_alpha({"theta_bar": self.theta_bar, "p": self.p[part]})

    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = log Σ_l p_l exp(t θ_bar_l) − log Σ_l p_l."""
        x = self.full_tilt(t).unsqueeze(-1) * self.theta_bar
        log_p = torch.log(self.p)
        return torch.logsumexp(log_p + x, -1) - torch.logsumexp(log_p, -1)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t): the level whose interval of cumulative probability ∝ p_l exp(t θ_bar_l) contains u."""
        q = torch.softmax(torch.log(self.p) + t.unsqueeze(-1) * self.theta_bar, -1)
        # The last bound is 1 up to rounding: leaving it out keeps the index in range.
        bounds = q.to(torch.float64).cumsum(-1)[..., :-1]
        return self.theta_bar[(u.unsqueeze(-1) >= bounds).sum(-1)]

    @staticmethod
    def project_(alpha: Alpha) -> None:
        """Keep p positive, and divide it by its sum."""
        alpha["p"].clamp_(min=SMALLEST_P)
        alpha["p"].div_(alpha["p"].sum(-1, keepdim=True))

    @classmethod
    def start(
        cls,
        shape: tuple[int, ...],
        *,
        generator: torch.Generator,
        theta_bar: Tensor | None = None,
    ) -> Self:
        """Levels −1, −1/2, 0, 1/2, 1, with nearly equal probabilities."""
        if theta_bar is None:
            theta_bar = torch.linspace(-1, 1, 5, device=generator.device)
        u = rng.uniform(rng.draw_key(generator), (*shape, len(theta_bar)), device=theta_bar.device)
        alpha = {"theta_bar": theta_bar, "p": 1 + 0.05 * u.to(theta_bar.dtype)}
        cls.project_(alpha)
        return cls(**alpha)

    def potential(self, theta: Tensor) -> Tensor:
        """φ = −log p_l on level l; equal levels are one atom with the sum of their masses."""
        here = theta.unsqueeze(-1) == self.theta_bar
        log_p = torch.log(self.p)
        mass = torch.where(here, log_p, -torch.inf)
        return torch.logsumexp(log_p, -1) - torch.logsumexp(mass, -1)

    def path(self, theta: Tensor) -> Tensor:
        """θ moves with its level; equal levels divide the derivative in proportion to their masses."""
        here = theta.unsqueeze(-1) == self.theta_bar
        weight = torch.where(here, self.p, 0.0)
        weight = (weight / weight.sum(-1, keepdim=True)).detach()
        return (weight * self.theta_bar).sum(-1)

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """The levels and their probabilities."""
        log_p = torch.log_softmax(torch.log(self.p), -1).movedim(-1, 0)
        column = (-1,) + (1,) * (self.p.ndim - 1)
        return self.theta_bar.reshape(column).expand(log_p.shape), log_p

    def summary(self) -> dict[str, float]:
        """Mean entropy of the levels, in nats."""
        _, log_p = self.nodes(1)
        return {"entropy_p": float(-(log_p.exp() * log_p).detach().sum(0).mean())}
