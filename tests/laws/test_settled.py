"""Laws that are settled to another K(1): they reach it, by the least change, within the constraints of training."""

import pytest
import torch

from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Point
from ebse.laws.bernoulli import EPSILON
from examples import LAWS

EXACT = ["point", "bernoulli", "gaussian"]
MOVABLE = sorted(set(LAWS) - {"levels"})


def small_change(law: Law, size: float) -> torch.Tensor:
    n = torch.arange(law.shape.numel(), dtype=law.dtype).reshape(law.shape)
    return size * torch.cos(3 * n)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_closed_form_reaches_its_goal(name: str, share: float) -> None:
    law = LAWS[name]((3, 4))
    goal = law.effective() + small_change(law, 0.2)
    torch.testing.assert_close(law.settled(goal, share=share).effective(), goal, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", sorted(set(LAWS) - set(EXACT)))
def test_other_laws_reach_it_to_first_order(name: str) -> None:
    """The error is of second order: a step ten times smaller misses a hundred times less."""
    law = LAWS[name]((3, 4))

    def miss(size: float) -> float:
        goal = law.effective() + small_change(law, size)
        return float((law.settled(goal).effective() - goal).abs().max())

    assert miss(1e-3) < 1e-4
    assert miss(1e-4) < miss(1e-3) / 50


@pytest.mark.parametrize("name", MOVABLE)
@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_change_is_the_least_that_moves_the_effective_parameter(name: str, share: float) -> None:
    """Along dα the noise has the slope κ ∂K(1)/∂noise where a mean has ∂K(1)/∂θ_bar: no shorter way exists."""
    law = LAWS[name]((3, 4))
    change = small_change(law, 1e-6)
    moved = law.settled(law.effective() + change, share=share)
    alpha = {key: x.clone().requires_grad_() for key, x in law.alpha.items()}
    slopes = dict(
        zip(
            alpha,
            torch.autograd.grad(law.with_alpha(alpha).effective().sum(), list(alpha.values())),
            strict=True,
        )
    )
    weight = {key: share if key in law.noise_names else 1.0 for key in alpha}
    squares = sum(weight[key] * slopes[key] ** 2 for key in alpha)
    for key in law.names:
        expected = weight[key] * slopes[key] * change / squares
        torch.testing.assert_close(getattr(moved, key) - law.alpha[key], expected, rtol=1e-4, atol=1e-11)


@pytest.mark.parametrize("name", MOVABLE)
def test_no_share_keeps_the_noise(name: str) -> None:
    law = LAWS[name]((3, 4))
    moved = law.settled(law.effective() + small_change(law, 0.01), share=0.0)
    for key in law.noise_names:
        torch.testing.assert_close(getattr(moved, key), law.alpha[key], rtol=1e-14, atol=0)


def test_levels_move_by_their_probabilities() -> None:
    law = LAWS["levels"]((3, 4))
    law.project_(law.alpha)
    goal = law.effective() + small_change(law, 0.01)
    moved = law.settled(goal)
    assert torch.equal(moved.alpha["theta_bar"], law.alpha["theta_bar"])
    torch.testing.assert_close(moved.effective(), goal, rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [1e-3, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("logit", [False, True])
def test_a_bernoulli_law_follows_anywhere(dtype: torch.dtype, p: float, logit: bool) -> None:
    """Below log(1 − p) no θ_bar exists: presence is raised just enough."""
    zero = torch.zeros(9, dtype=dtype)
    law: Law = Point(zero).with_noise(p=p) if logit else Bernoulli(zero, p)
    goal = torch.tensor([-60.0, -20.0, -8.0, -3.0, -0.2, 0.0, 0.3, 5.0, 30.0], dtype=dtype)
    moved = law.settled(goal)
    assert isinstance(moved, Bernoulli)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(moved.effective(), goal, rtol=tolerance, atol=tolerance)
    assert all(torch.isfinite(x).all() for x in moved.alpha.values())
    assert moved.p.min() >= 0.99 * EPSILON
    assert moved.tilted_presence(1.0).min() >= 0.99 * EPSILON
    assert moved.p[goal >= 0].max() <= 1 - 0.99 * EPSILON


def test_a_standard_deviation_stays_at_or_above_zero() -> None:
    law = Gaussian(torch.zeros(3), torch.tensor([0.5, 2.0, 0.0]))
    moved = law.settled(torch.tensor([-9.0, -9.0, 1.0]))
    assert isinstance(moved, Gaussian)
    assert moved.sigma.min() >= 0
    torch.testing.assert_close(moved.effective(), torch.tensor([-9.0, -9.0, 1.0]))


def test_a_laplace_law_keeps_its_domain() -> None:
    """K(1) exists for scales below 1 only."""
    law = Laplace(torch.zeros(2), torch.tensor([0.9, 0.1]))
    moved = law.settled(torch.tensor([8.0, -8.0]))
    assert torch.isfinite(moved.effective()).all()
