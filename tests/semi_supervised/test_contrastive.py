"""Contrastive features: InfoNCE, folded networks, similar rows, refinement, views, files, checkpoints."""

import math
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional

from ebse import ContrastiveFeatures, _archive
from ebse.semi_supervised import ImageViews, _feature_training, contrastive
from ebse.semi_supervised._encoder import (
    EncoderTraining,
    convolutional_network,
    dense_network,
    folded,
    info_nce,
)
from ebse.semi_supervised._feature_training import FeatureTraining
from ebse.semi_supervised._knn_graph import random_walk
from ebse.semi_supervised._refinement import Heads, Refinement

pytestmark = pytest.mark.usefixtures("short_training")

SMALL: dict[str, Any] = {
    "n_components": 4,
    "n_hidden": 16,
    "n_updates": 60,
    "batch_size": 32,
    "refine": False,
    "random_state": 0,
}
TINY: dict[str, Any] = {**SMALL, "n_components": 3, "n_hidden": 6, "n_updates": 10, "batch_size": 8}
REFINED: dict[str, Any] = {**TINY, "refine": True}
SHAPE = (8, 10)
CONVOLUTIONAL: dict[str, Any] = {**TINY, "encoder": "convolutional", "image_shape": SHAPE}


def two_groups(n: int = 200) -> tuple[Any, Any]:
    """Groups on two lines, which no random walk leaves."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    X = rng.normal(size=(n, 6)) * [3, 0.1, 0.1, 0.1, 0.1, 0.1]
    X[:, 1] += 4 * group
    return X, group


def test_info_nce_is_a_sum_over_pairs() -> None:
    z = functional.normalize(
        torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    rows, total = z.tolist(), 0.0
    for i in range(8):
        similarities = [
            math.exp(sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) / 0.3) for j in range(8)
        ]
        total -= math.log(similarities[(i + 4) % 8] / (sum(similarities) - similarities[i]))
    assert float(info_nce(z, 0.3)) == pytest.approx(total / 8, rel=1e-10)


def test_the_gradient_is_that_of_the_loss() -> None:
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: info_nce(x, 0.5), (z,))


def images(n: int = 40) -> Any:
    """Images with a bright half, left or right, and their groups."""
    rng = np.random.default_rng(0)
    found = 0.3 * rng.random((n, *SHAPE))
    found[::2, :, :5] += 0.6
    found[1::2, :, 5:] += 0.6
    return found.reshape(n, -1)


@pytest.fixture
def probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of refined encoders are cluster probabilities, however few rows there are."""
    monkeypatch.setattr(_feature_training, "MANY_ROWS", 0)


# ---- the network


def updated(net: Any, n_features: int) -> Any:
    """The network after some updates, so that its batch norms have statistics."""
    rng = np.random.default_rng(0)
    training = EncoderTraining(net, n_updates=5, temperature=0.2, learning_rate=0.1)
    for _ in range(5):
        training.update(torch.from_numpy(rng.normal(size=(20, n_features)).astype(np.float32)))
    return net


@pytest.mark.parametrize(
    ("net", "shape", "n_features"),
    [
        (partial(dense_network, 4), None, 4),
        (partial(convolutional_network, (8, 9, 1)), (8, 9, 1), 72),
        (partial(convolutional_network, (11, 8, 2)), (11, 8, 2), 176),
    ],
    ids=["dense", "gray", "color"],
)
def test_the_encoder_is_the_network_with_its_norms_folded(net: Any, shape: Any, n_features: int) -> None:
    trained = updated(net(7, 3, seed=0), n_features)
    x = np.random.default_rng(1).normal(size=(6, n_features)).astype(np.float32)
    trained.eval()
    with torch.no_grad():
        expected = functional.normalize(trained(torch.from_numpy(x)), dim=1).numpy()
    weights, biases = folded(trained)
    encoder = contrastive.Encoder(tuple(weights), tuple(biases), shape)
    np.testing.assert_allclose(encoder(x), expected, atol=1e-5)
    # The twin: statistics of batch norms that are not folded in.
    first = next(m for m in trained if hasattr(m, "running_mean"))
    first.running_mean += 1
    with torch.no_grad():
        moved = functional.normalize(trained(torch.from_numpy(x)), dim=1).numpy()
    assert abs(encoder(x) - moved).max() > 1e-3


def test_rows_of_images_are_read_by_height_width_and_channel() -> None:
    """A convolution of one pixel in a corner of one channel, against its place in the row."""
    height, width, n_channels = shape = (8, 9, 2)
    net = convolutional_network(shape, 5, 3, seed=0)
    row = torch.zeros(1, height * width * n_channels)
    row[0, (2 * width + 5) * n_channels + 1] = 1
    image = net[0](row)
    assert image.shape == (1, n_channels, height, width)
    assert image[0, 1, 2, 5] == 1
    assert image.sum() == 1


@pytest.mark.parametrize("options", [TINY, REFINED, CONVOLUTIONAL, {**CONVOLUTIONAL, "refine": True}])
@pytest.mark.parametrize("heads", [False, True])
def test_features_are_outputs_of_the_trained_network(
    options: dict[str, Any], heads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """z of the network, on components or pixels, or √p of its heads."""
    monkeypatch.setattr(_feature_training, "MANY_ROWS", 0 if heads else 10**6)
    layers, expected = FeatureTraining.layers, []

    def watched(self: FeatureTraining) -> Any:
        z = torch.from_numpy(self.embedded())
        if self.heads is not None and heads:
            with torch.no_grad():
                p = [one.exp() for one in self.heads(z)]
            z = (torch.cat(p, 1) / len(p)).sqrt()
        expected.append(z.numpy())
        return layers(self)

    monkeypatch.setattr(FeatureTraining, "layers", watched)
    X = images()
    found = ContrastiveFeatures(**options).fit(X).transform(X)
    np.testing.assert_allclose(found, expected[0], atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


# ---- contrast


def test_rows_that_walks_connect_become_similar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean similarity within groups that no walk leaves, less that between them; walks to any row fail."""
    X, group = two_groups()
    same = group[:, None] == group

    def separation(**options: Any) -> float:
        z = ContrastiveFeatures(**{**SMALL, **options}).fit(X).transform(X)
        similarity = z @ z.T
        return float(similarity[same].mean() - similarity[~same].mean())

    learned = separation(n_updates=150)
    monkeypatch.setattr(
        _feature_training, "random_walk", lambda near, n, start, *, rng: rng.permutation(start)
    )
    assert learned > 2 * abs(separation(n_updates=150))


def test_the_number_of_updates_grows_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default; within limits."""
    monkeypatch.setattr(contrastive, "FEWEST_UPDATES", 3)
    monkeypatch.setattr(contrastive, "MOST_UPDATES", 7)
    monkeypatch.setattr(contrastive, "PASSES", 1)
    options = {**TINY, "n_updates": "auto"}
    # An update has two rows of each of 8 pairs.
    for n, expected in ((20, 3), (90, 5), (200, 7)):
        assert len(ContrastiveFeatures(**options).fit(two_groups(n)[0]).losses_) == expected


def test_every_update_has_walks_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both stages."""
    seen: list[bytes] = []

    def watched(neighbors: Any, n_steps: int, start: Any, *, rng: Any) -> Any:
        seen.append(start[:4].tobytes())
        return random_walk(neighbors, n_steps, start, rng=rng)

    X, _ = two_groups(60)
    monkeypatch.setattr(_feature_training, "random_walk", watched)
    features = ContrastiveFeatures(**REFINED).fit(X)
    assert len(seen) == len(features.losses_) + len(features.refinement_losses_)
    assert len(set(seen)) == len(seen)


def test_losses_fall() -> None:
    X, _ = two_groups()
    losses = ContrastiveFeatures(**SMALL).fit(X).losses_
    assert len(losses) == 60
    assert losses[:5].mean() > losses[-5:].mean()


def test_seeds() -> None:
    X, _ = two_groups()
    state = torch.get_rng_state()
    first, again = (ContrastiveFeatures(**SMALL).fit(X).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = ContrastiveFeatures(**{**SMALL, "random_state": 1}).fit(X).transform(X)
    assert abs(first - other).max() > 0.01
    # The user's own generator is left alone.
    assert torch.equal(state, torch.get_rng_state())


class KilledError(Exception):
    """As if the process had been killed."""


@contextmanager
def ended(kind: Any, n: int, error: type[BaseException] = KilledError) -> Iterator[None]:
    """Where the training of a kind ends after n updates."""
    update = kind.update
    calls: list[int] = []

    def counted(self: Any, *args: Any, **options: Any) -> float:
        if len(calls) == n:
            raise error
        calls.append(1)
        found: float = update(self, *args, **options)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "update", counted)
        yield


def test_an_interrupted_fit_keeps_what_it_has() -> None:
    X, _ = two_groups()
    features = ContrastiveFeatures(**SMALL)
    with (
        ended(EncoderTraining, 10, KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt, match="stopped after 10 updates"),
    ):
        features.fit(X)
    assert len(features.losses_) == 10
    assert features.transform(X).shape == (200, 4)


def test_an_interrupted_refinement_keeps_what_it_has(probabilities: None) -> None:
    X, _ = two_groups(60)
    features = ContrastiveFeatures(**REFINED)
    with (
        ended(Refinement, 3, KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt, match="stopped after 13 updates"),
    ):
        features.fit(X)
    assert len(features.losses_) == 10
    assert len(features.refinement_losses_) == 3
    assert np.isfinite(features.transform(X)).all()


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["clusters", "heads"])
def test_a_fit_interrupted_before_its_refinement_is_one_without(
    where: str, probabilities: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = two_groups(60)
    plain = ContrastiveFeatures(**TINY).fit(X).transform(X)
    if where == "clusters":
        monkeypatch.setattr(_feature_training, "walk_clusters", interrupted)
    else:
        monkeypatch.setattr(Heads, "fit", interrupted)
    features = ContrastiveFeatures(**REFINED)
    with pytest.raises(KeyboardInterrupt, match="stopped after 10 updates"):
        features.fit(X)
    np.testing.assert_array_equal(features.transform(X), plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be >= 1"),
        ({"metric": "taxi"}, "metric must be one of 'auto', 'cosine', 'euclidean', got 'taxi'"),
        ({"n_updates": 0}, "n_updates must be >= 1"),
        ({"n_updates": "many"}, "n_updates must be one of 'auto', got 'many'"),
        ({"batch_size": 1}, "batch_size must be >= 2"),
        ({"temperature": 0}, "temperature must be positive, got 0; try 0.2"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive, got nan"),
        ({"refine": "always"}, "refine must be 'auto', True or False, got 'always'"),
        ({"refine": 1}, "refine must be 'auto', True or False, got 1"),
        ({"refine": None}, "refine must be 'auto', True or False, got None"),
        ({"views": "random"}, "views must be one of 'auto', 'learned', got 'random'"),
        ({"views": 3}, "views must be None, 'auto', 'learned' or a callable, got 3"),
        ({"encoder": "deep"}, "encoder must be one of 'dense', 'convolutional', got 'deep'"),
        ({"encoder": "convolutional"}, "image_shape must be given for a convolutional encoder, got None"),
        (
            {"encoder": "convolutional", "image_shape": (8, 8)},
            r"image_shape must have as many pixels as X has columns, got \(8, 8, 1\) for 6 columns",
        ),
        ({"encoder": "convolutional", "image_shape": (2, 3)}, "shape must be .* sides .* got"),
        ({"encoder": "convolutional", "image_shape": 6}, "shape must be .* got 6"),
        (
            {"encoder": "convolutional", "image_shape": (8, 8), "views": "learned"},
            "views must be None, 'auto' or a callable with a convolutional encoder, got 'learned'",
        ),
        (
            {"encoder": "convolutional", "views": ImageViews((8, 8))},
            "image_shape must have as many pixels as X has columns",
        ),
    ],
)
def test_bad_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ContrastiveFeatures(**options).fit(two_groups()[0])


def test_blocks_do_not_change_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X = load_digits().data[:100] / 16
    features = ContrastiveFeatures(**SMALL).fit(X)
    whole = features.transform(X)
    monkeypatch.setattr("ebse.semi_supervised._standardize.BLOCK", 7)
    np.testing.assert_allclose(features.transform(X), whole, atol=1e-5)


def test_a_refused_fit_changes_nothing() -> None:
    X, _ = two_groups()
    features = ContrastiveFeatures(**SMALL).fit(X)
    before = features.transform(X)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        features.fit(X[:1, :3])
    np.testing.assert_array_equal(features.transform(X), before)


def test_a_loss_that_diverges_names_the_learning_rate() -> None:
    X, _ = two_groups()
    with pytest.raises(FloatingPointError, match="learning_rate must suit these rows"):
        ContrastiveFeatures(**{**SMALL, "learning_rate": 1e30}).fit(X)


def test_a_refit_interrupted_before_it_learned_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = two_groups()
    features = ContrastiveFeatures(**SMALL).fit(X)
    before = features.transform(X)
    monkeypatch.setattr(EncoderTraining, "update", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the estimator is as it was"):
        features.fit(X[:, :1])
    np.testing.assert_array_equal(features.transform(X), before)


def test_training_is_in_single_precision_whatever_the_default() -> None:
    X, _ = two_groups(60)
    torch.set_default_dtype(torch.float64)
    features = ContrastiveFeatures(**REFINED).fit(X)
    assert all(x.dtype == np.float32 for x in (*features.encoder_.weights, *features.encoder_.biases))
    np.testing.assert_allclose(np.linalg.norm(features.transform(X), axis=1), 1, atol=1e-5)


# ---- refinement


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_refined_features_are_unit_vectors(dtype: Any, probabilities: None) -> None:
    X = two_groups(60)[0].astype(dtype)
    features = ContrastiveFeatures(**REFINED).fit(X)
    found = features.transform(X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert found.dtype == dtype
    assert (found >= 0).all()
    assert features.encoder_.heads is not None
    assert found.shape[1] == sum(features.encoder_.heads.sizes) == len(features.get_feature_names_out())
    assert len(features.refinement_losses_) > 0


def test_features_are_z_where_rows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = two_groups(60)
    monkeypatch.setattr(_feature_training, "MANY_ROWS", 61)
    few = ContrastiveFeatures(**REFINED).fit(X)
    monkeypatch.setattr(_feature_training, "MANY_ROWS", 60)
    many = ContrastiveFeatures(**REFINED).fit(X)
    assert few.encoder_.heads is None
    assert few.transform(X).shape == (60, 3)
    assert many.encoder_.heads is not None


@pytest.mark.parametrize(
    ("least_rows", "stable", "refined", "decided"),
    [(0, 0.0, True, True), (0, 1.1, False, True), (61, 0.0, False, False)],
    ids=["stable clusters", "unstable clusters", "few rows"],
)
def test_auto_refines_where_clusters_are_stable(
    least_rows: int, stable: float, refined: bool, decided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_feature_training, "LEAST_ROWS", least_rows)
    monkeypatch.setattr(_feature_training, "STABLE", stable)
    X, _ = two_groups(60)
    features = ContrastiveFeatures(**{**TINY, "refine": "auto"}).fit(X)
    assert (len(features.refinement_losses_) > 0) == refined
    assert math.isnan(features.stability_) != decided
    if not refined:
        plain = ContrastiveFeatures(**TINY).fit(X)
        np.testing.assert_array_equal(features.transform(X), plain.transform(X))


def test_refined_seeds(probabilities: None) -> None:
    X, _ = two_groups(60)
    state = torch.get_rng_state()
    first, again = (ContrastiveFeatures(**REFINED).fit(X).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = ContrastiveFeatures(**{**REFINED, "random_state": 1}).fit(X).transform(X)
    assert first.shape != other.shape or abs(first - other).max() > 0.01
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("N", [2, 3, 11])
@pytest.mark.parametrize("equal", [False, True])
def test_few_or_equal_rows_are_refined(N: int, equal: bool, probabilities: None) -> None:
    X = np.ones((N, 3)) if equal else np.random.default_rng(0).normal(size=(N, 3))
    found = ContrastiveFeatures(**REFINED).fit(X).transform(X)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_radius_is_the_distance_of_the_tenth_neighbor(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    class Watched(FeatureTraining):
        def __init__(self, net: Any, batches: Any, neighbors: Any, radius: Any, *others: Any) -> None:
            given.append((batches.Y, radius))
            super().__init__(net, batches, neighbors, radius, *others)

    monkeypatch.setattr(_feature_training, "FeatureTraining", Watched)
    ContrastiveFeatures(**TINY).fit(two_groups(60)[0])
    Y, radius = given[0]
    for y, found in zip(Y, radius, strict=True):
        distances = sorted(float(np.linalg.norm(y - other)) for other in Y)
        # The nearest is the row itself.
        assert found == pytest.approx(distances[contrastive.NEIGHBOR], rel=1e-3)


# ---- views


def identity(x: Tensor, *, generator: torch.Generator) -> Tensor:
    return x


@pytest.mark.parametrize("options", [TINY, CONVOLUTIONAL])
def test_views_that_change_nothing_are_none(options: dict[str, Any]) -> None:
    """Rows go to the callable as they were given, and come back standardized as the others."""
    X = 7 + 5 * images()
    seen: list[Tensor] = []

    def watched(x: Tensor, *, generator: torch.Generator) -> Tensor:
        seen.append(x.clone())
        return x

    plain = ContrastiveFeatures(**{**options, "views": None}).fit(X)
    same = ContrastiveFeatures(**{**options, "views": watched}).fit(X)
    np.testing.assert_allclose(same.losses_, plain.losses_, atol=1e-3)
    assert len(seen) == options["n_updates"]
    known = {row.tobytes() for row in X.astype(np.float32)}
    assert all(row.tobytes() in known for x in seen for row in x.numpy())


def test_views_change_what_is_learned() -> None:
    X = images()
    learned, none, of_images = (
        ContrastiveFeatures(**{**TINY, "views": views}).fit(X).transform(X)
        for views in ("learned", None, ImageViews(SHAPE))
    )
    assert abs(learned - none).max() > 1e-3
    assert abs(of_images - none).max() > 1e-3
    default = ContrastiveFeatures(**TINY).fit(X).transform(X)
    np.testing.assert_array_equal(default, learned)


def test_convolutional_encoders_have_no_views_by_default() -> None:
    X = images()
    default, none = (
        ContrastiveFeatures(**{**CONVOLUTIONAL, "views": views}).fit(X).transform(X)
        for views in ("auto", None)
    )
    np.testing.assert_array_equal(default, none)


def test_the_shape_of_images_is_that_of_their_views() -> None:
    X = images()
    options = {**CONVOLUTIONAL, "views": ImageViews(SHAPE)}
    given, taken = (
        ContrastiveFeatures(**{**options, "image_shape": shape}).fit(X).transform(X)
        for shape in (SHAPE, None)
    )
    np.testing.assert_array_equal(given, taken)


@pytest.mark.parametrize("refine", [False, True])
def test_color_images(refine: bool) -> None:
    X = np.random.default_rng(0).random((20, 8 * 9 * 3))
    views = ImageViews((8, 9, 3))
    options = {**CONVOLUTIONAL, "image_shape": None, "views": views, "refine": refine}
    features = ContrastiveFeatures(**options).fit(X)
    assert features.encoder_.shape == (8, 9, 3)
    np.testing.assert_allclose(np.linalg.norm(features.transform(X), axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (lambda x: x[:, :-1], r"\(16, 5\)"),
        (lambda x: x[:-1], r"\(15, 6\)"),
        (lambda x: torch.full_like(x, torch.nan), "values that are not finite"),
        (lambda x: torch.where(x == x.max(), torch.inf, x), "values that are not finite"),
        (lambda x: x.numpy(), "ndarray"),
        (lambda x: None, "NoneType"),
    ],
    ids=["columns", "rows", "NaN", "infinity", "array", "None"],
)
def test_bad_views_are_refused(returned: Any, got: str) -> None:
    features = ContrastiveFeatures(**TINY, views=lambda x, *, generator: returned(x))
    with pytest.raises(
        ValueError, match=rf"views must return a finite tensor of shape \(16, 6\), got {got};"
    ):
        features.fit(two_groups(60)[0])
    assert not hasattr(features, "losses_")


def test_views_that_become_bad_are_refused_in_refinement() -> None:
    calls: list[int] = []

    def views(x: Tensor, *, generator: torch.Generator) -> Tensor:
        calls.append(len(x))
        return x if len(calls) <= TINY["n_updates"] else x * torch.nan

    features = ContrastiveFeatures(**REFINED, views=views)
    with pytest.raises(ValueError, match="views must return a finite tensor"):
        features.fit(two_groups(60)[0])
    assert not hasattr(features, "losses_")


def test_estimators_with_views_are_cloned_shown_and_pickled() -> None:
    X = images()
    views = ImageViews(SHAPE, shift=1)
    features = ContrastiveFeatures(**{**CONVOLUTIONAL, "views": views, "image_shape": None})
    assert features.get_params()["views"] is views
    copy = clone(features)
    assert vars(copy.get_params()["views"]) == vars(views)
    assert "ImageViews" in repr(copy)
    expected = features.fit(X).transform(X)
    np.testing.assert_array_equal(copy.fit(X).transform(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), expected)
    assert clone(features).set_params(views=None).get_params()["views"] is None


# ---- files


def fitted(kind: str, X: Any) -> ContrastiveFeatures:
    options = {
        "refined": REFINED,
        "convolutional": CONVOLUTIONAL,
        "both": {**CONVOLUTIONAL, "refine": True, "views": ImageViews(SHAPE)},
        "dense": TINY,
    }
    return ContrastiveFeatures(**options[kind]).fit(X)


@cache
def state_of(kind: str) -> _archive.State:
    """What a file holds of a fit, which is the same in all tests; arrays are not changed in place."""
    return fitted(kind, images())._state()


@pytest.mark.parametrize("kind", ["refined", "convolutional", "both"])
def test_files(kind: str, probabilities: None, tmp_path: Path) -> None:
    X = images()
    features = fitted(kind, X)
    features.save(tmp_path / "a.safetensors")
    loaded = ContrastiveFeatures.load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(loaded.transform(X), features.transform(X))
    np.testing.assert_array_equal(loaded.losses_, features.losses_)
    np.testing.assert_array_equal(loaded.refinement_losses_, features.refinement_losses_)
    np.testing.assert_equal(loaded.stability_, features.stability_)
    assert loaded.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert repr(loaded.get_params()) == repr(features.get_params())
    loaded.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    clone(loaded).fit(X)


def outcome(path: Path, X: Any) -> str:
    """Of loading and using a file: nothing, "refused" in the words of the project, or another message."""
    try:
        loaded = ContrastiveFeatures.load(path)
    except ValueError as error:
        return "refused" if "a.safetensors must hold what ebse wrote" in str(error) else str(error)
    return "" if len(loaded.transform(X)) == len(X) else "other rows"


@pytest.mark.parametrize("kind", ["refined", "convolutional"])
def test_contradictory_files_are_refused(kind: str, probabilities: None, tmp_path: Path) -> None:
    """Each fact and array is left out, each array cut: refused with the name of the file, or harmless."""
    path, X = tmp_path / "a.safetensors", images()
    facts, arrays = state_of(kind)
    refused = 0
    changed = [({k: v for k, v in facts.items() if k != name}, arrays) for name in facts]
    changed += [(facts, {k: v for k, v in arrays.items() if k != name}) for name in arrays]
    losses = ("losses", "refinement_losses")
    cuts = [name for name, x in arrays.items() if x.ndim and name not in losses]
    changed += [(facts, {**arrays, name: arrays[name][..., :-1]}) for name in cuts]
    changed += [(facts, {**arrays, name: arrays[name][:-1]}) for name in cuts]
    for some_facts, some_arrays in changed:
        _archive.write(path, "ContrastiveFeatures", some_facts, some_arrays)
        message = outcome(path, X)
        assert message in ("", "refused")
        refused += message == "refused"
    assert refused >= len(changed) - 1


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("refined", {"sizes": [1]}),
        ("refined", {"sizes": [2, -2]}),
        ("refined", {"sizes": [10**15]}),
        ("refined", {"sizes": "ab"}),
        ("refined", {"sizes": 4}),
        ("refined", {"shape": [8, 10, 1]}),
        ("refined", {"n_layers": 2}),
        ("refined", {"n_layers": 4}),
        ("refined", {"n_layers": 0}),
        ("refined", {"stability": "high"}),
        ("convolutional", {"shape": None}),
        ("convolutional", {"shape": [8, 10, 2]}),
        ("convolutional", {"shape": [16, 10, 1]}),
        ("convolutional", {"shape": [8, 10**15, 1]}),
        ("convolutional", {"shape": [8, 5, 2]}),
        ("convolutional", {"shape": "image"}),
        ("convolutional", {"n_features": 79}),
        ("convolutional", {"n_layers": 2}),
    ],
)
def test_doctored_facts_are_refused(
    kind: str, change: dict[str, Any], probabilities: None, tmp_path: Path
) -> None:
    path, X = tmp_path / "a.safetensors", images()
    facts, arrays = state_of(kind)
    assert set(change) <= set(facts)
    _archive.write(path, "ContrastiveFeatures", {**facts, **change}, arrays)
    assert outcome(path, X) == "refused"


@pytest.mark.parametrize("kind", ["refined", "convolutional"])
def test_doctored_arrays_are_refused(kind: str, probabilities: None, tmp_path: Path) -> None:
    """NaN in any of them, and an axis too many."""
    path, X = tmp_path / "a.safetensors", images()
    facts, arrays = state_of(kind)
    names = [name for name in arrays if name not in ("losses", "refinement_losses", "spread")]
    assert len(names) >= 8
    for name in names:
        damaged = arrays[name].copy()
        damaged.flat[0] = np.nan
        for changed in (damaged, arrays[name][..., np.newaxis]):
            _archive.write(path, "ContrastiveFeatures", facts, {**arrays, name: changed})
            assert outcome(path, X) == "refused", name


# ---- checkpoints


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint every four updates."""
    monkeypatch.setattr(_feature_training, "EVERY", 4)


# Before the first checkpoint of a stage, right after one, between two, and in the last update.
MOMENTS = [
    (EncoderTraining, 2),
    (EncoderTraining, 4),
    (EncoderTraining, 9),
    (Refinement, 0),
    (Refinement, 4),
    (Refinement, 7),
    (Refinement, 12),
]


def all_of(features: ContrastiveFeatures, X: Any) -> list[Any]:
    """What a fit leaves."""
    return [features.transform(X), features.losses_, features.refinement_losses_, features.stability_]


def require_same(some: list[Any], others: list[Any]) -> None:
    for a, b in zip(some, others, strict=True):
        np.testing.assert_array_equal(a, b)


@cache
def uninterrupted() -> list[Any]:
    """Of training without a checkpoint, which is the same in all tests."""
    X, _ = two_groups(60)
    return all_of(ContrastiveFeatures(**REFINED).fit(X), X)


@pytest.mark.parametrize(("kind", "n"), MOMENTS)
def test_training_goes_on_bit_for_bit_where_it_was_killed(
    kind: Any, n: int, often: None, probabilities: None, tmp_path: Path
) -> None:
    X, _ = two_groups(60)
    path = tmp_path / "c.safetensors"
    features = ContrastiveFeatures(**REFINED, checkpoint=path)
    with ended(kind, n), pytest.raises(KilledError):
        features.fit(X)
    assert path.exists() == (kind is Refinement or n >= 4)
    require_same(all_of(features.fit(X), X), uninterrupted())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"views": None}, {"encoder": "convolutional", "image_shape": SHAPE}])
def test_training_that_is_killed_again_and_again(
    options: dict[str, Any], often: None, tmp_path: Path
) -> None:
    """Every time after a few more updates, in both stages."""
    X = images()
    expected = all_of(ContrastiveFeatures(**{**REFINED, **options}).fit(X), X)
    features = ContrastiveFeatures(**{**REFINED, **options}, checkpoint=str(tmp_path / "c.safetensors"))
    for kind, n in ((EncoderTraining, 5), (EncoderTraining, 5), (Refinement, 5), (Refinement, 5)):
        with ended(kind, n), pytest.raises(KilledError):
            features.fit(X)
    require_same(all_of(features.fit(X), X), expected)


def test_training_that_forgets_its_moments_is_found_out(
    often: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: it goes on from the weights, but not from the moments of AdamW."""
    X, _ = two_groups(60)
    expected = ContrastiveFeatures(**TINY).fit(X).transform(X)
    features = ContrastiveFeatures(**TINY, checkpoint=tmp_path / "c.safetensors")
    with ended(EncoderTraining, 6), pytest.raises(KilledError):
        features.fit(X)
    read = _archive.read

    def forgetful(path: Path, kind: str) -> _archive.State:
        facts, arrays = read(path, kind)
        return _archive.State(facts, {k: x * 0 if "exp_avg" in k else x for k, x in arrays.items()})

    monkeypatch.setattr(_archive, "read", forgetful)
    assert (features.fit(X).transform(X) != expected).any()


def test_training_that_is_interrupted_goes_on(often: None, probabilities: None, tmp_path: Path) -> None:
    """Ctrl-C leaves a fitted estimator and its checkpoint."""
    X, _ = two_groups(60)
    path = tmp_path / "c.safetensors"
    features = ContrastiveFeatures(**REFINED, checkpoint=path)
    with ended(Refinement, 5, KeyboardInterrupt), pytest.raises(KeyboardInterrupt, match="stopped after 15"):
        features.fit(X)
    assert path.exists()
    require_same(all_of(features.fit(X), X), uninterrupted())


def test_a_decision_for_refinement_is_kept(
    often: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the stability by which it was made."""
    monkeypatch.setattr(_feature_training, "LEAST_ROWS", 0)
    monkeypatch.setattr(_feature_training, "STABLE", 0.0)
    X, _ = two_groups(60)
    options = {**TINY, "refine": "auto"}
    expected = all_of(ContrastiveFeatures(**options).fit(X), X)
    features = ContrastiveFeatures(**options, checkpoint=tmp_path / "c.safetensors")
    with ended(Refinement, 6), pytest.raises(KilledError):
        features.fit(X)
    require_same(all_of(features.fit(X), X), expected)


STOPPED: dict[str, dict[str, Any]] = {
    "dense": {**TINY, "views": ImageViews(SHAPE, shift=2.0), "image_shape": SHAPE, "metric": "euclidean"},
    "convolutional": CONVOLUTIONAL,
    "refined": REFINED,
}


@cache
def checkpoint_of(name: str, kind: Any) -> bytes:
    """A checkpoint of training on images that was killed in a stage, which is the same in all tests."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "c.safetensors"
        with ended(kind, 5), pytest.raises(KilledError):
            ContrastiveFeatures(**STOPPED[name], checkpoint=path).fit(images())
        return path.read_bytes()


@pytest.fixture
def stopped(often: None, tmp_path: Path) -> Callable[[str, Any], Path]:
    """A path with a checkpoint of the settings of a name, in the stage of a kind."""

    def written(name: str, kind: Any) -> Path:
        path = tmp_path / "c.safetensors"
        path.write_bytes(checkpoint_of(name, kind))
        return path

    return written


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": 4},
        {"n_hidden": 7},
        {"n_steps": 3},
        {"n_neighbors": 4},
        {"metric": "cosine"},
        {"n_updates": 11},
        {"batch_size": 9},
        {"learning_rate": 2e-3},
        {"temperature": 0.3},
        {"random_state": 1},
        {"views": None},
        {"views": ImageViews(SHAPE, shift=1.0)},
        {"encoder": "convolutional"},
        {"encoder": "convolutional", "image_shape": (10, 8)},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_settings_is_refused(
    change: dict[str, Any], stopped: Callable[[str, Any], Path]
) -> None:
    name = "convolutional" if "image_shape" in change else "dense"
    path = stopped(name, EncoderTraining)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"checkpoint must be of these rows and settings, got .*c\.safetensors"
    ):
        ContrastiveFeatures(**{**STOPPED[name], **change}, checkpoint=path).fit(images())
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", [EncoderTraining, Refinement])
def test_a_checkpoint_of_other_rows_is_refused(kind: Any, stopped: Callable[[str, Any], Path]) -> None:
    path, X = stopped("refined", kind), images()
    other = X.copy()
    other[3, 7] += 0.2
    for rows in (other, X[:-1], X[::-1], X[:, :-1]):
        with pytest.raises(ValueError, match="checkpoint must be of these rows and settings"):
            ContrastiveFeatures(**REFINED, checkpoint=path).fit(rows)


@pytest.mark.parametrize("kind", [EncoderTraining, Refinement])
@pytest.mark.parametrize("refine", [False, "auto"])
def test_a_checkpoint_with_another_refinement_changes_no_features(
    kind: Any, refine: Any, stopped: Callable[[str, Any], Path]
) -> None:
    """It is refused, or the features are those of training from the start."""
    path, X = stopped("refined", kind), images()
    options = {**TINY, "refine": refine}
    expected = ContrastiveFeatures(**options).fit(X).transform(X)
    found = features_or_refusal(ContrastiveFeatures(**options, checkpoint=path), X)
    assert found is None or np.array_equal(found, expected)


def features_or_refusal(features: ContrastiveFeatures, X: Any) -> Any:
    """Features of the rows, or None if the checkpoint is refused."""
    try:
        return features.fit(X).transform(X)
    except ValueError as error:
        if "checkpoint must be of these rows and settings" in str(error):
            return None
        raise


def test_other_files_are_no_checkpoints(tmp_path: Path) -> None:
    path, X = tmp_path / "c.safetensors", images()
    features = ContrastiveFeatures(**TINY).fit(X)
    features.save(path)
    features.set_params(checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="got 'ContrastiveFeatures'; pass the file that does"):
        features.fit(X)
    assert path.read_bytes() == before
    path.write_bytes(before[:-9])
    with pytest.raises(ValueError, match="must be a file written by ebse, got something else or a damaged"):
        features.fit(X)


def test_checkpoints_are_written_in_between(often: None, tmp_path: Path) -> None:
    """Every so many updates; not after the last one, where training has ended."""
    written: list[int] = []
    write = _archive.write

    def watched(path: Path, kind: str, facts: Any, arrays: Any) -> None:
        written.append(facts["n_done"])
        write(path, kind, facts, arrays)

    X, _ = two_groups(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_archive, "write", watched)
        ContrastiveFeatures(**{**TINY, "n_updates": 8}, checkpoint=tmp_path / "c").fit(X)
        ContrastiveFeatures(**{**TINY, "n_updates": 3}, checkpoint=tmp_path / "c").fit(X)
    assert written == [4]
    assert list(tmp_path.iterdir()) == []


def test_a_callable_of_the_user_is_not_stored(tmp_path: Path) -> None:
    features = ContrastiveFeatures(**{**SMALL, "views": lambda x, *, generator: x}).fit(two_groups()[0])
    features.save(tmp_path / "a.safetensors")
    assert ContrastiveFeatures.load(tmp_path / "a.safetensors").views is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"checkpoint": 5}, TypeError, "checkpoint must be a path or None, got 5"),
        (
            {"checkpoint": "x", "random_state": None},
            ValueError,
            "random_state must be given with a checkpoint",
        ),
        ({"views": ImageViews}, ValueError, "views must be None, 'auto', 'learned' or a callable"),
        ({"image_shape": (3, 1)}, ValueError, "shape must be"),
        ({"n_updates": "many"}, ValueError, "n_updates must be one of 'auto', got 'many'"),
    ],
)
def test_more_bad_settings(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ContrastiveFeatures(**{**SMALL, **options}).fit(two_groups()[0])


def test_a_row_is_not_seen_too_often() -> None:
    """The number of updates grows with the rows, up to a limit."""
    features = ContrastiveFeatures(batch_size=256)
    few, more, many, most = (features._number_of_updates(n) for n in (100, 2_000, 4_000, 10**6))
    assert few < more < many < most
    assert many == pytest.approx(2 * more, rel=0.01)
    assert most == features._number_of_updates(10**7)
    assert ContrastiveFeatures(n_updates=7)._number_of_updates(10**6) == 7


def test_an_incomplete_checkpoint_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = two_groups()
    path = tmp_path / "x.ckpt"
    features = ContrastiveFeatures(**{**SMALL, "checkpoint": path})
    monkeypatch.setattr(_feature_training, "EVERY", 20)
    monkeypatch.setattr(_feature_training.FeatureTraining, "finish", lambda _: None)
    features.fit(X)
    held = _archive.read(path, _feature_training.CHECKPOINT)
    arrays = {name: x for name, x in held.arrays.items() if name != "moments.0.exp_avg"}
    _archive.write(path, _feature_training.CHECKPOINT, held.facts, arrays)
    with pytest.raises(ValueError, match=r"x\.ckpt must hold what ebse wrote"):
        features.fit(X)
