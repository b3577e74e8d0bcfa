"""``ebse fit`` and ``ebse resume``: a model of the user's own data, in a folder that survives."""

import importlib.util
import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse.cli._command import Json, command, there
from ebse.workflow.fit_config import FitConfig
from ebse.workflow.run_folder import read_header

fit_app = command(
    "fit",
    "fit table.csv",
    "fit table.csv --label species --split",
    "fit digits.npz --label y --n-components 400 --n-epochs 20",
    "fit photos/ --label folder",
)
resume_app = command("resume", "resume runs/table")

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
    there(Path(config.data))
    # Torch and scikit-learn take seconds to import: help and misspelt names need not wait for them.
    from ebse.cli import fits

    fits.fit(config, folder, force=force, json=json, tensorboard=tensorboard)


@resume_app.default
def resume(run: Path, *, json: Json = False) -> None:
    """Go on with a run that was stopped; a finished one stays as it is.

    Parameters
    ----------
    run
        Folder that `ebse fit` or `ebse experiment` wrote.
    """
    there(run)
    if read_header(run)["experiment"] != "fit":
        from ebse.cli.experiment import resume_experiment

        resume_experiment(run, json=json)
        return
    from ebse.cli import fits

    fits.resume(run, json=json)


def _name(data: Path) -> str:
    """Of a folder, or of a file without its suffixes."""
    whole = data.resolve().name
    return whole if os.path.isdir(data) else whole.lstrip(".").split(".")[0] or whole
