"""Bad parameters of a law: what is wrong, what is allowed, what was got, what to do."""

import math
from collections.abc import Callable

import pytest
import torch

from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform

ZERO = torch.zeros(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli(ZERO, 0.0), r"p must lie in \(0, 1\), got 0; .* use the Point law for p = 1"),
        (lambda: Bernoulli(ZERO, 1.0), r"p must lie in \(0, 1\), got 1; .* use the Point law for p = 1"),
        (lambda: Bernoulli(ZERO, torch.tensor([0.5, -0.1])), r"p must lie in \(0, 1\), got -0.1; "),
        (lambda: Gaussian(ZERO, -0.5), r"sigma must lie in \[0, inf\), got -0.5; .* absolute value, or 0"),
        (lambda: SpikeSlab(ZERO, 1.5, 1.0), r"p must lie in \(0, 1\), got 1.5; "),
        (lambda: SpikeSlab(ZERO, 0.5, -1.0), r"sigma must lie in \[0, inf\), got -1; "),
        (lambda: Laplace(ZERO, -0.1), r"scale must lie in \[0, inf\), got -0.1; "),
        (lambda: Uniform(ZERO, -0.1), r"half_width must lie in \[0, inf\), got -0.1; "),
        (
            lambda: Levels(ZERO, torch.tensor([[0.5, -0.5]])),
            r"p must lie in \(0, inf\), got -0.5; give each level",
        ),
        (
            lambda: Levels(ZERO, torch.ones(3, 3)),
            r"theta_bar must have shape \(L,\) and p shape \(..., L\), got",
        ),
        (
            lambda: Point(torch.tensor([0.0, math.nan])),
            r"theta_bar must be finite, got nan; remove or impute",
        ),
        (lambda: Gaussian(ZERO, math.inf), r"sigma must be finite, got inf; remove or impute"),
        (
            lambda: Gaussian(torch.zeros(2, 3), torch.ones(2)),
            r"theta_bar and sigma must broadcast to one shape, got theta_bar \(2, 3\), sigma \(2,\);",
        ),
    ],
)
def test_constructor_errors(make: Callable[[], Law], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_complex_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match=r"theta_bar must be real, got torch.complex\d+; pass its real part"):
        Point(torch.zeros(2) * 1j)


@pytest.mark.parametrize("law", [Gaussian(ZERO, 0.0), SpikeSlab(ZERO, 0.5, 0.0), Laplace(ZERO, 0.0)])
def test_a_degenerate_law_has_no_density(law: Law) -> None:
    with pytest.raises(ValueError, match=r"must be > 0 for θ to have a density, got 0; use the Point law"):
        law.potential(torch.zeros(2))


class Minimal(Law):
    """A custom law that has only what an ensemble needs."""

    names = ("theta_bar",)

    def __init__(self, theta_bar: torch.Tensor) -> None:
        self.theta_bar = theta_bar

    def log_mgf(self, t: torch.Tensor | float) -> torch.Tensor:
        return self.tilt(t) * self.theta_bar

    def draw(self, t: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return self.theta_bar.expand(t.shape)

    @staticmethod
    def project_(alpha: dict[str, torch.Tensor]) -> None:
        pass

    @classmethod
    def start(cls, shape: tuple[int, ...], *, generator: torch.Generator) -> "Minimal":
        return cls(torch.zeros(shape))


def test_a_minimal_law_works_and_says_what_it_lacks() -> None:
    law = Minimal(torch.ones(2))
    assert torch.equal(law.mean(), torch.ones(2))
    assert torch.equal(law.variance(), torch.zeros(2))
    assert torch.equal(law.path(ZERO), ZERO)
    with pytest.raises(TypeError, match=r"Minimal has no potential φ; define potential\(theta\)"):
        law.potential(ZERO)
    with pytest.raises(TypeError, match=r"Minimal has no quadrature; define nodes\(n_nodes\)"):
        law.nodes(3)


@pytest.mark.parametrize("generator", [None, 0, "seed"])
def test_a_generator_is_required(generator: object) -> None:
    with pytest.raises(TypeError, match=r"generator must be a torch.Generator, got .*; make one with torch"):
        Point(ZERO).sample(generator=generator)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'generator'"):
        Point(ZERO).sample()  # type: ignore[call-arg]
