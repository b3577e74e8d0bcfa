"""RBSEClassifier: draws in, averaged predictions out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from ebse.ensemble._on_draws import OnDraws, UnpenalizedLogistic
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from ebse import RBSE
from ebse.ensemble import RBSEClassifier, _chain_length
from ebse.evaluation import few_shot
from ensemble.rows import K, fitted, rows

X, Y = rows()
FEW = [0, 1, 2, 3]
Options = dict[str, Any]


def classifier(**options: Any) -> RBSEClassifier:
    return RBSEClassifier(FrozenEstimator(fitted()), **({"random_state": 0} | options))


def test_predictions_are_averaged_over_the_draws_of_a_row() -> None:
    made = classifier(n_draws=4, n_sweeps=2, noise=0.1).fit(X[FEW], Y[FEW])
    options: Options = {"n_sweeps": 2, "noise": 0.1, "random_state": made._seed}
    draws = fitted().sample_transform(X, 4, **options)
    np.testing.assert_array_equal(made.representations(X), draws)
    inner = UnpenalizedLogistic().fit(draws[FEW].reshape(-1, K), np.repeat(Y[FEW], 4))
    expected = inner.predict_proba(draws.reshape(-1, K)).reshape(len(X), 4, 2)
    np.testing.assert_allclose(made.predict_proba(X), expected.mean(1), rtol=1e-6)
    np.testing.assert_array_equal(made.predict(X), expected.mean(1).argmax(1))
    voted = classifier(n_draws=4, n_sweeps=2, noise=0.1, aggregate="vote").fit(X[FEW], Y[FEW])
    np.testing.assert_allclose(voted.predict_proba(X)[:, 1], expected.argmax(2).mean(1))


def test_two_labels_per_class_are_enough_for_two_clear_kinds() -> None:
    assert classifier().fit(X[FEW], Y[FEW]).score(X, Y) > 0.85


def test_an_unfitted_ensemble_learns_from_all_rows_and_a_frozen_one_does_not() -> None:
    rbse = RBSE(K, n_epochs=3, random_state=0)
    made = RBSEClassifier(rbse, n_sweeps=0, random_state=0).fit(X[FEW], Y[FEW], X_unlabeled=X[4:])
    np.testing.assert_array_equal(made.representation_.transform(X), clone(rbse).fit(X).transform(X))
    assert not hasattr(rbse, "alpha_")
    assert classifier().fit(X[FEW], Y[FEW], X_unlabeled=X).representation_ is fitted()


def test_the_unlabeled_label() -> None:
    words = np.where(np.isin(np.arange(len(X)), FEW), np.where(Y == 0, "cat", "dog"), "?")
    rbse = RBSE(K, n_epochs=3, random_state=0)
    made = RBSEClassifier(rbse, n_sweeps=0, unlabeled_label="?", random_state=0).fit(X, words)
    same = RBSEClassifier(rbse, n_sweeps=0, random_state=0).fit(X[FEW], words[FEW], X_unlabeled=X[4:])
    assert list(made.classes_) == ["cat", "dog"]
    np.testing.assert_allclose(made.predict_proba(X), same.predict_proba(X), rtol=1e-5)
    numbers = RBSEClassifier(rbse, n_sweeps=0, unlabeled_label=-1).fit(X, np.where(words == "?", -1, Y))
    assert list(numbers.classes_) == [0, 1]
    for blank in (None, np.nan):
        holes = words.astype(object)
        holes[words == "?"] = blank
        found = RBSEClassifier(rbse, n_sweeps=0, unlabeled_label=np.nan, random_state=0).fit(X, holes)
        np.testing.assert_array_equal(found.predict(X), made.predict(X))


def test_uncertainty_splits_entropy() -> None:
    made = classifier(n_draws=20, n_sweeps=3).fit(X[FEW], Y[FEW])
    found = made.uncertainty(X)
    p = made._of_draws(X)
    for n in range(3):
        mean = p[n].mean(0)
        entropy = -sum(q * np.log(q) for q in mean)
        within = np.mean([-sum(q * np.log(q) if q > 0 else 0 for q in draw) for draw in p[n]])
        assert found.entropy[n] == pytest.approx(entropy)
        assert found.mutual_information[n] == pytest.approx(entropy - within, abs=1e-9)
    assert (found.mutual_information >= -1e-9).all()
    assert (found.entropy >= found.mutual_information - 1e-9).all()


def test_any_classifier_and_any_transformer_will_do() -> None:
    forest = classifier(classifier=RandomForestClassifier(5)).fit(X[FEW], Y[FEW])
    again = classifier(classifier=RandomForestClassifier(5)).fit(X[FEW], Y[FEW])
    np.testing.assert_array_equal(forest.predict_proba(X), again.predict_proba(X))
    assert classifier(classifier=KNeighborsClassifier(3)).fit(X[FEW], Y[FEW]).score(X, Y) > 0.7
    ridge = classifier(classifier=RidgeClassifier(), aggregate="vote").fit(X[FEW], Y[FEW])
    assert ridge.score(X, Y) > 0.7
    pca = RBSEClassifier(PCA(2)).fit(X[FEW], Y[FEW], X_unlabeled=X)
    assert pca.representations(X).shape == (len(X), 1, 2)
    assert pca.score(X, Y) > 0.7


def test_rows_of_other_forms() -> None:
    made = classifier(n_sweeps=1).fit(X[FEW], Y[FEW])
    for other in (sparse.csr_array(X), torch.from_numpy(X), X.astype(bool)):
        np.testing.assert_array_equal(made.predict(other), made.predict(X))


def test_a_walk_goes_on_while_it_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {20: 0.8, 30: 0.61, 40: 0.59, 50: 0.7}
    monkeypatch.setattr(_chain_length, "memory", lambda rbse, X, n_sweeps, *, seed: kept[n_sweeps])
    made = classifier().fit(X[FEW], Y[FEW])
    assert (made.n_sweeps_, made.source_) == (30, "posterior")
    monkeypatch.setattr(_chain_length, "memory", lambda rbse, X, n_sweeps, *, seed: 0.1)
    still = classifier().fit(X[FEW], Y[FEW])
    assert (still.n_sweeps_, still.source_) == (0, "mean")
    np.testing.assert_allclose(still.representations(X), fitted().transform(X)[:, None], rtol=1e-5)
    told = classifier(n_sweeps=0).fit(X[FEW], Y[FEW])
    assert (told.n_sweeps_, told.source_) == (0, "posterior")


def test_memory_is_one_at_the_start_and_falls() -> None:
    rbse = fitted()
    assert _chain_length.memory(rbse, X, 0, seed=0) == pytest.approx(1, abs=1e-5)
    near, far = (_chain_length.memory(rbse, X, n, seed=0) for n in (1, 300))
    assert 1 > near > far
    # Against a loop: one regression slope over all rows and units.
    m = rbse.transform(X).astype(np.float64)
    walked = rbse.sample_transform(X, _chain_length.N_WALKS, n_sweeps=1, read="state", random_state=0)
    s = walked.mean(1).astype(np.float64)
    above = sum((m[:, j] - m[:, j].mean()) @ (s[:, j] - s[:, j].mean()) for j in range(K))
    below = sum((m[:, j] - m[:, j].mean()) @ (m[:, j] - m[:, j].mean()) for j in range(K))
    assert near == pytest.approx(above / below, rel=1e-4)


@pytest.mark.parametrize("n_sweeps", [1, "auto"])
def test_episodes_share_the_draws_of_a_frozen_ensemble(
    n_sweeps: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluation asks once, and finds what fitting in every episode would."""
    monkeypatch.setattr(_chain_length, "REMEMBERED", -1.0)
    made = classifier(n_sweeps=n_sweeps)
    asked, sample_transform = [], RBSE.sample_transform

    def counted(self: RBSE, X: Any, *arguments: Any, **options: Any) -> Any:
        if options["read"] == "input":
            asked.append(len(X))
        return sample_transform(self, X, *arguments, **options)

    monkeypatch.setattr(RBSE, "sample_transform", counted)
    setting: Options = {"n_shots": [2, 4], "n_queries": 5, "n_episodes": 6, "random_state": 0}
    found = few_shot({"walked": made}, X, Y, **setting)
    assert len(asked) == 1
    monkeypatch.setattr(RBSEClassifier, "shared", lambda self, X: None)
    apart = few_shot({"walked": made}, X, Y, **setting)
    assert len(asked) > 20
    np.testing.assert_array_equal(found.rows.accuracy, apart.rows.accuracy)


def test_with_many_labels_the_mean_has_half_the_say_or_none() -> None:
    """w is chosen in folds: draws that are all noise lose to the mean, draws that are the kind itself win."""
    rng = np.random.default_rng(0)
    target = np.arange(30) % 2
    noise, clear = rng.normal(size=(30, 4, 3)), target[:, None, None] + 0.1 * rng.normal(size=(30, 4, 3))
    blurred = OnDraws(UnpenalizedLogistic(), votes=False, seed=0).fit(noise, clear.mean(1), target)
    assert blurred.share == 0.5
    assert blurred.on_mean is not None
    p = blurred.probabilities(noise, clear.mean(1))
    q = blurred.on_mean.predict_proba(clear.mean(1))
    own = blurred.on_draws.predict_proba(noise.reshape(-1, 3)).reshape(30, 4, 2)
    np.testing.assert_allclose(p, (own + q[:, None]) / 2)
    # A mean of many features that say nothing is sure of itself, and wrong half the time.
    rough = target[:, None, None] + 0.7 * rng.normal(size=(30, 4, 3))
    sharp = OnDraws(UnpenalizedLogistic(), votes=False, seed=0).fit(rough, rng.normal(size=(30, 60)), target)
    assert sharp.share == 1
    few = OnDraws(UnpenalizedLogistic(), votes=False, seed=0).fit(noise[:4], clear.mean(1)[:4], target[:4])
    assert few.share == 1
    assert few.on_mean is None


ERRORS: list[tuple[Options, type[Exception], str]] = [
    ({"n_draws": 0}, ValueError, "n_draws must be >= 1, got 0"),
    ({"n_sweeps": "far"}, ValueError, "n_sweeps must be 'auto' or a number, got 'far'"),
    ({"n_sweeps": -2}, ValueError, "n_sweeps must be >= 0, got -2"),
    ({"noise": "loud"}, ValueError, "noise must be 'auto' or a number, got 'loud'"),
    ({"read": "output"}, ValueError, "read must be one of 'input', 'state', got 'output'"),
    ({"aggregate": "median"}, ValueError, "aggregate must be one of 'mean_proba', 'vote', got 'median'"),
    (
        {"classifier": RidgeClassifier()},
        TypeError,
        "classifier must have predict_proba .*use aggregate='vote'",
    ),
    ({"unlabeled_label": 0}, ValueError, "y must have at least 2 classes, got one class, 1"),
]


@pytest.mark.parametrize(("options", "kind", "message"), ERRORS)
def test_errors(options: Options, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        classifier(**options).fit(X[FEW], Y[FEW])


def test_a_walk_that_depends_on_the_rows_is_not_shared() -> None:
    alone = RBSE.from_rbm((np.zeros((12, 2)), np.zeros(12), np.zeros(2)))
    assert RBSEClassifier(FrozenEstimator(alone)).shared(X) is None
    assert RBSEClassifier(FrozenEstimator(alone), n_sweeps=2).shared(X) is not None
    assert RBSEClassifier(RBSE(K), n_sweeps=2).shared(X) is None


def test_labels_must_be_there() -> None:
    with pytest.raises(
        ValueError, match=r"y must have no missing labels .*got 1; pass unlabeled_label=np.nan"
    ):
        classifier().fit(X[FEW], ["a", "b", None, "a"])
    with pytest.raises(ValueError, match="y must have labels, got none"):
        classifier(unlabeled_label=np.nan).fit(X[FEW], [None] * 4)
    with pytest.raises(ValueError, match=r"y must have labels, got -1 \(unlabeled_label\) for every row"):
        classifier(unlabeled_label=-1).fit(X[FEW], [-1, -1, -1, -1])


def test_a_mark_that_does_not_occur_is_said() -> None:
    with pytest.warns(UserWarning, match=r"unlabeled_label is -1, which is no value of y"):
        classifier(unlabeled_label=-1).fit(X[FEW], Y[FEW])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifier": "logistic"}, r"classifier must be an estimator with fit, got 'logistic'.*Logistic"),
        ({"representation": "RBSE"}, r"representation must be an estimator with transform, got 'RBSE'.*RBSE"),
    ],
)
def test_words_are_no_estimators(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        classifier().set_params(**options).fit(X[FEW], Y[FEW])


def test_names_and_frames_make_no_difference() -> None:
    """A frame in, frames out of the representation: the same predictions, and no warning."""
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    plain = RBSE(8, n_epochs=3, random_state=0).fit(X)
    framed = RBSE(8, n_epochs=3, random_state=0).fit(frame).set_output(transform="pandas")
    expected = RBSEClassifier(FrozenEstimator(plain), random_state=0).fit(X[FEW], Y[FEW]).predict_proba(X)
    few = RBSEClassifier(FrozenEstimator(framed), random_state=0).fit(frame.iloc[FEW], Y[FEW])
    np.testing.assert_allclose(few.predict_proba(frame), expected, rtol=1e-5)


def test_an_interruption_says_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: RBSE, X: Any, y: Any = None) -> RBSE:
        raise KeyboardInterrupt

    monkeypatch.setattr(RBSE, "fit", interrupted)
    made = RBSEClassifier(RBSE(3))
    with pytest.raises(KeyboardInterrupt, match=r"nothing of it is kept; fit it by itself"):
        made.fit(X[FEW], Y[FEW])
    with pytest.raises(NotFittedError):
        made.predict(X)
