"""The sweep of Algorithm 1 (lines 6 to 10): sample θ, then v and h given the same θ."""

import torch

from ebse import rng
from ebse._validation import count, option
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling._row_sweeps import CHUNK_SIZE, hidden_noise, row_pass
from ebse.sampling.state import START, State, Units, checked_state


@torch.no_grad()
def explicit_sweeps(
    ensemble: RestrictedBoltzmannEnsemble,
    state: State,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    units: Units = "sampled",
    chunk_size: int = CHUNK_SIZE,
) -> State:
    """Sample θ ~ P(θ | v, h), v ~ P(v | h, θ), h ~ P(h | v, θ), n_sweeps times.

    Leaves the joint P(v, h, θ) of binary units invariant for any law. Algorithm 1 makes k + 1 sweeps.
    Mean-field units tilt θ by their means. Bernoulli and Gaussian W in float32 are sampled row by row in a
    kernel; other laws, types and mean-field units have about ``chunk_size`` connections in memory at once.
    The random numbers do not depend on it.

    Examples
    --------
    >>> from ebse.laws import Bernoulli, Point
    >>> W, b, c = Bernoulli(torch.ones(3, 2), 0.5), Point(torch.zeros(3)), Point(torch.zeros(2))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> state = State(torch.zeros(5, 3), torch.zeros(5, 2))
    >>> explicit_sweeps(ensemble, state, 2, generator=torch.Generator().manual_seed(0)).h.shape
    torch.Size([5, 2])
    """
    count("n_sweeps", n_sweeps, least=0)
    count("chunk_size", chunk_size)
    option("units", units, ("sampled", "mean"))
    key = rng.draw_key(generator)
    state = checked_state(ensemble, state, units, rng.subkey(key, START))
    one_pass = row_pass(ensemble, units=units, chunk_size=chunk_size)
    for sweep in range(n_sweeps):
        step = rng.subkey(key, sweep)
        state = one_pass(state, step)
        if units == "sampled":
            state = State(state.v, hidden_noise(state.h, step))
    return state
