"""The estimated accuracy of a run, for the command line and the page."""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

Z = NormalDist().inv_cdf(0.975)
"""Standard deviations of a 95 % interval."""
TOO_FEW = "too few labels to estimate accuracy"


class Accuracy(NamedTuple):
    """Right answers among labels that the model had not learned from, with a 95 % interval (Wilson)."""

    how: str
    """"held back" or "cross-validation"."""
    n_right: int
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of Wilson's score interval.

        References
        ----------
        E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
        """
        p, n = self.n_right / self.n, self.n
        middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        # Exactly 0 and 1 where they are so, but for rounding.
        return 0.0 if p == 0 else middle - half, 1.0 if p == 1 else middle + half

    def as_facts(self) -> dict[str, Any]:
        """For programs."""
        low, high = self.interval
        return {"how": self.how, "accuracy": self.n_right / self.n, "n": self.n, "low": low, "high": high}


def accuracy_sentence(members: dict[str, Any]) -> str:
    """The accuracy with its interval, how it was estimated, and whether it is biased."""
    if members["accuracy"] is None:
        return f"{TOO_FEW} (every class needs 5, or hold some back with --hold-back)."
    found = Accuracy(*members["accuracy"])
    low, high = found.interval
    how = {
        "held back": f"{found.n} labels, chosen at random and held back",
        "cross-validation": f"cross-validation over {found.n} labels",
    }[found.how]
    said = f"{found.n_right / found.n:.1%}, 95 % interval {low:.1%} to {high:.1%} ({how})."
    if members["n_chosen"]:
        said += (
            f" Biased: {members['n_chosen']} of the labeled rows were suggested by the model, and such rows "
            "are harder than others."
        )
    return said
