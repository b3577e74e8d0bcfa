"""Pictures of a one-shot run: dots with intervals, curves, filters, samples and walks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebse.report.summaries import REFERENCE, BySeed, Row, interval, paired

BLUE, RED, GRAY = "#3b82b5", "#d1495b", "#8a93a0"
NAMES = {"point": "RBM", "algorithm_1": "Algorithm 1", "algorithm_1_rbm": "Algorithm 1 on an RBM"}
"""What models are called in a legend."""
MOST_DOTS = 100
"""Episodes of which each has a dot."""

Images = npt.NDArray[Any]


def dots(found: Mapping[str, BySeed]) -> Figure:
    """Accuracy of each method, and its difference to the RBM's mean in the same episodes."""
    names = sorted(found, key=lambda name: interval(found[name]).mean)
    figure = Figure(figsize=(9.5, 0.34 * len(names) + 1.3), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for at, name in enumerate(names):
        x = found[name]
        _dots(left, at, x)
        gains = paired(x, found[REFERENCE]) if name != REFERENCE and REFERENCE in found else {}
        if gains:
            _dots(right, at, gains)
    left.set(yticks=range(len(names)), yticklabels=names, xlabel="accuracy, %")
    right.axvline(0, color=GRAY, linewidth=1)
    right.set(xlabel=f"points over {REFERENCE}, same episodes")
    return figure


def _dots(axes: Axes, at: int, x: BySeed) -> None:
    found = interval(x)
    shown = 100 * np.mean(list(x.values()), axis=0)[:MOST_DOTS]
    # Spread by a fixed pattern, so that a page made again is the same page.
    spread = at + 0.28 * np.sin(np.arange(len(shown)) * 2.4)
    axes.scatter(shown, spread, s=5, color=BLUE, alpha=0.35, linewidths=0)
    axes.plot([found.low, found.high], [at, at], color=RED, linewidth=3, solid_capstyle="butt")
    axes.scatter([found.mean], [at], s=30, color=RED, zorder=3)


def shot_curves(by_shots: Mapping[int, Mapping[str, BySeed]], shown: Sequence[str]) -> Figure:
    """Accuracy against labels per class."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    shots = sorted(by_shots)
    # Several walks are told apart by what follows a comma.
    names = [name for name in by_shots[shots[0]] if {name, name.partition(", ")[0]} & set(shown)]
    for name in names:
        points = [interval(by_shots[k][name]) for k in shots if name in by_shots[k]]
        if len(points) == len(shots):
            axes.plot(shots, [p.mean for p in points], marker="o", label=name)
            axes.fill_between(shots, [p.low for p in points], [p.high for p in points], alpha=0.2)
    axes.set(xscale="log", xlabel="labels per class", ylabel="accuracy, %")
    axes.set_xticks(shots, [str(k) for k in shots])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    return figure


def learning_curves(rows: Sequence[Row]) -> Figure:
    """Pseudo-log-likelihood of some training rows against epochs, one line a model and seed."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    colors: dict[str, str] = {}
    for row in rows:
        if row.get("kind") != "training":
            continue
        known = row["model"] in colors
        color = colors.setdefault(row["model"], f"C{len(colors)}")
        epochs = [epoch["epoch"] for epoch in row["history"]]
        values = [epoch.get("pseudo_log_likelihood", math.nan) for epoch in row["history"]]
        name = None if known else NAMES.get(row["model"], row["model"])
        axes.plot(epochs, values, color=color, marker="o" if len(epochs) < 20 else "", label=name)
    axes.set(xlabel="epoch", ylabel="pseudo-log-likelihood")
    axes.ticklabel_format(useOffset=False)
    axes.legend(fontsize=8)
    return figure


def filters(images: Images, shape: tuple[int, int], *, kind: str) -> Figure:
    """Tiles of weights, blue below 0 and red above, or of probabilities, dark near 0 and light near 1."""
    columns = min(10, len(images))
    rows = math.ceil(len(images) / columns)
    figure = Figure(figsize=(5.2, 5.2 * rows / columns), layout="constrained")
    limit = max(float(np.quantile(np.abs(images), 0.995)), 1e-12)
    scale: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1}
    if kind == "weights":
        scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    for place, image in zip(figure.subplots(rows, columns, squeeze=False).flat, images, strict=False):
        place.imshow(image.reshape(shape), **scale)
    _bare(figure)
    return figure


def heat_map(values: Images, names: Sequence[str], *, label: str, signed: bool) -> Figure:
    """Rows of numbers under the names of their columns: blue below 0 and red above, or light 0 and dark 1."""
    n_rows, n_columns = values.shape
    figure = Figure(
        figsize=(min(2.2 + 0.22 * n_columns, 13), min(1.6 + 0.16 * n_rows, 7)), layout="constrained"
    )
    axes = figure.subplots()
    limit = max(float(np.quantile(np.abs(values), 0.995)), 1e-12)
    scale: dict[str, Any] = {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    if signed:
        scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    shown = axes.imshow(values, aspect="auto", interpolation="none", **scale)
    axes.set_xticks(range(n_columns), names, rotation=90, fontsize=7)
    axes.set(ylabel=label, yticks=[])
    figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure


def strip(images: Images, shape: tuple[int, int], titles: Sequence[str], *, columns: int = 10) -> Figure:
    """Gray images side by side, each with a word above."""
    columns = min(columns, len(images))
    rows = math.ceil(len(images) / columns)
    height = 1.0 if any(titles) else 0.8
    figure = Figure(figsize=(0.85 * columns, height * rows + 0.1), layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False).flat
    for place, image, title in zip(places, images, titles, strict=False):
        place.imshow(image.reshape(shape), cmap="gray_r", vmin=0, vmax=1)
        place.set_title(title, fontsize=7)
    _bare(figure)
    return figure


def _bare(figure: Figure) -> None:
    for axes in figure.axes:
        axes.set_axis_off()
