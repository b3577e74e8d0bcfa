"""``ebse experiment``: section 3 of the paper, one command each."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from ebse.cli._command import Json
from ebse.cli._show import Progress, say, say_json
from ebse.paper.manifold_experiment import ManifoldsConfig, manifolds
from ebse.paper.one_shot_config import OneShotConfig
from ebse.paper.one_shot_experiment import one_shot
from ebse.report.text_tables import text_tables
from ebse.workflow.run_folder import Step, read_header, read_results

app = App(
    name="experiment",
    help="Run an experiment of the paper; stopped, the same command goes on.",
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
    """Points near a curve, and what ensembles make of them (section 3.1, Figure 2)."""
    folder = out or Path("runs") / "manifolds"
    _carried_out(manifolds(config, folder, n_workers=workers), folder, json=json)


@app.command(name="one-shot")
def one_shot_command(
    *,
    out: Out = None,
    download: Annotated[bool, Parameter(help="Whether images may be downloaded.")] = True,
    json: Json = False,
    config: Annotated[OneShotConfig, Parameter(name="*")] = ONE_SHOT,
) -> None:
    """One label per class, and what each representation makes of it (section 3.2, Figure 3)."""
    folder = out or Path("runs") / f"one-shot-{Path(config.data).resolve().name}"
    _carried_out(one_shot(config, folder, download=download), folder, json=json)


def resume_experiment(folder: Path, *, json: bool) -> None:
    """Go on with the experiment in a folder, by the settings that it holds."""
    header = read_header(folder)
    known: dict[str, tuple[Any, Any]] = {
        "manifolds": (ManifoldsConfig, manifolds),
        "one-shot": (OneShotConfig, one_shot),
    }
    if header["experiment"] not in known:
        raise ValueError(f"{folder} must be a run of this version of ebse, got {header['experiment']!r}")
    settings, carry_out = known[header["experiment"]]
    plain = {name: tuple(x) if isinstance(x, list) else x for name, x in header["config"].items()}
    _carried_out(carry_out(settings(**plain), folder), folder, json=json)


def _carried_out(steps: Iterable[Step], folder: Path, *, json: bool) -> None:
    progress = Progress(quiet=json)
    try:
        for step in steps:
            progress.at(step)
    except KeyboardInterrupt:
        progress.close()
        raise KeyboardInterrupt(
            f"stopped; what is finished is in {folder}, and the same command goes on"
        ) from None
    progress.close()
    if json:
        say_json({"run": str(folder), "n_results": len(read_results(folder))})
    else:
        for text in text_tables(folder):
            say(f"{text}\n")
        say(f"Run: {folder}\nA page about it: ebse report {folder}")
