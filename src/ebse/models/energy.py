"""General energy-based stochastic ensembles: Eq. 1 to 6, for custom energies.

P(v, h, θ; α) = P(θ; α) exp(−E(v, h, θ)) / ζ(α), with binary v and h and a factorized law of θ.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import final

import numpy as np
import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import units
from ebse._validation import count
from ebse.laws import Law

Parameters = dict[str, Tensor]
Statistics = Callable[[Tensor, Tensor], Mapping[str, Tensor]]
Energy = Callable[[Tensor, Tensor, Parameters], Tensor]


@final
class LinearEnsemble:
    """E(v, h, θ) = −⟨θ, s(v, h)⟩: an ensemble of energies that are linear in θ.

    θ is integrated out in closed form, with the tilt s(v, h) of each law.

    Parameters
    ----------
    statistics : callable
        s: maps v (..., D) and h (..., K) to one array ``(..., *shape)`` for each law, by name.
    laws : mapping of str to Law
        The law of each parameter array, by name.
    n_visible, n_hidden : int
        D and K.

    Examples
    --------
    A machine with additional connections between visible units:

    >>> from ebse.laws import Gaussian, Point
    >>> def statistics(v, h):
    ...     return {"W": v[..., :, None] * h[..., None, :], "L": v[..., :-1] * v[..., 1:]}
    >>> laws = {"W": Gaussian(torch.zeros(3, 2), 0.3), "L": Point(torch.ones(2))}
    >>> ensemble = LinearEnsemble(statistics, laws, n_visible=3, n_hidden=2)
    >>> ensemble.log_weight(torch.ones(3), torch.zeros(2))
    tensor(2.)
    """

    def __init__(
        self, statistics: Statistics, laws: Mapping[str, Law], *, n_visible: int, n_hidden: int
    ) -> None:
        self.statistics = statistics
        self.laws = checked_laws(laws)
        self.D = count("n_visible", n_visible)
        self.K = count("n_hidden", n_hidden, least=0)
        self._checked(torch.zeros(self.D), torch.zeros(self.K))

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of the parameters."""
        return next(iter(self.laws.values())).dtype

    def energy(self, v: Tensor, h: Tensor, theta: Parameters) -> Tensor:
        """E(v, h, θ) = −⟨θ, s(v, h)⟩."""
        s = self._checked(v, h)
        return -sum_of(law_sum(law, theta[name] * s[name]) for name, law in self.laws.items())

    def log_weight(self, v: Tensor, h: Tensor) -> Tensor:
        """log ∫ P(θ; α) exp⟨θ, s(v, h)⟩ dθ = Σ K(s(v, h))."""
        s = self._checked(v, h)
        return sum_of(law_sum(law, law.log_mgf(s[name])) for name, law in self.laws.items())

    def mean_theta_given_vh(self, v: Tensor, h: Tensor) -> Parameters:
        """E[θ | v, h] = K′(s(v, h))."""
        s = self._checked(v, h)
        return {name: law.mean(s[name]) for name, law in self.laws.items()}

    def sample_theta_given_vh(self, v: Tensor, h: Tensor, *, generator: torch.Generator) -> Parameters:
        """Sample θ ~ P(θ | v, h), each law tilted by its s(v, h)."""
        s = self._checked(v, h)
        return draw_laws(self.laws, s, rng.draw_key(generator))

    def with_laws(self, **laws: Law) -> "LinearEnsemble":
        """The ensemble with some of its laws exchanged."""
        return LinearEnsemble(self.statistics, {**self.laws, **laws}, n_visible=self.D, n_hidden=self.K)

    def _checked(self, v: Tensor, h: Tensor) -> dict[str, Tensor]:
        v = units("v", v, self.D, dtype=self.dtype)
        h = units("h", h, self.K, dtype=self.dtype)
        s = dict(self.statistics(v, h))
        if set(s) != set(self.laws):
            raise ValueError(
                f"statistics and laws must have the same names, got {sorted(s)} and {sorted(self.laws)}; "
                "give each parameter array both"
            )
        batch = np.broadcast_shapes(tuple(v.shape[:-1]), tuple(h.shape[:-1]))
        for name, law in self.laws.items():
            expected = (*batch, *law.shape)
            if s[name].shape != expected:
                raise ValueError(
                    f"statistics must give {name!r} in shape {tuple(expected)} for v of shape "
                    f"{tuple(v.shape)}, got {tuple(s[name].shape)}; its last axes are those of the law"
                )
        return s


@final
class EnergyEnsemble:
    """An ensemble of any energy E(v, h, θ) with binary v and h, differentiable in θ (Eq. 1 to 6).

    Parameters
    ----------
    energy : callable
        E: maps v (N, D), h (N, K) and θ, a dictionary of arrays ``(N, *shape)``, to (N,) energies.
    laws : mapping of str to Law
        The law of each parameter array, by name. Each needs a ``potential``, and ``nodes`` if it has atoms.
    n_visible, n_hidden : int
        D and K.

    Notes
    -----
    Nothing is integrated in closed form: θ | v, h is sampled by a Markov chain
    (:mod:`ebse.sampling.general`), and the gradient is a difference of Monte Carlo expectations.

    Examples
    --------
    >>> from ebse.laws import Gaussian
    >>> def energy(v, h, theta):
    ...     return -((v @ torch.ones(3, 2)).tanh() * h * theta["a"]).sum(-1)
    >>> ensemble = EnergyEnsemble(energy, {"a": Gaussian(torch.ones(2), 0.5)}, n_visible=3, n_hidden=2)
    >>> ensemble.joint_energy(torch.ones(1, 3), torch.zeros(1, 2), {"a": torch.ones(1, 2)}).shape
    torch.Size([1])
    """

    def __init__(self, energy: Energy, laws: Mapping[str, Law], *, n_visible: int, n_hidden: int) -> None:
        self._energy = energy
        self.laws = checked_laws(laws)
        self.D = count("n_visible", n_visible)
        self.K = count("n_hidden", n_hidden, least=0)

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of the parameters."""
        return next(iter(self.laws.values())).dtype

    def energy(self, v: Tensor, h: Tensor, theta: Parameters) -> Tensor:
        """E(v, h, θ), checked."""
        v = units("v", v, self.D, dtype=self.dtype)
        h = units("h", h, self.K, dtype=self.dtype)
        e = self._energy(v, h, theta)
        if e.shape != v.shape[:-1]:
            raise ValueError(
                f"energy must give one number per row, shape {tuple(v.shape[:-1])}, "
                f"got {tuple(e.shape)}; sum over units and parameters inside it"
            )
        return e

    def joint_energy(self, v: Tensor, h: Tensor, theta: Parameters) -> Tensor:
        """E(v, h, θ) + φ(θ; α), the exponent of Eq. 2."""
        return self.energy(v, h, theta) + self.potential(theta)

    def potential(self, theta: Parameters) -> Tensor:
        """φ(θ; α) = −log P(θ; α)."""
        return sum_of(law_sum(law, law.potential(theta[name])) for name, law in self.laws.items())

    def with_laws(self, **laws: Law) -> "EnergyEnsemble":
        """The ensemble with some of its laws exchanged."""
        return EnergyEnsemble(self._energy, {**self.laws, **laws}, n_visible=self.D, n_hidden=self.K)


def draw_laws(laws: Mapping[str, Law], tilts: Mapping[str, Tensor], key: int) -> Parameters:
    """θ of every tilted law, with independent random numbers from one key."""
    theta = {}
    for n, (name, law) in enumerate(laws.items()):
        t = law.full_tilt(tilts[name])
        theta[name] = law.draw(t, rng.uniform(rng.subkey(key, n), tuple(t.shape), device=t.device))
    return theta


def law_sum(law: Law, x: Tensor) -> Tensor:
    """Sum of x (..., *shape) over the axes of the law."""
    return x.sum(tuple(range(-len(law.shape), 0))) if law.shape else x


def sum_of(terms: Iterable[Tensor]) -> Tensor:
    """Sum of a series of tensors."""
    return torch.stack(list(terms)).sum(0)


def checked_laws(laws: Mapping[str, Law]) -> dict[str, Law]:
    """The laws by name, at least one, each a Law."""
    for name, law in laws.items():
        if not isinstance(law, Law):
            raise TypeError(
                f"laws[{name!r}] must be a law, got {type(law).__name__}; wrap an array: Point(array)"
            )
    if not laws:
        raise ValueError("laws must name at least one law, got none; pass {'W': law}")
    return dict(laws)
