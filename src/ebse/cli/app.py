"""``ebse``: models of your own data, and the paper's experiments, from the command line."""

import os
import sys
import tomllib
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Dict

from ebse import __version__
from ebse.cli._show import fail, note, tolerate_encodings


class _Settings:
    """The TOML file of the call, if it has one; commands that are loaded late use the same object."""

    path: Path | None = None

    def __call__(self, app: App, commands: tuple[str, ...], arguments: Any) -> None:
        if self.path is None:
            return
        content = _settings(self.path)
        # Under the names of the commands: at the top level a setting named like one, such as label, is lost.
        for name in reversed(commands):
            content = {name: content}
        Dict(content, source=str(self.path))(app, commands, arguments)


def _settings(path: Path) -> dict[str, Any]:
    """Settings of a TOML file, named like the flags; anything else, and tables, are refused."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"--config must be a TOML file, got {path}, which does not exist") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"--config must be a TOML file, got {path}: {error}; correct it") from None
    tables = [name for name, value in content.items() if isinstance(value, dict)]
    if tables:
        raise ValueError(
            f"--config must have settings at its top level, got the table [{tables[0]}] in {path}; "
            "remove the line and leave its settings"
        )
    return content


_SETTINGS = _Settings()

app = App(
    name="ebse",
    help="Classify many rows with few labels, and train energy-based stochastic ensembles.",
    version=__version__,
    config=_SETTINGS,
    suppress_keyboard_interrupt=False,
)
app.meta.suppress_keyboard_interrupt = False
COMMANDS = {
    "fit": "Fit a model to your own data.",
    "label": "Label rows in the browser while predictions for all rows follow.",
    "resume": "Resume a run that was stopped.",
    "predict": "Predict the classes of rows.",
    "transform": "Compute representations of rows (needs an ensemble).",
    "sample": "Generate new rows (needs an ensemble).",
    "evaluate": "Estimate the accuracy with few labels.",
    "info": "Describe a run, a model or a data file.",
    "experiment": "Run an experiment of the paper.",
    "report": "Write one HTML page about one or more runs.",
}
"""Commands, each in the module of its name, which is imported when the command is called."""
for _name, _help in COMMANDS.items():
    app.command(f"ebse.cli.{_name}:app", name=_name, help=_help)

INTERRUPTED, BAD_INPUT, BUG = 130, 2, 1


@app.meta.default
def _with_config(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(help="TOML file with settings, named like the flags.")] = None,
) -> Any:
    _SETTINGS.path = config
    return app(tokens, exit_on_error=False, print_error=False)


def main() -> None:
    """Run a command; 0, or 2 for bad input, with one line of error; 130 after Ctrl-C, 1 for a bug."""
    tolerate_encodings()
    warnings.showwarning = lambda message, *_, **__: note(str(message))
    try:
        app.meta(sys.argv[1:], exit_on_error=False, print_error=False)
    except KeyboardInterrupt as stop:
        fail(str(stop) or "interrupted")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the output has enough of it, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CycloptsError as error:
        fail(f"{error}".strip().removesuffix(".") + "; see --help")
        raise SystemExit(BAD_INPUT) from None
    except (ValueError, TypeError, OSError, ImportError, FloatingPointError) as error:
        fail(_message(error))
        raise SystemExit(BAD_INPUT) from None
    except MemoryError:
        fail("there is not enough memory for this; choose smaller settings, or give fewer rows")
        raise SystemExit(BAD_INPUT) from None
    except Exception:
        traceback.print_exc()
        fail("this is a bug in ebse, not in your data; please report it with the lines above")
        raise SystemExit(BUG) from None
    finally:
        _SETTINGS.path = None


def _message(error: Exception) -> str:
    """The text of an error; for errors of the system with the name of the file."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; check its name and permissions"
    return str(error)
