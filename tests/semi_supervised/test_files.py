"""Files of estimators: the same predictions bit for bit, no rows inside, foreign representations, damage."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from ebse import RBSE, ContrastiveFeatures, SpreadingClassifier, _archive
from ebse.semi_supervised import SlowFeatures

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
X = RNG.normal(size=(90, 6)) * 0.7 + 2 * np.eye(6)[Y]
FEW = [str(c) if i < 6 else None for i, c in enumerate(Y)]


def contrastive() -> ContrastiveFeatures:
    return ContrastiveFeatures(4, n_hidden=8, n_updates=5, batch_size=16, random_state=0)


def slow(representation: Any = None) -> SlowFeatures:
    return SlowFeatures(representation, n_components=3, n_random=4, random_state=0)


def spreading(representation: Any = None, **options: Any) -> SpreadingClassifier:
    return SpreadingClassifier(representation, n_clusterings=2, n_clusters=20, random_state=0, **options)


@pytest.mark.parametrize("make", [contrastive, slow, lambda: slow(contrastive())])
@pytest.mark.parametrize("rows", [X, X.astype(np.float32), pd.DataFrame(X, columns=list("abcdef"))])
def test_transformers(make: Any, rows: Any, tmp_path: Path) -> None:
    fitted = make().fit(rows)
    fitted.save(tmp_path / "a.safetensors")
    loaded = type(fitted).load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded.transform(rows), fitted.transform(rows))
    assert list(getattr(loaded, "feature_names_in_", [])) == list(getattr(fitted, "feature_names_in_", []))
    assert loaded.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    plain, expected = loaded.get_params(deep=False), fitted.get_params(deep=False)
    plain.pop("representation", None)
    expected.pop("representation", None)
    assert plain == expected
    clone(loaded).fit(rows)
    # The same estimator gives the same bytes, also after it was loaded.
    loaded.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


REPRESENTATIONS: dict[str, Any] = {
    "inputs": lambda: None,
    "contrastive": contrastive,
    "frozen": lambda: FrozenEstimator(contrastive().fit(X)),
    "slow": slow,
    "slow on contrastive": lambda: slow(contrastive()),
    "a list": lambda: [None, contrastive(), slow()],
}


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_classifier(name: str, tmp_path: Path) -> None:
    fitted = spreading(REPRESENTATIONS[name](), class_prior={"0": 0.5, "1": 0.3, "2": 0.2}).fit(X, FEW)
    fitted.save(tmp_path / "a.safetensors")
    loaded = SpreadingClassifier.load(tmp_path / "a.safetensors")
    assert loaded.class_prior == fitted.class_prior
    new = X + 0.1
    np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.transduction_, fitted.transduction_)
    np.testing.assert_array_equal(loaded.label_distributions_, fitted.label_distributions_)
    for exclude in ((), fitted.suggest(3)):
        np.testing.assert_array_equal(loaded.suggest(5, exclude=exclude), fitted.suggest(5, exclude=exclude))
    for both in (loaded, fitted):
        both.set_params(class_prior="equal").relabel(X[6:20], Y[6:20])
    np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))
    assert isinstance(loaded.representation, list) == (name == "a list")


def test_classifier_on_an_ensemble(tmp_path: Path) -> None:
    rows = (X > 0).astype(np.float32)
    fitted = spreading(RBSE(4, n_epochs=2, random_state=0)).fit(rows, FEW)
    fitted.save(tmp_path / "a.safetensors")
    loaded = SpreadingClassifier.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))


@pytest.mark.parametrize(
    "labels", [Y, Y.astype(np.uint8), Y.astype(float), Y > 0, np.array(["ä", "b", "cc"])[Y]]
)
def test_classes_of_every_kind(labels: Any, tmp_path: Path) -> None:
    fitted = spreading().fit(X, labels)
    fitted.save(tmp_path / "a.safetensors")
    loaded = SpreadingClassifier.load(tmp_path / "a.safetensors")
    assert loaded.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_a_classifier_without_labels(tmp_path: Path) -> None:
    fitted = spreading().fit(X)
    fitted.save(tmp_path / "a.safetensors")
    loaded = SpreadingClassifier.load(tmp_path / "a.safetensors")
    with pytest.raises(NotFittedError, match="call relabel"):
        loaded.predict(X)
    np.testing.assert_array_equal(loaded.suggest(4), fitted.suggest(4))
    both = [one.relabel(y=FEW).predict_proba(X) for one in (loaded, fitted)]
    np.testing.assert_array_equal(both[0], both[1])


def test_rows_are_not_in_the_file(tmp_path: Path) -> None:
    """No array has the values of a row; the twin, centers of clusters of single rows, does."""
    rows = RNG.random((40, 6)).astype(np.float32)
    fitted = SpreadingClassifier(n_clusterings=1, n_clusters=5, random_state=0).fit(
        rows[:2], [0, 1], X_unlabeled=rows[2:]
    )
    fitted.save(tmp_path / "a.safetensors")
    arrays = load_file(tmp_path / "a.safetensors")
    standard = fitted._standardizers[0](rows)
    held = [a.reshape(-1, 6) for a in arrays.values() if a.ndim and a.dtype.kind == "f" and a.shape[-1] == 6]
    assert held

    def inside(row: Any) -> bool:
        return any((abs(a - row) < 1e-4).all(1).any() for a in held)

    assert not any(inside(row) for row in rows)
    assert sum(inside(row) for row in standard[2:]) <= 5


def test_a_foreign_representation_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    pca = PCA(2, random_state=0).fit(X)
    for fitted in (spreading(FrozenEstimator(pca)).fit(X, FEW), slow(FrozenEstimator(pca)).fit(X)):
        with pytest.raises(
            TypeError, match=r'representation must be .* got PCA; call save\(path, representation="omit"\)'
        ):
            fitted.save(path)
        assert not path.exists()
        fitted.save(path, representation="omit")
        with pytest.raises(
            ValueError, match="representation must be given, as the file was saved without it"
        ):
            type(fitted).load(path)
        for given in (pca, FrozenEstimator(pca)):
            loaded = type(fitted).load(path, representation=given)
            use = "predict_proba" if hasattr(fitted, "predict_proba") else "transform"
            np.testing.assert_array_equal(getattr(loaded, use)(X), getattr(fitted, use)(X))
        with pytest.raises(NotFittedError):
            type(fitted).load(path, representation=PCA(2))
        path.unlink()


def test_some_foreign_representations_of_a_list(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    fitted = spreading([PCA(2, random_state=0), None, contrastive()]).fit(X, FEW)
    with pytest.raises(TypeError, match="got PCA"):
        fitted.save(path)
    fitted.save(path, representation="omit")
    with pytest.raises(ValueError, match="representation must be a list of 3, got 1"):
        SpreadingClassifier.load(path, representation=[PCA(2)])
    loaded = SpreadingClassifier.load(path, representation=fitted.representations_)
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_bad_arguments(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with pytest.raises(NotFittedError):
        spreading().save(path)
    fitted = spreading().fit(X, FEW)
    with pytest.raises(ValueError, match="representation must be one of 'include', 'omit'"):
        fitted.save(path, representation="none")
    fitted.save(path)
    with pytest.raises(ValueError, match="representation must be left out, as the file holds its own"):
        SpreadingClassifier.load(path, representation=PCA(2).fit(X))
    with pytest.raises(ValueError, match="must hold kind 'ContrastiveFeatures', got 'SpreadingClassifier'"):
        ContrastiveFeatures.load(path)
    with pytest.raises(FileNotFoundError, match=r"b\.safetensors does not exist"):
        SpreadingClassifier.load(tmp_path / "b.safetensors")


def outcome(kind: Any, path: Path) -> str:
    """Of loading and using a file: nothing, "refused" in the words of the project, or another message."""
    try:
        loaded = kind.load(path)
    except ValueError as error:
        return "refused" if "a.safetensors must hold what ebse wrote" in str(error) else str(error)
    use = loaded.predict_proba if kind is SpreadingClassifier else loaded.transform
    return "" if len(use(X)) == 90 else "other rows"


@pytest.mark.parametrize("make", [contrastive, slow, spreading])
def test_contradictory_files_are_refused(make: Any, tmp_path: Path) -> None:
    """Each fact and each array is left out, each array cut: refused with the name of the file, or harmless."""
    path = tmp_path / "a.safetensors"
    fitted = make()
    fitted = fitted.fit(X, FEW) if make is spreading else fitted.fit(X)
    facts, arrays = fitted._state()
    refused = 0
    changed = [({k: v for k, v in facts.items() if k != name}, arrays) for name in facts]
    changed += [(facts, {k: v for k, v in arrays.items() if k != name}) for name in arrays]
    changed += [(facts, {**arrays, name: x[..., :-1]}) for name, x in arrays.items() if x.ndim]
    for some_facts, some_arrays in changed:
        _archive.write(path, type(fitted).__name__, some_facts, some_arrays)
        message = outcome(type(fitted), path)
        assert message in ("", "refused")
        refused += message == "refused"
    assert refused >= len(facts) + len(arrays) - 1


def test_a_supplied_representation_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pca = PCA(2, random_state=0).fit(frame)
    for fitted in (spreading(FrozenEstimator(pca)).fit(frame, FEW), slow(FrozenEstimator(pca)).fit(frame)):
        fitted.save(path, representation="omit")
        for given, message in (
            (PCA(3).fit(frame), "representation must transform rows to 2 features, got 3"),
            (PCA(2).fit(X[:, :5]), "representation must be fitted to rows of 6 features, like X, got .* 5"),
            (PCA(2).fit(frame[list("bacdef")]), "in their order, got one whose column 0 is 'b'"),
        ):
            with pytest.raises(ValueError, match=f"^.*{message}"):
                type(fitted).load(path, representation=given)
        type(fitted).load(path, representation=pca)
    both = spreading([FrozenEstimator(pca), FrozenEstimator(pca)]).fit(frame, FEW)
    both.save(path, representation="omit")
    with pytest.raises(ValueError, match="representation must be a list of 2, got one transformer"):
        SpreadingClassifier.load(path, representation=pca)


@pytest.mark.parametrize(
    "change",
    [
        {"n_representations": 10**15},
        {"n_representations": None},
        {"n_representations": float("inf")},
        {"n_features": 10**15},
        {"n_features": 6.5},
        {"feature_names": ["a", "b"]},
        {"scale": "large"},
        {"key_type": "int8"},
        {"classes": {"values": ["0", "1", "2"], "dtype": "<i8"}},
        {"classes": {"values": ["2", "1", "0"], "dtype": "<U1"}},
        {"classes": {"values": ["0", "0", "2"], "dtype": "<U1"}},
        {"classes": {"values": [0, 1, float("nan")], "dtype": "<f8"}},
    ],
)
def test_doctored_facts_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    facts, arrays = spreading().fit(X, FEW)._state()
    _archive.write(path, "SpreadingClassifier", {**facts, **change}, arrays)
    assert outcome(SpreadingClassifier, path) == "refused"


def test_a_stored_width_of_classes_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    facts, arrays = spreading().fit(X, FEW)._state()
    classes = {"values": ["0", "1", "2"], "dtype": f"<U{2**28}"}
    _archive.write(path, "SpreadingClassifier", {**facts, "classes": classes}, arrays)
    assert SpreadingClassifier.load(path).classes_.dtype == "<U1"


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_doctored_arrays_are_refused(value: float, tmp_path: Path) -> None:
    """One value of each array of a classifier; centers and means may be negative."""
    path = tmp_path / "a.safetensors"
    facts, arrays = spreading().fit(X, FEW)._state()
    floats = [name for name, x in arrays.items() if x.dtype.kind == "f"]
    signed = {"centers_0", "origin_0", "mean_0"}
    assert signed < set(floats)
    for name in floats:
        changed = arrays[name].copy()
        changed.flat[0] = value
        _archive.write(path, "SpreadingClassifier", facts, {**arrays, name: changed})
        expected = "" if value == -1 and name in signed else "refused"
        assert outcome(SpreadingClassifier, path) == expected, name


def test_losses_that_diverged_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    features = contrastive().fit(X)
    features.losses_[-1] = np.nan
    features.save(path)
    np.testing.assert_array_equal(ContrastiveFeatures.load(path).losses_, features.losses_)
