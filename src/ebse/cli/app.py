"""``ebse``: models of your own data, and the paper's experiments, from the command line."""

import os
import sys
import tomllib
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Toml

from ebse import __version__
from ebse.cli._show import fail, note, say, say_json


class _Settings:
    """The TOML file of the call, if it has one; commands that are loaded late ask the same object."""

    path: Path | None = None

    def __call__(self, *arguments: Any) -> None:
        if self.path is not None:
            _require_settings(self.path)
            Toml(self.path, must_exist=True, use_commands_as_keys=False)(*arguments)


def _require_settings(path: Path) -> None:
    """Refuse a file that is no TOML, or has tables: settings are named as the flags are, at its top."""
    try:
        tables = [name for name, value in tomllib.loads(path.read_text()).items() if isinstance(value, dict)]
    except FileNotFoundError:
        raise FileNotFoundError(f"--config must be a TOML file, got {path}, which does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--config must be a TOML file, got {path}: {error}; correct it") from None
    if tables:
        raise ValueError(
            f"--config must have settings at its top, got the table [{tables[0]}] in {path}; remove the line "
            "and leave its settings"
        )


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

INTERRUPTED, BAD_INPUT, BUG = 130, 2, 1


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
    if out.suffix.lower() not in (".html", ".htm") or out.is_dir():
        raise ValueError(f"--out must be a page that ends in .html, got {out}; choose another name")
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
    """Run a command; 0, 2 for bad input with one line that says what to do, 130 after Ctrl-C, 1 for a bug."""
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    try:
        app.meta(sys.argv[1:], exit_on_error=False, print_error=False)
    except KeyboardInterrupt as stop:
        fail(str(stop) or "interrupted")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read the output has enough of it, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CycloptsError as error:
        fail(f"{error}".strip().removesuffix(".") + "; see --help")
        raise SystemExit(BAD_INPUT) from None
    except (ValueError, TypeError, OSError, ImportError, FloatingPointError) as error:
        fail(_said(error))
        raise SystemExit(BAD_INPUT) from None
    except MemoryError:
        fail("there is not enough memory for this; ask for less, or give fewer rows")
        raise SystemExit(BAD_INPUT) from None
    except Exception:
        traceback.print_exc()
        fail("this is a bug of ebse, not of yours; please report it with the lines above")
        raise SystemExit(BUG) from None
    finally:
        _SETTINGS.path = None


def _said(error: Exception) -> str:
    """What an error says; of the system's own errors also about which file."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; check the name and the rights"
    return str(error)
