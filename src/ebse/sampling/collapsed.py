"""Block Gibbs sampling with θ integrated out: exact for any law, at the cost of a plain RBM."""

from typing import final

import torch
from torch import Tensor

from ebse import rng
from ebse._validation import count, option
from ebse.kernels.readout import draw_binary
from ebse.kernels.units import draw_units, mean_units
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
    """Block Gibbs sampling: v ~ P(v | h), then h ~ P(h | v), n_sweeps times, with θ integrated out.

    Parameters
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        The ensemble.
    state : State
        v (N, D) and h (N, K) of N chains; probabilities of binary units are sampled first.
    n_sweeps : int, default=1
        Sweeps. More sweeps forget the start.
    generator : torch.Generator
        Source of random numbers.
    units : {"sampled", "mean"}, default="sampled"
        Whether units are sampled or are their means (mean field).

    References
    ----------
    J. S. Liu, "The collapsed Gibbs sampler in Bayesian computations", 1994.

    Examples
    --------
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
    key = rng.draw_key(generator)
    state = checked_state(ensemble, state, units, rng.subkey(key, START))
    return EffectiveChain(ensemble).sweeps(state, n_sweeps, key, units=units)


@final
class EffectiveChain:
    """P(v | h) and P(h | v) with θ integrated out, the effective parameters computed once.

    With real visible units P(h | v) is that of the ensemble, because K is not linear in v.
    """

    def __init__(self, ensemble: RestrictedBoltzmannEnsemble) -> None:
        self.ensemble = ensemble
        self.W, self.b, self.c = (x.detach().contiguous() for x in ensemble.effective())

    def mean_h(self, v: Tensor) -> Tensor:
        """P(h | v) of the rows of v (N, D)."""
        if self.ensemble.visible == "real":
            return self.ensemble.mean_h_given_v(v)
        a = v @ self.W
        mean = torch.empty_like(a)
        mean_units(a, self.c, mean=mean)
        return mean

    def sweeps(
        self,
        state: State,
        n_sweeps: int,
        key: int,
        *,
        units: Units = "sampled",
        numbers: rng.Numbers | None = None,
    ) -> State:
        """n_sweeps from ``state``; chain n has the random numbers of ``numbers[n]``, by default of n."""
        if n_sweeps == 0:
            return state
        v, h = (x.new_empty(x.shape) for x in state)
        # Separate arrays for the inputs: units cannot be written where the product still reads them.
        a_v, a_h = torch.empty_like(v), torch.empty_like(h)
        real = self.ensemble.visible == "real"
        before = state.h
        for sweep in range(n_sweeps):
            v_key, h_key = (rng.subkey(key, 2 * sweep + layer) for layer in (0, 1))
            torch.mm(before, self.W.T, out=a_v)
            if units == "mean" or real:
                mean_units(a_v, self.b, mean=v)
            else:
                draw_units(a_v, self.b, v_key, drawn=v, numbers=numbers)
            if real:
                mean = self.ensemble.mean_h_given_v(v)
                h = draw_binary(mean, h_key, numbers) if units == "sampled" else mean
            else:
                torch.mm(v, self.W, out=a_h)
                if units == "mean":
                    mean_units(a_h, self.c, mean=h)
                else:
                    draw_units(a_h, self.c, h_key, drawn=h, numbers=numbers)
            before = h
        return State(v, h)
