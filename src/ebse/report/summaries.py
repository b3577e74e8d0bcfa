"""Accuracies of a one-shot run, as means with intervals, and the paper's claims beside them."""

import math
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


BySeed = Mapping[int | None, Array]
"""Accuracies in all episodes for every training seed; None where there is nothing to train."""


class Interval(NamedTuple):
    """A mean in points of accuracy with its 95 % interval over episodes, and the mean of every seed."""

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]

    def __str__(self) -> str:
        return self._shown("")

    def signed(self) -> str:
        """As text, with a sign: a difference."""
        return self._shown("+")

    def _shown(self, sign: str) -> str:
        mean, low, high = (_signed(x, sign) for x in (self.mean, self.low, self.high))
        return mean if math.isnan(self.low) else f"{mean} ({low} to {high})"


def _signed(x: float, sign: str) -> str:
    """One digit after the point, a true minus, and no sign of zero."""
    return f"{x:{sign}z.1f}".replace("-", "−")


class OneShotClaim(NamedTuple):
    """A sentence of section 3.2 as a difference of two methods."""

    says: str
    paper: str
    pairs: tuple[tuple[str, str], ...]
    """The method that the sentence is about, and what it is compared with: the first pair that was run."""
    bar: float
    """Points that the paper speaks of; 0 where only the sign counts, above or, if ``drops``, below."""
    drops: bool = False


class Found(NamedTuple):
    """A claim, the method that was asked, what was found, and the verdict in a word."""

    claim: OneShotClaim
    method: str
    difference: Interval
    verdict: str


CLAIMS = (
    OneShotClaim("RBM features beat pixels", "about +10", ((REFERENCE, PIXELS),), 10.0),
    OneShotClaim(
        "DropConnect on the RBM slightly drops",
        "below 0",
        (("DropConnect, prior", REFERENCE),),
        0.0,
        drops=True,
    ),
    OneShotClaim(
        "RBSE representations beat the RBM's",
        "about +5",
        (("Algorithm 1 clamped", "Algorithm 1 on an RBM mean"), ("Bernoulli clamped", REFERENCE)),
        5.0,
    ),
    OneShotClaim(
        "beyond the paper: models met on a walk beat the RBM's",
        "our bar: above 0",
        (("Bernoulli walked model", REFERENCE),),
        0.0,
    ),
)


def accuracies(rows: Sequence[Row], n_shots: int) -> dict[str, BySeed]:
    """Accuracies of every method, by training seed."""
    found: dict[str, dict[int | None, Array]] = {}
    for row in rows:
        if row.get("kind") == "accuracy" and row["n_shots"] == n_shots:
            found.setdefault(row["method"], {})[row["seed"]] = np.array(row["accuracies"])
    return dict(found)


def interval(x: BySeed) -> Interval:
    """100 · mean over seeds and episodes, with Student's interval over episodes, none where there is one.

    The interval speaks of other episodes with these trained models; ``by_seed`` shows how trainings differ.
    """
    values = np.array(list(x.values()))
    by_episode = 100 * values.mean(0)
    mean, n = float(by_episode.mean()), by_episode.size
    half = math.nan
    if n > 1:
        half = float(stats.t.isf((1 - LEVEL) / 2, n - 1) * by_episode.std(ddof=1) / n**0.5)
    return Interval(mean, mean - half, mean + half, tuple(float(100 * m) for m in values.mean(1)))


def paired(x: BySeed, reference: BySeed) -> BySeed:
    """x − reference, of the same episodes and training seeds; seeds that one of them lacks are left out."""
    if None in reference:
        base = reference[None]
        return {seed: values - base for seed, values in x.items() if values.shape == base.shape}
    if None in x:
        return {seed: x[None] - values for seed, values in reference.items() if values.shape == x[None].shape}
    return {
        seed: values - reference[seed]
        for seed, values in x.items()
        if seed in reference and reference[seed].shape == values.shape
    }


def difference(x: BySeed, reference: BySeed) -> Interval | None:
    """The interval of :func:`paired`, where there are pairs."""
    gains = paired(x, reference)
    return interval(gains) if gains else None


def accuracy_lines(found: Mapping[str, BySeed]) -> list[tuple[str, ...]]:
    """Accuracy of each method and its gain over the reference, best first, under a line of names."""
    several = any(len(x) > 1 for x in found.values())
    lines: list[tuple[str, ...]] = [
        ("method", "accuracy, %", f"points over {REFERENCE}", *["each seed"] * several)
    ]
    for name in sorted(found, key=lambda name: -interval(found[name]).mean):
        x = found[name]
        gain = difference(x, found[REFERENCE]) if REFERENCE in found and name != REFERENCE else None
        shown = interval(x) if gain is None else gain
        sign = "" if gain is None else "+"
        seeds = ", ".join(_signed(m, sign) for m in shown.by_seed) if len(x) > 1 else ""
        lines.append((name, str(interval(x)), "" if gain is None else gain.signed(), *[seeds] * several))
    return lines


def checked_claims(found: Mapping[str, BySeed]) -> list[Found]:
    """The claims for which both methods were run."""
    checked = []
    for claim in CLAIMS:
        for better, than in claim.pairs:
            # Several walks are told apart by what follows a comma.
            names = [name for name in found if better in (name, name.partition(", ")[0])]
            d = difference(found[names[0]], found[than]) if names and than in found else None
            if d is not None:
                checked.append(Found(claim, f"{names[0]} − {than}", d, verdict(claim, d)))
                break
    return checked


def verdict(claim: OneShotClaim, d: Interval) -> str:
    """Whether what was found is what the paper says; never yes where the interval has no sign."""
    if claim.drops:
        return "yes" if d.high < 0 else "no"
    if not d.low > 0:
        return "no"
    if d.mean >= 0.8 * claim.bar:
        return "yes"
    # A fifth of what was claimed is less; still less than that is not what was claimed.
    return "less" if d.mean >= 0.2 * claim.bar else "no"


def aligned_claims(found: Mapping[str, BySeed]) -> str:
    """The claims as aligned text."""
    lines = [
        (f"{c.claim.says} ({c.method})", c.claim.paper, c.difference.signed(), c.verdict)
        for c in checked_claims(found)
    ]
    return aligned([("claim", "paper", "found, points", "verdict"), *lines])
