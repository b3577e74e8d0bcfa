"""Label propagation in a run: when it is used, and its settings."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse import ContrastiveFeatures, SpreadingClassifier
from ebse.semi_supervised._class_prior import prior_probabilities
from ebse.workflow import propagation
from ebse.workflow.prediction import prior_for
from ebse.workflow.propagation import class_prior_from, new_classifier, propagate, propagates


def rows(n: int = 300) -> tuple[Any, Any]:
    """Three blobs in the unit cube, and labels of the first six rows."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = np.clip(np.eye(3)[y] * 0.6 + 0.2 + 0.05 * rng.normal(size=(n, 3)), 0, 1).astype(np.float32)
    labels = np.array([word if i < 6 else None for i, word in enumerate(np.array(["a", "b", "c"])[y])])
    return X, labels


@pytest.mark.parametrize(
    ("n", "n_known", "expected"),
    [(1_000, 499, True), (1_000, 500, False), (999, 10, False), (5_000, 0, True)],
)
def test_labels_are_propagated_where_rows_are_many_and_mostly_unlabeled(
    n: int, n_known: int, expected: bool
) -> None:
    assert propagates(np.arange(n) < n_known) is expected


@pytest.mark.parametrize("contrastive_from", [10_000, 100])
def test_an_encoder_is_trained_on_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contrastive_from: int
) -> None:
    """And a saved classifier gives the same probabilities and suggestions."""
    monkeypatch.setattr(propagation, "CONTRASTIVE_FROM", contrastive_from)
    monkeypatch.setattr(
        propagation, "ContrastiveFeatures", partial(ContrastiveFeatures, n_updates=60, n_hidden=40)
    )
    X, labels = rows()
    new = new_classifier(len(X), class_prior=None, n_rounds=5, seed=0)
    assert (new.representation is None) == (contrastive_from > len(X))
    fitted, order = propagate(new, X, labels)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(X)))
    assert [label is None for label in labels[order]] == [False] * 6 + [True] * 294
    fitted.save(tmp_path / "model.safetensors")
    held = SpreadingClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(held.predict_proba(X), fitted.predict_proba(X))
    assert held.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(held.suggest(5), fitted.suggest(5))


CLASSES = np.array(["a", "b", "in=out"])


def test_class_prior_from_text() -> None:
    assert class_prior_from("equal") == "equal"
    assert class_prior_from("a=0.2, b =0.3,in=out=0.5") == {"a": 0.2, "b": 0.3, "in=out": 0.5}
    assert class_prior_from("Paris, France=0.2,b=0.8") == {"Paris, France": 0.2, "b": 0.8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("some", "class_prior must be equal, or like a=0.2,b=0.8, got 'some'"),
        ("a=0.5,b=0.5,in=out=much", "got 'in=out=much' in .*; give a probability to each class"),
        ("a=0.5,b=", "got 'b=' in"),
        (
            "a=0.5,b,in=out=0.5",
            "class_prior must have .* and one for 'b,in=out', which no row is labeled with",
        ),
        ("a=0.5,b=0.5,in=out", "got 'in=out' in .*; give a probability to each class"),
        ("=0.5,b=0.5", "class_prior must .* and one for '=0.5,b', which no row is labeled with"),
        ("a=0.2,a=0.8,b=0.2", "class_prior must name a class once, got 'a' twice"),
        ("a=0.5,b=0.5", "class_prior must have a probability for each .* got none for 'in=out'"),
        ("a=0.5,b=0.25,in=out=0.25,x=0.5", "got one for 'x', which no row is labeled with"),
        ("a=0.5,b=0.5,in=out=0.5", "class_prior must be positive and sum to 1"),
    ],
)
def test_bad_class_prior(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prior_probabilities(class_prior_from(text), CLASSES)


def test_class_prior_of_other_classes_is_left_out() -> None:
    X, labels = rows()
    new = new_classifier(len(X), class_prior="a=0.6,b=0.2,c=0.2", n_rounds=5, seed=0)
    fitted, _ = propagate(new, X, labels)
    assert prior_for(fitted, np.array(["a", "b", "c"])) == {"a": 0.6, "b": 0.2, "c": 0.2}
    with pytest.warns(
        UserWarning, match="the class prior of the run is for a, b, c, and the rows have other labels"
    ):
        assert prior_for(fitted, np.array(["a", "b", "d"])) is None


def test_class_prior_changes_predictions() -> None:
    """On rows between all three blobs, which belong to none."""
    X, labels = rows()
    X[60:] = np.random.default_rng(1).random((240, 3))
    fraction = []
    for prior in (None, "a=0.6,b=0.2,c=0.2"):
        fitted, _ = propagate(new_classifier(len(X), class_prior=prior, n_rounds=5, seed=0), X, labels)
        fraction.append(float((fitted.predict(X[6:]) == "a").mean()))
    assert fraction[0] < 0.5 < fraction[1]
