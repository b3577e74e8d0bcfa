"""Lengths of steps: Wolfe's conditions on convex functions of many scales."""

import numpy as np
import torch
from torch import Tensor

from ebse.evaluation._line_search import CURVATURE, DECREASE, Phi, wolfe_lengths

CENTERS = torch.logspace(-4, 4, 33)
"""Minima of the parabolas; the first trial is at 1."""
GAP = torch.linspace(0.1, 12.0, 33)


def parabola(t: Tensor) -> tuple[Tensor, Tensor]:
    return (t - CENTERS) ** 2 / CENTERS, 2 * (t - CENTERS) / CENTERS


def separable(t: Tensor) -> tuple[Tensor, Tensor]:
    """A decreasing and an increasing cross-entropy: log(1 + exp(−t)) + log(1 + exp(t − gap))."""
    softplus = torch.nn.functional.softplus
    return softplus(-t) + softplus(t - GAP) * 1e-3, -torch.sigmoid(-t) + torch.sigmoid(t - GAP) * 1e-3


def violations(phi: Phi, t: Tensor) -> Tensor:
    value, slope = phi(torch.zeros_like(t))
    f, g = phi(t)
    return (f > value + DECREASE * t * slope) | (g.abs() > CURVATURE * slope.abs())


def test_lengths_satisfy_wolfes_conditions() -> None:
    for phi in (parabola, separable):
        for first in (1e-3, 1.0, 1e3):
            start = torch.full_like(GAP, first)
            t, ended = wolfe_lengths(phi, *phi(torch.zeros_like(start)), start)
            assert ended.all()
            assert not violations(phi, t).any()


def test_the_first_trial_does_not() -> None:
    """The twin: a step that is taken without a search."""
    assert violations(parabola, torch.ones_like(CENTERS)).any()
    assert violations(separable, torch.full_like(GAP, 1e3)).any()


def test_functions_are_independent() -> None:
    value, slope = parabola(torch.zeros_like(CENTERS))
    together, _ = wolfe_lengths(parabola, value, slope, torch.ones_like(CENTERS))
    for i, center in enumerate(CENTERS):

        def alone(t: Tensor, c: Tensor = center) -> tuple[Tensor, Tensor]:
            return (t - c) ** 2 / c, 2 * (t - c) / c

        t, _ = wolfe_lengths(alone, value[i : i + 1], slope[i : i + 1], torch.ones(1))
        np.testing.assert_allclose(t, together[i : i + 1], rtol=1e-12)
