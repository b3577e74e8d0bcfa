"""The scikit-learn face: words here, letters below."""

from ebse.estimators.few_shot import FewShotClassifier, Uncertainty
from ebse.estimators.rbse import RBSE

__all__ = ["RBSE", "FewShotClassifier", "Uncertainty"]
