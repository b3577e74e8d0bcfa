"""The explicit sweep never holds an N × D × K array."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ebse import rng
from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, clamped_sweeps, explicit_sweeps
from ebse.sampling._row_sweeps import pass_over_rows
from peak_memory import peak_growths


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
@pytest.mark.parametrize("chunk_size", [1, 30, 130, 500])
def test_no_operation_makes_more_than_a_chunk(law: str, chunk_size: int, generator: torch.Generator) -> None:
    N, D, K = 10, 12, 8
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
    small, state = chains("bernoulli", 10, 12, 8)
    with LargestTensor() as recorded:
        small.sample_theta_given_vh(*state, generator=generator)
    assert recorded.largest >= 10 * 12 * 8


@pytest.mark.parametrize("law", ["bernoulli", "gaussian"])
def test_chunks_do_not_change_the_noise(law: str) -> None:
    """Units agree for any chunk size; sums over rows may differ in their last bits only."""
    small, state = chains(law, 10, 12, 8)
    whole = pass_over_rows(small, state, rng.subkey(1, 0))
    for chunk_size in (1, 77, 500):
        part = pass_over_rows(small, state, rng.subkey(1, 0), chunk_size=chunk_size)
        torch.testing.assert_close(part.v, whole.v)
        torch.testing.assert_close(part.h, whole.h)


@pytest.mark.slow
def test_peak_memory_is_bounded_by_the_chunk() -> None:
    """N × 500 × 400 connections are 305 MiB in float32, fused, and 153 MiB in float64, plain.

    The twin, which samples all of them, needs more than the bound.
    """
    single, double, naive = peak_growths(
        """
from ebse.sampling import State, explicit_sweeps
def sweep(N, dtype):
    state = State(torch.ones(N, 500, dtype=dtype), torch.ones(N, 400, dtype=dtype))
    explicit_sweeps(small, state, 1, generator=g)
for N, dtype in ((400, torch.float32), (100, torch.float64)):
    small = ensemble(500, 400, dtype)
    sweep(2, dtype)
    growth(lambda: sweep(N, dtype))
many = [torch.ones(100, n, dtype=torch.float64) for n in (500, 400)]
growth(lambda: small.sample_theta_given_vh(*many, generator=g))
"""
    )
    assert single < 60
    assert double < 60
    assert naive > 60
