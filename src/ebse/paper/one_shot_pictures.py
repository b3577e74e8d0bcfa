"""Arrays for the figures of a run: filters, keep probabilities, samples, and a Gibbs chain from one image."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ebse._atomic import write_npz
from ebse._chains import strong_noise
from ebse.ensemble import RBSE
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, collapsed_sweeps

N_FILTERS, N_SAMPLES, N_MODELS = 100, 50, 8
STOPS = (0, 1, 2, 5, 10, 20, 50, 100)
"""Sweeps of the chain after which its state is kept."""

Array = npt.NDArray[Any]


def save_pictures(
    path: Path, rbse: RBSE, X: Array, y: Array, shape: tuple[int, int], *, n_sweeps: int
) -> None:
    """Save filters, keep probabilities, samples, a chain, and reconstructions by sampled models."""
    ensemble = rbse._ensemble().frozen()
    digit = X[int(np.flatnonzero(y == y.max())[0])]
    stops = [s for s in STOPS if s <= n_sweeps] or [0]
    arrays: dict[str, Any] = {
        "shape": np.array(shape),
        "filters": rbse.components_[:N_FILTERS],
        "samples": rbse.sample(N_SAMPLES, random_state=0),
        "digit": digit,
        "chain": _chain(ensemble, digit, stops),
        "stops": np.array(stops),
        "posterior": _reconstructions(rbse, ensemble, digit, 0),
        "chain_sampled": _reconstructions(rbse, ensemble, digit, n_sweeps),
    }
    if hasattr(rbse, "keep_prob_"):
        arrays["keep_prob"] = rbse.keep_prob_[:N_FILTERS]
    write_npz(path, **arrays)


def _chain(ensemble: RestrictedBoltzmannEnsemble, digit: Array, stops: list[int]) -> Array:
    """P(v | h) along one Gibbs chain that starts at the image (n_stops, D)."""
    g = torch.Generator().manual_seed(0)
    v = torch.from_numpy(np.ascontiguousarray(digit, dtype=np.float32))[None]
    with torch.no_grad():
        state = State(v, ensemble.sample_h_given_v(v, generator=g))
        seen, at = [], 0
        for stop in stops:
            state = collapsed_sweeps(ensemble, state, stop - at, generator=g)
            seen.append(v[0] if stop == 0 else ensemble.mean_v_given_h(state.h)[0])
            at = stop
    return torch.stack(seen).numpy()


def _reconstructions(rbse: RBSE, ensemble: RestrictedBoltzmannEnsemble, digit: Array, n_sweeps: int) -> Array:
    """Reconstructions of the image by N_MODELS sampled models (N_MODELS, D)."""
    noise: dict[str, Any] = {}
    if n_sweeps:
        noise = strong_noise(rbse)
    h = rbse.sample_transform(digit[None], N_MODELS, n_sweeps=n_sweeps, random_state=0, **noise)[0]
    with torch.no_grad():
        return ensemble.mean_v_given_h(torch.from_numpy(np.ascontiguousarray(h))).numpy()
