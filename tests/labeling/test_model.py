"""The model behind the labeling page: versions, what they have learned from, features, and the map."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ebse import FewLabelClassifier
from ebse._stages import Stage
from ebse.labeling import model as module
from ebse.labeling.layout import LARGEST, layout
from ebse.labeling.model import MODEL, N_SUGGESTED, ROWS, Model, Task, Version, _may_learn_features, principal
from labeling.conftest import Entered, Opened
from labeling.pages import LIMIT, Array, digits, free_rows, until

X, Y = digits()

Started = Callable[..., Model]


class Heard:
    """A listener that keeps the versions it was called after."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.model: Model | None = None
        self.lock = threading.Lock()

    def __call__(self) -> None:
        with self.lock:
            if self.model and (not self.versions or self.model.version is not self.versions[-1]):
                self.versions.append(self.model.version)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts a model on 150 digits."""
    made: list[Model] = []

    def start(heard: Heard | None = None) -> Model:
        heard = heard or Heard()
        one = Model(X, {}, tmp_path, heard, seed=0)
        heard.model = one
        made.append(one)
        one.start()
        return one

    yield start
    for one in made:
        one.stop()


def task(n_events: int, rows: list[int], excluded: frozenset[int] = frozenset()) -> Task:
    return Task(n_events, {row: Y[row] for row in rows}, excluded)


def _has_learned(model: Model, n_events: int) -> bool:
    return model.version.n_events == n_events


def test_versions_are_monotone_and_the_last_has_learned_all(started: Started) -> None:
    heard = Heard()
    model = started(heard)
    for n in range(1, 31):
        model.learn(task(n, list(range(n))))
    until(lambda: model.version.n_events == 30 and model.version.members == "all")
    versions = heard.versions
    numbers, events = [v.number for v in versions], [v.n_events for v in versions]
    assert numbers == sorted(set(numbers))
    assert events == sorted(events)
    last = model.version
    assert (len(last.labels), sorted(last.classes)) == (30, sorted(set(Y[:30])))
    predicted = np.array(last.classes)[last.predicted]
    assert predicted[:30].tolist() == Y[:30]
    np.testing.assert_allclose(sum(last.share.values()), 1)
    assert not set(last.suggested) & set(range(30))
    assert 0 < len(last.suggested) <= N_SUGGESTED


def test_labels_that_arrive_while_a_version_is_computed_give_one_version(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the first of several versions is waited for, all later ones are one."""
    inside, going_on, learned = threading.Event(), threading.Event(), Model._learned
    seen: list[tuple[int, str]] = []

    def slow(self: Model, model: Any, one: Task, members: str) -> Version:
        seen.append((one.n_events, members))
        if len(seen) == 1:
            inside.set()
            assert going_on.wait(LIMIT)
        return learned(self, model, one, members)

    monkeypatch.setattr(Model, "_learned", slow)
    model = started()
    model.learn(task(4, [0, 1, 2, 3]))
    assert inside.wait(LIMIT)
    for n in range(5, 25):
        model.learn(task(n, list(range(n))))
    going_on.set()
    until(lambda: model.version.n_events == 24 and model.version.members == "all")
    assert seen == [(4, "propagation"), (24, "propagation"), (24, "all")]


def test_all_members_learn_after_a_pause_alone(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE", 10**6)
    heard = Heard()
    model = started(heard)
    for n in (10, 20, 30):
        model.learn(task(n, list(range(n))))
        until(partial(_has_learned, model, n))
    assert {v.members for v in heard.versions} <= {"", "propagation"}
    # Twin: the same with a short pause.
    monkeypatch.setattr(module, "IDLE", 0.05)
    model.learn(task(31, list(range(31))))
    until(lambda: model.version.members == "all" and model.version.n_events == 31)


@pytest.mark.parametrize("rows", [[], [0], [0, 10, 20]])
def test_fewer_than_two_classes_give_suggestions_but_no_predictions(
    rows: list[int], started: Started
) -> None:
    assert len({Y[row] for row in rows}) <= 1
    model = started()
    audit = frozenset(range(100, 130))
    model.learn(task(5, rows, audit))
    until(lambda: model.version.number)
    version = model.version
    assert (version.classes, version.share, version.changed) == ([], {}, None)
    assert (version.predicted == -1).all()
    assert version.suggested
    assert len(version.suggested) == len(set(version.suggested))
    assert not set(version.suggested) & (audit | set(rows))
    # With two classes there are predictions, and without them again there are none.
    model.learn(task(6, [0, 1], audit))
    until(lambda: model.version.n_events == 6)
    assert model.version.classes == ["0", "1"]
    model.learn(task(7, rows, audit))
    until(lambda: model.version.n_events == 7)
    assert model.version.classes == []


def test_changed_rows_are_counted_by_name(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another class has moved the numbers of the others."""
    monkeypatch.setattr(module, "IDLE", 10**6)
    model = started()
    model.learn(task(1, [1, 2, 3, 11, 12, 13]))
    until(lambda: model.version.n_events == 1)
    before = model.version
    assert before.changed is None
    model.learn(task(2, [0, 1, 2, 3, 11, 12, 13]))
    until(lambda: model.version.n_events == 2)
    after = model.version
    names = [np.array(v.classes)[v.predicted] for v in (before, after)]
    assert after.changed == int((names[0] != names[1]).sum())
    assert 0 < after.changed < len(X)
    model.learn(task(3, [0, 1, 2, 3, 11, 12, 13]))
    until(lambda: model.version.n_events == 3)
    # Of the last label; checks of the audit change nothing.
    assert model.version.changed == after.changed


def test_no_label_is_in_doubt_where_none_can_be_left_out(started: Started) -> None:
    model = started()
    model.learn(task(1, [0, 1, 2]))
    until(lambda: model.version.n_events == 1)
    model.look_for_doubtful_labels()
    until(lambda: not model.doubt_runs)
    assert model.doubt is not None
    assert (model.doubt.total, model.doubt.found) == (0, [])


def test_doubts_leave_the_model_as_it_is(started: Started) -> None:
    model = started()
    model.learn(task(30, list(range(30))))
    until(lambda: model.version.members == "all")
    before = model.version
    p = model.fitted.label_distributions_
    model.look_for_doubtful_labels()
    until(lambda: not model.doubt_runs)
    assert model.version.n_events == before.n_events
    np.testing.assert_array_equal(model.version.predicted, before.predicted)
    np.testing.assert_array_equal(model.fitted.label_distributions_, p)


# Features


def test_which_rows_features_are_learned_from() -> None:
    from ebse.semi_supervised.few_label import MANY_COLUMNS, MANY_ROWS

    many: Array = np.broadcast_to(np.float32(0), (MANY_ROWS, MANY_COLUMNS))
    assert _may_learn_features(many)
    assert _may_learn_features(pd.DataFrame(many))
    assert not _may_learn_features(many[1:])
    assert not _may_learn_features(many[:, 1:])
    assert not _may_learn_features(pd.DataFrame(many).assign(word="x"))


def test_principal_components() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 60)) @ rng.normal(size=(60, 60))
    found = principal(values, 0)
    assert found.shape == (200, 50)
    # Distances stay almost as they are.
    kept = (found**2).sum() / ((values - values.mean(0)) ** 2).sum()
    assert 0.95 < kept <= 1 + 1e-6
    # Units of a table's columns do not matter; constant and missing entries are no trouble.
    frame = pd.DataFrame(values).assign(c=1.0)
    frame.iloc[3, 3] = np.nan
    scaled = frame * np.geomspace(1e-3, 1e3, 61)
    np.testing.assert_allclose(np.abs(principal(scaled, 0)), np.abs(principal(frame, 0)), atol=1e-2)


@contextmanager
def child(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that learns features from the rows in a folder; it ends with its standard input."""
    with subprocess.Popen(
        [sys.executable, "-m", "ebse.labeling.learn_features", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield process


def test_the_process_ends_with_the_server(tmp_path: Path) -> None:
    """It would learn for minutes, and nobody would want the model."""
    os.mkfifo(tmp_path / ROWS)
    with child(tmp_path) as process:
        # It waits for rows, which nobody writes.
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(LIMIT) == 1
    assert not (tmp_path / MODEL).exists()


def test_the_process_that_learns_features(tmp_path: Path) -> None:
    rows, _ = digits(200)
    with (tmp_path / ROWS).open("wb") as file:
        pickle.dump((rows, {}, 3), file)
    with child(tmp_path) as process:
        assert process.stdout is not None
        said = process.stdout.readlines()
        assert process.wait() == 0
    assert said
    stages = [Stage(*json.loads(line)) for line in said]
    assert any(at.finished for at in stages)
    with (tmp_path / MODEL).open("rb") as file:
        made = pickle.load(file)
    assert isinstance(made, FewLabelClassifier)
    assert made.random_state == 3
    made.relabel(y=[*Y[:40], *[None] * 160])
    assert made.label_distributions_.shape == (200, 10)


def _learns(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let features be learned, by another program in place of that of the package."""
    monkeypatch.setattr(module, "_may_learn_features", lambda X: True)
    popen = subprocess.Popen

    def run(command: list[str], **options: Any) -> Any:
        if "ebse.labeling.learn_features" in command:
            command = [sys.executable, "-c", code, command[-1]]
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", run)


SLOW = """
import sys, time, json
from pathlib import Path
print(json.dumps(["features", 1, 10]), flush=True)
folder = Path(sys.argv[1])
while not (folder / "go").exists():
    time.sleep(0.01)
"""
LEARNED = "(folder / 'model.pickle').write_bytes((folder.parent / 'fitted.pickle').read_bytes())\n"


def test_labels_survive_the_swap(
    opened: Opened, entered: Entered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _learns(monkeypatch, SLOW + LEARNED)
    fitted = FewLabelClassifier(features=None, random_state=0).fit(X)
    (tmp_path / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.until(lambda s: s["phase"] == "features" and s["progress"] and s["map"])
    page.teach(rows[:20], Y)
    # Predictions, of the principal components, while features are learned.
    state = page.until(lambda s: s["version"] and s["n_events_seen"] == s["n_events"])
    assert state["phase"] == "features"
    assert state["progress"] == {"name": "features", "done": 1, "total": 10}
    model = made._session.model
    assert model is not None
    assert model.fitted is None
    before = made.labels
    number, n_maps = model.version.number, state["map"]
    (tmp_path / "run" / "go").touch()
    state = page.until(lambda s: s["phase"] == "ready" and s["members"] == "all" and s["map"] > n_maps)
    assert state["error"] is None
    assert model.fitted is not None
    assert model.version.number > number
    assert len(model.version.labels) == 20
    assert made.labels.equals(before)
    # Its rows and the model are not left in the folder.
    assert not (tmp_path / "run" / ROWS).exists()
    assert not (tmp_path / "run" / MODEL).exists()
    page.label(rows[30], Y[rows[30]])
    page.learned("all")
    assert made.model.label_distributions_.shape == (len(X), 10)


def test_a_killed_process_leaves_principal_components(
    opened: Opened, entered: Entered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With half a line of its progress.
    _learns(
        monkeypatch, SLOW.replace("folder = ", "print('[\"features\", 2', end='', flush=True)\nfolder = ")
    )
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.until(lambda s: s["phase"] == "features" and s["progress"])
    page.teach(rows[:20], Y)
    model = made._session.model
    assert model is not None
    assert model._child is not None
    os.kill(model._child.pid, signal.SIGKILL)
    state = page.until(lambda s: s["phase"] == "ready")
    assert state["error"] == "Learning features failed; labels propagate on principal components instead."
    assert state["progress"] is None
    page.label(rows[30], Y[rows[30]])
    assert page.learned("all")["n_labels"] == 21
    assert not (tmp_path / "run" / ROWS).exists()
    # The export is of the rows as they are.
    assert made.model.predict(X[:5]).shape == (5,)


def test_closing_ends_the_process(opened: Opened, entered: Entered, monkeypatch: pytest.MonkeyPatch) -> None:
    _learns(monkeypatch, SLOW)
    made = opened()
    entered(made).until(lambda s: s["phase"] == "features" and s["progress"])
    model = made._session.model
    assert model is not None
    child = model._child
    assert child is not None
    assert child.poll() is None
    made.close()
    until(lambda: child.poll() is not None)
    assert child.returncode == -signal.SIGKILL


def test_a_model_without_features_is_final_before_it_is_ready(tmp_path: Path) -> None:
    """An export does not wait for a model that is stopped."""
    one = Model(X, {}, tmp_path, lambda: None, seed=0)
    found = one.final(task(20, list(range(20))))
    assert found.classes_.tolist() == sorted(set(Y[:20]))


# The map


def blobs(rng: np.random.Generator) -> tuple[Array, Array]:
    """Four distant groups of rows."""
    of = np.arange(200) % 4
    return rng.normal(size=(4, 6))[of] * 20 + rng.normal(size=(200, 6)), of


def within_and_between(places: Array, of: Array) -> tuple[float, float]:
    """Mean distances of places within groups and between them."""
    far = np.sqrt(((places[:, np.newaxis].astype(float) - places) ** 2).sum(2))
    same = of[:, np.newaxis] == of
    return float(far[same].mean()), float(far[~same].mean())


def test_the_map_keeps_groups_apart() -> None:
    values, of = blobs(np.random.default_rng(0))
    model = FewLabelClassifier(features=None, random_state=0).fit(values)
    places = layout(model, seed=0)
    assert (places.shape, places.dtype) == ((200, 2), np.dtype("<u2"))
    assert places.max() >= 0.99 * LARGEST
    within, between = within_and_between(places, of)
    assert within < 0.5 * between
    # Twin: as places of other rows they are not apart.
    within, between = within_and_between(np.random.default_rng(1).permutation(places), of)
    assert not within < 0.5 * between
    # It does not depend on labels, so that it stays still.
    model.relabel(y=[str(c) if n < 8 else None for n, c in enumerate(of)])
    np.testing.assert_array_equal(layout(model, seed=0), places)


@pytest.mark.parametrize("n", [10, 11, 20])
def test_the_map_of_few_rows(n: int) -> None:
    model = FewLabelClassifier(features=None, random_state=0).fit(X[:n])
    assert layout(model, seed=0).shape == (n, 2)


def test_the_map_of_equal_rows() -> None:
    same = np.tile([[0.0, 1.0], [1.0, 0.0]], (10, 1))
    model = FewLabelClassifier(features=None, random_state=0).fit(same)
    assert layout(model, seed=0).shape == (20, 2)


def test_no_process_starts_after_the_end(
    started: Started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model that is stopped while rows are clustered does not begin to learn features."""
    model = started()
    until(lambda: model.phase == "ready")
    model.stop()
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **options: pytest.fail("a process"))
    model._learn_features()
    assert not list(tmp_path.rglob("*.pickle"))


def test_warnings_of_other_threads_are_left_alone(started: Started) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = started()
        model.learn(task(1, [1, 2, 3, 11, 12, 13]))
        until(lambda: model.version.n_events == 1)
        warnings.warn("of the user", stacklevel=1)
        assert "of the user" in [str(one.message) for one in seen]
        assert ("ignore", None, Warning, None, 0) not in warnings.filters
