"""Figure 2 of the paper: how each ensemble maps points near a curve."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebse.report.claims import NAMES
from ebse.report.drawings import BLUE, NARROW, RED

Array = npt.NDArray[np.floating]
Points = Mapping[str, Array]
"""Arrays by name: training, test, outliers, few (n, 2), and the images of the last three (n, n_draws, 2)."""

DATA = "#a4acb8"
TITLES = (
    "(a) points of the curve, one image each",
    "(b) three points, many images each",
    "(c) isolated points and their images",
    "(d) five points and their images",
)
SHORT_TITLES = ("(a) one image", "(b) many images", "(c) isolated", "(d) five points")
N_OUTLIERS = 25
"""Isolated points that are drawn."""


def figure2(panels: Mapping[str, Points], *, narrow: bool = False) -> Figure:
    """A row of four panels for each law; the narrow figure has a column for each law."""
    shape = (len(TITLES), len(panels)) if narrow else (len(panels), len(TITLES))
    size = (NARROW, NARROW / len(panels) * 4 + 1.2) if narrow else (13, 3.2 * len(panels) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
    if narrow:
        axes = axes.T
    for row, (law, points) in zip(axes, panels.items(), strict=True):
        for draw, axis in zip((_on_manifold, _spread, _isolated, _captured), row, strict=True):
            _dots(axis, points["training"], s=3, color=DATA, linewidths=0, zorder=1)
            draw(axis, points)
            axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        if narrow:
            row[0].set_title(NAMES[law].replace(" ", "\n"), fontsize=8)
        else:
            row[0].set_ylabel(NAMES[law], fontsize=12)
    for axis, title, short in zip(axes[0], TITLES, SHORT_TITLES, strict=True):
        if narrow:
            axis.set_ylabel(short, fontsize=8)
        else:
            axis.set_title(title, fontsize=10)
    legend = {
        "training data": DATA,
        "test points; lines lead to the (mean) image": RED,
        "images: up by a sampled model, back by the mean model": BLUE,
    }
    handles = [axes[0, 0].scatter([], [], s=25, color=color, label=name) for name, color in legend.items()]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=1 if narrow else 3,
        frameon=False,
        fontsize=8 if narrow else 10,
    )
    return figure


def _on_manifold(axis: Axes, points: Points) -> None:
    inputs, images = points["test"][::5], points["test_images"][::5, 0]
    _arrows(axis, inputs, images)
    _dots(axis, inputs, s=26, facecolors="none", edgecolors=RED, zorder=3)
    _dots(axis, images, s=10, color=BLUE, linewidths=0, zorder=4)


def _spread(axis: Axes, points: Points) -> None:
    chosen = np.linspace(0, len(points["test"]) - 1, 5).astype(int)[1:4]
    _clouds(axis, points["test"][chosen], points["test_images"][chosen])


def _isolated(axis: Axes, points: Points) -> None:
    inputs, images = points["outliers"][:N_OUTLIERS], points["outlier_images"][:N_OUTLIERS]
    _arrows(axis, inputs, images.mean(1))
    _clouds(axis, inputs, images[:, :20])


def _captured(axis: Axes, points: Points) -> None:
    _clouds(axis, points["few"], points["few_images"])


def _clouds(axis: Axes, inputs: Array, images: Array) -> None:
    _dots(axis, images.reshape(-1, 2), s=6, color=BLUE, alpha=0.5, linewidths=0, zorder=2)
    _dots(axis, inputs, s=26, facecolors="none", edgecolors=RED, linewidths=1.2, zorder=4)


def _arrows(axis: Axes, inputs: Array, images: Array) -> None:
    for start, stop in zip(inputs, images, strict=True):
        axis.plot(*np.stack([start, stop]).T, color=RED, alpha=0.5, linewidth=0.8, zorder=2)


def _dots(axis: Axes, points: Array, **style: Any) -> None:
    axis.scatter(points[:, 0], points[:, 1], **style)
