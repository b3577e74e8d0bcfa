"""``ebse fit`` and ``ebse resume``: a model of the user's own data, in a folder that survives."""

import importlib.util
import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ebse.cli.command import command
from ebse.cli.shown import Progress, say, say_json
from ebse.fitting import FitConfig, Fitted, begin, carry_out, finished, resumed
from ebse.fitting.columns import Columns
from ebse.fitting.run import MODEL, PAGE, PREDICTIONS, require_folder
from ebse.reading import Rows, read_rows
from ebse.report import write_report
from ebse.runs import Run, read_header, read_results

fit_app = command(
    "fit",
    "fit table.csv",
    "fit table.csv --label species --split",
    "fit digits.npz --label y --n-components 400 --n-epochs 20",
    "fit photos/ --label folder",
)
resume_app = command("resume", "resume runs/table")

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON object instead of sentences.")]
Force = Annotated[bool, Parameter(help="Begin anew where there is something already.")]


@fit_app.default
def fit(
    config: Annotated[FitConfig, Parameter(name="*")],
    *,
    out: Annotated[
        Path | None, Parameter(help="Folder of the run; by default runs/ and the name of DATA.")
    ] = None,
    force: Force = False,
    json: Json = False,
    tensorboard: Annotated[Path | None, Parameter(help="Folder for TensorBoard's curves.")] = None,
) -> None:
    """Learn an ensemble from rows without labels, and with --label what they are."""
    if tensorboard is not None and importlib.util.find_spec("tensorboard") is None:
        raise ImportError(
            "--tensorboard needs the package tensorboard, which is not installed; pip install "
            "'ebse[tensorboard]'"
        )
    folder = out or Path("runs") / _name(Path(config.data))
    run, rows = begin(config, folder, force=force)
    _carried_out(run, rows, json=json, tensorboard=tensorboard)


@resume_app.default
def resume(run: Path, *, json: Json = False) -> None:
    """Go on with a run that was stopped; a finished one stays as it is.

    Parameters
    ----------
    run
        Folder that `ebse fit` or `ebse experiment` wrote.
    """
    require_folder(run)
    if read_header(run)["experiment"] != "fit":
        from ebse.cli.experiment import resume_experiment

        resume_experiment(run, json=json)
        return
    if finished(run):
        if not (run / PAGE).exists():
            # It was stopped between the last result and its page.
            write_report([run], run / PAGE)
        _said(run, json=json, already=True)
        return
    held = resumed(run)
    config: FitConfig = held.config
    _carried_out(held, read_rows(config.data, **config.reading), json=json)


def _name(data: Path) -> str:
    """Of a folder, or of a file without its suffixes."""
    whole = data.resolve().name
    return whole if os.path.isdir(data) else whole.lstrip(".").split(".")[0] or whole


def _carried_out(run: Run, rows: Rows, *, json: bool, tensorboard: Path | None = None) -> None:
    config: FitConfig = run.config
    columns = Columns.found_in(rows, split=config.split)
    if not json:
        for note in rows.notes:
            say(f"{rows.path.name}: {note}")
        say(f"{rows.path.name}: {len(rows.X)} rows of {len(rows.names)} columns; {columns.described(rows.X)}")
    progress = Progress(quiet=json)
    try:
        fitted = carry_out(run, rows, progress.at)
    except KeyboardInterrupt:
        progress.close()
        raise KeyboardInterrupt(
            f"stopped; what was learned is kept, and `ebse resume {run.folder}` goes on"
        ) from None
    progress.close()
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
        "n_rows": found["finished"]["n_rows"],
        "n_columns": found["finished"]["n_columns"],
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
        if facts["source"] == "mean":
            say("The ensemble forgets at once where a walk began, so its mean representation is used.")
        else:
            say(f"Models are met on walks of {facts['n_sweeps']} sweeps.")
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
