"""One training step: E-step and M-step on a mini-batch, with everything they carry from batch to batch."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, final

import torch
from torch import Tensor

from ebse.kernels.units import fast
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training._fused import FusedDivergence
from ebse.training.data import Rows
from ebse.training.optim import AscentState, EffectiveAscent, GradientAscent, MStep
from ebse.training.optim.effective_ascent import EffectiveState
from ebse.training.optim.m_step import Tensors
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep, Memory


@final
class Engine:
    """E-step and M-step of one run: chains in memory, the state of the ascent, and the fused step."""

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
        self.ascent: AscentState = self.m_step.start(ensemble, self._mu)
        self.memory: Memory = {}
        self._started = False
        self._fused: FusedDivergence | None = None
        self._generator = torch.Generator()

    def start(self, rows: Rows, key: int) -> None:
        """Prepare the first step from the data: their mean, and where chains start."""
        v = rows.sample()
        if not self._started:
            self._mu = v.mean(0)
            self.ascent = self.m_step.start(self.ascent.ensemble, self._mu)
        if isinstance(self.e_step, Algorithm1) and self.e_step.persistent:
            every = rows.whole()
            if every is None:
                raise TypeError(
                    "v must be a tensor for persistent hidden states, one for each row, got rows that are "
                    "not in memory as one; use persistent=False"
                )
            v = every
        # Chains with θ integrated out do not need the laws, which take time to compute.
        collapsed = isinstance(self.e_step, ContrastiveDivergence)
        ensemble = self.ascent.collapsed if collapsed else self.ascent.ensemble
        self.memory = self.e_step.start(
            ensemble, v, self.batch_size, self.memory, generator=self._seeded(key)
        )
        self._choose_step()

    def step(self, v: Tensor, rows: Tensor, factor: float, key: int) -> None:
        """One E-step and one M-step on the batch v, the given rows of the training set."""
        e_step, ascent = self.e_step, self.ascent
        if self._fused is not None:
            self._fused.step(v, self.memory, factor, key)
            return
        with torch.no_grad():
            if isinstance(e_step, ContrastiveDivergence):
                phases, self.memory = e_step.counted_phases(ascent.collapsed, v, self.memory, key)
            else:
                generator = self._seeded(key)
                phases, self.memory = e_step.phases(
                    ascent.ensemble, v, rows, self.memory, generator=generator
                )
        ascent.step(phases, factor)

    def threads(self) -> AbstractContextManager[None]:
        """Numbers of threads for a pass over the data: chosen by the fused step, or unchanged."""
        return nullcontext() if self._fused is None else self._fused.threads()

    @property
    def batch(self) -> Tensor | None:
        """A buffer for the rows of a mini-batch, where the fused step has one."""
        return None if self._fused is None else self._fused.batch

    def snapshot(self) -> None:
        """Copy the present state for :meth:`roll_back`."""
        self.ascent.snapshot()
        if not self.ascent.snapshots_every_step:
            self._saved_memory = {name: x.clone() for name, x in self.memory.items()}

    def roll_back(self) -> None:
        """Restore the last snapshot."""
        self.ascent.roll_back()
        if not self.ascent.snapshots_every_step:
            self.memory = {name: x.clone() for name, x in self._saved_memory.items()}

    def adopt(self, ensemble: RestrictedBoltzmannEnsemble) -> None:
        """Continue from another ensemble: the best one of a run."""
        self.ascent = self.m_step.start(ensemble, self._mu)
        self._choose_step()
        self.snapshot()

    def load(self, ascent: Tensors, memory: Memory) -> None:
        """Take over the arrays of another engine."""
        self.ascent.load(ascent)
        self.memory = memory
        self._choose_step()
        self.snapshot()

    def _seeded(self, key: int) -> torch.Generator:
        # Torch takes seeds of 63 bits.
        return self._generator.manual_seed(key >> 1)

    def _choose_step(self) -> None:
        """Use the fused step where it computes the same."""
        self._started = True
        e_step, ascent = self.e_step, self.ascent
        if not isinstance(e_step, ContrastiveDivergence) or e_step.units != "sampled":
            return
        if isinstance(ascent, EffectiveState) and fast(ascent.W):
            self._fused = FusedDivergence(e_step, ascent, self.batch_size)


def _default_ascent(ensemble: RestrictedBoltzmannEnsemble) -> MStep:
    return EffectiveAscent() if ensemble.visible == "binary" else GradientAscent()


def _require_ensemble(ensemble: Any) -> None:
    if not isinstance(ensemble, RestrictedBoltzmannEnsemble):
        raise TypeError(
            f"ensemble must be a RestrictedBoltzmannEnsemble, got {type(ensemble).__name__}; other ensembles "
            "are trained with ebse.training.gradient or monte_carlo_gradient and an optimizer of your own"
        )


def _require_steps(e_step: Any, m_step: Any) -> None:
    """Require an E-step and an M-step, and not their classes."""
    if isinstance(e_step, type) or not hasattr(e_step, "phases"):
        raise TypeError(
            f"e_step must be an E-step, got {e_step!r}; pass ContrastiveDivergence() or Algorithm1()"
        )
    if isinstance(m_step, type) or not hasattr(m_step, "start"):
        raise TypeError(
            f"m_step must be an M-step, got {m_step!r}; pass EffectiveAscent(learning_rate=0.1) or "
            "GradientAscent(learning_rate=0.1), with optimizer=… for another optimizer"
        )
