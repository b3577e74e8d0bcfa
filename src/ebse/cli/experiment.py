"""``ebse experiment``: section 3 of the paper, one command each."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ebse.cli._command import Json
from ebse.cli._show import Progress, say, say_json
from ebse.paper import ManifoldsConfig, OneShotConfig, run_manifolds, run_one_shot
from ebse.report.text_tables import text_tables
from ebse.workflow.run_folder import Step, read_header, read_results

app = App(
    name="experiment",
    help="Run an experiment of the paper. If it is stopped, the same command continues it.",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
)

Out = Annotated[
    Path | None, Parameter(help="Folder of the run; by default in runs/, named after the experiment.")
]
MANIFOLDS, ONE_SHOT = ManifoldsConfig(), OneShotConfig()

WORKERS = min(os.cpu_count() or 1, 8)


@app.command(name="manifolds")
def manifolds_command(
    *,
    out: Out = None,
    workers: Annotated[int, Parameter(help="Processes.")] = WORKERS,
    json: Json = False,
    config: Annotated[ManifoldsConfig, Parameter(name="*")] = MANIFOLDS,
) -> None:
    """How an RBM and two ensembles map points near a curve (section 3.1, Figure 2)."""
    folder = out or Path("runs") / "manifolds"
    _run(run_manifolds(config, folder, n_workers=workers), folder, json=json)


@app.command(name="one-shot")
def one_shot_command(
    *,
    out: Out = None,
    download: Annotated[bool, Parameter(help="Whether images may be downloaded.")] = True,
    json: Json = False,
    config: Annotated[OneShotConfig, Parameter(name="*")] = ONE_SHOT,
) -> None:
    """Accuracy of each representation with one label per class (section 3.2, Figure 3)."""
    folder = out or Path("runs") / f"one-shot-{Path(config.data).resolve().name}"
    _run(run_one_shot(config, folder, download=download), folder, json=json)


def resume_experiment(folder: Path, *, json: bool) -> None:
    """Continue the experiment in a folder with its own settings."""
    header = read_header(folder)
    known: dict[str, tuple[Any, Any]] = {
        "manifolds": (ManifoldsConfig, run_manifolds),
        "one-shot": (OneShotConfig, run_one_shot),
    }
    if header["experiment"] not in known:
        raise ValueError(f"{folder} must be a run of this version of ebse, got {header['experiment']!r}")
    settings, run = known[header["experiment"]]
    plain = {name: tuple(x) if isinstance(x, list) else x for name, x in header["config"].items()}
    _run(run(settings(**plain), folder), folder, json=json)


def _run(steps: Iterable[Step], folder: Path, *, json: bool) -> None:
    progress = Progress(quiet=json)
    try:
        for step in steps:
            progress.at(step)
    except KeyboardInterrupt:
        progress.close()
        raise KeyboardInterrupt(
            f"stopped; the finished results are in {folder}, and the same command continues"
        ) from None
    progress.close()
    if json:
        say_json({"run": str(folder), "n_results": len(read_results(folder))})
    else:
        for text in text_tables(folder):
            say(f"{text}\n")
        say(f"Run: {folder}\nFor a page about it: ebse report {folder}")
