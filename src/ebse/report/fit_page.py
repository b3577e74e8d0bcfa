"""The section of the report about a fit to a user's own data."""

from functools import partial
from pathlib import Path

from ebse.io import read_arrays, read_cells
from ebse.io.cells import is_number
from ebse.report import drawings
from ebse.report.parts import Heading, Line, Pair, Part, Picture, Row, Section, Stat, Table, Text
from ebse.report.summaries import REFERENCE, accuracies, accuracy_lines
from ebse.workflow.prediction import PLAIN
from ebse.workflow.run_folder import ROWS

MAX_ROWS, MAX_LETTERS = 12, 24
"""Rows in a table of rows, and letters of a column's name in a figure."""

MODELS = {
    "propagation": (
        "label propagation",
        "The given labels are propagated over clusters of all rows (SpreadingClassifier).",
    ),
    "draws": (
        "ensemble, sampled models",
        "The ensemble was trained on all rows without labels. Predictions are the mean of classifiers on "
        "representations by sampled models (RBSEClassifier).",
    ),
    "mean": (
        "ensemble, mean representation",
        "The ensemble was trained on all rows without labels. Predictions come from logistic regression on "
        "its mean representation (RBSEClassifier).",
    ),
}
"""Name and description of the model, by the source of its predictions."""
WITHOUT_LABELS = ("ensemble", "An ensemble of RBMs with random weights, trained on all rows without labels.")

METHODS = {
    REFERENCE: "logistic regression on the ensemble's mean representation of each row",
    "RBSEClassifier": "classifiers on representations by sampled models where these help, otherwise on the "
    "mean representation",
    "SpreadingClassifier": "label propagation over {rows}",
    PLAIN: "logistic regression on the standardized columns",
}
"""Descriptions of the methods that an evaluation compares."""


def fit_section(folder: Path, header: Row, rows: list[Row]) -> Section:
    """The section about a fit."""
    config = header["config"]
    if not all(isinstance(row, dict) and "kind" in row for row in rows):
        raise ValueError(
            f"{folder / ROWS} must hold a line of JSON for each result; it is damaged: restore it from a copy"
        )
    found = {row["kind"]: row for row in rows}
    labels = found.get("labels")
    model, lead = MODELS[labels["source"]] if labels else WITHOUT_LABELS
    parts: list[Part] = []
    if labels:
        parts += _labels(folder, labels)
        if "finished" in found and 2 * sum(labels["labels"].values()) < found["finished"]["n_rows"]:
            lead = f"Most rows have no label. {lead}"
        parts += _evaluated(rows, labels["source"])
    parts += _learned(folder)
    if "training" in found:
        parts.append(
            Picture(
                "training",
                partial(drawings.learning_curves, rows),
                "Pseudo-log-likelihood against epochs",
                "Training: how well the ensemble predicts each value from the others of its row. If the line "
                "still rises at its end, more epochs (--n-epochs) may help.",
                partial(drawings.learning_curves, rows, narrow=True),
            )
        )
    parts.append(Table("Settings", _settings(config, found, model)))
    name = Path(config["data"]).name
    return Section(
        f"fit-{folder.resolve().name}",
        f"Model of {name}",
        lead,
        _stats(found, model),
        [],
        parts,
        header,
    )


def _stats(found: dict[str, Row], model: str) -> list[Stat]:
    stats = []
    if "finished" in found:
        n_rows, n_columns = found["finished"]["n_rows"], found["finished"]["n_columns"]
        stats.append(Stat(f"{n_rows:,}", f"rows of {n_columns:,} columns"))
    if "labels" in found:
        given = found["labels"]["labels"]
        stats.append(Stat(f"{sum(given.values()):,}", f"labels given, of {len(given)} classes"))
    stats.append(Stat(model.partition(",")[0], "model"))
    return stats


def _settings(config: Row, found: dict[str, Row], model: str) -> list[Line]:
    lines: list[Line] = [("setting", "value"), ("model", model)]
    options = {"split at quartiles": "split", "missing entries imputed": "missing"}
    columns = [words for words, name in options.items() if config.get(name)]
    if columns:
        lines.append(("columns", ", ".join(columns)))
    if found.get("labels", {}).get("source") == "propagation":
        lines.append(("class prior", config.get("class_prior") or "not given"))
        lines.append(("pseudo-labeling rounds", str(config["n_rounds"])))
    if "training" in found:
        training = found["training"]
        lines.append(("hidden units, law of the weights", f"{config['n_components']}, {config['law']}"))
        lines.append(("training", f"{len(training['history'])} epochs, {training['seconds']:.0f} s"))
    return lines


def _labels(folder: Path, row: Row) -> list[Part]:
    """Counts of classes, rows to label next, and the most doubtful rows."""
    given, predicted = row["labels"], row["predicted"]
    counts: list[Line] = [("class", "labels given", "rows predicted")]
    counts += [(name, f"{n:,}", f"{predicted.get(name, 0):,}") for name, n in given.items()]
    parts: list[Part] = [
        Heading("Classes"),
        Picture(
            "classes",
            partial(drawings.class_bars, given, predicted),
            "Rows predicted as each class",
            "Rows predicted as each class; in parentheses the labels given. Check whether the sizes are "
            "plausible."
            + (
                f" Of {len(given)} classes the largest {drawings.MAX_CLASSES}."
                if len(given) > drawings.MAX_CLASSES
                else ""
            ),
            partial(drawings.class_bars, given, predicted, narrow=True),
        ),
        Table("Classes with counts", counts),
    ]
    path = folder / "predictions.csv"
    if not path.exists():
        return parts
    header, lines = _predictions(path)
    head = ("row", "predicted", *header[3:])
    unlabeled = [line for line in lines if not line[1]]
    doubtful = sorted(unlabeled, key=lambda line: max(map(float, line[3:])))
    to_label = [lines[n - 1] for n in row.get("label_next", ()) if n <= len(lines)] or doubtful
    reason = (
        "Labels of these rows inform most about other rows."
        if row.get("label_next")
        else "The model is least certain of these rows."
    )
    note = "Row 1 is the first below the header. All rows are in predictions.csv, in the run folder."
    if to_label:
        parts += [
            Heading("What to label next"),
            Table("Rows to label next", _rows(head, to_label), f"{reason} {note}", unfolded=True),
        ]
    if doubtful:
        parts.append(
            Table(
                "Most doubtful rows",
                _rows(head, doubtful),
                "Rows without a label whose largest class probability is smallest. With few labels the "
                "probabilities rank rows; they are not calibrated, and can be high for a wrong class.",
            )
        )
    return parts


def _predictions(path: Path) -> tuple[list[str], list[list[str]]]:
    header, *lines = read_cells(path) or [[]]
    if len(header) < 4 or any(
        len(line) != len(header) or not all(map(is_number, line[3:])) for line in lines
    ):
        raise ValueError(f"{path} must be as ebse wrote it, got another table; restore it, or fit again")
    return header, lines


def _rows(head: Line, lines: list[list[str]]) -> list[Line]:
    return [head, *((line[0], line[2], *line[3:]) for line in lines[:MAX_ROWS])]


def _evaluated(rows: list[Row], source: str) -> list[Part]:
    """Accuracies of the methods that were run, and their differences to the baseline of the evaluation."""
    evaluated = [row for row in rows if row["kind"] == "accuracy"]
    shots = sorted({row["n_shots"] for row in evaluated})
    if not shots:
        return []
    methods = list(dict.fromkeys(row["method"] for row in evaluated))
    baseline = evaluated[-1].get("baseline", REFERENCE if REFERENCE in methods else PLAIN)
    over = "all rows of the run, also those without a label"
    if source != "propagation":
        over = "the labeled rows of the run alone, without the labels that are not chosen"
    described = [f"{name}: {METHODS[name].format(rows=over)}." for name in methods if name in METHODS]
    compared = f" Differences to {baseline} are taken within the same choices." if len(methods) > 1 else ""
    by_shots = {k: accuracies(rows, k) for k in shots}
    first = by_shots[shots[0]]
    parts: list[Part] = [
        Heading("Accuracy with few labels"),
        Text(
            f"{' '.join(described)} Intervals cover the choice of labels among the labeled rows; where these "
            "are few, other rows can differ more."
        ),
        Picture(
            "dots",
            partial(drawings.accuracy_dots, first, reference=baseline),
            "Accuracy of each method in every episode, with means and intervals",
            f"{shots[0]} label{'s' * (shots[0] > 1)} per class. Blue: one dot for each random choice of "
            f"labels. Red: mean and 95 % interval.{compared}",
            partial(drawings.accuracy_dots, first, reference=baseline, narrow=True),
        ),
    ]
    return parts + [
        Table(f"Accuracies with {k} label{'s' * (k > 1)} per class", accuracy_lines(by_shots[k], baseline))
        for k in shots
    ]


def _learned(folder: Path) -> list[Part]:
    path = folder / "pictures.npz"
    if not path.exists():
        return []
    held = read_arrays(path, "shape", "names", "components", "samples")
    heading = Heading("What the ensemble has learned")
    components = "Components: weights of the hidden units, red positive and blue negative."
    samples = "Samples of the ensemble after 200 Gibbs sweeps. They should look like rows of the data."
    if held["shape"].size:
        shape = (int(held["shape"][0]), int(held["shape"][1]))
        weights = partial(drawings.filters, held["components"], shape, kind="weights")
        strip = partial(drawings.strip, held["samples"], shape, (), columns=6)
        return [
            heading,
            Pair(
                [
                    Picture("components", weights, "Tiles of components", components),
                    Picture("samples", strip, "Samples of the model", samples),
                ]
            ),
        ]
    names = [str(name)[:MAX_LETTERS] for name in held["names"]]
    return [
        heading,
        Picture(
            "components",
            partial(drawings.heat_map, held["components"][:30], names, label="component", signed=True),
            "Heat map of components against columns",
            components,
        ),
        Picture(
            "samples",
            partial(drawings.heat_map, held["samples"], names, label="sample", signed=False),
            "Heat map of samples of the ensemble",
            f"{samples} White is the low end of a column, black the high end.",
        ),
    ]
