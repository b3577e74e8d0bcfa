"""Labels that spread in a run: when they do, and what is kept of them."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebse import ContrastiveFeatures
from ebse.workflow import _spread as spread
from ebse.workflow._spread import (
    load_spread,
    require_sizes,
    require_spreading,
    save_spread,
    sizes_from,
    spread_over,
    spreads,
)
from ebse.workflow.prediction import sizes_for


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
    np.testing.assert_array_equal(held.suggest(5), made.suggest(5))
    again = [one.relabel(X[6:12], y[6:12]).predict_proba(X) for one in (held, made)]
    np.testing.assert_array_equal(again[0], again[1])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spreading.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"spreading\.npz must be a file written by ebse"):
        load_spread(path)


KNOWN = np.arange(1_000) < 3
CLASSES = np.array(["a", "b", "in=out"])


def test_sizes_as_a_setting_has_them() -> None:
    assert sizes_from("equal") == "equal"
    assert sizes_from("a=0.2, b =0.3,in=out=0.5") == {"a": 0.2, "b": 0.3, "in=out": 0.5}
    assert sizes_from("Paris, France=0.2,b=0.8") == {"Paris, France": 0.2, "b": 0.8}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("some", "class_prior must be equal, or like a=0.2,b=0.8, got 'some'"),
        ("a=0.5,b=0.5,in=out=much", "got 'in=out=much' in .*; give a share to each class"),
        ("a=0.5,b=", "got 'b=' in"),
        (
            "a=0.5,b,in=out=0.5",
            "class_prior must have .* and one for 'b,in=out', which no row is labeled with",
        ),
        ("a=0.5,b=0.5,in=out", "got 'in=out' in .*; give a share to each class"),
        ("=0.5,b=0.5", "class_prior must .* and one for '=0.5,b', which no row is labeled with"),
        ("a=0.2,a=0.8,b=0.2", "class_prior must name a class once, got 'a' twice"),
        ("a=0.5,b=0.5", "class_prior must have a probability for each .* got none for 'in=out'"),
        ("a=0.5,b=0.25,in=out=0.25,x=0.5", "got one for 'x', which no row is labeled with"),
        ("a=0.5,b=0.5,in=out=0.5", "class_prior must be positive and sum to 1"),
    ],
)
def test_bad_sizes(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        require_sizes(text, CLASSES)


def test_settings_where_labels_do_not_spread() -> None:
    require_spreading("n_rounds", KNOWN)
    with pytest.raises(ValueError, match=r"n_rounds must be left out .* 900 rows, 3 of them with a label"):
        require_spreading("n_rounds", KNOWN[:900])


def test_sizes_of_other_classes_are_left_out() -> None:
    X, known, y = rows()
    told = "a=0.6,b=0.2,c=0.2"
    spread = spread_over(X, known, y[known], sizes=told, seed=0)
    assert sizes_for(spread, y) == {"a": 0.6, "b": 0.2, "c": 0.2}
    with pytest.warns(UserWarning, match="class sizes are of a, b, c, and the rows have other labels"):
        assert sizes_for(spread, np.array(["a", "b", "d"])) is None


def test_sizes_move_what_rows_are_taken_for(tmp_path: Path) -> None:
    """On rows between all three blobs, which belong to none; what is kept was told the same."""
    X, known, y = rows()
    X[60:] = np.random.default_rng(1).random((240, 3))
    told = "a=0.6,b=0.2,c=0.2"
    plain, sized = (spread_over(X, known, y[known], sizes=sizes, seed=0) for sizes in (None, told))
    share = [float((one.predict(X[~known]) == "a").mean()) for one in (plain, sized)]
    assert share[0] < 0.5 < share[1]
    save_spread(tmp_path / "spreading.npz", sized)
    held = load_spread(tmp_path / "spreading.npz", sizes=told, n_rounds=3)
    sized.set_params(n_rounds=3)
    again = [one.relabel(X[known], y[known]).predict_proba(X) for one in (held, sized)]
    np.testing.assert_array_equal(again[0], again[1])
