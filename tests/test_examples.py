"""Examples run from an empty folder, and print what their texts promise."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn import datasets
from sklearn.utils import Bunch

from ebse import RBSE
from scripts import ROOT, start

EXAMPLES = ROOT / "examples"
TOO_LONG = {"one_label", "own_energy"}
"""Examples that take long on small data, too."""


@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - TOO_LONG))
def test_examples_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the first line to the last, on some of the digits and with two epochs."""
    whole = datasets.load_digits()
    few = Bunch(data=whole.data[:120], target=whole.target[:120], images=whole.images[:120])

    def load_digits(return_X_y: bool = False) -> Any:
        return (few.data, few.target) if return_X_y else few

    def short(self: RBSE, X: Any, y: Any = None, fit: Any = RBSE.fit) -> Any:
        n_epochs = 2 if self.n_epochs == "auto" else min(self.n_epochs, 2)
        return fit(self.set_params(n_epochs=n_epochs), X, y)

    monkeypatch.setattr(datasets, "load_digits", load_digits)
    monkeypatch.setattr(RBSE, "fit", short)
    monkeypatch.chdir(tmp_path)
    start(EXAMPLES / f"{name}.py", monkeypatch=monkeypatch)
    assert len(capsys.readouterr().out.splitlines()) > 1


def run(name: str, folder: Path) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return str(done.stdout)


@pytest.mark.slow
def test_one_label(tmp_path: Path) -> None:
    assert "RBSEClassifier" in run("one_label.py", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"components.png", "one_label.png"}


@pytest.mark.slow
def test_outliers(tmp_path: Path) -> None:
    """Corrupted digits are ranked above clean ones far better than by chance."""
    rows = run("outliers.py", tmp_path).splitlines()[1:]
    assert len(rows) == 3
    for row in rows:
        assert float(row.split()[-3]) > 0.75


def numbers(line: str) -> list[float]:
    """Every number in a line."""
    return [float(word) for word in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", line)]


@pytest.mark.slow
def test_missing_values(tmp_path: Path) -> None:
    """An ensemble fills far better than column means, better still when fitted again."""
    rows = run("missing_values.py", tmp_path).splitlines()[2:]
    loss = {row[:30].strip(): numbers(row)[-1] for row in rows}
    assert len(loss) == 6
    once, again = (numbers(row) for row in rows[-2:])
    assert once[0] > 0.75
    assert again[0] > 0.75
    assert loss["RBSE, fitted once"] < loss["SimpleImputer, mean"] - 0.2
    assert loss["RBSE, fitted again"] < loss["RBSE, fitted once"] - 0.01


@pytest.mark.slow
def test_from_scikit_learn(tmp_path: Path) -> None:
    """Three laws keep the distribution; DropConnect does not; draws average to what they are draws of."""
    lines = run("from_scikit_learn.py", tmp_path).splitlines()
    table = [numbers(line) for line in lines[2:6]]
    for transform, energy, likelihood, _ in table[:3]:
        assert transform < 1e-5
        assert energy < 1e-3
        assert likelihood == pytest.approx(table[0][2], abs=1e-3)
    assert [row[3] > 0.02 for row in table] == [False, True, True, True]
    assert table[3][0] > 0.1
    assert abs(table[3][2] - table[0][2]) > 1
    # 5,000 draws between 0 and 1 are within 0.05 by seven standard errors; two such means within 0.07.
    assert numbers(lines[6])[-1] < 0.05
    assert "weights unchanged: True" in lines[7]
    assert numbers(lines[7])[-1] < 0.07
    data, new = numbers(lines[8])
    assert new == pytest.approx(data, abs=0.03)


@pytest.mark.slow
def test_own_law(tmp_path: Path) -> None:
    """K, its slopes, draws and numbers of NumPy's agree; the law trains as far as an RBM does."""
    lines = run("own_law.py", tmp_path).splitlines()
    for line in lines[1:5]:
        _, K, K_by_hand, mean, drawn, by_hand, variance, variance_drawn = numbers(line)
        assert pytest.approx(K, abs=0.02) == K_by_hand
        assert [drawn, by_hand] == pytest.approx([mean] * 2, abs=0.02)
        assert variance_drawn == pytest.approx(variance, rel=0.05)
    before, after, rbm = (numbers(line)[-1] for line in lines[5:8])
    assert after > before + 2
    assert after == pytest.approx(rbm, abs=0.7)
    assert numbers(lines[9])[0] > 0.05
    assert numbers(lines[9])[-1] < 0.05


@pytest.mark.slow
def test_own_energy(tmp_path: Path) -> None:
    """The positions are found, and the likelihood is above that of independent pixels."""
    lines = run("own_energy.py", tmp_path).splitlines()
    before, after, independent = (numbers(line)[-1] for line in lines[:3])
    assert after > before + 1
    assert after > independent + 0.5
    left, _, right, _ = numbers(lines[3])[-4:]
    assert left == pytest.approx(2, abs=0.8)
    assert right == pytest.approx(7, abs=1)
    data, model = numbers(lines[4]), numbers(lines[5])
    # Pixels that all had the mean of the data would be 0.14 away.
    assert sum(abs(x - y) for x, y in zip(data, model, strict=True)) / len(data) < 0.1
