"""What a fitted run is used for: ``predict``, ``transform``, ``sample`` and ``evaluate``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from ebse.arguments import count
from ebse.cli.command import command
from ebse.cli.fit import Force, Json
from ebse.cli.shown import say, say_json
from ebse.evaluation import FewShotResult
from ebse.fitting import Fitted, load, resumed
from ebse.fitting.few_labels import Labelled, classified, evaluated, prepared, require_classes
from ebse.fitting.outputs import require_writable, write_array, write_predictions
from ebse.fitting.run import PAGE
from ebse.reading import Rows, read_rows
from ebse.report import write_report

predict_app = command(
    "predict", "predict runs/table new.csv", "predict runs/table new.csv --out answers.csv --json"
)
transform_app = command(
    "transform",
    "transform runs/table new.csv --out features.csv",
    "transform runs/digits more.npz --n-draws 10 --n-sweeps 50 --out draws.npy",
)
sample_app = command("sample", "sample runs/table --n-samples 100 --out made-up.csv")
evaluate_app = command("evaluate", "evaluate runs/table", "evaluate runs/table labelled.csv --shots 1 5 10")

Fit = Annotated[Path, Parameter(help="Folder that `ebse fit` wrote.")]
Data = Annotated[Path, Parameter(help="Rows with the columns that were learned from.")]
Delimiter = Annotated[str | None, Parameter(help="Of a table, where it is not the usual one.")]
Array = Annotated[str | None, Parameter(help="The array of an npz file that holds the rows.")]


@predict_app.default
def predict(
    run: Fit,
    data: Data,
    *,
    out: Annotated[Path | None, Parameter(help="Table of predictions; by default named after DATA.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """What rows are taken for, by the few labels of a run, and how often rightly where they have labels."""
    path = require_writable(out or _named(data, "predictions", ".csv"), force=force, suffixes=(".csv",))
    fitted = load(run)
    if fitted.labelled is None:
        raise ValueError(f"{run} must have learned labels, got a run without; fit with --label")
    rows = _rows(fitted, data, delimiter, array, labelled=True)
    known = set(fitted.labelled.y.tolist())
    given = [] if rows.labels is None else [label for label in rows.labels if label is not None]
    strange = [label for label in given if label not in known]
    if strange:
        raise ValueError(
            f"{data} must have labels that were learned ({', '.join(sorted(known))}), got {strange[0]!r}; "
            "correct it, or leave the column out"
        )
    found = classified(fitted.rbse, fitted.columns, fitted.labelled, rows.X, seed=fitted.config.random_state)
    write_predictions(path, rows, found)
    facts: dict[str, Any] = {"predictions": str(path), "n_rows": len(rows.X), "predicted": found.counts()}
    if given:
        pairs = [(a, b) for a, b in zip(rows.labels, found.labels, strict=True) if a is not None]  # type: ignore[arg-type]
        facts |= {"n_labelled": len(pairs), "accuracy": float(np.mean([a == b for a, b in pairs]))}
    if json:
        say_json(facts)
        return
    say(f"Predictions: {path} ({', '.join(f'{name} {n}' for name, n in facts['predicted'].items())})")
    if given:
        say(f"Right: {facts['accuracy']:.1%} of {facts['n_labelled']} rows that have labels")


@transform_app.default
def transform(
    run: Fit,
    data: Data,
    *,
    out: Annotated[Path | None, Parameter(help=".npy, .npz or .csv; by default named after DATA.")] = None,
    n_draws: Annotated[int, Parameter(help="Models drawn for each row; 0: the mean representation.")] = 0,
    n_sweeps: Annotated[int, Parameter(help="Sweeps of a walk before each draw.")] = 0,
    noise: Annotated[float | None, Parameter(help="Another noise for the draws.")] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Representations of rows: their mean (N, n_components), or draws (N, n_draws, n_components)."""
    count("n_draws", n_draws, least=0)
    suffixes = (".npy", ".npz") if n_draws else (".npy", ".npz", ".csv")
    path = require_writable(out or _named(data, "representations", ".npy"), force=force, suffixes=suffixes)
    fitted = load(run)
    rows = _rows(fitted, data, delimiter, array)
    X, rbse = prepared(fitted.rbse, fitted.columns, rows.X), fitted.rbse
    if n_draws:
        H = rbse.sample_transform(X, n_draws, n_sweeps=n_sweeps, noise=noise)
    elif n_sweeps or noise is not None:
        raise ValueError("n_draws must be >= 1 where there is a walk or noise, got 0; pass --n-draws 10")
    else:
        H = rbse.transform(X)
    write_array(path, H.astype(np.float32), [f"h{j}" for j in range(H.shape[-1])])
    _written(path, H.shape, json=json)


@sample_app.default
def sample(
    run: Fit,
    *,
    n_samples: Annotated[int, Parameter(name=["--n-samples", "-n"], help="New rows.")] = 16,
    n_sweeps: Annotated[int, Parameter(help="Sweeps of each chain.")] = 200,
    random_state: Annotated[int | None, Parameter(help="A seed; by default that of the run.")] = None,
    out: Annotated[Path, Parameter(help=".csv, .npy or .npz.")] = Path("samples.csv"),
    force: Force = False,
    json: Json = False,
) -> None:
    """New rows that the ensemble makes up: each value is the low or the high end of its feature."""
    count("n_samples", n_samples)
    count("n_sweeps", n_sweeps, least=0)
    path = require_writable(out, force=force)
    fitted = load(run)
    X = fitted.rbse.sample(n_samples, n_sweeps=n_sweeps, random_state=random_state)
    write_array(path, X, fitted.columns.features)
    _written(path, X.shape, json=json)


@evaluate_app.default
def evaluate(
    run: Fit,
    data: Annotated[Path | None, Parameter(help="Labelled rows; by default those of the run.")] = None,
    *,
    shots: Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative=())] = (1, 2, 5),
    n_episodes: Annotated[int, Parameter(help="Random choices of labelled rows.")] = 100,
    random_state: Annotated[int, Parameter(help="Which choices.")] = 0,
    delimiter: Delimiter = None,
    array: Array = None,
    json: Json = False,
) -> None:
    """How well few labels would do: many random choices of labelled rows, the others asked."""
    for k in shots or (0,):
        count("shots", k)
    count("n_episodes", n_episodes)
    fitted = load(run)
    labelled, place = fitted.labelled, run
    if data is not None:
        rows = _rows(fitted, data, delimiter, array, labelled=True)
        if rows.labels is None:
            raise ValueError(f"{data} must have the label column of the run, got none; fit with --label")
        known = np.array([label is not None for label in rows.labels])
        labelled, place = Labelled(rows.X[known], rows.labels[known].astype(str)), data
    if labelled is None:
        raise ValueError(f"{run} must have learned labels, got a run without; fit with --label")
    require_classes(Rows(place, labelled.X, (), labelled.y), least=max(shots) + 1)
    found = evaluated(
        fitted.rbse, fitted.columns, labelled, shots=shots, n_episodes=n_episodes, random_state=random_state
    )
    if data is None:
        _kept(fitted, found)
    if json:
        say_json({"rows": found.summary().to_dict("records")})
    else:
        say(str(found))


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
    fitted: Fitted, data: Path, delimiter: str | None, array: str | None, *, labelled: bool = False
) -> Rows:
    """Rows of another file with the columns of the run, and labels where it has some."""
    config, alike = fitted.config, data.suffix == Path(fitted.config.data).suffix
    return read_rows(
        data,
        label=config.label if labelled else None,
        only=fitted.columns.names,
        delimiter=delimiter or (config.delimiter if alike else None),
        array=array or (config.array if alike else None),
        missing=config.missing,
    )


def _named(data: Path, what: str, suffix: str) -> Path:
    return Path(f"{data.resolve().name.split('.')[0]}-{what}{suffix}")


def _written(path: Path, shape: tuple[int, ...], *, json: bool) -> None:
    if json:
        say_json({"out": str(path), "shape": list(shape)})
    else:
        say(f"{path}: {' × '.join(map(str, shape))}")
