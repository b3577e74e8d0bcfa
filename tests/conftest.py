"""Tests run in float64, on one thread, with warnings as errors."""

import pytest
import torch

# Two threads on arrays this small cost more than they save, the more so on a busy machine.
torch.set_num_threads(1)
# Before any test module is imported, so that their constants are float64, too.
torch.set_default_dtype(torch.float64)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20150101)
