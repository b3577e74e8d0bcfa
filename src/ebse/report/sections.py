"""What a page says of a run: claims, tables and pictures, before anything is drawn."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ebse.report import drawings
from ebse.report.claims import NAMES, verdicts
from ebse.report.figure2 import figure2
from ebse.report.fit_page import fit_section
from ebse.report.parts import Beside, Heading, Line, Part, Picture, Row, Section, Table
from ebse.report.summaries import REFERENCE, accuracies, accuracy_lines, checked_claims
from ebse.workflow.run_folder import read_header, read_results

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


def section(folder: Path) -> Section:
    """The part of the page that belongs to a run."""
    header, rows = read_header(folder), read_results(folder)
    if not rows:
        raise ValueError(
            f"folders must hold results, got {folder}, which has none yet; go on with `ebse resume {folder}`"
        )
    made: Any = {"manifolds": _manifolds, "one-shot": _one_shot, "fit": fit_section}.get(header["experiment"])
    if made is None:
        raise ValueError(
            f"{folder} must be a run of manifolds, one-shot or fit, got {header['experiment']!r}; give one"
        )
    try:
        return made(folder, header, rows)  # type: ignore[no-any-return]
    except (
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
    ) as error:
        raise ValueError(
            f"{folder} must be a whole run, got one that does not fit together ({type(error).__name__}: "
            f"{error}); run it again in a new folder"
        ) from error


def _manifolds(folder: Path, header: Row, rows: list[Row]) -> Section:
    claims: list[Line] = [
        (
            f"({v.claim.panel}) {v.claim.says}",
            f"{v.claim.manifold}, {NAMES[v.claim.law]}",
            f"{'≤' if v.claim.at_most else '≥'} {v.claim.bar:g}",
            f"{v.mean:.3g} (worst of {v.n_seeds} seeds: {v.worst:.3g})",
            "yes" if v.met else "no",
        )
        for v in verdicts(rows)
    ]
    panels = {}
    for law in header["config"]["laws"]:
        path = folder / f"panels-{law}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as arrays:
                panels[law] = {name: arrays[name] for name in arrays.files}
    parts: list[Part] = []
    if panels:
        parts.append(
            Picture(
                "figure2",
                lambda: figure2(panels, title=""),
                f"Four panels for each law: points of the {header['config']['manifolds'][0]}, test points "
                "and their images",
                "Compare the rows: (a) an RBM returns points of the curve to themselves, (b) the images of "
                "an ensemble spread, best along the curve, (c) isolated points move towards it, under an RBM "
                "too, but less far on the arc, and (d) images of a few points cover the curve, as they would "
                "with any noise of that size.",
            )
        )
    lead = (
        "Points of the plane go up by a model drawn for them and back by the average model. The paper has "
        "four pictures; the table above has them as numbers, with our bars."
    )
    return Section(folder.resolve().name, "Points near a curve (section 3.1)", lead, claims, parts, header)


def _one_shot(folder: Path, header: Row, rows: list[Row]) -> Section:
    config = header["config"]
    by_shots = {k: accuracies(rows, k) for k in config["shots"]}
    found = by_shots[config["shots"][0]]
    data, name = Path(config["data"]).name, folder.resolve().name
    claims: list[Line] = [
        (
            f"{c.claim.says} ({c.method})",
            name,
            c.claim.paper,
            c.difference.signed(),
            c.verdict,
        )
        for c in checked_claims(found)
    ]
    parts: list[Part] = []
    if found:
        parts += [
            Picture(
                "dots",
                lambda: drawings.dots(found),
                "Accuracy of each method in every episode, with means and intervals",
                f"One dot an episode (of {drawings.MOST_DOTS} at most), in red the mean and its interval. On "
                f"the right the same episodes are compared one by one with {REFERENCE}, which takes their "
                "difficulty out.",
            ),
            Table(accuracy_lines(found)),
        ]
    if len(by_shots) > 1:
        parts.append(
            Picture(
                "shots",
                lambda: drawings.shot_curves(by_shots, CURVES),
                "Accuracy against the number of labels per class",
                "Look at the left end, where labels are few and what was learned without them matters most.",
            )
        )
    parts += _images(folder)
    if any(row.get("kind") == "training" for row in rows):
        parts.append(
            Picture(
                "training",
                lambda: drawings.learning_curves(rows),
                "Pseudo-log-likelihood against epochs for every model",
                "Look whether the ensembles learn at the pace of the RBM: then the lines lie on each other.",
            )
        )
    labels = f"{config['shots'][0]} label{'s' * (config['shots'][0] > 1)} per class"
    lead = (
        f"Logistic regression without penalty, {labels}, {config['n_episodes']} episodes that all methods "
        f"share, {len(config['seeds'])} training seed{'s' * (len(config['seeds']) > 1)}. Intervals speak of "
        "other episodes with these trained models, not of other trainings: for these, see how far seeds "
        "differ. Clamped: models drawn at the example itself, as the paper does. Walked: models met on a "
        "walk of the ensemble from the example; a walked state is read where the walk ended. Spreading on …: "
        "no logistic regression, but labels that spread over clusters of the unlabeled images; sizes: equal "
        "class sizes among these are told."
    )
    if not (folder / "pictures.npz").exists():
        lead = f"This run is not finished: `ebse resume {folder}` goes on with it. {lead}"
    return Section(name, f"One-shot learning of {data} (section 3.2), {name}", lead, claims, parts, header)


def _images(folder: Path) -> list[Part]:
    path = folder / "pictures.npz"
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    shape = (int(held["shape"][0]), int(held["shape"][1]))
    stops = [f"{s} sweep{'s' * bool(s > 1)}" if s else "example" for s in held["stops"]]
    tiles = [
        Picture(
            "filters",
            lambda: drawings.filters(held["filters"], shape, kind="weights"),
            "Tiles of connection weights",
            "Filters: what a connection weighs where it is present (Figure 3a). Look for strokes.",
        )
    ]
    if "presence" in held:
        tiles.append(
            Picture(
                "presence",
                lambda: drawings.filters(held["presence"], shape, kind="probabilities"),
                "Tiles of connection probabilities",
                "Probabilities that a connection is present, dark 0 and light 1 (Figure 3b). Look whether "
                "their structure is that of the filters.",
            )
        )
    many = [""] * len(held["samples"])
    strips = [
        Picture(name, partial(drawings.strip, held[name], shape, titles), *STRIPS[name])
        for name, titles in (("samples", many), ("walk", stops), ("clamped", many), ("walked", many))
    ]
    return [Heading("What the ensemble has learned"), Beside(tiles), *strips]
