"""A fit to a user's own data in a run folder: it can be stopped and resumed, and is used from there.

Label propagation (:class:`ebse.SpreadingClassifier`) where there are labels and most rows have none;
otherwise, and where a setting of it is given, an ensemble (:class:`ebse.RBSE`), with a classifier if there
are labels. Torch is imported only for an ensemble.
"""

import shutil
import time
import zlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ebse._archive import OURS, kind_of
from ebse._atomic import write_npz
from ebse._estimators import seed_of
from ebse._stages import stage
from ebse._validation import count, option
from ebse.io import Rows, read_arrays, read_rows
from ebse.io.arrays import damaged
from ebse.workflow.columns import Columns
from ebse.workflow.fit_config import ENSEMBLE, MODELS, PROPAGATION, FitConfig
from ebse.workflow.outputs import write_predictions
from ebse.workflow.prediction import (
    Labeled,
    Predictions,
    evaluated,
    is_propagation,
    predicted,
    prepared,
    require_classes,
)
from ebse.workflow.propagation import (
    LEAST_ROWS,
    class_prior_from,
    labeled_rows,
    new_classifier,
    propagate,
    propagates,
)
from ebse.workflow.run_folder import CONFIG, LOCK, ROWS, Lock, Run, leftovers, read_header, read_results

if TYPE_CHECKING:
    from ebse.ensemble import RBSE
    from ebse.evaluation import FewShotResult

EXPERIMENT = "fit"
MODEL, COLUMNS, LABELED, PICTURES = "model.safetensors", "columns.npz", "labeled.npz", "pictures.npz"
PREDICTIONS, PAGE, TRAINING = "predictions.csv", "report.html", "training"
FILES = (CONFIG, ROWS, MODEL, COLUMNS, LABELED, PICTURES, PREDICTIONS, PAGE)
"""All files that a run folder may have."""
KINDS = ("SpreadingClassifier", "RBSEClassifier", "RBSE")
"""Estimators that the model of a run may be."""
N_NEXT = 10
"""Rows that are suggested for labeling."""
FEW_UPDATES = 1_000
"""Updates below which an ensemble is hardly trained."""


class Plan(NamedTuple):
    """What is fitted: rows, their preprocessing, and the model, "spreading" or "rbse"."""

    rows: Rows
    columns: Columns
    model: str

    def described(self, config: FitConfig) -> list[str]:
        """Sentences for the user about the data and the choice of the model."""
        rows, name = self.rows, self.rows.path.name
        X = rows.X
        said = [f"{name}: {remark}" for remark in rows.notes]
        said.append(f"{name}: {len(X)} rows of {len(rows.names)} columns; {self.columns.described(X)}")
        n_missing = int(np.isnan(X).sum()) if X.dtype.kind == "f" else 0
        if n_missing:
            by = "column means" if self.model == "spreading" else "the ensemble"
            said.append(f"{name}: {n_missing} missing entries are imputed by {by}")
        labels = rows.labels
        if labels is not None:
            said += [f"{name}: {remark}" for remark in _unlabeled_remarks(labels, config.unlabeled_label)]
        given = config.changed(ENSEMBLE)
        if config.model is None and labels is not None and given and propagates(labeled_rows(labels)):
            said.append(f"{given[0]} is a setting of the ensemble, so an ensemble is trained (--model rbse)")
        return said


class Fitted(NamedTuple):
    """A finished fit."""

    folder: Path
    config: FitConfig
    columns: Columns
    model: Any
    """A fitted SpreadingClassifier, RBSEClassifier, or RBSE where there are no labels."""

    @property
    def classes(self) -> list[str]:
        """The classes; refused where the run has no labels."""
        if not hasattr(self.model, "classes_"):
            raise ValueError(f"{self.folder} must have labels, got a run without; fit with --label")
        return [str(name) for name in self.model.classes_]

    @property
    def ensemble(self) -> "RBSE":
        """The ensemble; refused where none was trained."""
        if is_propagation(self.model):
            raise ValueError(
                f"{self.folder} must have an ensemble, got a run of label propagation, which has none; "
                "fit with --model rbse"
            )
        return cast("RBSE", getattr(self.model, "representation_", self.model))

    def labeled(self) -> Labeled:
        """The labeled rows of the fit."""
        path = self.folder / LABELED
        X, y = read_arrays(path, "X", "y").values()
        sound = (
            X.ndim == 2
            and X.shape[1] == len(self.columns.names)
            and X.dtype.kind in "uf"
            and y.shape == (len(X),)
            and y.dtype.kind == "U"
            and set(y.tolist()) == set(self.classes)
            and not np.isinf(X).any()
            and (self.config.missing or not np.isnan(X).any())
        )
        if not sound:
            raise damaged(path)
        return Labeled(X, y)

    def read(self, data: Path, *, delimiter: str | None, array: str | None, labels: bool = False) -> Rows:
        """Rows of another file with the columns of the run, and labels where it has some."""
        config, alike = self.config, data.suffix == Path(self.config.data).suffix
        rows = read_rows(
            data,
            label=config.label if labels else None,
            id=config.id,
            only=self.columns.names,
            delimiter=delimiter or (config.delimiter if alike else None),
            array=array or (config.array if alike else None),
            header=config.header or not alike,
            missing=config.missing,
            unlabeled_label=config.unlabeled_label,
        )
        self.columns.require_scale(rows)
        return rows


def begin(config: FitConfig, folder: Path, *, force: bool) -> tuple[Run, Plan]:
    """A new run in ``folder``; whatever is refused is refused before anything is written or deleted."""
    plan = _planned(config)
    config = FitConfig(**{**vars(config), "data": str(Path(config.data).resolve())})
    require_folder(folder)
    lock = _cleared(folder, force=force) if (folder / CONFIG).exists() else None
    return Run(folder, EXPERIMENT, config, data=_checksum(plan.rows), lock=lock), plan


def reopened(folder: Path) -> tuple[Run, Plan]:
    """The unfinished run in a folder; its data must be those that it began with."""
    config = config_of(folder)
    plan = _planned(config)
    began = read_header(folder).get("data")
    path = plan.rows.path
    if began is not None and began != _checksum(plan.rows):
        raise _changed(path)
    if (folder / COLUMNS).exists() and not Columns.load(folder / COLUMNS).same_as(plan.columns):
        raise _changed(path)
    return Run(folder, EXPERIMENT, config, data=began), plan


def finished(folder: Path) -> bool:
    """Whether a run is finished."""
    return any(row["kind"] == "finished" for row in read_results(folder))


def carry_out(run: Run, plan: Plan) -> Fitted:
    """Fit, or resume, and write everything that a run folder has except the page."""
    rows, columns = plan.rows, plan.columns
    columns.save(run.place(COLUMNS))
    if rows.labels is not None:
        known = labeled_rows(rows.labels)
        labeled = Labeled(rows.X[known], rows.labels[known].astype(str))
        write_npz(run.place(LABELED), X=labeled.X, y=labeled.y)
    else:
        labeled = None
    model: Any
    if plan.model == "spreading":
        assert rows.labels is not None
        model, found, label_next = _propagated(run, plan)
    else:
        rbse = _trained(run, plan)
        model, found, label_next = _on_ensemble(rbse, labeled, plan, run.config.random_state), None, []
    model.save(run.place(MODEL))
    if labeled is not None:
        if found is None:
            with stage("prediction"):
                found = predicted(model, columns, rows.X)
        _keep_predictions(run, rows, labeled, found, label_next)
    run.add({"kind": "finished", "n_rows": len(rows.X), "n_columns": len(rows.names)})
    shutil.rmtree(run.folder / TRAINING, ignore_errors=True)
    return Fitted(run.folder, run.config, columns, model)


def n_updates(fitted: Fitted) -> int | None:
    """Updates that the ensemble was trained for; None where there is none."""
    if is_propagation(fitted.model):
        return None
    history = fitted.ensemble.history_
    return int(history[-1]["step"]) if history else 0


def load(folder: Path) -> Fitted:
    """A finished fit; an unfinished one is refused."""
    config = config_of(folder)
    if not finished(folder):
        raise ValueError(f"{folder} must be finished, got a run under way; go on with `ebse resume {folder}`")
    columns, path = Columns.load(folder / COLUMNS), folder / MODEL
    kind = kind_of(path)
    if kind not in KINDS:
        raise ValueError(
            f"{path} must hold a model of a fit, got {kind!r}; restore it from a copy, or fit again"
        )
    model = getattr(import_module(OURS[kind]), kind).load(path)
    if model.n_features_in_ != len(columns.source):
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
    count("n_rounds", config.n_rounds, least=0)
    if config.model is not None:
        option("model", config.model, MODELS)
    seed_of(config.random_state)
    if config.label is None:
        of_labels = config.changed(("unlabeled_label", *PROPAGATION))
        if config.model == "spreading":
            of_labels.append("model spreading")
        if of_labels:
            raise ValueError(
                f"{of_labels[0]} must be given with labels, got none; name their column with --label"
            )
    rows = read_rows(config.data, **config.reading)
    if rows.labels is not None:
        require_classes(rows)
    model = _model_for(config, rows)
    columns = Columns.found_in(rows, split=config.split)
    if model == "rbse":
        from ebse.ensemble import RBSE
        from ebse.ensemble._fit import require_settings

        if config.learning_rate == 0:
            raise ValueError(
                "learning_rate must be > 0, got 0, which would train nothing; pass 0.1, for example"
            )
        require_settings(RBSE(**config.ensemble), columns.imputed(columns.apply(rows.X[:2])))
    elif config.class_prior is not None:
        from ebse.semi_supervised._class_prior import prior_probabilities

        assert rows.labels is not None
        y = rows.labels[labeled_rows(rows.labels)].astype(str)
        prior_probabilities(class_prior_from(config.class_prior), np.unique(y))
    return Plan(rows, columns, model)


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


def _model_for(config: FitConfig, rows: Rows) -> str:
    """The model that the settings name, or the default for the data; contradictory settings are refused."""
    of_propagation, of_ensemble = config.changed(PROPAGATION), config.changed(ENSEMBLE)
    if rows.labels is None:
        return "rbse"
    known = labeled_rows(rows.labels)
    model = config.model
    if model is None:
        model = "spreading" if propagates(known) and not of_ensemble else "rbse"
    if model == "rbse" and of_propagation:
        if config.model == "rbse" or of_ensemble:
            why = "--model rbse" if config.model == "rbse" else f"{of_ensemble[0]}, a setting of the ensemble"
            raise ValueError(
                f"{of_propagation[0]} must be left out with {why}, got both; it is a setting of label "
                "propagation (--model spreading)"
            )
        raise ValueError(
            f"{of_propagation[0]} must be left out where labels are not propagated, "
            f"got it for {len(known)} rows, {int(known.sum())} of them labeled; by default labels are "
            f"propagated from {LEAST_ROWS:,} rows on where most are unlabeled: "
            "pass --model spreading to propagate them anyway"
        )
    if model == "spreading" and of_ensemble:
        raise ValueError(
            f"{of_ensemble[0]} must be left out with --model spreading, got it; "
            "it is a setting of the ensemble (--model rbse)"
        )
    return model


def _cleared(folder: Path, *, force: bool) -> Lock:
    """The lock of a folder whose old run is deleted, if it holds nothing else."""
    old = config_of(folder)
    if not force:
        raise FileExistsError(
            f"{folder} must not hold a run already, got one of {Path(old.data).name}; choose another "
            f"folder with --out, begin again with --force, or go on with `ebse resume {folder}`"
        )
    read_results(folder)
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
    return lock


def _propagated(run: Run, plan: Plan) -> tuple[Any, Predictions, list[int]]:
    """The classifier of label propagation, predictions of all rows, and the rows to label next (from 1)."""
    config: FitConfig = run.config
    X, labels = plan.columns.scaled(plan.rows.X), cast("Any", plan.rows.labels)
    model = new_classifier(
        len(X), class_prior=config.class_prior, n_rounds=config.n_rounds, seed=config.random_state
    )
    model, order = propagate(model, X, labels)
    with stage("prediction"):
        found = Predictions(model.classes_, model.predict_proba(X), "propagation", 0)
        label_next = (order[model.suggest(N_NEXT)] + 1).tolist() if len(X) > len(model.classes_) else []
    return model, found, label_next


def _trained(run: Run, plan: Plan) -> "RBSE":
    """The ensemble, trained or resumed from the last checkpoint."""
    from ebse.ensemble import RBSE
    from ebse.ensemble._fit import fit_in_folder, n_epochs_for
    from ebse.training import DataChangedError, DivergedError
    from ebse.workflow.fit_pictures import picture_arrays

    config: FitConfig = run.config
    rbse, columns = RBSE(**config.ensemble), plan.columns
    X, began = columns.imputed(columns.apply(plan.rows.X)), time.perf_counter()
    with stage("training", total=n_epochs_for(rbse, len(X)), unit="epochs") as done:
        at = 0.0

        def epoch(row: dict[str, float]) -> None:
            nonlocal at
            done(row["epoch"] - at)
            at = row["epoch"]

        try:
            fit_in_folder(rbse, X, run.place(TRAINING), callback=epoch)
        except DivergedError as error:
            raise ValueError(f"{error.summary}; begin again with --force and other settings") from None
        except DataChangedError:
            raise _changed(plan.rows.path) from None
    if not run.has(kind="training"):
        seconds = time.perf_counter() - began
        run.add({"kind": "training", "model": config.law, "seconds": seconds, "history": rbse.history_})
    write_npz(run.place(PICTURES), **picture_arrays(rbse, columns))
    return rbse


def _on_ensemble(rbse: "RBSE", labeled: Labeled | None, plan: Plan, seed: int) -> Any:
    """The classifier of the labeled rows on the ensemble; the ensemble itself where there are no labels."""
    if labeled is None:
        return rbse
    from sklearn.frozen import FrozenEstimator

    from ebse.ensemble import RBSEClassifier

    with stage("classifier"):
        classifier = RBSEClassifier(FrozenEstimator(rbse), random_state=seed)
        return classifier.fit(prepared(rbse, plan.columns, labeled.X), labeled.y)


def _keep_predictions(
    run: Run, rows: Rows, labeled: Labeled, found: Predictions, label_next: list[int]
) -> None:
    write_predictions(run.place(PREDICTIONS), rows, found)
    if not run.has(kind="labels"):
        counts = {name: int((labeled.y == name).sum()) for name in found.classes.tolist()}
        given = {"labels": counts, "n_sweeps": found.n_sweeps, "source": found.source}
        run.add({"kind": "labels", **given, "predicted": found.counts(), "label_next": label_next})


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} must be what the run began with, got other rows or columns; restore it, or begin again with "
        "`ebse fit --force`"
    )


def _checksum(rows: Rows) -> int:
    """CRC-32 of the rows and their labels."""
    total = zlib.crc32(np.ascontiguousarray(rows.X).tobytes())
    return zlib.crc32(repr(None if rows.labels is None else rows.labels.tolist()).encode(), total)
