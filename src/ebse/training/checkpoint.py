"""Checkpoints: the folder of a run, its progress, and the finished model; resumed runs are bit-identical."""

import time
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, final

import numba
import numpy as np
import torch

from ebse import rng
from ebse._archive import Facts
from ebse._atomic import remove_partial
from ebse._validation import count
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import Tensors, describe, read, rebuild, save_ensemble, write
from ebse.training.early_stopping import EarlyStopping
from ebse.training.monitors import Monitoring, Row
from ebse.training.optim import AscentState, EffectiveAscent, GradientAscent, MStep
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep

MODEL = "model.safetensors"
N_CHECKPOINTS = 2
"""Checkpoints in a folder: the last two."""

SETTINGS = {
    kind.__name__: kind
    for kind in (ContrastiveDivergence, Algorithm1, GradientAscent, EffectiveAscent, EarlyStopping)
}


@final
class RunFolder:
    """The folder of one training run: its last checkpoints, and the finished model.

    Temporary files that a killed process left in the folder are removed.

    Parameters
    ----------
    path : str or Path
        The folder; it need not exist yet.
    every_epochs : int, optional, default=1
        Epochs between checkpoints; None for none by epochs.
    every_minutes : float, optional
        Minutes between checkpoints, also in the middle of an epoch; None for none by time.
    """

    def __init__(
        self, path: str | Path, *, every_epochs: int | None = 1, every_minutes: float | None = None
    ) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(
                f"folder must be a folder, got the file {self.path}; choose another name"
            )
        if every_epochs is not None:
            count("every_epochs", every_epochs)
        if every_minutes is not None and not (isinstance(every_minutes, Real) and every_minutes >= 0):
            raise ValueError(f"every_minutes must be a number >= 0 or None, got {every_minutes!r}; try 10")
        self.every_epochs, self.every_minutes = every_epochs, every_minutes
        if self.path.is_dir():
            remove_partial(self.path)
        # Read once: the number of threads changes while steps run.
        self._circumstances = circumstances()
        self._written = time.monotonic()

    @property
    def checkpoints(self) -> list[Path]:
        """Checkpoints in the folder, oldest first."""
        return sorted(self.path.glob("checkpoint-*.safetensors"))

    @property
    def model(self) -> Path:
        """The file of the finished model."""
        return self.path / MODEL

    def require_new(self) -> None:
        """Refuse a folder that already holds a run."""
        if self.checkpoints or self.model.exists():
            raise FileExistsError(
                f"folder {self.path} must not hold a run already, got one; continue it by "
                f"ebse.training.resume({str(self.path)!r}, v), or choose another folder"
            )

    def create(self) -> None:
        """Create the folder, before the first checkpoint."""
        self.path.mkdir(parents=True, exist_ok=True)

    def due(self, epoch: int | None) -> bool:
        """Whether a checkpoint is due, after a mini-batch (None) or after that many epochs."""
        minutes = (time.monotonic() - self._written) / 60
        if self.every_minutes is not None and minutes >= self.every_minutes:
            return True
        return epoch is not None and self.every_epochs is not None and epoch % self.every_epochs == 0

    def write(self, n_steps: int, tensors: Tensors, facts: Facts) -> None:
        """Write a checkpoint, and remove all but the last two."""
        self._require_folder()
        path = self.path / f"checkpoint-{n_steps:012d}.safetensors"
        write(path, "checkpoint", tensors, {**facts, "circumstances": self._circumstances})
        self._written = time.monotonic()
        for old in self.checkpoints[:-N_CHECKPOINTS]:
            old.unlink(missing_ok=True)

    def read(self) -> tuple[Facts, Tensors]:
        """Read the last checkpoint; a damaged one is an error, and never skipped."""
        if not self.path.is_dir():
            raise FileNotFoundError(f"folder {self.path} does not exist; pass the folder of a run")
        if not self.checkpoints:
            raise FileNotFoundError(
                f"folder {self.path} must hold a checkpoint of a run, got none; pass the folder given to fit"
            )
        *older, last = self.checkpoints
        try:
            return read(last, "checkpoint")
        except ValueError as error:
            remedy = (
                f"; the one before is {older[-1].name}: remove {last.name} to continue from it"
                if older
                else ""
            )
            raise ValueError(f"{error}{remedy}") from None

    def finish(self, ensemble: RestrictedBoltzmannEnsemble, facts: Facts) -> None:
        """Write the finished model."""
        self._require_folder()
        save_ensemble(self.model, ensemble, **facts)

    def _require_folder(self) -> None:
        """Stop where somebody removed the folder: a new one would lack what else was in it."""
        if not self.path.is_dir():
            raise FileNotFoundError(
                f"folder {self.path} was removed while the run was training, and is not created again; the "
                "checkpoints in it are lost: start a new run, and keep its folder until it has finished"
            )


def circumstances() -> Facts:
    """What two runs must have in common to be equal bit for bit."""
    versions = {"torch": torch.__version__, "numpy": np.__version__, "numba": numba.__version__}
    return {**versions, "threads": torch.get_num_threads()}


def settings_facts(name: str, settings: EStep | MStep | EarlyStopping) -> Facts:
    """Settings of an E-step, an M-step or early stopping, as JSON can hold them."""
    kind = type(settings).__name__
    if type(settings) is not SETTINGS.get(kind):
        raise TypeError(
            f"{name} must be one of ebse to be saved, got {kind}; leave out folder, or save the run yourself"
        )
    values = {field.name: getattr(settings, field.name) for field in fields(SETTINGS[kind])}
    for field_name, value in values.items():
        if callable(value):
            raise TypeError(
                f"{field_name} must be a word or a number in a run that is saved, got a function; "
                "leave out folder, or use a named schedule and EffectiveAscent"
            )
    return {"kind": kind, **values}


def settings_from(facts: Facts) -> Any:
    """The settings from what :func:`settings_facts` returned."""
    values = dict(facts)
    return SETTINGS[values.pop("kind")](**values)


class Best(NamedTuple):
    """The best ensemble of a run with early stopping, its epoch and its criterion."""

    epoch: int
    gain: float
    ensemble: RestrictedBoltzmannEnsemble


@final
@dataclass
class Progress:
    """Progress of a run: with the key, everything that its random numbers and its order of rows depend on."""

    key: int
    n_steps: int = 0
    batch: int = 0
    """Mini-batches done in the current epoch."""
    first_epoch: int = 0
    last_epoch: int = 0
    history: list[Row] = field(default_factory=list)
    stopping: EarlyStopping | None = None
    best: Best | None = None

    def subkey(self, purpose: int, n: int) -> int:
        """Key number n for a purpose."""
        return rng.subkey(rng.subkey(self.key, purpose), n)

    def plan(self, n_epochs: int, stopping: EarlyStopping | None) -> None:
        """Plan n_epochs more; an interrupted epoch starts again, because its rows may be different now."""
        self.batch = 0
        self.first_epoch, self.last_epoch = len(self.history), len(self.history) + n_epochs
        self.stopping, self.best = stopping, None

    def done(self, within: float) -> float:
        """The fraction of the plan that is done, with the fraction ``within`` of the current epoch."""
        return (len(self.history) - self.first_epoch + within) / (self.last_epoch - self.first_epoch)

    def over(self) -> bool:
        """Whether all planned epochs are done, or early stopping applies."""
        n_epochs = len(self.history)
        if self.stopping is not None and self.best is not None:
            return n_epochs >= min(self.last_epoch, self.best.epoch + self.stopping.patience)
        return n_epochs >= self.last_epoch

    def compare(self, ascent: AscentState, monitoring: Monitoring) -> None:
        """Keep the best ensemble where early stopping is on."""
        if self.stopping is None or monitoring.v is None or monitoring.held_out is None:
            return
        ensemble = ascent.monitored
        gain = self.stopping.gain(ensemble, monitoring.v, monitoring.held_out)
        if self.best is None or gain > self.best.gain + self.stopping.min_gain:
            self.best = Best(len(self.history), gain, ensemble)

    def facts(self) -> Facts:
        """The progress as JSON can hold it, without the arrays of the best ensemble."""
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
        """The progress from what :meth:`facts` and :meth:`tensors` returned."""
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
