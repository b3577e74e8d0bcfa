"""Curves in the unit square with known geometry: the synthetic 2-D data of section 3.1."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from ebse import rng
from ebse._validation import count

N_SEGMENTS = 200
"""Segments of a curve: each chord then lies within 1e-5 of its arc."""


_BLOCK = 500


class Projection(NamedTuple):
    """Where points x (N, 2) lie relative to a manifold."""

    distance: Tensor
    """Distance to the nearest point of the manifold, (N,)."""
    foot: Tensor
    """That point, (N, 2)."""
    tangent: Tensor
    """Unit tangent there, (N, 2)."""
    arc_length: Tensor
    """Length along the manifold up to there, curve after curve, (N,)."""


@final
@dataclass(frozen=True)
class Manifold:
    """One-dimensional manifold in the plane: one or more curves, each a fine polyline (M, 2).

    Examples
    --------
    >>> line = line_manifold()
    >>> line.project(line.points(3)).distance.max() < 1e-6
    tensor(True)
    """

    name: str
    curves: tuple[Tensor, ...]

    @property
    def length(self) -> float:
        """Total length."""
        return float(self._segments()[2].sum())

    def at(self, arc_length: Tensor) -> Tensor:
        """The points (N, 2) at the given lengths along the manifold."""
        start, step, size = self._segments()
        ends = size.cumsum(0)
        segment = torch.searchsorted(ends, arc_length.to(ends.dtype)).clamp(max=len(ends) - 1)
        fraction = (arc_length - (ends - size)[segment]) / size[segment]
        return start[segment] + fraction.clamp(0, 1).unsqueeze(-1) * step[segment]

    def points(self, n: int) -> Tensor:
        """The n midpoints of n equal parts of the manifold, (n, 2)."""
        count("n", n)
        return self.at((torch.arange(n) + 0.5) / n * self.length)

    def sample(self, n: int, *, noise: float = 0.0, generator: torch.Generator) -> Tensor:
        """n points uniform along the manifold, moved by N(0, noise²) in each direction, in [0, 1]²."""
        count("n", n)
        key = rng.draw_key(generator)
        u = rng.uniform(rng.subkey(key, 0), (n,))
        moved: Tensor = noise * torch.special.ndtri(rng.uniform(rng.subkey(key, 1), (n, 2)))
        dtype = self.curves[0].dtype
        return (self.at(u.to(dtype) * self.length) + moved.to(dtype)).clamp(0, 1)

    def project(self, x: Tensor) -> Projection:
        """The nearest point of the manifold, its distance, tangent and length along the manifold."""
        # Blocks whose (n, M) arrays stay in the cache are several times faster than the whole.
        blocks = [self._project(x[n : n + _BLOCK]) for n in range(0, len(x), _BLOCK)]
        return Projection(*(torch.cat(parts) for parts in zip(*blocks, strict=True)))

    def _project(self, x: Tensor) -> Projection:
        start, step, size = self._segments()
        # Squared distances by expanded squares, which is fast and, in float64, exact enough to choose by.
        s, d, y = start.double(), step.double(), x.double()
        along = y @ d.T - (s * d).sum(-1)  # (N, M): (x − start) · step
        fraction = (along / (d * d).sum(-1)).clamp(0, 1)
        squared = (y * y).sum(-1, keepdim=True) - 2 * y @ s.T + (s * s).sum(-1)
        nearest = (squared - fraction * (2 * along - fraction * (d * d).sum(-1))).argmin(1)
        f = fraction.gather(1, nearest.unsqueeze(1)).to(x.dtype)
        foot = start[nearest] + f * step[nearest]
        before = (size.cumsum(0) - size)[nearest]
        tangent = step[nearest] / size[nearest].unsqueeze(-1)
        return Projection((x - foot).norm(dim=-1), foot, tangent, before + f.squeeze(1) * size[nearest])

    def _segments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Start (M, 2), step (M, 2) and length (M,) of every segment."""
        start = torch.cat([curve[:-1] for curve in self.curves])
        step = torch.cat([curve[1:] - curve[:-1] for curve in self.curves])
        return start, step, step.norm(dim=-1)


def arc_manifold() -> Manifold:
    """A wide arc: center (0.5, 0.2), radius 0.45, from 18° to 162°."""
    return Manifold("arc", (_circle((0.5, 0.2), 0.45, 0.1 * math.pi, 0.9 * math.pi),))


def half_circle_manifold() -> Manifold:
    """A half circle: center (0.5, 0.3), radius 0.35."""
    return Manifold("half_circle", (_circle((0.5, 0.3), 0.35, 0.0, math.pi),))


def line_manifold() -> Manifold:
    """A straight line from (0.15, 0.2) to (0.85, 0.8)."""
    return Manifold("line", (torch.tensor([[0.15, 0.2], [0.85, 0.8]]),))


def moons_manifold() -> Manifold:
    """Two half circles of radius 0.25 that interlock."""
    upper = _circle((0.375, 0.45), 0.25, 0.0, math.pi)
    lower = _circle((0.625, 0.55), 0.25, math.pi, 2 * math.pi)
    return Manifold("moons", (upper, lower))


def spiral_manifold() -> Manifold:
    """A spiral of one and a half turns around (0.5, 0.5), radius from 0.05 to 0.45."""
    angle = torch.linspace(0, 3 * math.pi, N_SEGMENTS + 1)
    radius = torch.linspace(0.05, 0.45, N_SEGMENTS + 1)
    return Manifold("spiral", (_polar((0.5, 0.5), radius, angle),))


def circle_manifold() -> Manifold:
    """A circle around (0.5, 0.5) of radius 0.35."""
    return Manifold("circle", (_circle((0.5, 0.5), 0.35, 0.0, 2 * math.pi),))


MANIFOLDS: dict[str, Callable[[], Manifold]] = {
    "arc": arc_manifold,
    "circle": circle_manifold,
    "half_circle": half_circle_manifold,
    "line": line_manifold,
    "moons": moons_manifold,
    "spiral": spiral_manifold,
}


def _circle(center: tuple[float, float], radius: float, start: float, stop: float) -> Tensor:
    angle = torch.linspace(start, stop, N_SEGMENTS + 1)
    return _polar(center, torch.full_like(angle, radius), angle)


def _polar(center: tuple[float, float], radius: Tensor, angle: Tensor) -> Tensor:
    return torch.tensor(center) + radius.unsqueeze(-1) * torch.stack([angle.cos(), angle.sin()], -1)
