"""Examples run from an empty folder and say what they say they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, folder: Path) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return str(done.stdout)


@pytest.mark.slow
def test_few_labels(tmp_path: Path) -> None:
    said = run("few_labels.py", tmp_path)
    assert "FewShotClassifier" in said
    assert {path.name for path in tmp_path.iterdir()} == {"components.png", "few_labels.png"}


@pytest.mark.slow
def test_outliers(tmp_path: Path) -> None:
    """Corrupted digits are ranked above clean ones far better than by chance."""
    rows = run("outliers.py", tmp_path).splitlines()[1:]
    assert len(rows) == 3
    for row in rows:
        assert float(row.split()[-3]) > 0.75
