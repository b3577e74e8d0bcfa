"""The claims of section 3.1 as a table: what the paper says, the bar, what was found."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

Row = dict[str, str | float]


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper as a number with a bar."""

    panel: str
    says: str
    law: str
    manifold: str
    value: Callable[[Row], float]
    bar: float
    at_most: bool


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was found: mean over seeds, worst seed, and whether the mean meets the bar."""

    claim: Claim
    mean: float
    worst: float
    n_seeds: int

    @property
    def met(self) -> bool:
        """Whether the mean over seeds is on the right side of the bar."""
        return self.mean <= self.claim.bar if self.claim.at_most else self.mean >= self.claim.bar


def number(row: Row, name: str) -> float:
    """A measured number of a row."""
    return float(row[name])


def tangent_to_normal(row: Row) -> float:
    """Spread of the images along the manifold over their spread across it."""
    along, across = number(row, "tangent_spread"), number(row, "normal_spread")
    return along / across if across > 0 else math.nan


def _claims() -> tuple[Claim, ...]:
    def of(name: str) -> Callable[[Row], float]:
        return lambda row: number(row, name)

    itself = "RBM maps points to themselves: distance"
    along = "images spread along the manifold: tangent / normal"
    pulled = "isolated points are pulled in: distance after / before"
    covered = "few points cover the manifold: share within 0.05"
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


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Each claim for which there are rows, with its mean and worst value over seeds."""
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
    lines = [("", "claim", "law", "data", "bar", "mean", "worst seed", "")]
    for verdict in found:
        claim = verdict.claim
        sign = "<=" if claim.at_most else ">="
        lines.append(
            (
                f"({claim.panel})",
                claim.says,
                NAMES[claim.law],
                claim.manifold,
                f"{sign} {claim.bar:g}",
                f"{verdict.mean:.3f}",
                f"{verdict.worst:.3f}",
                "met" if verdict.met else "NOT MET",
            )
        )
    return aligned(lines)


def figures_table(rows: Sequence[Row]) -> str:
    """Every measured number, mean over seeds, one line for each manifold and law."""
    columns = ("self_distance", "image_distance", "isotropic_distance", "outliers_after_before", "coverage")
    lines: list[tuple[str, ...]] = [
        (
            "data",
            "law",
            "self distance",
            "image to manifold",
            "(if isotropic)",
            "outliers after/before",
            "coverage",
            "tangent/normal",
        )
    ]
    for manifold, law in sorted({(str(row["manifold"]), str(row["law"])) for row in rows}):
        part = [row for row in rows if row["manifold"] == manifold and row["law"] == law]
        # Without noise there is no spread, and the ratio of two roundings means nothing.
        ratio = "–" if law == "point" else f"{fmean(map(tangent_to_normal, part)):.2f}"
        means = {name: f"{fmean(number(row, name) for row in part):.3f}" for name in columns}
        if law == "point":
            means["isotropic_distance"] = "–"
        lines.append((manifold, NAMES[law], *means.values(), ratio))
    return aligned(lines)


NAMES = {"point": "RBM", "gaussian": "Gaussian RBSE", "bernoulli": "Bernoulli RBSE"}


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns of text, padded to the same width."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
