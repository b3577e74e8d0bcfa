"""What every law promises, for every law."""

import itertools
import math
from collections.abc import Callable
from functools import cache

import pytest
import torch

from ebse import rng
from ebse.laws import Law, Levels
from examples import LAWS
from monte_carlo import FAILURE_RATE, means_depart
from oracles import law_expectation, tilted_expectation

TILTS = (-1.0, -0.3, 0.0, 0.25, 1.0, 1.5)
SHAPE = (2, 2)
ELEMENTS = list(itertools.product(range(2), range(2)))


@pytest.fixture(params=sorted(LAWS))
def law(request: pytest.FixtureRequest) -> Law:
    return LAWS[request.param](SHAPE)


@pytest.mark.parametrize("t", TILTS)
def test_log_mgf_is_the_log_of_the_expected_exponential(law: Law, t: float) -> None:
    expected = [math.log(law_expectation(law, e, lambda x: math.exp(t * x))) for e in ELEMENTS]
    torch.testing.assert_close(law.log_mgf(t).flatten(), torch.tensor(expected), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("t", TILTS)
def test_mean_and_variance_are_those_of_the_tilted_law(law: Law, t: float) -> None:
    for e in ELEMENTS:
        mean = tilted_expectation(law, e, t, lambda x: x)
        variance = tilted_expectation(law, e, t, lambda x, m=mean: (x - m) ** 2)  # type: ignore[misc]
        assert law.mean(t)[e].item() == pytest.approx(mean, rel=1e-10, abs=1e-11)
        assert law.variance(t)[e].item() == pytest.approx(variance, rel=1e-9, abs=1e-11)


def test_log_mgf_is_exactly_zero_without_a_tilt(law: Law) -> None:
    assert law.log_mgf(0.0).abs().max() < 1e-15


def test_tilts_broadcast_against_the_shape(law: Law) -> None:
    t = torch.linspace(-1, 1, 12).reshape(3, 2, 2)
    by_element = torch.stack([law.log_mgf(t[n]) for n in range(3)])
    torch.testing.assert_close(law.log_mgf(t), by_element)
    assert law.log_mgf(torch.zeros(5, 1, 1)).shape == (5, 2, 2)
    assert law.mean(torch.zeros(5, 1, 1)).shape == (5, 2, 2)


def test_a_tilt_of_the_wrong_shape_is_named(law: Law, generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match=r"t must broadcast against the law's shape \(2, 2\), got \(3,\)"):
        law.sample(torch.zeros(3), generator=generator)


# ---- sampling

Function = Callable[[torch.Tensor], torch.Tensor]
FUNCTIONS: tuple[Function, ...] = (
    lambda x: x,
    lambda x: x**2,
    lambda x: torch.cos(3 * x),
    lambda x: (x <= 0.1).double(),
)


T = torch.tensor([[1.0, -0.75], [0.5, 0.0]])
N = 40_000


@cache
def _moments(name: str, f: Function) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of f under the law tilted by T."""
    law = LAWS[name](SHAPE)

    def moment(e: tuple[int, int], n: int) -> float:
        return tilted_expectation(law, e, float(T[e]), lambda x: float(f(torch.tensor(x))) ** n)

    mean, square = (torch.tensor([moment(e, n) for e in ELEMENTS]).reshape(SHAPE) for n in (1, 2))
    return mean, (square - mean**2).clamp(min=0)


def _departs(samples: torch.Tensor, name: str) -> bool:
    """Whether samples (N, 2, 2) depart from the law tilted by T in any of four expectations."""
    rate = FAILURE_RATE / len(FUNCTIONS)
    departs = False
    for f in FUNCTIONS:
        mean, variance = _moments(name, f)
        departs |= means_depart(f(samples), mean, variance=variance, failure_rate=rate)
    return departs


@pytest.mark.parametrize("name", sorted(LAWS))
def test_samples_follow_the_tilted_law(name: str, generator: torch.Generator) -> None:
    law = LAWS[name](SHAPE)
    assert not _departs(law.sample(T.expand(N, 2, 2), generator=generator), name)
    # The twin: samples that ignore the tilt. A law without noise has none to ignore.
    assert _departs(law.sample(torch.zeros(N, 2, 2), generator=generator), name) == (name != "point")


def test_same_seed_same_sample_other_seed_other_sample(law: Law) -> None:
    def sample(seed: int) -> torch.Tensor:
        return law.sample(T.expand(50, 2, 2), generator=torch.Generator().manual_seed(seed))

    assert torch.equal(sample(1), sample(1))
    if type(law).__name__ != "Point":
        assert not torch.equal(sample(1), sample(2))


def test_rows_draw_what_the_whole_draws(law: Law) -> None:
    u = rng.uniform(5, (7, 2, 2))
    whole = law.draw(T.expand(7, 2, 2), u)
    assert torch.equal(law.rows(slice(1, 2)).draw(T.expand(7, 2, 2)[:, 1:2], u[:, 1:2]), whole[:, 1:2])


# ---- derivatives in α


@pytest.mark.parametrize("t", [0.0, 0.4, 1.0])
def test_expected_score_and_path_are_the_derivative_of_log_mgf(law: Law, t: float) -> None:
    """∂K/∂α = E[−∂φ/∂α + t ∂θ/∂α | t], the expectation summed over the law's nodes (Eq. 6, B2, B6)."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in law.alpha.items()}
    law = law.with_alpha(leaves)
    expected = torch.autograd.grad(law.log_mgf(t).sum(), list(leaves.values()), allow_unused=True)
    values, log_w = (x.detach() for x in law.nodes(60))
    weight = (log_w + t * values - law.log_mgf(t)).exp().detach()
    surrogate = (weight * (t * law.path(values) - law.potential(values))).sum()
    found = torch.autograd.grad(surrogate, list(leaves.values()), allow_unused=True, materialize_grads=True)
    for x, y, leaf in zip(found, expected, leaves.values(), strict=True):
        y = torch.zeros_like(leaf) if y is None else y
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-9)


def test_nodes_sum_expectations(law: Law) -> None:
    values, log_w = law.nodes(60)
    torch.testing.assert_close(torch.logsumexp(log_w, 0), torch.zeros(SHAPE), rtol=0, atol=1e-12)
    for f in (math.cos, lambda x: x**3, lambda x: math.exp(0.7 * x)):
        summed = (log_w.exp() * values.clone().apply_(f)).sum(0)
        for e in ELEMENTS:
            assert summed[e].item() == pytest.approx(law_expectation(law, e, f), rel=1e-8, abs=1e-9)


def test_potential_is_minus_the_log_of_the_law(law: Law) -> None:
    """exp(−φ) sums (atoms) or integrates (densities) to one."""
    support, name = law.support, type(law).__name__
    if support == "atoms":
        values, _ = law.nodes(1)
        torch.testing.assert_close(torch.exp(-law.potential(values)).sum(0), torch.ones(SHAPE))
        return
    grid = torch.linspace(-12, 12, 400_001)
    density = torch.exp(-law.potential(grid.reshape(-1, 1, 1).expand(-1, 2, 2)))
    mass = torch.trapezoid(density, grid, dim=0)
    if name == "SpikeSlab":
        mass = mass + torch.exp(-law.potential(torch.zeros(SHAPE)))
    torch.testing.assert_close(mass, torch.ones(SHAPE), rtol=1e-4, atol=0)


# ---- training's needs


def test_start_is_allowed_and_projection_leaves_it(law: Law, generator: torch.Generator) -> None:
    start = type(law).start((5, 3), generator=generator)
    assert start.shape == (5, 3)
    alpha = {name: value.clone() for name, value in start.alpha.items()}
    start.project_(alpha)
    for name, value in start.alpha.items():
        torch.testing.assert_close(alpha[name], value)


def test_projection_brings_alpha_back_where_the_law_is_defined(law: Law) -> None:
    for push in (-50.0, 50.0):
        alpha = {name: value.clone() + push * (name in law.noise_names) for name, value in law.alpha.items()}
        law.project_(alpha)
        back = type(law)(**alpha)  # the constructor checks the range
        assert torch.isfinite(back.effective()).all()


def test_shifted_law_has_a_shifted_effective_parameter(law: Law) -> None:
    delta = torch.tensor([[0.5, -1.0], [2.0, 0.0]])
    if type(law).__name__ in ("Bernoulli", "SpikeSlab", "Levels"):
        with pytest.raises(TypeError, match="use point, Gaussian, Laplace or uniform biases"):
            law.shifted(delta)
    else:
        torch.testing.assert_close(law.shifted(delta).effective(), law.effective() + delta)


def test_summary_names_the_noise(law: Law) -> None:
    summary = law.summary()
    for name in law.noise_names if not isinstance(law, Levels) else ():
        assert summary[f"mean_{name}"] == pytest.approx(float(law.alpha[name].mean()))
    assert all(math.isfinite(value) for value in summary.values())
