"""Stochastic representations (section 3): models θ sampled for each row, and what they make of it.

``posterior_draws``, ``chain_draws`` and ``prior_draws`` take tensors; the functions below them work on arrays
of any size, block by block, for the estimators.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import units
from ebse._validation import count, option
from ebse.ensemble._inputs import as_tensor, generator_of, row_blocks, row_numbers
from ebse.kernels.readout import draw_binary
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, collapsed_sweeps, conditional_sweeps
from ebse.sampling._row_sweeps import CHUNK_SIZE, blocks, reader
from ebse.sampling.collapsed import EffectiveChain

Read = Literal["input", "state"]
"""P(h | v, θ) of the input v under the sampled model, or P(h | v_s) of the last state of the chain."""
Source = Literal["posterior", "prior", "mean"]
"""θ ~ P(θ | v), θ ~ P(θ; α), or θ integrated out."""
Array = npt.NDArray[np.float32]
Ensemble = RestrictedBoltzmannEnsemble

BLOCK_ROWS, BLOCK_VALUES = 128, 2**15
"""Rows of a block, or more where units are few: as many as have BLOCK_VALUES values."""
READS = 16
"""Blocks that are evaluated at once where no draw needs a matrix product of its own."""


def posterior_draws(
    ensemble: RestrictedBoltzmannEnsemble,
    v: Tensor,
    n_draws: int = 10,
    *,
    generator: torch.Generator,
    chunk_size: int = CHUNK_SIZE,
) -> Tensor:
    """P(h | v, θ) for n_draws posterior samples θ ~ P(θ | v) of each row of v (N, D): (N, n_draws, K).

    h ~ P(h | v), then θ ~ P(θ | v, h), is an exact sample of θ given v. The mean over draws of a binary (or
    real) v is P(h | v). Values of binary units between 0 and 1 are probabilities: each draw first samples a
    binary v.

    References
    ----------
    M. Al-Shedivat, E. Neftci, G. Cauwenberghs. Learning Non-deterministic Representations with Energy-based
    Ensembles. ICLR workshop, 2015.

    Examples
    --------
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
    """P(h | v, θ) of chain-sampled models: θ ~ P(θ | v_s, h_s) after a Gibbs chain from v: (N, n_draws, K).

    Each draw has a chain of its own, which starts at the row v (N, D) with h ~ P(h | v) and makes
    ``n_sweeps`` Gibbs sweeps over (v, h) with θ integrated out. A row's draws do not depend on the other
    rows, on ``chunk_size`` or on the number of threads.

    Parameters
    ----------
    ensemble
        The ensemble.
    v : (N, D) tensor
        Rows in [0, 1]. Values of binary units between 0 and 1 are probabilities: each draw first samples a
        binary v, and starts its chain there.
    n_draws : int, default=10
        Chains, and models, per row.
    n_sweeps : int, default=50
        Length of the chain. More sweeps vary the models more, and let them forget the input; 0 is a posterior
        sample θ ~ P(θ | v).
    read : {"input", "state"}, default="input"
        "input": P(h | v, θ) of the input. "state": P(h | v_s) of the last state of the chain, which does not
        depend on the noise of θ.
    generator : torch.Generator
        Supplies one key for all random numbers.
    chunk_size : int
        Connections held in memory at once where no kernel samples them: laws of W other than Bernoulli in
        float32 and Gaussian, and real visible units.
    numbers : (N,) array of uint64, optional
        Seeds the random numbers of each row; by default its index. Hashes of the rows make the draws of a row
        independent of the rows beside it.

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
        raise ValueError(f"v must have shape (N, {ensemble.D}), got {tuple(v.shape)}; pass a matrix of rows")
    key = rng.draw_key(generator)
    v_key, h_key, theta_key, chain_key = (rng.subkey(key, purpose) for purpose in range(4))
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
            # Blocks that need a matrix product are padded to one size: products of another shape differ in
            # their last bits.
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
                at, h = chain.sweeps(State(seen[0][source], h), n_sweeps, chain_key, numbers=chains)
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
    """P(h | v, θ) for n_draws prior samples θ ~ P(θ; α) for each row of v (N, D): (N, n_draws, K).

    Models do not depend on the input: DropConnect, where a Bernoulli law masks the weights of a trained RBM.
    Values between 0 and 1 enter as they are.

    References
    ----------
    L. Wan, M. Zeiler, S. Zhang, Y. LeCun, R. Fergus. Regularization of Neural Networks using DropConnect.
    ICML, 2013.
    """
    count("n_draws", n_draws)
    v = units("v", v, ensemble.D, dtype=ensemble.dtype)
    key, models = rng.draw_key(generator), reader(ensemble, chunk_size=chunk_size)
    means = v.new_empty(len(v) * n_draws, ensemble.K)
    for rows in blocks(len(v), BLOCK_ROWS):
        parts, n = models.parts(v[rows]), (rows.stop - rows.start) * n_draws
        first = rows.start * n_draws
        # With all hidden units off the posterior of θ is its prior.
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
    """P(v | h, E[θ]): representations (..., K) mapped back to visible units by the average model.

    This is the paper's inverse map. With binary units the ensemble's own is ``ensemble.mean_v_given_h(h)``,
    which uses the effective parameters; with strong noise the average model is far from these (E[θ] = W_eff −
    σ²/2 for a Gaussian law), and so are the reconstructions.
    """
    with torch.no_grad():
        return ensemble.mean_v_given_h(h, ensemble.average())


def _chains(numbers: rng.Numbers | None, first: int, n: int, n_draws: int) -> rng.Numbers:
    """Numbers of the n chains from ``first`` on, ``n_draws`` for each row."""
    place = np.arange(first, first + n, dtype=np.uint64)
    if numbers is None:
        return place
    row, chains = place // np.uint64(n_draws), place % np.uint64(n_draws)
    chains *= np.uint64(rng.GOLDEN)
    # Chains that pad a block may have any number.
    chains += numbers[np.minimum(row, np.uint64(len(numbers) - 1))]
    rng.mix(chains)
    return chains


def _padded(x: Tensor, size: int) -> Tensor:
    """x padded with rows of zeros to ``size`` rows."""
    return torch.nn.functional.pad(x, (0, 0, 0, size - len(x)))


def in_blocks(function: Callable[[Tensor], Tensor], v: Any, width: int) -> Array:
    """function(v) of rows (N, D), block by block; ``width`` is the number of results per row."""
    with torch.no_grad():
        parts = [function(as_tensor(v[rows])).numpy() for rows in row_blocks(v, width)]
    return np.concatenate(parts)


def in_double(ensemble: Ensemble) -> Ensemble:
    """The same ensemble in double precision."""
    return ensemble.with_laws(
        **{
            letter: law.with_alpha({name: x.double() for name, x in law.alpha.items()})
            for letter, law in ensemble.laws.items()
        }
    )


def draw_rows(
    ensemble: Ensemble, v: Any, n_draws: int, *, source: Source, n_sweeps: int, read: Read, seed: int
) -> Array:
    """P(h | v, θ) of n_draws models for each row (N, n_draws, K); its random numbers depend on it alone."""
    if source == "mean":
        mean = in_blocks(ensemble.frozen().mean_h_given_v, v, ensemble.K)
        return np.repeat(mean[:, np.newaxis], n_draws, axis=1)

    def block(rows: slice) -> Array:
        some = as_tensor(v[rows])
        options: dict[str, Any] = {"generator": generator_of(seed), "numbers": row_numbers(some.numpy())}
        if source == "prior":
            return prior_draws(ensemble, some, n_draws, **options).numpy()
        return chain_draws(ensemble, some, n_draws, n_sweeps=n_sweeps, read=read, **options).numpy()

    parts = row_blocks(v, n_draws * ensemble.K)
    if len(parts) == 1:
        return block(parts[0])
    draws = np.empty((v.shape[0], n_draws, ensemble.K), dtype=np.float32)
    for rows in parts:
        draws[rows] = block(rows)
    return draws


def impute_rows(ensemble: Ensemble, v: Any, *, n_sweeps: int, seed: int) -> tuple[Array, Array]:
    """Rows with E[v | the rest of the row] for NaN entries, and the same with one sample for them."""
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


def sample_rows(ensemble: Ensemble, chains: Array | None, n: int, *, n_sweeps: int, seed: int) -> Array:
    """Visible units (n, D) of Gibbs chains that start at ``chains``, or at the visible biases."""
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


def reconstruction_errors(ensemble: Ensemble, v: Any, *, n_draws: int, seed: int) -> Array:
    """Mean over posterior draws of ``|v − E[v | h]|²`` per unit, of each row (N,)."""
    frozen, found = ensemble.frozen(), np.empty(v.shape[0], dtype=np.float32)
    for rows in row_blocks(v, n_draws * max(ensemble.D, ensemble.K)):
        h = draw_rows(ensemble, v[rows], n_draws, source="posterior", n_sweeps=0, read="input", seed=seed)
        with torch.no_grad():
            back = frozen.mean_v_given_h(torch.from_numpy(h))
        found[rows] = ((as_tensor(v[rows])[:, None] - back) ** 2).mean((1, 2)).numpy()
    return found
