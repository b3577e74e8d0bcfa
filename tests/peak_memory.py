"""Peak memory of a call, measured in the process of the tests."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROCESS = Path("/proc/self")


def peak_growth(call: Callable[[], object]) -> int:
    """MiB of resident memory that a call needs at its peak, beyond what the process holds before it."""
    if sys.platform != "linux":
        pytest.skip("the peak of resident memory can be reset on Linux only")
    try:
        (PROCESS / "clear_refs").write_text("5")
    except OSError as error:
        pytest.skip(f"the peak of resident memory cannot be reset here: {error}")
    before = _peak()
    call()
    return _peak() - before


def _peak() -> int:
    lines = (PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024
