"""Gibbs chains with v clamped to the data: samples of P(θ, h | v)."""

import torch

from ebse import rng
from ebse._validation import count, option
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling._row_sweeps import CHUNK_SIZE, hidden_noise, reader
from ebse.sampling.state import START, State, Units, checked_state


@torch.no_grad()
def clamped_sweeps(
    ensemble: RestrictedBoltzmannEnsemble,
    state: State,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    units: Units = "sampled",
    chunk_size: int = CHUNK_SIZE,
) -> State:
    """Sample θ ~ P(θ | v, h), h ~ P(h | v, θ), n_sweeps times (Algorithm 1, lines 12 to 15).

    Leaves P(h, θ | v) invariant; binary units given as probabilities are sampled once, before the first
    sweep. Each sweep conditions on the h of the sweep before, where the listing of the paper has the h of the
    first loop.

    References
    ----------
    S. Geman and D. Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of
    images", 1984.
    """
    count("n_sweeps", n_sweeps, least=0)
    count("chunk_size", chunk_size)
    option("units", units, ("sampled", "mean"))
    key = rng.draw_key(generator)
    state = checked_state(ensemble, state, units, rng.subkey(key, START))
    models = reader(ensemble, units=units, chunk_size=chunk_size)
    parts = models.parts(state.v)
    for sweep in range(n_sweeps):
        step = rng.subkey(key, sweep)
        mean = models.read(parts, None, state.h, step)
        state = State(state.v, hidden_noise(mean, step) if units == "sampled" else mean)
    return state
