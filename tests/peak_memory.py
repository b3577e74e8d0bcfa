"""Peak memory of calls, measured in a process of their own: freed memory of other tests would be used again."""

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import re, torch
from ebse.laws import Bernoulli, Point
from ebse.models import RestrictedBoltzmannEnsemble
def ensemble(D, K, dtype=torch.float32):
    W = Bernoulli(torch.full((D, K), 0.1, dtype=dtype), torch.tensor(0.5, dtype=dtype))
    b, c = (Point(torch.zeros(n, dtype=dtype)) for n in (D, K))
    return RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
g = torch.Generator().manual_seed(0)
def growth(call):
    # Not ru_maxrss, which begins with the memory of the process that started this one.
    peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
    before = peak()
    call()
    print((peak() - before) // 1024)
"""


def peak_growths(script: str) -> list[int]:
    """MiB that each call of ``growth`` in the script needs beyond the largest memory before it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc, which Linux has")
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]
