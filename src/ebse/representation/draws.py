"""Stochastic representations (section 3): draws of models, read on the input, and the way back."""

import torch
from torch import Tensor

from ebse import noise
from ebse.arguments import count, units
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State
from ebse.sampling.clamped import read_model
from ebse.sampling.rows import CHUNK_SIZE


def clamped_draws(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    n_draws: int = 10,
    *,
    generator: torch.Generator,
    chunk_size: int = CHUNK_SIZE,
) -> Tensor:
    """P(h | v, θ) for n_draws models θ ~ P(θ | v) of each row of v (N, D): (N, n_draws, K).

    h ~ P(h | v), then θ ~ P(θ | v, h), is an exact draw of θ given v. The mean over draws of
    a binary (or real) v is P(h | v).
    Values of binary units between 0 and 1 are probabilities: each draw first draws binary v and reads
    its model on them.

    >>> from ebse.laws import Gaussian, Point
    >>> W, b, c = Gaussian(torch.ones(3, 2), 0.5), Point(torch.zeros(3)), Point(torch.zeros(2))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> draws = clamped_draws(ensemble, torch.rand(5, 3), 7, generator=torch.Generator().manual_seed(0))
    >>> draws.shape
    torch.Size([5, 7, 2])
    """
    count("n_draws", n_draws)
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    if v.ndim != 2:
        raise ValueError(
            f"v must have shape (N, {ensemble.D}), got {tuple(v.shape)}; pass one row per example"
        )
    key = noise.draw_key(generator)
    with torch.no_grad():
        repeated = v.repeat_interleave(n_draws, 0)
        units_h = repeated.new_zeros(len(repeated), ensemble.K)
        seen, _ = ensemble.binary_units(repeated, units_h, noise.subkey(key, 0))
        h = noise.bernoulli(ensemble.mean_h_given_v(seen), noise.subkey(key, 1))
        means = read_model(ensemble, State(seen, h), seen, noise.subkey(key, 2), chunk_size=chunk_size)
    return means.reshape(len(v), n_draws, ensemble.K)


def map_back(ensemble: RestrictedBoltzmannEnsemble, h: Tensor) -> Tensor:
    """P(v | h, E[θ]): representations (..., K) back to visible space by the average model.

    This is the paper's way back. With binary units the ensemble's own is ``ensemble.mean_v_given_h(h)``,
    by the effective parameters; strong noise takes the average model far from them (E[θ] = W_eff − σ²/2
    for a Gaussian law), and its images with it.
    """
    with torch.no_grad():
        return ensemble.mean_v_given_h(h, ensemble.average())
