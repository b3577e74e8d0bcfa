"""Leaving with the result: a model for ``ebse predict``, predictions, labels and a page."""

import itertools
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ebse.labeling.events import undone
from ebse.labeling.model import UNDER_WAY
from ebse.workflow.accuracy import Accuracy

if TYPE_CHECKING:
    from ebse.labeling.session import Session

FOLDER = "export"
LABELS, PREDICTIONS, PAGE, MODEL = "labels.csv", "predictions.csv", "report.html", "model.safetensors"
DOWNLOADS = {
    PREDICTIONS: "the class of every row, with probabilities",
    LABELS: "your labels, and how each row was chosen",
    PAGE: "a page about the model, in one file",
    MODEL: "the model, for FewLabelClassifier.load",
}


def export(session: "Session") -> dict[str, Any]:
    """Write model, predictions, labels and page to the folder ``export`` of the session's run folder."""
    # Two tabs would write to the same place.
    with session.exporting:
        return _exported(session)


def _exported(session: "Session") -> dict[str, Any]:
    # The writers take seconds to import.
    from ebse.report import write_report
    from ebse.workflow.fit import write_fitted
    from ebse.workflow.outputs import write_table

    with session.lock:
        if session.model is None or session.rows is None:
            raise ValueError("export must wait until the rows are read, got none yet; try again soon")
        if len(set(session.answers.labels.values())) < 2:
            raise ValueError("export must have labels of two classes, got fewer; label more rows first")
        if session.model.phase in UNDER_WAY:
            raise ValueError(
                f"export must wait until the model is ready, got {session.model.phase} under way; the page "
                "shows its progress"
            )
        run, task, audited = session.run, session._task(), dict(session.answers.audited)
        events = list(session.events)
        follower, rows_read = session.model, session.rows
    model = follower.final(task)
    labels = np.full(len(rows_read.X), None, dtype=object)
    labels[list(task.labels)] = list(task.labels.values())
    found = model.label_distributions_
    predicted = model.classes_[found.argmax(1)]
    accuracy = None
    if audited:
        rows = list(audited)
        truth = np.array(list(audited.values()))
        accuracy = Accuracy.counted("audit", truth, predicted[rows].astype(str))
    place = run.folder / FOLDER
    fresh, old = run.folder / f".{FOLDER}.new", run.folder / f".{FOLDER}.old"
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    source = rows_read._replace(labels=labels)
    config = session.config
    if config.label is None:
        config = replace(config, label=_free_name(rows_read.names))
    chosen = _chosen(events)
    suggested = [row for row in task.labels if chosen.get(row) in ("suggest", "gallery", "map")]
    write_fitted(
        *(fresh, config, source, model),
        accuracy=accuracy,
        n_chosen=len(suggested),
        hidden=set(session.audit_rows),
    )
    # As predictions are numbered.
    places = rows_read.files or range(1, len(labels) + 1)
    write_table(
        fresh / LABELS,
        ["row", "label", "chosen by"],
        [
            *([places[row], name, chosen.get(row, "file")] for row, name in task.labels.items()),
            *([places[row], name, "audit"] for row, name in audited.items()),
        ],
    )
    write_report([fresh], fresh / PAGE)
    if place.exists():
        os.replace(place, old)
    os.replace(fresh, place)
    shutil.rmtree(old, ignore_errors=True)
    return {
        "folder": str(place),
        "files": [
            {"name": name, "what": what, "bytes": (place / name).stat().st_size}
            for name, what in DOWNLOADS.items()
            if (place / name).exists()
        ],
        "command": f"ebse predict {_quoted(place)} OTHER-DATA",
    }


def _chosen(events: list[dict[str, Any]]) -> dict[int, str]:
    """How each row was chosen that has a label."""
    gone = undone(events)
    in_force = [e for number, e in enumerate(events) if e["type"] == "label" and number not in gone]
    return {row: event["from"] for event in in_force for row in event["rows"]}


def _free_name(names: Sequence[str]) -> str:
    """A name for the column of labels that no other column has."""
    return next(name for i in itertools.count() if (name := f"label{i or ''}") not in names)


def _quoted(path: Path) -> str:
    text = str(path)
    return f'"{text}"' if " " in text else text
