"""scikit-learn's own estimator checks, with no expected failures."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ebse import RBSE
from ebse.ensemble import RBSEClassifier

ESTIMATORS = [
    RBSE(4, n_epochs=2),
    RBSE(4, visible="real", law="gaussian", n_epochs=2),
    RBSEClassifier(RBSE(8, n_epochs=5), n_draws=3, n_sweeps=1),
]
MORE = [
    RBSE(4, law="gaussian", bias_law="bernoulli", algorithm="cd", n_epochs=2),
    RBSE(4, law="point", n_epochs=2),
    RBSE(4, visible="real", n_epochs=2),
]
"""Other laws and algorithms: the validation that most checks are about is the same."""


@pytest.mark.slow
@parametrize_with_checks(MORE)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_other_laws(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]
# Checks feed constant features, single classes and the like, about which libraries below warn.
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts(estimator: Any, check: Any) -> None:
    check(estimator)
