"""Few-shot evaluation of embeddings and classifiers: episodes, paired comparisons, logistic regression.

The logistic regression needs torch, and is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ebse.evaluation._baselines import Draws, Shifts, baselines, pixels
from ebse.evaluation.comparison import few_shot
from ebse.evaluation.episodes import Episodes, draw_episodes
from ebse.evaluation.results import FewShotResult, MeanInterval, mean_interval

if TYPE_CHECKING:
    from ebse.evaluation.logistic import LogisticFit, fit_logistic, predict_proba

__all__ = [
    "Draws",
    "Episodes",
    "FewShotResult",
    "LogisticFit",
    "MeanInterval",
    "Shifts",
    "baselines",
    "draw_episodes",
    "few_shot",
    "fit_logistic",
    "mean_interval",
    "pixels",
    "predict_proba",
]


def __getattr__(name: str) -> Any:
    if name in ("LogisticFit", "fit_logistic", "predict_proba"):
        return getattr(import_module("ebse.evaluation.logistic"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
