"""A labeling session: rows, events, the model that follows them, and what the page shows of them."""

import itertools
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ebse._stages import Stage, listening
from ebse.io import Rows
from ebse.labeling.audit import LOOKS, Audit, reserved
from ebse.labeling.events import Answers, Event, Limits, can_undo, checked, last_to_undo, replay, undone
from ebse.labeling.items import Item, Items
from ebse.labeling.model import Model, Task, Version
from ebse.workflow.fit_config import FitConfig, columns_from
from ebse.workflow.run_folder import Run

Array = npt.NDArray[Any]

EXPERIMENT = "label"
LARGEST = 65_535
"""No class."""
HOWS = ("suggest", "random", "audit")
ORDERS = ("typical", "uncertain", "random")
N_STABLE, STABLE = 10, 0.005
"""Labels in a row that change less than this part of the predictions, on the mean, before an audit is
advised (Bloodgood and Vijay-Shanker, "A method for stopping active learning based on stabilizing
predictions", 2009)."""
N_RATE, LONGEST_PAUSE = 20, 60.0
"""Labels by which their rate is measured; seconds of a pause that counts."""
BETTER = 2
"""Right answers of the audit by which an earlier version must be better to be offered."""
LEAST_CHECKS = LOOKS[0]
_STARTED: set[Path] = set()
"""Folders of sessions that run in this process; the lock of a folder is for other processes alone."""


@final
class Session:
    """Events, the labels that follow from them, and the model that learns from these."""

    def __init__(
        self,
        name: str,
        items: Items,
        read: Callable[[], Rows],
        *,
        labels: dict[int, str],
        data: int,
        config: FitConfig,
        folder: Path,
        classes: Sequence[str],
        target: float,
    ) -> None:
        self.name, self.items, self.target = name, items, target
        self.config, self.folder = config, folder
        self._read, self._seed = read, config.random_state
        self.lock, self.exporting = threading.RLock(), threading.Lock()
        self.rows: Rows | None = None
        self.model: Model | None = None
        n, seed = len(items), self._seed
        self.audit_rows = reserved(n, set(labels), seed)
        self._audit_set = frozenset(self.audit_rows)
        self._random = [
            row
            for row in np.random.default_rng([seed, 1]).permutation(n).tolist()
            if row not in self._audit_set
        ]
        self._start = Answers(
            classes=list(dict.fromkeys((*map(str, classes), *sorted(set(labels.values()))))),
            labels=dict(labels),
        )
        self._place = folder.resolve()
        if self._place in _STARTED:
            raise BlockingIOError(
                f"folder must be free, got {folder}, which another labeling page of this process is using; "
                "close that one, or choose another folder"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run = Run(folder, EXPERIMENT, config, data=data)
        folder.chmod(0o700)
        self.events = self._kept_events()
        self._keys = {event["key"]: number for number, event in enumerate(self.events)}
        self.answers = replay(self.events, self._start)
        self.phase, self.error = "reading", ""
        self._progress: Stage | None = None
        self._changes: deque[float] = deque(maxlen=N_STABLE)
        self._audits: dict[int, tuple[int, Array]] = {}
        self._last_version = (0, "")
        self._learned: frozenset[tuple[int, str]] = frozenset()
        self._listeners: list[Callable[[], None]] = []
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._open, name="ebse-read", daemon=True)

    # Opening and closing

    def _kept_events(self) -> list[Event]:
        """Events of the run folder; damaged ones are refused."""
        events: list[Event] = []
        limits = Limits(len(self.items), self._audit_set)
        for row in self.run.rows:
            kept = {name: row[name] for name in row if name not in ("kind", "id")}
            try:
                checked(kept, limits, events, self._start)
                if not isinstance(kept["key"], str) or not isinstance(kept["time"], float):
                    raise ValueError("key and time must be there")
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"{self.folder} must hold the events of a labeling session, got a damaged one ({error}); "
                    "restore it, or choose another folder with --out"
                ) from None
            events.append(kept)
        return events

    def start(self) -> None:
        """Read the rows and begin to fit, in other threads."""
        _STARTED.add(self._place)
        self._thread.start()

    def _open(self) -> None:
        try:
            with listening(self._show):
                rows = self._read()
        except Exception as error:
            self.phase, self.error = "failed", str(error)
            self._tell()
            return
        settings = {"columns": columns_from(self.config.column)}
        with self.lock:
            if self.closed.is_set():
                return
            self.phase, self._progress, self.rows = "clustering", None, rows
            self.model = Model(rows.X, settings, self.folder, self._model_changed, seed=self._seed)
            self.model.learn(self._task())
            self.model.start()
        self._tell()

    def close(self) -> None:
        """Stop the model; the events are on the disk already."""
        with self.lock:
            self.closed.set()
            model = self.model
        if model is not None:
            model.stop()
        _STARTED.discard(self._place)
        self._tell()

    # Events

    def add(self, sent: Any) -> int:
        """Apply an event that a browser sent; it is on the disk when this returns. Its number.

        An event whose key is known was sent twice, and is applied once.
        """
        key = sent.get("key") if isinstance(sent, dict) else None
        if not isinstance(key, str) or not 8 <= len(key) <= 64:
            raise ValueError("key must be a text of 8 to 64 letters, got none; load the page again")
        with self.lock:
            if key in self._keys:
                return self._keys[key]
            limits = Limits(len(self.items), self._audit_set)
            event = checked(sent, limits, self.events, self._start) | {"key": key, "time": time.time()}
            number = len(self.events)
            self.run.add({"kind": "event", "id": number} | event)
            self.events.append(event)
            self._keys[key] = number
            self.answers = replay(self.events, self._start)
            if self.model is not None:
                self.model.learn(self._task())
        self._tell()
        return number

    def _task(self) -> Task:
        answers = self.answers
        excluded = self._audit_set | answers.skipped | answers.unsure
        return Task(len(self.events), dict(answers.labels), frozenset(excluded))

    # Listeners

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function after every change; the result ends it."""
        with self.lock:
            self._listeners.append(listener)

        def end() -> None:
            with self.lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def _tell(self) -> None:
        with self.lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def _show(self, at: Stage) -> None:
        self._progress = None if at.finished else at
        self._tell()

    def _model_changed(self) -> None:
        assert self.model is not None
        with self.lock:
            self.phase = self.model.phase
            version = self.model.version
            if (version.n_events, version.members) != self._last_version:
                self._last_version = (version.n_events, version.members)
                new = version.labels != self._learned
                self._learned = version.labels
                if new and version.changed is not None:
                    # Not after checks of the audit, which change nothing.
                    self._changes.append(version.changed / len(version.predicted))
                if version.classes:
                    names = np.array(version.classes, dtype=object)
                    self._audits[version.n_events] = (
                        len(version.labels),
                        names[version.predicted[self.audit_rows]],
                    )
        self._tell()

    # What the page shows

    @property
    def version(self) -> Version | None:
        """The predictions, once there are some."""
        return None if self.model is None else self.model.version

    def state(self) -> dict[str, Any]:
        """Everything but rows."""
        with self.lock:
            model, answers, version = self.model, self.answers, self.version
            share = {} if version is None else version.share
            counts = answers.counts()
            at = self._progress if model is None else model.progress
            error = self.error or ("" if model is None else model.error)
            return {
                "name": self.name,
                "n_rows": len(self.items),
                "phase": self.phase,
                "progress": None if at is None else {"name": at.name, "done": at.done, "total": at.total},
                "error": error or None,
                "version": 0 if version is None else version.number,
                "n_events": len(self.events),
                "n_events_seen": 0 if version is None else version.n_events,
                "members": version.members if version is not None and version.classes else None,
                "changed": None if version is None else version.changed,
                "classes": [
                    {"name": name, "n_labels": counts[name], "share": share.get(name)}
                    for name in answers.classes
                ],
                "n_labels": len(answers.labels),
                "n_skipped": len(answers.skipped),
                "n_unsure": len(answers.unsure),
                "labels_per_minute": self._rate(),
                "advice": self._advice(),
                "audit": self.audit().described(),
                "best": self._best(),
                "can_undo": last_to_undo(self.events) is not None,
                "map": 0 if model is None else model.n_maps,
            }

    def audit(self) -> Audit:
        """What the audit says about the predictions of now."""
        audited = self.answers.audited
        version = self.version
        if version is None or not version.classes:
            return Audit(0, 0, self.target, len(self.audit_rows))
        predicted = version.predicted
        right = sum(version.classes[predicted[row]] == name for row, name in audited.items())
        return Audit(len(audited), right, self.target, len(self.audit_rows))

    def _best(self) -> dict[str, Any] | None:
        """An earlier version that was right more often in the audit."""
        audited = self.answers.audited
        at = {row: i for i, row in enumerate(self.audit_rows)}
        if len(audited) < LEAST_CHECKS or not self._audits:
            return None
        places = [at[row] for row in audited]
        names = np.array(list(audited.values()), dtype=object)
        right = {n: int((found[places] == names).sum()) for n, (_, found) in self._audits.items()}
        best = max(right, key=lambda n: (right[n], n))
        now = self.audit()
        if right[best] < now.n_right + BETTER or best == 0:
            return None
        n_labels = self._audits[best][0]
        return {
            "event": best - 1,
            "text": f"With {n_labels} labels, {right[best]} of {now.n} checks were right; now "
            f"{now.n_right} are.",
        }

    def _rate(self) -> float | None:
        times = [e["time"] for e in self.events[-10 * N_RATE :] if e["type"] == "label"][-N_RATE:]
        gaps = [b - a for a, b in itertools.pairwise(times) if b - a < LONGEST_PAUSE]
        if len(gaps) < 3:
            return None
        return float(60 / max(statistics.median(gaps), 0.05))

    def _advice(self) -> str | None:
        changes = self._changes
        if len(changes) == N_STABLE and statistics.fmean(changes) < STABLE:
            said = (
                f"The last {N_STABLE} updates changed less than {100 * STABLE:g} % of the predictions on "
                "average. "
            )
            if self.audit().n < min(LEAST_CHECKS, len(self.audit_rows)):
                return said + "Check random rows now (Audit): predictions can be stable and wrong."
            return said + "More labels like these will hardly change anything."
        return None

    def next(self, how: str, n: int) -> list[Item]:
        """The next examples."""
        with self.lock:
            answers = self.answers
            taken = answers.labels.keys() | answers.skipped | answers.unsure
            if how == "audit":
                taken = taken | answers.audited.keys()
                rows = [row for row in self.audit_rows if row not in taken][:n]
            else:
                rows = []
                version = self.version
                if how == "suggest" and version is not None:
                    rows = [row for row in version.suggested if row not in taken][:n]
                if len(rows) < n:
                    # Nothing to suggest, or not yet: random rows.
                    more = (row for row in self._random if row not in taken and row not in rows)
                    rows += [row for row, _ in zip(more, range(n - len(rows)), strict=False)]
        return [self.items.shown(row) for row in rows]

    def answered(self, rows: Sequence[int]) -> list[Item]:
        """Rows with their labels and predictions."""
        version = self.version
        found = []
        for row in rows:
            if row in self._audit_set:
                raise ValueError(
                    f"rows must not be of the audit, got row {row + 1}, whose prediction is hidden; choose "
                    "another"
                )
            item = self.items.shown(row) | {
                "label": self.answers.labels.get(row),
                "predicted": None,
                "probability": None,
            }
            if version is not None and version.classes:
                item["predicted"] = version.classes[version.predicted[row]]
                item["probability"] = float(version.probability[row])
            found.append(item)
        return found

    def gallery(self, name: str, how: str, n: int) -> list[Item]:
        """Rows that are predicted as a class: typical, uncertain or random ones."""
        version = self.version
        if version is None or name not in version.classes:
            return []
        held = version.predicted == version.classes.index(name)
        held[list(self._audit_set)] = False
        rows = np.flatnonzero(held)
        if how == "random":
            rows = np.random.default_rng(version.number).permutation(rows)
        else:
            p = version.probability[rows]
            rows = rows[np.argsort(-p if how == "typical" else p, kind="stable")]
        return self.answered(rows[:n].tolist())

    def doubtful(self) -> dict[str, Any]:
        """Labels that the others contradict, most doubtful first."""
        model = self.model
        doubt = None if model is None else model.doubt
        running = model is not None and model.doubt_runs
        if doubt is None:
            return {"running": running, "done": 0, "total": 0, "items": []}
        order = sorted(doubt.found, key=lambda row: doubt.found[row])
        rows = [row for row in order if row in self.answers.labels][:50]
        items = [
            self.items.shown(row) | {"label": self.answers.labels[row], "own_probability": doubt.found[row]}
            for row in rows
        ]
        return {"running": running, "done": doubt.done, "total": doubt.total, "items": items}

    def history(self, n: int = 500) -> list[dict[str, Any]]:
        """The last events in words, newest first."""
        with self.lock:
            events = list(self.events)
        gone = undone(events)
        return [
            {
                "id": number,
                "text": self._told(events[number]),
                "time": datetime.fromtimestamp(events[number]["time"]).strftime("%H:%M:%S"),
                "undone": number in gone,
                "can_undo": number not in gone and can_undo(events, number),
            }
            for number in range(len(events) - 1, max(len(events) - n, 0) - 1, -1)
        ]

    def _told(self, event: Event) -> str:
        kind, rows = event["type"], event.get("rows", [])
        which = self.items.name(rows[0]) if len(rows) == 1 else f"{len(rows)} rows"
        said = {
            "label": lambda: f"labeled {which} as {event['class']}",
            "unlabel": lambda: f"removed the label of {which}",
            "skip": lambda: f"skipped {which}",
            "unsure": lambda: f"unsure about {which}",
            "class": lambda: f"new class {event['name']}",
            "rename": lambda: f"renamed {event['class']} to {event['name']}",
            "undo": lambda: f"undid event {event['event'] + 1}",
            "restore": lambda: f"restored the labels after event {event['event'] + 1}",
        }
        text = said[kind]()
        return f"audit: {text}" if event.get("from") == "audit" else text

    def predictions(self) -> bytes:
        """Class, probability and mark of all rows, for the map."""
        n = len(self.items)
        with self.lock:
            version, answers = self.version, self.answers
            classes = np.full(n, LARGEST, dtype="<u2")
            p, marks = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
            if version is not None and version.classes:
                # As the page numbers them.
                at = [answers.classes.index(c) if c in answers.classes else LARGEST for c in version.classes]
                classes[:] = np.array(at, dtype="<u2")[version.predicted]
                p[:] = np.round(255 * version.probability)
            marks[list(answers.labels)] = 1
            for row, name in answers.labels.items():
                classes[row] = answers.classes.index(name)
            marks[self.audit_rows] = 2
            classes[self.audit_rows], p[self.audit_rows] = LARGEST, 0
        return classes.tobytes() + p.tobytes() + marks.tobytes()
