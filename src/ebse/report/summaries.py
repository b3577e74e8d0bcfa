"""Accuracies of a one-shot run, as means with intervals, and the paper's claims beside them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ebse.report.claims import aligned

LEVEL = 0.95
"""Of the intervals, which speak of other episodes."""
REFERENCE, PIXELS = "RBM mean", "pixels"

Row = Mapping[str, Any]
Array = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """A mean in points of accuracy with its 95 % interval over episodes, and the mean of every seed."""

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.mean:.1f} ({self.low:.1f} to {self.high:.1f})"


class OneShotClaim(NamedTuple):
    """A sentence of section 3.2 as a difference of two methods."""

    says: str
    paper: str
    better: tuple[str, ...]
    """The method that the sentence is about: the first of these that was run."""
    than: str
    bar: float
    """Points that the paper speaks of; 0 for a loss."""


class Found(NamedTuple):
    """A claim, the method that was asked, what was found, and the verdict in a word."""

    claim: OneShotClaim
    method: str
    difference: Interval
    verdict: str


CLAIMS = (
    OneShotClaim("RBM features beat pixels", "about +10", (REFERENCE,), PIXELS, 10.0),
    OneShotClaim("DropConnect on the RBM slightly drops", "below 0", ("DropConnect, prior",), REFERENCE, 0.0),
    OneShotClaim(
        "RBSE representations beat the RBM's",
        "about +5",
        ("Algorithm 1 clamped", "Bernoulli clamped"),
        REFERENCE,
        5.0,
    ),
    OneShotClaim(
        "beyond the paper: models met on a walk beat the RBM's",
        "–",
        ("Bernoulli walked model",),
        REFERENCE,
        8.0,
    ),
)


def accuracies(rows: Sequence[Row], n_shots: int) -> dict[str, Array]:
    """Accuracies (n_seeds, n_episodes) of every method; one line for methods that need no training."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if row.get("kind") == "accuracy" and row["n_shots"] == n_shots:
            seed = -1 if row["seed"] is None else row["seed"]
            found.setdefault(row["method"], {})[seed] = row["accuracies"]
    return {method: np.array([by_seed[s] for s in sorted(by_seed)]) for method, by_seed in found.items()}


def interval(x: Array) -> Interval:
    """100 · mean of x (n_seeds, n_episodes), with Student's interval over episodes."""
    by_episode = 100 * x.mean(0)
    mean, n = float(by_episode.mean()), by_episode.size
    half = 0.0
    if n > 1:
        half = float(stats.t.isf((1 - LEVEL) / 2, n - 1) * by_episode.std(ddof=1) / n**0.5)
    return Interval(mean, mean - half, mean + half, tuple(float(100 * m) for m in x.mean(1)))


def paired(x: Array, reference: Array) -> Array:
    """x − reference, of the same episodes, and of the same training seeds where both have some."""
    if 1 not in (len(x), len(reference)):
        # Some seeds may not be finished yet.
        n = min(len(x), len(reference))
        x, reference = x[:n], reference[:n]
    gains: Array = x - reference
    return gains


def difference(x: Array, reference: Array) -> Interval:
    """The interval of :func:`paired`."""
    return interval(paired(x, reference))


def accuracy_lines(found: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """Accuracy of each method and its gain over the reference, best first, under a line of names."""
    several = any(len(x) > 1 for x in found.values())
    lines: list[tuple[str, ...]] = [
        ("method", "accuracy, %", f"points over {REFERENCE}", *["each seed"] * several)
    ]
    for name in sorted(found, key=lambda name: -interval(found[name]).mean):
        x = found[name]
        gain = difference(x, found[REFERENCE]) if REFERENCE in found and name != REFERENCE else None
        shown = "" if gain is None else f"{gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})"
        seeds = ", ".join(f"{m:.1f}" for m in interval(x).by_seed) if len(x) > 1 else ""
        lines.append((name, str(interval(x)), shown, *[seeds] * several))
    return lines


def checked_claims(found: Mapping[str, Array]) -> list[Found]:
    """The claims for which both methods were run."""
    checked = []
    for claim in CLAIMS:
        # Several walks are told apart by what follows a comma.
        names = [
            name for better in claim.better for name in found if better in (name, name.partition(", ")[0])
        ]
        if names and claim.than in found:
            d = difference(found[names[0]], found[claim.than])
            checked.append(Found(claim, names[0], d, verdict(claim, d)))
    return checked


def verdict(claim: OneShotClaim, d: Interval) -> str:
    """Whether what was found is what the paper says."""
    if claim.bar == 0:
        return "yes" if d.high < 0 else "no"
    if d.mean >= 0.8 * claim.bar:
        return "yes"
    # A fifth of what was claimed is less; still less than that is not what was claimed.
    return "less" if d.low > 0 and d.mean >= 0.2 * claim.bar else "no"


def aligned_claims(found: Mapping[str, Array]) -> str:
    """The claims as aligned text."""
    lines = [("claim", "paper", "found, points", "verdict")]
    for c in checked_claims(found):
        d = c.difference
        shown = f"{d.mean:+.1f} ({d.low:+.1f} to {d.high:+.1f})"
        lines.append((f"{c.claim.says} ({c.method})", c.claim.paper, shown, c.verdict))
    return aligned(lines)
