"""``ebse predict``: classes of rows, by the model of a run."""

import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ebse.cli._command import (
    Array,
    Data,
    Delimiter,
    Force,
    Json,
    Run,
    Sheet,
    command,
    named_after,
    require_existing,
)
from ebse.cli._show import say, say_json
from ebse.workflow.run_folder import read_header

app = command("predict", "predict runs/table new.csv", "predict runs/table new.csv --out answers.csv --json")


@app.default
def predict(
    run: Run,
    data: Data,
    *,
    out: Annotated[Path | None, Parameter(help="Table of predictions. Default: named after DATA.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    sheet: Sheet = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict the classes of rows; where they have labels, also the accuracy is printed."""
    read_header(run)
    require_existing(data)
    from ebse.workflow.fit import load
    from ebse.workflow.outputs import require_writable, write_predictions
    from ebse.workflow.prediction import checked, learned_rows, predicted

    fitted = load(run)
    known = fitted.classes
    path = require_writable(out or named_after(data, "predictions", ".csv"), force=force, suffixes=(".csv",))
    rows = fitted.read(data, delimiter=delimiter, array=array, sheet=sheet, labels=True)
    given = [] if rows.labels is None else [label for label in rows.labels if label is not None]
    unknown = [label for label in given if label not in known]
    if unknown:
        warnings.warn(
            f"{data} has {len(unknown)} labels that the run does not have, such as {unknown[0]!r}; they "
            f"count as wrong in the accuracy (labels of the run: {', '.join(sorted(known))})",
            stacklevel=2,
        )
    learned = learned_rows(fitted, rows) if given else None
    found = predicted(fitted.model, fitted.columns, rows.X)
    write_predictions(path, rows, found)
    facts: dict[str, Any] = {"predictions": str(path), "n_rows": len(rows.X), "predicted": found.counts()}
    if learned is not None:
        facts |= checked(found, rows, learned)._asdict()
    if json:
        say_json(facts)
        return
    say(f"Predictions: {path} ({', '.join(f'{name} {n}' for name, n in facts['predicted'].items())})")
    if facts.get("n_labeled"):
        more = f" ({facts['n_learned']} more were labeled in the fit)" * bool(facts["n_learned"])
        say(f"Accuracy: {facts['accuracy']:.1%} of {facts['n_labeled']} rows that have labels{more}")
