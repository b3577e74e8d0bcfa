"""Sections of the report about runs of the paper's experiments."""

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ebse.report import drawings
from ebse.report.claims import CLAIMS_HEAD, claims_lines, figures_lines, verdicts
from ebse.report.figure2 import figure2
from ebse.report.findings import manifold_findings, one_shot_findings, one_shot_stats
from ebse.report.fit_page import fit_section
from ebse.report.parts import Heading, Pair, Part, Picture, Row, Section, Stat, Table
from ebse.report.summaries import REFERENCE, accuracies, accuracy_lines
from ebse.workflow.run_folder import read_header, read_results

CURVES = (
    "pixels",
    REFERENCE,
    "Bernoulli posterior samples",
    "Bernoulli chain-sampled models",
    "Gaussian chain-sampled models",
    "label propagation on pixels",
    "label propagation on contrastive features",
)
"""Methods whose accuracy is drawn against the number of labels."""

DATA = {
    "digits": "8 × 8 digits",
    "mnist-sample": "MNIST digits (a sample)",
    "mnist": "MNIST digits",
    "fashion-mnist": "Fashion-MNIST",
}
"""Data sets in titles."""

STRIPS = {
    "samples": ("Samples of the ensemble", "Samples of the ensemble after 200 Gibbs sweeps."),
    "chain": (
        "States of a Gibbs chain that starts at one image",
        "A Gibbs chain that starts at a test image. The image stays recognizable for some sweeps; long "
        "chains reach other classes.",
    ),
    "posterior": (
        "Reconstructions of one image by models sampled from the posterior",
        "Posterior samples: reconstructions of the image by eight models θ ~ P(θ | v), as in the paper.",
    ),
    "chain_sampled": (
        "Reconstructions of one image by chain-sampled models",
        "Chain-sampled models: reconstructions of the same image by eight models sampled after a Gibbs chain "
        "that starts at it. They differ more.",
    ),
}
"""Alternative text and caption of the strips of images."""


def section(folder: Path) -> Section:
    """The section about one run."""
    header, rows = read_header(folder), read_results(folder)
    if not rows:
        raise ValueError(
            f"folders must hold results, got {folder}, which has none yet; go on with `ebse resume {folder}`"
        )
    sections: dict[str, Any] = {"manifolds": _manifolds, "one-shot": _one_shot, "fit": fit_section}
    build = sections.get(header["experiment"])
    if build is None:
        raise ValueError(
            f"{folder} must be a run of manifolds, one-shot or fit, got {header['experiment']!r}; give one"
        )
    try:
        return build(folder, header, rows)  # type: ignore[no-any-return]
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
    found = verdicts(rows)
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
                partial(figure2, panels),
                f"Four panels for each model: points near the {header['config']['manifolds'][0]} and their "
                "images",
                "Figure 2 of the paper. (a) An RBM maps points of the curve to themselves. (b) The images "
                "under an ensemble spread, mostly along the curve. (c) Isolated points move toward the "
                "curve; under an RBM, too, but less on the arc. (d) The images of five points cover the "
                "curve, as isotropic noise of the same size would.",
                partial(figure2, panels, narrow=True),
            )
        )
    parts += [
        Table("Claims with thresholds", [CLAIMS_HEAD, *claims_lines(found)]),
        Table(
            "All measurements, means over seeds",
            figures_lines(rows),
            "Point to image: distance of a point of the curve to its images. Image to curve: distance of the "
            "images to the curve; if isotropic: the same for isotropic noise of the same variance. Outliers: "
            "distance of isolated points to the curve, after / before. Coverage: fraction of the curve "
            "within 0.05 of an image of five points. Along/across: spread of the images along the curve "
            "divided by that across it.",
        ),
    ]
    lead = (
        "Each point of the plane is mapped up by a model sampled for it and back by the mean model. The "
        "paper shows pictures; the thresholds for the measured numbers are ours."
    )
    met = sum(verdict.met for verdict in found)
    n_seeds = max((verdict.n_seeds for verdict in found), default=0)
    stats = [Stat(f"{met} of {len(found)}", f"claims of section 3.1 hold, means over {n_seeds} seeds")]
    return Section(
        folder.resolve().name,
        "Points near a curve (section 3.1)",
        lead,
        stats if found else [],
        manifold_findings(found),
        parts,
        header,
    )


def _one_shot(folder: Path, header: Row, rows: list[Row]) -> Section:
    config = header["config"]
    by_shots = {k: accuracies(rows, k) for k in config["shots"]}
    found = by_shots[config["shots"][0]]
    data, name = Path(config["data"]).name, folder.resolve().name
    title = f"One-shot classification of {DATA.get(data, data)} (section 3.2)"
    if name not in ("one-shot", f"one-shot-{data}"):
        title = f"{title}, {name}"
    labels = f"{config['shots'][0]} label{'s' * (config['shots'][0] > 1)} per class"
    parts: list[Part] = []
    if found:
        parts += [
            Picture(
                "dots",
                partial(drawings.accuracy_dots, found),
                "Accuracy of each method in every episode, with means and intervals",
                f"Blue: one dot for each episode (at most {drawings.MAX_DOTS}). Red: mean and 95 % interval. "
                f"The differences to {REFERENCE} are taken within the same episodes.",
                partial(drawings.accuracy_dots, found, narrow=True),
            ),
            *(
                Table(
                    f"Accuracies with {k} label{'s' * (k > 1)} per class",
                    accuracy_lines(by_shots[k]),
                )
                for k in by_shots
                if by_shots[k]
            ),
        ]
    if len(by_shots) > 1:
        parts.append(
            Picture(
                "shots",
                partial(drawings.shot_curves, by_shots, CURVES),
                "Accuracy against the number of labels per class",
                "Accuracy against the number of labels per class, with 95 % intervals. Methods differ most "
                "at the left, where labels are few.",
                partial(drawings.shot_curves, by_shots, CURVES, narrow=True),
            )
        )
    parts += _images(folder)
    if any(row.get("kind") == "training" for row in rows):
        parts.append(
            Picture(
                "training",
                partial(drawings.learning_curves, rows),
                "Pseudo-log-likelihood against epochs for every model",
                "Training. Where the lines coincide, the ensembles learn as fast as the RBM.",
                partial(drawings.learning_curves, rows, narrow=True),
            )
        )
    n_seeds = len(config["seeds"])
    lead = (
        f"Few-shot classification with {labels}: {config['n_episodes']} random choices of labels and test "
        f"rows, the same for all methods, {n_seeds} training seed{'s' * (n_seeds > 1)}. Models and clusters "
        "are trained on other rows, without labels; labels and test rows are not among them, except where a "
        "method's name says scikit-learn LabelSpreading or UMAP (transductive). Unless a name says "
        "otherwise, the classifier is logistic regression. Intervals cover the choice of episodes, not of "
        "training seeds."
    )
    if not (folder / "pictures.npz").exists():
        lead = f"This run is not finished: `ebse resume {folder}` continues it. {lead}"
    return Section(
        name,
        title,
        lead,
        one_shot_stats(found, labels),
        one_shot_findings(found),
        parts,
        header,
    )


def _images(folder: Path) -> list[Part]:
    path = folder / "pictures.npz"
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as arrays:
        held = {name: arrays[name] for name in arrays.files}
    shape = (int(held["shape"][0]), int(held["shape"][1]))
    stops = [f"{s} sweep{'s' * bool(s > 1)}" if s else "image" for s in held["stops"]]
    tiles = [
        Picture(
            "filters",
            partial(drawings.filters, held["filters"], shape, kind="weights"),
            "Tiles of connection weights",
            "Filters: the weights of each hidden unit where its connections are present (Figure 3a).",
        )
    ]
    if "keep_prob" in held:
        tiles.append(
            Picture(
                "keep_prob",
                partial(drawings.filters, held["keep_prob"], shape, kind="probabilities"),
                "Tiles of connection probabilities",
                "Probability that a connection is present, black 0 and white 1 (Figure 3b).",
            )
        )
    titles = {"samples": [], "chain": stops, "posterior": [], "chain_sampled": []}
    strips = [
        Picture(name, partial(drawings.strip, held[name], shape, titles[name]), *STRIPS[name])
        for name in titles
    ]
    return [Heading("What the ensemble has learned"), Pair(tiles), *strips]
