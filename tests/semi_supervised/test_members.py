"""Members of the few-label classifier, their weights, and the estimated class prior."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

from ebse.semi_supervised import _class_prior
from ebse.semi_supervised._class_prior import (
    CONCENTRATION,
    caution,
    class_weights,
    estimated_prior,
    prior_weights,
)
from ebse.semi_supervised._columns import Views
from ebse.semi_supervised._members import (
    CLEAR,
    COLUMNS,
    COMPONENTS,
    FEATURES,
    LEAST,
    LINEAR,
    LINEAR_RANKS,
    SHRINK,
    SLOPE,
    TREES,
    WORTH,
    Forest,
    combined,
    expected_accuracy,
    fitted_linear,
    fitted_members,
    folds,
    kappa,
    member_weights,
    recalls,
    sharpness,
    weight_factors,
)

RNG = np.random.default_rng(0)


def views_of(n_classes: int, n: int = 60) -> tuple[Views, Any]:
    y = np.arange(n) % n_classes
    X = (RNG.normal(size=(n, 4)) + y[:, np.newaxis]).astype(np.float32)
    return Views(X, (X**3).astype(np.float32)), y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("view", ["standard", "ranks"])
def test_linear_is_logistic_regression(n_classes: int, view: str) -> None:
    """Up to single precision, in which coefficients are kept."""
    views, y = views_of(n_classes)
    y[:15] = 0
    X = getattr(views, view)
    expected = LogisticRegression(max_iter=300, class_weight="balanced").fit(X, y).predict_proba(X)
    found = fitted_linear(views, view, y, n_classes)(views)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    other = fitted_linear(views, "ranks" if view == "standard" else "standard", y, n_classes)(views)
    assert abs(other - expected).max() > 0.01


def test_ranks_have_a_linear_model_of_their_own() -> None:
    views, y = views_of(2)
    assert list(fitted_members(views, y, 2, seed=0, on_ranks=True)) == [LINEAR, LINEAR_RANKS, TREES]
    assert list(fitted_members(views, y, 2, seed=0, on_ranks=False)) == [LINEAR, TREES]


def test_a_forest_is_the_same_without_scikit_learn() -> None:
    """Bit for bit: a file holds the arrays alone."""
    views, y = views_of(3)
    forest = Forest.fitted(views.standard, y, n_trees=20, seed=0)
    new = Views(*(RNG.normal(size=(50, 4)).astype(np.float32) for _ in range(2)))
    np.testing.assert_array_equal(Forest(forest.trees)(new), forest(new))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_kappa_is_that_of_scikit_learn(n_classes: int) -> None:
    a = RNG.integers(n_classes, size=200)
    for b in (RNG.integers(n_classes, size=200), np.where(RNG.random(200) < 0.3, 0, a), a):
        np.testing.assert_allclose(kappa(a, b, n_classes), cohen_kappa_score(a, b))


def test_kappa_of_a_single_class_is_no_agreement() -> None:
    ones = np.ones(10, dtype=np.intp)
    assert kappa(ones, ones, 2) == 0


@pytest.mark.parametrize("target", [0.5, 0.7, 0.9])
def test_sharpness_meets_the_mean_confidence(target: float) -> None:
    p = RNG.dirichlet([1, 1, 1], size=300)

    def confidence(power: float) -> float:
        q = p**power
        return float((q.max(1) / q.sum(1)).mean())

    np.testing.assert_allclose(confidence(sharpness(p, target)), target, atol=1e-6)
    assert abs(confidence(1) - target) > 0.01


def test_sharpness_has_limits() -> None:
    p = np.full((4, 2), 0.5)
    np.testing.assert_allclose(sharpness(p, 0.9), 20, rtol=1e-6)
    np.testing.assert_allclose(
        sharpness(RNG.dirichlet([0.01, 0.01], size=50) * 0.98 + 0.01, 0.5), 0.2, rtol=1e-6
    )


def test_combined_is_a_weighted_mean() -> None:
    """Against a loop over rows and members."""
    class_weights = np.array([0.6, 0.3, 2.0])
    answers = {name: RNG.dirichlet([0.1, 1, 1], size=8) for name in (COLUMNS, LINEAR, TREES)}
    answers[TREES][0] = [0, 0, 1]
    weights = {COLUMNS: 0.2, LINEAR: 0.5, TREES: 0.3}
    found = combined(answers, weights, class_weights)
    for i in range(8):
        total = np.zeros(3)
        for name, p in answers.items():
            own = [max(float(x), LEAST) for x in p[i]]
            total += weights[name] * np.array(own) / sum(own)
        total *= class_weights
        np.testing.assert_allclose(found[i], total / total.sum())


def test_a_given_prior_weighs_predicted_classes() -> None:
    """Weights to the fourth power balance p⁴; more rows are then predicted as a class of a larger prior."""
    p = RNG.dirichlet([1, 1, 1], size=300)
    sharp = p**4 / (p**4).sum(1, keepdims=True)
    parts = []
    for prior in ([0.2, 0.5, 0.3], [0.05, 0.9, 0.05]):
        found = prior_weights(p, np.array(prior))
        np.testing.assert_allclose(found**4, class_weights(sharp, np.array(prior), softness=0.1))
        parts.append(np.bincount((p * found).argmax(1), minlength=3) / 300)
    np.testing.assert_allclose(parts[0], [0.2, 0.5, 0.3], atol=0.1)
    assert parts[1][1] > 0.75


def test_no_member_excludes_a_class_alone() -> None:
    answers = {COLUMNS: np.array([[1.0, 0.0]]), TREES: np.array([[0.0, 1.0]])}
    found = combined(answers, {COLUMNS: 1.0, TREES: 0.0}, np.ones(2))
    assert found[0, 1] > 0


NAMES = (COLUMNS, COMPONENTS, LINEAR, LINEAR_RANKS, TREES)


def answers_with(agreement: float, names: Any = NAMES) -> dict[str, Any]:
    """Answers in which the second view of propagation agrees with the first on a part of the rows."""
    a = np.arange(300) % 3
    b = np.where(np.arange(300) < agreement * 300, a, (a + 1) % 3)
    return {name: np.eye(3)[b if name == COMPONENTS else a] for name in names}


def propagated(agreement: float, n_labels: int, names: Any = NAMES) -> float:
    weights, _ = member_weights(answers_with(agreement, names), np.full(3, n_labels))
    return sum(w for name, w in weights.items() if name.startswith("propagation"))


@pytest.mark.parametrize(
    "names", [NAMES, (*NAMES, FEATURES), (COLUMNS, COMPONENTS, LINEAR, TREES), NAMES[:2]]
)
def test_weights_sum_to_one(names: Any) -> None:
    for agreement in (0.3, 0.85, 1.0):
        weights, why = member_weights(answers_with(agreement, names), np.array([1, 5, 3]))
        assert set(weights) == set(names)
        assert len(why) == len(weights)
        assert min(weights.values()) > 0
        np.testing.assert_allclose(sum(weights.values()), 1)


def test_propagation_fades_with_labels() -> None:
    found = [propagated(0.9, n) for n in (1, 2, 10, 100)]
    assert (np.diff(found) < 0).all()
    # Half of the limit for no labels at ten per class.
    np.testing.assert_allclose(propagated(0.9, 10) / propagated(0.9, 0), 0.5)


def test_agreement_of_views_raises_the_weight_of_propagation() -> None:
    found = [propagated(agreement, 2) for agreement in (0.5, 0.85, 0.95, 1.0)]
    assert (np.diff(found) > 0).all()
    # Below a kappa of 0.7 agreement does not matter.
    np.testing.assert_allclose(propagated(0.3, 2), propagated(0.5, 2))


def test_propagation_has_most_weight_where_classes_are_clear_clusters() -> None:
    def part(agreement: float, n_clusters: int) -> float:
        weights, _ = member_weights(answers_with(agreement), np.full(3, 0), n_clusters=n_clusters)
        return weights[COLUMNS]

    few, some, many = (part(1.0, n) for n in (100, 175, 250))
    np.testing.assert_allclose([some - few, many - few], [CLEAR / 2, CLEAR])
    assert part(1.0, 10_000) == many
    # A kappa of 0.8 is not clear enough: 13 of 15 rows agree.
    assert part(13 / 15, 250) == pytest.approx(part(13 / 15, 100))


def test_learned_features_have_most_of_the_weight() -> None:
    weights, _ = member_weights(answers_with(0.9, (*NAMES, FEATURES)), np.full(3, 1))
    assert weights[FEATURES] == max(weights.values())
    assert propagated(0.9, 1, (*NAMES, FEATURES)) > propagated(0.9, 1)


def test_members_without_answers_have_their_weight() -> None:
    """After load the rows of fit are not there: weights are the same as with the answers."""
    full, _ = member_weights(answers_with(0.9), np.full(3, 4))
    some = {name: p for name, p in answers_with(0.9).items() if name.startswith("propagation")}
    found, _ = member_weights(some, np.full(3, 4), NAMES[2:])
    assert list(found) == list(full)
    np.testing.assert_allclose(list(found.values()), list(full.values()))


@pytest.mark.parametrize(("n", "part"), [(1, 0.8), (2, 0.6), (3, 0.4), (50, 0.4)])
def test_trees_have_more_of_the_rest_with_more_labels(n: int, part: float) -> None:
    weights, _ = member_weights(answers_with(0.9), np.full(3, n))
    linear = weights[LINEAR] + weights[LINEAR_RANKS]
    np.testing.assert_allclose(linear / (linear + weights[TREES]), part)


def test_expected_accuracy_rises_with_agreement_and_labels() -> None:
    answers = {i: np.eye(3)[np.arange(90) % 3] for i in "ab"}
    half = {"a": answers["a"], "b": np.roll(answers["b"], 1, axis=1)}
    p, few, many = answers["a"] * 0.7 + 0.1, np.full(3, 1), np.full(3, 5)
    assert (
        expected_accuracy(half, p, few)
        < expected_accuracy(answers, p, few)
        < expected_accuracy(answers, p, many)
    )
    unsure = answers["a"] * 0.1 + 0.3
    assert expected_accuracy({"a": half["b"]}, unsure, few) == 1 / 3 + 0.02


def test_expected_accuracy_rises_with_confidence() -> None:
    answers = {i: np.eye(3)[np.arange(90) % 3] for i in "ab"}
    sure, unsure = answers["a"] * 0.7 + 0.1, answers["a"] * 0.4 + 0.2
    few = np.full(3, 1)
    assert expected_accuracy(answers, unsure, few) < expected_accuracy(answers, sure, few)


@pytest.mark.parametrize("n", [3, 20])
def test_expected_accuracy_is_shrunk_toward_the_regression(n: int) -> None:
    """As much as if that were the accuracy of WORTH labels more."""
    answers = {i: np.eye(3)[np.arange(90) % 3] for i in "ab"}
    p, counts = answers["a"] * 0.7 + 0.1, np.full(3, n)
    alone = expected_accuracy(answers, p, counts)
    found = expected_accuracy(answers, p, counts, cross_validated=0.4, n_cross_validated=n)
    np.testing.assert_allclose(found, (WORTH * alone + n * 0.4) / (WORTH + n))
    assert expected_accuracy(answers, p, counts, cross_validated=1.0, n_cross_validated=10**6) == 0.99


def test_folds_leave_every_row_out_once() -> None:
    target = np.repeat([0, 1, 2], [3, 8, 4])
    found = folds(target, 3, seed=0)
    assert len(found) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in found])), np.arange(15))
    for train, test in found:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(15))
        assert set(target[train]) == {0, 1, 2}
    assert len(folds(np.repeat([0, 1], 40), 2, seed=0)) == 5
    assert folds(np.repeat([0, 1], [2, 30]), 2, seed=0) == []
    assert folds(np.repeat([0, 2], 30), 3, seed=0) == []
    assert [list(test) for _, test in folds(target, 3, seed=1)] != [list(test) for _, test in found]


def test_rows_of_rare_classes_are_in_all_training_parts() -> None:
    target = np.repeat([0, 1, 2], [8, 2, 4])
    found = folds(target, 3, seed=0)
    assert len(found) == 4
    for train, test in found:
        assert {8, 9} <= set(train)
        assert set(target[test]) == {0, 2}


def test_recalls() -> None:
    p = np.eye(3)[[0, 0, 1, 1, 2, 0]]
    np.testing.assert_allclose(recalls(p, np.array([0, 0, 0, 1, 2, 2])), [2 / 3, 1, 1 / 2])
    # A class without rows has the mean of the others.
    np.testing.assert_allclose(recalls(p[:4], np.array([0, 0, 0, 1])), [2 / 3, 1, 5 / 6])


def test_accurate_members_weigh_more() -> None:
    """exp(slope · difference of accuracies), with a slope that grows with the labels."""
    target = np.arange(50) % 2
    wrong = np.where(np.arange(50) < 10, 1 - target, target)
    left_out = {COLUMNS: np.eye(2)[wrong], LINEAR: np.eye(2)[target]}
    found = weight_factors(left_out, target)
    assert found[LINEAR] == 1
    np.testing.assert_allclose(found[COLUMNS], np.exp(-0.2 * SLOPE * 50 / (50 + SHRINK)))
    fewer = weight_factors({name: p[:20] for name, p in left_out.items()}, target[:20])
    np.testing.assert_allclose(fewer[COLUMNS], np.exp(-0.5 * SLOPE * 20 / (20 + SHRINK)))
    assert weight_factors({}, target) == {}


def test_weights_are_multiplied_by_factors() -> None:
    answers, counts = answers_with(0.9), np.full(3, 4)
    factors = {name: 0.5 if name == COLUMNS else 1.0 for name in NAMES}
    plain, _ = member_weights(answers, counts)
    found, why = member_weights(answers, counts, factors=factors)
    total = 1 - plain[COLUMNS] / 2
    for name in NAMES:
        np.testing.assert_allclose(found[name], plain[name] * factors[name] / total)
    assert why[list(found).index(COLUMNS)].endswith("× 0.50 by cross-validation")


def mixture(prior: Any, n: int = 4000) -> Any:
    """Posteriors under equal classes of rows from Gaussians at 0, 2 and 4, in these proportions."""
    means = np.array([0.0, 2.0, 4.0])
    x = RNG.normal(size=n) + means[RNG.choice(3, p=prior, size=n)]
    density = np.exp(-((x[:, np.newaxis] - means) ** 2) / 2)
    return density / density.sum(1, keepdims=True)


def maximizer(p: Any, concentration: float) -> Any:
    """Of the penalized log-likelihood mean log p·π + c Σ log π, by a general optimizer."""

    def loss(free: Any) -> float:
        prior = np.exp(np.append(free, 0))
        prior /= prior.sum()
        return float(-np.log(p @ prior).mean() - concentration * np.log(prior).sum())

    free = optimize.minimize(loss, np.zeros(2), tol=1e-10).x
    prior = np.exp(np.append(free, 0))
    return prior / prior.sum()


TRUE = np.array([0.7, 0.2, 0.1])


def test_the_estimated_prior_maximizes_its_likelihood() -> None:
    p = mixture(TRUE)
    found, _ = estimated_prior({"a": p}, {"a": 1.0})
    np.testing.assert_allclose(found, maximizer(p, CONCENTRATION), atol=1e-4)
    assert abs(maximizer(p, 0.0) - found).max() > 0.01


def test_without_shrinkage_the_prior_is_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within five standard errors of a fraction, times 1.5 for the overlap of the classes."""
    monkeypatch.setattr(_class_prior, "CONCENTRATION", 0.0)
    p = mixture(TRUE)
    found, _ = estimated_prior({"a": p}, {"a": 1.0})
    tolerance = 5 * 1.5 * np.sqrt(TRUE * (1 - TRUE) / len(p))
    assert (abs(found - TRUE) < tolerance).all()
    np.testing.assert_allclose(found, maximizer(p, 0.0), atol=1e-4)
    # Mean posteriors under equal classes are not the prior.
    assert (abs(p.mean(0) - TRUE) > tolerance).any()


def test_shrinkage_pulls_to_equal_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    p = mixture(TRUE)
    apart = []
    for concentration in (0.0, 0.05, 0.5, 50.0):
        monkeypatch.setattr(_class_prior, "CONCENTRATION", concentration)
        apart.append(abs(estimated_prior({"a": p}, {"a": 1.0})[0] - 1 / 3).sum())
    assert (np.diff(apart) < 0).all()
    assert apart[-1] < 0.02


def test_the_error_of_the_prior_is_the_deviation_of_the_members() -> None:
    p, q = mixture(TRUE), mixture(TRUE[::-1])
    each = [estimated_prior({"a": x}, {"a": 1.0})[0] for x in (p, q)]
    found, error = estimated_prior({"a": p, "b": q}, {"a": 3.0, "b": 1.0, "unused": 5.0})
    np.testing.assert_allclose(error, np.std(each, axis=0))
    np.testing.assert_allclose(found, estimated_prior({"a": (3 * p + q) / 4}, {"a": 1.0})[0])


def test_caution() -> None:
    """0 up to a total variation of 0.1 from equal classes, its limit from 0.2 on, linear between."""
    found = [caution(np.array([0.5 + d, 0.5 - d]), 2) for d in (0, 0.1, 0.15, 0.2, 0.4)]
    np.testing.assert_allclose(found, [0, 0, 0.1, 0.2, 0.2], atol=1e-9)
    # The limit rises with labels per class from 0 to 0.4.
    found = [caution(np.array([0.9, 0.1]), n) for n in (0, 1, 8, 1e9)]
    np.testing.assert_allclose(found, [0, 0.4 / 3, 0.32, 0.4])


def test_propagation_over_few_clusters_counts_less() -> None:
    few, many, more = (
        member_weights(answers_with(0.7), np.full(3, 1), n_clusters=n)[0][COLUMNS] for n in (5, 20, 500)
    )
    assert few == pytest.approx(many / 4)
    assert more == many
