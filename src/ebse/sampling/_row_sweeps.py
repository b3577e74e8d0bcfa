"""One pass over the rows of W: a block of θ at a time is sampled, used and discarded.

For row i: sample W_i· given (v_i, h), sample the new v_i given Σ_j W_ij h_j + b_i, and add v_i W_i· to the
input of the hidden units. v and h thus have the same θ, and no N × D × K array is needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import final

import torch
from torch import Tensor

from ebse import rng
from ebse.kernels.readout import bernoulli_read, draw_binary, normal_read
from ebse.kernels.row_sweeps import Presence, bernoulli_pass, gaussian_pass
from ebse.kernels.units import fast, mean_units
from ebse.laws import Bernoulli, Gaussian, Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling.state import State, Units

CHUNK_SIZE = 2**18
"""Connections that are sampled at once, over all chains, where there is no kernel for the law; about 10
arrays of this size are in memory."""

_W, _B, _C, _V, _H = range(5)

Ensemble = RestrictedBoltzmannEnsemble


def pass_over_rows(
    ensemble: Ensemble,
    state: State,
    key: int,
    *,
    read: Tensor | None = None,
    units: Units = "sampled",
    chunk_size: int = CHUNK_SIZE,
    numbers: rng.Numbers | None = None,
) -> State:
    """θ ~ P(θ | v, h), then v′ ~ P(v | h, θ) and P(h | v′, θ) with the same θ, for any law.

    With ``read`` given, v′ is ``read`` instead of a sample. The chains have the random numbers of these
    ``numbers``, by default 0, 1, … This is the plain version of the kernels.
    """
    v, h = state
    N, D, K = len(v), ensemble.D, ensemble.K
    v_new = v.new_empty(N, D) if read is None else read
    mean = v.new_empty(N, K)

    def u(purpose: int, *shape: int, window: rng.Window) -> Tensor:
        step = rng.subkey(key, purpose)
        return rng.uniform(step, shape, window=window, device=v.device, numbers=numbers)

    def draw(law: Law, t: Tensor, purpose: int, *shape: int, window: rng.Window) -> Tensor:
        # Laws that are not random need no random numbers.
        return law.draw(t, u(purpose, *shape, window=window)) if law.random else law.mean()

    for n in blocks(N, chunk_size // K):
        v_n, h_n = v[n], h[n]
        b = draw(ensemble.b, v_n, _B, N, D, window=(n,))
        hidden_input = draw(ensemble.c, h_n, _C, N, K, window=(n,))
        for i in blocks(D, chunk_size // (K * (n.stop - n.start))):
            t = v_n[:, i].unsqueeze(-1) * h_n.unsqueeze(-2)  # (n, i, K)
            W_i = ensemble.W if i.stop - i.start == D else ensemble.W.rows(i)
            W = draw(W_i, t, _W, N, D, K, window=(n, i))
            if read is None:
                down = torch.sigmoid((W @ h_n.unsqueeze(-1)).squeeze(-1) + b[..., i])
                if units == "sampled" and ensemble.visible == "binary":
                    down = (u(_V, N, D, window=(n, i)) < down).to(down.dtype)
                v_new[n, i] = down
            hidden_input = hidden_input + (v_new[n, i].unsqueeze(-2) @ W).squeeze(-2)
        mean[n] = torch.sigmoid(hidden_input)
    return State(v_new, mean)


Pass = Callable[[State, int], State]


def row_pass(ensemble: Ensemble, *, units: Units, chunk_size: int) -> Pass:
    """The pass of a sweep of Algorithm 1 as a function of (state, key), with its tables computed once."""
    W = ensemble.W
    draw: Callable[..., Tensor]
    if units == "mean" or ensemble.visible == "real" or not fast(_first(W)):
        return partial(_plain_pass, ensemble, units, chunk_size)
    if isinstance(W, Bernoulli):
        draw = partial(bernoulli_pass, Presence.of(W.theta_bar, W.logit_p))
    elif isinstance(W, Gaussian):
        draw = partial(gaussian_pass, W.theta_bar, W.sigma)
    else:
        return partial(_plain_pass, ensemble, units, chunk_size)

    def fused(state: State, key: int) -> State:
        v, h = state
        b = _biases(ensemble.b, v, rng.subkey(key, _B))
        a = _biases(ensemble.c, h, rng.subkey(key, _C)).expand(len(h), -1).clone()
        v_new = draw(v, h, b, (rng.subkey(key, _W), rng.subkey(key, _V)), a=a)
        return State(v_new, _sigmoid(a))

    return fused


def _plain_pass(ensemble: Ensemble, units: Units, chunk_size: int, state: State, key: int) -> State:
    return pass_over_rows(ensemble, state, key, units=units, chunk_size=chunk_size)


class Reader(ABC):
    """P(h | v, θ) on the input v, with θ ~ P(θ | v_s, h) sampled at the state of a chain.

    What depends on v alone (``parts``) is computed once for many samples.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble

    def parts(self, v: Tensor) -> tuple[Tensor, ...]:
        """What depends on v (N, D) alone: arrays with one row for each of its rows."""
        return (v,)

    @abstractmethod
    def read(
        self,
        parts: tuple[Tensor, ...],
        state_v: Tensor | None,
        h: Tensor,
        key: int,
        *,
        numbers: rng.Numbers | None = None,
        source: Tensor | None = None,
    ) -> Tensor:
        """P(h | v, θ) (N, K); without ``state_v`` the state of the chain is v itself.

        The chains have the random numbers of these ``numbers``, by default 0, 1, … The input of chain n is
        row ``source``[n] of the parts, or row n.
        """

    def hidden_bias(self, h: Tensor, key: int, numbers: rng.Numbers | None) -> Tensor:
        """c ~ P(c | h), as (N, K)."""
        c = _biases(self.ensemble.c, h, rng.subkey(key, _C), numbers)
        return c.expand(len(h), -1).clone()


@final
class AnyReader(Reader):
    """Any law and any units, a chunk of connections at a time."""

    def __init__(self, ensemble: Ensemble, chunk_size: int) -> None:
        super().__init__(ensemble)
        self.chunk_size = chunk_size

    def read(
        self,
        parts: tuple[Tensor, ...],
        state_v: Tensor | None,
        h: Tensor,
        key: int,
        *,
        numbers: rng.Numbers | None = None,
        source: Tensor | None = None,
    ) -> Tensor:
        """P(h | v, θ) by a pass over the rows of W."""
        (v,) = _picked(parts, source)
        state = State(v if state_v is None else state_v, h)
        size = self.chunk_size
        return pass_over_rows(self.ensemble, state, key, read=v, chunk_size=size, numbers=numbers).h


@final
class BernoulliReader(Reader):
    """Bernoulli W, binary v, v_s and h: random words compared with thresholds, in the rows with v_i = 1."""

    def __init__(self, ensemble: Ensemble, W: Bernoulli) -> None:
        super().__init__(ensemble)
        self.W = Presence.of(W.theta_bar, W.logit_p)

    def read(
        self,
        parts: tuple[Tensor, ...],
        state_v: Tensor | None,
        h: Tensor,
        key: int,
        *,
        numbers: rng.Numbers | None = None,
        source: Tensor | None = None,
    ) -> Tensor:
        """P(h | v, θ), W sampled connection by connection."""
        (v,) = parts
        a = self.hidden_bias(h, key, numbers)
        rows = torch.arange(len(h)) if source is None else source
        bernoulli_read(self.W, v, state_v, h, rng.subkey(key, _W), source=rows, numbers=numbers, a=a)
        return _sigmoid(a)


@final
class GaussianReader(Reader):
    """Gaussian W: the input of hidden unit j is one normal number, exactly, for all values of v, v_s and h.

    Its mean is Σ_i v_i W_bar_ij + h_j Σ_i v_i v_s,i σ_ij² + c_j, its variance Σ_i v_i² σ_ij².
    """

    def __init__(self, ensemble: Ensemble, W: Gaussian) -> None:
        super().__init__(ensemble)
        self.theta_bar, self.variance = W.theta_bar.detach(), W.sigma.detach() ** 2

    def parts(self, v: Tensor) -> tuple[Tensor, ...]:
        """v, Σ_i v_i W_bar_ij and Σ_i v_i² σ_ij²."""
        return v, v @ self.theta_bar, (v * v) @ self.variance

    def read(
        self,
        parts: tuple[Tensor, ...],
        state_v: Tensor | None,
        h: Tensor,
        key: int,
        *,
        numbers: rng.Numbers | None = None,
        source: Tensor | None = None,
    ) -> Tensor:
        """P(h | v, θ) from N · K normal numbers; no weight is sampled."""
        v, mean, variance = _picked(parts, source)
        tilt = variance if state_v is None else (v * state_v) @ self.variance
        a = self.hidden_bias(h, key, numbers).add_(mean).addcmul_(h, tilt)
        return normal_read(a, variance, rng.subkey(key, _W), numbers)


def reader(ensemble: Ensemble, *, units: Units = "sampled", chunk_size: int = CHUNK_SIZE) -> Reader:
    """The fastest reader for the ensemble: specific to Bernoulli or Gaussian W, or for any law."""
    W = ensemble.W
    if ensemble.visible == "binary":
        if isinstance(W, Gaussian):
            return GaussianReader(ensemble, W)
        if isinstance(W, Bernoulli) and units == "sampled" and fast(_first(W)):
            return BernoulliReader(ensemble, W)
    return AnyReader(ensemble, chunk_size)


def hidden_noise(mean: Tensor, key: int) -> Tensor:
    """h ~ P(h | v, θ) given the mean from a pass with the same key."""
    return draw_binary(mean, rng.subkey(key, _H))


def blocks(size: int, step: int) -> Iterator[slice]:
    """Slices of ``step`` elements, the last one shorter, that cover ``size``."""
    step = max(step, 1)
    return (slice(start, min(start + step, size)) for start in range(0, size, step))


def _picked(parts: tuple[Tensor, ...], source: Tensor | None) -> tuple[Tensor, ...]:
    return parts if source is None else tuple(x[source] for x in parts)


def _first(law: Law) -> Tensor:
    return law.alpha[law.names[0]]


def _biases(law: Law, t: Tensor, key: int, numbers: rng.Numbers | None = None) -> Tensor:
    """Biases given the tilts t (N, n): as many rows, or one row for all chains."""
    if not law.random:
        return law.mean().unsqueeze(0)
    return law.draw(t, rng.uniform(key, tuple(t.shape), device=t.device, numbers=numbers))


def _sigmoid(a: Tensor) -> Tensor:
    mean = torch.empty_like(a)
    mean_units(a, a.new_zeros(a.shape[-1]), mean=mean)
    return mean
