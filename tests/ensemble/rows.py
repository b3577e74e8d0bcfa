"""Small binary rows of two classes, and estimators fitted to them."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ebse import RBSE
from ebse.training.step import Engine

D, K = 12, 5


def rows(n: int = 60, seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.intp]]:
    """Rows (n, 12) whose first or second half is mostly on, and which half it is."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    p = np.where((np.arange(D) < D // 2) == (y[:, np.newaxis] == 0), 0.85, 0.1)
    return (rng.random((n, D)) < p).astype(np.float32), y


@cache
def fitted(**parameters: Any) -> RBSE:
    """Fitted once for all tests, which must not change it."""
    return RBSE(
        K, random_state=0, **({"n_epochs": 120, "batch_size": 20, "learning_rate": 0.25} | parameters)
    ).fit(rows()[0])


def interrupt_at(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at update n of the runs that follow."""
    n_steps, step = 0, Engine.step

    def interrupted(self: Engine, *arguments: Any) -> None:
        nonlocal n_steps
        n_steps += 1
        if n_steps == n:
            raise KeyboardInterrupt
        step(self, *arguments)

    monkeypatch.setattr(Engine, "step", interrupted)
