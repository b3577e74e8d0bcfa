"""The line search of Moré and Thuente (1994), as in SciPy's L-BFGS-B, for many convex functions at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

DECREASE, CURVATURE = 1e-3, 0.9
"""Wolfe's conditions φ(t) ≤ φ(0) + DECREASE t φ'(0) and |φ'(t)| ≤ CURVATURE |φ'(0)|: SciPy's constants."""
NARROW = 0.1
"""A bracket of this relative width ends a search: SciPy's xtol."""
LONGEST = 1e10
"""SciPy's longest step."""
MOST_TRIALS = 50
"""Steps that a search tries: scikit-learn's maxls."""

Phi = Callable[[Tensor], tuple[Tensor, Tensor]]
"""φ(t) and φ'(t) of every function, at a t of its own."""


@dataclass
class _Interval:
    """The best step so far with its value and slope, and the other end of the interval of uncertainty."""

    best: Tensor
    value: Tensor
    slope: Tensor
    other: Tensor
    bracketed: Tensor

    def tightened(self, t: Tensor, f: Tensor, g: Tensor, least: Tensor, most: Tensor) -> Tensor:
        """The next trial of each function, from a trial t with φ(t), φ'(t): MINPACK-2's dcstep."""
        x, fx, dx = self.best, self.value, self.slope
        rose, turned = f > fx, g.sign() * dx.sign() < 0
        # The minimum of the cubic through both values and slopes, and of parabolas.
        theta = 3 * (fx - f) / (t - x) + dx + g
        scale = torch.stack([theta.abs(), dx.abs(), g.abs()]).amax(0)
        root = scale * ((theta / scale) ** 2 - (dx / scale) * (g / scale)).clamp(min=0).sqrt()
        root = torch.where((t > x) == rose, root, -root)
        cubic = x + (root - dx + theta) / (root - dx + root + g) * (t - x)
        parabola = x + dx / ((fx - f) / (t - x) + dx) / 2 * (t - x)
        between = torch.where(
            (cubic - x).abs() <= (parabola - x).abs(), cubic, cubic + (parabola - cubic) / 2
        )
        ratio = (root - g + theta) / (root - g + root + dx)
        cubic, secant = t + ratio * (x - t), t + g / (g - dx) * (x - t)
        cubic_is_longer = (cubic - t).abs() > (secant - t).abs()
        across = torch.where(cubic_is_longer, cubic, secant)
        # The slope kept its sign. Where it did not even fall (by rounding: φ is convex) go as far as allowed.
        end = torch.where(t > x, most, least)
        cubic = torch.where((ratio < 0) & (root != 0), cubic, end)
        nearer, further = (cubic - t).abs() < (secant - t).abs(), (cubic - t).abs() > (secant - t).abs()
        inside, bound = torch.where(nearer, cubic, secant), t + 0.66 * (self.other - t)
        inside = torch.where(t > x, torch.minimum(bound, inside), torch.maximum(bound, inside))
        outside = torch.where(further, cubic, secant).clamp(min=least, max=most)
        onward = torch.where(self.bracketed, inside, outside)
        onward = torch.where(g.abs() < dx.abs(), onward, torch.where(self.bracketed, bound, end))
        trial = torch.where(rose, between, torch.where(turned, across, onward))
        self.other = torch.where(rose, t, torch.where(turned, x, self.other))
        self.best, self.value, self.slope = (torch.where(rose, a, b) for a, b in ((x, t), (fx, f), (dx, g)))
        self.bracketed = self.bracketed | rose | turned
        return trial


def wolfe_lengths(phi: Phi, value: Tensor, slope: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Lengths t (E,) that satisfy Wolfe's conditions for convex φ (E functions), and where a search ended.

    Parameters
    ----------
    phi
        φ(t) and φ'(t).
    value, slope
        φ(0) and φ'(0) < 0.
    first
        First lengths to try.

    Examples
    --------
    >>> value, slope, first = torch.tensor([1.0]), torch.tensor([-2.0]), torch.tensor([0.1])
    >>> wolfe_lengths(lambda t: ((t - 1) ** 2, 2 * (t - 1)), value, slope, first)[0]
    tensor([0.1000])
    """
    t, zero = first, torch.zeros_like(first)
    test = DECREASE * slope
    interval = _Interval(zero, value, slope, zero, torch.zeros_like(first, dtype=torch.bool))
    least, most = zero, 5 * t
    width, width_before = torch.full_like(t, LONGEST), torch.full_like(t, 2 * LONGEST)
    early, ended = torch.ones_like(interval.bracketed), torch.zeros_like(interval.bracketed)
    for _ in range(MOST_TRIALS):
        f, g = phi(t)
        low_enough = f <= value + t * test
        early &= ~(low_enough & (g >= 0))
        stalled = interval.bracketed & ((t <= least) | (t >= most) | (most - least <= NARROW * most))
        stalled |= (t >= LONGEST) & low_enough & (g <= test)
        ended = ended | stalled | (low_enough & (g.abs() <= -CURVATURE * slope))
        if bool(ended.all()):
            break
        # At first the search is for a decrease beyond the line φ(0) + t DECREASE φ'(0).
        tilt = torch.where(early & (f <= interval.value) & ~low_enough, test, 0.0)
        interval.value, interval.slope = interval.value - interval.best * tilt, interval.slope - tilt
        trial = interval.tightened(t, f - t * tilt, g - tilt, least, most)
        interval.value, interval.slope = interval.value + interval.best * tilt, interval.slope + tilt
        best, other, bracketed = interval.best, interval.other, interval.bracketed
        wide = bracketed & ((other - best).abs() >= 0.66 * width_before)
        trial = torch.where(wide, best + 0.5 * (other - best), trial)
        width_before = torch.where(bracketed, width, width_before)
        width = torch.where(bracketed, (other - best).abs(), width)
        least = torch.where(bracketed, torch.minimum(best, other), trial + 1.1 * (trial - best))
        most = torch.where(bracketed, torch.maximum(best, other), trial + 4 * (trial - best))
        trial = trial.clamp(0, LONGEST)
        stalled = bracketed & ((trial <= least) | (trial >= most) | (most - least <= NARROW * most))
        t = torch.where(ended, t, torch.where(stalled, best, trial))
    return t, ended & t.isfinite()
