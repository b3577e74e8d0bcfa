"""Figure 2 of the paper: what each ensemble makes of points near a curve."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebse.report.claims import NAMES

Array = npt.NDArray[np.floating]
Points = Mapping[str, Array]
"""Arrays by name: training, test, outliers, few (n, 2), and the images of the last three (n, n_draws, 2)."""

DATA, INPUT, IMAGE = "#bfc5ce", "#d1495b", "#2a6f97"
TITLES = (
    "(a) points of the manifold, one image each",
    "(b) three points, many images each",
    "(c) isolated points, pulled to their images",
    "(d) the manifold, captured from a few points",
)
N_SHOWN_OUTLIERS = 25


def figure2(panels: Mapping[str, Points], *, title: str) -> Figure:
    """One row of four panels for each law."""
    figure = Figure(figsize=(13.5, 3.4 * len(panels) + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), len(TITLES), squeeze=False, sharex=True, sharey=True)
    figure.suptitle(title)
    for row, (law, points) in zip(axes, panels.items(), strict=True):
        for panel, axis in zip((_on_manifold, _spread, _isolated, _captured), row, strict=True):
            _dots(axis, points["training"], s=3, color=DATA, linewidths=0, zorder=1)
            panel(axis, points)
            axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        row[0].set_ylabel(NAMES[law], fontsize=12)
    for axis, text in zip(axes[0], TITLES, strict=True):
        axis.set_title(text, fontsize=10)
    legend = {
        "training data": DATA,
        "test points, with a line to their (mean) image in a and c": INPUT,
        "images: up by a drawn model, back by the average one": IMAGE,
    }
    handles = [axes[0, 0].scatter([], [], s=25, color=color, label=name) for name, color in legend.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _on_manifold(axis: Axes, points: Points) -> None:
    inputs, images = points["test"][::5], points["test_images"][::5, 0]
    _arrows(axis, inputs, images)
    _dots(axis, inputs, s=26, facecolors="none", edgecolors=INPUT, zorder=3)
    _dots(axis, images, s=10, color=IMAGE, linewidths=0, zorder=4)


def _spread(axis: Axes, points: Points) -> None:
    chosen = np.linspace(0, len(points["test"]) - 1, 5).astype(int)[1:4]
    _clouds(axis, points["test"][chosen], points["test_images"][chosen])


def _isolated(axis: Axes, points: Points) -> None:
    inputs = points["outliers"][:N_SHOWN_OUTLIERS]
    images = points["outlier_images"][:N_SHOWN_OUTLIERS]
    _arrows(axis, inputs, images.mean(1))
    _clouds(axis, inputs, images[:, :20])


def _captured(axis: Axes, points: Points) -> None:
    _clouds(axis, points["few"], points["few_images"])


def _clouds(axis: Axes, inputs: Array, images: Array) -> None:
    _dots(axis, images.reshape(-1, 2), s=6, color=IMAGE, alpha=0.5, linewidths=0, zorder=2)
    _dots(axis, inputs, s=26, facecolors="none", edgecolors=INPUT, linewidths=1.2, zorder=4)


def _arrows(axis: Axes, inputs: Array, images: Array) -> None:
    for start, stop in zip(inputs, images, strict=True):
        axis.plot(*np.stack([start, stop]).T, color=INPUT, alpha=0.35, linewidth=0.8, zorder=2)


def _dots(axis: Axes, points: Array, **style: Any) -> None:
    axis.scatter(points[:, 0], points[:, 1], **style)
