"""Pictures of components."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

MOST = 20
"""Tiles in a row."""


def tiles(components: npt.NDArray[np.floating[Any]], image_shape: tuple[int, int] | None) -> Figure:
    """Components (n, D) as images side by side, blue below 0 and red above, all on one scale."""
    n, D = components.shape
    shape = image_shape or _square(D)
    if shape[0] * shape[1] != D:
        raise ValueError(
            f"image_shape must have {D} pixels in all, one for each feature, got {tuple(shape)}; "
            "pass (height, width), or (1, n_features) where features are no pixels"
        )
    columns = min(MOST, math.ceil(math.sqrt(n)))
    rows = math.ceil(n / columns)
    figure = Figure(figsize=(0.5 * columns + 0.8, max(0.5 * rows, 1) + 0.2), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    # A few extreme weights would make all others pale.
    limit = max(float(np.quantile(np.abs(components), 0.995)), 1e-12)
    for number, place in enumerate(axes.flat):
        place.set_axis_off()
        if number < n:
            image = place.imshow(components[number].reshape(shape), cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axes, label="effective weight", shrink=0.8)
    return figure


def _square(D: int) -> tuple[int, int]:
    side = math.isqrt(D)
    return (side, side) if side * side == D else (1, D)
