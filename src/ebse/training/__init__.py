"""Training: E-steps, gradients, the M-step, the loop and what it watches."""

from ebse.training.ascent import GradientAscent
from ebse.training.effective import EffectiveAscent
from ebse.training.gradients import Offsets, gradient, monte_carlo_gradient
from ebse.training.loop import Training, resume
from ebse.training.monitors import pseudo_log_likelihood
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep, Phases
from ebse.training.start import initial_ensemble
from ebse.training.stopping import EarlyStopping

__all__ = [
    "Algorithm1",
    "ContrastiveDivergence",
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
