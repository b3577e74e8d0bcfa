"""Run folders: results survive, and other folders are refused."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ebse.workflow.run_folder import CONFIG, LOCK, ROWS, Run, read_header, read_results


@dataclass(frozen=True)
class Config:
    seeds: tuple[int, ...] = (0, 1)
    rate: float = 0.1


def test_results_are_there_when_a_run_is_opened_again(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", "test", Config())
    run.add({"kind": "a", "seed": 0, "values": [np.float64(0.5), 1]})
    run.add({"kind": "a", "seed": 1, "values": []})
    again = Run(tmp_path / "run", "test", Config())
    assert again.rows == run.rows == read_results(tmp_path / "run")
    assert again.has(kind="a", seed=1)
    assert not again.has(kind="a", seed=2)
    header = read_header(tmp_path / "run")
    assert header["config"] == {"seeds": [0, 1], "rate": 0.1}
    assert header["versions"]["torch"]


def test_an_incomplete_line_is_dropped(tmp_path: Path) -> None:
    run = Run(tmp_path, "test", Config())
    run.add({"kind": "a", "seed": 0})
    with (tmp_path / ROWS).open("a") as file:
        file.write('{"seed": 1, "val')
    again = Run(tmp_path, "test", Config())
    assert again.rows == [{"kind": "a", "seed": 0}]
    again.add({"kind": "a", "seed": 2})
    assert read_results(tmp_path) == [{"kind": "a", "seed": 0}, {"kind": "a", "seed": 2}]


def test_other_settings_and_other_folders_are_refused(tmp_path: Path) -> None:
    # Settings of a run without results may change.
    Run(tmp_path / "run", "test", Config(rate=0.5))
    Run(tmp_path / "run", "test", Config(), data=7).add({"kind": "a"})
    with pytest.raises(
        ValueError, match=r"rate must be 0.1 as in the run in .*, got 0.2; repeat the settings"
    ):
        Run(tmp_path / "run", "test", Config(rate=0.2))
    with pytest.raises(
        ValueError, match=r"folder must be a run of other, got .*, one of test; choose another"
    ):
        Run(tmp_path / "run", "other", Config())
    with pytest.raises(ValueError, match=r"the data must be those that the run in .* began with, got others"):
        Run(tmp_path / "run", "test", Config(), data=8)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"folder must be a folder, got the file"):
        Run(tmp_path / "file", "test", Config())
    with pytest.raises(FileExistsError, match=r"folder must be new, empty or a run of this experiment"):
        Run(tmp_path, "test", Config())


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"format": "another"}', json.dumps({"format": "ebse experiment 1"})]
)
def test_other_folders_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(content)
    with pytest.raises(ValueError, match=r"config.json must be written by ebse"):
        read_header(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"folder must be a run, got .*has no config.json"):
        read_header(tmp_path / "nowhere")


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    for line in ("not json", "[1]", '{"seed": 1}', '{"kind": 3}', '{"kind": "finished", "n_rows": "3"}'):
        (tmp_path / ROWS).write_text('{"kind": "a"}\n' + line + "\n")
        with pytest.raises(ValueError, match=r"rows.jsonl must hold a line of JSON for each result"):
            read_results(tmp_path)


def test_sources_of_predictions_that_nobody_writes_are_refused(tmp_path: Path) -> None:
    row = {"kind": "labels", "labels": {"a": 1}, "predicted": {"a": 2}, "source": "mean"}
    (tmp_path / ROWS).write_text(json.dumps(row) + "\n")
    assert read_results(tmp_path) == [row]
    (tmp_path / ROWS).write_text(json.dumps(row | {"source": "spreading"}) + "\n")
    with pytest.raises(ValueError, match=r"rows.jsonl must hold a line of JSON for each result"):
        read_results(tmp_path)


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".config.json.1.partial").write_text("{")
    (tmp_path / LOCK).touch()
    assert Run(tmp_path, "test", Config()).rows == []
    (tmp_path / ".rows.jsonl.77.partial").write_text("{")
    Run(tmp_path, "test", Config())
    assert not list(tmp_path.glob(".*.partial"))


def test_a_removed_folder_is_not_recreated(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", "test", Config())
    run.add({"kind": "a"})
    shutil.rmtree(tmp_path / "run")
    for write in (
        lambda: run.add({"kind": "b"}),
        lambda: run.replace([], key=["kind"]),
        lambda: run.place("x"),
    ):
        with pytest.raises(FileNotFoundError, match=r"run must stay in place .* removed or moved"):
            write()
    assert not (tmp_path / "run").exists()


def test_results_are_replaced(tmp_path: Path) -> None:
    run = Run(tmp_path, "test", Config())
    for n in (1, 2):
        run.add({"kind": "a", "n": n, "x": 0})
    run.replace([{"kind": "a", "n": 2, "x": 1}, {"kind": "a", "n": 3, "x": 1}], key=("kind", "n"))
    expected = [{"kind": "a", "n": n, "x": x} for n, x in ((1, 0), (2, 1), (3, 1))]
    assert run.rows == read_results(tmp_path) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="locks are those of POSIX")
def test_one_process_at_a_time(tmp_path: Path) -> None:
    run = Run(tmp_path, "test", Config())
    code = "import pathlib, sys; from ebse.workflow.run_folder import Lock; Lock(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "folder must be free" in done.stderr
    del run
    subprocess.run(command, capture_output=True, check=True)
    assert not (tmp_path / LOCK).stat().st_mode & 0o111
