"""Estimators are tested in single precision, as they are used."""

from collections.abc import Iterator

import pytest
import torch

from ebse.semi_supervised import _learned_views, _refinement, _walk_clusters, contrastive


@pytest.fixture(autouse=True)
def users_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


@pytest.fixture(autouse=True)
def few_view_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few as the encoder's own: views are tested by themselves."""
    monkeypatch.setattr(contrastive, "LEAST_VIEW_UPDATES", 1)


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little of what ``ContrastiveFeatures`` has no parameter for: rows of tests are few and easy."""
    monkeypatch.setattr(_learned_views, "BATCH", 64)
    monkeypatch.setattr(_refinement, "N_HEAD_STEPS", 30)
    monkeypatch.setattr(_refinement, "HEAD_BATCH", 64)
    monkeypatch.setattr(_walk_clusters, "N_STARTS", 2)
    monkeypatch.setattr(_walk_clusters, "STAYING", _walk_clusters.STAYING[:2])
