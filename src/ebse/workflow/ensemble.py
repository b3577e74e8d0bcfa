"""An ensemble of a user's own data: its training in a run folder, and the classifier on it."""

import time
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ebse._atomic import write_npz
from ebse._stages import stage
from ebse.workflow.columns import Columns
from ebse.workflow.run_folder import Run

if TYPE_CHECKING:
    from ebse.ensemble import RBSE
    from ebse.io import Rows
    from ebse.workflow.fit_config import FitConfig

PICTURES, TRAINING = "pictures.npz", "training"


def require_trainable(config: "FitConfig", columns: Columns, rows: "Rows") -> None:
    """Refuse settings that the ensemble would refuse, before anything is written."""
    from ebse.ensemble import RBSE
    from ebse.ensemble._fit import require_settings

    if config.learning_rate == 0:
        raise ValueError("learning_rate must be > 0, got 0, which would train nothing; pass 0.1, for example")
    require_settings(RBSE(**config.ensemble), columns.imputed(columns.apply(rows.X[:2])))


def trained(run: Run, columns: Columns, rows: "Rows", changed: ValueError) -> "RBSE":
    """The ensemble, trained or resumed from the last checkpoint; ``changed`` is raised for other data."""
    from ebse.ensemble import RBSE
    from ebse.ensemble._fit import fit_in_folder, n_epochs_for
    from ebse.training import DataChangedError, DivergedError
    from ebse.workflow.fit_pictures import picture_arrays

    config = cast("FitConfig", run.config)
    rbse = RBSE(**config.ensemble)
    X, began = columns.imputed(columns.apply(rows.X)), time.perf_counter()
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
            raise changed from None
    if not run.has(kind="training"):
        seconds = time.perf_counter() - began
        run.add({"kind": "training", "model": config.law, "seconds": seconds, "history": rbse.history_})
    write_npz(run.place(PICTURES), **picture_arrays(rbse, columns))
    return rbse


def classifier_on(rbse: "RBSE", columns: Columns, X: Any, y: Any, *, seed: int) -> Any:
    """The classifier of labeled rows on the ensemble."""
    from sklearn.frozen import FrozenEstimator

    from ebse.ensemble import RBSEClassifier

    with stage("classifier"):
        classifier = RBSEClassifier(FrozenEstimator(rbse), random_state=seed)
        return classifier.fit(prepared(rbse, columns, X), y)


def prepared(rbse: "RBSE", columns: Columns, X: Any) -> Any:
    """Features of rows X for the ensemble, which imputes missing entries from the rest of their rows."""
    X = columns.apply(X)
    if X.dtype.kind != "f" or not np.isnan(X).any():
        return X
    incomplete = np.isnan(X).any(1)
    X = np.array(X)
    X[incomplete] = rbse.impute(X[incomplete], random_state=0)
    return X
