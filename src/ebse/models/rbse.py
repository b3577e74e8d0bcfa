"""Restricted Boltzmann stochastic ensembles: section 2.2 of the paper and its appendix A."""

from typing import Literal, NamedTuple, Self, final

import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import fractional, units
from ebse._validation import option
from ebse.laws import Law
from ebse.laws.bernoulli import log1p_exp
from ebse.models.energy import draw_laws

Visible = Literal["binary", "real"]

BLOCK = 2**20
"""Values of K in memory at once, for real visible units."""


class Theta(NamedTuple):
    """θ = (W, b, c): the parameters of one model, or of a batch of them."""

    W: Tensor
    b: Tensor
    c: Tensor


@final
class RestrictedBoltzmannEnsemble:
    """P(v, h, θ; α) = P(θ; α) exp(vᵀ W h + bᵀ v + cᵀ h) / ζ(α): an ensemble of random RBMs.

    Each of W (D, K), b (D,) and c (K,) has a factorized law of its own, in any combination. With θ = (W, b,
    c) integrated out, the log weight of (v, h) is Σ_ij K_ij(v_i h_j) + Σ_i K_i(v_i) + Σ_j K_j(h_j).

    Parameters
    ----------
    W, b, c : Law
        Laws of the connections, the visible biases and the hidden biases.
    visible : {"binary", "real"}, default="binary"
        "binary": v_i in {0, 1}; values strictly between are probabilities of binary units, and the
        ensemble is equivalent to the RBM of its effective parameters. "real": v_i in [0, 1] is a value; the
        tilt of W_ij in P(h | v) is v_i h_j, and the value of v_i given h is P(v_i = 1 | h). No normalized
        density over real v is claimed.

    Notes
    -----
    Hidden units are binary in both cases; h_j strictly between 0 and 1 is a probability, over which log
    weights and inputs are averaged. Methods whose ``theta`` is None integrate θ out.

    References
    ----------
    P. Smolensky, "Information processing in dynamical systems: foundations of harmony theory", 1986 (the
    restricted Boltzmann machine).

    Examples
    --------
    >>> from ebse.laws import Bernoulli, Point
    >>> g = torch.Generator().manual_seed(0)
    >>> W, b, c = Bernoulli.start((6, 4), generator=g), Point(torch.zeros(6)), Point(torch.zeros(4))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> v = torch.ones(3, 6)
    >>> theta = ensemble.sample_theta_given_vh(v, torch.ones(3, 4), generator=g)
    >>> ensemble.mean_h_given_v(v, theta).shape
    torch.Size([3, 4])
    """

    def __init__(self, W: Law, b: Law, c: Law, *, visible: Visible = "binary") -> None:
        option("visible", visible, ("binary", "real"))
        _require_fitting(W, b, c)
        self.W, self.b, self.c = W, b, c
        self.visible: Visible = visible
        self.D, self.K = W.shape
        self._known: Theta | None = None

    @property
    def laws(self) -> dict[str, Law]:
        """The three laws by letter."""
        return {"W": self.W, "b": self.b, "c": self.c}

    @property
    def dtype(self) -> torch.dtype:
        """Floating type of the parameters."""
        return self.W.dtype

    def with_laws(self, **laws: Law) -> Self:
        """The ensemble with some of its laws exchanged."""
        unknown = set(laws) - set(self.laws)
        if unknown:
            raise TypeError(f"laws must be named W, b or c, got {sorted(unknown)}; write with_laws(W=law)")
        changed = {**self.laws, **laws}
        return type(self)(changed["W"], changed["b"], changed["c"], visible=self.visible)

    def with_noise(
        self, noise: float | None = None, /, *, p: float | None = None, sigma: float | None = None
    ) -> Self:
        """The ensemble with another noise of W and the same P(v, h) of binary units.

        See :meth:`ebse.laws.Law.with_noise`, which does the same for one law. The mean parameters E[θ] do
        change, and with them :func:`ebse.ensemble.draws.map_back`; so does P(h | v) of real visible units.
        """
        return self.with_laws(W=self.W.with_noise(noise, p=p, sigma=sigma))

    def effective(self) -> Theta:
        """(K_W(1), K_b(1), K_c(1)): the RBM with the P(v, h) of this ensemble of binary units."""
        if self._known is not None:
            return self._known
        return Theta(self.W.effective(), self.b.effective(), self.c.effective())

    def frozen(self, effective: Theta | None = None) -> Self:
        """The same ensemble with its effective parameters computed once, valid while α does not change.

        ``effective`` gives them where they are known.
        """
        frozen = self.with_laws()
        frozen._known = self.effective() if effective is None else effective
        return frozen

    def average(self) -> Theta:
        """E[θ], the mean parameters."""
        return Theta(self.W.mean(), self.b.mean(), self.c.mean())

    def energy(self, v: Tensor, h: Tensor, theta: Theta) -> Tensor:
        """E(v, h, θ) = −(vᵀ W h + bᵀ v + cᵀ h)  (Eq. 7)."""
        v, h = self._v(v), self._h(h)
        up = torch.einsum("...i,...ij->...j", v, theta.W)  # (..., D), (..., D, K) -> (..., K)
        return -((up + theta.c) * h).sum(-1) - (theta.b * v).sum(-1)

    def log_weight(self, v: Tensor, h: Tensor) -> Tensor:
        """log ∫ P(θ; α) exp(−E(v, h, θ)) dθ = Σ K_ij(v_i h_j) + Σ K_i(v_i) + Σ K_j(h_j)."""
        v, h = self._v(v), self._h(h)
        return (self._hidden_input(v) * h).sum(-1) + self._visible_bias(v)

    def free_energy(self, v: Tensor, theta: Theta | None = None) -> Tensor:
        """F(v) = −log Σ_h ∫ P(θ; α) exp(−E(v, h, θ)) dθ, or −log Σ_h exp(−E(v, h, θ))."""
        v = self._v(v)
        bias = self._visible_bias(v) if theta is None else (theta.b * v).sum(-1)
        return -bias - log1p_exp(self._hidden_input(v, theta)).sum(-1)

    def mean_h_given_v(self, v: Tensor, theta: Theta | None = None) -> Tensor:
        """P(h_j = 1 | v) = sigmoid(Σ_i K_ij(v_i) + K_j(1)), or sigmoid(Σ_i v_i W_ij + c_j) given θ."""
        return torch.sigmoid(self._hidden_input(self._v(v), theta))

    def mean_v_given_h(self, h: Tensor, theta: Theta | None = None) -> Tensor:
        """P(v_i = 1 | h) = sigmoid(Σ_j h_j K_ij(1) + K_i(1)), or sigmoid(Σ_j W_ij h_j + b_i) given θ."""
        h = self._h(h)
        W, b, _ = self.effective() if theta is None else theta
        return torch.sigmoid(torch.einsum("...j,...ij->...i", h, W) + b)

    def mean_theta_given_vh(self, v: Tensor, h: Tensor) -> Theta:
        """E[θ | v, h] = (K′_ij(v_i h_j), K′_i(v_i), K′_j(h_j)); probabilities are averaged over."""
        v, h = self._v(v), self._h(h)
        pairs = v.unsqueeze(-1) * h.unsqueeze(-2)
        if self.visible == "real":
            up, on = v.unsqueeze(-1).expand(pairs.shape), h.unsqueeze(-2).expand(pairs.shape)
            W = torch.lerp(self.W.mean(torch.zeros_like(up)), self.W.mean(up), on)
            return Theta(W, self.b.mean(v), _between(self.c, h))
        return Theta(_between(self.W, pairs), _between(self.b, v), _between(self.c, h))

    def sample_h_given_v(
        self, v: Tensor, theta: Theta | None = None, *, generator: torch.Generator
    ) -> Tensor:
        """Sample h ~ P(h | v), or h ~ P(h | v, θ)."""
        return rng.bernoulli(self.mean_h_given_v(v, theta), rng.draw_key(generator))

    def sample_v_given_h(
        self, h: Tensor, theta: Theta | None = None, *, generator: torch.Generator
    ) -> Tensor:
        """Sample v ~ P(v | h), or v ~ P(v | h, θ); with real visibles the value is the mean itself."""
        mean, key = self.mean_v_given_h(h, theta), rng.draw_key(generator)
        return mean if self.visible == "real" else rng.bernoulli(mean, key)

    def sample_theta_given_vh(self, v: Tensor, h: Tensor, *, generator: torch.Generator) -> Theta:
        """Sample θ ~ P(θ | v, h), each parameter from its law tilted by v_i h_j, v_i, h_j  (A3).

        Units given as probabilities are sampled first. The result has a (..., D, K) array; chains use
        :mod:`ebse.sampling.explicit`, which does not need one.
        """
        key = rng.draw_key(generator)
        v, h = self.binary_units(v, h, rng.subkey(key, 0))
        tilts = {"W": v.unsqueeze(-1) * h.unsqueeze(-2), "b": v, "c": h}
        return Theta(**draw_laws(self.laws, tilts, rng.subkey(key, 1)))

    def binary_units(self, v: Tensor, h: Tensor, key: int) -> tuple[Tensor, Tensor]:
        """v and h with probabilities of binary units replaced by samples."""
        v, h = self._v(v), self._h(h)
        if self.visible == "binary" and fractional(v):
            v = rng.bernoulli(v, rng.subkey(key, 0))
        return v, rng.bernoulli(h, rng.subkey(key, 1)) if fractional(h) else h

    def _v(self, v: Tensor) -> Tensor:
        return units("v", v, self.D, dtype=self.dtype)

    def _h(self, h: Tensor) -> Tensor:
        return units("h", h, self.K, dtype=self.dtype)

    def _hidden_input(self, v: Tensor, theta: Theta | None = None) -> Tensor:
        """Σ_i K_ij(v_i) + K_j(1), or Σ_i v_i W_ij + c_j given θ."""
        if theta is None and self.visible == "real":
            # Σ_i in blocks of rows, so that no (N, D, K) array is needed.
            step = max(BLOCK * self.D // max(v.numel() * self.K, 1), 1)
            total = self.c.effective()
            for i in range(0, self.D, step):
                W = self.W if step >= self.D else self.W.rows(slice(i, i + step))
                total = total + W.log_mgf(v[..., i : i + step].unsqueeze(-1)).sum(-2)
            return total
        if theta is None:
            known = self._known
            return v @ known.W + known.c if known else v @ self.W.effective() + self.c.effective()
        return torch.einsum("...i,...ij->...j", v, theta.W) + theta.c

    def _visible_bias(self, v: Tensor) -> Tensor:
        """Σ_i K_i(v_i), which is Σ_i v_i K_i(1) for (probabilities of) binary units."""
        if self.visible == "real":
            return self.b.log_mgf(v).sum(-1)
        return v @ (self._known.b if self._known else self.b.effective())

    def __repr__(self) -> str:
        names = ", ".join(f"{letter}={type(law).__name__}" for letter, law in self.laws.items())
        return f"RestrictedBoltzmannEnsemble(D={self.D}, K={self.K}, {names}, visible={self.visible!r})"


def _between(law: Law, t: Tensor) -> Tensor:
    """E[θ] if the tilt is 1 with probability t, else 0: (1 − t) K′(0) + t K′(1)."""
    return torch.lerp(law.mean(torch.zeros_like(t)), law.mean(torch.ones_like(t)), t)


def _require_fitting(W: Law, b: Law, c: Law) -> None:
    """Three laws, W (D, K), b (D,) and c (K,), of one floating type."""
    for name, law in (("W", W), ("b", b), ("c", c)):
        if not isinstance(law, Law):
            raise TypeError(f"{name} must be a law, got {type(law).__name__}; wrap an array: Point(array)")
        if len(law.shape) != (2 if name == "W" else 1):
            raise ValueError(
                f"{name} must have {2 if name == 'W' else 1} axes, got shape {tuple(law.shape)}; "
                "W is (D, K), b is (D,), c is (K,)"
            )
    if W.shape != (*b.shape, *c.shape):
        raise ValueError(
            f"W must have shape (D, K) = ({b.shape[0]}, {c.shape[0]}) to fit b and c, "
            f"got {tuple(W.shape)}; transpose W or change the biases"
        )
    if not W.dtype == b.dtype == c.dtype:
        raise ValueError(
            f"W, b and c must share one floating type, got {W.dtype}, {b.dtype}, {c.dtype}; "
            "convert their arrays first"
        )
