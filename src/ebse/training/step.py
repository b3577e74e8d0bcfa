"""What a run moves: an E-step's memory and an M-step's ascent, one mini-batch at a time."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor

from ebse.kernels.units import fast
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training._fused import FusedDivergence
from ebse.training.data import Rows
from ebse.training.optim.effective_ascent import EffectiveAscent, EffectiveClimb
from ebse.training.optim.m_step import Climb, GradientAscent, MStep, Tensors
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep, Memory


@final
class Engine:
    """E-step and M-step of one run, with everything that they carry from batch to batch."""

    def __init__(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        e_step: EStep | None,
        m_step: MStep | None,
        batch_size: int,
    ) -> None:
        _require_ensemble(ensemble)
        self.e_step = ContrastiveDivergence(persistent=True) if e_step is None else e_step
        self.m_step = _default_ascent(ensemble) if m_step is None else m_step
        _require_steps(self.e_step, self.m_step)
        self.batch_size = batch_size
        self._mu = torch.full((ensemble.D,), 0.5, dtype=ensemble.dtype)
        self.climb: Climb = self.m_step.begin(ensemble, self._mu)
        self.memory: Memory = {}
        self._begun = False
        self._fused: FusedDivergence | None = None
        self._generator = torch.Generator()

    def begin(self, rows: Rows, key: int) -> None:
        """See the data before the first step: their mean, and where chains start."""
        v = rows.known()
        if not self._begun:
            self._mu = v.mean(0)
            self.climb = self.m_step.begin(self.climb.ensemble, self._mu)
        if isinstance(self.e_step, Algorithm1) and self.e_step.persistent:
            every = rows.whole()
            if every is None:
                raise TypeError(
                    "v must be a tensor for persistent hidden states, one for each row, got rows that are "
                    "not in memory as one; use persistent=False"
                )
            v = every
        # Chains with θ integrated out do not ask for the laws, which may be long to make.
        collapsed = isinstance(self.e_step, ContrastiveDivergence)
        ensemble = self.climb.acting if collapsed else self.climb.ensemble
        self.memory = self.e_step.start(
            ensemble, v, self.batch_size, self.memory, generator=self._seeded(key)
        )
        self._set_going()

    def step(self, v: Tensor, rows: Tensor, factor: float, key: int) -> None:
        """One E-step and one M-step on the batch v, which are the given rows of the training set."""
        e_step, climb = self.e_step, self.climb
        if self._fused is not None:
            self._fused.step(v, self.memory, factor, key)
            return
        with torch.no_grad():
            if isinstance(e_step, ContrastiveDivergence):
                phases, self.memory = e_step.counted_phases(climb.acting, v, self.memory, key)
            else:
                generator = self._seeded(key)
                phases, self.memory = e_step.phases(climb.ensemble, v, rows, self.memory, generator=generator)
        climb.step(phases, factor)

    def threads(self) -> AbstractContextManager[None]:
        """Numbers of threads for a pass over the data: of the fused step's choice, or as they are."""
        return nullcontext() if self._fused is None else self._fused.threads()

    @property
    def batch(self) -> Tensor | None:
        """Where the rows of a mini-batch may be written, if the engine has a place for them."""
        return None if self._fused is None else self._fused.batch

    def keep(self) -> None:
        """Keep the present state for :meth:`take_back`."""
        self.climb.keep()
        if not self.climb.keeps_every_step:
            self._kept_memory = {name: x.clone() for name, x in self.memory.items()}

    def take_back(self) -> None:
        """Go back to the state that was kept."""
        self.climb.take_back()
        if not self.climb.keeps_every_step:
            self.memory = {name: x.clone() for name, x in self._kept_memory.items()}

    def adopt(self, ensemble: RestrictedBoltzmannEnsemble) -> None:
        """Go on from another ensemble: the best one that a run has met."""
        self.climb = self.m_step.begin(ensemble, self._mu)
        self._set_going()
        self.keep()

    def load(self, climb: Tensors, memory: Memory) -> None:
        """Be the engine that had these arrays."""
        self.climb.load(climb)
        self.memory = memory
        self._set_going()
        self.keep()

    def _seeded(self, key: int) -> torch.Generator:
        # Torch takes seeds of 63 bits.
        return self._generator.manual_seed(key >> 1)

    def _set_going(self) -> None:
        """Take the fast path where it leads to the same place."""
        self._begun = True
        e_step, climb = self.e_step, self.climb
        if not isinstance(e_step, ContrastiveDivergence) or e_step.units != "sampled":
            return
        if isinstance(climb, EffectiveClimb) and fast(climb.W):
            self._fused = FusedDivergence(e_step, climb, self.batch_size)


def _default_ascent(ensemble: RestrictedBoltzmannEnsemble) -> MStep:
    return EffectiveAscent() if ensemble.visible == "binary" else GradientAscent()


def _require_ensemble(ensemble: Any) -> None:
    if not isinstance(ensemble, RestrictedBoltzmannEnsemble):
        raise TypeError(
            f"ensemble must be a RestrictedBoltzmannEnsemble, got {type(ensemble).__name__}; other ensembles "
            "are trained with ebse.training.gradient or monte_carlo_gradient and an optimizer of your own"
        )


def _require_steps(e_step: Any, m_step: Any) -> None:
    """An E-step and an M-step, and not the classes of these."""
    if isinstance(e_step, type) or not hasattr(e_step, "phases"):
        raise TypeError(
            f"e_step must be an E-step, got {e_step!r}; pass ContrastiveDivergence() or Algorithm1()"
        )
    if isinstance(m_step, type) or not hasattr(m_step, "begin"):
        raise TypeError(
            f"m_step must be an M-step, got {m_step!r}; pass EffectiveAscent(learning_rate=0.1) or "
            "GradientAscent(learning_rate=0.1), with optimizer=… for another optimizer"
        )
