"""Arrays behind the pictures of a run: filters, presence, samples, and a walk from one digit."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ebse._atomic import in_place
from ebse.ensemble import RBSE
from ebse.ensemble.classifier import KEEP_PROB, SIGMA
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import State, collapsed_sweeps

N_FILTERS, N_SAMPLES, N_MODELS = 100, 50, 8
STOPS = (0, 1, 2, 5, 10, 20, 50, 100)
"""Sweeps after which a walk is looked at."""

Array = npt.NDArray[Any]


def save_pictures(
    path: Path, rbse: RBSE, X: Array, y: Array, shape: tuple[int, int], *, n_sweeps: int
) -> None:
    """Filters W_bar and p or σ, samples of the model, a walk, and what models met on it make of the digit."""
    ensemble = rbse._ensemble().frozen()
    digit = X[int(np.flatnonzero(y == y.max())[0])]
    stops = [s for s in STOPS if s <= n_sweeps] or [0]
    arrays: dict[str, Any] = {
        "shape": np.array(shape),
        "filters": rbse.components_[:N_FILTERS],
        "samples": rbse.sample(N_SAMPLES, random_state=0),
        "digit": digit,
        "walk": _walk(ensemble, digit, stops),
        "stops": np.array(stops),
        "clamped": _images(rbse, ensemble, digit, 0),
        "walked": _images(rbse, ensemble, digit, n_sweeps),
    }
    if hasattr(rbse, "keep_prob_"):
        arrays["presence"] = rbse.keep_prob_[:N_FILTERS]
    with in_place(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _walk(ensemble: RestrictedBoltzmannEnsemble, digit: Array, stops: list[int]) -> Array:
    """P(v | h) along one chain from the digit (n_stops, D)."""
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


def _images(rbse: RBSE, ensemble: RestrictedBoltzmannEnsemble, digit: Array, n_sweeps: int) -> Array:
    """What several models make of the digit, mapped back (N_MODELS, D)."""
    noise: dict[str, Any] = {}
    if n_sweeps:
        noise = {"sigma": SIGMA} if hasattr(rbse, "sigma_") else {"keep_prob": KEEP_PROB}
    h = rbse.sample_transform(digit[None], N_MODELS, n_sweeps=n_sweeps, random_state=0, **noise)[0]
    with torch.no_grad():
        return ensemble.mean_v_given_h(torch.from_numpy(np.ascontiguousarray(h))).numpy()
