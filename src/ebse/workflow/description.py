"""Descriptions of a run, a model or a data file, for ``ebse info``."""

from pathlib import Path
from typing import Any

import numpy as np

from ebse._archive import consistent, kind_of, read
from ebse.io import read_rows
from ebse.workflow.accuracy import accuracy_sentence
from ebse.workflow.fit_config import ENSEMBLE, OF_ENSEMBLE, OF_LABELS, columns_from
from ebse.workflow.run_folder import CONFIG, read_header, read_results

SHOWN = 8
"""Columns of the same kind that are named."""


def described(file: Path, *, label: str | None, **options: Any) -> dict[str, Any]:
    """Facts by name; the options are those of :func:`ebse.io.read_rows`."""
    if (file / CONFIG).is_file():
        return _run(file)
    if file.suffix == ".safetensors":
        return _model(file)
    return _data(file, label=label, **options)


def grouped_kinds(kinds: dict[Any, Any]) -> dict[str, str]:
    """Names of columns by their kind and why it is that."""
    alike: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        alike.setdefault(f"{kind.kind} ({kind.why})", []).append(str(name))
    return {
        what: ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        for what, names in alike.items()
    }


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
        facts |= {"labels": found["labels"]["labels"], "predicted": found["labels"]["predicted"]}
    if "members" in found:
        facts["accuracy"] = accuracy_sentence(found["members"])
        facts |= {f"weight of {name}": weight for name, weight, _ in found["members"]["members"]}
    # Settings of the model that was not fitted would mislead.
    others = (*ENSEMBLE, *OF_ENSEMBLE) if "members" in found else OF_LABELS
    return {
        **facts,
        **{
            name: value
            for name, value in header["config"].items()
            if value is not None and value is not False and value != [] and name not in others
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


def _data(path: Path, *, label: str | None, column: tuple[str, ...], **options: Any) -> dict[str, Any]:
    from ebse.semi_supervised._columns import as_frame, column_kinds

    rows = read_rows(path, label=label, raw=True, **options)
    X = as_frame(rows.X)
    found: dict[str, Any] = {"rows": len(X), "columns": len(rows.names)}
    if rows.shape is not None:
        found["images"] = f"{rows.shape[1]} × {rows.shape[0]} pixels"
    found["missing"] = int(X.isna().to_numpy().sum())
    kinds = {name: kind for name, (_, kind) in column_kinds(X, columns_from(column)).items()}
    found |= grouped_kinds(kinds)
    if rows.labels is not None:
        words, counts = np.unique([str(x) for x in rows.labels if x is not None], return_counts=True)
        found["labels"] = {str(w): int(n) for w, n in zip(words, counts, strict=True)}
        found["unlabeled"] = len(X) - int(counts.sum())
    return found | ({"notes": list(rows.notes)} if rows.notes else {})
