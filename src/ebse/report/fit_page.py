"""The section of the report about a fit to a user's own data."""

from functools import partial
from pathlib import Path
from typing import Any

from ebse.io import read_arrays, read_cells
from ebse.io.cells import is_number
from ebse.report import drawings
from ebse.report.parts import Heading, Line, Pair, Part, Picture, Row, Section, Stat, Table, Text
from ebse.report.summaries import REFERENCE, accuracies, accuracy_lines
from ebse.workflow.accuracy import AUDIT, Accuracy, accuracy_sentence
from ebse.workflow.prediction import PLAIN
from ebse.workflow.run_folder import ROWS

MAX_ROWS, MAX_LETTERS, MAX_LISTED = 12, 24, 100
"""Rows in a table of rows, letters of a column's name in a figure, and columns in the list of all."""

MODELS = {
    "members": (
        "few-label classifier",
        "Class probabilities are the weighted mean of those of several classifiers: label propagation over "
        "clusters of all rows, logistic regression, and trees (FewLabelClassifier).",
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
    "FewLabelClassifier": "the classifier of this run, fitted to the chosen labels and to all rows without "
    "their labels",
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
        members = found.get("members")
        if members:
            parts += _accuracy(members)
        parts += _labels(folder, labels, members)
        if "finished" in found and 2 * sum(labels["labels"].values()) < found["finished"]["n_rows"]:
            lead = f"Most rows have no label. {lead}"
        if members:
            parts += _reasons(members)
        parts += _evaluated(rows)
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
    if "members" in found:
        lines.append(("class prior", config["class_prior"]))
    if "training" in found:
        training = found["training"]
        lines.append(("hidden units, law of the weights", f"{config['n_components']}, {config['law']}"))
        lines.append(("training", f"{len(training['history'])} epochs, {training['seconds']:.0f} s"))
    return lines


def _accuracy(members: Row) -> list[Part]:
    """The estimated accuracy, with its interval."""
    said = accuracy_sentence(members)
    parts: list[Part] = [Heading("Accuracy"), Text(said[0].upper() + said[1:])]
    if members["accuracy"] is not None:
        among = (
            "all rows" if members["accuracy"][0] == AUDIT else "rows that are chosen like the labeled ones"
        )
        chosen = (
            "" if among == "all rows" else " It holds for all rows if the labeled ones were chosen at random."
        )
        parts.append(Text(f"Part of correct predictions among {among}.{chosen}"))
        lines: list[Line] = [("class", "labels tested", "correct", "recall")]
        lines += [
            (name, f"{n:,}", f"{right:,}", f"{right / n:.0%}")
            for name, right, n in Accuracy(*members["accuracy"]).classes
        ]
        parts.append(Table("Recall by class", lines))
    return parts


def _labels(folder: Path, row: Row, members: Row | None) -> list[Part]:
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
    single = [name for name, n in given.items() if n == 1]
    if single:
        parts.append(
            Text(
                f"A single label: {', '.join(single[:MAX_ROWS])}{', …' * (len(single) > MAX_ROWS)}. One row "
                "may be untypical of its class: label another one first."
            )
        )
    never = row.get("never", ())
    if never:
        parts.append(
            Text(
                f"No row without a label is predicted as: {', '.join(never[:MAX_ROWS])}. Label more rows of "
                "it, or give its frequency with --class-prior."
            )
        )
    path = folder / "predictions.csv"
    if not path.exists():
        return parts
    header, lines = _predictions(path)
    head = ("row", "predicted", *header[3:])
    note = "All rows are in predictions.csv, in the run folder."
    if lines and lines[0][0] == "1":
        note = f"Row 1 is the first below the header. {note}"
    if members:
        return parts + _rows_of_members(head, lines, members, note)
    unlabeled = [line for line in lines if not line[1]]
    doubtful = sorted(unlabeled, key=lambda line: max(map(float, line[3:])))
    if doubtful:
        reason = "The model is least certain of these rows."
        parts += [
            Heading("What to label next"),
            Table("Rows to label next", _rows(head, doubtful), f"{reason} {note}", unfolded=True),
        ]
    return parts


def _rows_of_members(head: Line, lines: list[list[str]], members: Row, note: str) -> list[Part]:
    """Rows to label next, doubtful ones with the members' votes, and rows unlike every labeled one."""
    parts: list[Part] = []
    to_label = _numbered(lines, members["label_next"])
    if to_label:
        reason = "Each row represents a cluster without a label, so its probability can be high."
        names, contents = members["contents"]
        found = _rows(head, to_label)
        if names and len(contents) == len(to_label):
            reason += " The last columns are those that matter most."
            found = [(*a, *map(str, b)) for a, b in zip(found, [names, *contents], strict=False)]
        parts += [
            Heading("What to label next"),
            Table("Rows to label next", found, f"{reason} {note}", unfolded=True),
        ]
    doubtful = _numbered(lines, members["doubtful"])
    if doubtful:
        votes = [_votes(members["votes"], at) for at in range(len(doubtful))]
        table = [
            (*line, said)
            for line, said in zip(_rows(head, doubtful), ["votes of the members", *votes], strict=False)
        ]
        parts.append(
            Table(
                "Most doubtful rows",
                table,
                "Rows without a label whose largest class probability is smallest. With few labels "
                "probabilities can be off by 0.1 and more: use them to compare rows.",
            )
        )
    far = [(n, times) for n, times in members["far"] if n <= len(lines)]
    if far:
        shown: list[Line] = [("row", "predicted", "distance")]
        shown += [(lines[n - 1][0], lines[n - 1][2], f"{times:.1f} ×") for n, times in far]
        parts.append(
            Table(
                "Rows unlike every labeled row",
                shown,
                "Distance to the nearest labeled row in standardized columns, relative to the median of all "
                "rows without a label.",
            )
        )
    return parts


def _numbered(lines: list[list[str]], numbers: list[int]) -> list[list[str]]:
    """Lines of the rows with these numbers, which begin with 1."""
    return [lines[n - 1] for n in numbers if n <= len(lines)]


def _votes(votes: list[list[Any]], at: int) -> str:
    """Members by the class that each would give the row by itself."""
    by_class: dict[str, list[str]] = {}
    for name, classes in votes:
        if at < len(classes):
            by_class.setdefault(str(classes[at]), []).append(name)
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in by_class.items())


def _reasons(members: Row) -> list[Part]:
    """Which columns matter, what was done with each, and how the members count."""
    parts: list[Part] = []
    matters = [(name, part) for name, part in members["matters"] if part > 0]
    if matters:
        parts += [
            Heading("Which columns matter"),
            Picture(
                "columns",
                partial(drawings.column_bars, matters),
                "Rows predicted as another class if a column is shuffled",
                "Permutation importance: rows, of 300 at most, that are predicted as another class if the "
                "column is shuffled. Columns with the same information share their effect."
                + (f" The {drawings.MAX_COLUMNS} largest." if len(matters) > drawings.MAX_COLUMNS else ""),
                partial(drawings.column_bars, matters, narrow=True),
            ),
        ]
    columns: list[Line] = [("column", "kind", "why"), *(tuple(line) for line in members["columns"])]
    if len(columns) > 2 and len({line[1:] for line in columns[1:]}) == 1:
        columns = [columns[0], (f"all {len(columns) - 1} columns", *columns[1][1:])]
    weights: list[Line] = [("member", "weight", "why")]
    weights += [(name, f"{weight:.2f}", why) for name, weight, why in members["members"]]
    prior: list[Line] = [("class", "frequency", "standard error")]
    prior += [(name, f"{p:.2f}", f"{error:.2f}") for name, p, error in members["prior"]]
    return [
        *parts,
        Heading("How predictions are made"),
        Table(
            "Members and their weights", weights, "Class probabilities are the weighted mean of the members'."
        ),
        Table("Class frequencies among rows without a label", prior, "As the model assumes them."),
        Table("What was done with each column", columns[: MAX_LISTED + 1], _more(columns)),
    ]


def _more(columns: list[Line]) -> str:
    left = len(columns) - 1 - MAX_LISTED
    return (
        f"And {left} more columns."
        if left > 0
        else "Wrong? Set it with --column NAME=KIND: quantity, category, date, text or drop."
    )


def _predictions(path: Path) -> tuple[list[str], list[list[str]]]:
    header, *lines = read_cells(path) or [[]]
    if len(header) < 4 or any(
        len(line) != len(header) or not all(map(is_number, line[3:])) for line in lines
    ):
        raise ValueError(f"{path} must be as ebse wrote it, got another table; restore it, or fit again")
    return header, lines


def _rows(head: Line, lines: list[list[str]]) -> list[Line]:
    return [head, *((line[0], line[2], *line[3:]) for line in lines[:MAX_ROWS])]


def _evaluated(rows: list[Row]) -> list[Part]:
    """Accuracies of the methods that were run, and their differences to the baseline of the evaluation."""
    evaluated = [row for row in rows if row["kind"] == "accuracy"]
    shots = sorted({row["n_shots"] for row in evaluated})
    if not shots:
        return []
    methods = list(dict.fromkeys(row["method"] for row in evaluated))
    baseline = evaluated[-1].get("baseline", REFERENCE if REFERENCE in methods else PLAIN)
    described = [f"{name}: {METHODS[name]}." for name in methods if name in METHODS]
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
