"""Early stopping by held-out rows."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, final

from torch import Tensor

from ebse._validation import count, option
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training.monitors import free_energy_gap, held_out_pseudo_likelihood


@final
@dataclass(frozen=True)
class EarlyStopping:
    """Early stopping: stop after ``patience`` epochs without improvement on held-out rows, keep the best.

    Parameters
    ----------
    on : {"pseudo_log_likelihood", "free_energy_gap"}, default="pseudo_log_likelihood"
        The criterion: the pseudo-log-likelihood of held-out rows, higher is better; or the difference of mean
        free energy between held-out and training rows, lower is better. Real visible units need the latter.
    patience : int, default=10
        Epochs without improvement after which the run stops. Training often starts with a plateau of ten
        epochs and more where an epoch has few mini-batches: raise it then.
    min_gain : float, default=0.0
        Smallest improvement that counts, in nats.

    References
    ----------
    J. Besag, "Statistical analysis of non-lattice data", 1975 (pseudo-likelihood). L. Prechelt, "Early
    stopping — but when?", 1998.

    Examples
    --------
    >>> EarlyStopping(patience=3).on
    'pseudo_log_likelihood'
    """

    on: Literal["pseudo_log_likelihood", "free_energy_gap"] = "pseudo_log_likelihood"
    patience: int = 10
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        option("on", self.on, ("pseudo_log_likelihood", "free_energy_gap"))
        count("patience", self.patience)
        if not (isinstance(self.min_gain, Real) and 0 <= float(self.min_gain) < math.inf):
            raise ValueError(f"min_gain must lie in [0, inf), got {self.min_gain!r}; pass a number >= 0")

    def gain(self, ensemble: RestrictedBoltzmannEnsemble, v: Tensor, held_out: Tensor) -> float:
        """The criterion, with a sign so that higher is better."""
        if self.on == "free_energy_gap":
            return -free_energy_gap(ensemble, v, held_out)["free_energy_gap"]
        return held_out_pseudo_likelihood(ensemble, v, held_out)["held_out_pseudo_log_likelihood"]


def require_stopping(stopping: object, ensemble: RestrictedBoltzmannEnsemble, held_out: object) -> None:
    """Require a criterion that the ensemble has, and held-out rows."""
    if stopping is None:
        return
    if not isinstance(stopping, EarlyStopping):
        raise TypeError(f"early_stopping must be an EarlyStopping, got {stopping!r}; pass EarlyStopping()")
    if held_out is None:
        raise ValueError("held_out must be given for early stopping, got None; keep some rows back")
    if stopping.on == "pseudo_log_likelihood" and ensemble.visible != "binary":
        raise ValueError(
            "on must be 'free_energy_gap' for real visible units, got 'pseudo_log_likelihood'; "
            "pass EarlyStopping(on='free_energy_gap')"
        )
