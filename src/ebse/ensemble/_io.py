"""Ensembles from trained RBMs, and estimators on disk."""

from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ebse._archive import consistent
from ebse._validation import option
from ebse.ensemble._fit import bias
from ebse.ensemble._inputs import generator_of
from ebse.ensemble._laws import family, start_noise
from ebse.laws import Bernoulli, Gaussian, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import describe, read, rebuild, write
from ebse.preprocessing import UnitScaling

DEFAULT_NOISE = {Bernoulli: 0.5, Gaussian: 0.3, Point: None}

Estimator = TypeVar("Estimator")


def converted(
    rbm: Any, law: Any, noise: float | None, preserve: str, bias_law: Any = "point"
) -> RestrictedBoltzmannEnsemble:
    """The ensemble of a trained RBM: "distribution" moves W along the gauge, "weights" keeps it."""
    option("preserve", preserve, ("distribution", "weights"))
    W, *biases = _parameters(rbm)
    # The start of a law is thrown away: it is settled to the biases that are there.
    b, c = (bias(family("bias_law", bias_law), Point(x), generator_of(0)) for x in biases)
    made = family("law", law)
    if made not in DEFAULT_NOISE:
        raise ValueError(
            f"law must be 'bernoulli', 'gaussian' or 'point' for a conversion, got {law!r}; pick one of these"
        )
    amount = start_noise(made, DEFAULT_NOISE[made] if noise is None else noise)
    weights = Point(W)
    if made is Point:
        return RestrictedBoltzmannEnsemble(weights, b, c)
    if preserve == "distribution":
        return RestrictedBoltzmannEnsemble(weights.with_noise(**amount), b, c)
    noisy = Bernoulli(W, amount["p"]) if made is Bernoulli else Gaussian(W, amount["sigma"])
    return RestrictedBoltzmannEnsemble(noisy, b, c)


def require_free(parameters: dict[str, Any]) -> None:
    """Parameters of the constructor that a trained RBM leaves open."""
    if "n_components" in parameters:
        raise TypeError(
            f"n_components must not be given, got {parameters['n_components']!r}; leave it out, it is that "
            "of the RBM"
        )
    if parameters.get("visible", "binary") != "binary":
        raise ValueError(
            f"visible must be 'binary' for a trained RBM, got {parameters['visible']!r}; leave it out"
        )


def _parameters(rbm: Any) -> tuple[Tensor, Tensor, Tensor]:
    """W (D, K), b and c of a scikit-learn RBM or of three arrays."""
    if hasattr(rbm, "effective_components_"):
        arrays = (np.asarray(rbm.effective_components_).T, rbm.intercept_visible_, rbm.intercept_hidden_)
    elif hasattr(rbm, "intercept_visible_"):
        arrays = (np.asarray(rbm.components_).T, rbm.intercept_visible_, rbm.intercept_hidden_)
    elif isinstance(rbm, (tuple, list)) and len(rbm) == 3:
        arrays = tuple(x.detach().cpu().numpy() if isinstance(x, Tensor) else x for x in rbm)  # type: ignore[assignment]
    else:
        raise TypeError(
            f"rbm must be a fitted BernoulliRBM or three arrays W, b and c, got {type(rbm).__name__}; fit it "
            "first, or pass (W, b, c) with W of shape (n_features, n_components)"
        )
    W, b, c = (torch.tensor(np.asarray(x, dtype=np.float32)) for x in arrays)
    return W, b, c


def save_estimator(path: str | Path, estimator: Any) -> None:
    """One safetensors file: arrays of the ensemble and of the scaling; parameters and history as JSON."""
    described, tensors = describe(estimator._ensemble())
    low, width = (torch.from_numpy(np.array(x)) for x in estimator._scaling)
    tensors |= {"scaling.low": low, "scaling.width": width}
    if estimator.chains_ is not None:
        tensors["chains"] = torch.from_numpy(np.array(estimator.chains_))
    facts = {
        "ensemble": described,
        "parameters": _plain(estimator.get_params(deep=False)),
        "history": estimator.history_,
        "feature_names": list(map(str, getattr(estimator, "feature_names_in_", []))),
    }
    write(Path(path), "estimator", tensors, facts)


def load_estimator(path: str | Path, made_by: type[Estimator]) -> Estimator:
    """The estimator that was saved."""
    facts, tensors = read(Path(path), "estimator")
    with consistent(Path(path)):
        ensemble = rebuild(facts["ensemble"], tensors)
        estimator: Any = made_by(**facts["parameters"])
        scaling = UnitScaling(tensors["scaling.low"].numpy(), tensors["scaling.width"].numpy())
        chains = tensors["chains"].numpy() if "chains" in tensors else None
        _require_fitting(scaling, chains, ensemble.D)
        estimator._fitted(ensemble, scaling, history=facts["history"], chains=chains)
        estimator.n_features_in_ = ensemble.D
        if facts["feature_names"]:
            estimator.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    made: Estimator = estimator
    return made


def _require_fitting(scaling: UnitScaling, chains: Any, D: int) -> None:
    """Scaling and chains of D features that can be computed with."""
    if not all(x.shape == (D,) and np.isfinite(x).all() for x in scaling) or not (scaling.width > 0).all():
        raise ValueError(f"scaling must have a finite low and a positive width for each of {D} features")
    if chains is not None and (chains.ndim != 2 or chains.shape[1] != D or not np.isin(chains, (0, 1)).all()):
        raise ValueError(f"chains must be binary rows of {D} units, got shape {chains.shape}")


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them; a random state that is not a number is left out."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, type):
            value = value.__name__
        if isinstance(value, np.generic):
            value = value.item()
        plain[name] = value if isinstance(value, (str, int, float, bool, type(None))) else None
    return plain
