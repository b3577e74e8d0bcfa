"""A fit to a user's own data, in a folder: it can be stopped, goes on, and is used from there."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ebse.estimators import RBSE
from ebse.estimators.folders import fit_in_folder, require_settings
from ebse.files import in_place
from ebse.fitting.columns import Columns
from ebse.fitting.few_labels import Labelled, classified, require_classes
from ebse.fitting.outputs import write_predictions
from ebse.fitting.pictures import save_pictures
from ebse.fitting.settings import FitConfig
from ebse.reading import Rows, read_rows
from ebse.runs import CONFIG, LOCK, ROWS, Run, Step, read_header
from ebse.runs import read_rows as results

EXPERIMENT = "fit"
MODEL, COLUMNS, LABELLED, PICTURES = "model.safetensors", "columns.npz", "labelled.npz", "pictures.npz"
PREDICTIONS, PAGE, TRAINING = "predictions.csv", "report.html", "training"
FILES = (CONFIG, ROWS, LOCK, MODEL, COLUMNS, LABELLED, PICTURES, PREDICTIONS, PAGE)
"""Everything that a run's folder has."""

Listener = Callable[[Step], None]


class Fitted(NamedTuple):
    """A finished fit."""

    folder: Path
    config: FitConfig
    columns: Columns
    rbse: RBSE
    labelled: Labelled | None


def begin(config: FitConfig, folder: Path, *, force: bool) -> tuple[Run, Rows]:
    """A new run in ``folder``, and its rows; whatever is refused is refused before anything is written."""
    config = FitConfig(**{**vars(config), "data": str(Path(config.data).resolve())})
    rows = read_rows(config.data, **config.reading)
    if rows.labels is not None:
        require_classes(rows)
    columns = Columns.found_in(rows, split=config.split)
    require_settings(RBSE(**config.parameters), columns.filled(columns.apply(rows.X[:2])))
    if (folder / CONFIG).exists():
        if not force:
            raise FileExistsError(
                f"{folder} must not hold a run already, got one; go on with it by `ebse resume {folder}`, "
                "choose another folder with --out, or begin anew with --force"
            )
        read_header(folder)
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / TRAINING, ignore_errors=True)
    return Run(folder, EXPERIMENT, config), rows


def finished(folder: Path) -> bool:
    """Whether everything is done."""
    return any(row["kind"] == "finished" for row in results(folder))


def carry_out(run: Run, rows: Rows, listener: Listener) -> Fitted:
    """Train, or go on, and leave everything in the folder that is made of the rows."""
    config: FitConfig = run.config
    columns = Columns.found_in(rows, split=config.split)
    held = {"names": np.array(columns.names), "source": columns.source, "cuts": columns.cuts}
    _save(run.folder / COLUMNS, **held, shape=_shape(columns))
    X = columns.filled(columns.apply(rows.X))
    rbse = RBSE(**config.parameters)
    n_epochs, began = require_settings(rbse, X), time.perf_counter()

    def epoch(row: dict[str, float]) -> None:
        known = row.get("pseudo_log_likelihood")
        text = "" if known is None else f", pseudo-log-likelihood {known:.2f}"
        listener(Step(f"epoch {row['epoch']:.0f} of {n_epochs}{text}", row["epoch"], n_epochs, "epochs"))

    fit_in_folder(rbse, X, run.folder / TRAINING, callback=epoch)
    rbse.save(run.folder / MODEL)
    if not run.has(kind="training"):
        seconds = time.perf_counter() - began
        run.add({"kind": "training", "model": config.law, "seconds": seconds, "history": rbse.history_})
    save_pictures(run.folder / PICTURES, rbse, columns)
    labelled = _labels(run, rbse, columns, rows)
    run.add({"kind": "finished", "n_rows": len(rows.X), "n_columns": len(rows.names)})
    shutil.rmtree(run.folder / TRAINING, ignore_errors=True)
    return Fitted(run.folder, config, columns, rbse, labelled)


def config_of(folder: Path) -> FitConfig:
    """Settings of the run in a folder."""
    header = read_header(folder)
    if header["experiment"] != EXPERIMENT:
        raise ValueError(
            f"{folder} must be a run of `ebse fit`, got one of {header['experiment']}; give that of a fit"
        )
    return FitConfig.from_json(header["config"])


def resumed(folder: Path) -> Run:
    """The run in a folder, to be gone on with."""
    return Run(folder, EXPERIMENT, config_of(folder))


def load(folder: Path) -> Fitted:
    """A finished fit; one that is not is refused."""
    config = config_of(folder)
    if not finished(folder):
        raise ValueError(f"{folder} must be finished, got a run under way; go on with `ebse resume {folder}`")
    with np.load(folder / COLUMNS, allow_pickle=False) as held:
        shape = tuple(int(n) for n in held["shape"])
        names = tuple(held["names"].tolist())
        columns = Columns(names, held["source"], held["cuts"], shape or None)  # type: ignore[arg-type]
    labelled = None
    if (folder / LABELLED).exists():
        with np.load(folder / LABELLED, allow_pickle=False) as held:
            labelled = Labelled(held["X"], held["y"])
    return Fitted(folder, config, columns, RBSE.load(folder / MODEL), labelled)


def _labels(run: Run, rbse: RBSE, columns: Columns, rows: Rows) -> Labelled | None:
    """Labelled rows, kept beside the model, and what the others are taken for."""
    if rows.labels is None:
        return None
    known = np.array([label is not None for label in rows.labels])
    labelled = Labelled(rows.X[known], rows.labels[known].astype(str))
    _save(run.folder / LABELLED, X=labelled.X, y=labelled.y)
    found = classified(rbse, columns, labelled, rows.X, seed=run.config.random_state)
    write_predictions(run.folder / PREDICTIONS, rows, found)
    if not run.has(kind="labels"):
        counts = {name: int((labelled.y == name).sum()) for name in found.classes.tolist()}
        given = {"labels": counts, "n_sweeps": found.n_sweeps, "source": found.source}
        run.add({"kind": "labels", **given, "predicted": found.counts()})
    return labelled


def _shape(columns: Columns) -> Any:
    return np.array([] if columns.shape is None else columns.shape, dtype=np.int64)


def _save(path: Path, **arrays: Any) -> None:
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
