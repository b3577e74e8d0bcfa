"""What an ensemble makes of rows held as arrays, block by block: draws, imputations, new rows, outliers."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ebse import rng
from ebse.ensemble._inputs import as_tensor, generator_of, row_blocks, row_numbers
from ebse.ensemble.draws import Read, chain_draws, prior_draws
from ebse.kernels.readout import draw_binary
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, collapsed_sweeps, conditional_sweeps

Array = npt.NDArray[np.float32]
Source = Literal["posterior", "prior", "mean"]
Ensemble = RestrictedBoltzmannEnsemble


def in_blocks(function: Callable[[Tensor], Tensor], v: Any, width: int) -> Array:
    """function(v) of rows (N, D), so many at a time that they, and ``width`` numbers for each, are few."""
    with torch.no_grad():
        parts = [function(as_tensor(v[rows])).numpy() for rows in row_blocks(v, width)]
    return np.concatenate(parts)


def drawn(
    ensemble: Ensemble, v: Any, n_draws: int, *, source: Source, n_sweeps: int, read: Read, seed: int
) -> Array:
    """P(h | v, θ) of n_draws models for each row (N, n_draws, K); noise belongs to what is in a row."""
    if source == "mean":
        mean = in_blocks(ensemble.frozen().mean_h_given_v, v, ensemble.K)
        return np.repeat(mean[:, np.newaxis], n_draws, axis=1)

    def block(rows: slice) -> Array:
        some = as_tensor(v[rows])
        placed: dict[str, Any] = {"generator": generator_of(seed), "numbers": row_numbers(some.numpy())}
        if source == "prior":
            return prior_draws(ensemble, some, n_draws, **placed).numpy()
        return chain_draws(ensemble, some, n_draws, n_sweeps=n_sweeps, read=read, **placed).numpy()

    blocks = row_blocks(v, n_draws * ensemble.K)
    if len(blocks) == 1:
        return block(blocks[0])
    draws = np.empty((v.shape[0], n_draws, ensemble.K), dtype=np.float32)
    for rows in blocks:
        draws[rows] = block(rows)
    return draws


def imputed(ensemble: Ensemble, v: Any, *, n_sweeps: int, seed: int) -> tuple[Array, Array]:
    """Rows whose NaN entries are E[v | the rest], and the same with draws in their place."""
    ensemble = ensemble.frozen()
    means, draws = (np.empty(v.shape, dtype=np.float32) for _ in range(2))
    for rows in row_blocks(v, ensemble.K):
        block = as_tensor(v[rows])
        mean, draw = conditional_sweeps(
            ensemble,
            block.nan_to_num(),
            block.isnan(),
            n_sweeps,
            n_burn=n_sweeps // 2,
            generator=generator_of(seed),
            numbers=row_numbers(block.numpy()),
        )
        means[rows], draws[rows] = mean.numpy(), draw.numpy()
    return means, draws


def new_rows(ensemble: Ensemble, chains: Array | None, n: int, *, n_sweeps: int, seed: int) -> Array:
    """Visible units (n, D) of chains, from ``chains`` or from the visible biases, after n_sweeps."""
    generator = generator_of(seed)
    if chains is None:
        start = torch.sigmoid(ensemble.b.effective().detach()).expand(n, -1)
        v = draw_binary(start, rng.draw_key(generator))
    else:
        v = as_tensor(chains)[torch.randint(len(chains), (n,), generator=generator)]
    with torch.no_grad():
        h = ensemble.sample_h_given_v(v, generator=generator)
        state = collapsed_sweeps(ensemble, State(v, h), n_sweeps, generator=generator)
        return state.v.numpy()


def pulls(ensemble: Ensemble, v: Any, *, n_draws: int, seed: int) -> Array:
    """How far images of each row lie from it: the mean over draws of |v − E[v | h]|², per unit."""
    frozen, found = ensemble.frozen(), np.empty(v.shape[0], dtype=np.float32)
    for rows in row_blocks(v, n_draws * max(ensemble.D, ensemble.K)):
        h = drawn(ensemble, v[rows], n_draws, source="posterior", n_sweeps=0, read="input", seed=seed)
        with torch.no_grad():
            back = frozen.mean_v_given_h(torch.from_numpy(h))
        found[rows] = ((as_tensor(v[rows])[:, None] - back) ** 2).mean((1, 2)).numpy()
    return found
