"""Every benchmark runs on tiny data, with or without the libraries that it compares."""

import json
import math
import shutil
import sys
from pathlib import Path

import pytest

from scripts import ROOT, start

BENCHMARKS = ROOT / "benchmarks"
PARTS = ("binary_rows", "figures", "naive", "ours", "peers", "rounds", "few_labels_peers")
"""Modules that scripts import."""
LIBRARIES = ("graphlearning", "learnergy", "rbms", "umap")


@pytest.fixture(autouse=True)
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where none of the optional libraries is installed."""
    for name in LIBRARIES:
        monkeypatch.setitem(sys.modules, name, None)


def test_every_script_is_started_here() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - set(PARTS)
    assert scripts == {
        "few_shot",
        "labeling",
        "likelihood",
        "memory",
        "partial_fit",
        "relabel",
        "few_labels",
        "speed",
        "tables",
    }


def test_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure is measured, but those of libraries that are missing, which are named."""
    start(BENCHMARKS / "speed.py", "--tiny", "--json", str(tmp_path / "x.json"), monkeypatch=monkeypatch)
    found = json.loads((tmp_path / "x.json").read_text())
    left_out = set(found["details"]["targets"]) - set(found["ratios"])
    assert left_out == {"rbm_vs_rbms_batch100", "rbm_vs_learnergy_batch100", "draws_peak_mib"}
    assert all(math.isfinite(x) and x > 0 for x in found["ratios"].values())
    printed = capsys.readouterr().out
    assert "left out: rbms_rbm at batch 100" in printed
    assert "left out: learnergy_rbm at batch 100" in printed


def test_few_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    start(BENCHMARKS / "few_labels.py", "--tiny", "--json", str(path), monkeypatch=monkeypatch)
    rows = json.loads(path.read_text())["rows"]
    assert len({row["method"] for row in rows}) == 37
    assert all(len(row["accuracies"]) == 2 for row in rows)
    printed = capsys.readouterr().out
    assert "No module named 'umap'" in printed or "import of umap halted" in printed
    assert printed.count("left out: ") == 4


def test_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    methods = ("FewLabelClassifier", "logistic regression", "1-NN", "Poisson learning")
    options = ("--tiny", "--json", str(path), "--methods", *methods)
    start(BENCHMARKS / "tables.py", *options, monkeypatch=monkeypatch)
    rows = json.loads(path.read_text())
    assert {row["method"] for row in rows} == set(methods[:3])
    assert all(0 <= row["accuracy"] <= 1 for row in rows)
    printed = capsys.readouterr().out
    assert "left out: Poisson learning" in printed
    assert "Mean rank among FewLabelClassifier, logistic regression, 1-NN;" in printed


def test_likelihood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--tiny", "--json", str(tmp_path / "x.json"), "--plot", str(tmp_path / "x.png"))
    start(BENCHMARKS / "likelihood.py", *options, monkeypatch=monkeypatch)
    rows = json.loads((tmp_path / "x.json").read_text())["rows"]
    assert [row["part"] for row in rows] == ["small"] * 3 + ["curves"] * 5 + ["large"] * 3
    assert (tmp_path / "x.png").stat().st_size > 0


def test_few_shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--tiny", "--sweeps", "auto", "2", "--json", str(tmp_path / "x.json"))
    start(BENCHMARKS / "few_shot.py", *options, monkeypatch=monkeypatch)
    rows = json.loads((tmp_path / "x.json").read_text())
    assert {row["method"] for row in rows} == {"mean", "auto sweeps", "2 sweeps"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium is installed")
def test_labeling(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    start(BENCHMARKS / "labeling.py", "--tiny", monkeypatch=monkeypatch)
    assert "key to updated predictions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "expected"),
    [("memory", "."), ("partial_fit", "16 features"), ("relabel", "largest difference of probabilities")],
)
def test_scripts_that_print(
    name: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "memory" and not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory.py needs Linux")
    start(BENCHMARKS / f"{name}.py", "--tiny", monkeypatch=monkeypatch)
    assert expected in capsys.readouterr().out
