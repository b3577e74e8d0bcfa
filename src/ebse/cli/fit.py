"""``ebse fit``: a model of the user's own data, in a run folder."""

import importlib.util
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ebse.cli._command import Json, command, require_existing
from ebse.cli._show import fail, note, say, say_json, stages_shown
from ebse.workflow.fit_config import RUN, FitConfig

if TYPE_CHECKING:
    from ebse.workflow.fit import Fitted, Plan
    from ebse.workflow.run_folder import Run

app = command(
    "fit",
    "fit table.csv --label species",
    "fit visits.xlsx --label outcome --id patient --column zip=category",
    "fit photos/ --label folder",
    "fit digits.npz --label y --model rbse --n-components 400",
    about="""With --label, where only some rows have a label, all rows get a predicted class
(predictions.csv), and the page (report.html) estimates the accuracy and lists the rows to label next. Columns
may hold numbers, words, dates and text, and entries may be missing. Without --label, an ensemble of
restricted Boltzmann machines learns features of the rows. Everything is in the run folder. A fit that is
stopped continues with `ebse resume`.""",
)

TERMINATED = 128 + signal.SIGTERM
"""The exit code of shells after the signal of a shutdown."""


@app.default
def fit(
    config: Annotated[FitConfig, Parameter(name="*")],
    *,
    out: Annotated[
        Path | None, Parameter(group=RUN, help="Folder of the run. Default: runs/ and the name of DATA.")
    ] = None,
    force: Annotated[
        bool, Parameter(group=RUN, negative=(), help="Delete a run that is in the folder already.")
    ] = False,
    json: Annotated[Json, Parameter(group=RUN)] = False,
    tensorboard: Annotated[
        Path | None, Parameter(group=RUN, help="Folder for TensorBoard curves of the ensemble's training.")
    ] = None,
) -> None:
    """Fit a model to your own data."""
    if tensorboard is not None:
        config = _with_ensemble(config)
    folder = out or Path("runs") / _name(Path(config.data))
    require_existing(Path(config.data))
    with stages_shown(quiet=json):
        # scikit-learn takes seconds to import: help and misspelt names need not wait for it.
        from ebse.workflow.fit import begin

        run, plan = begin(config, folder, force=force)
    carried_out(run, plan, json=json, tensorboard=tensorboard)


def carried_out(run: "Run", plan: "Plan", *, json: bool, tensorboard: Path | None = None) -> None:
    """Fit or resume, write the page, and print the result."""
    from ebse._stages import stage
    from ebse.workflow.fit import FEW_UPDATES, PAGE, carry_out, n_updates

    if not json:
        for sentence in plan.described(run.config):
            say(sentence)
    try:
        with stages_shown(quiet=json):
            fitted = carry_out(run, plan)
            with stage("report"):
                from ebse.report import write_report

                write_report([run.folder], run.place(PAGE))
    except (KeyboardInterrupt, SystemExit) as stop:
        how = f"stopped; `ebse resume {run.folder}` goes on"
        if isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(how) from None
        fail(how)
        raise SystemExit(TERMINATED) from None
    n = n_updates(fitted)
    if n is not None and n < FEW_UPDATES and not json:
        note(f"training was short, {n} updates; leave --n-epochs out to have 20,000")
    if tensorboard is not None:
        _write_curves(fitted, tensorboard)
    say_result(run.folder, json=json)


def say_result(folder: Path, *, json: bool, already: bool = False) -> None:
    """Print the result of a finished fit, and what to do with it."""
    from ebse.workflow.accuracy import Accuracy, accuracy_sentence
    from ebse.workflow.fit import MODEL, PAGE, PREDICTIONS
    from ebse.workflow.run_folder import read_results

    kinds = ("finished", "labels", "members")
    found = {row["kind"]: row for row in read_results(folder) if row["kind"] in kinds}
    facts: dict[str, Any] = {
        "run": str(folder),
        "finished_before": already,
        "n_rows": found["finished"]["n_rows"],
        "n_columns": found["finished"]["n_columns"],
        "model": str(folder / MODEL),
        "report": str(folder / PAGE),
    }
    if "labels" in found:
        facts |= {name: found["labels"].get(name) for name in ("labels", "predicted", "n_sweeps", "source")}
        facts["predictions"] = str(folder / PREDICTIONS)
    if "members" in found:
        accuracy = found["members"]["accuracy"]
        facts["accuracy"] = None if accuracy is None else Accuracy(*accuracy).as_facts()
        facts["label_next"] = found["members"]["label_next"]
    if json:
        say_json(facts)
        return
    if already:
        say(f"{folder} is finished: nothing to do.")
    if "labels" in facts:
        say(f"Labels: {_counted(facts['labels'])}. Predicted: {_counted(facts['predicted'])}.")
        say(f"Predicted classes of all rows: {facts['predictions']}")
        if "members" in found:
            say(f"Accuracy: {accuracy_sentence(found['members'])}")
            say("Rows to label next: see the page.")
            if found["labels"].get("never"):
                never = ", ".join(found["labels"]["never"])
                note(
                    f"no row without a label is predicted as {never}; label more rows of it, or pass "
                    "--class-prior equal if it is not rare"
                )
        elif facts["source"] == "mean":
            say("Model: a classifier on the ensemble's mean representation of each row (RBSEClassifier).")
        else:
            say(
                "Model: a classifier on ten representations of each row, by models sampled after "
                f"{facts['n_sweeps']} Gibbs sweeps (RBSEClassifier)."
            )
    say(f"Model file: {facts['model']}\nPage: {facts['report']}")
    verb = "predict" if "labels" in facts else "transform"
    say(f"Use it: ebse {verb} {folder} OTHER-DATA")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def _with_ensemble(config: FitConfig) -> FitConfig:
    """Settings that train an ensemble, whose training TensorBoard shows."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError(
            "--tensorboard needs the package tensorboard, which is not installed; pip install "
            "'ebse[tensorboard]'"
        )
    if config.model == "few-label":
        raise ValueError(
            "--tensorboard must be left out with --model few-label, which trains no ensemble; pass --model "
            "rbse"
        )
    return replace(config, model="rbse")


def _name(data: Path) -> str:
    """The name of a folder, or of a file without its suffixes."""
    name = data.resolve().name
    return name if os.path.isdir(data) else name.lstrip(".").split(".")[0] or name


def _write_curves(fitted: "Fitted", folder: Path) -> None:
    """The training history as TensorBoard curves."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))
    for row in fitted.ensemble.history_:
        for name, value in row.items():
            if name not in ("epoch", "step"):
                writer.add_scalar(name, value, int(row["step"]))
    writer.close()
