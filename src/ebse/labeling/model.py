"""The model behind the labeling page: it follows the labels in a thread of its own.

Each version of the predictions has learned from the labels after a certain number of events; if several
labels arrive while a version is computed, the next one learns from all of them. Where features are worth
learning, that happens in another process while labels propagate on principal components.
"""

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from ebse._atomic import in_place
from ebse._stages import Stage, listening, stage
from ebse._threads import threads_for_entries
from ebse.labeling.layout import layout

Array = npt.NDArray[Any]

IDLE = 1.0
"""Seconds without a label after which all members learn, not only label propagation."""
N_ORDER, N_SUGGESTED = 200, 24
"""Suggested rows before there are two classes, and afterwards."""
N_PRINCIPAL = 50
"""Principal components on which labels propagate while features are learned."""
ROWS, MODEL = "rows.pickle", "model.pickle"
"""Files that pass rows to the process that learns features, and the model back; the folder is private."""
UNDER_WAY = ("clustering", "features")
"""Phases in which the classifier of the rows is not there yet."""
# Each label would repeat the warnings of the classifier, and the page says what matters. Not by
# catch_warnings: in a thread it changes what other threads see.
warnings.filterwarnings("ignore", module=r"ebse\.labeling\.model")


class Version(NamedTuple):
    """Predictions for all rows."""

    number: int
    n_events: int
    """Events whose labels it has learned from."""
    classes: list[str]
    predicted: Array
    """The class of each row, −1 before there are predictions."""
    probability: Array
    """Its probability."""
    changed: int | None
    """Rows whose prediction is another one than before these labels."""
    members: str
    """"propagation" or "all"."""
    suggested: list[int]
    labels: frozenset[tuple[int, str]] = frozenset()
    """Rows and classes that it has learned from."""

    @property
    def share(self) -> dict[str, float]:
        """The part of each class among the predictions."""
        if not len(self.predicted) or self.predicted[0] < 0:
            return {}
        counts = np.bincount(self.predicted, minlength=len(self.classes)) / len(self.predicted)
        return dict(zip(self.classes, counts.tolist(), strict=True))


class Task(NamedTuple):
    """Labels to learn from."""

    n_events: int
    labels: dict[int, str]
    excluded: frozenset[int]
    """Rows that are not suggested: of the audit, skipped, unsure."""


class Doubtful(NamedTuple):
    """A label that the others contradict."""

    row: int
    label: str
    predicted: str
    """The class that the others predict."""
    own_probability: float
    """Of the label's class."""


class Doubt(NamedTuple):
    """Labels that the others contradict, among those that have been left out so far."""

    done: int
    total: int
    found: list[Doubtful]


@final
class Model:
    """A classifier for few labels that follows the labels of a session.

    ``listener`` is called after every change, from the threads of the model.
    """

    def __init__(
        self, X: Any, settings: dict[str, Any], folder: Path, listener: Callable[[], None], *, seed: int
    ) -> None:
        self._X, self._settings, self._folder, self._seed = X, settings, folder, seed
        self._listener = listener
        self._changed = threading.Condition()
        self._task: Task | None = None
        self._arrived = 0.0
        self._stopping = False
        self._wants_doubt = False
        self._child: subprocess.Popen[bytes] | None = None
        self._swap: Any = None
        n = len(X)
        self.version = Version(0, 0, [], np.full(n, -1, np.int16), np.zeros(n, np.float32), None, "", [])
        self._before = self.version
        self.phase, self.error = "clustering", ""
        self.progress: Stage | None = None
        self.doubt: Doubt | None = None
        self.map: Array | None = None
        self.n_maps = 0
        self.fitted: Any = None
        """The classifier of the rows as they are, once there is one."""
        self._thread = threading.Thread(target=self._run, name="ebse-model", daemon=True)

    def start(self) -> None:
        """Begin to fit."""
        self._thread.start()

    def stop(self) -> None:
        """End all threads and processes."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._child is not None:
            self._child.kill()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout=30)

    def learn(self, task: Task) -> None:
        """Learn from these labels as soon as possible; earlier tasks that wait are dropped."""
        with self._changed:
            self._task, self._arrived = task, time.monotonic()
            self._changed.notify_all()

    def look_for_doubtful_labels(self) -> None:
        """Leave each label out in turn, when there is nothing else to do."""
        with self._changed:
            self._wants_doubt = True
            self.doubt = None
            self._changed.notify_all()

    @property
    def doubt_runs(self) -> bool:
        """Whether doubtful labels are being looked for."""
        return self._wants_doubt

    def final(self, task: Task) -> Any:
        """A classifier of the rows as they are, with all members and these labels, for a file."""
        while self.phase in UNDER_WAY and self._thread.is_alive() and not self._stopping:
            time.sleep(0.05)
        if self.fitted is None:
            from ebse.semi_supervised import FewLabelClassifier

            made = FewLabelClassifier(**self._settings, features=None, random_state=self._seed)
            self.fitted = made.fit(self._X)
        return copy.copy(self.fitted).relabel(y=_column(task.labels, len(self._X)))

    def _run(self) -> None:
        try:
            self._follow(self._first())
        except Exception as error:
            traceback.print_exc()
            self.phase, self.error = "failed", f"{type(error).__name__}: {error}"
            self._listener()

    def _first(self) -> Any:
        """The model that labels begin with."""
        from ebse.semi_supervised import FewLabelClassifier

        with listening(self._show):
            learns = _may_learn_features(self._X)
            if not learns:
                made = FewLabelClassifier(**self._settings, features=None, random_state=self._seed)
                made.fit(self._X)
                self.fitted = made
            else:
                made = FewLabelClassifier(features=None, random_state=self._seed)
                made.fit(principal(self._X, self._seed))
        self.progress, self.phase = None, "features" if learns else "ready"
        self._draw(made)
        if learns:
            self._learn_features()
        self._listener()
        return made

    def _learn_features(self) -> None:
        """Begin to learn features in another process."""
        with in_place(self._folder / ROWS) as temporary, temporary.open("wb") as file:
            pickle.dump((self._X, self._settings, self._seed), file, protocol=5)
        with self._changed:
            if self._stopping:
                (self._folder / ROWS).unlink(missing_ok=True)
                return
            self._child = subprocess.Popen(
                [sys.executable, "-m", "ebse.labeling.learn_features", str(self._folder)],
                stdout=subprocess.PIPE,
                # Its end tells the process that this one is gone.
                stdin=subprocess.PIPE,
            )
        threading.Thread(target=self._wait_for_features, args=(self._child,), daemon=True).start()

    def _wait_for_features(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        # At its end the pipes are closed.
        with child:
            for line in child.stdout:
                # The last line of a killed process may be half of one.
                if line.endswith(b"\n"):
                    self._show(Stage(*json.loads(line)))
        code = child.wait()
        (self._folder / ROWS).unlink(missing_ok=True)
        path = self._folder / MODEL
        if self._stopping:
            path.unlink(missing_ok=True)
            return
        if code == 0 and path.exists():
            # Written by the process that this one started, in a folder that nobody else may write to.
            with path.open("rb") as file:
                made = pickle.load(file)
            path.unlink()
            with self._changed:
                self._swap = made
                self._changed.notify_all()
            return
        self.error = "Learning features failed; labels propagate on principal components instead."
        self.phase, self.progress = "ready", None
        self._listener()

    def _show(self, at: Stage) -> None:
        self.progress = None if at.finished else at
        self._listener()

    def _draw(self, model: Any) -> None:
        """Lay the rows out on a map, in a thread of its own."""

        def draw() -> None:
            try:
                found = layout(model, seed=self._seed)
            except Exception:
                # A page without a map is better than none.
                traceback.print_exc()
                return
            self.map, self.n_maps = found, self.n_maps + 1
            self._listener()

        threading.Thread(target=draw, name="ebse-map", daemon=True).start()

    def _follow(self, model: Any) -> None:
        """Learn from the latest labels, again and again."""
        seen, complete, doubts = -1, True, None
        while True:
            with self._changed:
                while not self._stopping and self._swap is None:
                    task = self._task
                    if task is not None and task.n_events != seen:
                        members, doubts = "propagation", None
                        break
                    wait = self._arrived + IDLE - time.monotonic()
                    if task is not None and not complete and wait <= 0:
                        members = "all"
                        break
                    if self._wants_doubt and task is not None:
                        members = "doubt"
                        break
                    self._changed.wait(timeout=None if complete else max(wait, 0.01))
                if self._stopping:
                    return
                swapped, self._swap = self._swap, None
            if swapped is not None:
                model = self.fitted = swapped
                self.phase, self.progress = "ready", None
                self._draw(model)
                seen, complete = -1, True
                self._listener()
                continue
            assert task is not None
            if members == "doubt":
                doubts = doubts or _Doubts(model, task, len(self._X))
                self.doubt, going_on = doubts.step()
                if not going_on:
                    self._wants_doubt, doubts = False, None
                self._listener()
                continue
            self.version = self._learned(model, task, members)
            seen = task.n_events
            complete = members == "all" or not len(self.version.classes)
            self._listener()
            if self.version.classes:
                # Predictions first: the page has examples in hand, and can wait for the next ones.
                rows = model.suggest(N_SUGGESTED, exclude=task.excluded | task.labels.keys()).tolist()
                self.version = self.version._replace(number=self.version.number + 1, suggested=rows)
                self._listener()

    def _learned(self, model: Any, task: Task, members: str) -> Version:
        """The version after these labels."""
        before, n = self.version, len(self._X)
        excluded = task.excluded | task.labels.keys()
        number, labels = before.number + 1, frozenset(task.labels.items())
        if len(set(task.labels.values())) < 2:
            model.relabel()
            # Greedy: rows that are labeled in this order leave the order of the others as it is.
            order = model.suggest(min(N_ORDER, n), exclude=task.excluded).tolist()
            rows = [row for row in order if row not in excluded]
            nothing = np.full(n, -1, np.int16), np.zeros(n, np.float32)
            return Version(number, task.n_events, [], *nothing, None, members, rows, labels)
        model.relabel(y=_column(task.labels, n), members=members)
        p = model.label_distributions_
        classes = [str(name) for name in model.classes_]
        predicted = p.argmax(1)
        if labels != before.labels:
            self._before = before
        changed, before_labels = None, self._before
        if before_labels.classes:
            # Classes may have come or gone.
            names = before_labels.classes
            at = np.array([classes.index(name) if name in classes else -1 for name in names])
            changed = int((at[before_labels.predicted] != predicted).sum())
        probability = p[np.arange(n), predicted].astype(np.float32)
        return Version(
            *(number, task.n_events, classes, predicted.astype(np.int16), probability),
            *(changed, members, before.suggested, labels),
        )


@final
class _Doubts:
    """Each label is left out in turn, and the probability of its class is that of the others."""

    def __init__(self, model: Any, task: Task, n_rows: int) -> None:
        self._model, self._task, self._n_rows = copy.copy(model), task, n_rows
        # Label propagation alone: the other members have learned from the label that is left out.
        self._model._supervised, self._model._factors = {}, {}
        self._model._answers, self._model._sampled = {}, {}
        names = list(task.labels.values())
        # The only label of a class cannot be left out: without it there is no such class.
        self._left = [row for row, name in task.labels.items() if names.count(name) > 1]
        if len(set(names)) < 2:
            self._left = []
        self._total = len(self._left)
        self._found: list[Doubtful] = []

    def step(self) -> tuple[Doubt, bool]:
        """Leave one label out; whether there are more."""
        if self._left:
            row = self._left.pop()
            label = self._task.labels[row]
            labels = {at: name for at, name in self._task.labels.items() if at != row}
            self._model.relabel(y=_column(labels, self._n_rows), members="propagation")
            classes = [str(name) for name in self._model.classes_]
            p = self._model._fitted_probabilities()[row]
            predicted = classes[p.argmax()]
            if predicted != label:
                self._found.append(Doubtful(row, label, predicted, float(p[classes.index(label)])))
        done = self._total - len(self._left)
        return Doubt(done, self._total, list(self._found)), bool(self._left)


def _may_learn_features(X: Any) -> bool:
    """Whether rows are so many, and numeric in so many columns, that features are learned."""
    from ebse.semi_supervised.few_label import MANY_COLUMNS, MANY_ROWS

    numeric = all(pd.api.types.is_numeric_dtype(of) for of in X.dtypes) if hasattr(X, "dtypes") else True
    return bool(numeric and len(X) >= MANY_ROWS and X.shape[1] >= MANY_COLUMNS)


def principal(X: Any, seed: int) -> Array:
    """The first principal components of many columns, those of a table standardized."""
    from sklearn.decomposition import PCA

    values = np.nan_to_num(np.asarray(X, dtype=np.float32))
    if hasattr(X, "dtypes"):
        values = (values - values.mean(0)) / np.maximum(values.std(0), np.finfo(np.float32).tiny)
    with threads_for_entries(values.size), stage("components"):
        found: Array = PCA(N_PRINCIPAL, svd_solver="randomized", random_state=seed).fit_transform(values)
    return found.astype(np.float32)


def _column(labels: dict[int, str], n_rows: int) -> Array:
    """Labels of all rows, None where there is none."""
    y = np.full(n_rows, None, dtype=object)
    if labels:
        y[list(labels)] = list(labels.values())
    return y


def lower_priority() -> None:
    """Let other processes, such as the server, go first."""
    if hasattr(os, "nice"):
        os.nice(10)
