"""``ebse``: experiments and reports from the command line."""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Toml

from ebse import __version__
from ebse.cli.shown import fail, note, say, say_json


class _Settings:
    """The TOML file of the call, if it has one; commands that are loaded late ask the same object."""

    path: Path | None = None

    def __call__(self, *arguments: Any) -> None:
        if self.path is not None:
            Toml(self.path, must_exist=True, use_commands_as_keys=False)(*arguments)


_SETTINGS = _Settings()

app = App(
    name="ebse",
    help="Energy-based stochastic ensembles: learn from many rows without labels, classify with few.",
    version=__version__,
    config=_SETTINGS,
    suppress_keyboard_interrupt=False,
)
app.meta.suppress_keyboard_interrupt = False
COMMANDS = {
    "fit": ("ebse.cli.fit:fit_app", "Learn an ensemble from your own data."),
    "resume": ("ebse.cli.fit:resume_app", "Go on with a run that was stopped."),
    "predict": ("ebse.cli.use:predict_app", "What rows are taken for, by few labels."),
    "transform": ("ebse.cli.use:transform_app", "Representations of rows, mean or drawn."),
    "sample": ("ebse.cli.use:sample_app", "New rows that the ensemble makes up."),
    "evaluate": ("ebse.cli.use:evaluate_app", "How well few labels do, on your own labels."),
    "info": ("ebse.cli.info:app", "What a run, a model or a file of data holds."),
    "experiment": ("ebse.cli.experiment:app", "Run an experiment of the paper."),
}
"""Loaded when they are called, so that help is there at once."""
for _name, (_place, _help) in COMMANDS.items():
    app.command(_place, name=_name, help=_help)

INTERRUPTED, BAD_INPUT = 130, 2


@app.command
def report(
    *runs: Path,
    out: Path = Path("report.html"),
    figures: Path | None = None,
    json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Write one HTML page about one or more runs.

    Parameters
    ----------
    runs
        Folders that `ebse fit` or `ebse experiment` wrote.
    out
        The page.
    figures
        Folder for the page's pictures as PNG files, if they are wanted by themselves.
    json
        Print one JSON object instead of a sentence.
    """
    from ebse.report import write_report

    path = write_report(runs, out, figures=figures)
    if json:
        say_json({"report": str(path)})
    else:
        say(f"Report: {path}")


@app.meta.default
def _with_config(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(help="A TOML file with settings by their names.")] = None,
) -> Any:
    _SETTINGS.path = config
    return app(tokens, exit_on_error=False, print_error=False)


def main() -> None:
    """Run a command; 0, 2 for bad input with one line that says what to do, 130 after Ctrl-C."""
    _SETTINGS.path = None
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    try:
        app.meta(sys.argv[1:], exit_on_error=False, print_error=False)
    except KeyboardInterrupt as stop:
        fail(str(stop) or "interrupted")
        raise SystemExit(INTERRUPTED) from None
    except CycloptsError as error:
        fail(f"{error}".strip() + "; see --help")
        raise SystemExit(BAD_INPUT) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        fail(str(error))
        raise SystemExit(BAD_INPUT) from None
