"""A user's own data: read, learned from in a folder that survives, and used from there."""

from ebse.fitting.run import Fitted, begin, carry_out, finished, load, resumed
from ebse.fitting.settings import FitConfig

__all__ = ["FitConfig", "Fitted", "begin", "carry_out", "finished", "load", "resumed"]
