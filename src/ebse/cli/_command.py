"""A command that is loaded when it is called."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

Json = Annotated[bool, Parameter(name="--json", help="Print one JSON object instead of sentences.")]


def command(name: str, *examples: str) -> App:
    """A command, with examples at the end of its help."""
    return App(
        name=name,
        help_epilogue="Examples:\n\n" + "\n".join(f"    ebse {example}" for example in examples),
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(consume_multiple=True, negative_iterable=()),
    )


def there(path: Path) -> None:
    """Refuse a name that does not exist, before anything else is loaded."""
    # Of os, because Path's own one raises where a name is too long.
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist; check the name of the file or folder")
