"""Row numbers depend on the content of a row alone."""

import numpy as np
import numpy.typing as npt
import pytest
import torch

from ebse import rng
from ebse.ensemble import _inputs as inputs
from ebse.ensemble.draws import chain_draws, prior_draws
from ebse.laws import Bernoulli, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.sampling import conditional_sweeps
from kernels.single import threads
from monte_carlo import means_depart


def plain_numbers(v: npt.NDArray[np.float32]) -> rng.Numbers:
    """Σ_i mix(x_i + i · golden), mixed, in whole arrays."""
    z = np.rint(np.nan_to_num(v, nan=2.0) * np.float32(2**20)).astype(np.uint64)
    z += np.arange(v.shape[1], dtype=np.uint64) * np.uint64(rng.GOLDEN)
    rng.mix(z)
    numbers: rng.Numbers = z.sum(1, dtype=np.uint64)
    rng.mix(numbers)
    return numbers


@pytest.mark.parametrize("n_threads", [1, 2])
def test_numbers_are_those_of_the_plain_twin(n_threads: int) -> None:
    v = np.random.default_rng(0).random((1000, 40)).astype(np.float32)
    v[::7, 3] = np.nan
    v[::5] = np.rint(v[::5])
    with threads(n_threads):
        np.testing.assert_array_equal(inputs.row_numbers(v), plain_numbers(v))


def test_numbers_depend_on_the_row_alone() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((200, 40)) < 0.5).astype(np.float32)
    numbers = inputs.row_numbers(rows)
    assert len(np.unique(numbers)) == len(np.unique(rows, axis=0)) == 200
    order = rng.permutation(200)[:50]
    np.testing.assert_array_equal(inputs.row_numbers(rows[order]), numbers[order])
    np.testing.assert_array_equal(inputs.row_numbers(np.where(rows == 0, np.float32(-0.0), rows)), numbers)
    # One unit at another place gives another number.
    one = np.eye(40, dtype=np.float32)
    assert len(np.unique(inputs.row_numbers(one))) == 40


def small() -> RestrictedBoltzmannEnsemble:
    W = Bernoulli(torch.tensor([[3.0, -2.0], [4.0, 0.5], [-2.0, 3.5]]), 0.4)
    return RestrictedBoltzmannEnsemble(W, Point(torch.full((3,), -2.0)), Point(torch.tensor([-1.5, -1.0])))


def test_draws_by_number_have_the_distribution_of_draws_by_index() -> None:
    """The same mean as draws by index; rows with one number share their random numbers, others do not."""
    v = torch.tensor([[1.0, 0.0, 1.0]]).expand(30_000, 3)
    numbers = inputs.row_numbers(np.arange(30_000, dtype=np.float32).reshape(-1, 1))
    g = torch.Generator().manual_seed(0)
    found = chain_draws(small(), v, 1, n_sweeps=0, generator=g, numbers=numbers)[:, 0]
    assert not means_depart(found.double(), small().mean_h_given_v(v[:1])[0].double())
    same = chain_draws(small(), v[:4], 3, n_sweeps=2, generator=g, numbers=np.full(4, 7, np.uint64))
    assert torch.equal(same[0], same[3])
    assert not torch.equal(same[:, 0], same[:, 1])


def test_prior_draws_have_the_distribution_of_the_weights() -> None:
    v = torch.tensor([[1.0, 1.0, 1.0]])
    draws = prior_draws(small(), v, 40_000, generator=torch.Generator().manual_seed(1))[0].double()
    W = small().W
    total = torch.zeros(2).double()
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            for c in (0.0, 1.0):
                on = torch.tensor([a, b, c])
                weight = torch.where(on > 0, torch.tensor(0.4), torch.tensor(0.6)).prod()
                total += weight * torch.sigmoid(on @ W.alpha["theta_bar"] + small().c.mean())
    assert not means_depart(draws, total)
    assert means_depart(draws, small().mean_h_given_v(v)[0].double())


def test_missing_units_have_their_conditional_distribution() -> None:
    """E[v_0, v_2 | v_1 = 1] by enumeration; the twin ignores v_1."""
    made = small()
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)
    weight = torch.exp(-made.free_energy(states))
    known = states[:, 1] == 1
    expected = (weight[known, None] * states[known]).sum(0) / weight[known].sum()
    v, missing = torch.tensor([[9.0, 1.0, 9.0]]), torch.tensor([[True, False, True]])
    n = 20_000
    options = {"n_burn": 30, "generator": torch.Generator().manual_seed(2)}
    _, drawn = conditional_sweeps(made, v.expand(n, 3), missing.expand(n, 3), 1, **options)  # type: ignore[arg-type]
    assert (drawn[:, 1] == 1).all()
    assert not means_depart(drawn[:, ::2].double(), expected[::2].double())
    unconditional = (weight[:, None] * states).sum(0) / weight.sum()
    assert means_depart(drawn[:, ::2].double(), unconditional[::2].double())
    mean, _ = conditional_sweeps(made, v.expand(n, 3), missing.expand(n, 3), 3, **options)  # type: ignore[arg-type]
    assert not means_depart(mean[:, ::2].double(), expected[::2].double())


def test_random_numbers_by_number_are_those_by_index() -> None:
    numbers = np.array([5, 0, 3], dtype=np.uint64)
    whole = rng.uniform(7, (6, 4, 2))
    assert torch.equal(rng.uniform(7, (3, 4, 2), numbers=numbers), whole[[5, 0, 3]])
    part = rng.uniform(7, (3, 4, 2), numbers=numbers, window=(slice(1, 3), slice(2, 4)))
    assert torch.equal(part, whole[[0, 3], 2:4])
