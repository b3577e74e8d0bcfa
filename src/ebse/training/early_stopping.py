"""Early stopping: when held-out rows stop gaining, and which parameters were best."""

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
    """Stop once held-out rows have not gained for ``patience`` epochs, and keep the best parameters.

    Parameters
    ----------
    on
        "pseudo_log_likelihood" of held-out rows, the higher the better; or "free_energy_gap" between
        held-out and training rows, the lower the better.
    patience
        Epochs without a gain after which the run stops. Training often begins with a plateau, of ten epochs
        and more where an epoch has few mini-batches: then give it more.
    min_gain
        What counts as a gain, in nats.

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
        """The watched number, turned so that more is better."""
        if self.on == "free_energy_gap":
            return -free_energy_gap(ensemble, v, held_out)["free_energy_gap"]
        return held_out_pseudo_likelihood(ensemble, v, held_out)["held_out_pseudo_log_likelihood"]


def require_stopping(stopping: object, ensemble: RestrictedBoltzmannEnsemble, held_out: object) -> None:
    """Early stopping that the ensemble can be watched for, and rows to watch."""
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
