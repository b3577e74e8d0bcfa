"""Numbers of threads: one where more would wait for each other."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

SMALL = 2**16
"""Connections below which one thread is faster, and far faster where other work holds a core."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch, BLAS and OpenMP on one thread of this process; as before afterwards."""
    before = torch.get_num_threads()
    with threadpool_limits(1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def threads_for(n_connections: int) -> Iterator[None]:
    """One thread where a model is so small that two would mostly wait for each other.

    Torch counts its threads for every Python thread by itself, and so does this.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if n_connections < SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
