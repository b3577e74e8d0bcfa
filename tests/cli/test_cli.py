"""The command line: what it runs, what it says, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.lines import ran
from ebse.workflow.run_folder import read_header, read_results

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Of models that were trained for one epoch."""

SMALL = "--n-episodes 2 --n-queries 3 --n-components 8 --n-epochs 1 --n-draws 2 --no-baselines"


def test_an_experiment_and_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    assert (
        ran(f"experiment one-shot {SMALL} --shots 1 2 --laws point bernoulli --out {run}", monkeypatch) == 0
    )
    assert read_header(run)["config"]["shots"] == [1, 2]
    said = capsys.readouterr()
    assert f"ebse report {run}" in said.out
    assert "100 %" in said.err
    assert ran(f"report {run} --out {page}", monkeypatch) == 0
    assert "RBM mean" in page.read_text()


def test_settings_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('n_episodes = 3\nlaws = ["point"]\nshots = [2]\n')
    line = f"experiment one-shot --config {settings} {SMALL.removeprefix('--n-episodes 2 ')} --out {tmp_path / 'run'}"
    assert ran(line, monkeypatch) == 0
    config = read_header(tmp_path / "run")["config"]
    assert (config["n_episodes"], config["laws"], config["shots"]) == (3, ["point"], [2])


def test_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = (
        "experiment manifolds --manifolds line --laws point --seeds 0 --n-epochs 1 --n-points 50 --workers 1"
    )
    assert ran(f"{line} --n-draws 3 --out {tmp_path}", monkeypatch) == 0
    assert [row["law"] for row in read_results(tmp_path)] == ["point"]
    before = read_results(tmp_path)
    assert ran(f"{line} --n-draws 3 --out {tmp_path}", monkeypatch) == 0
    assert read_results(tmp_path) == before
    assert (tmp_path / "panels-point.npz").exists()


BAD = {
    "experiment one-shot --data nowhere": "data must be one of 'digits'",
    "experiment one-shot --n-episodes many": "n-episodes",
    "experiment one-shot --n-episodes 0": "n_episodes must be >= 1",
    "experiment one-shot --laws normal": "laws must be one of",
    "experiment one-shot --color red": "color",
    "experiment two-shot": "two-shot",
    "report nowhere": "folder must be a run, got nowhere",
    "report": "folders must have at least one run",
    "experiment one-shot --config nowhere.toml": "nowhere.toml",
    "experiment manifolds --manifolds knot": "manifolds must be one of",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_ends_with_one_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ran(line, monkeypatch) == 2
    said = capsys.readouterr()
    assert said.err.startswith("ebse: ")
    assert said.err.count("\n") == 1
    assert BAD[line] in said.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from ebse.cli.app import main; main()", "experiment", "one-shot"]
    settings = "--n-episodes 3 --n-queries 5 --laws point --no-baselines --n-epochs 3000"
    command += [*settings.split(), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert process.stderr is not None
    assert "training RBM" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in said
    assert read_header(tmp_path / "run")["experiment"] == "one-shot"


def test_tensorboard_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "x.csv").write_text("a,b\n1,0\n0,1\n")
    assert (
        ran(f"fit {tmp_path / 'x.csv'} --tensorboard {tmp_path / 'tb'} --out {tmp_path / 'run'}", monkeypatch)
        == 2
    )
    assert "--tensorboard needs the package tensorboard" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
