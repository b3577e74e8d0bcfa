"""Plots of components: images, or a heat map of a table."""

import pandas as pd
import pytest

from ebse import RBSE
from ensemble.rows import fitted, rows

X, _ = rows()


def test_components_are_plotted() -> None:
    figure = fitted().plot_components(3, image_shape=(3, 4))
    assert len(figure.axes) >= 3
    with pytest.raises(ValueError, match=r"image_shape must have 12 pixels.*got \(2, 5\)"):
        fitted().plot_components(image_shape=(2, 5))


def test_a_table_is_a_heat_map() -> None:
    axes = fitted().plot_components(3).axes[0]
    assert axes.images[0].get_array().shape == (3, 12)  # type: ignore[union-attr]
    frame = pd.DataFrame(X[:, :9], columns=[f"answer {i}" for i in range(9)])
    named = RBSE(4, n_epochs=1).fit(frame).plot_components().axes[0]
    assert [label.get_text() for label in named.get_xticklabels()] == list(frame.columns)
    squares = RBSE(4, n_epochs=1).fit(X[:, :9]).plot_components()
    assert squares.axes[0].images[0].get_array().shape == (3, 3)  # type: ignore[union-attr]
