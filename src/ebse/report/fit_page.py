"""What a page says of a fit to a user's own data."""

import csv
from pathlib import Path

from ebse.io import read_arrays
from ebse.report import drawings
from ebse.report.parts import Beside, Heading, Line, Part, Picture, Row, Section, Table, Text
from ebse.report.summaries import REFERENCE, accuracies, accuracy_lines
from ebse.workflow.run_folder import ROWS

UNSURE, LONGEST = 12, 24
"""Rows of the table of doubtful ones, and letters of a column's name."""


def fit_section(folder: Path, header: Row, rows: list[Row]) -> Section:
    """The part of the page that belongs to a fit."""
    config = header["config"]
    name = Path(config["data"]).name
    if not all(isinstance(row, dict) and "kind" in row for row in rows):
        raise ValueError(
            f"{folder / ROWS} must hold a line of JSON for each result; it is damaged: restore it from a copy"
        )
    found = {row["kind"]: row for row in rows}
    parts: list[Part] = [Table(_facts(config, found))]
    if "labels" in found:
        parts += _labels(folder, found["labels"])
    parts += _evaluated(rows)
    parts += _learned(folder)
    if "training" in found:
        parts.append(
            Picture(
                "training",
                lambda: drawings.learning_curves(rows),
                "Pseudo-log-likelihood against epochs",
                "How well each value is told by the others of its row, mean of some rows. Look whether the "
                "line is flat at its end: if it still climbs, more epochs (--n-epochs) would help.",
            )
        )
    lead = "An ensemble of models that learned from all rows without a label."
    return Section(f"fit-{folder.resolve().name}", f"What was learned from {name}", lead, [], parts, header)


def _facts(config: Row, found: dict[str, Row]) -> list[Line]:
    lines: list[Line] = [("", "")]
    if "finished" in found:
        lines.append(
            ("rows and columns", f"{found['finished']['n_rows']} × {found['finished']['n_columns']}")
        )
    asked = {"split at quartiles": config["split"], "missing entries filled": config["missing"]}
    done = [words for words, on in asked.items() if on]
    if done:
        lines.append(("columns", ", ".join(done)))
    if config.get("class_prior"):
        lines.append(("sizes of the classes, as told", config["class_prior"]))
    if found.get("labels", {}).get("source") == "spreading":
        lines.append(("rounds in which rows without a label speak", str(config["n_rounds"])))
    lines.append(("hidden units, law", f"{config['n_components']}, {config['law']}"))
    if "training" in found:
        history = found["training"]["history"]
        lines.append(("training", f"{len(history)} epochs, {found['training']['seconds']:.0f} s"))
    return lines


def _labels(folder: Path, row: Row) -> list[Part]:
    """Labels given, rows taken for each class, and the rows that are least sure."""
    counts: list[Line] = [("class", "labels given", "rows taken for it")]
    counts += [(name, str(n), str(row["predicted"].get(name, 0))) for name, n in row["labels"].items()]
    spread = row.get("source") == "spreading"
    how = (
        "Most rows have no label: the given labels spread over clusters of all rows (SpreadingClassifier); "
        "the ensemble has no part in what rows are taken for."
        if spread
        else "Rows are taken for what a classifier on the ensemble's representations says (RBSEClassifier)."
    )
    parts: list[Part] = [Heading("Labels"), Text(how), Table(counts)]
    path = folder / "predictions.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = [*csv.reader(file)] or [[]]
        if len(header) < 4 or any(len(line) != len(header) for line in lines):
            raise ValueError(f"{path} must be as ebse wrote it, got another table; restore it, or fit again")
        asked = [lines[n - 1] for n in row.get("label_next", ())]
        which = "Those that say most of other rows." if asked else "Those it is least sure of."
        if not asked:
            asked = [line for line in lines if not line[1]]
            asked.sort(key=lambda line: max(map(float, line[3:])))
        doubtful: list[Line] = [("row", "taken for", *header[3:])]
        doubtful += [(line[0], line[2], *line[3:]) for line in asked[:UNSURE]]
        if asked:
            parts += [
                Heading("Rows to label next"),
                Text(
                    f"{which} Row 1 is the first below the names. Shares rank rows; they are no "
                    "probabilities, and with few labels they can be sure of what is wrong. All rows: "
                    "predictions.csv, beside this page."
                ),
                Table(doubtful),
            ]
    return parts


def _evaluated(rows: list[Row]) -> list[Part]:
    shots = sorted({row["n_shots"] for row in rows if row["kind"] == "accuracy"})
    if not shots:
        return []
    by_shots = {k: accuracies(rows, k) for k in shots}
    first = by_shots[shots[0]]
    parts: list[Part] = [
        Heading("How well few labels do"),
        Text(
            f"{REFERENCE}: logistic regression on one representation of each row. RBSEClassifier: on "
            "several drawn ones where that promises a gain, otherwise the same. SpreadingClassifier: labels "
            "spread over all rows, those without a label, too. Intervals speak of other "
            "choices among the same labeled rows; where these are few, they say little of other rows."
        ),
        Picture(
            "dots",
            lambda: drawings.dots(first),
            "Accuracy of each method in every episode, with means and intervals",
            f"{shots[0]} label{'s' * (shots[0] > 1)} per class, one dot for each random choice of labeled "
            "rows; in red the mean and its 95 % interval. On the right, the same choices compared one by one "
            f"with {REFERENCE}.",
        ),
    ]
    for k in shots:
        parts += [Heading(f"{k} label{'s' * (k > 1)} per class"), Table(accuracy_lines(by_shots[k]))]
    return parts


def _learned(folder: Path) -> list[Part]:
    path = folder / "pictures.npz"
    if not path.exists():
        return []
    held = read_arrays(path, "shape", "names", "components", "samples")
    words = "Components: what a hidden unit looks for, red where a value speaks for it and blue against."
    made_up = "Rows that the ensemble makes up, 200 sweeps on. Look whether they could be rows of yours."
    if held["shape"].size:
        shape = (int(held["shape"][0]), int(held["shape"][1]))
        pictures = [
            Picture(
                "components",
                lambda: drawings.filters(held["components"], shape, kind="weights"),
                "Tiles of components",
                words,
            ),
            Picture(
                "samples",
                lambda: drawings.strip(held["samples"], shape, [""] * len(held["samples"]), columns=6),
                "Samples of the model",
                made_up,
            ),
        ]
        return [Heading("What the ensemble has learned"), Beside(pictures)]
    names = [str(name)[:LONGEST] for name in held["names"]]
    return [
        Heading("What the ensemble has learned"),
        Picture(
            "components",
            lambda: drawings.heat_map(held["components"][:30], names, label="component", signed=True),
            "Heat map of components against columns",
            words,
        ),
        Picture(
            "samples",
            lambda: drawings.heat_map(held["samples"], names, label="made-up row", signed=False),
            "Heat map of rows the ensemble makes up",
            f"{made_up} Light is the low end of a column, dark the high one.",
        ),
    ]
