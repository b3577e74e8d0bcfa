"""The classifier for few labels in a run: settings, estimated accuracy, and what the answer depends on."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.model_selection import StratifiedKFold

from ebse import FewLabelClassifier
from ebse.semi_supervised import _members
from ebse.semi_supervised._class_prior import prior_probabilities
from ebse.workflow import few_label_fit
from ebse.workflow.accuracy import Accuracy, accuracy_sentence
from ebse.workflow.few_label_fit import column_changes, far_rows, fit_few_label, member_votes
from ebse.workflow.fit_config import FitConfig, class_prior_from, columns_from

CLASSES = np.array(["a", "b", "in=out"])


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the members there are tests of their own; here labels of one column are easy."""
    monkeypatch.setattr(_members, "N_TREES", 20)
    monkeypatch.setattr(_members, "MOST_FOLDS", 3)


def table(n: int = 240, n_labels: int = 60) -> tuple[pd.DataFrame, Any, Any]:
    """Three groups that one column tells apart, a column of noise, and labels of the first rows."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    frame = pd.DataFrame(
        {"size": 4.0 * (np.arange(n) % 3) + 0.7 * rng.normal(size=n), "noise": rng.normal(size=n)}
    )
    labels = np.array([word if i < n_labels else None for i, word in enumerate(y)], dtype=object)
    return frame, labels, y


def test_class_prior_from_text() -> None:
    assert class_prior_from("equal") == "equal"
    assert class_prior_from("estimate") == "estimate"
    assert class_prior_from("labels") is None
    assert class_prior_from("a=0.2, b =0.3,in=out=0.5") == {"a": 0.2, "b": 0.3, "in=out": 0.5}
    assert class_prior_from("Paris, France=0.2,b=0.8") == {"Paris, France": 0.2, "b": 0.8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("some", "class_prior must be estimate, equal, labels, or like a=0.2,b=0.8, got 'some'"),
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


def test_kinds_of_columns_from_text() -> None:
    assert columns_from(()) == "auto"
    assert columns_from(("zip=category", "a=b=text")) == {"zip": "category", "a=b": "text"}
    with pytest.raises(ValueError, match="column must be like zip=category, got 'zip'"):
        columns_from(("zip",))
    with pytest.raises(ValueError, match="column must name a column once, got 'zip' twice"):
        columns_from(("zip=category", "zip=text"))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "rbse"),
        ({"label": "y"}, "few-label"),
        ({"label": "y", "column": ("a=text",)}, "few-label"),
        ({"label": "y", "n_components": 5}, "rbse"),
        ({"label": "y", "split": True}, "rbse"),
        ({"label": "y", "model": "rbse"}, "rbse"),
        ({"label": "y", "missing": True}, "few-label"),
    ],
)
def test_labels_decide_on_the_model(settings: dict[str, Any], expected: str) -> None:
    assert FitConfig("x.csv", **settings).model_used == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hold_back": 0.2}, "hold_back must be given with labels"),
        ({"model": "few-label"}, "model few-label must be given with labels"),
        (
            {"label": "y", "model": "rbse", "class_prior": "equal"},
            "class_prior must be left out with --model",
        ),
        (
            {"label": "y", "n_components": 5, "column": ("a=text",)},
            "column must be left out with n_components",
        ),
        ({"label": "y", "model": "few-label", "sigma": 0.1}, "sigma must be left out with --model few-label"),
        ({"label": "y", "model": "forest"}, "model must be one of 'few-label', 'rbse', got 'forest'"),
    ],
)
def test_contradictory_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = FitConfig("x.csv", **settings).model_used


@pytest.mark.parametrize(("n_right", "n"), [(0, 10), (10, 10), (7, 10), (88, 100)])
def test_interval_of_the_accuracy(n_right: int, n: int) -> None:
    """Wilson's, as SciPy has it."""
    expected = binomtest(n_right, n).proportion_ci(0.95, method="wilson")
    found = Accuracy("held back", [["a", n_right, n - 1], ["b", 0, 1]] if n_right < n else [["a", n, n]])
    assert (found.n_right, found.n) == (n_right, n)
    assert found.interval == pytest.approx((expected.low, expected.high))


def test_accuracy_in_words() -> None:
    members = {
        "accuracy": ["cross-validation", [["a", 25, 25], ["b", 20, 25]]],
        "n_chosen": 0,
        "largest": ["a", 0.5],
    }
    said = accuracy_sentence(members)
    assert said.startswith("90.0%, 95 % interval 78.6% to 95.7% (cross-validation over 50 labels)")
    assert "Biased" not in said
    assert "Biased: 3 of the labeled rows were suggested" in accuracy_sentence({**members, "n_chosen": 3})
    assert "Always answering" not in said
    rare = ["held back", [["fraud", 0, 2], ["ok", 48, 48]]]
    assert "Always answering ok would be right for 96.0%." in accuracy_sentence(
        {"accuracy": rare, "n_chosen": 0, "largest": ["ok", 0.96]}
    )
    said = accuracy_sentence({"accuracy": None, "n_chosen": 0})
    assert said.startswith("too few labels to estimate accuracy")
    assert "%" not in said


def test_accuracy_is_cross_validated_over_the_labels() -> None:
    """Equal to the predictions of classifiers that get the labels of four folds by relabel."""
    frame, labels, y = table()
    model = FewLabelClassifier(random_state=0)
    found = fit_few_label(model, frame, labels, hold_back=0.0, seed=3)
    predicted = np.empty(60, dtype=object)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(frame[:60], y[:60]):
        other = FewLabelClassifier(random_state=0).fit(frame, labels).relabel(frame.iloc[train], y[train])
        predicted[test] = other.predict(frame.iloc[test])
    assert found is not None
    assert found.how == "cross-validation"
    assert found.classes == [[c, int((predicted[y[:60] == c] == c).sum()), 20] for c in "abc"]
    # The model itself learned from all labels.
    np.testing.assert_array_equal(model.predict(frame[:60]), y[:60])


def test_a_class_with_four_labels_is_too_few_for_cross_validation() -> None:
    frame, labels, _ = table(n_labels=14)
    assert fit_few_label(FewLabelClassifier(random_state=0), frame, labels, hold_back=0.0, seed=0) is None


@pytest.mark.filterwarnings("ignore:the members")
def test_labels_held_back_are_not_learned_from() -> None:
    """Labels without relation to the rows: accuracy is that of guessing, whatever the model memorizes."""
    frame, labels, _ = table(n=300, n_labels=300)
    rng = np.random.default_rng(1)
    labels[:] = rng.permutation(labels)
    model = FewLabelClassifier(random_state=0)
    found = fit_few_label(model, frame, labels, hold_back=0.3, seed=0)
    assert found is not None
    assert (found.how, found.n) == ("held back", 90)
    # A third by chance; false in fewer than one of 10^6 choices of labels.
    assert binomtest(found.n_right, found.n, 1 / 3).pvalue > 1e-6
    # Those that the final model has learned from are all right.
    assert (model.predict(frame) == labels).mean() == 1


@pytest.mark.parametrize(("n_labels", "part"), [(30, 0.1), (30, 0.95)])
def test_too_few_labels_to_hold_some_back(n_labels: int, part: float) -> None:
    frame, labels, _ = table(n_labels=n_labels)
    with pytest.raises(
        ValueError, match="hold_back must leave labels of every class and hold back at least 10"
    ):
        fit_few_label(FewLabelClassifier(random_state=0), frame, labels, hold_back=part, seed=0)


@pytest.mark.parametrize("most", [60, 1])
def test_columns_that_matter(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column that tells groups apart matters, the one of noise hardly; of many columns only a few are tried."""
    monkeypatch.setattr(few_label_fit, "MOST_COLUMNS", most)
    frame, labels, _ = table()
    model = FewLabelClassifier(random_state=0).fit(frame, labels)
    found = column_changes(model, seed=0)
    assert list(found) == ["size", "noise"][:most]
    # Two of three shuffled rows get a value of another group.
    assert found["size"] > 0.5
    assert found.get("noise", 0) < 0.1


def test_votes_of_members() -> None:
    frame, labels, _ = table()
    model = FewLabelClassifier(random_state=0).fit(frame, labels)
    votes = member_votes(model, np.arange(60, len(frame)))
    assert set(votes) == set(model.members_["member"])
    all_votes = np.stack(list(votes.values()))
    unanimous = (all_votes == all_votes[0]).all(0)
    assert unanimous.sum() > 60
    np.testing.assert_array_equal(
        model.classes_[all_votes[0]][unanimous], model.predict(frame[60:])[unanimous]
    )


@pytest.mark.filterwarnings("ignore:[0-9]+ % of the rows are predicted as")
def test_rows_far_from_every_label() -> None:
    frame, labels, _ = table()
    frame.loc[200] = (40.0, 0.0)
    model = FewLabelClassifier(random_state=0).fit(frame, labels)
    found = far_rows(model, labels)
    assert found[0][0] == 200
    assert found[0][1] > 5
    assert all(times >= 2 for _, times in found)
    assert far_rows(model, np.full(len(frame), "a", dtype=object)) == []
    # Where most rows equal a labeled one, the others are not thousands of times as far.
    same = frame.iloc[np.r_[0:3, np.zeros(200, dtype=int), 100:110]].reset_index(drop=True)
    some = np.array(["a", "b", "c"] + [None] * 210, dtype=object)
    assert far_rows(FewLabelClassifier(random_state=0).fit(same, some), some) == []
