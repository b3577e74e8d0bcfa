"""The benchmark of relabeling runs, and its probabilities agree."""

import re

import pytest

from scripts import ROOT, start


def test_the_benchmark_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    start(ROOT / "benchmarks" / "relabel.py", "--tiny", monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    assert "300 rows, 6 x 20 clusters, 1 thread" in shown
    difference = re.search(r"largest difference of probabilities (\S+)", shown)
    assert difference is not None
    # Scores are computed in single precision.
    assert float(difference[1]) <= 1e-6
