"""Few-shot evaluation of any embedding or classifier."""

from ebse.evaluation._baselines import Draws, Shifts, baselines, pixels
from ebse.evaluation.comparison import few_shot
from ebse.evaluation.episodes import Episodes, draw_episodes
from ebse.evaluation.logistic import LogisticFit, fit_logistic, predict_proba
from ebse.evaluation.results import FewShotResult

__all__ = [
    "Draws",
    "Episodes",
    "FewShotResult",
    "LogisticFit",
    "Shifts",
    "baselines",
    "draw_episodes",
    "few_shot",
    "fit_logistic",
    "pixels",
    "predict_proba",
]
