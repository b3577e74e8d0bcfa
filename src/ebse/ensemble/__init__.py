"""Energy-based stochastic ensembles as scikit-learn estimators (the paper's RBSE)."""

from ebse.ensemble.classifier import RBSEClassifier, Uncertainty
from ebse.ensemble.rbse import RBSE

__all__ = ["RBSE", "RBSEClassifier", "Uncertainty"]
