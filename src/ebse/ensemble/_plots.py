"""Plots of components; matplotlib is imported when something is plotted."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ebse._validation import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS = 20
"""Images side by side."""
MOST_NAMES = 120
"""Features whose names are legible below a heat map."""

Components = npt.NDArray[np.floating[Any]]


def plot(components: Components, image_shape: tuple[int, int] | None, names: Any) -> "Figure":
    """Components (n, D) as images, or as a heat map where features have names or do not form a square."""
    D = components.shape[1]
    side = math.isqrt(D)
    if image_shape is not None:
        return tiles(components, _sides(image_shape, D))
    if side * side == D and names is None:
        return tiles(components, (side, side))
    return heat_map(components, names)


def heat_map(components: Components, names: Any) -> "Figure":
    """Components as rows and features as columns, blue below 0 and red above."""
    from matplotlib.figure import Figure

    n, D = components.shape
    size = (min(0.25 * D + 2.5, 30), min(0.18 * n + 1.8, 30))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    limit = _limit(components)
    image = axes.imshow(
        components, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
    )
    axes.set(xlabel="feature", ylabel="component")
    if names is not None and D <= MOST_NAMES:
        axes.set_xticks(range(D), [str(name) for name in names], rotation=90)
    figure.colorbar(image, ax=axes, label="effective weight")
    return figure


def tiles(components: Components, shape: tuple[int, int]) -> "Figure":
    """Components (n, D) as images side by side, blue below 0 and red above, all on one scale."""
    from matplotlib.figure import Figure

    n = len(components)
    columns = min(MOST_COLUMNS, math.ceil(math.sqrt(n)))
    rows = math.ceil(n / columns)
    figure = Figure(figsize=(0.5 * columns + 0.8, max(0.5 * rows, 1) + 0.2), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    limit = _limit(components)
    for number, place in enumerate(axes.flat):
        place.set_axis_off()
        if number < n:
            image = place.imshow(components[number].reshape(shape), cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axes, label="effective weight", shrink=0.8)
    return figure


def _sides(image_shape: Any, D: int) -> tuple[int, int]:
    """Height and width of an image of D pixels."""
    sides = tuple(image_shape) if isinstance(image_shape, (tuple, list)) else (image_shape, image_shape)
    if len(sides) != 2 or any(count("image_shape", side) < 1 for side in sides) or sides[0] * sides[1] != D:
        raise ValueError(
            f"image_shape must have {D} pixels in all, one for each feature, got {image_shape!r}; "
            "pass (height, width)"
        )
    return sides[0], sides[1]


def _limit(components: Components) -> float:
    # A quantile, because a few extreme weights would make all others pale.
    return max(float(np.quantile(np.abs(components), 0.995)), 1e-12)
