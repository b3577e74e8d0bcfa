"""Stochastic representations (section 3): draws of models, read on the input, and the way back."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import units
from ebse._validation import count, option
from ebse.kernels.readout import draw_binary
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State
from ebse.sampling._row_sweeps import CHUNK_SIZE, blocks, reader
from ebse.sampling.collapsed import EffectiveChain

Read = Literal["input", "state"]
"""Where a walk is read: by a model drawn at its end on the input, or by the ensemble on the state reached."""

BLOCK_ROWS, BLOCK_VALUES = 128, 2**15
"""A block has so many rows, or more if the units are few: as many as make so many values of units."""
READS = 16
"""Blocks that are read at once where no draw needs a matrix product of its own."""


def posterior_draws(
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
    >>> draws = posterior_draws(ensemble, torch.rand(5, 3), 7, generator=torch.Generator().manual_seed(0))
    >>> draws.shape
    torch.Size([5, 7, 2])
    """
    return chain_draws(ensemble, v, n_draws, n_sweeps=0, generator=generator, chunk_size=chunk_size)


@torch.no_grad()
def chain_draws(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    n_draws: int = 10,
    *,
    n_sweeps: int = 50,
    read: Read = "input",
    generator: torch.Generator,
    chunk_size: int = CHUNK_SIZE,
    numbers: rng.Numbers | None = None,
) -> Tensor:
    """P(h | v, θ), θ ~ P(θ | v_s, h_s) with (v_s, h_s) the end of a walk from v (N, D): (N, n_draws, K).

    Each draw walks alone: h ~ P(h | v), then ``n_sweeps`` unclamped sweeps with θ integrated out. A row's
    draws do not depend on the other rows, on ``chunk_size`` or on the number of threads.

    Parameters
    ----------
    n_sweeps
        Length of the walk; with 0 sweeps θ ~ P(θ | v), a clamped draw.
    read
        "input": the model met at the end of the walk, read on v. "state": P(h | v_s) of the ensemble, which
        asks for no noise in θ.
    chunk_size
        Connections that are held at once where no kernel draws them: laws of W other than Bernoulli in
        float32 and Gaussian, and real visible units.
    numbers
        A 64-bit number for each row, which says where its noise is; by default its place. Numbers that are
        made of what is in a row give it the same draws in whatever company.

    Notes
    -----
    Values of binary units between 0 and 1 are probabilities: each draw first draws binary v, walks from them
    and reads its model on them.

    Examples
    --------
    >>> from ebse.laws import Bernoulli, Point
    >>> W, b, c = Bernoulli(torch.ones(3, 2), 0.1), Point(torch.zeros(3)), Point(torch.zeros(2))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> g = torch.Generator().manual_seed(0)
    >>> chain_draws(ensemble, torch.ones(5, 3), 7, n_sweeps=3, generator=g).shape
    torch.Size([5, 7, 2])
    """
    count("n_draws", n_draws)
    count("n_sweeps", n_sweeps, least=0)
    count("chunk_size", chunk_size)
    option("read", read, ("input", "state"))
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    if v.ndim != 2:
        raise ValueError(
            f"v must have shape (N, {ensemble.D}), got {tuple(v.shape)}; pass one row per example"
        )
    key = rng.draw_key(generator)
    v_key, h_key, theta_key, walk_key = (rng.subkey(key, purpose) for purpose in range(4))
    chain, models = EffectiveChain(ensemble), reader(ensemble, chunk_size=chunk_size)
    means = v.new_empty(len(v) * n_draws, ensemble.K)
    size = max(BLOCK_ROWS, BLOCK_VALUES // max(ensemble.D, ensemble.K))
    for rows in blocks(len(v), size):
        x = _padded(v[rows], size)
        gray = ((x > 0) & (x < 1)).any(-1, keepdim=True) & (ensemble.visible == "binary")
        some_gray = bool(gray.any())
        mean, parts = chain.mean_h(x), models.parts(x)
        fixed = some_gray or n_sweeps > 0 or read == "state"
        for part in blocks((rows.stop - rows.start) * n_draws, size if fixed else READS * size):
            # A block in which chains meet a matrix product is filled up to its size: products of another
            # shape differ in their last bits.
            stop = part.start + size if fixed else part.stop
            row = (torch.arange(part.start, stop, device=v.device) // n_draws).clamp_(max=size - 1)
            first = rows.start * n_draws + part.start
            chains = _chains(numbers, first, stop - part.start, n_draws)
            h_mean, seen, source = mean[row], parts, row
            if some_gray:
                drawn = draw_binary(x[row], v_key, chains)
                h_mean = torch.where(gray[row], chain.mean_h(drawn), h_mean)
                seen = tuple(
                    torch.where(gray[row], own, shared[row])
                    for own, shared in zip(models.parts(drawn), parts, strict=True)
                )
                source = torch.arange(len(row), device=v.device)
            at, h = None, draw_binary(h_mean, h_key, chains)
            if n_sweeps:
                at, h = chain.sweeps(State(seen[0][source], h), n_sweeps, walk_key, numbers=chains)
            if read == "input":
                found = models.read(seen, at, h, theta_key, numbers=chains, source=source)
            else:
                found = chain.mean_h(seen[0][source] if at is None else at)
            n = part.stop - part.start
            means[first : first + n] = found[:n]
    return means.reshape(len(v), n_draws, ensemble.K)


@torch.no_grad()
def prior_draws(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    n_draws: int = 10,
    *,
    generator: torch.Generator,
    chunk_size: int = CHUNK_SIZE,
    numbers: rng.Numbers | None = None,
) -> Tensor:
    """P(h | v, θ) for n_draws models θ ~ P(θ; α) of each row of v (N, D): (N, n_draws, K).

    Models from the law itself, whatever the input: DropConnect, where the law is a Bernoulli one on the
    weights of a trained RBM. Values between 0 and 1 are read as they are.
    """
    count("n_draws", n_draws)
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    key, models = rng.draw_key(generator), reader(ensemble, chunk_size=chunk_size)
    means = v.new_empty(len(v) * n_draws, ensemble.K)
    for rows in blocks(len(v), BLOCK_ROWS):
        parts, n = models.parts(v[rows]), (rows.stop - rows.start) * n_draws
        first = rows.start * n_draws
        # Nothing is tilted where no hidden unit is on.
        means[first : first + n] = models.read(
            parts,
            None,
            v.new_zeros(n, ensemble.K),
            key,
            numbers=_chains(numbers, first, n, n_draws),
            source=torch.arange(n, device=v.device) // n_draws,
        )
    return means.reshape(len(v), n_draws, ensemble.K)


def map_back(ensemble: RestrictedBoltzmannEnsemble, h: Tensor) -> Tensor:
    """P(v | h, E[θ]): representations (..., K) back to visible space by the average model.

    This is the paper's way back. With binary units the ensemble's own is ``ensemble.mean_v_given_h(h)``,
    by the effective parameters; strong noise takes the average model far from them (E[θ] = W_eff − σ²/2
    for a Gaussian law), and its images with it.
    """
    with torch.no_grad():
        return ensemble.mean_v_given_h(h, ensemble.average())


def _chains(numbers: rng.Numbers | None, first: int, n: int, n_draws: int) -> rng.Numbers:
    """Numbers of n chains from ``first`` on, ``n_draws`` of them for each row."""
    place = np.arange(first, first + n, dtype=np.uint64)
    if numbers is None:
        return place
    row, chains = place // np.uint64(n_draws), place % np.uint64(n_draws)
    chains *= np.uint64(rng.GOLDEN)
    # Chains that fill up a block may have any number.
    chains += numbers[np.minimum(row, np.uint64(len(numbers) - 1))]
    rng.mix(chains)
    return chains


def _padded(x: Tensor, size: int) -> Tensor:
    """x with rows of zeros below, ``size`` rows in all."""
    return torch.nn.functional.pad(x, (0, 0, 0, size - len(x)))
