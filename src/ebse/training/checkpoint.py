"""A run's folder: checkpoints from which it goes on bit for bit, and the finished model."""

import time
from dataclasses import fields
from numbers import Real
from pathlib import Path
from typing import Any, final

import numba
import numpy as np
import torch

from ebse._archive import Facts
from ebse._validation import count
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import Tensors, read, save_ensemble, write
from ebse.training.early_stopping import EarlyStopping
from ebse.training.optim.effective_ascent import EffectiveAscent
from ebse.training.optim.m_step import GradientAscent, MStep
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep

MODEL = "model.safetensors"
KEPT = 2
"""Checkpoints that a folder keeps: the last, and the one before."""

SETTINGS = {
    kind.__name__: kind
    for kind in (ContrastiveDivergence, Algorithm1, GradientAscent, EffectiveAscent, EarlyStopping)
}


@final
class RunFolder:
    """The folder of one run.

    Parameters
    ----------
    path
        Made if need be.
    every_epochs, every_minutes
        How often a checkpoint is written; either, or both.
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
        # Of the whole run, and not of the moment at which a checkpoint is written.
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
        """Refuse a folder in which there already is a run."""
        if self.checkpoints or self.model.exists():
            raise FileExistsError(
                f"folder {self.path} must not hold a run already, got one; go on with it by "
                f"ebse.training.resume({str(self.path)!r}, v), or choose another folder"
            )

    def due(self, epoch: int | None) -> bool:
        """Whether a checkpoint is due, after a mini-batch (None) or after that many epochs."""
        minutes = (time.monotonic() - self._written) / 60
        if self.every_minutes is not None and minutes >= self.every_minutes:
            return True
        return epoch is not None and self.every_epochs is not None and epoch % self.every_epochs == 0

    def write(self, n_steps: int, tensors: Tensors, facts: Facts) -> None:
        """A checkpoint beside the last one; older ones go."""
        path = self.path / f"checkpoint-{n_steps:012d}.safetensors"
        write(path, "checkpoint", tensors, {**facts, "circumstances": self._circumstances})
        self._written = time.monotonic()
        # Of a process that was killed while it wrote.
        partial = self.path.glob(".checkpoint-*.partial")
        for old in [*self.checkpoints[:-KEPT], *partial]:
            old.unlink(missing_ok=True)

    def read(self) -> tuple[Facts, Tensors]:
        """The last checkpoint; a damaged one is an error, never passed over."""
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
                f"; the one before is {older[-1].name}: remove {last.name} to go on from it" if older else ""
            )
            raise ValueError(f"{error}{remedy}") from None

    def finish(self, ensemble: RestrictedBoltzmannEnsemble, facts: Facts) -> None:
        """The finished model."""
        save_ensemble(self.model, ensemble, **facts)


def circumstances() -> Facts:
    """What must be equal for two runs to be equal bit for bit."""
    versions = {"torch": torch.__version__, "numpy": np.__version__, "numba": numba.__version__}
    return {**versions, "threads": torch.get_num_threads()}


def settings_facts(name: str, settings: EStep | MStep | EarlyStopping) -> Facts:
    """Settings as JSON can hold them."""
    kind = type(settings).__name__
    if type(settings) is not SETTINGS.get(kind):
        raise TypeError(
            f"{name} must be one of ebse's own to be saved, got {kind}; leave out folder, or keep the run "
            "yourself"
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
    """The settings that :func:`settings_facts` described."""
    values = dict(facts)
    return SETTINGS[values.pop("kind")](**values)
