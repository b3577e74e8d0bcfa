"""Small runs that tests copy: with labels, without, and one that was stopped."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.bad_files import few_labels, labeled
from cli.bad_runs import Bad
from cli.lines import SMALL, assert_refused, ran
from ebse.cli._show import Progress

Copy = Callable[[str, Path], Path]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs "run", "plain" and "stopped", and what they learned from, rows.csv."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "rows.csv").write_bytes(labeled(few_labels()))

    def stop(progress: Progress, step: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert ran(f"fit rows.csv --label kind --out run --json {SMALL}", patch) == 0
        assert ran(f"fit rows.csv --drop kind --out plain --json {SMALL}", patch) == 0
        patch.setattr(Progress, "at", stop)
        assert ran(f"fit rows.csv --label kind --out stopped {SMALL}", patch) == 130
    return folder


@pytest.fixture
def copied(runs: Path) -> Copy:
    """Copies a run, or rows.csv, into a folder."""

    def copy(name: str, folder: Path) -> Path:
        if (runs / name).is_file():
            return Path(shutil.copy(runs / name, folder / name))
        return Path(shutil.copytree(runs / name, folder / name))

    return copy


@pytest.fixture
def refused(
    copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Bad], None]:
    """Asserts that a command on copied runs is refused, and leaves them as they are."""

    def check(bad: Bad) -> None:
        for run in bad.runs.split():
            copied(run, tmp_path)
        bad.change(tmp_path)
        assert_refused(bad.line, bad.piece, tmp_path, monkeypatch, capsys)

    return check
