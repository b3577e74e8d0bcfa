"""Scripts outside the package, started within the process of the tests."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent


def start(path: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a script as ``python path arguments`` would, with modules of its folder and in single precision."""
    neighbors = {other.stem for other in path.parent.glob("*.py")}
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [str(path), *arguments])
        patch.syspath_prepend(str(path.parent))
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            patch.setenv(name, "1")
        # Folders of the tests have the names of some scripts.
        hidden = {name: sys.modules.pop(name) for name in neighbors & set(sys.modules)}
        torch.set_default_dtype(torch.float32)
        try:
            runpy.run_path(str(path), run_name="__main__")
        finally:
            torch.set_default_dtype(torch.float64)
            torch.set_num_threads(1)
            for name in neighbors & set(sys.modules):
                del sys.modules[name]
            sys.modules.update(hidden)
