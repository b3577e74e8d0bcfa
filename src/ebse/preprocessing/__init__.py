"""Preprocessing of features: scaling to [0, 1], and binarization."""

from ebse.preprocessing.binary import sample_binary, threshold
from ebse.preprocessing.scaling import UnitScaling

__all__ = ["UnitScaling", "sample_binary", "threshold"]
