"""Brute force, written as loops over numbers, unlike the source."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform


def law_expectation(law: Law, element: tuple[int, ...], f: Callable[[float], float]) -> float:
    """E[f(θ)] of one element of a law: a sum over atoms plus an integral over a density."""
    a = law.alpha
    theta_bar = float(a["theta_bar"][element]) if not isinstance(law, Levels) else math.nan
    if isinstance(law, Point):
        return f(theta_bar)
    if isinstance(law, Bernoulli):
        p = float(law.p[element])
        return (1 - p) * f(0.0) + p * f(theta_bar)
    if isinstance(law, Levels):
        weights = [float(x) for x in a["p"][element]]
        values = [float(x) for x in a["theta_bar"]]
        return sum(w * f(x) for w, x in zip(weights, values, strict=True)) / sum(weights)
    if isinstance(law, Gaussian):
        return _normal(theta_bar, float(a["sigma"][element]), f)
    if isinstance(law, SpikeSlab):
        p = float(a["p"][element])
        return (1 - p) * f(0.0) + p * _normal(theta_bar, float(a["sigma"][element]), f)
    if isinstance(law, Uniform):
        w = float(a["half_width"][element])
        return _integral(lambda x: f(x) / (2 * w), theta_bar - w, theta_bar + w)
    if isinstance(law, Laplace):
        s = float(a["scale"][element])
        below = _integral(
            lambda x: f(x) * math.exp((x - theta_bar) / s) / (2 * s), theta_bar - 700 * s, theta_bar
        )
        above = _integral(
            lambda x: f(x) * math.exp((theta_bar - x) / s) / (2 * s), theta_bar, theta_bar + 700 * s
        )
        return below + above
    raise AssertionError(f"no oracle for {law}")


def tilted_expectation(law: Law, element: tuple[int, ...], t: float, f: Callable[[float], float]) -> float:
    """E[f(θ)] under the law tilted by t, from E[f exp(tθ)] / E[exp(tθ)]."""
    weighted = law_expectation(law, element, lambda x: f(x) * math.exp(t * x))
    return weighted / law_expectation(law, element, lambda x: math.exp(t * x))


def _normal(mean: float, sigma: float, f: Callable[[float], float]) -> float:
    def integrand(x: float) -> float:
        return f(x) * math.exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))

    return _integral(integrand, mean - 16 * sigma, mean + 16 * sigma)


_X, _W = np.polynomial.legendre.leggauss(60)
_EDGES = (0.0, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999, 1.0)
_JUMP = 0.1


def _integral(f: Callable[[float], float], low: float, high: float) -> float:
    """Composite Gauss rule, finer towards both ends (tilted tails) and split where tests have a jump."""
    edges = sorted({low + a * (high - low) for a in _EDGES} | {min(max(_JUMP, low), high)})
    total = 0.0
    for a, b in itertools.pairwise(edges):
        half = (b - a) / 2
        total += half * sum(
            w * f((a + b) / 2 + half * x) for x, w in zip(_X.tolist(), _W.tolist(), strict=True)
        )
    return total


def binary(n: int) -> Iterator[tuple[int, ...]]:
    return itertools.product((0, 1), repeat=n)


def atoms(law: Law) -> Iterator[tuple[float, Tensor]]:
    """Every value of an atomic law's whole array, with its probability."""
    elements = list(itertools.product(*map(range, law.shape)))
    choices: list[list[tuple[float, float]]] = []
    for e in elements:
        if isinstance(law, Point):
            choices.append([(1.0, float(law.theta_bar[e]))])
        elif isinstance(law, Bernoulli):
            p = float(law.p[e])
            choices.append([(1 - p, 0.0), (p, float(law.theta_bar[e]))])
        elif isinstance(law, Levels):
            total = float(law.p[e].sum())
            choices.append(
                [(float(w) / total, float(x)) for w, x in zip(law.p[e], law.theta_bar, strict=True)]
            )
        else:
            raise AssertionError(f"{law} has no atoms")
    for combination in itertools.product(*choices):
        probability = math.prod(w for w, _ in combination)
        yield probability, torch.tensor([x for _, x in combination]).reshape(law.shape)


def rbm_energy(v: Any, h: Any, W: Any, b: Any, c: Any) -> float:
    """−(Σ_ij W_ij v_i h_j + Σ_i b_i v_i + Σ_j c_j h_j), element by element."""
    total = 0.0
    for i in range(len(v)):
        total += float(b[i]) * float(v[i])
        for j in range(len(h)):
            total += float(W[i][j]) * float(v[i]) * float(h[j])
    for j in range(len(h)):
        total += float(c[j]) * float(h[j])
    return -total


@lru_cache(maxsize=1_000)
def _expected_exponential(law: Law, element: tuple[int, ...], t: float) -> float:
    """E[exp(t θ)] of one element; binary units have two values of t only, in many states."""
    return law_expectation(law, element, lambda x: math.exp(t * x))


def ensemble_weight(laws: dict[str, Law], v: Any, h: Any) -> float:
    """∫ P(θ) exp(−E(v, h, θ)) dθ of a restricted Boltzmann ensemble, one parameter at a time."""
    weight = 1.0
    for i in range(len(v)):
        weight *= _expected_exponential(laws["b"], (i,), float(v[i]))
        for j in range(len(h)):
            weight *= _expected_exponential(laws["W"], (i, j), float(v[i] * h[j]))
    for j in range(len(h)):
        weight *= _expected_exponential(laws["c"], (j,), float(h[j]))
    return weight


def joint_table(laws: dict[str, Law]) -> Tensor:
    """P(v, h) as (2^D, 2^K)."""
    D, K = laws["W"].shape
    table = torch.tensor([[ensemble_weight(laws, v, h) for h in binary(K)] for v in binary(D)])
    return table / table.sum()
