"""Trees as arrays: the same probabilities as scikit-learn's, and arrays that do not fit together."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from ebse.semi_supervised import _trees
from ebse.semi_supervised._trees import Trees

RNG = np.random.default_rng(0)
Y = RNG.choice(3, p=[0.7, 0.2, 0.1], size=150)
X = (RNG.normal(size=(150, 5)) + Y[:, np.newaxis]).astype(np.float32)
NEW = RNG.normal(size=(200, 5)).astype(np.float32)

FORESTS: dict[str, Any] = {
    "extra trees": ExtraTreesClassifier(10, random_state=0),
    "random forest": RandomForestClassifier(10, random_state=0),
    "impure leaves": ExtraTreesClassifier(10, max_depth=2, random_state=0),
    "weighted classes": RandomForestClassifier(
        10, max_depth=3, class_weight={0: 1, 1: 5, 2: 20}, random_state=0
    ),
    "balanced classes": ExtraTreesClassifier(10, class_weight="balanced", min_samples_leaf=4, random_state=0),
    "a single node": ExtraTreesClassifier(3, min_samples_split=1000, random_state=0),
}


@pytest.fixture(scope="module")
def trees() -> Trees:
    return Trees.of(FORESTS["impure leaves"].fit(X, Y))


@pytest.mark.parametrize("name", FORESTS)
def test_probabilities_are_those_of_scikit_learn(name: str) -> None:
    forest = FORESTS[name].fit(X, Y)
    for rows in (X, NEW, NEW[:1], NEW.astype(np.float64)):
        np.testing.assert_allclose(
            Trees.of(forest).predict_proba(rows), forest.predict_proba(rows), rtol=1e-12
        )


def test_leaves_of_the_comparison_are_impure() -> None:
    """With pure leaves alone, predictions would be right without their frequencies."""
    p = FORESTS["impure leaves"].fit(X, Y).estimators_[0].predict_proba(X)
    assert ((p > 0) & (p < 1)).any()


def test_values_at_a_threshold_go_left() -> None:
    """In single precision: 0.25 + 1e-12 is at the threshold 0.25, the next number of single precision is not."""
    forest = RandomForestClassifier(1, bootstrap=False, random_state=0).fit([[0.0], [0.5]], [0, 1])
    made = Trees.of(forest)
    assert made.threshold[0] == 0.25
    near = np.array([[0.25], [0.25 + 1e-12], [np.nextafter(np.float32(0.25), np.float32(1))]])
    np.testing.assert_array_equal(made.predict_proba(near), forest.predict_proba(near))
    assert made.predict_proba(near)[:, 0].tolist() == [1, 1, 0]


def test_blocks_of_rows(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trees.predict_proba(NEW)
    for size in (1, 7, 200, 201):
        monkeypatch.setattr(_trees, "BLOCK", size)
        np.testing.assert_array_equal(trees.predict_proba(NEW), expected)
    assert trees.predict_proba(NEW[:0]).shape == (0, 3)


def test_more_rows_than_a_block(trees: Trees) -> None:
    rows = np.resize(NEW, (_trees.BLOCK + 10, 5))
    np.testing.assert_array_equal(trees.predict_proba(rows)[-10:], trees.predict_proba(rows[-10:]))


def test_arrays_round_trip(trees: Trees) -> None:
    made = Trees.from_arrays(trees._asdict(), 5)
    np.testing.assert_array_equal(made.predict_proba(NEW), trees.predict_proba(NEW))


def first_leaf(trees: Trees) -> int:
    return int(np.flatnonzero(trees.left == np.arange(len(trees.left)))[0])


def changed(x: Any, at: int, value: Any) -> Any:
    made = x.copy()
    made[at] = value
    return made


DOCTORED: dict[str, Any] = {
    "back to the root": lambda t: {"left": changed(t.left, first_leaf(t), 0)},
    "both sides back": lambda t: {k: changed(getattr(t, k), first_leaf(t), 0) for k in ("left", "right")},
    "round and round": lambda t: {"left": changed(t.left, 0, 0)},
    "a leaf on one side": lambda t: {"right": changed(t.right, first_leaf(t), len(t.right) - 1)},
    "a node that is not there": lambda t: {"right": changed(t.right, 0, len(t.right))},
    "a negative node": lambda t: {"left": changed(t.left, 0, -1)},
    "a feature too large": lambda t: {"feature": changed(t.feature, 0, 5)},
    "a negative feature": lambda t: {"feature": changed(t.feature, 0, -1)},
    "a root too large": lambda t: {"roots": changed(t.roots, 0, len(t.left))},
    "a negative root": lambda t: {"roots": changed(t.roots, 0, -1)},
    "no root": lambda t: {"roots": t.roots[:0]},
    "roots in two dimensions": lambda t: {"roots": t.roots[np.newaxis]},
    "features that are no integers": lambda t: {"feature": t.feature.astype(float)},
    "nodes that are no integers": lambda t: {"left": t.left.astype(float)},
    "fewer thresholds": lambda t: {"threshold": t.threshold[:-1]},
    "fewer values": lambda t: {"value": t.value[:-1]},
    "values in one dimension": lambda t: {"value": t.value[:, 0]},
    "values that are no frequencies": lambda t: {"value": 2 * t.value},
    "negative values": lambda t: {"value": t.value + np.array([1, -1, 0])},
}


@pytest.mark.parametrize("name", DOCTORED)
def test_doctored_arrays_are_refused(name: str, trees: Trees) -> None:
    with pytest.raises(ValueError, match=r"trees of \d+ nodes that do not fit together|broadcast"):
        Trees.from_arrays({**trees._asdict(), **DOCTORED[name](trees)}, 5)
