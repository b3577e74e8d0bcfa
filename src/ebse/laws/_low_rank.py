"""A Gaussian law of correlated parameters: few normal variables move a whole array."""

from typing import final

import torch
from torch import Tensor


@final
class LowRankGaussian:
    """Low-rank Gaussian law of an array θ = W̄ + Σ_k s_k A_k, s ~ N(0, I).

    Its cumulant generating function is, for a tilt T of the array's shape,

        K(T) = log E[exp⟨T, θ⟩] = ⟨T, W̄⟩ + ½ Σ_k ⟨T, A_k⟩²,

    with ⟨T, θ⟩ the sum of products of their entries. Entries are correlated, unlike under the laws of one
    entry at a time: Cov(θ_a, θ_b) = Σ_k A_ka A_kb. T = x tᵀ gives the law of t · (x θ), the product of a row
    with a random matrix.

    Parameters
    ----------
    W_bar : tensor (*shape)
        The mean.
    A : tensor (n_modes, *shape)
        The modes: what one unit of s_k adds.
    """

    def __init__(self, W_bar: Tensor, A: Tensor) -> None:
        if A.shape[1:] != W_bar.shape or not len(A):
            raise ValueError(
                f"A must have the shape (n_modes, {', '.join(map(str, W_bar.shape))}), got {tuple(A.shape)}; "
                "pass at least one mode of the shape of W_bar"
            )
        self.W_bar, self.A = W_bar, A

    @property
    def shape(self) -> torch.Size:
        """Shape of θ."""
        return self.W_bar.shape

    def log_mgf(self, T: Tensor) -> Tensor:
        """K(T) of tilts (…, *shape): (…)."""
        return self._inner(T, self.W_bar) + (self.tilted_s(T) ** 2).sum(-1) / 2

    def tilted_s(self, T: Tensor) -> Tensor:
        """⟨T, A_k⟩, the mean of s under the law tilted by T (…, n_modes); its covariance stays I."""
        self._require_tilt(T)
        return T.flatten(-self.W_bar.ndim) @ self.A.flatten(1).T

    def mean(self, T: Tensor) -> Tensor:
        """E[θ | T] = ∂K/∂T = W̄ + Σ_k ⟨T, A_k⟩ A_k (…, *shape)."""
        return self.at(self.tilted_s(T))

    def covariance(self) -> Tensor:
        """Cov(θ_a, θ_b) = Σ_k A_ka A_kb of all pairs of entries; no tilt changes it."""
        flat = self.A.flatten(1)
        return flat.T @ flat

    def sample(self, T: Tensor, *, generator: torch.Generator) -> Tensor:
        """Sample θ ~ P(θ) exp(⟨T, θ⟩ − K(T)) for each of the tilts T (…, *shape)."""
        means = self.tilted_s(T)
        return self.at(means + torch.randn(means.shape, generator=generator, dtype=means.dtype))

    def at(self, s: Tensor) -> Tensor:
        """θ = W̄ + Σ_k s_k A_k of s (…, n_modes)."""
        moved: Tensor = torch.tensordot(s, self.A, dims=1)
        return self.W_bar + moved

    def modes_of(self, x: Tensor) -> Tensor:
        """x A_k of rows x (n, D), for a matrix θ (D, r): (n, n_modes, r).

        A row's product with its own random matrix is x W̄ + Σ_k s_k x A_k: no matrix of a row is formed.
        """
        k, D, r = self.A.shape
        return (x @ self.A.transpose(0, 1).reshape(D, k * r)).view(-1, k, r)

    def _inner(self, T: Tensor, other: Tensor) -> Tensor:
        self._require_tilt(T)
        return (T * other).flatten(-self.W_bar.ndim).sum(-1)

    def _require_tilt(self, T: Tensor) -> None:
        if T.shape[T.ndim - self.W_bar.ndim :] != self.W_bar.shape:
            raise ValueError(
                f"T must end in the law's shape {tuple(self.W_bar.shape)}, got {tuple(T.shape)}; pass a tilt "
                "for every entry"
            )
