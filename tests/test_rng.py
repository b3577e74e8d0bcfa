"""Counter-based noise: uniform, independent of windows, different for different keys."""

import pytest
import torch
from scipy import stats

from ebse import rng
from monte_carlo import FAILURE_RATE


def test_uniform_lies_strictly_between_zero_and_one() -> None:
    u = rng.uniform(1, (1000, 1000))
    assert u.dtype == torch.float64
    assert u.min() > 0
    assert u.max() < 1


@pytest.mark.parametrize("key", [0, 1, 2**63, 2**64 - 1])
def test_uniform_is_uniform_and_its_neighbors_are_independent(key: int) -> None:
    u = rng.uniform(key, (200_000,))
    assert stats.kstest(u.numpy(), "uniform").pvalue > FAILURE_RATE
    for lag in (1, 2, 400, 784):
        pairs = torch.stack([u[:-lag], u[lag:]]).mul(8).long()
        observed = torch.bincount(pairs[0] * 8 + pairs[1], minlength=64)
        assert stats.chisquare(observed.numpy()).pvalue > FAILURE_RATE


def test_a_constant_step_would_be_found_out() -> None:
    """The twin: a Weyl sequence is uniform, but its neighbors are not independent."""
    u = torch.frac(torch.arange(200_000) * 0.6180339887498949)
    pairs = torch.stack([u[:-1], u[1:]]).mul(8).long()
    observed = torch.bincount(pairs[0] * 8 + pairs[1], minlength=64)
    assert stats.chisquare(observed.numpy()).pvalue < FAILURE_RATE


def test_streams_of_different_keys_are_independent() -> None:
    keys = [rng.subkey(7, n) for n in range(50)]
    assert len(set(keys)) == 50
    streams = torch.stack([rng.uniform(key, (4000,)) for key in keys])
    correlations = torch.corrcoef(streams)[torch.triu_indices(50, 50, 1).unbind()]
    z = stats.norm.isf(FAILURE_RATE / 2 / len(correlations))
    assert correlations.abs().max() < z / 4000**0.5


def test_windows_cut_the_same_array() -> None:
    whole = rng.uniform(3, (5, 4, 3))
    part = rng.uniform(3, (5, 4, 3), window=(slice(1, 4), slice(2, 3)))
    assert torch.equal(part, whole[1:4, 2:3])


def test_rows_do_not_depend_on_how_many_there_are() -> None:
    assert torch.equal(rng.uniform(3, (5, 4)), rng.uniform(3, (9, 4))[:5])


def test_bernoulli_is_certain_at_zero_and_one() -> None:
    p = torch.tensor([0.0, 1.0]).expand(10_000, 2)
    assert torch.equal(rng.bernoulli(p, 4), p)


def test_a_generator_gives_other_keys_on_every_call(generator: torch.Generator) -> None:
    keys = [rng.draw_key(generator) for _ in range(100)]
    assert len(set(keys)) == 100
    assert all(0 <= key < 2**64 for key in keys)
