"""What is done to features before an ensemble sees them: scaling to [0, 1], and making them binary."""

from ebse.preprocessing.binary import sample_binary, threshold
from ebse.preprocessing.scaling import UnitScaling

__all__ = ["UnitScaling", "sample_binary", "threshold"]
