"""The interface of a law of weights: its cumulant generating function, and what follows from it.

Section 2.2 and appendix A, for any factorized law. A law depends on the tilt t, never on v or h.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor

from ebse import rng

Alpha = dict[str, Tensor]
Support = Literal["real line", "atoms", "other"]


class Law(ABC):
    """K(t) = log E[exp(tθ)]: the law P(θ; α) of an array of independent random parameters.

    Everything that an ensemble needs follows from K, elementwise:

    - the interaction with θ integrated out: ∫ P(θ; α) exp(tθ) dθ = exp K(t), K(0) = 0;
    - the tilted law, the posterior of a parameter given the units: P(θ; α) exp(tθ − K(t))  (A2 to A5);
    - its mean K′(t) and variance K″(t);
    - the expected score E[∂φ/∂α | t] = −∂K(t; α)/∂α  (Eq. 6, B2, B6).

    A new law is a class with ``names`` (of its α, stored under these names; ``noise_names`` for those
    that a noise rate should apply to), ``log_mgf``, ``draw``, ``project_`` and ``start``. No gradient is
    written by hand: autograd of ``log_mgf`` is exact. Energies that are not linear in θ also need
    ``potential``, ``path`` and ``nodes``. The symmetric law of random signs, K(t) = log cosh(t θ_bar):

    >>> class Signs(Law):
    ...     names = ("theta_bar",)
    ...
    ...     def __init__(self, theta_bar):
    ...         self.theta_bar = theta_bar
    ...
    ...     def log_mgf(self, t):
    ...         x = self.tilt(t) * self.theta_bar  # t as a tensor of the law's type
    ...         return torch.logaddexp(x, -x) - torch.tensor(2.0).log()
    ...
    ...     def draw(self, t, u):  # u is uniform in (0, 1), float64
    ...         above = u < torch.sigmoid(2 * t * self.theta_bar)
    ...         return torch.where(above, self.theta_bar, -self.theta_bar)
    ...
    ...     @staticmethod
    ...     def project_(alpha):
    ...         alpha["theta_bar"].clamp_(min=0)
    ...
    ...     @classmethod
    ...     def start(cls, shape, *, generator):
    ...         return cls(torch.ones(shape))
    >>> Signs(torch.tensor([2.0])).mean(t=0.5)
    tensor([1.5232])
    """

    names: tuple[str, ...]
    """Names of α, means first."""
    noise_names: tuple[str, ...] = ()
    """Those of α that set the amount of noise; the others set the location."""
    random: ClassVar[bool] = True
    """Whether θ is random: not if its samples equal its mean under every tilt."""
    support: ClassVar[Support] = "other"
    """The support of θ: a density on the real line, finitely many atoms, or something else."""

    @property
    def alpha(self) -> Alpha:
        """α by name."""
        return {name: getattr(self, name) for name in self.names}

    @property
    def _first(self) -> Tensor:
        value: Tensor = getattr(self, self.names[0])
        return value

    @property
    def shape(self) -> torch.Size:
        """Shape of the array θ."""
        return self._first.shape

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of α and of θ."""
        return self._first.dtype

    @property
    def device(self) -> torch.device:
        """Device of α and of θ."""
        return self._first.device

    @abstractmethod
    def log_mgf(self, t: Tensor | float) -> Tensor:
        """K(t) = log E[exp(tθ)], elementwise; t broadcasts against the law's shape."""

    @abstractmethod
    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        """θ(u; t): u, uniform in (0, 1), mapped to a sample of the law tilted by t, in the shape of both."""

    @staticmethod
    @abstractmethod
    def project_(alpha: Alpha) -> None:
        """Project α, in place, onto the constraints of training."""

    @classmethod
    @abstractmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator) -> Self:
        """The initial law of training: small random means and moderate noise."""

    def mean(self, t: Tensor | float = 0.0) -> Tensor:
        """E[θ | t] = K′(t)."""
        return self._derivatives(t)[0]

    def variance(self, t: Tensor | float = 0.0) -> Tensor:
        """Var[θ | t] = K″(t)."""
        return self._derivatives(t)[1]

    def sample(self, t: Tensor | float = 0.0, *, generator: torch.Generator) -> Tensor:
        """Sample θ ~ P(θ; α) exp(tθ − K(t)) in the shape of t; t = 0 is the law itself."""
        t = self.full_tilt(t)
        return self.draw(t, rng.uniform(rng.draw_key(generator), tuple(t.shape), device=t.device))

    def effective(self) -> Tensor:
        """K(1), the effective parameter: P(v, h) of binary units depends on the law through it alone."""
        return self.log_mgf(1.0)

    def potential(self, theta: Tensor) -> Tensor:
        """φ(θ; α) = −log P(θ; α), elementwise: a density, or the mass of an atom (Eq. 2)."""
        raise TypeError(
            f"{type(self).__name__} has no potential φ; define potential(theta) to use this law "
            "with an energy that is not linear in θ"
        )

    def path(self, theta: Tensor) -> Tensor:
        """The value of θ, with ∂θ/∂α for those of α that move the support (atoms, bounds)."""
        return theta

    def nodes(self, n_nodes: int) -> tuple[Tensor, Tensor]:
        """Values ``(G, *shape)`` and log weights with Σ_g w_g f(θ_g) ≈ E[f(θ)], exact for atoms."""
        raise TypeError(
            f"{type(self).__name__} has no quadrature; define nodes(n_nodes) to sum over θ exactly"
        )

    def shifted(self, delta: Tensor) -> Self:
        """The law of θ + delta, whose K(1) is larger by delta."""
        raise TypeError(
            f"{type(self).__name__} has no law of θ + delta in its family; "
            "use point, Gaussian, Laplace or uniform biases with centered gradients"
        )

    def settled(self, effective: Tensor, *, share: float = 1.0) -> Self:
        """Δα = κ δ A / Σ κ A², A = ∂K(1)/∂α: the law near this one whose K(1) is ``effective``.

        The smallest change of α that changes K(1) by δ, where a squared change of noise costs 1/κ times as
        much as one of a mean. Laws with a closed form reach δ exactly, others to first order; all stay
        within the constraints of training.

        Parameters
        ----------
        effective : Tensor
            The new K(1), in the shape of the law.
        share : float, default=1.0
            κ. Larger values change the noise more and the means less; 0 keeps the noise.
        """
        with torch.enable_grad():
            alpha = {name: x.detach().clone().requires_grad_() for name, x in self.alpha.items()}
            now = self.with_alpha(alpha).effective()
            slopes = torch.autograd.grad(now.sum(), list(alpha.values()), allow_unused=True)
        # Parameters common to several elements cannot follow one of them.
        own = {
            name: (share if name in self.noise_names else 1.0, A)
            for (name, x), A in zip(alpha.items(), slopes, strict=True)
            if A is not None and x.shape[: len(self.shape)] == self.shape
        }
        squares = sum(kappa * _inner(A**2, self.shape) for kappa, A in own.values())
        delta = (effective - now.detach()) / torch.clamp(torch.as_tensor(squares), min=1e-12)
        moved = {name: x.detach() for name, x in alpha.items()}
        for name, (kappa, A) in own.items():
            moved[name] += kappa * A * delta.reshape(delta.shape + (1,) * (A.ndim - delta.ndim))
        self.project_(moved)
        return self.with_alpha(moved)

    def with_noise(
        self, noise: float | None = None, /, *, p: float | None = None, sigma: float | None = None
    ) -> Law:
        """The Bernoulli law (``p``) or Gaussian law (``sigma``) with the same K(1): a gauge transformation.

        P(v, h) of binary units depends on a law only through K(1), so that it does not change: the noise is a
        gauge, a choice without effect on the distribution of the units. A Bernoulli or Gaussian law takes its
        own kind of noise without the keyword. Where K(1) < 0, p of that element is
        raised so that q(1), its probability under the tilt 1, is the given p.

        >>> from ebse.laws import Point
        >>> law = Point(torch.tensor([-3.0, 0.5])).with_noise(p=0.1)
        >>> law
        Bernoulli(shape=(2,), theta_bar=-1.62, logit_p=0.431)
        >>> law.effective()
        tensor([-3.0000,  0.5000])
        """
        # That module imports laws that import this one.
        from ebse.laws.gauge import regauged

        return regauged(self, noise, p=p, sigma=sigma)

    def summary(self) -> dict[str, float]:
        """Mean of each noise parameter, by name."""
        return {f"mean_{name}": float(self.alpha[name].detach().mean()) for name in self.noise_names}

    def with_alpha(self, alpha: Alpha) -> Self:
        """The law of the same family with other α, without checks."""
        law = copy.copy(self)
        for name, value in alpha.items():
            setattr(law, name, value)
        return law

    def rows(self, part: slice) -> Self:
        """The law of the rows ``part`` of θ."""
        return self.with_alpha({name: value[part] for name, value in self.alpha.items()})

    def tilt(self, t: Tensor | float) -> Tensor:
        """The tilt t as a tensor of the law's type that broadcasts against its shape."""
        first, shape = self._first, self.shape
        if not isinstance(t, Tensor) or t.dtype != first.dtype:
            t = torch.as_tensor(t, dtype=first.dtype, device=first.device)
        # Compared axis by axis only where needed: this is called for every expression in K.
        if t.shape[-len(shape) :] != shape and not _broadcasts(t.shape, shape):
            raise ValueError(
                f"t must broadcast against the law's shape {tuple(shape)}, got {tuple(t.shape)}; "
                "its last axes must match the law's"
            )
        return t

    def full_tilt(self, t: Tensor | float) -> Tensor:
        """The tilt t expanded to ``(..., *shape)``."""
        t = self.tilt(t)
        if t.shape[t.ndim - len(self.shape) :] == self.shape:
            return t
        return t.expand(np.broadcast_shapes(tuple(t.shape), tuple(self.shape)))

    def _derivatives(self, t: Tensor | float) -> tuple[Tensor, Tensor]:
        """K′(t) and K″(t) by autograd, differentiable again where gradients are recorded."""
        t = self.full_tilt(t)
        recorded = [t, *self.alpha.values()]
        again = torch.is_grad_enabled() and any(x.requires_grad for x in recorded)
        # Inside inference mode autograd is off, and tensors made there cannot be recorded: copies can.
        with torch.inference_mode(False), torch.enable_grad():
            t = t.clone()
            t = t if t.requires_grad else t.requires_grad_()
            law = self
            if any(x.is_inference() for x in recorded):
                law = self.with_alpha({name: x.clone() for name, x in self.alpha.items()})
            first = self._slope(law.log_mgf(t), t)
            second = self._slope(first, t)
        return (first, second) if again else (first.detach(), second.detach())

    @staticmethod
    def _slope(y: Tensor, t: Tensor) -> Tensor:
        if not y.requires_grad:
            return torch.zeros_like(t)
        (slope,) = torch.autograd.grad(y.sum(), t, create_graph=True, allow_unused=True)
        return torch.zeros_like(t) if slope is None else slope

    def __repr__(self) -> str:
        alpha = ", ".join(f"{name}={value.mean().item():.3g}" for name, value in self.alpha.items())
        return f"{type(self).__name__}(shape={tuple(self.shape)}, {alpha})"


def _inner(x: Tensor, shape: torch.Size) -> Tensor:
    """x summed over the axes after those of ``shape``."""
    return x.flatten(len(shape)).sum(-1) if x.ndim > len(shape) else x


def _broadcasts(a: torch.Size, b: torch.Size) -> bool:
    return all(m == n or m == 1 or n == 1 for m, n in zip(a[::-1], b[::-1], strict=False))


def small_normal(shape: tuple[int, ...], *, generator: torch.Generator) -> Tensor:
    """Initial means, N(0, 0.01²) (Hinton, "A practical guide to training RBMs", 2010)."""
    u = rng.uniform(rng.draw_key(generator), shape, device=generator.device)
    means: Tensor = 0.01 * torch.special.ndtri(u)
    return means.to(torch.get_default_dtype())
