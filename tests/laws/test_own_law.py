"""Custom laws, and laws on other devices, types and in inference mode."""

import math
from collections.abc import Callable
from typing import Self

import numpy as np
import pytest
import torch
from torch import Tensor

from ebse.ensemble.draws import posterior_draws
from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform
from ebse.models import RestrictedBoltzmannEnsemble, exact
from ebse.sampling import State, explicit_sweeps
from examples import LAWS
from monte_carlo import means_depart, states_depart


class Signs(Law):
    """θ = ±θ_bar with equal chances: random, although none of its α is noise. K(t) = log cosh(t θ_bar)."""

    names = ("theta_bar",)

    def __init__(self, theta_bar: Tensor) -> None:
        self.theta_bar = theta_bar

    def log_mgf(self, t: Tensor | float) -> Tensor:
        x = self.tilt(t) * self.theta_bar
        return torch.logaddexp(x, -x) - math.log(2)

    def draw(self, t: Tensor, u: Tensor) -> Tensor:
        return torch.where(u < torch.sigmoid(2 * t * self.theta_bar), self.theta_bar, -self.theta_bar)

    @staticmethod
    def project_(alpha: dict[str, Tensor]) -> None:
        pass

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator) -> Self:
        return cls(torch.ones(shape))


def signs() -> RestrictedBoltzmannEnsemble:
    W = Signs(torch.tensor([[2.0, 1.0], [1.5, 0.5]]))
    return RestrictedBoltzmannEnsemble(W=W, b=LAWS["point"]((2,)), c=LAWS["point"]((2,)))


def test_a_law_of_the_users_own_is_drawn(generator: torch.Generator) -> None:
    ensemble, v = signs(), torch.ones(1, 2)
    draws = posterior_draws(ensemble, v, 50_000, generator=generator)
    assert not means_depart(draws[0], ensemble.mean_h_given_v(v[0]))
    log_p = exact.log_joint_vh(ensemble)
    index = torch.multinomial(log_p.flatten().exp(), 50_000, replacement=True, generator=generator)
    state = State(exact.states(2)[index // 4], exact.states(2)[index % 4])
    assert not states_depart(*explicit_sweeps(ensemble, state, 2, generator=generator), log_p)


def test_its_mean_and_variance_follow_from_log_mgf() -> None:
    law = Signs(torch.tensor([2.0]))
    assert law.mean(0.5).item() == pytest.approx(2 * math.tanh(1.0))
    assert law.variance(0.0).item() == pytest.approx(4.0)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_moments_in_inference_mode(name: str) -> None:
    law = LAWS[name]((2, 2))
    mean, variance = law.mean(0.5), law.variance(0.5)
    with torch.inference_mode():
        made_here = LAWS[name]((2, 2))
        for found in (law, made_here):
            torch.testing.assert_close(found.mean(0.5), mean)
            torch.testing.assert_close(found.variance(0.5), variance)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_gradients_reach_the_tensors_that_were_passed(name: str) -> None:
    """Twice, through the value and through the mean: nothing is copied, nothing is freed."""
    leaves = {key: x.clone().requires_grad_() for key, x in LAWS[name]((2,)).alpha.items()}
    law = type(LAWS[name]((2,)))(**leaves)
    for value in (law.log_mgf(0.7), law.log_mgf(0.2), law.mean(0.7)):
        torch.autograd.backward(value.sum())
    assert all(x.grad is not None and torch.isfinite(x.grad).all() for x in leaves.values())


def test_numbers_and_arrays_are_copied() -> None:
    array = np.ones(2)
    law = Point(array)  # type: ignore[arg-type]
    array[:] = 5
    assert torch.equal(law.theta_bar, torch.ones(2))


# ---- off the support


def test_potentials_are_infinite_off_the_support() -> None:
    inf = torch.tensor([math.inf])
    assert torch.equal(Point(torch.tensor([1.0])).potential(torch.tensor([2.0])), inf)
    law = Bernoulli(torch.tensor([1.0]), 0.25)
    assert torch.equal(law.potential(torch.tensor([7.0])), inf)
    assert law.potential(torch.tensor([1.0])).item() == pytest.approx(-math.log(0.25))
    assert Bernoulli(torch.tensor([0.0]), 0.25).potential(torch.tensor([0.0])).item() == 0.0
    assert torch.equal(Uniform(torch.tensor([0.0]), 1.0).potential(torch.tensor([1.5])), inf)
    levels = Levels(torch.tensor([0.0, 1.0]), torch.tensor([[0.5, 0.5]]))
    assert torch.equal(levels.potential(torch.tensor([0.5])), inf)


def test_a_uniform_law_without_width_has_no_density_but_a_path() -> None:
    law = Uniform(torch.zeros(2), 0.0)
    with pytest.raises(ValueError, match="half_width must be > 0 for θ to have a density, got 0; use"):
        law.potential(torch.zeros(2))
    assert torch.isfinite(law.path(torch.zeros(2))).all()


# ---- accuracy between 20 and 50, where torch's softplus has already given up


def test_large_weights_are_accurate() -> None:
    law = SpikeSlab(torch.tensor([30.0]), 0.5, 0.01)
    q = 1 / (1 + math.exp(-21 - 0.5 * 0.49e-4))
    mean = 30 + 0.7 * 1e-4
    expected = 1e-4 * q + mean**2 * q * (1 - q)
    assert law.variance(0.7).item() == pytest.approx(expected, rel=1e-6)
    exactly = 20.5 + math.log1p(math.exp(-20.5)) - math.log(2)
    assert Bernoulli(torch.tensor([20.5]), 0.5).effective().item() == pytest.approx(exactly, abs=1e-13)


# ---- the regauged law


def test_a_regauged_law_survives_being_rebuilt() -> None:
    W = torch.tensor([[-20.0, 1.0], [-45.0, 0.5]])
    for dtype in (torch.float32, torch.float64):
        law = Point(W.to(dtype)).with_noise(p=0.1)
        again = law.with_alpha(law.alpha)
        torch.testing.assert_close(again.effective(), W.to(dtype))
        assert law.names == ("theta_bar", "logit_p")
        zeros = Point(torch.zeros(2, dtype=dtype))
        ensemble = RestrictedBoltzmannEnsemble(W=law, b=zeros, c=zeros)
        v = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=dtype)
        slopes = exact.log_likelihood_gradient(ensemble, v)
        assert all(torch.isfinite(x).all() for x in slopes["W"].values())


def test_presence_may_be_set_in_either_coordinate() -> None:
    regauged = Point(torch.tensor([-2.0])).with_noise(p=0.5)
    assert regauged.with_alpha({"p": torch.tensor([0.3])}).alpha["logit_p"].sigmoid().item() == pytest.approx(
        0.3
    )
    plain = Bernoulli(torch.tensor([1.0]), 0.3).with_alpha({"logit_p": torch.tensor([0.0])})
    assert plain.p.item() == 0.5
    with pytest.raises(ValueError, match="logit_p must be finite, got nan"):
        Bernoulli.from_logit(torch.zeros(1), torch.tensor([math.nan]))


def test_conflicting_noise_is_refused() -> None:
    calls: list[Callable[[], Law]] = [
        lambda: Bernoulli(torch.zeros(2), 0.5).with_noise(0.1, p=0.2),
        lambda: Bernoulli(torch.zeros(2), 0.5).with_noise(0.1, sigma=0.2),
        lambda: Laplace(torch.zeros(2), 0.5).with_noise(0.1),
    ]
    for call in calls:
        with pytest.raises(
            TypeError, match=r"takes one of p .* and sigma .*, got .*a number without its name"
        ):
            call()


def test_float32_laws_draw_float32(generator: torch.Generator) -> None:
    for law in (Gaussian(torch.zeros(2).float(), 1.0), Laplace(torch.zeros(2).float(), 0.5)):
        assert law.sample(0.0, generator=generator).dtype == torch.float32
