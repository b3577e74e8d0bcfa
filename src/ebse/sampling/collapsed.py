"""Block Gibbs with θ integrated out: exact for any law, at the cost of a plain RBM."""

import torch

from ebse import noise
from ebse.arguments import count, option
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling.state import START, State, Units, checked_state


@torch.no_grad()
def collapsed_sweeps(
    ensemble: RestrictedBoltzmannEnsemble,
    state: State,
    n_sweeps: int = 1,
    *,
    generator: torch.Generator,
    units: Units = "sampled",
) -> State:
    """Sample v ~ P(v | h), then h ~ P(h | v), n_sweeps times, θ integrated out.

    >>> from ebse.laws import Gaussian, Point
    >>> W, b, c = Gaussian(torch.zeros(3, 2), 0.5), Point(torch.zeros(3)), Point(torch.zeros(2))
    >>> ensemble = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    >>> state = State(torch.zeros(5, 3), torch.zeros(5, 2))
    >>> state = collapsed_sweeps(ensemble, state, 10, generator=torch.Generator().manual_seed(0))
    >>> state.v.shape
    torch.Size([5, 3])
    """
    count("n_sweeps", n_sweeps, least=0)
    option("units", units, ("sampled", "mean"))
    key = noise.draw_key(generator)
    state = checked_state(ensemble, state, units, noise.subkey(key, START))
    v, h = state
    for sweep in range(n_sweeps):
        v = ensemble.mean_v_given_h(h)
        if units == "sampled" and ensemble.visible == "binary":
            v = noise.bernoulli(v, noise.subkey(key, 2 * sweep))
        h = ensemble.mean_h_given_v(v)
        if units == "sampled":
            h = noise.bernoulli(h, noise.subkey(key, 2 * sweep + 1))
    return State(v, h)
