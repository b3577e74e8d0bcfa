"""Accuracies of a few-shot evaluation: rows, means with confidence intervals, and a table."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

LEVEL = 0.95
"""Confidence level of all intervals."""


class MeanInterval(NamedTuple):
    """A mean with its 95 % confidence interval and the standard deviation of the values."""

    mean: float
    low: float
    high: float
    std: float


def mean_interval(values: npt.ArrayLike) -> MeanInterval:
    """Mean ± t · std / √n of n values, with Student's t at 95 %; NaN ends where there is one value.

    >>> mean_interval([1.0, 2.0, 3.0])._asdict()
    {'mean': 2.0, 'low': -0.484..., 'high': 4.484..., 'std': 1.0}
    """
    x = np.asarray(values, dtype=np.float64)
    mean = float(x.mean())
    if x.size < 2:
        return MeanInterval(mean, np.nan, np.nan, np.nan)
    std = float(x.std(ddof=1))
    half = float(stats.t.isf((1 - LEVEL) / 2, x.size - 1)) * std / x.size**0.5
    return MeanInterval(mean, mean - half, mean + half, std)


@final
@dataclass(frozen=True, repr=False)
class FewShotResult:
    """Accuracies per method, number of shots and episode; all methods have the same episodes."""

    rows: pd.DataFrame
    """Columns method, n_shots, episode, accuracy."""
    baseline: str
    """The method that others are compared with."""

    def summary(self) -> pd.DataFrame:
        """Mean accuracies and paired differences to the baseline, each with its 95 % interval.

        One row per n_shots and method, with columns n_episodes, mean, std (over episodes), low, high, and
        difference, difference_low, difference_high: mean of accuracy − accuracy of the baseline in the same
        episode. Intervals are mean ± t · std / √n_episodes with Student's t. They cover the choice of
        episodes from the same rows, not other data nor another training of the embedding.
        """
        table = self.rows.pivot(index=["n_shots", "episode"], columns="method", values="accuracy")
        found = []
        for n_shots, accuracies in table.groupby(level="n_shots"):
            for method in self.rows["method"].unique():
                own: Any = accuracies[method].to_numpy()
                paired = own - accuracies[self.baseline].to_numpy()
                if method == self.baseline:
                    paired = np.full_like(own, np.nan)
                accuracy, difference = mean_interval(own), mean_interval(paired)
                found.append(
                    {
                        "method": method,
                        "n_shots": n_shots,
                        "n_episodes": len(own),
                        "mean": accuracy.mean,
                        "std": accuracy.std,
                        # Student's interval of few episodes may exceed the range of accuracies.
                        "low": float(np.clip(accuracy.low, 0, 1)),
                        "high": float(np.clip(accuracy.high, 0, 1)),
                        "difference": difference.mean,
                        "difference_low": difference.low,
                        "difference_high": difference.high,
                    }
                )
        return pd.DataFrame(found)

    def __str__(self) -> str:
        header = ("shots", "method", "accuracy", "95 % interval", f"− {self.baseline}", "95 % interval")
        lines = [header]
        for _, row in self.summary().iterrows():
            lines.append(
                (
                    str(row["n_shots"]),
                    str(row["method"]),
                    f"{row['mean']:.3f}",
                    _between(row["low"], row["high"], ".3f"),
                    "" if np.isnan(row["difference"]) else f"{row['difference']:+.3f}",
                    _between(row["difference_low"], row["difference_high"], "+.3f"),
                )
            )
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines]
        n = self.rows["episode"].nunique()
        return "\n".join(
            [f"Few-shot accuracy, {n} episode{'s' * (n != 1)}", *(line.rstrip() for line in text)]
        )

    __repr__ = __str__


def _between(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{low:{form}} … {high:{form}}"
