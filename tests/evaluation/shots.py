"""Data and methods for the tests of few-shot evaluation."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RNG = np.random.default_rng(5)
Y = np.repeat(["cat", "dog", "owl"], 20)
X = RNG.normal(size=(60, 6)) + 1.5 * RNG.normal(size=(3, 6)).repeat(20, 0)
SMALL: dict[str, Any] = {"n_queries": 4, "n_episodes": 6, "random_state": 0}


@dataclass
class Noisy:
    """An embedding with noise that is a function of the row; it records its calls."""

    n_draws: int = 3
    calls: list[Any] = field(default_factory=list)

    def representations(self, X: Any) -> Any:
        self.calls.append(X)
        return X[:, None] + np.sin(37 * X[:, None] + np.arange(self.n_draws)[:, None])
