"""Parts that all commands share: how a command is declared, and its common options."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

Json = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print one line of JSON instead of sentences.")
]
Force = Annotated[bool, Parameter(negative=(), help="Overwrite what exists.")]
Run = Annotated[Path, Parameter(help="Folder that `ebse fit` wrote.")]
Data = Annotated[Path, Parameter(help="Rows with the same columns as the data of the run.")]
Delimiter = Annotated[str | None, Parameter(help='Character between the columns of a table, or "tab".')]
Array = Annotated[str | None, Parameter(help="Name of the array in an .npz file that holds the rows.")]
Sheet = Annotated[str | None, Parameter(help="Name of the sheet of an Excel file. Default: the first.")]


def command(name: str, *examples: str, about: str = "") -> App:
    """A command, with an explanation and examples at the end of its help."""
    lines = "\n".join(f"    ebse {example}" for example in examples)
    return App(
        name=name,
        help_epilogue=f"{about}\n\nExamples:\n\n{lines}".lstrip(),
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
    )


def require_existing(path: Path) -> None:
    """Refuse a name that does not exist, before anything else is loaded."""
    # os.path, because Path.exists raises where a name is too long.
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist; check the name of the file or folder")


def named_after(data: Path, what: str, suffix: str) -> Path:
    """The default name of an output file."""
    return Path(f"{data.resolve().name.split('.')[0]}-{what}{suffix}")
