"""Real processes, killed at random moments and resumed; and one that trains on more than its memory holds."""

import multiprocessing
import random
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import survivor

MEBIBYTE = 2**20


def process(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A process of its own, made by a server that has done the slow imports already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ebse.training"])
    child = context.Process(target=target, args=arguments)
    child.start()
    return child


def finished(target: Callable[..., None], *arguments: Any) -> int | None:
    child = process(target, *arguments)
    child.join()
    return child.exitcode


@pytest.mark.parametrize(
    "least", [pytest.param(24, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.soak)]
)
def test_a_killed_run_ends_with_the_same_file(tmp_path: Path, least: int) -> None:
    """SIGKILL at random moments, at least so many of them, over as many runs as that takes."""
    assert finished(survivor.live, tmp_path / "whole") == 0
    expected = (tmp_path / "whole" / "model.safetensors").read_bytes()
    moments = random.Random(1)
    n_kills, n_runs = 0, 0
    while n_kills < least:
        folder = tmp_path / f"killed {n_runs}"
        n_runs += 1
        while True:
            child = process(survivor.live, folder)
            child.join(moments.uniform(0.02, 1.5))
            if child.exitcode is None:
                child.kill()
                child.join()
            if child.exitcode == 0:
                break
            assert child.exitcode == -signal.SIGKILL
            n_kills += 1
        assert (folder / "model.safetensors").read_bytes() == expected
        # A finished run does not change.
        assert finished(survivor.live, folder) == 0
        assert (folder / "model.safetensors").read_bytes() == expected
    assert n_runs >= 1


@pytest.mark.slow
def test_an_array_larger_than_memory_can_be_trained_on(tmp_path: Path) -> None:
    """A file of 1.9 GiB (with holes, so that it takes no disk) and 300 MiB to spare."""
    n_rows, n_units = 10_000, 50_000
    path = tmp_path / "v.dat"
    v = np.memmap(path, dtype=np.float32, mode="w+", shape=(n_rows, n_units))
    v[::7, ::501] = 1
    v.flush()
    del v
    assert n_rows * n_units * 4 > 6 * 300 * MEBIBYTE
    assert finished(survivor.frugal, path, n_rows, n_units, 300 * MEBIBYTE) == 0
    # The twin: reading all rows at once runs out of memory under the same limit.
    assert finished(survivor.greedy, path, n_rows, n_units, 300 * MEBIBYTE) != 0
