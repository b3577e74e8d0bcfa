"""How far a run is: counters, history, the plan, and the best ensemble so far."""

from dataclasses import dataclass, field
from typing import NamedTuple, final

from ebse import rng
from ebse._archive import Facts
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import Tensors, describe, rebuild
from ebse.training._watching import Watch
from ebse.training.checkpoint import settings_facts, settings_from
from ebse.training.early_stopping import EarlyStopping
from ebse.training.monitors import Row
from ebse.training.optim.m_step import Climb


class Best(NamedTuple):
    """The best ensemble of a run that may stop early, and when it was."""

    epoch: int
    gain: float
    ensemble: RestrictedBoltzmannEnsemble


@final
@dataclass
class Progress:
    """Counters of a run; with the key, everything that its noise and its order of rows depend on."""

    key: int
    n_steps: int = 0
    batch: int = 0
    """Mini-batches done of the epoch under way."""
    first_epoch: int = 0
    last_epoch: int = 0
    history: list[Row] = field(default_factory=list)
    stopping: EarlyStopping | None = None
    best: Best | None = None

    def subkey(self, purpose: int, n: int) -> int:
        """Key number n of a purpose."""
        return rng.subkey(rng.subkey(self.key, purpose), n)

    def plan(self, n_epochs: int, stopping: EarlyStopping | None) -> None:
        """Set out for n_epochs more; a broken-off epoch begins anew, its rows may be others now."""
        self.batch = 0
        self.first_epoch, self.last_epoch = len(self.history), len(self.history) + n_epochs
        self.stopping, self.best = stopping, None

    def done(self, within: float) -> float:
        """The fraction of the plan that is over, ``within`` the epoch under way."""
        return (len(self.history) - self.first_epoch + within) / (self.last_epoch - self.first_epoch)

    def over(self) -> bool:
        """Whether the plan is carried out, or held-out rows have long stopped gaining."""
        n_epochs = len(self.history)
        if self.stopping is not None and self.best is not None:
            return n_epochs >= min(self.last_epoch, self.best.epoch + self.stopping.patience)
        return n_epochs >= self.last_epoch

    def compare(self, climb: Climb, watch: Watch) -> None:
        """Remember the best ensemble where a run may stop early."""
        if self.stopping is None or watch.v is None or watch.held_out is None:
            return
        ensemble = climb.watched
        gain = self.stopping.gain(ensemble, watch.v, watch.held_out)
        if self.best is None or gain > self.best.gain + self.stopping.min_gain:
            self.best = Best(len(self.history), gain, ensemble)

    def facts(self) -> Facts:
        """Everything but the best ensemble's arrays."""
        stopping, best = self.stopping, self.best
        return {
            "key": self.key,
            "n_steps": self.n_steps,
            "batch": self.batch,
            "epochs": [self.first_epoch, self.last_epoch],
            "history": self.history,
            "early_stopping": None if stopping is None else settings_facts("early_stopping", stopping),
            "best": None if best is None else [best.epoch, best.gain, describe(best.ensemble)[0]],
        }

    def tensors(self) -> Tensors:
        """Arrays of the best ensemble."""
        return {} if self.best is None else describe(self.best.ensemble)[1]

    @classmethod
    def restored(cls, facts: Facts, tensors: Tensors) -> "Progress":
        """The progress that :meth:`facts` and :meth:`tensors` described."""
        stopping = facts["early_stopping"]
        first_epoch, last_epoch = facts["epochs"]
        progress = cls(
            facts["key"],
            facts["n_steps"],
            facts["batch"],
            first_epoch,
            last_epoch,
            facts["history"],
            None if stopping is None else settings_from(stopping),
        )
        if facts["best"] is not None:
            epoch, gain, described = facts["best"]
            progress.best = Best(epoch, gain, rebuild(described, tensors))
        return progress
