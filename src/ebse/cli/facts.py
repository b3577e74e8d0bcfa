"""What ``ebse info`` tells of a run, a model or a file of data."""

from pathlib import Path
from typing import Any

import numpy as np

from ebse._archive import consistent, kind_of
from ebse.io import read_rows
from ebse.models.storage import read
from ebse.workflow.columns import Columns
from ebse.workflow.run_folder import CONFIG, read_header, read_results

SHOWN = 12
"""Values of a setting, or names, that are listed."""


def facts_of(file: Path, *, label: str | None, **options: Any) -> dict[str, Any]:
    """What there is to know, by name; the options are those of the readers."""
    if (file / CONFIG).is_file():
        return _run(file)
    if file.suffix == ".safetensors":
        return _model(file)
    return _data(file, label=label, **options)


def _run(folder: Path) -> dict[str, Any]:
    header = read_header(folder)
    rows = read_results(folder)
    found = {row["kind"]: row for row in rows}
    facts: dict[str, Any] = {"run of": header["experiment"], "results": len(rows)}
    if header["experiment"] == "fit":
        state = f"not finished; go on with `ebse resume {folder}`"
        facts = {"run of": "fit", "state": "finished" if "finished" in found else state}
    if "finished" in found:
        facts |= {"rows": found["finished"]["n_rows"], "columns": found["finished"]["n_columns"]}
    if "labels" in found:
        facts |= {"labels": found["labels"]["labels"], "rows taken for": found["labels"]["predicted"]}
    return {
        **facts,
        **{
            name: value
            for name, value in header["config"].items()
            if value is not None and value is not False and value != []
        },
        **{f"version of {name}": value for name, value in dict(header["versions"]).items()},
    }


def _model(path: Path) -> dict[str, Any]:
    kind = kind_of(path)
    facts, tensors = read(path, kind)
    found: dict[str, Any] = {"kind": kind}
    with consistent(path):
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
        found["unlabeled"] = len(X) - int(counts.sum())
    return found | ({"notes": list(rows.notes)} if rows.notes else {})


def shown(value: Any) -> str:
    """A fact on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {n}" for name, n in value.items())
    if isinstance(value, list):
        more = f", … ({len(value)})" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    return f"{value:g}" if isinstance(value, float) else str(value)
