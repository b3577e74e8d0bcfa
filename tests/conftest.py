"""Tests run in float64, on one thread, with warnings as errors."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
import torch

from ebse.kernels import words

# A shell that starts the tests in the background ignores Ctrl-C for them; some tests send it to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Two threads on arrays this small cost more than they save, the more so on a busy machine.
torch.set_num_threads(1)
# Before any test module is imported, so that their constants are float64, too.
torch.set_default_dtype(torch.float64)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20150101)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Where kernels use two threads, however little there is to do; they must have been used."""

    @contextmanager
    def shared() -> Iterator[None]:
        entered = 0

        class Lock:
            def __enter__(self) -> None:
                nonlocal entered
                entered += 1

            def __exit__(self, *error: object) -> None:
                """Nobody else is there."""

        with monkeypatch.context() as patch:
            patch.setattr(words, "SHARED", 0)
            patch.setattr(words, "_ONE_AT_A_TIME", Lock())
            torch.set_num_threads(2)
            try:
                yield
            finally:
                torch.set_num_threads(1)
        assert entered

    return shared
