"""RBSEClassifier: training on draws, labels, suggestions, and files."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import KBinsDiscretizer

from ebse import RBSE
from ebse import _chains as module
from ebse.ensemble import RBSEClassifier
from ebse.ensemble.classifier import DrawClassifier, UnpenalizedLogistic
from ebse.evaluation import few_shot
from ensemble.rows import K, fitted, rows

X, Y = rows()
FEW = [0, 1, 2, 3]
Options = dict[str, Any]


def classifier(**options: Any) -> RBSEClassifier:
    return RBSEClassifier(FrozenEstimator(fitted()), **({"n_sweeps": 2, "random_state": 0} | options))


def few_labels(y: Any = Y) -> npt.NDArray[Any]:
    """y with None for all rows but the first four."""
    found = np.full(len(X), None, dtype=object)
    found[FEW] = np.asarray(y, dtype=object)[FEW]
    return found


def test_predictions_are_averaged_over_the_draws_of_a_row() -> None:
    made = classifier(n_draws=4, n_sweeps=2, draw_noise=0.1).fit(X[FEW], Y[FEW])
    options: Options = {"n_sweeps": 2, "keep_prob": 0.1, "random_state": made._seed}
    draws = fitted().sample_transform(X, 4, **options)
    np.testing.assert_array_equal(made.representations(X), draws)
    inner = UnpenalizedLogistic().fit(draws[FEW].reshape(-1, K), np.repeat(Y[FEW], 4))
    expected = inner.predict_proba(draws.reshape(-1, K)).reshape(len(X), 4, 2)
    np.testing.assert_allclose(made.predict_proba(X), expected.mean(1), rtol=1e-6)
    np.testing.assert_array_equal(made.predict(X), expected.mean(1).argmax(1))
    voted = classifier(n_draws=4, n_sweeps=2, draw_noise=0.1, aggregate="vote").fit(X[FEW], Y[FEW])
    np.testing.assert_allclose(voted.predict_proba(X)[:, 1], expected.argmax(2).mean(1))


@pytest.mark.parametrize(
    ("law", "draw_noise", "expected"),
    [
        ("bernoulli", "auto", {"keep_prob": 0.01}),
        ("gaussian", "auto", {"sigma": 0.5}),
        ("gaussian", 0.2, {"sigma": 0.2}),
        ("point", 0.2, {"keep_prob": 0.2}),
        ("bernoulli", None, {}),
    ],
)
def test_draw_noise_is_that_of_the_law(law: str, draw_noise: Any, expected: Options) -> None:
    made = RBSEClassifier(
        FrozenEstimator(fitted(law=law)), n_draws=2, n_sweeps=1, draw_noise=draw_noise, random_state=0
    ).fit(X[FEW], Y[FEW])
    draws = fitted(law=law).sample_transform(X, 2, n_sweeps=1, random_state=made._seed, **expected)
    np.testing.assert_array_equal(made.representations(X), draws)


def test_two_labels_per_class_suffice_for_two_clear_classes() -> None:
    assert classifier(n_sweeps="auto").fit(X[FEW], Y[FEW]).score(X, Y) > 0.85


def test_an_unfitted_ensemble_is_fitted_to_all_rows_and_a_frozen_one_is_not() -> None:
    rbse = RBSE(K, n_epochs=3, random_state=0)
    made = RBSEClassifier(rbse, n_sweeps=0, random_state=0).fit(X[FEW], Y[FEW], X_unlabeled=X[4:])
    np.testing.assert_array_equal(made.representation_.transform(X), clone(rbse).fit(X).transform(X))
    assert not hasattr(rbse, "alpha_")
    assert classifier().fit(X[FEW], Y[FEW], X_unlabeled=X).representation_ is fitted()


def test_missing_labels_and_the_unlabeled_label_mark_unlabeled_rows() -> None:
    words = np.where(np.isin(np.arange(len(X)), FEW), np.where(Y == 0, "cat", "dog"), "?")
    rbse = RBSE(K, n_epochs=3, random_state=0)
    made = RBSEClassifier(rbse, n_sweeps=0, unlabeled_label="?", random_state=0).fit(X, words)
    same = RBSEClassifier(rbse, n_sweeps=0, random_state=0).fit(X[FEW], words[FEW], X_unlabeled=X[4:])
    assert list(made.classes_) == ["cat", "dog"]
    np.testing.assert_allclose(made.predict_proba(X), same.predict_proba(X), rtol=1e-5)
    numbers = RBSEClassifier(rbse, n_sweeps=0, unlabeled_label=-1).fit(X, np.where(words == "?", -1, Y))
    assert list(numbers.classes_) == [0, 1]
    for missing in (None, np.nan, pd.NA):
        holes = words.astype(object)
        holes[words == "?"] = missing
        found = RBSEClassifier(rbse, n_sweeps=0, random_state=0).fit(X, holes)
        np.testing.assert_array_equal(found.predict(X), made.predict(X))


def test_labels_of_two_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y must be words or numbers, one kind"):
        classifier().fit(X[FEW], [1, "1", 0, "0"])
    assert list(classifier().fit(X[FEW], ["1", "1", "0", "0"]).classes_) == ["0", "1"]


def test_without_labels_only_the_representation_is_fitted() -> None:
    made = RBSEClassifier(RBSE(K, n_epochs=2, random_state=0), n_sweeps=0, random_state=0).fit(X)
    assert made.representations(X).shape == (len(X), 10, K)
    for call in (made.predict, made.predict_proba, made.uncertainty):
        with pytest.raises(NotFittedError, match=r"fitted without labels \(y=None\).*call fit with labels"):
            call(X)
    assert not hasattr(made, "classes_")
    assert not hasattr(made, "transduction_")
    # A fit with labels, and one without after it.
    assert made.fit(X[FEW], Y[FEW]).predict(X).shape == (len(X),)
    assert not hasattr(made.fit(X), "classes_")


def test_a_refused_refit_leaves_the_classifier_alone() -> None:
    made = classifier(n_sweeps=1).fit(X[FEW], Y[FEW])
    before = made.predict_proba(X)
    with pytest.raises(ValueError, match="representation must be fitted to rows of 5 features"):
        made.fit(X[FEW, :5], Y[FEW])
    with pytest.raises(ValueError, match=r"y must have labels, got none.*y=None"):
        made.fit(X[FEW], [None] * 4)
    np.testing.assert_array_equal(made.predict_proba(X), before)
    assert made.n_features_in_ == X.shape[1]


def test_transduction_keeps_given_labels_and_predicts_the_others() -> None:
    y = few_labels(np.where(Y == 0, "cat", "dog"))
    # A wrong label is kept, too.
    y[0] = "dog"
    made = classifier(n_sweeps=1).fit(X[:20], y[:20], X_unlabeled=X[20:])
    labels = made.transduction_
    assert labels.shape == (len(X),)
    assert list(labels[FEW]) == list(y[FEW])
    np.testing.assert_array_equal(labels[4:], made.predict(X)[4:])
    p = made.label_distributions_
    np.testing.assert_allclose(p[4:], made.predict_proba(X)[4:], rtol=1e-6)
    np.testing.assert_array_equal(p[0], [0, 1])
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    named = RBSEClassifier(RBSE(K, n_epochs=1), n_sweeps=0).fit(frame, y)
    assert len(named.transduction_) == len(X)


def test_suggestions_are_the_rows_that_models_disagree_on() -> None:
    made = classifier(n_draws=20, n_sweeps=3).fit(X, few_labels())
    information = made.uncertainty(X).mutual_information
    found = made.suggest(5, exclude=[7])
    assert not set(found) & {*FEW, 7}
    others = np.setdiff1d(np.arange(len(X)), [*FEW, 7, *found])
    assert information[found].min() >= information[others].max() - 1e-9
    assert (np.diff(information[found]) <= 1e-9).all()
    # About other rows, labeled ones are not known.
    np.testing.assert_array_equal(made.suggest(3, X=X), np.lexsort((-information.round(12),))[:3])


def test_suggestions_without_models_go_by_entropy() -> None:
    made = RBSEClassifier(FrozenEstimator(PCA(2).fit(X)), random_state=0).fit(X, few_labels())
    entropy = made.uncertainty(X).entropy
    left = np.setdiff1d(np.arange(len(X)), FEW)
    assert made.suggest()[0] == left[entropy[left].argmax()]


def test_suggestions_without_labels_cover_the_data() -> None:
    """Greedy k-center against a loop; rows that were excluded count as centers."""
    made = classifier().fit(X)
    Z = fitted().transform(X).astype(np.float64)

    def loop(n: int, before: list[int]) -> list[int]:
        chosen: list[int] = []
        for _ in range(n):
            left = [i for i in range(len(X)) if i not in chosen and i not in before]
            centers = [*before, *chosen]
            if not centers:
                chosen.append(min(left, key=lambda i: float(((Z[i] - Z.mean(0)) ** 2).sum())))
            else:
                chosen.append(
                    max(left, key=lambda i: min(float(((Z[i] - Z[c]) ** 2).sum()) for c in centers))
                )
        return chosen

    first = made.suggest(6)
    np.testing.assert_allclose(Z[first], Z[loop(6, [])], atol=1e-6)
    again = made.suggest(4, exclude=first)
    assert not set(again) & set(first)
    np.testing.assert_allclose(Z[again], Z[loop(4, list(first))], atol=1e-6)
    assert len(made.suggest(5, X=X[:3])) == 3
    assert sorted(made.suggest(1_000)) == list(range(len(X)))


@pytest.mark.parametrize("exclude", [[-1], [60], [0.5], ["a"], [[1, 2]]])
def test_indices_that_are_not_rows_are_refused(exclude: Any) -> None:
    with pytest.raises(
        ValueError, match=r"exclude must hold indices of rows, whole numbers from 0 to 59, got"
    ):
        classifier().fit(X).suggest(exclude=exclude)


def test_uncertainty_splits_entropy() -> None:
    made = classifier(n_draws=20, n_sweeps=3).fit(X[FEW], Y[FEW])
    found = made.uncertainty(X)
    p = made._draw_probabilities(X)
    for n in range(3):
        mean = p[n].mean(0)
        entropy = -sum(q * np.log(q) for q in mean)
        within = np.mean([-sum(q * np.log(q) if q > 0 else 0 for q in draw) for draw in p[n]])
        assert found.entropy[n] == pytest.approx(entropy)
        assert found.mutual_information[n] == pytest.approx(entropy - within, abs=1e-9)
    assert (found.mutual_information >= -1e-9).all()
    assert (found.entropy >= found.mutual_information - 1e-9).all()


def test_any_classifier_and_any_transformer_can_be_used() -> None:
    forest = classifier(classifier=RandomForestClassifier(5)).fit(X[FEW], Y[FEW])
    again = classifier(classifier=RandomForestClassifier(5)).fit(X[FEW], Y[FEW])
    np.testing.assert_array_equal(forest.predict_proba(X), again.predict_proba(X))
    assert classifier(classifier=KNeighborsClassifier(3)).fit(X[FEW], Y[FEW]).score(X, Y) > 0.7
    ridge = classifier(classifier=RidgeClassifier(), aggregate="vote").fit(X[FEW], Y[FEW])
    assert ridge.score(X, Y) > 0.7
    pca = RBSEClassifier(PCA(2)).fit(X[FEW], Y[FEW], X_unlabeled=X)
    assert pca.representations(X).shape == (len(X), 1, 2)
    assert pca.score(X, Y) > 0.7


def test_rows_of_other_types() -> None:
    made = classifier(n_sweeps=1).fit(X[FEW], Y[FEW])
    for other in (sparse.csr_array(X), torch.from_numpy(X), X.astype(bool)):
        np.testing.assert_array_equal(made.predict(other), made.predict(X))
    mixed = classifier(n_sweeps=1).fit(X[FEW], Y[FEW], X_unlabeled=sparse.csr_array(X[4:]))
    assert len(mixed.transduction_) == len(X)


def test_chains_are_as_long_as_they_stay_correlated(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {20: 0.8, 30: 0.61, 40: 0.59, 50: 0.7}
    monkeypatch.setattr(module, "start_correlation", lambda rbse, X, n_sweeps, *, seed: kept[n_sweeps])
    made = classifier(n_sweeps="auto").fit(X[FEW], Y[FEW])
    assert (made.n_sweeps_, made.source_) == (30, "posterior")
    monkeypatch.setattr(module, "start_correlation", lambda rbse, X, n_sweeps, *, seed: 0.1)
    still = classifier(n_sweeps="auto").fit(X[FEW], Y[FEW])
    assert (still.n_sweeps_, still.source_) == (0, "mean")
    np.testing.assert_allclose(still.representations(X), fitted().transform(X)[:, None], rtol=1e-5)
    given = classifier(n_sweeps=0).fit(X[FEW], Y[FEW])
    assert (given.n_sweeps_, given.source_) == (0, "posterior")


def test_the_correlation_is_one_at_the_start_and_falls() -> None:
    rbse = fitted()
    assert module.start_correlation(rbse, X, 0, seed=0) == pytest.approx(1, abs=1e-5)
    near, far = (module.start_correlation(rbse, X, n, seed=0) for n in (1, 300))
    assert 1 > near > far
    # Against a loop: one regression slope over all rows and units.
    m = rbse.transform(X).astype(np.float64)
    states = rbse.sample_transform(X, module.N_CHAINS, n_sweeps=1, read="state", random_state=0)
    s = states.mean(1).astype(np.float64)
    above = sum((m[:, j] - m[:, j].mean()) @ (s[:, j] - s[:, j].mean()) for j in range(K))
    below = sum((m[:, j] - m[:, j].mean()) @ (m[:, j] - m[:, j].mean()) for j in range(K))
    assert near == pytest.approx(above / below, rel=1e-4)


@pytest.mark.parametrize("n_sweeps", [1, "auto"])
def test_episodes_share_the_draws_of_a_frozen_ensemble(
    n_sweeps: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call of sample_transform gives the accuracies of a fit in every episode."""
    monkeypatch.setattr(module, "LEAST_CORRELATION", -1.0)
    monkeypatch.setattr(module, "LENGTHS", (2, 3))
    made = classifier(n_sweeps=n_sweeps)
    calls, sample_transform = [], RBSE.sample_transform

    def counted(self: RBSE, X: Any, *arguments: Any, **options: Any) -> Any:
        if options["read"] == "input":
            calls.append(len(X))
        return sample_transform(self, X, *arguments, **options)

    monkeypatch.setattr(RBSE, "sample_transform", counted)
    setting: Options = {"n_shots": [2, 4], "n_queries": 5, "n_episodes": 3, "random_state": 0}
    found = few_shot({"draws": made}, X, Y, **setting)
    assert len(calls) == 1
    monkeypatch.setattr(RBSEClassifier, "represented", lambda self, X: (self, X))
    apart = few_shot({"draws": made}, X, Y, **setting)
    assert len(calls) > 10
    np.testing.assert_array_equal(found.rows.accuracy, apart.rows.accuracy)


def test_with_many_labels_the_mean_has_a_weight_of_one_half_or_none() -> None:
    """Cross-validation chooses w: draws that are all noise lose to the mean, informative ones win."""
    rng = np.random.default_rng(0)
    target = np.arange(30) % 2
    noise, clear = rng.normal(size=(30, 4, 3)), target[:, None, None] + 0.1 * rng.normal(size=(30, 4, 3))
    new = DrawClassifier(UnpenalizedLogistic(), with_mean=True)
    Z = np.concatenate([noise, clear.mean(1, keepdims=True)], 1)
    blurred = clone(new).fit(Z, target)
    assert blurred.draw_weight_ == 0.5
    p = blurred.probabilities(Z)
    q = blurred.mean_classifier_.predict_proba(clear.mean(1))
    own = blurred.draw_classifier_.predict_proba(noise.reshape(-1, 3)).reshape(30, 4, 2)
    np.testing.assert_allclose(p, (own + q[:, None]) / 2)
    # A mean of many features without information is confident, and wrong half the time.
    rough = np.pad(target[:, None, None] + 0.7 * rng.normal(size=(30, 4, 3)), ((0, 0), (0, 0), (0, 57)))
    sharp = clone(new).fit(np.concatenate([rough, rng.normal(size=(30, 1, 60))], 1), target)
    assert sharp.draw_weight_ == 1
    few = clone(new).fit(Z[:4], target[:4])
    assert few.draw_weight_ == 1
    assert few.mean_classifier_ is None


ERRORS: list[tuple[Options, type[Exception], str]] = [
    ({"n_draws": 0}, ValueError, "n_draws must be >= 1, got 0"),
    ({"n_sweeps": "far"}, ValueError, "n_sweeps must be 'auto' or a number, got 'far'"),
    ({"n_sweeps": -2}, ValueError, "n_sweeps must be >= 0, got -2"),
    ({"draw_noise": "loud"}, ValueError, "draw_noise must be 'auto' or a number, got 'loud'"),
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


def test_draws_that_depend_on_the_rows_are_not_shared() -> None:
    alone = RBSE.from_rbm((np.zeros((12, 2)), np.zeros(12), np.zeros(2)))
    for made in (RBSEClassifier(FrozenEstimator(alone)), RBSEClassifier(RBSE(K), n_sweeps=2)):
        assert made.represented(X) == (made, X)
    shared, Z = RBSEClassifier(FrozenEstimator(alone), n_sweeps=2).represented(X)
    assert isinstance(shared, DrawClassifier)
    assert Z.shape == (len(X), 10, 2)


def test_rows_without_any_label_are_refused() -> None:
    for options, y in (({}, [None] * 4), ({"unlabeled_label": -1}, [-1] * 4)):
        with pytest.raises(ValueError, match=r"y must have labels, got none.*pass y=None"):
            classifier(**options).fit(X[FEW], y)


def test_an_unlabeled_label_that_does_not_occur_warns() -> None:
    with pytest.warns(UserWarning, match=r"no row has the label -1 \(unlabeled_label\)"):
        classifier(unlabeled_label=-1).fit(X[FEW], Y[FEW])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classifier": "logistic"}, r"classifier must be an estimator with fit, got 'logistic'.*Logistic"),
        ({"representation": "RBSE"}, r"representation must be an estimator with transform, got 'RBSE'.*RBSE"),
    ],
)
def test_strings_are_not_estimators(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        classifier().set_params(**options).fit(X[FEW], Y[FEW])


def test_rows_of_another_width_or_scale() -> None:
    with pytest.raises(ValueError, match="X_unlabeled must have the 12 features of X, got 5"):
        classifier().fit(X[FEW], Y[FEW], X_unlabeled=X[:, :5])
    with pytest.raises(ValueError, match=r"X_unlabeled must have entries below 1e\+20"):
        classifier().fit(X[FEW], Y[FEW], X_unlabeled=X + np.float32(1e21))
    gray = np.random.default_rng(0).random((60, 12)).astype(np.float32)
    bytes_ = np.round(gray * 255)
    with pytest.warns(UserWarning, match="X_unlabeled has entries from 0 to 255, but the rows of X are"):
        RBSEClassifier(PCA(2)).fit(gray[FEW], Y[FEW], X_unlabeled=bytes_)
    made = RBSEClassifier(PCA(2)).fit(gray, Y)
    with pytest.warns(UserWarning, match="X has entries from 0 to 255, but the rows of fit are from 0 to 1"):
        made.predict(bytes_)


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
    made = RBSEClassifier(RBSE(3, n_epochs=3))
    with pytest.raises(KeyboardInterrupt, match=r"nothing of it is kept; fit it by itself"):
        made.fit(X[FEW], Y[FEW])
    with pytest.raises(NotFittedError):
        made.predict(X)
    # An earlier fit stays as it was.
    monkeypatch.undo()
    made.fit(X[FEW], Y[FEW])
    before = made.predict_proba(X)
    monkeypatch.setattr(RBSE, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.fit(X[FEW, :5], Y[FEW])
    np.testing.assert_array_equal(made.predict_proba(X), before)


def test_a_frozen_representation_of_reordered_columns_is_refused() -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    made = RBSEClassifier(FrozenEstimator(PCA(2).fit(frame)), random_state=0)
    with pytest.raises(ValueError, match="in their order, got one whose column 0 is 'f0', where that of X"):
        made.fit(frame[frame.columns[::-1]], Y)
    assert made.fit(frame, Y).score(frame, Y) > 0.8


def test_without_labels_there_is_no_transduction() -> None:
    made = classifier().fit(X)
    for name in ("transduction_", "label_distributions_"):
        with pytest.raises(NotFittedError, match="fitted without labels"):
            getattr(made, name)


@pytest.mark.parametrize("empty", [X[:0], [], sparse.csr_matrix((0, X.shape[1]))])
def test_no_unlabeled_rows_are_as_none(empty: Any) -> None:
    made = [classifier().fit(X, Y, X_unlabeled=more) for more in (None, empty)]
    np.testing.assert_array_equal(made[0].predict_proba(X), made[1].predict_proba(X))


@pytest.mark.parametrize("labeled", [True, False])
def test_copies_of_labeled_rows_are_not_suggested(labeled: bool) -> None:
    twice = np.concatenate([X, X])
    made = classifier(n_sweeps=0).fit(X[FEW], Y[FEW] if labeled else None, X_unlabeled=twice)
    same = {i for i, row in enumerate(twice) if (row == X[FEW]).all(1).any()}
    assert len(same) >= 2 * len(FEW)
    for form in (twice, twice.astype(np.float64), sparse.csr_matrix(twice)):
        assert same.isdisjoint(made.suggest(1_000, X=form)) == labeled
    assert {i + len(FEW) for i in same}.isdisjoint(made.suggest(1_000)) == labeled


def test_rows_in_place_of_a_number_are_refused() -> None:
    with pytest.raises(TypeError, match=r"n must be a whole number, got an array; pass rows as X="):
        classifier().fit(X).suggest(X)  # type: ignore[arg-type]


def test_sparse_representations_are_used_as_dense_ones() -> None:
    bins = KBinsDiscretizer(2, encode="onehot", strategy="uniform")
    dense = KBinsDiscretizer(2, encode="onehot-dense", strategy="uniform")
    found = [RBSEClassifier(one, random_state=0).fit(X, Y).predict_proba(X) for one in (bins, dense)]
    np.testing.assert_allclose(found[0], found[1])
