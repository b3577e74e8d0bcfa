"""Ensembles from trained RBMs, and the state of :class:`ebse.RBSE` in files."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ebse._archive import State, plain
from ebse._estimators import SCALES
from ebse._validation import option
from ebse.ensemble._fit import bias
from ebse.ensemble._inputs import generator_of
from ebse.ensemble._laws import family, start_noise
from ebse.laws import Bernoulli, Gaussian, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.storage import describe, rebuild
from ebse.preprocessing import UnitScaling

DEFAULT_NOISE: dict[Any, dict[str, float]] = {Bernoulli: {"p": 0.5}, Gaussian: {"sigma": 0.3}, Point: {}}


def converted(
    rbm: Any,
    *,
    law: Any,
    keep_prob: float | None,
    sigma: float | None,
    preserve: str,
    bias_law: Any = "point",
) -> RestrictedBoltzmannEnsemble:
    """The ensemble of a trained RBM with the same P(v, h) ("distribution") or the same W ("weights")."""
    option("preserve", preserve, ("distribution", "weights"))
    W, *biases = _parameters(rbm)
    # The random start of the law is replaced by the biases of the RBM: any generator will do.
    b, c = (bias(family("bias_law", bias_law), Point(x), generator_of(0)) for x in biases)
    made = family("law", law)
    if made not in DEFAULT_NOISE:
        raise ValueError(
            f"law must be 'bernoulli', 'gaussian' or 'point' for a conversion, got {law!r}; pick one of these"
        )
    noise = DEFAULT_NOISE[made] | start_noise(made, keep_prob, sigma)
    if made is Point:
        return RestrictedBoltzmannEnsemble(Point(W), b, c)
    if preserve == "distribution":
        return RestrictedBoltzmannEnsemble(Point(W).with_noise(**noise), b, c)
    return RestrictedBoltzmannEnsemble(made(W, *noise.values()), b, c)  # type: ignore[call-arg]


def require_free(parameters: dict[str, Any]) -> None:
    """Refuse parameters of the constructor that a trained RBM decides."""
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


def state_of(rbse: Any) -> State:
    """Parameters and history of a fitted RBSE as JSON, the ensemble, scaling and chains as arrays."""
    described, tensors = describe(rbse._ensemble())
    arrays = {name: x.detach().cpu().numpy() for name, x in tensors.items()}
    arrays |= {"scaling.low": rbse._scaling.low, "scaling.width": rbse._scaling.width}
    if rbse.chains_ is not None:
        arrays["chains"] = rbse.chains_
    facts = {
        "ensemble": described,
        "parameters": plain(rbse.get_params(deep=False)),
        "history": rbse.history_,
        "scale": rbse._scale,
        "feature_names": list(map(str, getattr(rbse, "feature_names_in_", []))),
    }
    return State(facts, arrays)


def set_state(rbse: Any, state: State) -> None:
    """Make a new RBSE the one that :func:`state_of` described; ValueError where arrays contradict."""
    facts, arrays = state
    # Copies, because arrays read from a file are read-only.
    ensemble = rebuild(facts["ensemble"], {name: torch.from_numpy(x.copy()) for name, x in arrays.items()})
    scaling = UnitScaling(arrays["scaling.low"], arrays["scaling.width"])
    chains = arrays["chains"].copy() if "chains" in arrays else None
    _require_fitting(scaling, chains, ensemble.D)
    rbse._set_fitted(ensemble, scaling, history=facts["history"], chains=chains)
    rbse.n_features_in_, rbse._scale = ensemble.D, option("scale", facts["scale"], SCALES)
    if facts["feature_names"]:
        rbse.feature_names_in_ = np.array(facts["feature_names"], dtype=object)


def _require_fitting(scaling: UnitScaling, chains: Any, D: int) -> None:
    """Refuse a scaling or chains that do not belong to D features."""
    if not all(x.shape == (D,) and np.isfinite(x).all() for x in scaling) or not (scaling.width > 0).all():
        raise ValueError(f"scaling must have a finite low and a positive width for each of {D} features")
    if chains is not None and (chains.ndim != 2 or chains.shape[1] != D or not np.isin(chains, (0, 1)).all()):
        raise ValueError(f"chains must be binary rows of {D} units, got shape {chains.shape}")
