"""Episodes: their rows and classes, and reproducibility by seed."""

from typing import Any

import numpy as np
import pytest
import torch

from ebse.evaluation import draw_episodes
from monte_carlo import means_depart

Y = np.array(list("aaaaaabbbbbbbcccccccc"))


def test_rows_are_of_their_class_and_distinct() -> None:
    episodes = draw_episodes(Y, n_ways=2, n_shots=2, n_queries=4, n_episodes=30, random_state=0)
    assert episodes.support.shape == (30, 2, 2)
    assert episodes.queries.shape == (30, 2, 4)
    for classes, support, queries in zip(*episodes, strict=True):
        assert list(classes) == sorted(set(classes))
        for label, rows in zip(classes, np.hstack([support, queries]), strict=True):
            assert (Y[rows] == label).all()
            assert len(set(rows)) == 6


def test_all_classes_without_n_ways() -> None:
    assert (draw_episodes(Y, n_queries=2, n_episodes=4).classes == ["a", "b", "c"]).all()


def test_an_episode_depends_on_neither_their_number_nor_the_shots() -> None:
    few = draw_episodes(Y, n_ways=2, n_shots=1, n_queries=3, n_episodes=3, random_state=7)
    many = draw_episodes(Y, n_ways=2, n_shots=3, n_queries=3, n_episodes=9, random_state=7)
    np.testing.assert_array_equal(few.classes, many.classes[:3])
    np.testing.assert_array_equal(few.queries, many.queries[:3])
    np.testing.assert_array_equal(few.support, many.support[:3, :, :1])


@pytest.mark.parametrize("state", [int, np.random.RandomState, np.random.default_rng])
def test_same_seed_same_episodes_other_seed_other_episodes(state: Any) -> None:
    first, again, other = (
        draw_episodes(Y, n_queries=2, n_episodes=20, random_state=state(seed)).support for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_without_a_seed_episodes_differ_even_if_numpy_is_seeded() -> None:
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        found.append(draw_episodes(Y, n_queries=2, n_episodes=20).support)
    assert (found[0] != found[1]).any()


def chosen(support: np.ndarray[Any, Any]) -> torch.Tensor:
    """Which rows of class c are the shot of an episode (E, 8)."""
    return torch.from_numpy(support[:, 2] == np.flatnonzero(Y == "c")).double()


def test_every_row_is_drawn_equally_often() -> None:
    episodes = draw_episodes(Y, n_queries=2, n_episodes=2000, random_state=1)
    uniform = torch.full((8,), 1 / 8)
    assert not means_depart(chosen(episodes.support), uniform, variance=uniform * 7 / 8)


def test_a_preferred_row_is_detected() -> None:
    """The twin: the first row is chosen once more in ten episodes."""
    support = draw_episodes(Y, n_queries=2, n_episodes=2000, random_state=1).support
    support[::10, 2] = np.flatnonzero(Y == "c")[0]
    uniform = torch.full((8,), 1 / 8)
    assert means_depart(chosen(support), uniform, variance=uniform * 7 / 8)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (Y, {"n_shots": 5}, r"y must have at least n_shots \+ n_queries = 5 \+ 2 = 7 rows of each class, got 6 of class 'a'; lower n_shots or n_queries, or leave the class out"),
        (Y.astype(object), {"n_shots": 5}, "got 6 of class 'a'; lower n_shots or n_queries"),
        (Y, {"n_ways": 4}, "n_ways must be <= 3, the classes in y, got 4; lower it or pass None"),
        (Y, {"n_ways": 1}, "n_ways must be >= 2, got 1"),
        (Y, {"n_shots": 0}, "n_shots must be >= 1, got 0"),
        (Y, {"n_queries": 0}, "n_queries must be >= 1, got 0"),
        (Y, {"n_episodes": 2.5}, "n_episodes must be a whole number, got 2.5"),
        (Y, {"random_state": "seed"}, "random_state must be None, an int .* got 'seed'; pass an int"),
        (Y[:, None], {}, r"y must have shape \(N,\), got \(21, 1\); pass one label per row"),
        (Y[:6], {}, "y must have at least 2 classes, got 1; pass rows of more classes"),
    ],
)  # fmt: skip
def test_errors(y: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        draw_episodes(y, **{"n_queries": 2, **options})
