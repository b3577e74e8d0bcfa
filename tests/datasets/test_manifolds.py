"""Manifolds: distances, tangents and lengths against closed forms."""

import math

import pytest
import torch

from ebse.datasets import MANIFOLDS
from monte_carlo import FAILURE_RATE


@pytest.mark.parametrize("name", sorted(MANIFOLDS))
def test_points_lie_on_the_manifold_and_in_the_square(name: str, generator: torch.Generator) -> None:
    manifold = MANIFOLDS[name]()
    for x in (manifold.points(50), manifold.sample(500, generator=generator)):
        assert x.min() >= 0
        assert x.max() <= 1
        assert manifold.project(x).distance.max() < 1e-6


@pytest.mark.parametrize("name", sorted(MANIFOLDS))
def test_projection_is_consistent(name: str, generator: torch.Generator) -> None:
    """The foot is the point at its arc length, and what leads to it is normal to the tangent there."""
    manifold = MANIFOLDS[name]()
    x = torch.rand(400, 2, generator=generator)
    found = manifold.project(x)
    # Where one of two curves ends the next begins: the length alone does not tell these two apart.
    joint = manifold.length / 2 if name == "moons" else -1.0
    clear = (found.arc_length - joint).abs() > 1e-3
    torch.testing.assert_close(found.foot[clear], manifold.at(found.arc_length)[clear], rtol=0, atol=1e-6)
    torch.testing.assert_close((x - found.foot).norm(dim=-1), found.distance, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.tangent.norm(dim=-1), torch.ones(400), rtol=0, atol=1e-6)
    inner = (found.arc_length > 0.01) & (found.arc_length < manifold.length - 0.01) & clear
    along = ((x - found.foot) * found.tangent).sum(-1).abs()
    # At a corner of the polyline the way back may lean by the angle of the corner, 0.05 at most here.
    assert (along[inner] <= 0.05 * found.distance[inner] + 1e-6).all()
    brute = torch.cdist(x, manifold.points(20_000)).min(1).values
    torch.testing.assert_close(found.distance, brute, rtol=0, atol=1e-4)


def test_arc_by_its_formula(generator: torch.Generator) -> None:
    arc = MANIFOLDS["arc"]()
    assert arc.length == pytest.approx(0.8 * math.pi * 0.45, rel=1e-4)
    angle = torch.rand(200, generator=generator) * 0.7 * math.pi + 0.15 * math.pi
    radius = 0.3 + 0.3 * torch.rand(200, generator=generator)
    ray = torch.stack([angle.cos(), angle.sin()], -1)
    found = arc.project(torch.tensor([0.5, 0.2]) + radius.unsqueeze(-1) * ray)
    torch.testing.assert_close(found.distance, (radius - 0.45).abs(), rtol=0, atol=2e-5)
    torch.testing.assert_close(found.arc_length, 0.45 * (angle - 0.1 * math.pi), rtol=0, atol=1e-3)
    assert (found.tangent * ray).sum(-1).abs().max() < 0.01


def test_line_by_its_formula() -> None:
    line = MANIFOLDS["line"]()
    found = line.project(torch.tensor([[0.5, 0.5], [0.0, 0.0], [1.0, 1.0]]))
    torch.testing.assert_close(
        found.distance, torch.tensor([0.0, 0.25, math.hypot(0.15, 0.2)]), rtol=0, atol=1e-6
    )
    assert line.length == pytest.approx(math.hypot(0.7, 0.6), rel=1e-6)


def test_samples_are_uniform_along_the_curve(generator: torch.Generator) -> None:
    """Ten equal parts of the spiral hold the same number of points; its angle alone would not do that."""
    from scipy import stats

    spiral = MANIFOLDS["spiral"]()
    x = spiral.sample(20_000, generator=generator)
    part = (spiral.project(x).arc_length / spiral.length * 10).long().clamp(max=9)
    assert stats.chisquare(torch.bincount(part, minlength=10).numpy()).pvalue > FAILURE_RATE
    angle = torch.rand(20_000, generator=generator) * 3 * math.pi
    radius = 0.05 + 0.4 * angle / (3 * math.pi)
    wrong = 0.5 + radius.unsqueeze(-1) * torch.stack([angle.cos(), angle.sin()], -1)
    part = (spiral.project(wrong).arc_length / spiral.length * 10).long().clamp(max=9)
    assert stats.chisquare(torch.bincount(part, minlength=10).numpy()).pvalue < FAILURE_RATE


def test_noise_moves_points_off_the_curve(generator: torch.Generator) -> None:
    x = MANIFOLDS["line"]().sample(5000, noise=0.02, generator=generator)
    distance = MANIFOLDS["line"]().project(x).distance
    # Half-normal: its mean is 0.02 √(2/π); ends of the line add a little, so the bounds are wide.
    assert 0.9 < distance.mean() / (0.02 * math.sqrt(2 / math.pi)) < 1.2


def test_same_seed_same_points() -> None:
    arc = MANIFOLDS["arc"]()
    a, b, c = (arc.sample(10, generator=torch.Generator().manual_seed(n)) for n in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_bad_counts_are_named(generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match="n must be >= 1, got 0"):
        MANIFOLDS["arc"]().points(0)
    with pytest.raises(ValueError, match="n must be >= 1, got 0"):
        MANIFOLDS["arc"]().sample(0, generator=generator)
