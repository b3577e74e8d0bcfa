"""The blind audit: random rows that the model never learns from, by which its accuracy is estimated."""

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ebse.workflow.accuracy import Z, wilson

MOST, PART = 400, 5
"""Rows that are reserved, at most; and one in how many of the unlabeled ones."""
LOOKS = (25, 50, 100, 200, 400)
"""Numbers of answers at which the target is compared, once each: who compares after every answer will sooner
or later see a good interval by chance."""
Z_LOOK = NormalDist().inv_cdf(0.99)
"""Standard deviations of the interval whose lower end must reach the target at a look. With all five looks a
model that is just below the target is called good enough with a probability of at most 5 %."""
STEP = 5
"""Answers after which the accuracy is shown anew: after each one it would say which predictions are wrong."""
KEY = 0xA0D1
"""Distinguishes this permutation from others of the same seed."""


def reserved(n_rows: int, labeled: set[int], seed: int) -> list[int]:
    """Rows of the audit, in the order in which they are shown; the same for the same data and seed."""
    order = np.random.default_rng([seed, KEY]).permutation(n_rows).tolist()
    free = [row for row in order if row not in labeled]
    return free[: min(MOST, len(free) // PART)]


class Look(NamedTuple):
    """Answers at one of :data:`LOOKS`, by the predictions of that time."""

    n: int
    n_right: int


class Audit(NamedTuple):
    """Answers of the audit so far, and what they say about the accuracy."""

    n: int
    """Answers."""
    n_right: int
    """Right predictions among the first ``n_shown`` answers."""
    target: float
    n_rows: int
    """Rows that are reserved."""
    unjudged: int = 0
    """Rows that were skipped, or of which a person was unsure."""
    look: Look | None = None
    """The look at this number of answers, if the labels are still those of then."""

    @property
    def n_shown(self) -> int:
        """Answers that the shown accuracy is about."""
        return self.n - self.n % STEP

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        return wilson(self.n_right, self.n_shown, Z)

    @property
    def text(self) -> str:
        """The accuracy in words."""
        if not self.n_shown:
            begun = f"{self.n} random check{'s' if self.n > 1 else ''}" if self.n else "No random checks yet"
            return f"{begun}: the accuracy is shown from {STEP} on."
        low, high = self.interval
        return (
            f"{self.n_right} of {self.n_shown} random checks right: between {_percent(low)} and "
            f"{_percent(high)} %"
        )

    @property
    def enough(self) -> bool:
        """Whether the last look says that the accuracy is above the target."""
        return self.look is not None and _reaches(*self.look, self.target)

    @property
    def looks(self) -> list[int]:
        """Numbers of answers at which the target can be reached, if all are right."""
        return [n for n in LOOKS if n <= self.n_rows and _reaches(n, n, self.target)]

    @property
    def next_look(self) -> int | None:
        """Answers at which the target is compared next."""
        return next((n for n in self.looks if n > self.n), None)

    def described(self) -> dict[str, Any]:
        """For the page."""
        target, said = _percent(self.target), None
        if not self.looks:
            least = next((n for n in LOOKS if _reaches(n, n, self.target)), None)
            needed = f"would need {least}" if least else f"is too high for {LOOKS[-1]}"
            said = f"A target of {target} % {needed} random checks; {self.n_rows} rows are reserved."
        elif self.enough:
            said = f"Good enough: at least {target} % of the predictions are right, by a 98 % interval."
        elif self.look is not None:
            said = f"Not yet {target} % for sure. Label more, or check more."
        return {
            "n": self.n,
            "n_right": self.n_right,
            "unjudged": self.unjudged,
            "text": self.text,
            "enough": self.enough,
            "enough_text": said,
            "target": self.target,
            "n_rows": self.n_rows,
            "next_look": self.next_look,
        }


def _reaches(n: int, n_right: int, target: float) -> bool:
    return wilson(n_right, n, Z_LOOK)[0] >= target


def _percent(part: float) -> str:
    return f"{100 * part:.0f}"
