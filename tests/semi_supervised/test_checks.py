"""Scikit-learn's own checks, none of them expected to fail."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse import ContrastiveFeatures, SpreadingClassifier
from ebse.semi_supervised import SlowFeatures

ESTIMATORS = [
    SpreadingClassifier(n_clusterings=2, random_state=0),
    ContrastiveFeatures(4, n_hidden=8, n_updates=5, batch_size=16, random_state=0),
    SlowFeatures(n_components=3, n_random=5, random_state=0),
]


@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
def test_scikit_learn_accepts(estimator: Any, check: Any) -> None:
    check(estimator)
