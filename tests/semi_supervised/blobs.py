"""Three groups of rows that a label of each tells apart."""

from typing import Any

import numpy as np


def blobs(n: int = 60, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) * 0.3 + 5 * np.stack([y, y % 2], 1), y
