"""The explicit sweep never holds an N × D × K array."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ebse import rng
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, clamped_sweeps, explicit_sweeps
from ebse.sampling._row_sweeps import pass_over_rows


class LargestTensor(TorchDispatchMode):
    """Remembers the largest tensor that any operation returned."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(x, torch.Tensor):
                self.largest = max(self.largest, x.numel())
        return out


def chains(
    law: str, N: int, D: int, K: int, dtype: torch.dtype = torch.float64
) -> tuple[RestrictedBoltzmannEnsemble, State]:
    ones = torch.ones(D, K, dtype=dtype)
    W: Law = Bernoulli(ones, 0.5) if law == "bernoulli" else Gaussian(ones, 0.5)
    b, c = (Point(torch.zeros(n, dtype=dtype)) for n in (D, K))
    small = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
    return small, State(torch.ones(N, D, dtype=dtype), torch.ones(N, K, dtype=dtype))


@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("chunk_size", [1, 200, 1000, 5000])
def test_no_operation_makes_more_than_a_chunk(law: str, chunk_size: int, generator: torch.Generator) -> None:
    N, D, K = 30, 40, 20
    small, state = chains(law, N, D, K)
    with LargestTensor() as recorded:
        explicit_sweeps(small, state, 1, generator=generator, chunk_size=chunk_size)
    # The units of all chains, or a chunk of connections, or one row of one chain.
    assert recorded.largest <= max(N * D, N * K, D * K, chunk_size)


@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
def test_the_kernels_hold_units_and_tables_only(law: str, generator: torch.Generator) -> None:
    N, D, K = 30, 40, 20
    small, state = chains(law, N, D, K, torch.float32)
    with LargestTensor() as recorded:
        explicit_sweeps(small, state, 1, generator=generator)
        clamped_sweeps(small, state, 1, generator=generator)
    assert recorded.largest <= max(N * D, N * K, D * K)


def test_a_naive_sweep_would_be_noticed(generator: torch.Generator) -> None:
    small, state = chains("bernoulli", 30, 40, 20)
    with LargestTensor() as recorded:
        small.sample_theta_given_vh(*state, generator=generator)
    assert recorded.largest >= 30 * 40 * 20


@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
def test_chunks_do_not_change_the_noise(law: str) -> None:
    """Units agree for any chunk size; sums over rows may differ in their last bits only."""
    small, state = chains(law, 30, 40, 20)
    whole = pass_over_rows(small, state, rng.subkey(1, 0))
    for chunk_size in (1, 77, 1000):
        part = pass_over_rows(small, state, rng.subkey(1, 0), chunk_size=chunk_size)
        torch.testing.assert_close(part.v, whole.v)
        torch.testing.assert_close(part.h, whole.h)


SCRIPT = """
import resource, sys, torch
torch.set_default_dtype(getattr(torch, sys.argv[1]))
from ebse.laws import Bernoulli, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, explicit_sweeps
N, D, K = int(sys.argv[2]), 500, 400
W, b, c = Bernoulli(torch.full((D, K), 0.1), 0.5), Point(torch.zeros(D)), Point(torch.zeros(K))
small = RestrictedBoltzmannEnsemble(W=W, b=b, c=c)
g = torch.Generator().manual_seed(0)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
explicit_sweeps(small, State(torch.ones(2, D), torch.ones(2, K)), 1, generator=g)
before = peak()
explicit_sweeps(small, State(torch.ones(N, D), torch.ones(N, K)), 1, generator=g)
print(peak() - before)
"""


@pytest.mark.parametrize(("dtype", "N"), [("float32", 400), ("float64", 100)])
def test_peak_memory_is_bounded_by_the_chunk(dtype: str, N: int) -> None:
    """N × 500 × 400 connections are 305 MiB in float32, fused, and 153 MiB in float64, plain."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", SCRIPT, dtype, str(N)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kib = int(done.stdout)
    assert kib < 60 * 1024
