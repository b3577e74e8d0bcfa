"""Training: E-steps, gradients, the M-step, the loop and what it watches."""

from ebse.training.ascent import GradientAscent
from ebse.training.gradients import Offsets, gradient, monte_carlo_gradient
from ebse.training.loop import Training
from ebse.training.monitors import pseudo_log_likelihood
from ebse.training.phases import Algorithm1, ContrastiveDivergence, EStep, Phases

__all__ = [
    "Algorithm1",
    "ContrastiveDivergence",
    "EStep",
    "GradientAscent",
    "Offsets",
    "Phases",
    "Training",
    "gradient",
    "monte_carlo_gradient",
    "pseudo_log_likelihood",
]
