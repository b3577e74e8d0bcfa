"""Estimators are tested in single precision, as they are used."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def users_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)
