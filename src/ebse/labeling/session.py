"""A labeling session: rows, events, the model that follows them, and what the page shows of them."""

import itertools
import json
import statistics
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from ebse._atomic import in_place
from ebse._stages import Stage, listening
from ebse.io import Rows
from ebse.labeling.audit import LOOKS, Audit, Look, reserved
from ebse.labeling.events import (
    Answers,
    Event,
    Limits,
    apply,
    checked,
    last_to_undo,
    renamed,
    renames,
    replay,
    undone,
)
from ebse.labeling.items import Files, Item, Items
from ebse.labeling.model import Model, Task, Version
from ebse.workflow.fit import checksum
from ebse.workflow.fit_config import FitConfig, columns_from
from ebse.workflow.run_folder import Run

Array = npt.NDArray[Any]

EXPERIMENT = "label"
LARGEST = 65_535
"""No class."""
HOWS = ("suggest", "random", "audit")
ORDERS = ("typical", "uncertain", "random")
N_STABLE, STABLE = 10, 0.005
"""Labels in a row that change less than this part of the predictions, on average, before an audit is
advised (Bloodgood and Vijay-Shanker, "A method for stopping active learning based on stabilizing
predictions", 2009)."""
N_RATE, LONGEST_PAUSE = 20, 60.0
"""Labels by which their rate is measured; seconds of a pause that counts."""
BETTER = 2
"""Right answers of the audit by which an earlier version must be better to be offered."""
LEAST_CHECKS = LOOKS[0]
N_ALTERNATE = 5
"""Labels without a new class, after which every second row is a random one: suggested rows alone come from
few classes then, and the model would take these for more frequent than they are."""
N_DOUBTFUL = 50
"""Doubtful labels that are listed, at most."""
MOST_VERSIONS = 200
"""Earlier versions of the predictions for the rows of the audit that are kept."""
START = "start.json"
"""File of the classes that a session began with, and a checksum of images, which are read later."""
_STARTED: set[Path] = set()
"""Folders of sessions that run in this process; the lock of a folder is for other processes alone."""


class Past(NamedTuple):
    """Predictions of an earlier version for the rows of the audit."""

    n_labels: int
    classes: list[str]
    """By their names of then."""
    predicted: Array


def _alternating(first: list[int], second: list[int], *, begin: int) -> list[int]:
    """Rows of both, in turn; from the second on if ``begin`` is 1."""
    pair = (first, second) if begin == 0 else (second, first)
    found = [row for both in itertools.zip_longest(*pair) for row in both]
    return [row for row in found if row is not None]


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
        self._place = folder.resolve()
        if self._place in _STARTED:
            raise BlockingIOError(
                f"folder must be free, got {folder}, which another labeling page of this process is using; "
                "close that one, or choose another folder"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run = Run(folder, EXPERIMENT, config, data=data)
        folder.chmod(0o700)
        given = (*self._begun().get("classes", ()), *map(str, classes), *sorted(set(labels.values())))
        self._start = Answers(classes=list(dict.fromkeys(given)), labels=dict(labels))
        self._keep_begun(classes=self._start.classes)
        self._looks = {row["n"]: row for row in self.run.rows if row.get("kind") == "look"}
        self.events = self._kept_events()
        self._keys = {event["key"]: number for number, event in enumerate(self.events)}
        self.answers = replay(self.events, self._start)
        self.phase, self.error = "reading", ""
        self._progress: Stage | None = None
        self._changes: deque[float] = deque(maxlen=N_STABLE)
        self._audits: dict[int, Past] = {}
        self._state: dict[str, Any] | None = None
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
                if row["kind"] == "look":
                    if {type(row[name]) for name in ("n", "n_right", "labels")} != {int}:
                        raise ValueError("a look must hold numbers")
                    continue
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

    def _begun(self) -> dict[str, Any]:
        """What is kept about the start of the session."""
        path = self.folder / START
        found = json.loads(path.read_text()) if path.exists() else {}
        return found if isinstance(found, dict) else {}

    def _keep_begun(self, **facts: Any) -> None:
        before = self._begun()
        if before != before | facts:
            with in_place(self.folder / START) as temporary:
                temporary.write_text(json.dumps(before | facts) + "\n")

    def start(self) -> None:
        """Read the rows and begin to fit, in other threads."""
        _STARTED.add(self._place)
        self._thread.start()

    def _open(self) -> None:
        try:
            with listening(self._show):
                rows = self._read()
            self._require_same(rows)
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

    def _require_same(self, rows: Rows) -> None:
        """Refuse images that changed since the session began, or while they were read."""
        if not isinstance(self.items, Files):
            return
        before, now = self._begun().get("data"), checksum(rows)
        if rows.files != self.items.names or before not in (None, now):
            raise ValueError(
                f"{self.items.folder} must hold the images of when the session began, got others; restore "
                "them, or begin again with another --out"
            )
        self._keep_begun(data=now)

    def close(self) -> None:
        """Stop the model; the events are on the disk already."""
        with self.lock:
            self.closed.set()
            model = self.model
        if model is not None:
            model.stop()
        _STARTED.discard(self._place)
        self.run.close()
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
            if self.phase == "failed" and self.rows is None:
                raise ValueError(f"the rows must be read before they are labeled, got an error: {self.error}")
            if self.closed.is_set():
                raise ValueError("the page must be open, got a label after it was closed; open it again")
            limits = Limits(len(self.items), self._audit_set)
            event = checked(sent, limits, self.events, self._start) | {"key": key, "time": time.time()}
            number = len(self.events)
            self.run.add({"kind": "event", "id": number} | event)
            self.events.append(event)
            self._keys[key] = number
            if event["type"] in ("undo", "restore"):
                self.answers = replay(self.events, self._start)
            else:
                apply(self.answers, event)
            self._take_look()
            if self.model is not None:
                self.model.learn(self._task())
        self._tell()
        return number

    def _take_look(self) -> None:
        """Compare the audit with its target, once at each of a few numbers of answers."""
        n = len(self.answers.audited)
        if (
            n in self.audit().looks
            and n not in self._looks
            and self.version is not None
            and self.version.classes
        ):
            look = {"n": n, "n_right": self._n_right(n), "labels": self._labels_now()}
            self.run.add({"kind": "look", "id": f"look {n}"} | look)
            self._looks[n] = look

    def _labels_now(self) -> int:
        """A checksum of the labels."""
        return zlib.crc32(repr(sorted(self.answers.labels.items())).encode())

    def shown_again(self, number: int) -> list[int]:
        """The row of an event that the event ``number`` undid, if it is one outside of the audit."""
        with self.lock:
            event = self.events[number]
            rows: list[int] = self.events[event["event"]].get("rows", []) if event["type"] == "undo" else []
        return rows if len(rows) == 1 and rows[0] not in self._audit_set else []

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
            self._state = None
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def _show(self, at: Stage) -> None:
        self._progress = None if at.finished else at
        self._tell()

    def _model_changed(self) -> None:
        assert self.model is not None
        with self.lock:
            if self.phase == "features" != self.model.phase:
                # Another model: how versions of the one before did says nothing about it.
                self._audits.clear()
                self._changes.clear()
            self.phase = self.model.phase
            version = self.model.version
            if (version.n_events, version.members) != self._last_version:
                self._last_version = (version.n_events, version.members)
                new = version.labels != self._learned
                self._learned = version.labels
                if version.changed is not None:
                    if not new and self._changes:
                        # All members have learned, or the audit was answered.
                        self._changes.pop()
                    self._changes.append(version.changed / len(version.predicted))
                if version.classes:
                    of_audit = version.predicted[self.audit_rows]
                    self._audits[version.n_events] = Past(len(version.labels), version.classes, of_audit)
                    if len(self._audits) > MOST_VERSIONS:
                        del self._audits[min(self._audits)]
        self._tell()

    # What the page shows

    @property
    def version(self) -> Version | None:
        """The predictions, once there are some."""
        return None if self.model is None else self.model.version

    def state(self) -> dict[str, Any]:
        """Everything but rows."""
        with self.lock:
            if self._state is None:
                self._state = self._described()
            return self._state

    def _described(self) -> dict[str, Any]:
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
        answers = self.answers
        n = len(answers.audited)
        unjudged = len((answers.skipped | answers.unsure) & self._audit_set)
        made = Audit(n, 0, self.target, len(self.audit_rows), unjudged)
        if self.version is None or not self.version.classes:
            return made._replace(n=0)
        now = self._labels_now()
        looks = [look for look in self._looks.values() if look["n"] <= n and look["labels"] == now]
        if looks:
            last = max(looks, key=lambda look: look["n"])
            made = made._replace(look=Look(last["n"], last["n_right"]))
        return made._replace(n_right=self._n_right(made.n_shown))

    def _n_right(self, n: int) -> int:
        """How many of the first n answers of the audit the predictions of now agree with."""
        version = self.version
        assert version is not None
        past = Past(len(version.labels), version.classes, version.predicted[self.audit_rows])
        return self._n_right_of(past, version.n_events, n)

    def _n_right_of(self, past: Past, n_events: int, n: int) -> int:
        """The same of the predictions after so many events; classes may have been renamed since."""
        place = {row: i for i, row in enumerate(self.audit_rows)}
        answers = list(self.answers.audited.items())[:n]
        by = renames(self.events, n_events, undone(self.events))
        number = {renamed(name, by): i for i, name in enumerate(past.classes)}
        predicted = past.predicted[[place[row] for row, _ in answers]]
        truth = np.array([number.get(name, -1) for _, name in answers], dtype=predicted.dtype)
        return int((predicted == truth).sum())

    def _best(self) -> dict[str, Any] | None:
        """An earlier version that was right more often in the audit."""
        now = self.audit()
        if now.n_shown < LEAST_CHECKS or not self._audits:
            return None
        right = {at: self._n_right_of(past, at, now.n_shown) for at, past in self._audits.items()}
        best = max(right, key=lambda at: (right[at], at))
        if right[best] < now.n_right + BETTER or best == 0:
            return None
        n_labels = self._audits[best].n_labels
        return {
            "event": best - 1,
            "text": f"With {n_labels} labels, {right[best]} of {now.n_shown} checks were right; now "
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
                version = self.version
                first = [] if how == "random" or version is None else version.suggested
                suggested = [row for row in first if row not in taken][:n]
                more = (row for row in self._random if row not in taken and row not in suggested)
                at_random = list(itertools.islice(more, n))
                if suggested and self._since_new_class() >= N_ALTERNATE:
                    rows = _alternating(suggested, at_random, begin=len(answers.labels) % 2)[:n]
                else:
                    # Random ones where there is nothing to suggest, or not yet.
                    rows = (suggested + at_random)[:n]
        return [self.items.shown(row) for row in rows]

    def _since_new_class(self) -> int:
        """Labels since the first one of a class."""
        names = list(self.answers.labels.values())
        last = max((names.index(name) for name in set(names)), default=0)
        return len(names) - 1 - last

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
            # Labeled rows last: they are as certain as can be, and known.
            with self.lock:
                labeled = np.isin(rows, list(self.answers.labels))
            rows = np.concatenate([rows[~labeled], rows[labeled]])
        return self.answered(rows[:n].tolist())

    def doubtful(self) -> dict[str, Any]:
        """Labels that the others contradict, most doubtful first."""
        model = self.model
        doubt = None if model is None else model.doubt
        running = model is not None and model.doubt_runs
        if doubt is None:
            return {"running": running, "done": 0, "total": 0, "items": []}
        with self.lock:
            labels = dict(self.answers.labels)
        # A label that was corrected meanwhile is another one.
        found = [one for one in doubt.found if labels.get(one.row) == one.label]
        items = [
            self.items.shown(one.row)
            | {"label": one.label, "predicted": one.predicted, "own_probability": one.own_probability}
            for one in sorted(found, key=lambda one: one.own_probability)[:N_DOUBTFUL]
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
                "can_undo": number not in gone and events[number]["type"] != "undo",
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
