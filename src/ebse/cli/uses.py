"""What ``ebse predict``, ``transform``, ``sample`` and ``evaluate`` do."""

from pathlib import Path
from typing import Any

import numpy as np

from ebse._validation import count
from ebse.cli._show import say, say_json
from ebse.evaluation import FewShotResult
from ebse.io import Rows, read_rows
from ebse.report import write_report
from ebse.workflow.fit import PAGE, Fitted, load, resumed
from ebse.workflow.outputs import require_writable, write_array, write_predictions
from ebse.workflow.prediction import Labeled, classified, evaluated, prepared, require_classes

BYTE = 255
"""The largest gray value of an 8-bit image."""
ENOUGH = 30
"""Labeled rows of each class from which on episodes say something of other rows."""


def predict(
    run: Path,
    data: Path,
    *,
    out: Path | None,
    delimiter: str | None,
    array: str | None,
    force: bool,
    json: bool,
) -> None:
    """What rows are taken for, by the few labels of a run, and how often rightly where they have labels."""
    fitted = load(run)
    if fitted.labeled is None:
        raise ValueError(f"{run} must have learned labels, got a run without; fit with --label")
    path = require_writable(out or _named(data, "predictions", ".csv"), force=force, suffixes=(".csv",))
    rows = _rows(fitted, data, delimiter, array, labeled=True)
    known = set(fitted.labeled.y.tolist())
    given = [] if rows.labels is None else [label for label in rows.labels if label is not None]
    strange = [label for label in given if label not in known]
    if strange:
        raise ValueError(
            f"{data} must have labels that were learned ({', '.join(sorted(known))}), got {strange[0]!r}; "
            "correct it, or leave the column out"
        )
    found = classified(
        fitted.rbse,
        fitted.columns,
        fitted.labeled,
        rows.X,
        spread=fitted.spread,
        seed=fitted.config.random_state,
    )
    write_predictions(path, rows, found)
    facts: dict[str, Any] = {"predictions": str(path), "n_rows": len(rows.X), "predicted": found.counts()}
    if given:
        facts |= _checked(fitted, rows, found.labels)
    if json:
        say_json(facts)
        return
    say(f"Predictions: {path} ({', '.join(f'{name} {n}' for name, n in facts['predicted'].items())})")
    if given:
        learned = f" ({facts['n_learned']} more were learned from)" * bool(facts["n_learned"])
        if facts["n_labeled"]:
            say(f"Right: {facts['accuracy']:.1%} of {facts['n_labeled']} rows that have labels{learned}")


def transform(
    run: Path,
    data: Path,
    *,
    out: Path | None,
    n_draws: int,
    n_sweeps: int,
    noise: float | None,
    random_state: int | None,
    delimiter: str | None,
    array: str | None,
    force: bool,
    json: bool,
) -> None:
    """Representations of rows: their mean (N, n_components), or draws (N, n_draws, n_components)."""
    count("n_draws", n_draws, least=0)
    suffixes = (".npy", ".npz") if n_draws else (".npy", ".npz", ".csv")
    fitted = load(run)
    path = require_writable(out or _named(data, "representations", ".npy"), force=force, suffixes=suffixes)
    rows = _rows(fitted, data, delimiter, array)
    X, rbse = prepared(fitted.rbse, fitted.columns, rows.X), fitted.rbse
    if n_draws:
        H = rbse.sample_transform(X, n_draws, n_sweeps=n_sweeps, noise=noise, random_state=random_state)
    elif n_sweeps or noise is not None:
        raise ValueError("n_draws must be >= 1 where there is a walk or noise, got 0; pass --n-draws 10")
    else:
        H = rbse.transform(X)
    write_array(path, H.astype(np.float32), [f"h{j}" for j in range(H.shape[-1])])
    _written(path, H.shape, json=json)


def sample(
    run: Path, *, n_samples: int, n_sweeps: int, random_state: int | None, out: Path, force: bool, json: bool
) -> None:
    """New rows that the ensemble makes up: each value is the low or the high end of its feature."""
    count("n_samples", n_samples)
    count("n_sweeps", n_sweeps, least=0)
    fitted = load(run)
    path = require_writable(out, force=force)
    X = fitted.rbse.sample(n_samples, n_sweeps=n_sweeps, random_state=random_state)
    write_array(path, X, fitted.columns.features)
    _written(path, X.shape, json=json)


def evaluate(
    run: Path,
    data: Path | None,
    *,
    shots: tuple[int, ...],
    n_episodes: int,
    random_state: int,
    delimiter: str | None,
    array: str | None,
    json: bool,
) -> None:
    """How well few labels would do: many random choices of labeled rows, the others asked."""
    for k in shots or (0,):
        count("shots", k)
    count("n_episodes", n_episodes)
    fitted = load(run)
    labeled, place = fitted.labeled, run
    if data is not None:
        rows = _rows(fitted, data, delimiter, array, labeled=True)
        if rows.labels is None:
            raise ValueError(f"{data} must have the label column of the run, got none; fit with --label")
        known = np.array([label is not None for label in rows.labels])
        labeled, place = Labeled(rows.X[known], rows.labels[known].astype(str)), data
    if labeled is None:
        raise ValueError(f"{run} must have learned labels, got a run without; fit with --label")
    require_classes(Rows(place, labeled.X, (), labeled.y), least=max(shots) + 1)
    found = evaluated(
        fitted.rbse,
        fitted.columns,
        labeled,
        spread=fitted.spread,
        shots=shots,
        n_episodes=n_episodes,
        random_state=random_state,
    )
    if data is None:
        _kept(fitted, found)
    few = len(labeled.y) < ENOUGH * len(set(labeled.y.tolist()))
    if json:
        say_json({"rows": found.summary().to_dict("records"), "too_few_to_tell": few})
        return
    say(str(found))
    if few:
        say(
            f"With care: {len(labeled.y)} labeled rows are few. Every choice is made of the same ones, and "
            "the intervals speak of these alone, not of other rows."
        )


def _checked(fitted: Fitted, rows: Rows, predicted: Any) -> dict[str, Any]:
    """How often rows with labels are taken for what they are; those that were learned from do not count."""
    assert fitted.labeled is not None
    assert rows.labels is not None
    learned = {(row.tobytes(), label) for row, label in zip(*fitted.labeled, strict=True)}
    X = rows.X.astype(fitted.labeled.X.dtype, copy=False)
    right, n_learned = [], 0
    for row, label, taken in zip(X, rows.labels, predicted, strict=True):
        if label is None:
            continue
        if (row.tobytes(), label) in learned:
            n_learned += 1
        else:
            right.append(label == taken)
    accuracy = float(np.mean(right)) if right else None
    return {"n_labeled": len(right), "n_learned": n_learned, "accuracy": accuracy}


def _kept(fitted: Fitted, found: FewShotResult) -> None:
    """Accuracies among the results of the run, and on its page."""
    run = resumed(fitted.folder)
    for (method, n_shots), rows in found.rows.groupby(["method", "n_shots"], sort=False):
        accuracies = rows["accuracy"].tolist()
        run.add(
            {"kind": "accuracy", "seed": None, "method": method, "n_shots": n_shots, "accuracies": accuracies}
        )
    write_report([fitted.folder], fitted.folder / PAGE)


def _rows(
    fitted: Fitted, data: Path, delimiter: str | None, array: str | None, *, labeled: bool = False
) -> Rows:
    """Rows of another file with the columns of the run, and labels where it has some."""
    config, alike = fitted.config, data.suffix == Path(fitted.config.data).suffix
    rows = read_rows(
        data,
        label=config.label if labeled else None,
        id=config.id,
        only=fitted.columns.names,
        delimiter=delimiter or (config.delimiter if alike else None),
        array=array or (config.array if alike else None),
        missing=config.missing,
    )
    _require_scale(fitted, rows)
    return rows


def _require_scale(fitted: Fitted, rows: Rows) -> None:
    """Refuse gray values where shares were learned from, and the other way round."""
    low, width = fitted.rbse.feature_low_, fitted.rbse.feature_width_
    shares_learned = not low.any() and bool((width == 1).all()) and bool(np.isnan(fitted.columns.cuts).all())
    X, must = rows.X, f"{rows.path} must be on the scale that was learned from"
    if bool((width == BYTE).all()) and X.dtype.kind == "f" and X.size and float(np.nanmax(X)) <= 1:
        raise ValueError(f"{must}, gray values from 0 to 255, got values up to 1; multiply them by 255")
    if shares_learned and X.dtype == np.uint8 and X.max(initial=0) > 1:
        raise ValueError(f"{must}, from 0 to 1, got gray values up to {X.max()}; divide them by 255")


def _named(data: Path, what: str, suffix: str) -> Path:
    return Path(f"{data.resolve().name.split('.')[0]}-{what}{suffix}")


def _written(path: Path, shape: tuple[int, ...], *, json: bool) -> None:
    if json:
        say_json({"out": str(path), "shape": list(shape)})
    else:
        say(f"{path}: {' × '.join(map(str, shape))}")
