"""How far to walk, without labels: until the ensemble begins to forget where it came from."""

from typing import Any

import numpy as np

from ebse._estimators import with_names

FAR = (20, 30, 40, 50)
"""Lengths of a walk that are tried: ensembles that forget sooner lose by walking at all."""

REMEMBERED = 0.6
"""ρ that must be left at the end of the walk."""

N_ROWS, N_WALKS = 500, 10


def memory(rbse: Any, X: Any, n_sweeps: int, *, seed: int) -> float:
    """ρ = cov(m, m_s) / var(m), with m = P(h | v) and m_s = P(h | v_s) after n_sweeps: 1, falling to 0."""
    m = np.asarray(rbse.transform(X))
    walked = rbse.sample_transform(X, N_WALKS, n_sweeps=n_sweeps, read="state", random_state=seed).mean(1)
    m, walked = m - m.mean(0), walked - walked.mean(0)
    return float((m * walked).sum() / max((m * m).sum(), 1e-12))


def how_far(rbse: Any, X: Any) -> int:
    """The longest walk tried that remembers enough; 0 where the shortest does not.

    The persistent chains of training are asked, so that an ensemble walks equally far for everybody; rows X
    only where there are none.
    """
    chains = getattr(rbse, "chains_", None)
    if chains is None:
        X = X[:: max(X.shape[0] // N_ROWS, 1)]
    else:
        X = with_names(rbse.on_scale(chains), getattr(rbse, "feature_names_in_", None))
    far = 0
    for n_sweeps in FAR:
        if memory(rbse, X, n_sweeps, seed=0) < REMEMBERED:
            break
        far = n_sweeps
    return far
