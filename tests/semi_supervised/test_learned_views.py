"""Learned views: the EM loss against the exact likelihood, what a fit explains, moments of views."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from ebse.laws._low_rank import LowRankGaussian
from ebse.semi_supervised import _learned_views
from ebse.semi_supervised._learned_views import LearnedViews, expected_loss, fitted_views
from monte_carlo import FAILURE_RATE, means_depart

Rows = npt.NDArray[np.float32]

# ---- the loss


def modes_and_steps() -> tuple[Tensor, Tensor, Tensor]:
    """Modes of 5 rows (5, 3, 4), their steps (5, 4) and a log variance, in float64."""
    generator = torch.Generator().manual_seed(0)
    modes = torch.randn(5, 3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    step = torch.randn(5, 4, generator=generator, dtype=torch.float64)
    log_variance = torch.tensor(-0.7, dtype=torch.float64, requires_grad=True)
    return modes, step, log_variance


def exact_loss(modes: Tensor, step: Tensor, log_variance: Tensor) -> Tensor:
    """−log N(step; 0, MᵀM + σ² I), mean over rows: s is summed out."""
    zero, noise = torch.zeros(4, dtype=torch.float64), log_variance.exp() * torch.eye(4, dtype=torch.float64)
    parts = [
        MultivariateNormal(zero, M.T @ M + noise).log_prob(d)  # type: ignore[no-untyped-call]
        for M, d in zip(modes, step, strict=True)
    ]
    return -torch.stack(parts).mean()


def test_the_gradient_is_that_of_the_exact_likelihood() -> None:
    modes, step, log_variance = modes_and_steps()
    found = torch.autograd.grad(expected_loss(modes, step, log_variance)[0], (modes, log_variance))
    exact = torch.autograd.grad(exact_loss(modes, step, log_variance), (modes, log_variance))
    for x, y in zip(found, exact, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)


def test_the_gradient_without_the_spread_of_s_is_another() -> None:
    """The twin: s at its mean, as if it were known."""
    modes, step, log_variance = modes_and_steps()
    variance = log_variance.exp()
    with torch.no_grad():
        P = torch.linalg.inv(modes @ modes.mT + variance * torch.eye(3, dtype=torch.float64))
        s = (P @ (modes @ step[:, :, None])).mT
    left = ((step - (s @ modes)[:, 0]) ** 2).sum(1).mean()
    broken = torch.autograd.grad(left / (2 * variance) + 2 * log_variance, (modes, log_variance))
    exact = torch.autograd.grad(exact_loss(modes, step, log_variance), (modes, log_variance))
    for x, y in zip(broken, exact, strict=True):
        assert not torch.allclose(x, y, rtol=0.01)


def test_the_explained_part_is_what_the_mean_of_s_explains() -> None:
    modes, step, log_variance = modes_and_steps()
    variance = float(log_variance.detach().exp())
    left = whole = 0.0
    for M, d in zip(modes.detach().numpy(), step.numpy(), strict=True):
        s = np.linalg.solve(M @ M.T + variance * np.eye(3), M @ d)
        left += sum((d[j] - sum(s[k] * M[k, j] for k in range(3))) ** 2 for j in range(4))
        whole += sum(x**2 for x in d)
    assert float(expected_loss(modes, step, log_variance)[1]) == pytest.approx(1 - left / whole, rel=1e-10)


# ---- the fit

N_GROUPS, SIZE, P = 30, 10, 6
DIRECTIONS = np.linalg.qr(np.random.default_rng(5).normal(size=(P, 2)))[0].T


def moved_rows() -> tuple[Rows, npt.NDArray[np.int64]]:
    """Groups of rows that differ along two directions, and neighbors of rows in their groups."""
    rng = np.random.default_rng(0)
    Y = np.repeat(2 * rng.normal(size=(N_GROUPS, P)), SIZE, axis=0)
    Y += rng.normal(size=(len(Y), 2)) @ DIRECTIONS + 0.03 * rng.normal(size=Y.shape)
    group = np.arange(len(Y)) // SIZE
    return Y.astype(np.float32), group[:, None] * SIZE + rng.integers(SIZE, size=(len(Y), 5))


def fit(Y: Rows, neighbors: Any, seed: int = 0, n_updates: int = 150) -> LearnedViews:
    return fitted_views(Y, neighbors, n_walk_steps=2, n_updates=n_updates, seed=seed)


def explained(views: LearnedViews) -> float:
    """Part of new steps along the two directions that the modes of rows explain."""
    Y, _ = moved_rows()
    step = np.random.default_rng(1).normal(size=(len(Y), 2)) @ DIRECTIONS
    modes = views.law.modes_of(views.inputs(torch.from_numpy(Y)))
    # With little noise, so that the size of modes is no matter.
    noise = torch.tensor(-9.0)
    return float(expected_loss(modes, torch.from_numpy(step.astype(np.float32)), noise)[1])


def test_modes_explain_how_neighbors_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two modes for two directions of six; random ones explain a third, and so do those of random pairs."""
    monkeypatch.setattr(_learned_views, "N_MODES", 2)
    monkeypatch.setattr(_learned_views, "RATE", 0.05)
    monkeypatch.setattr(_learned_views, "BATCH", 100)
    Y, neighbors = moved_rows()
    found = fit(Y, neighbors)
    generator = torch.Generator().manual_seed(3)
    A = torch.randn(found.law.A.shape, generator=generator) * found.law.A.std()
    anywhere = np.random.default_rng(2).integers(len(Y), size=neighbors.shape)
    assert explained(found) > 0.9
    assert explained(found._replace(law=LowRankGaussian(found.law.W_bar, A))) < 0.7
    assert explained(fit(Y, anywhere)) < 0.7


def test_same_seed_same_law_other_seed_other_law() -> None:
    Y, neighbors = moved_rows()
    first, again, other = (fit(Y, neighbors, seed, n_updates=5).law.A for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("Y", [np.zeros((10, 3)), np.ones((4, 1)), np.eye(2, 200)])
def test_rows_that_say_little_give_finite_views(Y: Any, generator: torch.Generator) -> None:
    """Equal rows, a single column, two rows."""
    rows = Y.astype(np.float32)
    neighbors = np.roll(np.arange(len(Y)), 1)[:, None]
    views = fit(rows, neighbors, n_updates=5)
    assert torch.isfinite(views.law.A).all()
    moved = views(torch.from_numpy(rows), generator=generator)
    assert moved.shape == Y.shape
    assert torch.isfinite(moved).all()


# ---- views

N = 20_000


def views_of(n_moved: int = 3) -> LearnedViews:
    generator = torch.Generator().manual_seed(0)
    W_bar = torch.cat([torch.eye(n_moved), torch.zeros(1, n_moved)])
    return LearnedViews(
        LowRankGaussian(W_bar, torch.randn(2, n_moved + 1, n_moved, generator=generator)), 1.7
    )


ROW = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0], dtype=torch.float32)


def departs(views: LearnedViews, generator: torch.Generator) -> tuple[bool, bool]:
    """Whether means, and whether covariances of views of one row depart from those of the law."""
    # ŷ A_k by the definition of the view, with the scale of the components.
    inputs = np.append(ROW[:3].numpy() / views.scale, 1)
    modes = np.array([[inputs @ A[:, j] * views.scale for j in range(3)] for A in views.law.A.numpy()])
    C = torch.from_numpy(modes.T @ modes).double()
    moved = views(ROW.expand(N, 5), generator=generator)[:, :3].double() - ROW[:3]
    rate = FAILURE_RATE / 2
    means = means_depart(moved, torch.zeros(3).double(), variance=C.diagonal(), failure_rate=rate)
    variance = torch.outer(C.diagonal(), C.diagonal()) + C**2
    products = moved[:, :, None] * moved[:, None, :]
    return means, means_depart(products, C, variance=variance, failure_rate=rate)


def test_views_keep_the_mean_and_move_as_the_law(generator: torch.Generator) -> None:
    assert departs(views_of(), generator) == (False, False)


def test_views_to_one_side_are_found_out(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: s is never negative."""
    randn = torch.randn
    monkeypatch.setattr(torch, "randn", lambda *size, **options: randn(*size, **options).abs())
    means, _ = departs(views_of(), generator)
    assert means


def test_views_of_the_rows_alone_are_found_out(generator: torch.Generator) -> None:
    """The twin: modes without the constant input."""
    views = views_of()

    class Broken:
        law, scale = views.law, views.scale

        def __call__(self, y: Tensor, *, generator: torch.Generator) -> Tensor:
            without = LowRankGaussian(
                views.law.W_bar, views.law.A * torch.tensor([[1.0], [1.0], [1.0], [0.0]])
            )
            return LearnedViews(without, views.scale)(y, generator=generator)

    broken: Any = Broken()
    assert departs(broken, generator) == (False, True)


def pairs_depart(moved: Tensor) -> bool:
    """Whether views of rows 2i and 2i + 1 move together: the mean of products of their steps is not 0."""
    steps = (moved[:, :3] - ROW[:3]).double()
    return means_depart(steps[::2] * steps[1::2], torch.zeros(3).double())


def test_every_row_moves_by_itself(generator: torch.Generator) -> None:
    views = views_of()
    moved = views(ROW.expand(N, 5), generator=generator)
    assert not pairs_depart(moved)
    # The twin: a draw for every two rows.
    assert pairs_depart(moved[::2].repeat_interleave(2, 0))


def test_other_components_and_the_rows_stay_as_they_are(generator: torch.Generator) -> None:
    y = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    before = y.clone()
    moved = views_of()(y, generator=generator)
    assert torch.equal(moved[:, 3:], y[:, 3:])
    assert (moved[:, :3] != y[:, :3]).all()
    assert torch.equal(y, before)


def test_a_fit_moves_leading_components_alone(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_learned_views, "N_AXES", 4)
    Y, neighbors = moved_rows()
    y = torch.from_numpy(Y)
    moved = fit(Y, neighbors, n_updates=5)(y, generator=generator)
    assert torch.equal(moved[:, 4:], y[:, 4:])
    assert (moved[:, :4] != y[:, :4]).any(0).all()


def test_the_unit_of_components_does_not_matter(generator: torch.Generator) -> None:
    """Views of rows in other units are views in these units: the law is of scaled rows."""
    Y, neighbors = moved_rows()
    # A power of two, which changes no digit.
    plain, scaled = (fit(Y * unit, neighbors, n_updates=20) for unit in (np.float32(1), np.float32(64)))
    first, second = (
        views(torch.from_numpy(Y) * unit, generator=torch.Generator().manual_seed(1)) / unit
        for views, unit in ((plain, 1), (scaled, 64))
    )
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)


def test_same_generator_same_views_other_seed_other_views() -> None:
    def moved(seed: int) -> Tensor:
        return views_of()(ROW.expand(4, 5), generator=torch.Generator().manual_seed(seed))

    assert torch.equal(moved(1), moved(1))
    assert not torch.equal(moved(1), moved(2))


def test_views_are_in_single_precision_whatever_the_default() -> None:
    """Rows are in single precision, whatever torch's default is."""
    Y, neighbors = moved_rows()
    torch.set_default_dtype(torch.float64)
    views = fit(Y, neighbors, n_updates=3)
    moved = views(torch.from_numpy(Y), generator=torch.Generator().manual_seed(0))
    assert moved.dtype == torch.float32
