"""Training: E-steps, gradients, the M-step, the loop and what it watches."""

from ebse.training.data import DataChangedError
from ebse.training.early_stopping import EarlyStopping
from ebse.training.gradients import Offsets, gradient, monte_carlo_gradient
from ebse.training.init import initial_ensemble
from ebse.training.monitors import pseudo_log_likelihood
from ebse.training.optim.effective_ascent import EffectiveAscent
from ebse.training.optim.gradient_ascent import GradientAscent
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep, Phases
from ebse.training.trainer import DivergedError, Training, resume

__all__ = [
    "Algorithm1",
    "ContrastiveDivergence",
    "DataChangedError",
    "DivergedError",
    "EStep",
    "EarlyStopping",
    "EffectiveAscent",
    "GradientAscent",
    "Offsets",
    "Phases",
    "Training",
    "gradient",
    "initial_ensemble",
    "monte_carlo_gradient",
    "pseudo_log_likelihood",
    "resume",
]
