"""What a fitted ensemble holds, as NumPy arrays, and the door that rows come in by."""

import warnings
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from tqdm import tqdm

from ebse._estimators import as_rows, seed_of
from ebse._validation import option
from ebse.ensemble._inputs import as_tensor, is_image
from ebse.ensemble._laws import Alpha, Laws
from ebse.laws import Bernoulli, Gaussian, Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.preprocessing import UnitScaling
from ebse.training import Training

Array = npt.NDArray[np.floating[Any]]
AnyLaw = TypeVar("AnyLaw", bound=Law)

MANY = 0.2
"""Share of clipped values from which on a user is told."""


class FittedEnsemble(BaseEstimator):  # type: ignore[misc]
    """An interface: the fitted half of :class:`ebse.RBSE`, which says how it is learned and what it does."""

    scaling: str
    random_state: Any
    verbose: int
    alpha_: Alpha
    _run: Training | None

    @property
    def components_(self) -> Array:
        """Means of the connections (n_components, n_features)."""
        check_is_fitted(self)
        return self._alpha("W", self._laws.templates["W"].names[0]).T

    @property
    def presence_(self) -> Array:
        """Probability that each connection is present (n_components, n_features), Bernoulli law."""
        return _numpy(self._law_of_noise(Bernoulli).p).T

    @property
    def scale_(self) -> Array:
        """Standard deviation of each connection (n_components, n_features), Gaussian law."""
        return _numpy(self._law_of_noise(Gaussian).sigma).T

    @property
    def effective_components_(self) -> Array:
        """Connections with their noise integrated out (n_components, n_features)."""
        return _numpy(self._ensemble().W.effective()).T

    @property
    def intercept_hidden_(self) -> Array:
        """Effective biases of the hidden units."""
        return _numpy(self._ensemble().c.effective())

    @property
    def intercept_visible_(self) -> Array:
        """Effective biases of the visible units."""
        return _numpy(self._ensemble().b.effective())

    @property
    def _n_features_out(self) -> int:
        return len(self._alpha("c", self._laws.templates["c"].names[0]))

    def _law_of_noise(self, family: type[AnyLaw]) -> AnyLaw:
        W = self._ensemble().W
        if not isinstance(W, family):
            name = "presence_" if family is Bernoulli else "scale_"
            raise AttributeError(f"{name} belongs to a {family.__name__} law, got {type(W).__name__}")
        return W

    def _alpha(self, letter: str, name: str) -> Array:
        check_is_fitted(self)
        return self.alpha_[letter][name]

    def _ensemble(self) -> RestrictedBoltzmannEnsemble:
        check_is_fitted(self)
        return self._laws.with_alpha(self.alpha_)

    def _seed(self, random_state: Any) -> int:
        return seed_of(self.random_state if random_state is None else random_state)

    def _keep(self, run: Training, scaling: UnitScaling, before: list[Any]) -> None:
        """Hold what a run has learned, its history behind that of those before."""
        chains = run.chains
        self._fitted(
            run.ensemble,
            scaling,
            history=[*before, *run.history],
            chains=None if chains is None else chains.numpy().copy(),
        )

    def _fitted(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        scaling: UnitScaling,
        *,
        history: list[Any],
        chains: npt.NDArray[np.float32] | None,
    ) -> None:
        """Hold what was learned, as arrays."""
        self._laws, self.alpha_ = Laws.of(ensemble)
        self._run = None
        self._scaling = scaling
        self.feature_low_, self.feature_width_ = scaling
        self.history_, self.chains_, self.n_iter_ = history, chains, len(history)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "alpha_")

    def _training_rows(self, X: Any, *, reset: bool) -> tuple[Any, UnitScaling]:
        """Rows to learn from, in [0, 1], and how they were brought there."""
        option("scaling", self.scaling, ("auto", "error"))
        rows = self._checked(X, reset=reset)
        scaling = UnitScaling.found_in(rows, image=is_image(rows)) if reset else self._scaling
        n_scaled = len(scaling.scaled)
        if n_scaled and self.scaling == "error":
            raise ValueError(
                f"X must lie in [0, 1] with scaling='error', got {n_scaled} features that do not; scale them "
                "yourself, or use scaling='auto'"
            )
        if n_scaled and reset and self.verbose:
            tqdm.write(f"RBSE: {n_scaled} of {rows.shape[1]} features are scaled to [0, 1]")
        v = self._applied(scaling, rows)
        return (v if hasattr(v, "tocsr") else as_tensor(v)), scaling

    def _rows(self, X: Any, *, missing: bool = False) -> tuple[Any, type[np.floating[Any]]]:
        """Rows in [0, 1], and the floating type of what was given."""
        check_is_fitted(self)
        rows = self._checked(X, reset=False, missing=missing)
        dtype = np.float64 if rows.dtype == np.float64 else np.float32
        return self._applied(self._scaling, rows), dtype

    def _applied(self, scaling: UnitScaling, rows: Any) -> Any:
        """Rows in [0, 1]; said aloud, or refused, where many were not on the scale of those learned from."""
        clipped = scaling.clipped(rows)
        if clipped and self.scaling == "error":
            raise ValueError(
                f"X must lie in [0, 1] with scaling='error', got {clipped:.0%} of values that do not; scale "
                "them yourself, or use scaling='auto'"
            )
        if clipped > MANY:
            warnings.warn(
                f"{clipped:.0%} of the values of X are beyond the range of those that were learned from "
                "and are clipped to it; are they on the same scale?",
                stacklevel=4,
            )
        return scaling.apply(rows)

    def _checked(self, X: Any, *, reset: bool, missing: bool = False) -> Any:
        try:
            return validate_data(
                self,
                as_rows(X),
                reset=reset,
                accept_sparse=not missing and "csr",
                # Whole numbers become the first of these; 8-bit ones stay what they are, images.
                dtype=[np.float64, np.float32, np.uint8],
                ensure_all_finite="allow-nan" if missing else True,
            )
        except ValueError as error:
            if not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                "Input X contains NaN; fill missing entries first, with SimpleImputer for one, fit, and let "
                "RBSE.impute fill them from the rest of their rows"
            ) from None

    def _require_binary(self, name: str) -> None:
        check_is_fitted(self)
        if self._laws.visible != "binary":
            raise ValueError(
                f"visible must be 'binary' for {name}, got 'real': real values have no normalized density; "
                "fit with visible='binary'"
            )

    def __getstate__(self) -> dict[str, Any]:
        # A run under way has threads' generators, which cannot be pickled: partial_fit begins new chains.
        state: dict[str, Any] = super().__getstate__()
        return {name: None if name == "_run" else value for name, value in state.items()}


def _numpy(x: Tensor) -> Array:
    found: Array = x.detach().numpy()
    return found
