"""The benchmark of relabeling runs, and its probabilities agree."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "relabel.py"


def test_the_benchmark_runs() -> None:
    found = subprocess.run([sys.executable, SCRIPT, "--tiny"], capture_output=True, text=True, check=True)
    assert "300 rows, 6 x 20 clusters, 1 thread" in found.stdout
    difference = re.search(r"largest difference of probabilities (\S+)", found.stdout)
    assert difference is not None
    assert float(difference[1]) <= 1e-7
