"""``ebse``: experiments and reports from the command line."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Toml

from ebse import __version__
from ebse.cli.shown import fail, say


class _Settings:
    """The TOML file of the call, if it has one; commands that are loaded late ask the same object."""

    path: Path | None = None

    def __call__(self, *arguments: Any) -> None:
        if self.path is not None:
            Toml(self.path, must_exist=True, use_commands_as_keys=False)(*arguments)


_SETTINGS = _Settings()

app = App(
    name="ebse",
    help="Energy-based stochastic ensembles: the paper's experiments, and a page that shows them.",
    version=__version__,
    config=_SETTINGS,
    suppress_keyboard_interrupt=False,
)
app.meta.suppress_keyboard_interrupt = False
app.command("ebse.cli.experiment:app", name="experiment", help="Run an experiment of the paper.")

INTERRUPTED, BAD_INPUT = 130, 2


@app.command
def report(*runs: Path, out: Path = Path("report.html"), figures: Path | None = None) -> None:
    """Write one HTML page about one or more runs.

    Parameters
    ----------
    runs
        Folders that `ebse experiment` wrote.
    out
        The page.
    figures
        Folder for the page's pictures as PNG files, if they are wanted by themselves.
    """
    from ebse.report import write_report

    say(f"Report: {write_report(runs, out, figures=figures)}")


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
