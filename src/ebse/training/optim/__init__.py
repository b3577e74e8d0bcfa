"""M-steps: the interface, gradient ascent on α, and ascent in effective parameters."""

from ebse.training.optim.effective_ascent import EffectiveAscent
from ebse.training.optim.gradient_ascent import GradientAscent, OptimizerFactory
from ebse.training.optim.m_step import AscentState, MStep, Schedule

__all__ = ["AscentState", "EffectiveAscent", "GradientAscent", "MStep", "OptimizerFactory", "Schedule"]
