"""E-steps: contrastive divergence, persistent contrastive divergence, and Algorithm 1 of the paper."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

import torch
from torch import Tensor

from ebse import rng
from ebse._validation import count, option
from ebse.kernels.readout import draw_binary
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, Units, clamped_sweeps, explicit_sweeps
from ebse.sampling._row_sweeps import CHUNK_SIZE
from ebse.sampling.collapsed import EffectiveChain
from ebse.sampling.state import START

Memory = dict[str, Tensor]
"""What an E-step carries from batch to batch: chains, or hidden states of training rows."""


class Phases(NamedTuple):
    """States (v, h) of the data phase and of the model phase; h may be probabilities."""

    data: State
    model: State


class EStep(Protocol):
    """An estimate of the two expectations of Eq. 6, under the data and under the model."""

    def start(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        n_chains: int,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> Memory:
        """The memory at the start of a pass over the rows v, given the memory before (or none)."""

    def phases(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        rows: Tensor,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> tuple[Phases, Memory]:
        """The two phases of the batch v, the given rows of the training set."""


@final
@dataclass(frozen=True)
class ContrastiveDivergence:
    """Contrastive divergence (CD-k) or persistent contrastive divergence (PCD-k), with θ integrated out.

    The model phase is a block-Gibbs chain of k sweeps on P(v, h).

    Parameters
    ----------
    k : int, default=1
        Sweeps of the model phase. More sweeps lower the bias of the gradient and cost time in proportion; 1
        is usual with persistent chains, 1 to 10 without.
    persistent : bool, default=False
        Continue the chains from batch to batch (PCD-k) instead of starting them at the data (CD-k). Better
        likelihoods at the same cost; :class:`Training` uses it by default.
    units : {"sampled", "mean"}, default="sampled"
        "sampled": units are sampled, and hidden statistics are means given v, which lowers their variance.
        "mean": every unit is its mean (mean field).

    References
    ----------
    G. E. Hinton, "Training products of experts by minimizing contrastive divergence", 2002. T. Tieleman,
    "Training restricted Boltzmann machines using approximations to the likelihood gradient", 2008.

    Examples
    --------
    >>> ContrastiveDivergence(k=5, persistent=True).units
    'sampled'
    """

    k: int = 1
    persistent: bool = False
    units: Units = "sampled"

    def __post_init__(self) -> None:
        count("k", self.k)
        option("units", self.units, ("sampled", "mean"))

    def start(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        n_chains: int,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> Memory:
        """Chains at randomly chosen training rows, if they persist and have not started yet."""
        if memory or not self.persistent:
            return memory
        rows = torch.randint(len(v), (n_chains,), generator=generator, device=generator.device)
        v = v[rows.to(v.device)]
        return {"v": v, "h": ensemble.sample_h_given_v(v, generator=generator)}

    def phases(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        rows: Tensor,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> tuple[Phases, Memory]:
        """h | v at the data, and k sweeps of a chain."""
        return self.counted_phases(ensemble, v, memory, rng.draw_key(generator))

    def counted_phases(
        self, ensemble: RestrictedBoltzmannEnsemble, v: Tensor, memory: Memory, key: int
    ) -> tuple[Phases, Memory]:
        """The same with the random numbers of a key."""
        chain = EffectiveChain(ensemble)
        data = State(v, chain.mean_h(v))
        state = data
        if self.persistent:
            state = State(memory["v"], memory["h"])
        elif self.units == "sampled":
            state = State(v, draw_binary(data.h, rng.subkey(key, START)))
        state = chain.sweeps(state, self.k, key, units=self.units)
        memory = {"v": state.v, "h": state.h} if self.persistent else {}
        return Phases(data, State(state.v, chain.mean_h(state.v))), memory


@final
@dataclass(frozen=True)
class Algorithm1:
    """Algorithm 1 of the paper: chains that sample θ explicitly, k + 1 sweeps in each phase.

    Parameters
    ----------
    k : int, default=1
        The k of the paper: both loops run for t = 0 … k. More sweeps lower the bias and cost time in
        proportion.
    persistent : bool, default=False
        Start the clamped chain of a training row at its last hidden state ("persistent state") instead of a
        sample of P(h | v). Needs all rows in memory.
    units : {"sampled", "mean"}, default="sampled"
        "sampled", as in the paper, or "mean" for mean-field units.
    chunk_size : int
        Connections sampled at once; larger values take more memory.

    Notes
    -----
    The second loop conditions on its own h′, where the listing has the h⁽ᵗ⁾ of the first loop.
    :class:`ContrastiveDivergence` estimates the same gradient with θ integrated out, at a small fraction of
    the cost.

    Examples
    --------
    >>> Algorithm1(k=2).persistent
    False
    """

    k: int = 1
    persistent: bool = False
    units: Units = "sampled"
    chunk_size: int = CHUNK_SIZE

    def __post_init__(self) -> None:
        count("k", self.k, least=0)
        count("chunk_size", self.chunk_size)
        option("units", self.units, ("sampled", "mean"))

    def start(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        n_chains: int,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> Memory:
        """A hidden state for each training row, by its index, if they persist."""
        if not self.persistent or (memory and len(memory["h"]) == len(v)):
            return memory
        return {"h": self._first_h(ensemble, v, generator)}

    def phases(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        v: Tensor,
        rows: Tensor,
        memory: Memory,
        *,
        generator: torch.Generator,
    ) -> tuple[Phases, Memory]:
        """Lines 3 to 16: the free loop and the clamped loop, from the same (v, h⁽⁰⁾)."""
        if self.units == "sampled":
            # Both loops must start from the same binary v, with h⁽⁰⁾ given that v.
            none = v.new_zeros(len(v), ensemble.K)
            v, _ = ensemble.binary_units(v, none, rng.draw_key(generator))
        h = memory["h"][rows] if self.persistent else self._first_h(ensemble, v, generator)
        start, n_sweeps = State(v, h), self.k + 1
        model = explicit_sweeps(
            ensemble, start, n_sweeps, generator=generator, units=self.units, chunk_size=self.chunk_size
        )
        data = clamped_sweeps(
            ensemble, start, n_sweeps, generator=generator, units=self.units, chunk_size=self.chunk_size
        )
        if self.persistent:
            # In place: a copy of all rows for every batch would cost more than the batch.
            memory["h"].index_copy_(0, rows, data.h)
        return Phases(data, model), memory

    def _first_h(
        self, ensemble: RestrictedBoltzmannEnsemble, v: Tensor, generator: torch.Generator
    ) -> Tensor:
        if self.units == "mean":
            return ensemble.mean_h_given_v(v)
        return ensemble.sample_h_given_v(v, generator=generator)
