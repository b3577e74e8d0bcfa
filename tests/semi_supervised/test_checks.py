"""Scikit-learn's own checks, none of them expected to fail."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse import ContrastiveFeatures, SpreadingClassifier
from ebse.semi_supervised import SlowFeatures, _feature_training

TINY: dict[str, Any] = {"n_hidden": 8, "n_updates": 5, "batch_size": 16, "random_state": 0}
ESTIMATORS = [
    SpreadingClassifier(n_clusterings=2, random_state=0),
    ContrastiveFeatures(4, **TINY),
    ContrastiveFeatures(4, refine=True, **TINY),
    SlowFeatures(n_components=3, n_random=5, random_state=0),
]


@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
@pytest.mark.usefixtures("short_training")
def test_scikit_learn_accepts(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Features of refined encoders are cluster probabilities, however few rows there are.
    monkeypatch.setattr(_feature_training, "MANY_ROWS", 0)
    check(estimator)
