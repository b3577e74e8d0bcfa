"""Extreme parameters give finite values and gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform

EDGE = (-50.0, 0.0, 50.0)
SMALL = (1e-6, 0.5, 1 - 1e-6)


def _leaf(x: float) -> Tensor:
    return torch.tensor([x], requires_grad=True)


def case(make: Callable[..., Law], noise: tuple[float, ...]) -> list[tuple[Law, list[Tensor]]]:
    found = []
    for theta_bar in EDGE:
        for level in noise:
            leaves = [_leaf(theta_bar), _leaf(level)]
            found.append((make(*leaves), leaves))
    return found


def cases() -> list[tuple[Law, list[Tensor]]]:
    found: list[tuple[Law, list[Tensor]]] = [(Point(x), [x]) for x in map(_leaf, EDGE)]
    found += case(Bernoulli, SMALL)
    found += case(Gaussian, (0.0, 1e-6, 3.0))
    found += case(Laplace, (0.0, 1e-6, 0.6))
    found += case(Uniform, (0.0, 1e-6, 30.0))
    for sigma in (0.0, 1.0):
        for theta_bar in EDGE:
            for p in SMALL:
                leaves = [_leaf(theta_bar), _leaf(p), _leaf(sigma)]
                found.append((SpikeSlab(*leaves), leaves))
    levels = torch.tensor([-50.0, 0.0, 50.0]).requires_grad_()
    weights = torch.tensor([[1e-6, 1.0, 1e-6]]).requires_grad_()
    found.append((Levels(levels, weights), [levels, weights]))
    return found


@pytest.mark.parametrize(("law", "leaves"), cases(), ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_finite(law: Law, leaves: list[Tensor], dtype: torch.dtype) -> None:
    leaves = [x.detach().to(dtype).requires_grad_() for x in leaves]
    law = type(law)(*leaves)
    for t in (-1.0, 0.0, 1e-9, 1.0):
        tilt = torch.tensor([t], dtype=dtype, requires_grad=True)
        K = law.log_mgf(tilt)
        slopes = torch.autograd.grad(K.sum(), [*leaves, tilt])
        found = [K, law.mean(t), law.variance(t), *slopes]
        found.append(law.sample(tilt.expand(100, 1), generator=torch.Generator().manual_seed(0)))
        for x in found:
            assert torch.isfinite(x).all(), t
        assert (law.variance(t) >= 0).all(), t


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_presence_is_drawn_at_its_rate(dtype: torch.dtype, generator: torch.Generator) -> None:
    """p = 1e-6 in 10⁷ draws: between 1 and 30 are present, but for a chance of 5e-5 + 1e-7."""
    law = Bernoulli(torch.ones(1, dtype=dtype), 1e-6)
    n = int((law.sample(torch.zeros(10_000_000, 1), generator=generator) != 0).sum())
    assert 1 <= n <= 30


def test_log_sinhc_is_smooth_where_its_branches_meet() -> None:
    law = Uniform(torch.zeros(1), 1.0)
    below, above = 0.5 - 1e-9, 0.5 + 1e-9
    for value in (law.log_mgf, law.mean, law.variance):
        assert value(below).item() == pytest.approx(value(above).item(), rel=1e-8)


@pytest.mark.parametrize("t", [2.0, -2.5])
def test_laplace_says_where_its_moment_is_infinite(t: float, generator: torch.Generator) -> None:
    law = Laplace(torch.zeros(2), torch.tensor([0.1, 0.5]))
    match = rf"infinite where \|t\| \* scale >= 1, got scale = 0.5 at t = {t:g}; lower scale below"
    with pytest.raises(ValueError, match=match):
        law.log_mgf(t)
    with pytest.raises(ValueError, match=match):
        law.sample(t, generator=generator)
    assert torch.isfinite(law.log_mgf(1.9)).all()
