"""Chain-sampled models for a classifier: how long Gibbs chains are, and how strong the noise of models is."""

from typing import Any

import numpy as np

from ebse._estimators import with_names

KEEP_PROB, SIGMA = 0.01, 0.5
"""Strong noise, under a Bernoulli law (and all others) and under a Gaussian law."""

LENGTHS = (20, 30, 40, 50)
"""Chain lengths that are tried; ensembles that forget sooner lose accuracy by any chain."""
LEAST_CORRELATION = 0.6
"""Correlation with its start that a chain must keep."""
N_ROWS, N_CHAINS = 500, 10
"""Rows, and chains per row, that the correlation is estimated from."""


def strong_noise(rbse: Any) -> dict[str, float]:
    """Noise of sampled models, as ``sample_transform`` takes it; the learned one where units are real."""
    if getattr(rbse, "visible", "binary") == "real":
        return {}
    return {"sigma": SIGMA} if hasattr(rbse, "sigma_") else {"keep_prob": KEEP_PROB}


def chain_length(rbse: Any, X: Any) -> int:
    """The longest of LENGTHS after which chains are still correlated with their start; 0 where none is.

    Chains start at the persistent chains of training, so that the length does not depend on the rows of a
    user; at the rows X only where there are none.
    """
    chains = getattr(rbse, "chains_", None)
    if chains is None:
        X = X[:: max(X.shape[0] // N_ROWS, 1)]
    else:
        X = with_names(rbse.on_scale(chains), getattr(rbse, "feature_names_in_", None))
    length = 0
    for n_sweeps in LENGTHS:
        if start_correlation(rbse, X, n_sweeps, seed=0) < LEAST_CORRELATION:
            break
        length = n_sweeps
    return length


def start_correlation(rbse: Any, X: Any, n_sweeps: int, *, seed: int) -> float:
    """ρ = cov(m, m_s) / var(m) with m = P(h | v), and m_s = P(h | v_s) after n_sweeps: 1, falling to 0."""
    m = np.asarray(rbse.transform(X))
    m_s = rbse.sample_transform(X, N_CHAINS, n_sweeps=n_sweeps, read="state", random_state=seed).mean(1)
    m, m_s = m - m.mean(0), m_s - m_s.mean(0)
    return float((m * m_s).sum() / max((m * m).sum(), 1e-12))
