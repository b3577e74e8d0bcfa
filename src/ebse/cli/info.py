"""``ebse info``: what a file or a folder holds, before anything is done with it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ebse.cli._command import Json, command, there
from ebse.cli._show import say, say_json

app = command("info", "info runs/table", "info model.safetensors --json", "info table.csv --label species")


@app.default
def info(
    file: Annotated[Path, Parameter(help="A run, a model (.safetensors), or data.")],
    *,
    label: Annotated[str | None, Parameter(help="Column of labels, to have them counted.")] = None,
    id: Annotated[str | None, Parameter(help="Column that rows are called by.")] = None,  # noqa: A002
    drop: Annotated[tuple[str, ...], Parameter(help="Columns that are left out.")] = (),
    missing: Annotated[bool, Parameter(help="Whether entries of data may be missing.")] = False,
    delimiter: Annotated[str | None, Parameter(help="Of a table, where it is not the usual one.")] = None,
    array: Annotated[str | None, Parameter(help="The array of an npz file that holds the rows.")] = None,
    json: Json = False,
) -> None:
    """What a run, a model or a file of data holds."""
    there(file)
    from ebse.cli.facts import facts_of, shown

    facts = facts_of(file, label=label, id=id, drop=drop, missing=missing, delimiter=delimiter, array=array)
    if json:
        say_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {shown(value)}")
