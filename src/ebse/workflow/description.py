"""Descriptions of a run, a model or a data file, for ``ebse info``."""

from pathlib import Path
from typing import Any

import numpy as np

from ebse._archive import consistent, kind_of, read
from ebse.io import read_rows
from ebse.workflow.columns import Columns
from ebse.workflow.run_folder import CONFIG, read_header, read_results


def described(file: Path, *, label: str | None, **options: Any) -> dict[str, Any]:
    """Facts by name; the options are those of :func:`ebse.io.read_rows`."""
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
        labels = found["labels"]
        facts |= {"labels": labels["labels"], "predicted": labels["predicted"], "source": labels["source"]}
    return {
        **facts,
        **{
            name: value
            for name, value in header["config"].items()
            if value is not None and value is not False and value != []
        },
        **{f"version of {name}": value for name, value in header["versions"].items()},
    }


def _model(path: Path) -> dict[str, Any]:
    kind = kind_of(path)
    facts, arrays = read(path, kind)
    found: dict[str, Any] = {"kind": kind}
    with consistent(path):
        found["written by"] = f"ebse {facts['ebse']}"
        for each in (facts, *(value for value in facts.values() if isinstance(value, dict))):
            if "ensemble" in each:
                laws = each["ensemble"]["laws"]
                found |= {f"law of {letter}": law[0] for letter, law in laws.items()}
        found |= facts.get("parameters", {})
        history = facts.get("history") or []
        if history:
            found |= {f"last {name}": value for name, value in history[-1].items()}
    found |= {name: list(x.shape) for name, x in arrays.items()}
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
