"""``ebse resume``: a run that was stopped, continued to its end."""

import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse.cli._command import Json, command, require_existing
from ebse.cli._show import stages_shown
from ebse.workflow.run_folder import read_header

app = command("resume", "resume runs/table")


@app.default
def resume(
    run: Annotated[Path, Parameter(help="Folder that `ebse fit` or `ebse experiment` wrote.")],
    *,
    json: Json = False,
) -> None:
    """Resume a run that was stopped; a finished one stays as it is."""
    require_existing(run)
    if read_header(run)["experiment"] != "fit":
        from ebse.cli.experiment import resume_experiment

        resume_experiment(run, json=json)
        return
    from ebse.cli.fit import carried_out, say_result
    from ebse.workflow.ensemble import TRAINING
    from ebse.workflow.fit import PAGE, finished, reopened, require_folder

    require_folder(run)
    if finished(run):
        if not (run / TRAINING).is_symlink():
            shutil.rmtree(run / TRAINING, ignore_errors=True)
        if not (run / PAGE).exists():
            # It was stopped between the last result and its page.
            from ebse.report import write_report

            write_report([run], run / PAGE)
        say_result(run, json=json, already=True)
        return
    with stages_shown(quiet=json):
        opened, plan = reopened(run)
    carried_out(opened, plan, json=json)
