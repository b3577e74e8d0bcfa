"""A fit to a user's own data, in a folder: it can be stopped, goes on, and is used from there."""

import os
import shutil
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse._atomic import in_place
from ebse._estimators import seed_of
from ebse._validation import count
from ebse.ensemble import RBSE
from ebse.ensemble._fit import fit_in_folder, require_settings
from ebse.io import Rows, read_arrays, read_rows
from ebse.semi_supervised import SpreadingClassifier
from ebse.workflow._spread import (
    load_spread,
    require_sizes,
    require_spreading,
    save_spread,
    spread_over,
    spreads,
)
from ebse.workflow.columns import Columns
from ebse.workflow.fit_config import FitConfig
from ebse.workflow.fit_pictures import save_pictures
from ebse.workflow.outputs import write_predictions
from ebse.workflow.prediction import Labeled, classified, on_unit_scale, prepared, require_classes
from ebse.workflow.run_folder import CONFIG, LOCK, ROWS, Lock, Run, Step, read_header, read_results

EXPERIMENT = "fit"
MODEL, COLUMNS, LABELED, PICTURES = "model.safetensors", "columns.npz", "labeled.npz", "pictures.npz"
SPREAD = "spreading.npz"
N_NEXT = 10
"""Rows that are named to be labeled next."""
PREDICTIONS, PAGE, TRAINING = "predictions.csv", "report.html", "training"
FILES = (CONFIG, ROWS, MODEL, COLUMNS, LABELED, SPREAD, PICTURES, PREDICTIONS, PAGE)
"""Everything that a run's folder has."""

Listener = Callable[[Step], None]


class Fitted(NamedTuple):
    """A finished fit."""

    folder: Path
    config: FitConfig
    columns: Columns
    rbse: RBSE
    labeled: Labeled | None
    spread: SpreadingClassifier | None
    """Where most rows had no label."""


def begin(config: FitConfig, folder: Path, *, force: bool) -> tuple[Run, Rows]:
    """A new run in ``folder``, and its rows; whatever is refused is refused before anything is written."""
    count("n_rounds", config.n_rounds, least=0)
    spreading = [name for name in ("class_prior", "n_rounds") if config.differs(name)]
    if spreading and config.label is None:
        raise ValueError(
            f"{spreading[0]} must be given with labels, got none; name their column with --label"
        )
    rows = read_rows(config.data, **config.reading)
    config = FitConfig(**{**vars(config), "data": str(Path(config.data).resolve())})
    if rows.labels is not None:
        require_classes(rows)
        labeled = _known(rows.labels)
        for name in spreading:
            require_spreading(name, labeled)
        if config.class_prior is not None:
            require_sizes(config.class_prior, rows.labels[labeled].astype(str))
    columns = Columns.found_in(rows, split=config.split)
    require_settings(RBSE(**config.parameters), columns.filled(columns.apply(rows.X))[:2])
    # The estimator learns nothing at this rate, and says so nowhere.
    if config.learning_rate == 0:
        raise ValueError("learning_rate must be > 0, got 0; pass 0.1 for one")
    seed_of(config.random_state)
    require_folder(folder)
    held = None
    if (folder / CONFIG).exists():
        if not force:
            raise FileExistsError(
                f"{folder} must not hold a run already, got one of {Path(config_of(folder).data).name}; "
                "choose another folder with --out, begin anew with --force, or go on by "
                f"`ebse resume {folder}`"
            )
        config_of(folder)
        read_results(folder)
        held = Lock(folder)
        # Of a process that was killed while it wrote.
        partial = [path for path in folder.glob(".*.partial") if path.is_file()]
        known = {*(folder / name for name in (*FILES, LOCK, TRAINING)), *partial}
        others = sorted(path.name for path in folder.iterdir() if path not in known)
        if others:
            raise FileExistsError(
                f"{folder} must hold nothing but the run to begin anew, got {others[0]}; move it away, or "
                "choose another folder with --out"
            )
        shutil.rmtree(folder / TRAINING, ignore_errors=True)
        # The header goes last: without it nobody could tell that this is a run.
        for path in (*partial, *(folder / name for name in reversed(FILES))):
            path.unlink(missing_ok=True)
    return Run(folder, EXPERIMENT, config, data=_checksum(rows), lock=held), rows


def finished(folder: Path) -> bool:
    """Whether everything is done."""
    return any(row["kind"] == "finished" for row in read_results(folder))


def carry_out(run: Run, rows: Rows, listener: Listener) -> Fitted:
    """Train, or go on, and leave everything in the folder that is made of the rows."""
    config: FitConfig = run.config
    columns = Columns.found_in(rows, split=config.split)
    if (run.folder / COLUMNS).exists():
        _require_same(rows.path, _columns(run.folder), columns)
    else:
        arrays = {"names": np.array(columns.names), "source": columns.source, "cuts": columns.cuts}
        _save(run.folder / COLUMNS, **arrays, shape=_shape(columns))
    X = columns.filled(columns.apply(rows.X))
    rbse = RBSE(**config.parameters)
    n_epochs, began = require_settings(rbse, X), time.perf_counter()

    def epoch(row: dict[str, float]) -> None:
        known = row.get("pseudo_log_likelihood")
        text = "" if known is None else f", pseudo-log-likelihood {known:.2f}"
        listener(Step(f"epoch {row['epoch']:.0f} of {n_epochs}{text}", row["epoch"], n_epochs, "epochs"))

    try:
        fit_in_folder(rbse, X, run.folder / TRAINING, callback=epoch)
    except FloatingPointError as error:
        what = str(error).partition(". The ensemble")[0]
        raise ValueError(f"{what}; begin anew with --force and other settings") from None
    except ValueError as error:
        # The training run speaks of its rows by their letter.
        raise (
            _changed(rows.path) if str(error).startswith(("v must be what", "v must have shape")) else error
        ) from None
    rbse.save(run.folder / MODEL)
    if not run.has(kind="training"):
        seconds = time.perf_counter() - began
        run.add({"kind": "training", "model": config.law, "seconds": seconds, "history": rbse.history_})
    save_pictures(run.folder / PICTURES, rbse, columns)
    labeled, spread = _labels(run, rbse, columns, rows, listener)
    run.add({"kind": "finished", "n_rows": len(rows.X), "n_columns": len(rows.names)})
    shutil.rmtree(run.folder / TRAINING, ignore_errors=True)
    return Fitted(run.folder, config, columns, rbse, labeled, spread)


def require_folder(folder: Path) -> None:
    """Refuse a name at which, or above which, there is a file."""
    there = next((path for path in (folder, *folder.parents) if os.path.exists(path)), None)
    if there is not None and not there.is_dir():
        raise NotADirectoryError(f"{there} must be a folder, got a file; choose another name")


def config_of(folder: Path) -> FitConfig:
    """Settings of the run in a folder."""
    require_folder(folder)
    header = read_header(folder)
    if header["experiment"] != EXPERIMENT:
        raise ValueError(
            f"{folder} must be a run of `ebse fit`, got one of {header['experiment']}; give that of a fit"
        )
    return FitConfig.from_json(header["config"])


def resumed(folder: Path, rows: Rows | None = None) -> Run:
    """The run in a folder, to be gone on with; the rows, if given, must be those that it began with."""
    config, began = config_of(folder), read_header(folder).get("data")
    if rows is not None and began is not None and began != _checksum(rows):
        raise _changed(rows.path)
    return Run(folder, EXPERIMENT, config, data=began)


def load(folder: Path) -> Fitted:
    """A finished fit; one that is not is refused."""
    config = config_of(folder)
    if not finished(folder):
        raise ValueError(f"{folder} must be finished, got a run under way; go on with `ebse resume {folder}`")
    labeled = None
    if (folder / LABELED).exists():
        labeled = Labeled(**read_arrays(folder / LABELED, "X", "y"))
    held = (folder / SPREAD).exists()
    spread = load_spread(folder / SPREAD, **config.spreading) if held else None
    return Fitted(folder, config, _columns(folder), RBSE.load(folder / MODEL), labeled, spread)


def _columns(folder: Path) -> Columns:
    held = read_arrays(folder / COLUMNS, "names", "source", "cuts", "shape")
    shape = tuple(int(n) for n in held["shape"])
    names = tuple(held["names"].tolist())
    return Columns(names, held["source"], held["cuts"], shape or None)  # type: ignore[arg-type]


def _require_same(path: Path, was: Columns, now: Columns) -> None:
    """Refuse to go on with other columns than the run began with."""
    alike = was.names == now.names and was.shape == now.shape
    if not alike or not np.array_equal(was.cuts, now.cuts, equal_nan=True):
        raise _changed(path)


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} must be what the run began with, got other rows or columns; restore it, or begin anew with "
        "`ebse fit --force`"
    )


def _labels(
    run: Run, rbse: RBSE, columns: Columns, rows: Rows, listener: Listener
) -> tuple[Labeled | None, SpreadingClassifier | None]:
    """Labeled rows, kept beside the model, and what the others are taken for."""
    if rows.labels is None:
        return None, None
    known, seed = _known(rows.labels), run.config.random_state
    labeled, spread = Labeled(rows.X[known], rows.labels[known].astype(str)), None
    label_next: list[int] = []
    _save(run.folder / LABELED, X=labeled.X, y=labeled.y)
    if spreads(known):
        listener(Step("labels spread over all rows", 0, 1))
        X = on_unit_scale(rbse, prepared(rbse, columns, rows.X))
        spread = spread_over(X, known, labeled.y, seed=seed, **run.config.spreading)
        save_spread(run.folder / SPREAD, spread)
        unlabeled = np.flatnonzero(~known)
        label_next = (unlabeled[spread.suggest(N_NEXT, X=X[unlabeled])] + 1).tolist()
    found = classified(rbse, columns, labeled, rows.X, spread=spread, seed=seed)
    write_predictions(run.folder / PREDICTIONS, rows, found)
    if not run.has(kind="labels"):
        counts = {name: int((labeled.y == name).sum()) for name in found.classes.tolist()}
        given = {"labels": counts, "n_sweeps": found.n_sweeps, "source": found.source}
        run.add({"kind": "labels", **given, "predicted": found.counts(), "label_next": label_next})
    return labeled, spread


def _known(labels: Any) -> npt.NDArray[np.bool_]:
    """Which rows have a label."""
    return np.array([label is not None for label in labels])


def _checksum(rows: Rows) -> int:
    """Of the rows and their labels."""
    total = zlib.crc32(np.ascontiguousarray(rows.X).tobytes())
    return zlib.crc32(repr(None if rows.labels is None else rows.labels.tolist()).encode(), total)


def _shape(columns: Columns) -> Any:
    return np.array([] if columns.shape is None else columns.shape, dtype=np.int64)


def _save(path: Path, **arrays: Any) -> None:
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
