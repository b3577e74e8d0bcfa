"""A fit to a user's own data in a run folder: it can be stopped and resumed, and is used from there.

With labels :class:`ebse.FewLabelClassifier`; without, and where a setting of it is given, an ensemble
(:class:`ebse.RBSE`), with a classifier if there are labels. Torch is imported only for an ensemble.
"""

import csv
import shutil
import warnings
import zlib
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pandas as pd

from ebse._archive import OURS, kind_of
from ebse._atomic import write_npz
from ebse._estimators import other_scale, seed_of
from ebse._stages import stage
from ebse._threads import threads_for_entries
from ebse.io import Rows, read_arrays, read_cells, read_rows
from ebse.io.arrays import damaged
from ebse.io.rows import bad, listed
from ebse.semi_supervised._columns import all_numbers, as_frame, column_kinds
from ebse.workflow.accuracy import AUDIT, Accuracy
from ebse.workflow.columns import Columns
from ebse.workflow.description import grouped_kinds
from ebse.workflow.ensemble import PICTURES, TRAINING, classifier_on, require_trainable, trained
from ebse.workflow.few_label_fit import (
    column_changes,
    far_rows,
    fit_few_label,
    held_back,
    member_votes,
)
from ebse.workflow.fit_config import ENSEMBLE, FEW_LABEL, OF_ENSEMBLE, FitConfig
from ebse.workflow.outputs import write_labeled, write_predictions
from ebse.workflow.prediction import (
    MEMBERS,
    Labeled,
    Predictions,
    evaluated,
    is_few_label,
    labeled_rows,
    predicted,
    require_classes,
)
from ebse.workflow.run_folder import CONFIG, LOCK, ROWS, Lock, Run, leftovers, read_header, read_results

if TYPE_CHECKING:
    from ebse.ensemble import RBSE
    from ebse.evaluation import FewShotResult

EXPERIMENT = "fit"
MODEL, COLUMNS = "model.safetensors", "columns.npz"
LABELED, LABELED_TABLE = "labeled.npz", "labeled.csv"
"""The labeled rows: of an array, or of a table."""
PREDICTIONS, PAGE = "predictions.csv", "report.html"
FILES = (CONFIG, ROWS, MODEL, COLUMNS, LABELED, LABELED_TABLE, PICTURES, PREDICTIONS, PAGE)
"""All files that a run folder may have."""
KINDS = ("FewLabelClassifier", "RBSEClassifier", "RBSE")
"""Estimators that the model of a run may be."""
N_NEXT, N_DOUBTFUL = 10, 12
"""Rows that are suggested for labeling, and most doubtful ones that are shown."""
N_CONTENTS, LONGEST = 4, 60
"""Columns of a row to label that are shown, and letters of an entry."""
FEW_UPDATES = 1_000
"""Updates below which an ensemble is hardly trained."""


class Plan(NamedTuple):
    """What is fitted: rows, the columns of an ensemble, and the kinds of those of the other classifier."""

    rows: Rows
    columns: Columns | None
    """Preprocessing for the ensemble; None for the classifier for few labels, which has its own."""
    kinds: dict[Any, Any]
    """Kind of each column, for the classifier for few labels."""

    def described(self, config: FitConfig) -> list[str]:
        """Sentences for the user about the data and the choice of the model."""
        rows, name = self.rows, self.rows.path.name
        said = [f"{name}: {remark}" for remark in rows.notes]
        size = f"{name}: {len(rows.X)} rows of {len(rows.names)} column{'s' * (len(rows.names) != 1)}"
        if self.columns is None:
            said += [size, *(f"  {what}: {names}" for what, names in grouped_kinds(self.kinds).items())]
        else:
            said.append(f"{size}; {self.columns.described(rows.X)}")
            n_missing = int(np.isnan(rows.X).sum()) if rows.X.dtype.kind == "f" else 0
            if n_missing:
                said.append(f"{name}: {n_missing} missing entries are imputed by the ensemble")
        if rows.labels is not None:
            said += [
                f"{name}: {remark}" for remark in _unlabeled_remarks(rows.labels, config.unlabeled_label)
            ]
            given = config.changed((*ENSEMBLE, *OF_ENSEMBLE))
            if config.model is None and given:
                said.append(
                    f"{given[0]} is a setting of the ensemble, so an ensemble is trained (--model rbse)"
                )
        return said


class Fitted(NamedTuple):
    """A finished fit."""

    folder: Path
    config: FitConfig
    columns: Columns | None
    """Preprocessing for an ensemble."""
    model: Any
    """A fitted FewLabelClassifier, RBSEClassifier, or RBSE where there are no labels."""

    @property
    def classes(self) -> list[str]:
        """The classes; refused where the run has no labels."""
        if not hasattr(self.model, "classes_"):
            raise ValueError(f"{self.folder} must have labels, got a run without; fit with --label")
        return [str(name) for name in self.model.classes_]

    @property
    def ensemble(self) -> "RBSE":
        """The ensemble; refused where none was trained."""
        if is_few_label(self.model):
            raise ValueError(
                f"{self.folder} must have an ensemble, got the classifier for few labels, which has none; "
                "fit with --model rbse"
            )
        return cast("RBSE", getattr(self.model, "representation_", self.model))

    def labeled(self) -> Labeled:
        """The labeled rows of the fit."""
        if (self.folder / LABELED_TABLE).exists():
            return self._labeled_table()
        path = self.folder / LABELED
        X, y = read_arrays(path, "X", "y").values()
        may_miss = self.columns is None or self.config.missing
        sound = (
            X.ndim == 2
            and X.shape[1] == (self.model.n_features_in_ if self.columns is None else len(self.columns.names))
            and X.dtype.kind in "uf"
            and y.shape == (len(X),)
            and y.dtype.kind == "U"
            and set(y.tolist()) == set(self.classes)
            and not np.isinf(X).any()
            and (may_miss or not np.isnan(X).any())
        )
        if not sound:
            raise damaged(path)
        return Labeled(X, y)

    def read(
        self,
        data: Path,
        *,
        delimiter: str | None = None,
        array: str | None = None,
        sheet: str | None = None,
        labels: bool = False,
    ) -> Rows:
        """Rows of another file with the columns of the run, and labels where it has some."""
        config = self.config
        alike = _format(data) == _format(Path(config.data))
        options: dict[str, Any] = {
            "label": config.label if labels else None,
            "id": config.id,
            "delimiter": delimiter or (config.delimiter if alike else None),
            "array": array or (config.array if alike else None),
            "sheet": sheet or (config.sheet if alike else None),
            "header": config.header or not alike,
            "unlabeled_label": config.unlabeled_label,
        }
        if self.columns is None:
            drop = config.drop if labels or config.label is None else (*config.drop, config.label)
            rows = self._columns_of_run(read_rows(data, **options, drop=drop, raw=True, lenient=True))
            wrong = other_scale(self.model._scale, all_numbers(as_frame(rows.X)), str(data))
            if wrong is not None:
                raise ValueError(wrong)
            return rows
        rows = read_rows(data, **options, only=self.columns.names, missing=config.missing)
        self.columns.require_scale(rows)
        return rows

    def _labeled_table(self) -> Labeled:
        """The labeled rows of a table, as words: the model knows how to read them."""
        path = self.folder / LABELED_TABLE
        try:
            header, *lines = read_cells(path)
        except (ValueError, OSError, csv.Error):
            raise damaged(path) from None
        names = [str(name) for name in getattr(self.model, "feature_names_in_", ())]
        whole = header[:-1] == names and all(len(line) == len(header) and line[-1] for line in lines)
        if not whole or not lines:
            raise damaged(path)
        cells = np.array(lines, dtype=object)
        X = pd.DataFrame(cells[:, :-1], columns=names)
        return Labeled(X.where(X != "", None), cells[:, -1].astype(str))

    def _columns_of_run(self, rows: Rows) -> Rows:
        """Rows with the columns of the run alone; a missing one is refused, others are left out and said."""
        names = [str(name) for name in getattr(self.model, "feature_names_in_", ())]
        if not names or not hasattr(rows.X, "columns"):
            n = self.model.n_features_in_
            if len(rows.names) != n:
                raise bad(
                    rows.path,
                    f"have {n} values in a row, as the data of the run",
                    f"{len(rows.names)}",
                    "give such",
                )
            return rows if names else rows._replace(X=np.asarray(rows.X))
        unused = {line[0] for line in self.model.columns_.itertuples(index=False) if line[1] == "drop"}
        lacking = [name for name in names if name not in rows.names and name not in unused]
        more = [name for name in rows.names if name not in names]
        if lacking:
            near = {name.casefold(): name for name in more}
            meant = near.get(lacking[0].casefold())
            raise bad(
                rows.path,
                "have the columns of the run",
                f"none named {listed(lacking)}" + (f", but {meant!r}" if meant else ""),
                "rename or add them, with empty entries if they are not known",
            )
        if more:
            warnings.warn(
                f"{rows.path} has columns that the run did not have, and they are not used: {listed(more)}",
                stacklevel=3,
            )
        kept = [name for name in names if name in rows.names]
        return rows._replace(X=rows.X[kept], names=tuple(kept))


def _format(path: Path) -> str:
    """The format of a file: all tables in text are alike."""
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    return "text" if suffix.lower() in (".csv", ".tsv") else suffix.lower()


def begin(config: FitConfig, folder: Path, *, force: bool) -> tuple[Run, Plan]:
    """A new run in ``folder``; whatever is refused is refused before anything is written or deleted."""
    plan = _planned(config)
    config = FitConfig(**{**vars(config), "data": str(Path(config.data).resolve())})
    require_folder(folder)
    lock, suggested = _cleared(folder, config, force=force) if (folder / CONFIG).exists() else (None, [])
    run = Run(folder, EXPERIMENT, config, data=checksum(plan.rows), lock=lock)
    if suggested:
        run.add({"kind": "suggested", "keys": suggested})
    return run, plan


def reopened(folder: Path) -> tuple[Run, Plan]:
    """The unfinished run in a folder; its data must be those that it began with."""
    config = config_of(folder)
    plan = _planned(config)
    began = read_header(folder).get("data")
    path = plan.rows.path
    if began is not None and began != checksum(plan.rows):
        raise _changed(path)
    if plan.columns is not None:
        held = folder / COLUMNS
        if held.exists() and not Columns.load(held).same_as(plan.columns):
            raise _changed(path)
    return Run(folder, EXPERIMENT, config, data=began), plan


def finished(folder: Path) -> bool:
    """Whether a run is finished."""
    return any(row["kind"] == "finished" for row in read_results(folder))


def carry_out(run: Run, plan: Plan) -> Fitted:
    """Fit, or resume, and write everything that a run folder has except the page."""
    rows, columns = plan.rows, plan.columns
    labeled = None
    if rows.labels is not None:
        known = labeled_rows(rows.labels)
        labeled = Labeled(rows.X[known], rows.labels[known].astype(str))
        _write_labeled(run, labeled)
    if columns is None:
        model, found = _few_label(run, rows)
    else:
        columns.save(run.place(COLUMNS))
        rbse = trained(run, columns, rows, _changed(rows.path))
        model, found = rbse, None
        if labeled is not None:
            model = classifier_on(rbse, columns, *labeled, seed=run.config.random_state)
            with stage("prediction"):
                found = predicted(model, columns, rows.X)
    model.save(run.place(MODEL))
    if found is not None:
        assert labeled is not None
        _keep_predictions(run, rows, labeled, found)
    run.add({"kind": "finished", "n_rows": len(rows.X), "n_columns": len(rows.names)})
    shutil.rmtree(run.folder / TRAINING, ignore_errors=True)
    return Fitted(run.folder, run.config, columns, model)


def write_fitted(
    folder: Path,
    config: FitConfig,
    rows: Rows,
    model: Any,
    *,
    accuracy: Accuracy | None,
    n_chosen: int,
    hidden: Collection[int] = (),
) -> None:
    """Write a FewLabelClassifier that was fitted to rows elsewhere as a finished run, without the page.

    ``hidden`` rows are neither listed as doubtful nor suggested: a person checks them without seeing what
    is predicted.
    """
    assert rows.labels is not None
    run = Run(folder, EXPERIMENT, config, data=checksum(rows))
    known = labeled_rows(rows.labels)
    labeled = Labeled(rows.X[known], rows.labels[known].astype(str))
    _write_labeled(run, labeled)
    found = Predictions(model.classes_, model.label_distributions_, MEMBERS, 0)
    matters = {} if rows.shape is not None else column_changes(model, seed=config.random_state)
    explained = _explained(run, model, rows, found, accuracy, matters, hidden)
    run.add(explained | {"n_chosen": n_chosen if accuracy is None or accuracy.how != AUDIT else 0})
    model.save(run.place(MODEL))
    _keep_predictions(run, rows, labeled, found)
    run.add({"kind": "finished", "n_rows": len(rows.X), "n_columns": len(rows.names)})


def _write_labeled(run: Run, labeled: Labeled) -> None:
    """The labeled rows, as they were given."""
    if hasattr(labeled.X, "columns"):
        write_labeled(run.place(LABELED_TABLE), labeled.X, labeled.y, str(run.config.label))
    else:
        write_npz(run.place(LABELED), X=labeled.X, y=labeled.y)


def n_updates(fitted: Fitted) -> int | None:
    """Updates that the ensemble was trained for; None where there is none."""
    if is_few_label(fitted.model):
        return None
    history = fitted.ensemble.history_
    return int(history[-1]["step"]) if history else 0


def load(folder: Path) -> Fitted:
    """A finished fit; an unfinished one is refused."""
    config = config_of(folder)
    if not finished(folder):
        raise ValueError(f"{folder} must be finished, got a run under way; go on with `ebse resume {folder}`")
    path = folder / MODEL
    kind = kind_of(path)
    if kind not in KINDS:
        raise ValueError(
            f"{path} must hold a model of a fit, got {kind!r}; restore it from a copy, or fit again"
        )
    model = getattr(import_module(OURS[kind]), kind).load(path)
    columns = None if is_few_label(model) else Columns.load(folder / COLUMNS)
    if columns is not None and model.n_features_in_ != len(columns.source):
        raise damaged(folder / COLUMNS)
    return Fitted(folder, config, columns, model)


def evaluate(
    fitted: Fitted,
    labeled: Labeled,
    place: Path,
    *,
    shots: tuple[int, ...],
    n_episodes: int,
    random_state: int,
    progress: bool,
) -> "FewShotResult":
    """Few-shot accuracy of a run on labeled rows, which come from ``place``."""
    require_classes(Rows(place, labeled.X, (), labeled.y), least=max(shots) + 1)
    return evaluated(
        fitted.model,
        fitted.columns,
        labeled,
        shots=shots,
        n_episodes=n_episodes,
        random_state=random_state,
        progress=progress,
    )


def keep_evaluation(fitted: Fitted, found: "FewShotResult") -> None:
    """Write accuracies to a run, in place of those of the same methods and numbers of labels."""
    header = read_header(fitted.folder)
    run = Run(fitted.folder, EXPERIMENT, fitted.config, data=header.get("data"))
    run.replace(
        [
            {
                "kind": "accuracy",
                "seed": None,
                "method": method,
                "n_shots": n_shots,
                "accuracies": rows["accuracy"].tolist(),
                "baseline": found.baseline,
            }
            for (method, n_shots), rows in found.rows.groupby(["method", "n_shots"], sort=False)
        ],
        key=("kind", "method", "n_shots"),
    )


def require_folder(folder: Path) -> None:
    """Refuse a name at which, or above which, there is a file."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
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


def _planned(config: FitConfig) -> Plan:
    """Rows, preprocessing and model of a fit; bad settings and data are refused."""
    model = config.model_used
    seed_of(config.random_state)
    settings = config.few_label
    if not 0 <= config.hold_back < 1:
        raise ValueError(
            f"hold_back must be from 0 to below 1, got {config.hold_back:g}; pass 0.2, for example"
        )
    rows = read_rows(config.data, **config.reading, raw=model == FEW_LABEL)
    if rows.labels is not None:
        require_classes(rows)
    if model == FEW_LABEL:
        assert rows.labels is not None
        given = rows.labels[labeled_rows(rows.labels)].astype(str)
        held_back(given, config.hold_back, config.random_state)
        if isinstance(settings["class_prior"], dict):
            from ebse.semi_supervised._class_prior import prior_probabilities

            prior_probabilities(settings["class_prior"], np.unique(given))
        found = column_kinds(as_frame(rows.X), settings["columns"])
        return Plan(rows, None, {name: kind for name, (_, kind) in found.items()})
    columns = Columns.found_in(rows, split=config.split)
    require_trainable(config, columns, rows)
    return Plan(rows, columns, {})


def _unlabeled_remarks(labels: Any, unlabeled_label: str | None) -> list[str]:
    """What is suspicious about the mark of unlabeled rows."""
    known = labels[labeled_rows(labels)].astype(str)
    if unlabeled_label is not None:
        absent = len(known) == len(labels)
        return [f"no row has the label {unlabeled_label!r}, so all rows are labeled"] * absent
    words, counts = np.unique(known, return_counts=True)
    # Of two classes, -1 is the negative one.
    if len(words) > 2 and words[counts.argmax()] == "-1":
        return [
            f"-1 is the most frequent label ({counts.max()} rows) and is read as a class; "
            "if it marks unlabeled rows, pass --unlabeled-label -1"
        ]
    return []


def _cleared(folder: Path, config: FitConfig, *, force: bool) -> tuple[Lock, list[int]]:
    """The lock of a folder whose old run is deleted, if it holds nothing else, and rows that it suggested."""
    old = config_of(folder)
    if not force:
        what = "fit again, for example with more labels, with --force"
        if not finished(folder):
            what = f"go on with `ebse resume {folder}`, begin again with --force"
        raise FileExistsError(
            f"{folder} must not hold a run already, got one of {Path(old.data).name}; {what}, or choose "
            "another folder with --out"
        )
    suggested = _suggested(read_results(folder)) if old.data == config.data else []
    lock = Lock(folder)
    partial = leftovers(folder)
    training = folder / TRAINING
    known = {*(folder / name for name in (*FILES, LOCK)), *partial, training}
    others = [path for path in folder.iterdir() if path not in known]
    # A link, or a folder in the place of a file, is not of the run: following it could delete other data.
    others += [path for path in folder.iterdir() if path in known and path != training and not path.is_file()]
    if training.is_symlink() or (training.exists() and not training.is_dir()):
        others.append(training)
    if others:
        raise FileExistsError(
            f"{folder} must hold nothing but the files of the run to begin again, got "
            f"{min(path.name for path in others)}; move it away, or choose another folder with --out"
        )
    if training.exists():
        shutil.rmtree(training)
    # The header goes last: without it nobody could see that this is a run.
    for path in (*partial, *(folder / name for name in reversed(FILES))):
        path.unlink(missing_ok=True)
    return lock, suggested


def _suggested(results: list[dict[str, Any]]) -> list[int]:
    """Keys of the rows that a run, or one in its place before, suggested for labeling."""
    found: set[int] = set()
    for row in results:
        found |= set(row["keys"] if row["kind"] == "suggested" else row.get("next_keys", ()))
    return sorted(found)


def _keys(X: Any) -> list[int]:
    """A number for each row that depends on its entries alone: tables may be sorted between two fits."""
    if hasattr(X, "columns"):
        # JSON has no whole numbers of 64 bits.
        return [int(key) for key in pd.util.hash_pandas_object(X, index=False).to_numpy() >> np.uint64(12)]
    return [zlib.crc32(row.tobytes()) for row in np.ascontiguousarray(X)]


def _few_label(run: Run, rows: Rows) -> tuple[Any, Predictions]:
    """The classifier for few labels, and predictions of all rows."""
    from ebse.semi_supervised import FewLabelClassifier

    config: FitConfig = run.config
    model = FewLabelClassifier(**config.few_label)
    assert rows.labels is not None
    seed = config.random_state
    with threads_for_entries(rows.X.size):
        accuracy = fit_few_label(model, rows.X, rows.labels, hold_back=config.hold_back, seed=seed)
        with stage("prediction"):
            found = Predictions(model.classes_, model.label_distributions_, MEMBERS, 0)
        matters = {} if rows.shape is not None else column_changes(model, seed=seed)
        if not run.has(kind="members"):
            run.add(_explained(run, model, rows, found, accuracy, matters))
    return model, found


def _explained(
    run: Run,
    model: Any,
    rows: Rows,
    found: Predictions,
    accuracy: Accuracy | None,
    matters: dict[Any, float],
    hidden: Collection[int] = (),
) -> dict[str, Any]:
    """What the page says about the answer, and why it is what it is."""
    assert rows.labels is not None
    known = labeled_rows(rows.labels)
    keys = np.array(_keys(rows.X))
    n_chosen = int(np.isin(keys[known], _suggested(run.rows)).sum())
    free = np.setdiff1d(np.flatnonzero(~known), list(hidden))
    doubtful = free[np.argsort(found.probabilities[free].max(1), kind="stable")[:N_DOUBTFUL]]
    votes = member_votes(model, doubtful) if len(doubtful) else {}
    names = [str(name) for name in model.classes_]
    label_next = (model.suggest(N_NEXT, exclude=hidden) + 1).tolist() if len(free) else []
    return {
        "kind": "members",
        "columns": [[str(name), kind, why] for name, kind, why in model.columns_.itertuples(index=False)],
        "members": [[name, weight, why] for name, weight, why in model.members_.itertuples(index=False)],
        "prior": [[str(name), p, error] for name, p, error in model.class_prior_.itertuples(index=False)],
        "accuracy": None if accuracy is None else list(accuracy),
        "n_chosen": n_chosen,
        "largest": _largest(rows.labels[known], accuracy),
        "matters": [[str(name), part] for name, part in matters.items()],
        "doubtful": (doubtful + 1).tolist(),
        "votes": [[name, [names[i] for i in of]] for name, of in votes.items()],
        "far": [[n + 1, times] for n, times in far_rows(model, rows.labels)],
        "label_next": label_next,
        "next_keys": keys[[n - 1 for n in label_next]].tolist(),
        "contents": _contents(rows, [*matters], label_next),
    }


def _largest(labels: Any, accuracy: Accuracy | None) -> list[Any]:
    """The most frequent label, and its part: the accuracy of always answering so."""
    names, counts = np.unique(labels.astype(str), return_counts=True)
    if accuracy is not None and accuracy.how == AUDIT:
        # Labels were chosen; the rows of the audit are random.
        names, counts = (np.array(x) for x in zip(*((c, n) for c, _, n in accuracy.classes), strict=True))
    return [str(names[counts.argmax()]), float(counts.max() / counts.sum())]


def _contents(rows: Rows, columns: list[Any], numbers: list[int]) -> list[Any]:
    """The columns of rows (from 1) that matter most: their names, and the entries of each row."""
    if not hasattr(rows.X, "columns"):
        return [[], []]
    shown = columns[:N_CONTENTS]
    some = rows.X[shown].iloc[[n - 1 for n in numbers]]
    lines = [
        ["" if pd.isna(x) else f"{x:.15g}" if isinstance(x, float) else str(x)[:LONGEST] for x in line]
        for line in some.itertuples(index=False, name=None)
    ]
    return [[str(name) for name in shown], lines]


def _keep_predictions(run: Run, rows: Rows, labeled: Labeled, found: Predictions) -> None:
    write_predictions(run.place(PREDICTIONS), rows, found)
    if not run.has(kind="labels"):
        counts = {name: int((labeled.y == name).sum()) for name in found.classes.tolist()}
        given = {"labels": counts, "n_sweeps": found.n_sweeps, "source": found.source}
        others = found.labels[~labeled_rows(cast("Any", rows.labels))]
        never = [name for name in counts if len(others) and name not in set(others.tolist())]
        run.add({"kind": "labels", **given, "predicted": found.counts(), "never": never})


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} must be what the run began with, got other rows or columns; restore it, or begin again with "
        "`ebse fit --force`"
    )


def checksum(rows: Rows) -> int:
    """CRC-32 of the rows and their labels."""
    if hasattr(rows.X, "columns"):
        held = pd.util.hash_pandas_object(rows.X, index=False).to_numpy()
        total = zlib.crc32(repr(rows.names).encode(), zlib.crc32(held.tobytes()))
    else:
        total = zlib.crc32(np.ascontiguousarray(rows.X).tobytes())
    return zlib.crc32(repr(None if rows.labels is None else rows.labels.tolist()).encode(), total)
