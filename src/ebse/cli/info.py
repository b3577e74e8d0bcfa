"""``ebse info``: the contents of a run, a model or a data file."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ebse.cli._command import Array, Delimiter, Json, Sheet, command, require_existing
from ebse.cli._show import say, say_json

app = command("info", "info runs/table", "info model.safetensors --json", "info table.csv --label species")

SHOWN = 12
"""Values of a list that are shown."""


@app.default
def info(
    file: Annotated[Path, Parameter(help="A run, a model (.safetensors), or data.")],
    *,
    label: Annotated[str | None, Parameter(help="Column of labels, to have them counted.")] = None,
    id: Annotated[str | None, Parameter(help="Column with a name for each row.")] = None,  # noqa: A002
    drop: Annotated[tuple[str, ...], Parameter(help="Columns to leave out.")] = (),
    column: Annotated[
        tuple[str, ...], Parameter(help="Kinds of columns, such as zip=category, as `ebse fit` has them.")
    ] = (),
    sheet: Sheet = None,
    delimiter: Delimiter = None,
    header: Annotated[
        bool, Parameter(help="Whether the first line of a table holds the column names.")
    ] = True,
    array: Array = None,
    json: Json = False,
) -> None:
    """Describe a run, a model or a data file."""
    require_existing(file)
    from ebse.workflow.description import described

    facts = described(
        file,
        label=label,
        id=id,
        drop=drop,
        column=column,
        sheet=sheet,
        delimiter=delimiter,
        header=header,
        array=array,
    )
    if json:
        say_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {_shown(value)}")


def _shown(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {n}" for name, n in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)})" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    return f"{value:g}" if isinstance(value, float) else str(value)
