"""The scikit-learn face: words here, letters below."""

from ebse.estimators.contrastive import ContrastiveFeatures
from ebse.estimators.few_shot import FewShotClassifier, Uncertainty
from ebse.estimators.rbse import RBSE
from ebse.estimators.relabelled import Relabelled
from ebse.estimators.slow_features import SlowFeatures
from ebse.estimators.spreading_classifier import SpreadingClassifier

__all__ = [
    "RBSE",
    "ContrastiveFeatures",
    "FewShotClassifier",
    "Relabelled",
    "SlowFeatures",
    "SpreadingClassifier",
    "Uncertainty",
]
