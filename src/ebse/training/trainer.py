"""The loop of EM contrastive divergence: E-step, M-step, one row of history an epoch."""

import signal
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from ebse import rng
from ebse._archive import Facts, consistent
from ebse._validation import count
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import Tensors, describe, rebuild
from ebse.training._progress import Progress
from ebse.training._signals import Signals, deferred
from ebse.training._watching import Watch
from ebse.training.checkpoint import RunFolder, circumstances, settings_facts, settings_from
from ebse.training.data import Data, Rows, require_same_columns, require_same_rows, rows_of
from ebse.training.early_stopping import EarlyStopping, require_stopping
from ebse.training.monitors import DEFAULT_MONITORS, Monitor, Row
from ebse.training.optim.m_step import MStep, schedule_factor
from ebse.training.phases import EStep
from ebse.training.step import Engine

Callback = Callable[[Row], None]

_ORDER, _STEPS, _START = range(3)


class DivergedError(FloatingPointError):
    """Training diverged: a parameter is not finite, or too large to compute with.

    Parameters
    ----------
    cause
        Which parameter, and which setting to lower.
    step
        The step at which it was found.
    kept_step
        The step whose ensemble the run still holds.

    Attributes
    ----------
    summary
        The message without the place where the last finite ensemble is.

    Examples
    --------
    >>> DivergedError("K(1) of W is not finite; lower learning_rate (now 9)", step=7, kept_step=6).summary
    'training diverged at step 7: K(1) of W is not finite; lower learning_rate (now 9)'
    """

    def __init__(self, cause: str, *, step: int, kept_step: int) -> None:
        self.cause, self.step, self.kept_step = cause, step, kept_step
        self.summary = f"training diverged at step {step}: {cause}"
        super().__init__(
            f"{self.summary}. The ensemble of step {kept_step} is kept in this run's .ensemble and its rows "
            "in .history"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from their positional arguments, which here are the message alone.
        return partial(DivergedError, step=self.step, kept_step=self.kept_step), (self.cause,)


@final
class Training:
    """A training run: it holds the ensemble, its history, and whatever the next step needs.

    Ctrl-C takes effect after the mini-batch under way, so that no step is left half done: ``ensemble`` is as
    the last completed step made it, ``history`` has the rows of all completed epochs, and ``fit`` goes on
    from there. A second Ctrl-C, an error within a step, or divergence goes back to the start of the epoch.
    The start is brought within the constraints of its laws (p in [1e-4, 1 − 1e-4]). On small models one
    thread is fastest: ``torch.set_num_threads(1)``.

    Parameters
    ----------
    ensemble
        Where training starts; :func:`ebse.training.initial_ensemble` makes a good one.
    e_step, m_step
        How expectations are estimated, and what is done with the gradient. By default persistent
        contrastive divergence, and :class:`EffectiveAscent` for binary units or
        :class:`GradientAscent` for real ones.
    batch_size
        Rows of a mini-batch, and number of persistent chains.
    monitors
        What is written into each row of the history.
    generator
        Supplies one key, from which the order of rows and the noise of every step are counted.

    Attributes
    ----------
    ensemble
        The ensemble as trained so far; its laws are ``ensemble.W``, ``ensemble.b`` and ``ensemble.c``.
        After early stopping, the best one.
    history
        One row of numbers for each epoch, by name: what the monitors found. ``log_likelihood`` is among
        them where one side has at most 12 units.
    n_steps
        Completed steps.

    Examples
    --------
    >>> from ebse.laws import Bernoulli
    >>> from ebse.training import initial_ensemble
    >>> g = torch.Generator().manual_seed(0)
    >>> v = torch.tensor([[1., 1., 1., 0., 0., 0.], [0., 0., 0., 1., 1., 1.]]).repeat(20, 1)
    >>> run = Training(initial_ensemble(v, 4, law=Bernoulli, generator=g), batch_size=10, generator=g)
    >>> history = run.fit(v, n_epochs=50).history
    >>> history[-1]["log_likelihood"] > history[0]["log_likelihood"]
    True
    """

    def __init__(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        *,
        generator: torch.Generator,
        e_step: EStep | None = None,
        m_step: MStep | None = None,
        batch_size: int = 100,
        monitors: Sequence[Monitor] = DEFAULT_MONITORS,
    ) -> None:
        self._progress = Progress(rng.draw_key(generator))
        self.batch_size = count("batch_size", batch_size)
        self._watch = Watch(monitors)
        self._engine = Engine(ensemble, e_step, m_step, self.batch_size)
        self._written: tuple[int, int] | None = None
        self._keep()

    @property
    def history(self) -> list[Row]:
        """One row for each completed epoch."""
        return self._progress.history

    @property
    def n_steps(self) -> int:
        """Completed steps."""
        return self._progress.n_steps

    @property
    def chains(self) -> Tensor | None:
        """Visible units of the persistent chains, where there are some."""
        return self._engine.memory.get("v")

    @property
    def ensemble(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble as trained so far, or the best one after early stopping."""
        best = self._progress.best
        return self._engine.climb.ensemble if best is None else best.ensemble

    def fit(
        self,
        v: Data,
        n_epochs: int,
        *,
        held_out: Data | None = None,
        callback: Callback | None = None,
        early_stopping: EarlyStopping | None = None,
        folder: str | Path | None = None,
        every_epochs: int | None = 1,
        every_minutes: float | None = None,
    ) -> "Training":
        """Train for n_epochs more passes over the rows of v (N, D).

        Parameters
        ----------
        v
            A tensor, a NumPy array (also memory-mapped), a csr matrix, or an iterable of such chunks. Chunks
            come in their own order, each shuffled by itself, and the schedule moves from epoch to epoch.
        held_out
            Rows that are watched, never learned from; some of them, evenly spread, where they are many.
        callback
            Gets each epoch's row of the history.
        early_stopping
            When to stop before n_epochs; needs ``held_out``. The best ensemble is what the run ends with.
        folder, every_epochs, every_minutes
            Where to keep checkpoints, and how often. The finished model is ``model.safetensors`` there.
            A run that was stopped or killed goes on with :func:`resume`.
        """
        count("n_epochs", n_epochs, least=0)
        require_stopping(early_stopping, self._engine.climb.acting, held_out)
        rows = self._rows(v)
        self._choose(rows, held_out)
        kept = None
        if folder is not None:
            kept = RunFolder(folder, every_epochs=every_epochs, every_minutes=every_minutes)
            kept.require_new()
            self._facts(rows, kept)
        self._engine.begin(rows, self._progress.subkey(_START, len(self.history)))
        self._progress.plan(n_epochs, early_stopping)
        if kept is not None:
            self._write(kept, rows)
        return self._go(rows, callback, kept)

    def _go(self, rows: Rows, callback: Callback | None, kept: RunFolder | None) -> "Training":
        """Train until the plan is carried out."""
        progress = self._progress
        numbers = (signal.SIGINT,) if kept is None else (signal.SIGINT, signal.SIGTERM)
        with deferred(*numbers) as signals, torch.no_grad():
            while not progress.over():
                with self._engine.threads():
                    self._epoch(rows, signals, kept)
                    row = self._row()
                    progress.history.append(row)
                    progress.batch = 0
                    progress.compare(self._engine.climb, self._watch)
                if kept is not None and kept.due(len(self.history)):
                    self._write(kept, rows)
                if callback is not None:
                    callback(row)
                self._obey(signals, rows, kept)
        if kept is not None:
            if self._written != (self.n_steps, len(self.history)):
                self._write(kept, rows)
            kept.finish(self.ensemble, {"history": self.history, "n_steps": self.n_steps})
        if progress.best is not None:
            self._engine.adopt(progress.best.ensemble)
        return self

    def _epoch(self, rows: Rows, signals: Signals, kept: RunFolder | None) -> None:
        """The mini-batches that are left of the epoch under way."""
        progress = self._progress
        if progress.batch == 0 and not self._engine.climb.keeps_every_step:
            self._keep()
        order = progress.subkey(_ORDER, len(self.history))
        for n, (v, index) in enumerate(rows.batches(order, self._engine.batch)):
            if n < progress.batch:
                continue
            within = 0.0 if rows.n_batches is None else n / rows.n_batches
            self._step(v, index, schedule_factor(self._engine.m_step.schedule, progress.done(within)))
            self._obey(signals, rows, kept)
            if kept is not None and kept.due(None):
                self._write(kept, rows)
        self._require_sound()

    def _step(self, v: Tensor, rows: Tensor, factor: float) -> None:
        """One step of the engine, counted, or taken back."""
        progress, engine = self._progress, self._engine
        try:
            engine.step(v, rows, factor, progress.subkey(_STEPS, progress.n_steps))
            progress.n_steps += 1
            progress.batch += 1
            if engine.climb.keeps_every_step:
                self._require_sound()
                self._keep()
        except BaseException:
            self._take_back()
            raise

    def _keep(self) -> None:
        self._engine.keep()
        self._kept_at = (self._progress.n_steps, self._progress.batch)

    def _take_back(self) -> None:
        self._engine.take_back()
        self._progress.n_steps, self._progress.batch = self._kept_at

    def _require_sound(self) -> None:
        """Stop where a parameter cannot be computed with, and say what to lower."""
        fault = self._engine.climb.fault()
        if fault is None:
            return
        at = self.n_steps
        self._take_back()
        raise DivergedError(fault, step=at, kept_step=self.n_steps)

    def _row(self) -> Row:
        row: Row = {"epoch": float(len(self.history) + 1), "step": float(self.n_steps)}
        if self._watch.monitors:
            row |= self._watch.row(self._engine.climb.watched)
        return row

    def _obey(self, signals: Signals, rows: Rows, kept: RunFolder | None) -> None:
        """Stop if a signal came, with everything saved that can be."""
        if signals.received is None:
            return
        how = "fit of the same Training goes on from there"
        if kept is not None:
            self._write(kept, rows)
            held_out = "" if self._watch.held_out is None else ", held_out=…"
            how = f"go on with ebse.training.resume({str(kept.path)!r}, v{held_out})"
        message = f"stopped after step {self.n_steps} (epoch {len(self.history) + 1}); {how}"
        raise KeyboardInterrupt(message) if signals.received == signal.SIGINT else SystemExit(message)

    def _write(self, kept: RunFolder, rows: Rows) -> None:
        # A state that diverged must not take the place of one that is sound.
        self._require_sound()
        parts = {
            "ensemble": describe(self._engine.climb.ensemble)[1],
            "climb": self._engine.climb.tensors(),
            "memory": self._engine.memory,
            "best": self._progress.tensors(),
        }
        tensors = {f"{part}/{name}": x for part, held in parts.items() for name, x in held.items()}
        kept.write(self.n_steps, tensors, self._facts(rows, kept))
        self._written = (self.n_steps, len(self.history))

    def _facts(self, rows: Rows, kept: RunFolder) -> Facts:
        """Everything about the run that is not an array, and not the clock."""
        return {
            "ensemble": describe(self._engine.climb.ensemble)[0],
            "e_step": settings_facts("e_step", self._engine.e_step),
            "m_step": settings_facts("m_step", self._engine.m_step),
            "batch_size": self.batch_size,
            "progress": self._progress.facts(),
            "data": rows.describe(),
            "held_out": self._watch.held_out_facts,
            "monitors": self._watch.names,
            "every": [kept.every_epochs, kept.every_minutes],
        }

    def _restore(self, facts: Facts, tensors: Tensors) -> None:
        """Be the run that wrote a checkpoint."""
        self._progress = Progress.restored(facts["progress"], _below("best", tensors))
        self._engine.load(_below("climb", tensors), _below("memory", tensors))
        self._keep()

    def _rows(self, v: Data, name: str = "v") -> Rows:
        ensemble = self._engine.climb.acting
        return rows_of(name, v, ensemble.D, dtype=ensemble.dtype, batch_size=self.batch_size)

    def _choose(self, rows: Rows, held_out: Data | None) -> None:
        """Rows that are watched."""
        ensemble = self._engine.climb.acting
        kept_back = None if held_out is None else self._rows(held_out, "held_out")
        self._watch.begin(rows, kept_back, ensemble.D * ensemble.K)


def resume(
    folder: str | Path,
    v: Data,
    *,
    held_out: Data | None = None,
    callback: Callback | None = None,
    monitors: Sequence[Monitor] = DEFAULT_MONITORS,
) -> Training:
    """The run in ``folder``, gone on with to its planned end.

    On the same machine, with the same data, number of threads and versions, it ends with bit for bit the
    model of a run that was never stopped. A finished run is returned as it is; ``fit`` trains it further.
    ``held_out`` and ``monitors`` must be those that the run began with. Data in memory are compared as a
    whole; of a memory-mapped array, or the first of several chunks, 1,000 rows.
    """
    kept = RunFolder(folder)
    facts, tensors = kept.read()
    with consistent(kept.checkpoints[-1]):
        run = Training(
            rebuild(facts["ensemble"], _below("ensemble", tensors)),
            generator=torch.Generator(),
            e_step=settings_from(facts["e_step"]),
            m_step=settings_from(facts["m_step"]),
            batch_size=facts["batch_size"],
            monitors=monitors,
        )
        run._restore(facts, tensors)
    n_units = run._engine.climb.acting.D
    require_same_columns("v", v, n_units)
    require_same_columns("held_out", held_out, n_units)
    rows = run._rows(v)
    run._choose(rows, held_out)
    require_same_rows("v", facts["data"], rows.describe())
    require_same_rows("held_out", facts["held_out"], run._watch.held_out_facts)
    if facts["monitors"] != run._watch.names:
        began, now = ", ".join(facts["monitors"]), ", ".join(run._watch.names)
        raise ValueError(
            f"monitors must be what the run began with ({began}), got {now or 'none'}; pass the same"
        )
    if run._progress.over() and kept.model.exists():
        return run
    if facts["circumstances"] != circumstances():
        warnings.warn(
            f"the run began with {facts['circumstances']} and goes on with {circumstances()}: "
            "it may differ in its last bits from one that was never stopped",
            stacklevel=2,
        )
    kept.every_epochs, kept.every_minutes = facts["every"]
    return run._go(rows, callback, kept)


def _below(prefix: str, tensors: Tensors) -> Tensors:
    head = f"{prefix}/"
    return {name.removeprefix(head): x for name, x in tensors.items() if name.startswith(head)}
