"""Figures of a report: accuracies with intervals, curves, classes, filters, samples and chains."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebse.report.summaries import REFERENCE, BySeed, Interval, Row, accuracy_interval, interval, paired

BLUE, RED, GRAY = "#3b8fc4", "#d9576a", "#8a93a0"
"""Readable on light and on dark pages."""
NAMES = {
    "point": "RBM",
    "bernoulli": "Bernoulli",
    "gaussian": "Gaussian",
    "algorithm_1": "Algorithm 1",
    "algorithm_1_rbm": "Algorithm 1 on an RBM",
}
"""Models in a legend."""
MAX_DOTS = 100
"""Episodes that are drawn as dots."""
MAX_CLASSES = 30
"""Classes that are drawn as bars."""
MAX_COLUMNS = 15
"""Columns that are drawn as bars."""
NARROW = 4.2
"""Width in inches of a figure for a phone."""

Images = npt.NDArray[Any]


def accuracy_dots(found: Mapping[str, BySeed], *, reference: str = REFERENCE, narrow: bool = False) -> Figure:
    """Accuracy of each method, and its difference to the reference in the same episodes.

    The narrow figure has accuracies alone, with names above them.
    """
    names = sorted(found, key=lambda name: interval(found[name]).mean)
    differs = reference in found and len(names) > 1 and not narrow
    height = (0.52 if narrow else 0.4) * len(names) + 1.0
    figure = Figure(figsize=(NARROW if narrow else 11, height), layout="constrained")
    axes = figure.subplots(1, 2 if differs else 1, sharey=True, squeeze=False)[0]
    for at, name in enumerate(names):
        _dots(axes[0], at, found[name], accuracy_interval(found[name]))
        gains = paired(found[name], found[reference]) if differs and name != reference else {}
        if gains:
            _dots(axes[1], at, gains, interval(gains), sign="+")
    axes[0].set(xlabel="accuracy, %", ylim=(-0.6, len(names) - 0.4 + 0.3 * narrow))
    if narrow:
        for at, name in enumerate(names):
            axes[0].annotate(name, (0, at + 0.33), xycoords=("axes fraction", "data"), fontsize=8)
        axes[0].set_yticks([])
    else:
        axes[0].set_yticks(range(len(names)), names)
        axes[0].tick_params(left=False)
    if differs:
        axes[1].axvline(0, color=GRAY, linewidth=1)
        axes[1].tick_params(left=False)
        axes[1].set(xlabel=f"points over {reference}, same episodes")
    return figure


def _dots(axes: Axes, at: float, x: BySeed, found: Interval, *, sign: str = "") -> None:
    values = 100 * np.mean(list(x.values()), axis=0)[:MAX_DOTS]
    # A fixed jitter, so that the same rows give the same page.
    jitter = at + 0.2 * np.sin(np.arange(len(values)) * 2.4)
    axes.scatter(values, jitter, s=6, color=BLUE, alpha=0.4, linewidths=0)
    axes.plot([found.low, found.high], [at, at], color=RED, linewidth=3, solid_capstyle="butt")
    axes.scatter([found.mean], [at], s=30, color=RED, zorder=3)
    text = f"{found.mean:{sign}.1f}".replace("-", "−")
    axes.annotate(
        text, (max(values.max(), found.mean), at), (5, 0), textcoords="offset points", va="center", fontsize=8
    )
    axes.margins(x=0.12)


def shot_curves(
    by_shots: Mapping[int, Mapping[str, BySeed]], names: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Accuracy against labels per class."""
    figure = Figure(figsize=(NARROW if narrow else 8, 4.2), layout="constrained")
    axes = figure.subplots()
    shots = sorted(by_shots)
    # Settings of several chains follow a comma.
    drawn = [name for name in by_shots[shots[0]] if {name, name.partition(", ")[0]} & set(names)]
    for name in drawn:
        points = [accuracy_interval(by_shots[k][name]) for k in shots if name in by_shots[k]]
        if len(points) == len(shots):
            axes.plot(shots, [p.mean for p in points], marker="o", label=name)
            axes.fill_between(shots, [p.low for p in points], [p.high for p in points], alpha=0.2)
    axes.set(xscale="log", xlabel="labels per class", ylabel="accuracy, %")
    axes.set_xticks(shots, [str(k) for k in shots])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    return figure


def learning_curves(rows: Sequence[Row], *, narrow: bool = False) -> Figure:
    """Pseudo-log-likelihood of training rows against epochs, one line for each model and seed."""
    figure = Figure(figsize=(NARROW if narrow else 8, 3.6), layout="constrained")
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


def class_bars(labels: Mapping[str, int], predicted: Mapping[str, int], *, narrow: bool = False) -> Figure:
    """Rows predicted as each class, and labels given for it."""
    names = sorted(labels, key=lambda name: -predicted.get(name, 0))[:MAX_CLASSES][::-1]
    counts = [predicted.get(name, 0) for name in names]
    figure = Figure(figsize=(NARROW if narrow else 9, 0.34 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(names)), counts, color=BLUE, height=0.7)
    for at, (name, n) in enumerate(zip(names, counts, strict=True)):
        text = f"{n} ({labels[name]} given)"
        axes.annotate(text, (n, at), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), [_cut(name, 14 if narrow else 40) for name in names])
    axes.set(xlabel="rows predicted as the class (labels given)", xlim=(0, 1.3 * max([*counts, 1])))
    axes.tick_params(left=False)
    return figure


def column_bars(matters: Sequence[tuple[str, float]], *, narrow: bool = False) -> Figure:
    """Part of the rows whose predicted class changes if a column is shuffled, largest above."""
    shown = list(matters)[:MAX_COLUMNS][::-1]
    figure = Figure(figsize=(NARROW if narrow else 9, 0.3 * len(shown) + 0.9), layout="constrained")
    axes = figure.subplots()
    axes.barh(range(len(shown)), [100 * part for _, part in shown], color=BLUE, height=0.7)
    axes.set_yticks(range(len(shown)), [_cut(name, 14 if narrow else 40) for name, _ in shown])
    axes.set(xlabel="rows predicted as another class if the column is shuffled, %")
    axes.tick_params(left=False)
    return figure


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def filters(images: Images, shape: tuple[int, int], *, kind: str) -> Figure:
    """Tiles of weights (blue negative, red positive), or of probabilities (black 0, white 1)."""
    limit = max(float(np.quantile(np.abs(images), 0.995)), 1e-12)
    scale: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1}
    if kind == "weights":
        scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    return _mosaic(images, shape, columns=10, width=0.52, **scale)


def heat_map(values: Images, names: Sequence[str], *, label: str, signed: bool) -> Figure:
    """Rows of numbers under the names of their columns: blue negative, red positive, or white 0, black 1."""
    n_rows, n_columns = values.shape
    size = (min(2.2 + 0.22 * n_columns, 13), min(1.6 + 0.16 * n_rows, 7))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    limit = max(float(np.quantile(np.abs(values), 0.995)), 1e-12)
    scale: dict[str, Any] = {"cmap": "gray_r", "vmin": 0, "vmax": 1}
    if signed:
        scale = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    image = axes.imshow(values, aspect="auto", interpolation="none", **scale)
    axes.set_xticks(range(n_columns), names, rotation=90, fontsize=7)
    axes.set(ylabel=label, yticks=[])
    figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def strip(images: Images, shape: tuple[int, int], titles: Sequence[str], *, columns: int = 10) -> Figure:
    """Gray images side by side, each under a title."""
    return _mosaic(images, shape, titles, columns=columns, width=0.85, cmap="gray_r", vmin=0, vmax=1)


def _mosaic(
    images: Images,
    shape: tuple[int, int],
    titles: Sequence[str] = (),
    *,
    columns: int,
    width: float,
    **scale: Any,
) -> Figure:
    """Images of one shape as tiles of one image, which is much faster to draw than axes for each."""
    height, gap = shape[0], max(1, round(0.08 * max(shape)))
    columns = min(columns, len(images))
    rows = math.ceil(len(images) / columns)
    step = (height + gap, shape[1] + gap)
    tiles = np.full((rows * step[0] - gap, columns * step[1] - gap), np.nan)
    corners = [(n // columns * step[0], n % columns * step[1]) for n in range(len(images))]
    for (top, left), image in zip(corners, images, strict=True):
        tiles[top : top + height, left : left + shape[1]] = image.reshape(shape)
    size = width * columns
    figure = Figure(
        figsize=(size, size * tiles.shape[0] / tiles.shape[1] + 0.25 * bool(titles)), layout="constrained"
    )
    axes = figure.subplots()
    axes.imshow(np.ma.masked_invalid(tiles), interpolation="none", **scale)
    for (top, left), title in zip(corners, titles, strict=False):
        middle = left + (shape[1] - 1) / 2
        axes.annotate(title, (middle, top - 0.5), (0, 3), textcoords="offset points", ha="center", fontsize=7)
    axes.set_axis_off()
    return figure
