"""Chain-sampled models: their distribution by enumeration, and what draws must not depend on."""

import pytest
import torch
from torch import Tensor

from ebse.ensemble import draws
from ebse.ensemble.draws import Read, chain_draws, posterior_draws
from ebse.laws import Bernoulli, Gaussian, Point
from ebse.models import RestrictedBoltzmannEnsemble, exact
from examples import ensemble
from kernels.single import WEIGHTS, single, threads
from kernels.single import ensemble as wide
from monte_carlo import means_depart
from peak_memory import peak_growths


@pytest.fixture(autouse=True)
def users_precision() -> None:
    """Below the estimators tests run in double precision."""


V = torch.tensor([1.0, 1.0, 1.0])
N_DRAWS = 60_000
Small = RestrictedBoltzmannEnsemble


def strong(W: str) -> Small:
    """An ensemble whose units are all on or all off, which chains leave slowly, with noise that matters."""
    theta_bar = torch.tensor([[5.0, 4.4], [4.7, 5.2], [4.2, 4.9]])
    law = Bernoulli(theta_bar, 0.4) if W == "bernoulli" else Gaussian(theta_bar - 1.6, 1.2)
    return Small(W=law, b=Point(torch.full((3,), -4.0)), c=Point(torch.full((2,), -5.5)))


def end_of_chain(small: Small, v: Tensor, n_sweeps: int) -> Tensor:
    """P(v_s, h_s) (2^D, 2^K) after n_sweeps from v, by powers of the transition matrix."""
    v_states, h_states = exact.states(3), exact.states(2)

    def table(mean: Tensor, states: Tensor) -> Tensor:
        p = mean.unsqueeze(-2)
        return torch.where(states > 0, p, 1 - p).prod(-1)

    h_given_v = table(small.mean_h_given_v(v_states), h_states)
    v_given_h = table(small.mean_v_given_h(h_states), v_states)
    start = (v_states == v).all(-1).double()
    joint = start.unsqueeze(-1) * h_given_v
    for _ in range(n_sweeps):
        joint = (joint.sum(0) @ v_given_h).unsqueeze(-1) * h_given_v
    return joint


def expected_read(small: Small, v: Tensor, n_sweeps: int, *, tilted: bool = True) -> Tensor:
    """E[P(h | v, θ)] over θ ~ P(θ | v_s, h_s), the nodes of each column of W summed over one by one."""
    joint, total = end_of_chain(small, v, n_sweeps), torch.zeros(2)
    values, log_w = small.W.nodes(40 if isinstance(small.W, Gaussian) else 2)
    G = len(values)
    index = torch.cartesian_prod(*(torch.arange(G) for _ in range(3)))  # the node of each of three rows
    rows = torch.arange(3)
    for a, v_s in enumerate(exact.states(3)):
        for b, h_s in enumerate(exact.states(2)):
            t = v_s.unsqueeze(-1) * h_s if tilted else torch.zeros(3, 2)
            weight = torch.softmax(log_w + t * values, 0)
            for j in range(2):
                p = weight[index, rows, j].prod(-1)
                read = torch.sigmoid(values[index, rows, j] @ v + small.c.mean()[j])
                total[j] += joint[a, b] * (p * read).sum()
    return total


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_chain_sampled_models_have_their_distribution(
    W: str, precision: str, generator: torch.Generator
) -> None:
    small = strong(W)
    used = single(small) if precision == "float32" else small
    found = chain_draws(used, V.unsqueeze(0), N_DRAWS, n_sweeps=2, generator=generator)[0].double()
    assert not means_depart(found, expected_read(small, V, 2))
    # The twins: a sweep less or more, and models of the prior.
    assert means_depart(found, expected_read(small, V, 1))
    assert means_depart(found, expected_read(small, V, 3))
    assert means_depart(found, expected_read(small, V, 2, tilted=False))


def test_without_sweeps_the_oracle_is_the_mean_representation() -> None:
    small = strong("bernoulli")
    torch.testing.assert_close(expected_read(small, V, 0), small.mean_h_given_v(V))


def test_states_of_chains_have_their_distribution(generator: torch.Generator) -> None:
    small = strong("bernoulli")
    found = chain_draws(single(small), V.unsqueeze(0), N_DRAWS, n_sweeps=2, read="state", generator=generator)
    expected = end_of_chain(small, V, 2).sum(1) @ small.mean_h_given_v(exact.states(3))
    assert not means_depart(found[0].double(), expected)
    assert means_depart(found[0].double(), small.mean_h_given_v(V))


def test_gray_values_are_sampled_before_the_chain_starts(generator: torch.Generator) -> None:
    small, gray = strong("bernoulli"), torch.tensor([[0.3, 1.0, 0.0]])
    ends = torch.tensor([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    expected = 0.7 * expected_read(small, ends[0], 1) + 0.3 * expected_read(small, ends[1], 1)
    for used in (small, single(small)):
        found = chain_draws(used, gray, N_DRAWS, n_sweeps=1, generator=generator)[0]
        assert not means_depart(found.double(), expected)


@pytest.mark.parametrize("visible", ["binary", "real"])
def test_other_laws_and_real_units_have_chains_too(visible: str, generator: torch.Generator) -> None:
    small = RestrictedBoltzmannEnsemble(**ensemble("levels").laws, visible=visible)  # type: ignore[arg-type]
    v = torch.tensor([[0.2, 0.9, 1.0]])
    reads: tuple[Read, ...] = ("input", "state")
    for read in reads:
        found = chain_draws(small, v, 20, n_sweeps=3, read=read, generator=generator)
        assert ((found > 0) & (found < 1)).all()
        assert found.std(1).min() > 0


def test_posterior_draws_are_chains_of_no_sweeps() -> None:
    small = wide("bernoulli", 17, 9)
    v = (torch.rand(20, 17, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    a = posterior_draws(small, v, 3, generator=torch.Generator().manual_seed(1))
    b = chain_draws(small, v, 3, n_sweeps=0, generator=torch.Generator().manual_seed(1))
    assert torch.equal(a, b)


@pytest.mark.parametrize("n_sweeps", [0, 3])
@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_a_row_repeats_bit_for_bit(W: str, n_sweeps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the other rows, gray or not, the threads, the chunks and the size of blocks."""
    assert W in WEIGHTS
    monkeypatch.setattr(draws, "BLOCK_VALUES", 1)
    small = wide(W, 17, 9)
    v = (torch.rand(300, 17, generator=torch.Generator().manual_seed(0)) < 0.4).float()

    def draw(v: Tensor, chunk_size: int = 2**18) -> Tensor:
        g = torch.Generator().manual_seed(1)
        return chain_draws(small, v, 3, n_sweeps=n_sweeps, generator=g, chunk_size=chunk_size)

    whole = draw(v)
    assert torch.equal(draw(v[:7]), whole[:7])
    assert torch.equal(draw(v[:200]), whole[:200])
    assert torch.equal(draw(v, chunk_size=5), whole)
    with threads(2):
        assert torch.equal(draw(v), whole)
    monkeypatch.setattr(draws, "READS", 1)
    assert torch.equal(draw(v), whole)
    v[5, 2] = 0.5
    others = torch.arange(300) != 5
    assert torch.equal(draw(v)[others], whole[others])


@pytest.mark.slow
def test_peak_memory_is_the_result_and_a_block() -> None:
    """20,000 draws of 400 are 31 MiB; v repeated for each of them, the twin, would be 60 MiB more."""
    found, repeated = peak_growths(
        """
from ebse.ensemble.draws import posterior_draws
small = ensemble(784, 400)
v = (torch.rand(2000, 784, generator=g) < 0.02).float()
posterior_draws(small, v[:2], 10, generator=g)
growth(lambda: posterior_draws(small, v, 10, generator=g))
growth(lambda: (torch.ones(20000, 800), v.repeat(20, 1)))
"""
    )
    assert found < 31 + 40
    # The largest memory before it is that of the call above.
    assert repeated > 40
