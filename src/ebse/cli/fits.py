"""What ``ebse fit`` and ``ebse resume`` do."""

import shutil
import signal
from pathlib import Path
from typing import Any

from ebse.cli._show import Progress, fail, note, say, say_json
from ebse.io import Rows, read_rows
from ebse.report import write_report
from ebse.workflow.columns import Columns
from ebse.workflow.fit import (
    MODEL,
    PAGE,
    PREDICTIONS,
    TRAINING,
    Fitted,
    begin,
    carry_out,
    config_of,
    finished,
    require_folder,
    resumed,
)
from ebse.workflow.fit_config import FitConfig
from ebse.workflow.run_folder import Run, read_results

TERMINATED = 128 + signal.SIGTERM
"""The exit code after a shutdown's signal, as shells have it."""
FEW_UPDATES = 1_000
"""Below which training has hardly begun."""


def fit(config: FitConfig, folder: Path, *, force: bool, json: bool, tensorboard: Path | None) -> None:
    """Begin a run, carry it out, and say what there is."""
    run, rows = begin(config, folder, force=force)
    _carried_out(run, rows, json=json, tensorboard=tensorboard)


def resume(run: Path, *, json: bool) -> None:
    """Go on with a fit; a finished one stays as it is."""
    require_folder(run)
    if finished(run):
        shutil.rmtree(run / TRAINING, ignore_errors=True)
        if not (run / PAGE).exists():
            # It was stopped between the last result and its page.
            write_report([run], run / PAGE)
        _said(run, json=json, already=True)
        return
    config = config_of(run)
    rows = read_rows(config.data, **config.reading)
    _carried_out(resumed(run, rows), rows, json=json)


def _carried_out(run: Run, rows: Rows, *, json: bool, tensorboard: Path | None = None) -> None:
    config: FitConfig = run.config
    columns = Columns.found_in(rows, split=config.split)
    if not json:
        for remark in rows.notes:
            say(f"{rows.path.name}: {remark}")
        say(f"{rows.path.name}: {len(rows.X)} rows of {len(rows.names)} columns; {columns.described(rows.X)}")
    progress = Progress(quiet=json)
    try:
        fitted = carry_out(run, rows, progress.at)
    except (KeyboardInterrupt, SystemExit) as stop:
        progress.close()
        how = f"stopped; what was learned is kept, and `ebse resume {run.folder}` goes on"
        if isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(how) from None
        fail(how)
        raise SystemExit(TERMINATED) from None
    progress.close()
    n_updates = int(fitted.rbse.history_[-1]["step"]) if fitted.rbse.history_ else 0
    if n_updates < FEW_UPDATES and not json:
        note(f"training was short, {n_updates} updates; leave --n-epochs out to have 20,000")
    write_report([run.folder], run.folder / PAGE)
    if tensorboard is not None:
        _curves(fitted, tensorboard)
    _said(run.folder, json=json)


def _said(folder: Path, *, json: bool, already: bool = False) -> None:
    """What there is now, and what to do with it."""
    found = {row["kind"]: row for row in read_results(folder) if row["kind"] in ("finished", "labels")}
    facts: dict[str, Any] = {
        "run": str(folder),
        "finished_before": already,
        "n_rows": found["finished"].get("n_rows"),
        "n_columns": found["finished"].get("n_columns"),
        "model": str(folder / MODEL),
        "report": str(folder / PAGE),
    }
    if "labels" in found:
        facts |= {name: found["labels"][name] for name in ("labels", "predicted", "n_sweeps", "source")}
        facts["predictions"] = str(folder / PREDICTIONS)
    if json:
        say_json(facts)
        return
    if already:
        say(f"{folder} is finished: nothing to do.")
    if "labels" in facts:
        classes = ", ".join(f"{name} {n}" for name, n in facts["labels"].items())
        say(f"Labels: {classes}. What all rows are taken for: {facts['predictions']}")
        if facts["source"] == "spreading":
            sizes = config_of(folder).class_prior
            told = "" if sizes is None else f", with class sizes {sizes}"
            say(f"Most rows have no label: the labels spread over all rows (SpreadingClassifier){told}.")
            say(f"Rows to label next: on the page. With more labels: ebse evaluate {folder}")
        elif facts["source"] == "mean":
            say("Drawn models would not help on these rows: each has one representation, the mean.")
        else:
            say(f"Each row has ten representations, by models met on walks of {facts['n_sweeps']} sweeps.")
    say(f"Model: {facts['model']}\nPage: {facts['report']}")
    verb = "predict" if "labels" in facts else "transform"
    say(f"Use it: ebse {verb} {folder} OTHER-DATA")


def _curves(fitted: Fitted, folder: Path) -> None:
    """The history as TensorBoard's curves."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    for row in fitted.rbse.history_:
        for name, value in row.items():
            if name not in ("epoch", "step"):
                writer.add_scalar(name, value, int(row["step"]))
    writer.close()
