"""Accuracies of few-shot runs as means with intervals, and the claims of section 3.2."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ebse.evaluation import mean_interval
from ebse.report.claims import aligned

REFERENCE, PIXELS = "RBM mean", "pixels"

Row = Mapping[str, Any]
Array = npt.NDArray[np.float64]


BySeed = Mapping[int | None, Array]
"""Accuracies of all episodes by training seed; None for a method that is not trained."""


class Interval(NamedTuple):
    """Mean accuracy in percent with its 95 % interval over episodes, and the mean of every seed."""

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]

    def __str__(self) -> str:
        return self._formatted("")

    def signed(self) -> str:
        """As text with a sign, for a difference."""
        return self._formatted("+")

    def _formatted(self, sign: str) -> str:
        mean, low, high = (_signed(x, sign) for x in (self.mean, self.low, self.high))
        return mean if math.isnan(self.low) else f"{mean} ({low} to {high})"


def _signed(x: float, sign: str) -> str:
    """One decimal, a typographic minus, and no sign for zero."""
    return f"{x:{sign}z.1f}".replace("-", "−")


class OneShotClaim(NamedTuple):
    """A claim of section 3.2 as a difference of two methods."""

    says: str
    paper: str
    pairs: tuple[tuple[str, str], ...]
    """The method and its reference; the first pair that was run is used."""
    size: float
    """Points that the paper reports; 0 where only the sign counts (negative if ``drops``)."""
    drops: bool = False


class CheckedClaim(NamedTuple):
    """A claim, the two methods, their measured difference, and "yes", "partly" or "no"."""

    claim: OneShotClaim
    method: str
    difference: Interval
    verdict: str


CLAIMS = (
    OneShotClaim("RBM features beat pixels", "paper: about +10", ((REFERENCE, PIXELS),), 10.0),
    OneShotClaim(
        "DropConnect on the RBM loses slightly",
        "paper: below 0",
        (("DropConnect, prior", REFERENCE),),
        0.0,
        drops=True,
    ),
    OneShotClaim(
        "RBSE representations (posterior samples) beat those of the RBM",
        "paper: about +5",
        (
            ("Algorithm 1 posterior samples", "Algorithm 1 on an RBM mean"),
            ("Bernoulli posterior samples", REFERENCE),
        ),
        5.0,
    ),
    OneShotClaim(
        "Beyond the paper: chain-sampled models beat the RBM",
        "our threshold: above 0",
        (("Bernoulli chain-sampled models", REFERENCE),),
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
    """100 · mean over seeds and episodes, with Student's t interval over episodes (none for one episode).

    The interval covers the choice of episodes, not of training seeds; ``by_seed`` shows these.
    """
    values = np.array(list(x.values()))
    found = mean_interval(100 * values.mean(0))
    return Interval(found.mean, found.low, found.high, tuple(float(100 * m) for m in values.mean(1)))


def accuracy_interval(x: BySeed) -> Interval:
    """:func:`interval` of accuracies, which lie between 0 and 100 %."""
    found = interval(x)
    low, high = np.clip([found.low, found.high], 0.0, 100.0).tolist()
    return found._replace(low=low, high=high)


def paired(x: BySeed, reference: BySeed) -> BySeed:
    """x − reference in the same episodes and training seeds; seeds that only one of them has are left out."""
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
    """Interval of :func:`paired`; None without pairs."""
    gains = paired(x, reference)
    return interval(gains) if gains else None


def accuracy_lines(found: Mapping[str, BySeed], reference: str = REFERENCE) -> list[tuple[str, ...]]:
    """Accuracy of each method and its gain over the reference, best first, under a line of names."""
    several = any(len(x) > 1 for x in found.values())
    lines: list[tuple[str, ...]] = [
        ("method", "accuracy, %", f"points over {reference}", *["each seed"] * several)
    ]
    for name in sorted(found, key=lambda name: -interval(found[name]).mean):
        x = found[name]
        gain = difference(x, found[reference]) if reference in found and name != reference else None
        accuracy = accuracy_interval(x)
        values = accuracy if gain is None else gain
        sign = "" if gain is None else "+"
        seeds = ", ".join(_signed(m, sign) for m in values.by_seed) if len(x) > 1 else ""
        lines.append((name, str(accuracy), "" if gain is None else gain.signed(), *[seeds] * several))
    return lines


def checked_claims(found: Mapping[str, BySeed]) -> list[CheckedClaim]:
    """The claims whose methods were both run."""
    checked = []
    for claim in CLAIMS:
        for better, than in claim.pairs:
            # Settings of several chains follow a comma.
            names = [name for name in found if better in (name, name.partition(", ")[0])]
            d = difference(found[names[0]], found[than]) if names and than in found else None
            if d is not None:
                checked.append(CheckedClaim(claim, f"{names[0]} − {than}", d, verdict(claim, d)))
                break
    return checked


def verdict(claim: OneShotClaim, d: Interval) -> str:
    """Whether a measured difference agrees with the claim; never "yes" where the interval contains 0."""
    if claim.drops:
        return "yes" if d.high < 0 else "no"
    if not d.low > 0:
        return "no"
    if d.mean >= 0.8 * claim.size:
        return "yes"
    return "partly" if d.mean >= 0.2 * claim.size else "no"


def aligned_claims(found: Mapping[str, BySeed]) -> str:
    """The claims as aligned text."""
    lines = [
        (f"{c.claim.says} ({c.method})", c.claim.paper, c.difference.signed(), c.verdict)
        for c in checked_claims(found)
    ]
    return aligned([("claim", "expected", "measured, points", "holds"), *lines])
