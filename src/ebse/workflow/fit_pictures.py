"""Arrays for the figures of a fit: components of the ensemble, and rows sampled from it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ebse.workflow.columns import Columns

if TYPE_CHECKING:
    from ebse.ensemble import RBSE

N_COMPONENTS, N_COLUMNS, N_SAMPLES = 100, 60, 30


def picture_arrays(rbse: "RBSE", columns: Columns) -> dict[str, Any]:
    """Components with the largest weights first, and samples in [0, 1]."""
    W = rbse.effective_components_
    chosen = np.argsort(-np.abs(W).sum(1))[:N_COMPONENTS]
    shown = np.arange(W.shape[1])
    if columns.shape is None and W.shape[1] > N_COLUMNS:
        shown = np.sort(np.argsort(-np.abs(W).sum(0))[:N_COLUMNS])
    scaled = (rbse.sample(N_SAMPLES, random_state=0) - rbse.feature_low_) / rbse.feature_width_
    return {
        "shape": np.array([] if columns.shape is None else columns.shape, dtype=np.int64),
        "names": np.array(columns.features)[shown],
        "components": W[chosen][:, shown],
        "samples": scaled[:, shown],
    }
