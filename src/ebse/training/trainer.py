"""The training loop: E-step and M-step on every mini-batch, one row of history an epoch."""

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
from ebse.training._signals import Signals, deferred
from ebse.training.checkpoint import Progress, RunFolder, circumstances, settings_facts, settings_from
from ebse.training.data import Data, Rows, require_same_columns, require_same_rows, rows_of
from ebse.training.early_stopping import EarlyStopping, require_stopping
from ebse.training.monitors import DEFAULT_MONITORS, Monitor, Monitoring, Row
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
    """Training of a restricted Boltzmann ensemble: the ensemble, its history, and the state of the run.

    Ctrl-C takes effect after the current mini-batch, so that no step is left incomplete: ``ensemble`` is the
    result of the last completed step, ``history`` has the rows of all completed epochs, and ``fit`` continues
    from there. A second Ctrl-C, an error within a step, or divergence restores the start of the epoch. The
    initial ensemble is projected onto the constraints of its laws (p in [1e-4, 1 − 1e-4]).

    Parameters
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        The initial ensemble, see :func:`ebse.training.initial_ensemble`.
    generator : torch.Generator
        Supplies one key, from which the order of rows and the random numbers of every step are counted.
    e_step : EStep, optional
        Estimate of the expectations; by default persistent contrastive divergence.
    m_step : MStep, optional
        Use of the gradient; by default :class:`EffectiveAscent` for binary units and :class:`GradientAscent`
        for real ones.
    batch_size : int, default=100
        Rows of a mini-batch, and number of persistent chains. Larger batches give less noisy gradients and
        fewer steps an epoch; 10 to 500 are usual.
    monitors : sequence of callables
        Functions whose values make up a row of the history.

    Attributes
    ----------
    ensemble : RestrictedBoltzmannEnsemble
        The ensemble trained so far; its laws are ``ensemble.W``, ``ensemble.b`` and ``ensemble.c``. After
        early stopping, the best one.
    history : list of dict
        One row of named numbers for each epoch: the values of the monitors. ``log_likelihood`` is among them
        where one side has at most 12 units.
    n_steps : int
        Completed steps.

    Notes
    -----
    Contrastive divergence in single precision on binary units runs on one thread or on all of torch's
    threads, whichever is faster at present: results do not depend on it. All else uses torch's number of
    threads; for small models one thread is fastest (``torch.set_num_threads(1)``).

    References
    ----------
    T. Tieleman, "Training restricted Boltzmann machines using approximations to the likelihood gradient",
    2008.

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
        self._monitoring = Monitoring(monitors)
        self._engine = Engine(ensemble, e_step, m_step, self.batch_size)
        self._written: tuple[int, int] | None = None
        self._snapshot()

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
        """Visible units of the persistent chains, or None."""
        return self._engine.memory.get("v")

    @property
    def ensemble(self) -> RestrictedBoltzmannEnsemble:
        """The ensemble trained so far, or the best one after early stopping."""
        best = self._progress.best
        return self._engine.ascent.ensemble if best is None else best.ensemble

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
        v : array, csr matrix or iterable of such chunks
            A tensor, a NumPy array (also memory-mapped), a csr matrix, or an iterable of such chunks. Chunks
            come in their own order, each shuffled by itself, and the schedule advances from epoch to epoch.
        n_epochs : int
            Passes over the rows.
        held_out : like v, optional
            Rows that are monitored and never trained on; an evenly spread subset where there are many.
        callback : callable, optional
            Called with each row of the history.
        early_stopping : EarlyStopping, optional
            When to stop before n_epochs; needs ``held_out``. The run then ends with the best ensemble.
        folder : str or Path, optional
            Folder for checkpoints and for the finished model, ``model.safetensors``. A run that was stopped
            or killed continues with :func:`resume`.
        every_epochs : int, optional, default=1
            Epochs between checkpoints.
        every_minutes : float, optional
            Minutes between checkpoints, also in the middle of an epoch.

        Returns
        -------
        Training
            This run.

        Raises
        ------
        DivergedError
            If a parameter is not finite or too large. The run then holds the last finite ensemble.
        """
        count("n_epochs", n_epochs, least=0)
        require_stopping(early_stopping, self._engine.ascent.collapsed, held_out)
        rows = self._rows(v)
        self._choose_rows(rows, held_out)
        run_folder = None
        if folder is not None:
            run_folder = RunFolder(folder, every_epochs=every_epochs, every_minutes=every_minutes)
            run_folder.require_new()
            # Settings that cannot be saved are refused before training.
            self._facts(rows, run_folder)
        self._engine.start(rows, self._progress.subkey(_START, len(self.history)))
        self._progress.plan(n_epochs, early_stopping)
        if run_folder is not None:
            run_folder.create()
            self._write(run_folder, rows)
        return self._train(rows, callback, run_folder)

    def _train(self, rows: Rows, callback: Callback | None, run_folder: RunFolder | None) -> "Training":
        """Train until all planned epochs are done."""
        progress = self._progress
        numbers = (signal.SIGINT,) if run_folder is None else (signal.SIGINT, signal.SIGTERM)
        with deferred(*numbers) as signals, torch.no_grad():
            while not progress.over():
                with self._engine.threads():
                    self._epoch(rows, signals, run_folder)
                    row = self._row()
                    progress.history.append(row)
                    progress.batch = 0
                    progress.compare(self._engine.ascent, self._monitoring)
                if run_folder is not None and run_folder.due(len(self.history)):
                    self._write(run_folder, rows)
                if callback is not None:
                    callback(row)
                self._stop_if_signaled(signals, rows, run_folder)
        if run_folder is not None:
            if self._written != (self.n_steps, len(self.history)):
                self._write(run_folder, rows)
            run_folder.finish(self.ensemble, {"history": self.history, "n_steps": self.n_steps})
        if progress.best is not None:
            self._engine.adopt(progress.best.ensemble)
        return self

    def _epoch(self, rows: Rows, signals: Signals, run_folder: RunFolder | None) -> None:
        """The remaining mini-batches of the current epoch."""
        progress = self._progress
        if progress.batch == 0 and not self._engine.ascent.snapshots_every_step:
            self._snapshot()
        order = progress.subkey(_ORDER, len(self.history))
        for n, (v, index) in enumerate(rows.batches(order, self._engine.batch)):
            if n < progress.batch:
                continue
            within = 0.0 if rows.n_batches is None else n / rows.n_batches
            self._step(v, index, schedule_factor(self._engine.m_step.schedule, progress.done(within)))
            self._stop_if_signaled(signals, rows, run_folder)
            if run_folder is not None and run_folder.due(None):
                self._write(run_folder, rows)
        self._require_finite()

    def _step(self, v: Tensor, rows: Tensor, factor: float) -> None:
        """One step of the engine; an error restores the last snapshot."""
        progress, engine = self._progress, self._engine
        try:
            engine.step(v, rows, factor, progress.subkey(_STEPS, progress.n_steps))
            progress.n_steps += 1
            progress.batch += 1
            if engine.ascent.snapshots_every_step:
                self._require_finite()
                self._snapshot()
        except BaseException:
            self._roll_back()
            raise

    def _snapshot(self) -> None:
        self._engine.snapshot()
        self._snapshot_at = (self._progress.n_steps, self._progress.batch)

    def _roll_back(self) -> None:
        self._engine.roll_back()
        self._progress.n_steps, self._progress.batch = self._snapshot_at

    def _require_finite(self) -> None:
        """Raise DivergedError where a parameter has diverged."""
        cause = self._engine.ascent.divergence()
        if cause is None:
            return
        at = self.n_steps
        self._roll_back()
        raise DivergedError(cause, step=at, kept_step=self.n_steps)

    def _row(self) -> Row:
        row: Row = {"epoch": float(len(self.history) + 1), "step": float(self.n_steps)}
        if self._monitoring.monitors:
            row |= self._monitoring.row(self._engine.ascent.monitored)
        return row

    def _stop_if_signaled(self, signals: Signals, rows: Rows, run_folder: RunFolder | None) -> None:
        """Stop if a signal was received, after a checkpoint where there is a folder."""
        if signals.received is None:
            return
        how = "fit of the same Training continues from there"
        if run_folder is not None:
            self._write(run_folder, rows)
            held_out = "" if self._monitoring.held_out is None else ", held_out=…"
            how = f"continue with ebse.training.resume({str(run_folder.path)!r}, v{held_out})"
        message = f"stopped after step {self.n_steps} (epoch {len(self.history) + 1}); {how}"
        raise KeyboardInterrupt(message) if signals.received == signal.SIGINT else SystemExit(message)

    def _write(self, run_folder: RunFolder, rows: Rows) -> None:
        # A diverged state must not replace a finite one.
        self._require_finite()
        parts = {
            "ensemble": describe(self._engine.ascent.ensemble)[1],
            "ascent": self._engine.ascent.tensors(),
            "memory": self._engine.memory,
            "best": self._progress.tensors(),
        }
        tensors = {f"{part}/{name}": x for part, held in parts.items() for name, x in held.items()}
        run_folder.write(self.n_steps, tensors, self._facts(rows, run_folder))
        self._written = (self.n_steps, len(self.history))

    def _facts(self, rows: Rows, run_folder: RunFolder) -> Facts:
        """Everything about the run but arrays and times."""
        return {
            "ensemble": describe(self._engine.ascent.ensemble)[0],
            "e_step": settings_facts("e_step", self._engine.e_step),
            "m_step": settings_facts("m_step", self._engine.m_step),
            "batch_size": self.batch_size,
            "progress": self._progress.facts(),
            "data": rows.describe(),
            "held_out": self._monitoring.held_out_facts,
            "monitors": self._monitoring.names,
            "every": [run_folder.every_epochs, run_folder.every_minutes],
        }

    def _restore(self, facts: Facts, tensors: Tensors) -> None:
        """Take over the state of a checkpoint."""
        self._progress = Progress.restored(facts["progress"], _below("best", tensors))
        self._engine.load(_below("ascent", tensors), _below("memory", tensors))
        self._snapshot()

    def _rows(self, v: Data, name: str = "v") -> Rows:
        ensemble = self._engine.ascent.collapsed
        return rows_of(name, v, ensemble.D, dtype=ensemble.dtype, batch_size=self.batch_size)

    def _choose_rows(self, rows: Rows, held_out: Data | None) -> None:
        """Choose the rows that are monitored."""
        ensemble = self._engine.ascent.collapsed
        validation = None if held_out is None else self._rows(held_out, "held_out")
        self._monitoring.choose_rows(rows, validation, ensemble.D * ensemble.K)


def resume(
    folder: str | Path,
    v: Data,
    *,
    held_out: Data | None = None,
    callback: Callback | None = None,
    monitors: Sequence[Monitor] = DEFAULT_MONITORS,
) -> Training:
    """Resume the training run in ``folder`` from its last checkpoint, up to its planned end.

    On the same machine, with the same data, number of threads and versions, the result is bit for bit that of
    an uninterrupted run. A finished run is returned as it is; ``fit`` trains it further.

    Parameters
    ----------
    folder : str or Path
        The folder that was given to :meth:`Training.fit`.
    v : array, csr matrix or iterable of such chunks
        The data of the run. Data in memory are compared as a whole; of a memory-mapped array, or of the first
        of several chunks, 1,000 rows.
    held_out : like v, optional
        The held-out rows of the run.
    callback : callable, optional
        Called with each row of the history.
    monitors : sequence of callables
        The monitors of the run.

    Raises
    ------
    DataChangedError
        If ``v`` or ``held_out`` differ from the data of the run.
    """
    run_folder = RunFolder(folder)
    facts, tensors = run_folder.read()
    with consistent(run_folder.checkpoints[-1]):
        run = Training(
            rebuild(facts["ensemble"], _below("ensemble", tensors)),
            generator=torch.Generator(),
            e_step=settings_from(facts["e_step"]),
            m_step=settings_from(facts["m_step"]),
            batch_size=facts["batch_size"],
            monitors=monitors,
        )
        run._restore(facts, tensors)
    n_units = run._engine.ascent.collapsed.D
    require_same_columns("v", v, n_units)
    require_same_columns("held_out", held_out, n_units)
    rows = run._rows(v)
    run._choose_rows(rows, held_out)
    require_same_rows("v", facts["data"], rows.describe())
    require_same_rows("held_out", facts["held_out"], run._monitoring.held_out_facts)
    if facts["monitors"] != run._monitoring.names:
        began, now = ", ".join(facts["monitors"]), ", ".join(run._monitoring.names)
        raise ValueError(
            f"monitors must be what the run began with ({began}), got {now or 'none'}; pass the same"
        )
    if run._progress.over() and run_folder.model.exists():
        return run
    if facts["circumstances"] != circumstances():
        warnings.warn(
            f"the run began with {facts['circumstances']} and goes on with {circumstances()}: "
            "it may differ in its last bits from one that was never stopped",
            stacklevel=2,
        )
    run_folder.every_epochs, run_folder.every_minutes = facts["every"]
    return run._train(rows, callback, run_folder)


def _below(prefix: str, tensors: Tensors) -> Tensors:
    head = f"{prefix}/"
    return {name.removeprefix(head): x for name, x in tensors.items() if name.startswith(head)}
