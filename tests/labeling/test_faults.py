"""What must not lose a label: restarts, damaged files, a full disk, slow and failing readers, kill −9."""

import errno
import gc
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from ebse import _jsonl
from ebse.io import read_rows
from ebse.labeling import opening
from ebse.labeling.events import replay
from ebse.labeling.opening import session_on_rows
from labeling.conftest import Entered, Opened
from labeling.pages import LIMIT, Page, digits, free_rows, key, logged, until

X, Y = digits()


def test_a_session_continues(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened(classes=["a"])
    page, rows = entered(made), free_rows(made)
    page.teach(rows[:12], Y)
    page.send("skip", rows=rows[12:14])
    page.send("unsure", rows=rows[14:15])
    page.label(made._session.audit_rows[0], "3", by="audit")
    page.send("rename", of="0", name="zero")
    page.send("undo")
    page.send("restore", event=3)
    page.learned("all")
    sent = {"type": "class", "name": "late", "key": key()}
    first = page.post("/api/event", sent).json()["id"]
    before, history, labels = page.learned("all"), page.get("/api/history"), made.labels
    audit = made._session.audit_rows
    made.close()
    again = opened(classes=["a"])
    page = entered(again)
    assert again.labels.equals(labels)
    assert again._session.audit_rows == audit
    state = page.learned("all")
    of_the_model = {"version", "changed", "map", "progress"}
    assert {k: v for k, v in state.items() if k not in of_the_model} == {
        k: v for k, v in before.items() if k not in of_the_model
    }
    assert page.get("/api/history") == history
    # Keys are remembered: what was sent before the restart is not applied again.
    assert page.post("/api/event", sent).json()["id"] == first
    assert page.label(rows[20], "1")["id"] == first + 1
    assert len(logged(tmp_path / "run")) == first + 2


def labeled_run(folder: Path) -> list[int]:
    """A session with three labels, closed; the rows that may get labels."""
    session = session_on_rows(X, name="ndarray", folder=folder)
    rows = [row for row in range(len(X)) if row not in session.audit_rows]
    for row in rows[:3]:
        session.add({"type": "label", "rows": [row], "class": Y[row], "from": "own", "key": key()})
    session.close()
    return rows


def test_a_torn_last_line_is_ignored(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    rows = labeled_run(tmp_path / "run")
    path = tmp_path / "run" / "rows.jsonl"
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for n in (1, len(last) // 2, len(last) - 1):
        path.write_bytes(whole + last[:n])
        made = opened()
        assert list(made.labels.index) == rows[:3]
        assert path.read_bytes() == whole
        made.close()
    # A last line without its end was never answered.
    path.write_bytes(whole[:-1])
    made = opened()
    assert list(made.labels.index) == rows[:2]
    assert entered(made).label(rows[5], "1")["id"] == 2
    assert [line["id"] for line in logged(tmp_path / "run")] == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        "not json",
        "[]",
        "{}",
        '{"kind": "event"}',
        {"type": "delete"},
        {"rows": [10**6]},
        {"rows": "all"},
        {"rows": None},
        {"class": 5},
        {"from": "audit"},
        {"key": 5},
        {"key": None},
        {"time": "noon"},
        {"type": "undo", "event": 1},
        {"type": "undo", "event": 99},
    ],
)
def test_a_damaged_event_is_refused(change: Any, tmp_path: Path) -> None:
    labeled_run(tmp_path / "run")
    path = tmp_path / "run" / "rows.jsonl"
    good = path.read_bytes()
    lines = good.decode().splitlines()
    lines[1] = change if isinstance(change, str) else json.dumps(json.loads(lines[1]) | change)
    damaged = ("\n".join(lines) + "\n").encode()
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="damaged") as refused:
        session_on_rows(X, name="ndarray", folder=tmp_path / "run")
    assert "run" in str(refused.value)
    assert path.read_bytes() == damaged
    path.write_bytes(good)
    assert len(session_on_rows(X, name="ndarray", folder=tmp_path / "run").answers.labels) == 3


def test_other_data_and_settings_are_refused(tmp_path: Path) -> None:
    labeled_run(tmp_path / "run")
    other = X.copy()
    other[7, 20] += 1
    for data, more, piece in (
        (other, {}, "the data must be those"),
        (X[:-1], {}, "the data must be those"),
        (X, {"random_state": 1}, "random_state must be 0"),
    ):
        with pytest.raises(ValueError, match=piece):
            session_on_rows(data, name="ndarray", folder=tmp_path / "run", **more)  # type: ignore[arg-type]
    assert len(session_on_rows(X, name="ndarray", folder=tmp_path / "run").answers.labels) == 3


def test_folders_of_something_else_are_refused(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("x")
    with pytest.raises(FileExistsError, match="folder must be new"):
        opened()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="file"):
        opened(folder=tmp_path / "file")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"thesis.txt"}


def test_a_folder_has_one_server(opened: Opened, tmp_path: Path) -> None:
    """Of another process; the first one goes on."""
    made = opened()
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, numpy as np; from pathlib import Path; from ebse.labeling.opening import session_on_rows\n"
        f"session_on_rows(np.load({str(tmp_path / 'x.npy')!r}), name='ndarray', folder=Path(sys.argv[1]))"
    )
    for folder, refused in (("run", True), ("other", False)):
        found = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / folder)], capture_output=True, text=True, check=False
        )
        assert (found.returncode != 0) == refused, found.stderr
        assert ("another process is using" in found.stderr) == refused
    assert made._session.run.folder.exists()


def test_a_folder_has_one_page_in_this_process(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    """As where the cell of a notebook is run again: two pages would number their events alike."""
    made = opened()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for folder in ("run", "link"):
        with pytest.raises(BlockingIOError, match="another labeling page of this process"):
            opened(folder=tmp_path / folder)
    row = free_rows(made)[0]
    entered(made).label(row, "a")
    made.close()
    assert opened().labels.to_dict() == {row: "a"}


def full(*of: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["fsync", "write"])
def test_a_full_disk(
    where: str, opened: Opened, entered: Entered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label is refused with a reason, nothing changes, and later ones are saved."""
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.label(rows[0], "a")
    page.until(lambda s: s["phase"] == "ready" and s["map"] and s["n_events_seen"] == 1)
    path = tmp_path / "run" / "rows.jsonl"
    before, held = page.state, path.read_bytes()
    sent = {"type": "label", "rows": [rows[1]], "class": "b", "from": "own", "key": key()}
    with monkeypatch.context() as patch:
        if where == "fsync":
            patch.setattr(os, "fsync", full)
        else:
            patch.setattr(_jsonl, "append", full)
        answer = page.post("/api/event", sent)
        assert answer.status_code == 507
        assert "No space left on device" in answer.json()["error"]
        assert "Free some space" in answer.json()["error"]
        assert page.state == before
        assert path.read_bytes() == held
    # The browser sends it again, with its key.
    assert page.post("/api/event", sent).json()["id"] == 1
    assert made.labels.to_dict() == {rows[0]: "a", rows[1]: "b"}
    made.close()
    assert len(opened().labels) == 2


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    """A real limit of the file's size, in a process of its own: the line is there as a whole or not at all."""
    code = """
import resource, signal, sys
from functools import partial
from pathlib import Path
from ebse import _jsonl
from ebse.io import read_rows
path = Path(sys.argv[1])
_jsonl.append(path, [{"n": 0}])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40, 100))
try:
    _jsonl.append(path, [{"n": 1, "long": "x" * 50}])
except OSError as error:
    print(error.errno)
print(path.read_bytes())
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
_jsonl.append(path, [{"n": 2}])
print(_jsonl.read(path))
"""
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.jsonl")], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == [
        str(errno.EFBIG),
        repr(b'{"n": 0}\n'),
        "[{'n': 0}, {'n': 2}]",
    ]


def test_a_removed_folder_is_not_made_again(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened()
    page, row = entered(made), free_rows(made)[0]
    (tmp_path / "run").rename(tmp_path / "moved")
    answer = page.post(
        "/api/event", {"type": "label", "rows": [row], "class": "a", "from": "own", "key": key()}
    )
    assert (answer.status_code, "removed or moved" in answer.text) == (500, True)
    assert made.labels.empty
    (tmp_path / "moved").rename(tmp_path / "run")
    page.label(row, "a")
    assert len(made.labels) == 1


# Folders of images


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Forty dark and light images."""
    rng = np.random.default_rng(0)
    for i in range(40):
        path = tmp_path / "photos" / f"{'dark' if i % 2 else 'light'}-{i:02}.png"
        path.parent.mkdir(exist_ok=True)
        gray = rng.integers(0, 100, (6, 6), dtype=np.uint8) + (0 if i % 2 else 150)
        Image.fromarray(gray.astype(np.uint8)).save(path)
    return tmp_path / "photos"


def test_labels_are_given_while_images_are_read(
    photos: Path, opened: Opened, entered: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, read = threading.Event(), read_rows

    def slow(*args: Any, **options: Any) -> Any:
        assert going_on.wait(LIMIT)
        return read(*args, **options)

    monkeypatch.setattr(opening, "read_rows", slow)
    made = opened(photos)
    page = entered(made)
    assert page.state["phase"] == "reading"
    items = page.get("/api/next", n=30)["items"]
    assert len(items) == 30
    assert page.client.get(f"/image/{items[0]['row']}").headers["content-type"] == "image/png"
    for item in items[:10]:
        page.label(item["row"], item["name"].partition("-")[0], by="random")
    page.send("undo")
    early = page.post("/api/export")
    assert (early.status_code, "must wait until the rows are read" in early.text) == (400, True)
    assert page.client.get("/api/map").status_code == 204
    assert (page.state["phase"], page.state["n_labels"], page.state["version"]) == ("reading", 9, 0)
    assert made.model is None
    going_on.set()
    state = page.learned()
    assert (state["n_labels"], state["n_events_seen"]) == (9, 11)
    names = {item["row"]: item["name"].partition("-")[0] for item in items[10:]}
    found = page.get("/api/items", rows=",".join(map(str, names)))["items"]
    assert np.mean([item["predicted"] == names[item["row"]] for item in found]) > 0.9


def test_images_that_cannot_be_read(photos: Path, opened: Opened, entered: Entered) -> None:
    """The page says why, and takes no labels of rows that the model cannot learn from."""
    (photos / "dark-01.png").write_bytes(b"no image")
    made = opened(photos)
    page = entered(made)
    state = page.until(lambda s: s["phase"] == "failed")
    assert "dark-01.png" in state["error"]
    row = free_rows(made)[0]
    answer = page.post(
        "/api/event", {"type": "label", "rows": [row], "class": "dark", "from": "own", "key": key()}
    )
    assert answer.status_code == 400
    assert "dark-01.png" in answer.json()["error"]
    assert made.labels.empty
    assert made.model is None
    assert page.client.get("/api/next").status_code == 200
    assert page.client.get("/image/0").status_code == 404
    assert page.post("/api/doubtful").status_code == 200
    assert page.post("/api/export").status_code == 400


def test_changed_images_are_refused(photos: Path, opened: Opened, entered: Entered) -> None:
    """Also where names and sizes are those of before: pixels are compared once they are read."""
    for path in photos.iterdir():
        Image.open(path).save(path.with_suffix(".bmp"))
        path.unlink()
    made = opened(photos)
    row = free_rows(made)[0]
    page = entered(made)
    page.until(lambda s: s["phase"] == "ready")
    page.label(row, "dark")
    made.close()
    path = photos / "dark-01.bmp"
    held = path.read_bytes()
    # The last byte of a bitmap is a pixel, or fills its line: the one before is a pixel for sure.
    path.write_bytes(held[:-4] + bytes([held[-4] ^ 255]) + held[-3:])
    page = entered(opened(photos))
    assert (
        "must hold the images of when the session began"
        in page.until(lambda s: s["phase"] == "failed")["error"]
    )


def test_images_that_come_while_others_are_read(
    photos: Path, opened: Opened, entered: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows would be those of other images than the page shows."""

    def later(*args: Any, **options: Any) -> Any:
        Image.new("L", (6, 6)).save(photos / "a-new-one.png")
        return read_rows(*args, **options)

    monkeypatch.setattr(opening, "read_rows", later)
    page = entered(opened(photos))
    assert (
        "must hold the images of when the session began"
        in page.until(lambda s: s["phase"] == "failed")["error"]
    )


def test_links_to_images_are_refused(photos: Path, opened: Opened) -> None:
    (photos / "link.png").symlink_to(photos / "dark-01.png")
    with pytest.raises(ValueError, match=r"the symbolic link link\.png"):
        opened(photos)


def test_a_closed_page_frees_its_folder(opened: Opened, tmp_path: Path) -> None:
    """For other processes, although its handle lives on; and the old handle does not free a new session."""
    made = opened()
    made.close()
    again = opened()
    del made
    gc.collect()
    code = "import sys; from ebse.workflow.run_folder import Lock; from pathlib import Path; Lock(Path(sys.argv[1]))"

    def held() -> bool:
        found = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0 or "another process is using" in found.stderr
        return found.returncode != 0

    assert held()
    again.close()
    assert not held()
    with pytest.raises(ValueError, match="the page must be open"):
        again._session.add({"type": "class", "name": "a", "key": key()})


def test_classes_of_the_start_are_kept(opened: Opened, entered: Entered) -> None:
    made = opened(classes=["cat", "dog"])
    entered(made).send("rename", of="cat", name="feline")
    made.close()
    assert opened()._session.answers.classes == ["feline", "dog"]


def test_a_model_that_fails_says_so(
    opened: Opened, entered: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any) -> None:
        raise MemoryError("for this test")

    monkeypatch.setattr("ebse.labeling.model.Model._first", broken)
    made = opened()
    page = entered(made)
    state = page.until(lambda s: s["phase"] == "failed")
    assert state["error"] == "MemoryError: for this test"
    page.label(free_rows(made)[0], "a")
    assert len(made.labels) == 1


def test_closing_while_images_are_read(photos: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    going_on, read = threading.Event(), read_rows

    def slow(*args: Any, **options: Any) -> Any:
        assert going_on.wait(LIMIT)
        return read(*args, **options)

    monkeypatch.setattr(opening, "read_rows", slow)
    made = opened(photos)
    made.close()
    going_on.set()
    made._session._thread.join(LIMIT)
    assert made._session.model is None


# kill −9


class Started:
    """``ebse label`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ebse",
                "label",
                "digits.npy",
                "--no-browser",
                "--port",
                "0",
                "--out",
                "run",
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+/start\?token=\S+", line):
                self.page = Page(found[0])
                return
        raise AssertionError("no link")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.page.client.close()


def survives(folder: Path, n_kills: int, seed: int) -> None:
    """Every label that was answered is there after any number of kills, and the server's state is the replay."""
    np.save(folder / "digits.npy", X)
    chance = random.Random(seed)
    given: dict[str, tuple[int, str]] = {}
    rows = free_rows_of(folder)
    n_sent = 0
    for _ in range(n_kills + 1):
        started = Started(folder)
        try:
            state = started.page.state
            held = replay(logged(folder / "run"))
            assert state["n_events"] == len(logged(folder / "run"))
            assert state["n_labels"] == len(held.labels)
            assert {c["name"]: c["n_labels"] for c in state["classes"]} == held.counts()
            on_disk = {line["key"]: (line["rows"][0], line["class"]) for line in logged(folder / "run")}
            assert given.items() <= on_disk.items()
            assert len(on_disk) == len(logged(folder / "run")) <= n_sent
            enough, answered = chance.randrange(1, 25), threading.Event()

            def burst(page: Page = started.page, n: int = enough, event: threading.Event = answered) -> None:
                nonlocal n_sent
                for i in range(200):
                    row, name, one = rows[n_sent % len(rows)], str(chance.randrange(3)), key()
                    n_sent += 1
                    sent = {"type": "label", "rows": [row], "class": name, "from": "own", "key": one}
                    try:
                        answer = page.post("/api/event", sent)
                    except httpx.HTTPError:
                        return
                    assert answer.status_code == 200
                    given[one] = (row, name)
                    if i + 1 == n:
                        event.set()

            sender = threading.Thread(target=burst)
            sender.start()
            assert answered.wait(LIMIT)
            started.kill()
            sender.join(LIMIT)
        finally:
            started.kill()
    assert len(given) >= n_kills
    lines = logged_whole(folder)
    assert given.items() <= {line["key"]: (line["rows"][0], line["class"]) for line in lines}.items()


def free_rows_of(folder: Path) -> list[int]:
    from ebse.labeling.audit import reserved

    audit = set(reserved(len(X), set(), 0))
    return [row for row in range(len(X)) if row not in audit]


def logged_whole(folder: Path) -> list[Any]:
    """Complete lines alone: the last one may be torn."""
    return _jsonl.read(folder / "run" / "rows.jsonl")


@pytest.mark.slow
def test_kill(tmp_path: Path) -> None:
    survives(tmp_path, 5, seed=0)


@pytest.mark.soak
def test_kill_many_times(tmp_path: Path) -> None:
    survives(tmp_path, 30, seed=1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_control_c_and_sigterm_end_the_command(tmp_path: Path) -> None:
    np.save(tmp_path / "digits.npy", X)
    for how in (signal.SIGINT, signal.SIGTERM):
        started = Started(tmp_path)
        try:
            started.page.label(free_rows_of(tmp_path)[0], "a")
            until(partial(handles_sigterm, started.process.pid))
            started.process.send_signal(how)
            assert started.process.stdout is not None
            assert "Stopped. 1 labels are in run" in started.process.stdout.read()
            assert started.process.wait(LIMIT) == 0
        finally:
            started.kill()


def handles_sigterm(pid: int) -> bool:
    """Whether a process has a handler of its own, which it does not begin with."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"SigCgt:\s*(\w+)", status)
    return bool(found and int(found[1], 16) >> (signal.SIGTERM - 1) & 1)
