"""Contrastive features: InfoNCE against loops, folded batch norms, similar rows, settings."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

from ebse import ContrastiveFeatures
from ebse.semi_supervised import contrastive
from ebse.semi_supervised._encoder import EncoderTraining, info_nce

SMALL: dict[str, Any] = {
    "n_components": 4,
    "n_hidden": 16,
    "n_updates": 60,
    "batch_size": 32,
    "random_state": 0,
}


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


def test_the_encoder_is_the_network_with_its_norms_folded() -> None:
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"n_hidden": 7, "n_components": 3, "n_updates": 5, "temperature": 0.2}
    training = EncoderTraining(4, learning_rate=0.1, seed=0, **options)
    for _ in range(5):
        training.update(*rng.normal(size=(2, 10, 4)).astype(np.float32))
    x = rng.normal(size=(6, 4)).astype(np.float32)
    training.net.eval()
    with torch.no_grad():
        expected = functional.normalize(training.net(torch.from_numpy(x)), dim=1).numpy()
    np.testing.assert_allclose(contrastive.Encoder(*training.layers())(x), expected, atol=1e-5)


def test_rows_that_walks_connect_become_similar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean similarity within groups that no walk leaves, less that between them; walks to any row fail."""
    X, group = two_groups()
    same = group[:, None] == group

    def separation(**options: Any) -> float:
        z = ContrastiveFeatures(**{**SMALL, **options}).fit(X).transform(X)
        similarity = z @ z.T
        return float(similarity[same].mean() - similarity[~same].mean())

    learned = separation(n_updates=300)
    monkeypatch.setattr(contrastive, "random_walk", lambda near, n, start, *, rng: rng.permutation(start))
    assert learned > 2 * abs(separation(n_updates=300))


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


def test_an_interrupted_fit_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = two_groups()
    update = EncoderTraining.update
    calls: list[int] = []

    def interrupted(self: EncoderTraining, first: Any, second: Any) -> float:
        if len(calls) == 10:
            raise KeyboardInterrupt
        calls.append(1)
        return update(self, first, second)

    monkeypatch.setattr(EncoderTraining, "update", interrupted)
    features = ContrastiveFeatures(**SMALL)
    with pytest.raises(KeyboardInterrupt, match="stopped after 10 updates"):
        features.fit(X)
    assert len(features.losses_) == 10
    assert features.transform(X).shape == (200, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be >= 1"),
        ({"metric": "taxi"}, "metric must be one of 'auto', 'cosine', 'euclidean', got 'taxi'"),
        ({"n_updates": 0}, "n_updates must be >= 1"),
        ({"batch_size": 1}, "batch_size must be >= 2"),
        ({"temperature": 0}, "temperature must be positive, got 0; try 0.2"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive, got nan"),
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

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EncoderTraining, "update", interrupted)
    with pytest.raises(KeyboardInterrupt, match="the estimator is as it was"):
        features.fit(X[:, :1])
    np.testing.assert_array_equal(features.transform(X), before)
