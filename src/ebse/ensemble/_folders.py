"""``RBSE.fit`` with checkpoints: a fit that can be stopped or killed, and goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ebse._estimators import seed_of
from ebse._threads import threads_for
from ebse.ensemble._fit import n_epochs_for, new_run
from ebse.ensemble._inputs import generator_of
from ebse.ensemble.rbse import RBSE
from ebse.training import resume
from ebse.training.checkpoint import RunFolder
from ebse.training.monitors import Row

MINUTES = 0.25
"""Between checkpoints: what a power cut may cost."""


def fit_in_folder(rbse: RBSE, X: Any, folder: str | Path, *, callback: Callable[[Row], None]) -> RBSE:
    """``rbse.fit(X)`` with checkpoints in ``folder``; a run that is there already goes on to its end.

    The callback gets each epoch's row of the history.
    """
    v, scaling = rbse._training_rows(X, reset=True)
    with threads_for(v.shape[1] * rbse.n_components):
        if RunFolder(folder).checkpoints:
            run = resume(folder, v, callback=callback)
        else:
            run = new_run(rbse, v, schedule="linear", generator=generator_of(seed_of(rbse.random_state)))
            n_epochs = n_epochs_for(rbse, v.shape[0])
            run.fit(v, n_epochs, callback=callback, folder=folder, every_epochs=None, every_minutes=MINUTES)
    rbse._keep(run, scaling, [])
    return rbse


def require_settings(rbse: RBSE, X: Any) -> int:
    """How many epochs ``fit(X)`` takes; parameters that it would refuse are refused here."""
    v, _ = rbse._training_rows(X[:2], reset=True)
    new_run(rbse, v, schedule="linear", generator=generator_of(0))
    return n_epochs_for(rbse, X.shape[0])
