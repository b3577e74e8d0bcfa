"""Summaries: means and Student's confidence intervals, against SciPy's tests."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ebse.evaluation import FewShotResult, mean_interval

RNG = np.random.default_rng(2)
EASE = RNG.normal(size=20)
"""Easiness of an episode, common to all methods."""
ONE, TWO = (0.7 + 0.1 * EASE + 0.02 * RNG.normal(size=20) for _ in range(2))


def result(n_episodes: int = 20, baseline: str = "one") -> FewShotResult:
    rows = [
        (name, k, e, x[e] - k / 100)
        for k in (1, 5)
        for name, x in (("one", ONE), ("two", TWO))
        for e in range(n_episodes)
    ]
    return FewShotResult(pd.DataFrame(rows, columns=["method", "n_shots", "episode", "accuracy"]), baseline)


def test_summaries_are_those_of_students_tests() -> None:
    table = result().summary().set_index(["n_shots", "method"])
    assert len(table) == 4
    for k in (1, 5):
        for name, x in (("one", ONE), ("two", TWO)):
            row = table.loc[k, name]
            low, high = stats.ttest_1samp(x - k / 100, 0).confidence_interval(0.95)
            expected = [20, x.mean() - k / 100, np.std(x, ddof=1), low, high]
            np.testing.assert_allclose(row[["n_episodes", "mean", "std", "low", "high"]].to_list(), expected)
        low, high = stats.ttest_rel(TWO, ONE).confidence_interval(0.95)
        found = table.loc[k, "two"][["difference", "difference_low", "difference_high"]].to_list()
        np.testing.assert_allclose(found, [(TWO - ONE).mean(), low, high])
        assert np.isnan(table.loc[k, "one"]["difference"])


def test_intervals_are_clipped_to_the_range_of_accuracies() -> None:
    """Student's intervals of two episodes reach beyond 0 and 1."""
    rows = [
        {"method": name, "n_shots": 1, "episode": i, "accuracy": accuracy}
        for name, pair in (("low", (0.0, 0.1)), ("high", (0.9, 1.0)))
        for i, accuracy in enumerate(pair)
    ]
    found = FewShotResult(pd.DataFrame(rows), "low").summary().set_index("method")
    assert (found.loc["low", "low"], found.loc["high", "high"]) == (0, 1)
    assert (found["mean"] == [0.05, 0.95]).all()


def test_intervals_of_a_mean() -> None:
    low, high = stats.ttest_1samp(ONE, 0).confidence_interval(0.95)
    np.testing.assert_allclose(mean_interval(ONE), (ONE.mean(), low, high, ONE.std(ddof=1)))
    alone = mean_interval([0.5])
    assert alone.mean == 0.5
    assert np.isnan([alone.low, alone.high, alone.std]).all()


def test_an_unpaired_interval_is_wider() -> None:
    """The twin: without pairs the easiness of episodes hides the difference."""
    row = result().summary().set_index(["n_shots", "method"]).loc[1, "two"]
    unpaired = stats.ttest_ind(TWO, ONE).confidence_interval(0.95)
    assert row["difference_high"] - row["difference_low"] < 0.5 * (unpaired.high - unpaired.low)


def test_the_baseline_can_be_any_method() -> None:
    first, second = (result(baseline=name).summary().difference.dropna() for name in ("one", "two"))
    np.testing.assert_allclose(first, -second.to_numpy())


def test_one_episode_has_no_interval() -> None:
    table = result(1).summary()
    assert table[["std", "low", "high", "difference_low"]].isna().all(axis=None)
    assert "1 episode\n" in str(result(1))
    assert "nan" not in str(result(1))


@pytest.mark.parametrize("show", [str, repr])
def test_the_table_has_one_line_per_method(show: type[str]) -> None:
    title, header, *lines = show(result()).splitlines()
    assert title == "Few-shot accuracy, 20 episodes"
    assert " ".join(header.split()) == "shots method accuracy 95 % interval − one 95 % interval"
    assert [line.split()[:3] for line in lines] == [
        [str(k), name, f"{x.mean() - k / 100:.3f}"]
        for k in (1, 5)
        for name, x in (("one", ONE), ("two", TWO))
    ]
