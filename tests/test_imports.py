"""Heavy libraries are imported on first use: one process imports and uses the packages one after the other."""

import json
import subprocess
import sys

HEAVY = ("torch", "numba", "matplotlib", "pynndescent")
SCRIPT = f"""
import json, sys
loaded = {{}}
def step(name, code):
    exec(code, globals())
    loaded[name] = [library for library in {HEAVY} if library in sys.modules]
step("few labels", "from ebse import ContrastiveFeatures, SpreadingClassifier")
step("evaluation", "import ebse.evaluation")
step("regression", "ebse.evaluation.fit_logistic")
step("ensembles", "from ebse.ensemble import RBSE, RBSEClassifier")
step("plots", '''
import numpy as np
RBSE.from_rbm((np.zeros((4, 2)), np.zeros(4), np.zeros(2))).plot_components()
''')
print(json.dumps(loaded))
"""


def test_heavy_libraries_are_imported_on_first_use() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert loaded["few labels"] == loaded["evaluation"] == []
    # What uses a library imports it, so that the names above are those of modules.
    assert "torch" in loaded["regression"]
    assert {"torch", "numba"} <= set(loaded["ensembles"])
    assert "matplotlib" not in loaded["ensembles"]
    assert "matplotlib" in loaded["plots"]
