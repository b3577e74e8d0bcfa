"""The estimated accuracy of a run, for the command line and the page."""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

Z = NormalDist().inv_cdf(0.975)
"""Standard deviations of a 95 % interval."""
OFTEN = 0.6
"""Part of the labels from which on a class is so frequent that it is worth saying."""
HELD_BACK, CROSS_VALIDATION, AUDIT = HOWS = ("held back", "cross-validation", "audit")
"""How accuracy is estimated: on labels that are held back, by cross-validation, or on random rows that a
person checked without seeing the predictions."""
TOO_FEW = "too few labels to estimate accuracy"


class Accuracy(NamedTuple):
    """Right answers among labels that the model had not learned from, with a 95 % interval (Wilson)."""

    how: str
    """One of :data:`HOWS`."""
    classes: list[Any]
    """For each class its name, the number of right answers, and of all."""

    @classmethod
    def counted(cls, how: str, truth: Any, predicted: Any) -> "Accuracy":
        """From true and predicted classes, arrays of words."""
        names = sorted(set(truth.tolist()))
        return cls(
            how, [[c, int((predicted[truth == c] == c).sum()), int((truth == c).sum())] for c in names]
        )

    @property
    def n_right(self) -> int:
        """Right answers."""
        return sum(right for _, right, _ in self.classes)

    @property
    def n(self) -> int:
        """Labels that were tested."""
        return sum(n for _, _, n in self.classes)

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of Wilson's score interval."""
        return wilson(self.n_right, self.n, Z)

    def as_facts(self) -> dict[str, Any]:
        """For programs."""
        low, high = self.interval
        recalls = {name: right / n for name, right, n in self.classes}
        accuracy = self.n_right / self.n
        return {
            "how": self.how,
            "accuracy": accuracy,
            "n": self.n,
            "low": low,
            "high": high,
            "recall": recalls,
        }


def wilson(n_right: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's score interval of an accuracy, z standard deviations to each side.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    p = n_right / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # Exactly 0 and 1 where they are so, but for rounding.
    return 0.0 if p == 0 else middle - half, 1.0 if p == 1 else middle + half


def accuracy_sentence(members: dict[str, Any]) -> str:
    """The accuracy with its interval, how it was estimated, and whether it is biased."""
    if members["accuracy"] is None:
        return f"{TOO_FEW} (every class needs five)."
    found = Accuracy(*members["accuracy"])
    low, high = found.interval
    how = {
        HELD_BACK: f"{found.n} labels, chosen at random and held back",
        CROSS_VALIDATION: f"cross-validation over {found.n} labels",
        AUDIT: f"{found.n} random rows, checked without seeing predictions and never learned from",
    }[found.how]
    said = f"{found.n_right / found.n:.1%}, 95 % interval {low:.1%} to {high:.1%} ({how})."
    name, part = members["largest"]
    if part > OFTEN:
        said += f" Always answering {name} would be right for {part:.1%}."
    if members["n_chosen"]:
        said += (
            f" Biased: {members['n_chosen']} of the labeled rows were suggested by the model, not chosen at "
            "random; such rows are harder than others."
        )
    return said
