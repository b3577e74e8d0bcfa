"""One page for a person: rows of runs in, one HTML file out that needs nothing else."""

import base64
import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ebse.files import in_place
from ebse.report import drawings
from ebse.report.claims import NAMES, verdicts
from ebse.report.figure2 import figure2
from ebse.report.style import STYLE
from ebse.report.summaries import REFERENCE, accuracies, checked_claims, difference, interval
from ebse.runs import read_header, read_rows

LIGHT = {"text.color": "#1d2530", "axes.labelcolor": "#1d2530", "axes.edgecolor": "#8a93a0"}
DARK = {"text.color": "#e3e8ee", "axes.labelcolor": "#e3e8ee", "axes.edgecolor": "#8a93a0"}
TICKS = {"xtick.color": "#8a93a0", "ytick.color": "#8a93a0"}
LABELS = {"xtick.labelcolor": "inherit", "ytick.labelcolor": "inherit"}
CURVES = ("pixels", REFERENCE, "Bernoulli clamped", "Bernoulli walked model", "Gaussian walked model")

STRIPS = {
    "samples": ("Samples of the model", "Samples: chains of the ensemble, 200 sweeps on."),
    "walk": (
        "One example's walk",
        "A walk without a clamp. Look how long the example stays what it is, and when it becomes another.",
    ),
    "clamped": (
        "The example through clamped models",
        "Eight models drawn at the example itself, as the paper does, and what they map it back to.",
    ),
    "walked": (
        "The example through walked models",
        "Eight models met on a walk, read on the same example and mapped back. Look how much more they "
        "differ.",
    ),
}
"""What the strips of images show, and what to look for."""

Table = Sequence[Sequence[str]]
Row = dict[str, Any]
Line = tuple[str, ...]


def write_report(folders: Sequence[str | Path], path: str | Path) -> Path:
    """The page of one or more runs, at ``path``."""
    if not folders:
        raise ValueError("folders must have at least one run, got none; make one with `ebse experiment`")
    sections = [_section(Path(folder)) for folder in folders]
    claims = [line for found, _ in sections for line in found]
    header = ("claim", "data", "paper, or our bar", "found", "verdict")
    body = [
        "<h1>Energy-based stochastic ensembles</h1>",
        "<p class=lead>What the paper says of its ensembles, run again: each claim beside what was found. "
        "Intervals are of 95 % and speak of other episodes; differences are of the same episodes.</p>",
        table([header, *claims], verdicts_in_last=True),
        *(section for _, section in sections),
    ]
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>ebse report</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )
    path = Path(path)
    with in_place(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _section(folder: Path) -> tuple[list[Line], str]:
    """Lines of the table of claims, and the part of the page that belongs to a run."""
    header, rows = read_header(folder), read_rows(folder)
    if not rows:
        raise ValueError(f"folders must hold results, got {folder}, which has none yet; let it run")
    made = {"manifolds": _manifolds, "one-shot": _one_shot}.get(header["experiment"])
    if made is None:
        raise ValueError(f"{folder} must be a run of manifolds or one-shot, got {header['experiment']!r}")
    claims, parts = made(folder, header, rows)
    return claims, f"<section>{''.join([*parts, _settings(header)])}</section>"


def _manifolds(folder: Path, header: Row, rows: list[Row]) -> tuple[list[Line], list[str]]:
    claims: list[Line] = [
        (
            f"({v.claim.panel}) {v.claim.says}",
            f"{v.claim.manifold}, {NAMES[v.claim.law]}",
            f"{'≤' if v.claim.at_most else '≥'} {v.claim.bar:g}",
            f"{v.mean:.3f} (worst of {v.n_seeds} seeds {v.worst:.3f})",
            "yes" if v.met else "no",
        )
        for v in verdicts(rows)
    ]
    parts = [
        "<h2>Points near a curve (section 3.1)</h2>",
        "<p>Points of the plane go up by a model drawn for them and back by the average model. The paper has "
        "four pictures; the table above has them as numbers, with our bars.</p>",
    ]
    panels = {}
    for law in header["config"]["laws"]:
        path = folder / f"panels-{law}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as arrays:
                panels[law] = {name: arrays[name] for name in arrays.files}
    if panels:
        parts.append(
            picture(
                lambda: figure2(panels, title=""),
                alt="Four panels for each law: training data near an arc, test points and their images",
                caption="Look along a row: an RBM (a) returns every point to itself and (c) leaves isolated "
                "points where they are; the ensembles (b) spread images along the curve, (c) pull isolated "
                "points in, and (d) cover the curve from five points.",
            )
        )
    return claims, parts


def _one_shot(folder: Path, header: Row, rows: list[Row]) -> tuple[list[Line], list[str]]:
    config = header["config"]
    by_shots = {k: accuracies(rows, k) for k in config["shots"]}
    found = by_shots[config["shots"][0]]
    data = Path(config["data"]).name
    claims: list[Line] = [
        (
            f"{c.claim.says} ({c.method})",
            data,
            c.claim.paper,
            f"{c.difference.mean:+.1f} ({c.difference.low:+.1f} to {c.difference.high:+.1f})",
            c.verdict,
        )
        for c in checked_claims(found)
    ]
    labels = f"{config['shots'][0]} label{'s' * (config['shots'][0] > 1)} per class"
    parts = [
        f"<h2>One-shot learning of {html.escape(data)} (section 3.2)</h2>",
        f"<p>Logistic regression without penalty, {labels}, {config['n_episodes']} episodes that all methods "
        f"share, {len(config['seeds'])} training seed{'s' * (len(config['seeds']) > 1)}.</p>",
    ]
    if found:
        parts.append(
            picture(
                lambda: drawings.dots(found),
                alt="Accuracy of each method in every episode, with means and intervals",
                caption="One dot an episode, in red the mean and its interval. On the right the same "
                f"episodes are compared one by one with {REFERENCE}, which takes their difficulty out.",
            )
        )
        parts.append(table(_accuracy_table(found)))
    if len(by_shots) > 1:
        parts.append(
            picture(
                lambda: drawings.shot_curves(by_shots, CURVES),
                alt="Accuracy against the number of labels per class",
                caption="Look at the left end, where labels are few and what was learned without them "
                "matters most.",
            )
        )
    parts += _images(folder)
    if any(row.get("kind") == "training" for row in rows):
        parts.append(
            picture(
                lambda: drawings.learning_curves(rows),
                alt="Pseudo-log-likelihood against epochs for every model",
                caption="Look whether the ensembles learn at the pace of the RBM (point): then the lines lie "
                "on each other.",
            )
        )
    return claims, parts


def _accuracy_table(found: Mapping[str, Any]) -> Table:
    several = any(len(x) > 1 for x in found.values())
    lines: list[Line] = [("method", "accuracy, %", f"points over {REFERENCE}", *["each seed"] * several)]
    for name in sorted(found, key=lambda name: -interval(found[name]).mean):
        x = found[name]
        gain = difference(x, found[REFERENCE]) if REFERENCE in found and name != REFERENCE else None
        shown = "" if gain is None else f"{gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})"
        seeds = ", ".join(f"{m:.1f}" for m in interval(x).by_seed) if len(x) > 1 else ""
        lines.append((name, str(interval(x)), shown, *[seeds] * several))
    return lines


def _images(folder: Path) -> list[str]:
    path = folder / "pictures.npz"
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    shape = (int(held["shape"][0]), int(held["shape"][1]))
    stops = [f"{s} sweep{'s' * bool(s > 1)}" if s else "example" for s in held["stops"]]
    parts = ["<h3>What the ensemble has learned</h3><div class=pair>"]
    parts.append(
        picture(
            lambda: drawings.filters(held["filters"], shape, kind="weights"),
            alt="Tiles of connection weights",
            caption="Filters: what a connection weighs where it is present (Figure 3a). Look for strokes.",
        )
    )
    if "presence" in held:
        parts.append(
            picture(
                lambda: drawings.filters(held["presence"], shape, kind="probabilities"),
                alt="Tiles of connection probabilities",
                caption="Probabilities that a connection is present, dark 0 and light 1 (Figure 3b). Look "
                "whether their structure is that of the filters.",
            )
        )
    parts.append("</div>")
    many = [""] * len(held["samples"])
    for name, titles in (("samples", many), ("walk", stops), ("clamped", many), ("walked", many)):
        alt, caption = STRIPS[name]
        parts.append(picture(partial(drawings.strip, held[name], shape, titles), alt=alt, caption=caption))
    return parts


def _settings(header: Row) -> str:
    words = {"configuration": header["config"], "versions": header["versions"]}
    shown = html.escape(json.dumps(words, indent=1))
    return f"<details><summary>Configuration and versions</summary><pre>{shown}</pre></details>"


def table(lines: Table, *, verdicts_in_last: bool = False) -> str:
    """Lines as a table, the first of them as its head."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in lines[0])
    body = ""
    for line in lines[1:]:
        cells = [f"<td>{html.escape(cell)}</td>" for cell in line]
        if verdicts_in_last:
            cells[-1] = f'<td class="verdict {html.escape(line[-1])}">{html.escape(line[-1])}</td>'
        body += f"<tr>{''.join(cells)}</tr>"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def picture(draw: Callable[[], Figure], *, alt: str, caption: str) -> str:
    """A figure with its caption, drawn for light and for dark pages."""
    light, dark = (_png(draw, style) for style in (LIGHT, DARK))
    return (
        f'<figure><picture><source srcset="{dark}" media="(prefers-color-scheme: dark)">'
        f'<img src="{light}" alt="{html.escape(alt)}"></picture>'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _png(draw: Callable[[], Figure], style: Mapping[str, str]) -> str:
    settings = {**style, **TICKS, **LABELS, "axes.facecolor": "none", "legend.framealpha": 0.0}
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        figure = draw()
        held = io.BytesIO()
        figure.savefig(held, format="png", dpi=100, transparent=True)
    return f"data:image/png;base64,{base64.b64encode(held.getvalue()).decode()}"
