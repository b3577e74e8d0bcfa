"""Semi-supervised and active learning with few labels and many unlabeled rows."""

from ebse.semi_supervised.contrastive import ContrastiveFeatures
from ebse.semi_supervised.few_label import FewLabelClassifier
from ebse.semi_supervised.slow_features import SlowFeatures
from ebse.semi_supervised.spreading import SpreadingClassifier

__all__ = ["ContrastiveFeatures", "FewLabelClassifier", "SlowFeatures", "SpreadingClassifier"]
