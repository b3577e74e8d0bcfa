"""The blind audit: random rows that the model never learns from, by which its accuracy is estimated."""

from typing import Any, NamedTuple

import numpy as np

from ebse.workflow.accuracy import Accuracy

MOST, PART = 400, 5
"""Rows that are reserved, at most; and one in how many."""
LOOKS = (25, 50, 100, 200, 400)
"""Numbers of answers at which "good enough" may be said: who looks after every answer will sooner or later
see a good interval by chance."""
KEY = 0xA0D1
"""Distinguishes this permutation from others of the same seed."""


def reserved(n_rows: int, labeled: set[int], seed: int) -> list[int]:
    """Rows of the audit, in the order in which they are shown; the same for the same data and seed."""
    order = np.random.default_rng([seed, KEY]).permutation(n_rows).tolist()
    return [row for row in order if row not in labeled][: min(MOST, n_rows // PART)]


class Audit(NamedTuple):
    """Answers of the audit so far, and what they say about the accuracy."""

    n: int
    n_right: int
    target: float
    n_rows: int
    """Rows that are reserved."""

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        return Accuracy("audit", [["", self.n_right, self.n]]).interval

    @property
    def text(self) -> str:
        """The accuracy in words."""
        if not self.n:
            return "No random checks yet: the accuracy is not known."
        low, high = self.interval
        return (
            f"{self.n_right} of {self.n} random check{'s' if self.n != 1 else ''} right: "
            f"between {_percent(low)} and {_percent(high)} %"
        )

    @property
    def enough(self) -> bool:
        """Whether the accuracy is above the target for sure, said only at a few numbers of answers."""
        return self.n in LOOKS and self.interval[0] >= self.target

    @property
    def next_look(self) -> int | None:
        """Answers at which it is looked at next."""
        return next((n for n in LOOKS if self.n < n <= self.n_rows), None)

    def described(self) -> dict[str, Any]:
        """For the page."""
        target = _percent(self.target)
        said = None
        if self.enough:
            said = f"Good enough: with 95 % confidence at least {target} % of the predictions are right."
        elif self.n in LOOKS:
            said = f"Not yet {target} % for sure. Label more, or check more."
        return {
            "n": self.n,
            "n_right": self.n_right,
            "text": self.text,
            "enough": self.enough,
            "enough_text": said,
            "target": self.target,
            "n_rows": self.n_rows,
            "next_look": self.next_look,
        }


def _percent(part: float) -> str:
    return f"{100 * part:.0f}"
