"""Small runs, made once and copied by tests: with labels, without, stopped, and of label propagation."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cli.bad_files import few_labels, labeled
from cli.bad_runs import Bad
from cli.lines import SMALL, assert_refused, ran
from ebse._stages import Stage
from ebse.cli._show import _Lines
from rendering import skip_rendering

Copy = Callable[[str, Path], Path]


def stop_at(epoch: int, patch: pytest.MonkeyPatch) -> None:
    """Send Ctrl-C to this process when training has reached an epoch."""

    def show(lines: object, at: Stage) -> None:
        if at.name == "training" and at.done == epoch and not at.finished:
            signal.raise_signal(signal.SIGINT)

    patch.setattr(_Lines, "show", show)


def two_groups(path: Path, n_labels: int) -> None:
    """Sixty rows of eight binary columns in two groups, the first ``n_labels`` with a label."""
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    bits = (rng.random((60, 8)) < np.where(kind[:, None] == (np.arange(8) < 4), 0.95, 0.05)).astype(int)
    lines = [",".join([*(f"b{i}" for i in range(8)), "kind"])]
    for i, (row, k) in enumerate(zip(bits, kind, strict=True)):
        lines.append(",".join([*map(str, row), f"kind{k}" if i < n_labels else ""]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(autouse=True)
def every_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of tests are small: all stages have a line, however short they are."""
    monkeypatch.setattr("ebse.cli._show.SHORTEST", 0)


@pytest.fixture
def rendered() -> None:
    """For tests in which the figures of pages are rendered."""


@pytest.fixture(autouse=True)
def unrendered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all other tests they are made, but not rendered, which takes most of the time of a small fit."""
    if "rendered" not in request.fixturenames:
        skip_rendering(monkeypatch)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs "run", "plain", "stopped" and "few", and their data."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "rows.csv").write_bytes(labeled(few_labels()))
    two_groups(folder / "few.csv", 4)
    two_groups(folder / "all.csv", 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        skip_rendering(patch)
        assert ran(f"fit rows.csv --label kind --out run --json {SMALL}", patch) == 0
        assert ran(f"fit rows.csv --drop kind --out plain --json {SMALL}", patch) == 0
        assert ran("fit few.csv --label kind --out few --json", patch) == 0
        stop_at(1, patch)
        assert ran(f"fit rows.csv --label kind --out stopped {SMALL}", patch) == 130
    return folder


@pytest.fixture
def copied(runs: Path) -> Copy:
    """Copies a run, or a data file, into a folder."""

    def copy(name: str, folder: Path) -> Path:
        if (runs / name).is_file():
            return Path(shutil.copy(runs / name, folder / name))
        return Path(shutil.copytree(runs / name, folder / name))

    return copy


@pytest.fixture
def refused(
    copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Bad], None]:
    """Asserts that a command on copied runs is refused, and leaves them unchanged."""

    def check(bad: Bad) -> None:
        for run in bad.runs.split():
            copied(run, tmp_path)
        bad.change(tmp_path)
        assert_refused(bad.line, bad.piece, tmp_path, monkeypatch, capsys)

    return check
