"""Labels that spread in a run: when they do, and what is kept of them."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse import ContrastiveFeatures
from ebse.fitting import spread
from ebse.fitting.spread import load_spread, save_spread, spread_over, spreads


def rows(n: int = 300) -> tuple[Any, Any, Any]:
    """Three blobs in the unit cube, which rows have a label, and all labels."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = np.clip(np.eye(3)[y] * 0.6 + 0.2 + 0.05 * rng.normal(size=(n, 3)), 0, 1).astype(np.float32)
    return X, np.arange(n) < 6, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize(
    ("n", "n_known", "expected"),
    [(1_000, 499, True), (1_000, 500, False), (999, 10, False), (5_000, 0, True)],
)
def test_labels_spread_where_most_rows_have_none_and_rows_are_many(
    n: int, n_known: int, expected: bool
) -> None:
    assert spreads(np.arange(n) < n_known) is expected


@pytest.mark.parametrize("contrastive_from", [10_000, 100])
def test_what_is_kept_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contrastive_from: int
) -> None:
    monkeypatch.setattr(spread, "CONTRASTIVE_FROM", contrastive_from)
    monkeypatch.setattr(
        spread, "ContrastiveFeatures", partial(ContrastiveFeatures, n_updates=60, n_hidden=40)
    )
    X, known, y = rows()
    made = spread_over(X, known, y[known], seed=0)
    assert (made.representations_[0] is None) == (contrastive_from > len(X))
    save_spread(tmp_path / "spreading.npz", made)
    held = load_spread(tmp_path / "spreading.npz")
    np.testing.assert_array_equal(held.predict_proba(X), made.predict_proba(X))
    assert held.classes_.tolist() == ["a", "b", "c"]
    assert held.score(X, y) > 0.95
    # Other labels spread over the same clusters, and suggestions are the same.
    np.testing.assert_array_equal(held.suggest(X, 5), made.suggest(X, 5))
    again = [one.relabel(X[6:12], y[6:12]).predict_proba(X) for one in (held, made)]
    np.testing.assert_array_equal(again[0], again[1])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spreading.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"spreading\.npz must be as ebse wrote it"):
        load_spread(path)
