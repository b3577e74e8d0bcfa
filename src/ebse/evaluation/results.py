"""Accuracies of a few-shot evaluation: rows, their summary, and a table to read."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from scipy import stats

LEVEL = 0.95
"""Of the intervals."""


@final
@dataclass(frozen=True, repr=False)
class FewShotResult:
    """Accuracies per method, number of shots and episode; every method saw the same episodes."""

    rows: pd.DataFrame
    """Columns method, n_shots, episode, accuracy."""
    baseline: str
    """The method that others are compared with."""

    def summary(self) -> pd.DataFrame:
        """Mean accuracy with its 95 % interval, and the paired difference to the baseline with its own.

        One row per n_shots and method, with columns n_episodes, mean, std (over episodes), low, high, and
        difference, difference_low, difference_high: mean of accuracy − accuracy of the baseline in the same
        episode. Intervals are mean ± t · std / √n_episodes with Student's t. They speak of other episodes
        from the same examples, not of other data or another training of the embedding.
        """
        table = self.rows.pivot(index=["n_shots", "episode"], columns="method", values="accuracy")
        found = []
        for n_shots, accuracies in table.groupby(level="n_shots"):
            for method in self.rows["method"].unique():
                own = accuracies[method].to_numpy()
                paired = own - accuracies[self.baseline].to_numpy()
                if method == self.baseline:
                    paired = np.full_like(own, np.nan)
                mean, std, low, high = _interval(own)
                difference, _, difference_low, difference_high = _interval(paired)
                found.append(
                    {
                        "method": method,
                        "n_shots": n_shots,
                        "n_episodes": len(own),
                        "mean": mean,
                        "std": std,
                        # Student's interval of few episodes does not know that accuracies end at 1.
                        "low": float(np.clip(low, 0, 1)),
                        "high": float(np.clip(high, 0, 1)),
                        "difference": difference,
                        "difference_low": difference_low,
                        "difference_high": difference_high,
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


def _interval(x: np.ndarray[Any, Any]) -> tuple[float, float, float, float]:
    """Mean, standard deviation, and the ends of Student's interval; NaN where one value has none."""
    mean = float(x.mean())
    if len(x) < 2:
        return mean, np.nan, np.nan, np.nan
    std = float(x.std(ddof=1))
    half = float(stats.t.isf((1 - LEVEL) / 2, len(x) - 1)) * std / len(x) ** 0.5
    return mean, std, mean - half, mean + half


def _between(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{low:{form}} … {high:{form}}"
