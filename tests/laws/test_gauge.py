"""The gauge: other noise, the same effective parameters, the same P(v, h)."""

import pytest
import torch

from ebse.laws import Bernoulli, Gaussian, Law, Point
from examples import LAWS, ensemble
from oracles import joint_table

W_EFF = torch.tensor([-80.0, -20.0, -5.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 3.0, 40.0, 80.0])


@pytest.mark.parametrize("p", [1e-4, 0.01, 0.3, 0.9, 0.999])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
def test_bernoulli_gauge_keeps_the_effective_weight(p: float, dtype: torch.dtype, tolerance: float) -> None:
    W = W_EFF.to(dtype)
    law = Point(W).with_noise(p=p)
    assert isinstance(law, Bernoulli)
    assert law.dtype == dtype
    torch.testing.assert_close(law.effective(), W, rtol=tolerance, atol=tolerance)
    # The tilted presence is p below 0; presence itself is p above.
    below, above = W < 0, W >= 0
    torch.testing.assert_close(
        law.tilted_presence(1.0)[below], torch.full_like(W[below], p), rtol=1e-4, atol=0
    )
    torch.testing.assert_close(law.p[above], torch.full_like(W[above], p), rtol=1e-5, atol=0)
    assert (law.p[below] >= p).all()


def test_the_naive_formula_does_not_hold_in_float32() -> None:
    W, p = W_EFF[:3].to(torch.float32), 0.3
    naive = torch.log((torch.exp(W) - 1 + p) / p)
    assert not torch.isfinite(naive).all()


@pytest.mark.parametrize("sigma", [0.0, 0.3, 2.0])
def test_gaussian_gauge_keeps_the_effective_weight(sigma: float) -> None:
    law = Point(W_EFF).with_noise(sigma=sigma)
    assert isinstance(law, Gaussian)
    torch.testing.assert_close(law.effective(), W_EFF, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("start", sorted(LAWS))
@pytest.mark.parametrize("noise", [{"p": 0.05}, {"p": 0.7}, {"sigma": 0.8}])
def test_the_joint_does_not_change(start: str, noise: dict[str, float]) -> None:
    """P(v, h) by loops, before and after, for every law."""
    before = ensemble(start)
    after = before.with_noise(**noise)
    torch.testing.assert_close(joint_table(after.laws), joint_table(before.laws), rtol=1e-10, atol=1e-12)


def test_the_noise_does_change() -> None:
    law = ensemble("point").W
    assert law.variance().max() == 0
    assert law.with_noise(p=0.1).variance().min() > 0


def test_a_law_takes_its_own_noise_without_the_keyword() -> None:
    assert isinstance(LAWS["bernoulli"]((2,)).with_noise(0.2), Bernoulli)
    assert isinstance(LAWS["gaussian"]((2,)).with_noise(0.2), Gaussian)
    assert isinstance(ensemble("gaussian").with_noise(0.2).W, Gaussian)


@pytest.mark.parametrize("noise", [{}, {"p": 0.1, "sigma": 0.1}])
def test_ambiguous_noise_is_refused(noise: dict[str, float]) -> None:
    with pytest.raises(TypeError, match=r"takes one of p .* and sigma .*; write with_noise\(p=0.1\)"):
        Point(W_EFF).with_noise(**noise)
    with pytest.raises(TypeError, match="with_noise of a Point law takes one of p"):
        Point(W_EFF).with_noise(0.1)


def test_rows_of_a_regauged_law_keep_its_precision() -> None:
    law: Law = Point(torch.tensor([[-60.0], [1.0]], dtype=torch.float32)).with_noise(p=0.5)
    torch.testing.assert_close(
        law.rows(slice(0, 1)).effective(), torch.tensor([[-60.0]], dtype=torch.float32)
    )
