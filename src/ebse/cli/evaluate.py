"""``ebse evaluate``: accuracy with few labels, over many random choices of labeled rows."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse._validation import count
from ebse.cli._command import Array, Delimiter, Json, Run, Sheet, command, require_existing
from ebse.cli._show import say, say_json
from ebse.workflow.run_folder import read_header

app = command("evaluate", "evaluate runs/table", "evaluate runs/table labeled.csv --shots 1 5 10")

SHOTS = (1, 2, 5)
ENOUGH = 30
"""Labeled rows per class from which on the accuracy carries over to other rows."""


@app.default
def evaluate(
    run: Run,
    data: Annotated[Path | None, Parameter(help="Labeled rows. Default: those of the run.")] = None,
    *,
    shots: Annotated[
        tuple[int, ...] | None,
        Parameter(
            consume_multiple=True,
            negative=(),
            help="Labeled rows per class. Default: of 1, 2 and 5 those that leave rows to test.",
        ),
    ] = None,
    n_episodes: Annotated[int, Parameter(help="Random choices of labeled rows.")] = 50,
    random_state: Annotated[int, Parameter(help="Seed of the choices.")] = 0,
    delimiter: Delimiter = None,
    array: Array = None,
    sheet: Sheet = None,
    json: Json = False,
) -> None:
    """Estimate the accuracy with few labels: labeled rows are chosen at random many times, the others tested.

    Without DATA the accuracies are added to the page of the run.
    """
    read_header(run)
    if data is not None:
        require_existing(data)
    from ebse.workflow import fit as workflow
    from ebse.workflow.prediction import Labeled, labeled_rows

    for k in (1,) if shots is None else shots or (0,):
        count("shots", k)
    count("n_episodes", n_episodes)
    fitted = workflow.load(run)
    if data is None:
        _ = fitted.classes
        labeled = fitted.labeled()
    else:
        rows = fitted.read(data, delimiter=delimiter, array=array, sheet=sheet, labels=True)
        if rows.labels is None:
            raise ValueError(f"{data} must have the label column of the run, got none; fit with --label")
        known = labeled_rows(rows.labels)
        labeled = Labeled(rows.X[known], rows.labels[known].astype(str))
    if shots is None:
        fewest = min(Counter(labeled.y.tolist()).values(), default=0)
        # With a single label in a class nothing can be tested, which is refused with the reason.
        shots = tuple(k for k in SHOTS if k < fewest) or SHOTS[:1]
    found = workflow.evaluate(
        fitted,
        labeled,
        run if data is None else data,
        shots=shots,
        n_episodes=n_episodes,
        random_state=random_state,
        progress=sys.stderr.isatty() and not json,
    )
    few = len(labeled.y) < ENOUGH * len(set(labeled.y.tolist()))
    if json:
        say_json({"rows": found.summary().to_dict("records"), "too_few_to_tell": few})
    else:
        say(str(found))
        if few:
            say(
                f"Caution: {len(labeled.y)} labeled rows are few. All choices are made from the same "
                "rows, and the intervals cover these choices alone, not other rows."
            )
    if data is None:
        workflow.keep_evaluation(fitted, found)
        from ebse.report import write_report

        write_report([run], run / workflow.PAGE)
