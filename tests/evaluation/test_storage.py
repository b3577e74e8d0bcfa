"""Checkpoints: finished episodes are not computed again, and files of other evaluations are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ebse import RBSE
from ebse.ensemble import RBSEClassifier
from ebse.evaluation import Draws, FewShotResult, Shifts, few_shot, pixels
from ebse.evaluation.methods import describe
from evaluation.shots import SMALL, Noisy, X, Y


class StopError(Exception):
    """Interrupts an evaluation."""


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that may raise; fits are counted over all clones."""

    fits = 0
    breaks_at = -1

    def fit(self, X: Any, y: Any) -> Any:
        if Classifier.fits == Classifier.breaks_at:
            raise StopError
        Classifier.fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.where(X[:, 0] > 0, self.classes_[0], self.classes_[1])


@pytest.fixture(autouse=True)
def fresh() -> None:
    Classifier.fits, Classifier.breaks_at = 0, -1


def run(path: Path | None, noisy: Any = None, **options: Any) -> FewShotResult:
    methods = {"noisy": Noisy() if noisy is None else noisy, "classifier": Classifier()}
    return few_shot(methods, X, Y, checkpoint=path, **{**SMALL, "n_shots": [1, 2], **options})


def broken(path: Path, at: int = 8) -> None:
    """An evaluation interrupted after the embedding and 8 of the 12 episodes of the classifier."""
    Classifier.fits, Classifier.breaks_at = 0, at
    with pytest.raises(StopError):
        run(path)
    Classifier.fits, Classifier.breaks_at = 0, -1


def test_a_resumed_evaluation_computes_the_rest(tmp_path: Path) -> None:
    whole = run(None)
    broken(tmp_path / "rows.jsonl")
    noisy = Noisy()
    resumed = run(tmp_path / "rows.jsonl", noisy)
    assert noisy.calls == []
    assert Classifier.fits == 12 - 8
    assert resumed.rows.equals(whole.rows)


def test_without_a_checkpoint_everything_is_computed_again(tmp_path: Path) -> None:
    """The twin: a new file needs all the work."""
    broken(tmp_path / "rows.jsonl")
    noisy = Noisy()
    run(tmp_path / "others.jsonl", noisy)
    assert len(noisy.calls) == 1
    assert Classifier.fits == 12


def test_a_finished_file_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = run(path)
    before = path.read_bytes()
    Classifier.fits = 0
    assert run(path).rows.equals(first.rows)
    assert path.read_bytes() == before
    assert Classifier.fits == 0


def test_an_embedding_continues_with_the_same_draws(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    whole = run(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    noisy = Noisy()
    assert run(path, noisy).rows.equals(whole.rows)
    fresh = Noisy()
    run(None, fresh)
    np.testing.assert_array_equal(noisy.calls[0], fresh.calls[0])


@pytest.mark.parametrize("left", [1, 20, -1])
def test_an_incomplete_last_line_is_dropped(left: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    whole = run(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], lines[-1][:left]]))
    Classifier.fits = 0
    assert run(path).rows.equals(whole.rows)
    assert Classifier.fits == 1
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_without_a_seed_the_episodes_of_the_file_continue(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = run(path, random_state=None)
    assert run(path, random_state=None).rows.equals(first.rows)
    assert Classifier.fits == 12


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"n_queries": 5}, "n_queries = 4, got 5"),
        ({"n_shots": [1]}, r"n_shots = \[1, 2\], got \[1\]"),
        ({"n_episodes": 7}, "n_episodes = 6, got 7"),
        ({"n_ways": 2}, "n_ways = 3, got 2"),
        ({"random_state": 1}, r"key = \d+, got \d+"),
        ({"X": X + 1e-9}, "X = '[0-9a-f]+', got '[0-9a-f]+'"),
        ({"y": Y[::-1]}, "y = '[0-9a-f]+', got '[0-9a-f]+'"),
        ({"estimators": {"pixels": "pixels"}}, r"methods\[.*\] = None, got 'pixels'"),
        (
            {"estimators": {"noisy": Noisy(), "classifier": KNeighborsClassifier(2)}},
            r"methods\[.*\] = .*n_neighbors=2",
        ),
    ],
)
def test_a_file_of_another_configuration_is_refused(
    options: dict[str, Any], what: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    run(path)
    before = path.read_bytes()
    same = {"estimators": {"noisy": Noisy(), "classifier": Classifier()}, "X": X, "y": Y, "n_shots": [1, 2]}
    message = (
        rf"checkpoint must be a file of this configuration, but .*rows.jsonl has {what}.*; pass the same"
    )
    with pytest.raises(ValueError, match=message):
        few_shot(checkpoint=path, **{**same, **SMALL, **options})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", ["", "notes\n", '{"a": 1}\n', "[1]\n", '{"format": "ebse few-shot rows 1"}\n[]\n']
)
def test_a_file_of_something_else_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(
        ValueError, match=r"checkpoint must be a file that few_shot wrote, got .*notes.txt; pass another"
    ):
        run(path)
    assert path.read_text() == content


def test_methods_are_described_by_what_decides_their_rows() -> None:
    noise: Any = Noisy()
    methods = [
        "pixels",
        pixels,
        np.sort,
        Noisy(),
        noise.representations,
        KNeighborsClassifier(1),
        KNeighborsClassifier(2),
        Shifts(2),
        Shifts(3),
        Draws(noise),
        Draws(noise, 5),
        Draws(noise, options={"keep_prob": 0.5}),
    ]
    found = [describe(method) for method in methods]
    assert len(set(found)) == len(found)
    assert not any("0x" in text for text in found)


def test_descriptions_depend_on_what_was_learned() -> None:
    """Also within another estimator, and within a dict of arrays."""
    rows = np.random.default_rng(0).random((30, 4))
    one, other = PCA(2).fit(rows), PCA(2).fit(rows[:20])
    assert describe(one) == describe(PCA(2).fit(rows))
    assert describe(one) != describe(other)
    assert describe(FrozenEstimator(one)) != describe(FrozenEstimator(other))
    first, second = (RBSE(2, n_epochs=1, random_state=0).fit(part) for part in (rows, rows[:20]))
    before = describe(first)
    assert describe(first.partial_fit(rows)) != before
    assert describe(Draws(first)) != describe(Draws(second))
    assert describe(RBSEClassifier(FrozenEstimator(first))) != describe(
        RBSEClassifier(FrozenEstimator(second))
    )


def test_descriptions_depend_on_what_nested_estimators_learned() -> None:
    rows = np.random.default_rng(0).random((30, 4))
    pipes = [make_pipeline(StandardScaler(), PCA(2)).fit(part) for part in (rows, rows[:20], rows)]
    assert describe(pipes[0]) == describe(pipes[2]) != describe(pipes[1])

    class Scalar(BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any) -> Any:
            self.largest_ = np.array(X.max())
            return self

    assert describe(Scalar().fit(rows)) != describe(Scalar().fit(2 * rows))


def test_a_classifier_is_fitted_anew_whatever_it_had_learned() -> None:
    fitted = KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1])
    assert describe(fitted) == describe(KNeighborsClassifier(1))


@pytest.mark.parametrize("kept", [True, False])
def test_an_interruption_says_how_to_continue(kept: bool, tmp_path: Path) -> None:
    def stop(X: Any) -> Any:
        raise KeyboardInterrupt

    path = tmp_path / "rows.jsonl"
    said = "finished episodes are in .*rows.jsonl; the same call continues" if kept else "pass checkpoint="
    with pytest.raises(KeyboardInterrupt, match=said):
        few_shot({"stop": stop}, X, Y, n_queries=2, n_episodes=2, checkpoint=path if kept else None)


def test_descriptions_do_not_depend_on_addresses() -> None:
    assert describe(lambda X: X) == describe(lambda X: X)
    assert describe(KNeighborsClassifier(metric=lambda a, b: 0)) == describe(
        KNeighborsClassifier(metric=lambda a, b: 0)
    )
