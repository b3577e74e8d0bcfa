"""The claims of section 3.1 as measurements with thresholds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

Row = dict[str, str | float]


@dataclass(frozen=True)
class Claim:
    """One claim of Figure 2 as a measured number with a threshold of ours; the paper has pictures alone."""

    panel: str
    says: str
    law: str
    manifold: str
    value: Callable[[Row], float]
    threshold: float
    at_most: bool


@dataclass(frozen=True)
class Verdict:
    """A claim with its measured mean over seeds and its worst seed."""

    claim: Claim
    mean: float
    worst: float
    n_seeds: int

    @property
    def met(self) -> bool:
        """Whether the mean over seeds is on the right side of the threshold."""
        threshold = self.claim.threshold
        return self.mean <= threshold if self.claim.at_most else self.mean >= threshold


def number(row: Row, name: str) -> float:
    """A measurement of a row."""
    return float(row[name])


def tangent_to_normal(row: Row) -> float:
    """Standard deviation of the images along the manifold divided by that across it."""
    along, across = number(row, "tangent_spread"), number(row, "normal_spread")
    return along / across if across > 0 else math.nan


def _claims() -> tuple[Claim, ...]:
    def of(name: str) -> Callable[[Row], float]:
        return lambda row: number(row, name)

    itself = "An RBM maps points of the curve to themselves: distance"
    along = "Images of sampled models spread along the curve: spread along / across"
    pulled = "Isolated points move toward the curve: distance after / before"
    covered = "Images of five points cover the curve: fraction of the curve within 0.05"
    return (
        Claim("a", itself, "point", "arc", of("self_distance"), 0.02, True),
        Claim("a", itself, "point", "line", of("self_distance"), 0.02, True),
        Claim("b", along, "gaussian", "arc", tangent_to_normal, 2.0, False),
        Claim("b", along, "gaussian", "line", tangent_to_normal, 10.0, False),
        Claim("c", pulled, "gaussian", "arc", of("outliers_after_before"), 0.3, True),
        Claim("c", pulled, "bernoulli", "arc", of("outliers_after_before"), 0.3, True),
        Claim("d", covered, "gaussian", "arc", of("coverage"), 0.8, False),
        Claim("d", covered, "gaussian", "line", of("coverage"), 0.9, False),
    )


CLAIMS = _claims()
CLAIMS_HEAD = ("", "claim", "model", "curve", "threshold", "mean", "worst seed", "")


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Every claim that has rows, with its mean and worst value over seeds."""
    found = []
    for claim in CLAIMS:
        values = [
            claim.value(row) for row in rows if row["law"] == claim.law and row["manifold"] == claim.manifold
        ]
        if values:
            worst = max(values) if claim.at_most else min(values)
            found.append(Verdict(claim, fmean(values), worst, len(values)))
    return found


def claims_table(found: Sequence[Verdict]) -> str:
    """The verdicts as aligned text."""
    return aligned([CLAIMS_HEAD, *claims_lines(found)])


def claims_lines(found: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """The verdicts as lines of a table."""
    lines: list[tuple[str, ...]] = []
    for verdict in found:
        claim = verdict.claim
        sign = "≤" if claim.at_most else "≥"
        lines.append(
            (
                f"({claim.panel})",
                claim.says,
                NAMES[claim.law],
                claim.manifold,
                f"{sign} {claim.threshold:g}",
                f"{verdict.mean:.3f}",
                f"{verdict.worst:.3f}",
                "holds" if verdict.met else "does not hold",
            )
        )
    return lines


def figures_table(rows: Sequence[Row]) -> str:
    """All measurements as aligned text."""
    return aligned(figures_lines(rows))


def figures_lines(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """All measurements, means over seeds, one line for each manifold and law, under a line of names."""
    columns = ("self_distance", "image_distance", "isotropic_distance", "outliers_after_before", "coverage")
    lines: list[tuple[str, ...]] = [
        (
            "curve",
            "model",
            "point to image",
            "image to curve",
            "(if isotropic)",
            "outliers after/before",
            "coverage",
            "along/across",
        )
    ]
    for manifold, law in sorted({(str(row["manifold"]), str(row["law"])) for row in rows}):
        part = [row for row in rows if row["manifold"] == manifold and row["law"] == law]
        # Without random weights there is no spread, and the ratio of two rounding errors means nothing.
        ratio = "–" if law == "point" else f"{fmean(map(tangent_to_normal, part)):.2f}"
        means = {name: f"{fmean(number(row, name) for row in part):.3f}" for name in columns}
        if law == "point":
            means["isotropic_distance"] = "–"
        lines.append((manifold, NAMES[law], *means.values(), ratio))
    return lines


NAMES = {"point": "RBM", "gaussian": "Gaussian RBSE", "bernoulli": "Bernoulli RBSE"}


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text, columns padded to one width."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
