"""Products with units most of which are 0, against dense ones."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.kernels import products
from ebse.kernels.products import Products
from ebse.kernels.units import draw_units, mean_units

SHAPES = [(1, 1, 1), (2, 3, 5), (7, 64, 9), (12, 131, 33), (70, 40, 17), (5, 30, 120)]
DENSITIES = [0.0, 0.1, 0.25, 0.9]
"""Lists of every length, and dense products."""


def example(N: int, D: int, K: int, density: float, *, gray: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(N)
    v, W, h = (torch.rand(shape, generator=g).float() for shape in ((N, D), (D, K), (N, K)))
    return (v < density).float() * (v if gray else 1), W - 0.5, h - 0.5


@pytest.fixture(autouse=True)
def listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shapes are listed, too."""
    monkeypatch.setattr(products, "NARROW", 1)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def on_threads(
    request: pytest.FixtureRequest, two_threads: Callable[[], AbstractContextManager[None]]
) -> Callable[[], AbstractContextManager[None]]:
    return two_threads if request.param == 2 else nullcontext


@pytest.mark.parametrize(("N", "D", "K"), SHAPES)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("gray", [False, True])
def test_products_agree_with_dense_ones(
    N: int, D: int, K: int, density: float, gray: bool, on_threads: Callable[[], AbstractContextManager[None]]
) -> None:
    v, W, h = example(N, D, K, density, gray=gray)
    bias = torch.linspace(-1, 1, K).float()
    mean, drawn, plain_mean, plain_drawn = (torch.full((N, K), torch.nan).float() for _ in range(4))
    down, into = torch.full((N, D), torch.nan).float(), W.clone()
    with on_threads():
        made = Products(v, W, len(v))
        made.take(0, N)
        made.hidden(0, bias.numpy(), 5, -0.5, mean=mean.numpy(), drawn=drawn.numpy())
        made.down(h, out=down)
        made.add_outer(h, into=into, keep=0.75, weight=-2.0)
    mean_units(v @ W, bias, mean=plain_mean)
    draw_units(v @ W, bias, 5, drawn=plain_drawn)
    plain_mean *= -0.5
    torch.testing.assert_close(mean, plain_mean, rtol=1e-5, atol=1e-6)
    near = (rng.uniform(5, (N, K)) + 2 * plain_mean.double()).abs() < 1e-5
    assert ((drawn == plain_drawn) | near).all()
    torch.testing.assert_close(down, h @ W.T, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(into, 0.75 * W - 2 * v.T @ h, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("N", "D", "K"), [(2, 3, 5), (7, 64, 9), (70, 40, 17)])
@pytest.mark.parametrize("n", [1, 2])
def test_contrasts_are_means_and_differences(
    N: int, D: int, K: int, n: int, on_threads: Callable[[], AbstractContextManager[None]]
) -> None:
    N += 1
    g = torch.Generator().manual_seed(N)
    v, h = torch.rand(N, D, generator=g).float(), torch.rand(N, K, generator=g).float()
    weighted = torch.cat([h[:n] / n, -h[n:] / (N - n)])
    sums_v, sums_h = torch.full((2, D), torch.nan).float(), torch.full((2, K), torch.nan).float()
    with on_threads():
        products.contrasts(v.numpy(), weighted.numpy(), n, sums_v=sums_v.numpy(), sums_h=sums_h.numpy())
    for x, found in ((v, sums_v), (h, sums_h)):
        mean = x[:n].mean(0)
        torch.testing.assert_close(found, torch.stack([mean, mean - x[n:].mean(0)]), rtol=1e-5, atol=1e-6)


def test_lists_are_what_is_added_up() -> None:
    """Units that change after they were listed have no effect: the lists are used, and not the dense product."""
    v, W, h = example(7, 64, 9, 0.1)
    into, before = W.clone(), v.clone()
    made = Products(v, W, len(v))
    made.take(0, 7)
    v[before == 0] = 1.0
    made.add_outer(h, into=into, keep=1.0, weight=1.0)
    torch.testing.assert_close(into, W + before.T @ h, rtol=1e-5, atol=1e-5)


def test_few_hidden_units_are_not_worth_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "NARROW", 10)
    v, W, h = example(7, 64, 9, 0.1)
    into, mean, drawn = W.clone(), *(torch.empty(7, 9).float() for _ in range(2))
    made = Products(v, W, len(v))
    made.take(0, 4)
    made.draw(4, torch.full((3, 64), -2.0).float().numpy(), torch.zeros(64).float().numpy(), 3)
    made.hidden(0, torch.zeros(9).float().numpy(), 1, 1.0, mean=mean.numpy(), drawn=drawn.numpy())
    made.add_outer(h, into=into, keep=1.0, weight=1.0)
    torch.testing.assert_close(mean, torch.sigmoid(v @ W))
    torch.testing.assert_close(into, W + v.T @ h, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_rows_that_are_many_are_summed_apart(density: float) -> None:
    v, W, h = example(9, 40, 7, density)
    into, expected = W.clone(), 0.5 * W + 3 * v.T @ h
    many = torch.cat([v] * 100), torch.cat([h] * 100)
    made = Products(many[0], W, 900)
    made.take(0, 900)
    made.add_outer(many[1], into=into, keep=0.5, weight=0.03)
    torch.testing.assert_close(into, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_rows_that_are_drawn_are_listed(density: float) -> None:
    v, W, h = example(10, 64, 9, density)
    bias = torch.full((64,), torch.logit(torch.tensor(density)).item()).float()
    a = torch.sin(torch.arange(6 * 64).float()).reshape(6, 64)
    expected = v.clone()
    draw_units(a, bias, 3, drawn=expected[4:])
    made = Products(v, W, len(v))
    made.take(0, 4)
    made.draw(4, a.numpy(), bias.numpy(), 3)
    assert torch.equal(v, expected)
    into = W.clone()
    made.add_outer(h, into=into, keep=1.0, weight=1.0)
    torch.testing.assert_close(into, W + expected.T @ h, rtol=1e-5, atol=1e-5)


def test_the_number_of_parts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    assert products._n_parts() == products.MOST_PARTS


def test_there_may_be_more_parts_than_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_n_parts", lambda: 8)
    v, W, h = example(5, 3, 4, 0.25)
    bias, mean, drawn = torch.zeros(4).float(), *(torch.empty(5, 4).float() for _ in range(2))
    into, down = W.clone(), torch.empty(5, 3).float()
    made = Products(v, W, len(v))
    made.take(0, 5)
    made.hidden(0, bias.numpy(), 1, 1.0, mean=mean.numpy(), drawn=drawn.numpy())
    made.down(h, out=down)
    made.add_outer(h, into=into, keep=1.0, weight=1.0)
    torch.testing.assert_close(mean, torch.sigmoid(v @ W))
    torch.testing.assert_close(down, h @ W.T)
    torch.testing.assert_close(into, W + v.T @ h)
