"""Estimators in files: equal after loading, and refused where they contradict."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from ebse import RBSE, _archive
from ebse import _chains as module
from ebse.ensemble import RBSEClassifier
from ensemble.rows import K, fitted, rows

X, Y = rows()
WORDS = np.where(Y == 0, "cat", "dog")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def test_an_ensemble_continues_after_loading(path: Path) -> None:
    """Parameters, chains, history and scale; partial_fit of both goes the same way."""
    rbse = RBSE(K, law="gaussian", sigma=0.2, n_epochs=2, random_state=0).fit(X * 3)
    rbse.save(path)
    assert _archive.kind_of(path) == "RBSE"
    again = RBSE.load(path)
    assert again.get_params() == rbse.get_params()
    assert again.history_ == rbse.history_
    np.testing.assert_array_equal(again.chains_, rbse.chains_)
    np.testing.assert_array_equal(again.transform(X * 3), rbse.transform(X * 3))
    np.testing.assert_array_equal(
        again.partial_fit(X * 3).transform(X * 3), rbse.partial_fit(X * 3).transform(X * 3)
    )
    # Once more, while a run is under way.
    rbse.save(path)
    np.testing.assert_array_equal(RBSE.load(path).components_, rbse.components_)


@pytest.mark.parametrize("labels", [Y, WORDS, Y == 1, Y.astype(float)])
@pytest.mark.parametrize("n_sweeps", [2, "auto"])
def test_a_classifier_predicts_the_same_after_loading(
    labels: Any, n_sweeps: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_CORRELATION", -1.0)
    monkeypatch.setattr(module, "LENGTHS", (2, 3))
    made = RBSEClassifier(FrozenEstimator(fitted()), n_draws=3, n_sweeps=n_sweeps, random_state=0)
    made.fit(X[:20], labels[:20], X_unlabeled=X[20:])
    made.save(path)
    again = RBSEClassifier.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), made.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    assert again.classes_.dtype == made.classes_.dtype
    np.testing.assert_array_equal(again.suggest(3, X=X), made.suggest(3, X=X))
    for name in ("label_distributions_", "transduction_"):
        with pytest.raises(NotFittedError, match="rows of fit are not stored in files"):
            getattr(again, name)
    with pytest.raises(NotFittedError, match="suggest with X"):
        again.suggest()
    # Everything else about it is known: it can be fitted again, with the representation as it is.
    np.testing.assert_array_equal(
        again.fit(X[:20], labels[:20], X_unlabeled=X[20:]).predict(X), made.predict(X)
    )


def test_names_and_missing_labels_are_kept(path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    made = RBSEClassifier(RBSE(K, n_epochs=1, random_state=0), random_state=0).fit(frame)
    made.save(path)
    again = RBSEClassifier.load(path)
    assert list(again.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(again.suggest(3, X=frame), made.suggest(3))
    with pytest.raises(NotFittedError, match="fitted without labels"):
        again.predict(frame)


def test_a_foreign_representation_is_given_to_load(path: Path) -> None:
    pca = PCA(2).fit(X)
    made = RBSEClassifier(FrozenEstimator(pca), random_state=0).fit(X, WORDS)
    with pytest.raises(TypeError, match=r"representation must be an estimator of ebse to be saved, got PCA"):
        made.save(path)
    made.save(path, representation="omit")
    with pytest.raises(ValueError, match=r"representation must be given, as the file was saved without it"):
        RBSEClassifier.load(path)
    for given in (pca, FrozenEstimator(pca)):
        again = RBSEClassifier.load(path, representation=given)
        np.testing.assert_array_equal(again.predict_proba(X), made.predict_proba(X))
    with pytest.raises(
        ValueError, match="representation must be fitted to rows of 12 features, like X, got one fitted"
    ):
        RBSEClassifier.load(path, representation=PCA(2).fit(X[:, :5]))
    RBSEClassifier(FrozenEstimator(fitted()), n_sweeps=0).fit(X, Y).save(path)
    with pytest.raises(ValueError, match="representation must be left out, as the file holds its own"):
        RBSEClassifier.load(path, representation=pca)


def test_what_cannot_be_saved_is_named(path: Path) -> None:
    own = RBSEClassifier(FrozenEstimator(fitted()), LogisticRegression(), n_sweeps=0).fit(X, Y)
    with pytest.raises(TypeError, match=r"classifier must be None, .* got LogisticRegression"):
        own.save(path)
    with pytest.raises(NotFittedError):
        RBSEClassifier(RBSE()).save(path)
    assert not path.exists()


def test_files_of_another_kind_and_contradictions_are_refused(path: Path) -> None:
    fitted().save(path)
    with pytest.raises(ValueError, match="must hold kind 'RBSEClassifier', got 'RBSE'"):
        RBSEClassifier.load(path)
    made = RBSEClassifier(FrozenEstimator(fitted()), n_sweeps=0, random_state=0).fit(X, Y)
    facts, arrays = made._state()
    for name, value in (("draws.weights", arrays["draws.weights"][:, :, :1]), ("scaling.low", None)):
        broken = dict(arrays)
        key = name if name in broken else f"representation.{name}"
        broken.pop(key) if value is None else broken.update({key: value})
        _archive.write(path, "RBSEClassifier", dict(facts), broken)
        with pytest.raises(ValueError, match="got contents that do not fit together"):
            RBSEClassifier.load(path)
