"""Arrays behind the pictures of a fit: what was learned, and rows the ensemble makes up."""

from pathlib import Path
from typing import Any

import numpy as np

from ebse._atomic import in_place
from ebse.ensemble import RBSE
from ebse.workflow.columns import Columns

N_COMPONENTS, N_COLUMNS, N_SAMPLES = 100, 60, 30


def save_pictures(path: Path, rbse: RBSE, columns: Columns) -> None:
    """Components, strongest first, and samples in [0, 1]."""
    W = rbse.effective_components_
    chosen = np.argsort(-np.abs(W).sum(1))[:N_COMPONENTS]
    shown = np.arange(W.shape[1])
    if columns.shape is None and W.shape[1] > N_COLUMNS:
        shown = np.sort(np.argsort(-np.abs(W).sum(0))[:N_COLUMNS])
    scaled = (rbse.sample(N_SAMPLES, random_state=0) - rbse.feature_low_) / rbse.feature_width_
    arrays: dict[str, Any] = {
        "shape": np.array([] if columns.shape is None else columns.shape, dtype=np.int64),
        "names": np.array(columns.features)[shown],
        "components": W[chosen][:, shown],
        "samples": scaled[:, shown],
    }
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
