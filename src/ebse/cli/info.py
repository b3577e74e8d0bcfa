"""``ebse info``: what a file or a folder holds, before anything is done with it."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ebse.cli.command import command
from ebse.cli.shown import say, say_json
from ebse.fitting.columns import Columns
from ebse.models.storage import kind_of, read, whole
from ebse.reading import read_rows
from ebse.runs import CONFIG, read_header, read_results

app = command("info", "info runs/table", "info model.safetensors --json", "info table.csv --label species")

SHOWN = 12
"""Values of a setting, or names, that are listed."""


@app.default
def info(
    file: Annotated[Path, Parameter(help="A run, a model (.safetensors), or data.")],
    *,
    label: Annotated[str | None, Parameter(help="Column of labels, to have them counted.")] = None,
    missing: Annotated[bool, Parameter(help="Whether entries of data may be missing.")] = False,
    delimiter: Annotated[str | None, Parameter(help="Of a table, where it is not the usual one.")] = None,
    array: Annotated[str | None, Parameter(help="The array of an npz file that holds the rows.")] = None,
    json: Annotated[bool, Parameter(name="--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """What a run, a model or a file of data holds."""
    if (file / CONFIG).is_file():
        facts = _run(file)
    elif file.suffix == ".safetensors":
        facts = _model(file)
    else:
        facts = _data(file, label=label, missing=missing, delimiter=delimiter, array=array)
    if json:
        say_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {_shown(value)}")


def _run(folder: Path) -> dict[str, Any]:
    header = read_header(folder)
    rows = read_results(folder)
    kinds = [row.get("kind") for row in rows]
    state = "finished" if "finished" in kinds else f"{len(rows)} results"
    return {
        "run of": header["experiment"],
        "state": state,
        **{name: value for name, value in header["config"].items() if value not in (None, [], False)},
        **{f"version of {name}": value for name, value in dict(header["versions"]).items()},
    }


def _model(path: Path) -> dict[str, Any]:
    kind = kind_of(path)
    facts, tensors = read(path, kind)
    found: dict[str, Any] = {"kind": kind}
    with whole(path):
        found["written by"] = f"ebse {facts['ebse']}"
        if "ensemble" in facts:
            found |= {f"law of {letter}": law[0] for letter, law in facts["ensemble"]["laws"].items()}
        found |= facts.get("parameters", {})
    found |= {name: list(x.shape) for name, x in tensors.items()}
    history = facts.get("history") or []
    if history:
        found |= {f"last {name}": value for name, value in history[-1].items()}
    return found


def _data(path: Path, *, label: str | None, **options: Any) -> dict[str, Any]:
    rows = read_rows(path, label=label, **options)
    X = rows.X
    columns = Columns.found_in(rows, split=False)
    found: dict[str, Any] = {
        "rows": len(X),
        "columns": len(rows.names),
        "values": columns.described(X),
        "named": list(rows.names) if rows.names[0] != "0" else "by number",
    }
    if rows.shape is not None:
        found["images"] = f"{rows.shape[1]} × {rows.shape[0]} pixels"
    if X.dtype.kind == "f":
        found["missing"] = int(np.isnan(X).sum())
    if rows.labels is not None:
        words, counts = np.unique([str(x) for x in rows.labels if x is not None], return_counts=True)
        found["labels"] = {str(w): int(n) for w, n in zip(words, counts, strict=True)}
        found["unlabelled"] = len(X) - int(counts.sum())
    return found | ({"notes": list(rows.notes)} if rows.notes else {})


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {n}" for name, n in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)})" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    return f"{value:g}" if isinstance(value, float) else str(value)
