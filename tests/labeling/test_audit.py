"""The blind audit: its interval, its rows, and that the model never learns from them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from ebse import FewLabelClassifier
from ebse.labeling.audit import LOOKS, MOST, PART, Audit, reserved
from ebse.labeling.model import Model, Task
from labeling.conftest import Entered, Opened
from labeling.pages import Page, digits, free_rows
from rendering import skip_rendering

Z = 1.959963984540054


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
@settings(max_examples=100, deadline=None)
def test_the_interval_solves_wilsons_equation(counts: tuple[int, int]) -> None:
    """Its ends are the accuracies π at which the answers are z standard errors off: |p − π| = z √(π(1−π)/n)."""
    n, right = counts
    low, high = Audit(n, right, 0.9, 400).interval
    p = right / n

    def off(accuracy: float) -> float:
        return (p - accuracy) ** 2 - Z**2 * accuracy * (1 - accuracy) / n

    # Where all are right or wrong, one end is 1 or 0 and solves it as well; the other one is meant.
    tiny = 1e-7
    assert low == (0 if right == 0 else pytest.approx(brentq(off, 0, p - tiny, xtol=1e-14), abs=1e-9))
    assert high == (1 if right == n else pytest.approx(brentq(off, p + tiny, 1, xtol=1e-14), abs=1e-9))


def test_words() -> None:
    assert Audit(0, 0, 0.9, 30).text == "No random checks yet: the accuracy is not known."
    assert Audit(1, 1, 0.9, 30).text == "1 of 1 random check right: between 21 and 100 %"
    assert Audit(50, 47, 0.9, 50).text == "47 of 50 random checks right: between 84 and 98 %"
    page = Audit(50, 50, 0.9, 200).described()
    assert page["enough_text"].startswith("Good enough: with 95 % confidence at least 90 %")
    assert (page["enough"], page["next_look"]) == (True, 100)
    page = Audit(50, 47, 0.9, 200).described()
    assert page["enough_text"] == "Not yet 90 % for sure. Label more, or check more."
    assert Audit(51, 51, 0.9, 200).described()["enough_text"] is None


def test_good_enough_is_said_at_few_numbers_of_answers() -> None:
    """Also where every answer is right; at other numbers the interval may be as good, but is not looked at."""
    assert [n for n in range(401) if Audit(n, n, 0.5, 400).enough] == [*LOOKS] == [25, 50, 100, 200, 400]
    assert Audit(26, 26, 0.5, 400).interval[0] > 0.5
    assert not any(Audit(n, n // 2, 0.95, 400).enough for n in range(401))
    assert [Audit(n, n, 0.9, 120).next_look for n in (0, 25, 99, 100)] == [25, 50, 100, None]


@given(n=st.integers(10, 3_000), seed=st.integers(0, 2**32), part=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_reserved_rows(n: int, seed: int, part: float) -> None:
    labeled = set(np.flatnonzero(np.random.default_rng(seed).random(n) < part).tolist())
    found = reserved(n, labeled, seed)
    assert found == reserved(n, labeled, seed)
    assert len(found) == len(set(found)) == min(MOST, n // PART, n - len(labeled))
    assert not set(found) & labeled
    assert all(0 <= row < n for row in found)


def test_reserved_rows_are_of_the_seed() -> None:
    assert reserved(1_000, set(), 0) != reserved(1_000, set(), 1)


def test_reserved_rows_are_random() -> None:
    """Every row is as likely as others: the mean of 200 draws of 100 of 500 rows, within five standard errors."""
    means = [np.mean(reserved(500, set(), seed)) for seed in range(200)]
    error = 500 / math.sqrt(12 * 100 * 200)
    assert abs(np.mean(means) - 249.5) < 5 * error


@contextmanager
def _watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, set[int]]]:
    """Rows that tasks hold and exclude, and rows that the classifier gets labels of."""
    seen: dict[str, set[int]] = {"tasks": set(), "labels": set()}
    learn, relabel = Model.learn, FewLabelClassifier.relabel

    def spied(self: Model, task: Task) -> None:
        seen["tasks"] |= task.labels.keys()
        learn(self, task)

    def relabeled(self: Any, *args: Any, **options: Any) -> Any:
        y = args[1] if len(args) > 1 else options.get("y")
        if y is not None:
            seen["labels"] |= {row for row, name in enumerate(y) if name is not None}
        return relabel(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Model, "learn", spied)
        patch.setattr(FewLabelClassifier, "relabel", relabeled)
        yield seen


def test_the_model_never_learns_from_the_audit(
    opened: Opened, entered: Entered, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, y = digits()
    skip_rendering(monkeypatch)
    with _watched(monkeypatch) as seen:
        made = opened()
        page, held = entered(made), made._session
        audit = set(held.audit_rows)
        free = free_rows(made)
        page.teach(free[:20], y)
        page.teach(held.audit_rows, y, by="audit")
        page.learned("all")
        model = made.model
        page.post("/api/doubtful")
        page.until(lambda _: not page.get("/api/doubtful")["running"])
        assert page.post("/api/export").status_code == 200
        made.close()
    assert seen["tasks"] == seen["labels"] == set(free[:20])
    assert not audit & seen["labels"]
    assert set(made.labels.index) == set(free[:20])
    assert len(model.classes_) == len({y[row] for row in free[:20]})


def test_audit_answers_change_the_estimate_alone(opened: Opened, entered: Entered) -> None:
    _, y = digits()
    made = opened()
    page, audit = entered(made), made._session.audit_rows
    page.teach(free_rows(made)[:20], y)
    before = page.learned("all")
    predicted = page.client.get("/api/predictions").content
    page.teach(audit[:-5], ["9" if name != "9" else "8" for name in y], by="audit")
    after = page.learned("all")
    assert page.client.get("/api/predictions").content == predicted
    assert before["audit"]["n"] == 0
    assert after["audit"]["n"] == len(audit) - 5 == 25
    assert after["audit"]["n_right"] <= 5
    assert "Not yet" in after["audit"]["enough_text"]
    # Only at 25: one more answer, and nothing is said.
    page.label(audit[-1], y[audit[-1]], by="audit")
    assert page.learned()["audit"]["enough_text"] is None


def _shown(page: Page) -> set[int]:
    """All rows that the page can show anywhere but in the audit."""
    rows = set()
    for how in ("suggest", "random"):
        rows |= {item["row"] for item in page.get("/api/next", how=how, n=300)["items"]}
    for one in page.state["classes"]:
        for how in ("typical", "uncertain", "random"):
            query = {"class": one["name"], "how": how, "n": 300}
            rows |= {item["row"] for item in page.get("/api/gallery", **query)["items"]}
    rows |= {item["row"] for item in page.get("/api/doubtful")["items"]}
    return rows


def test_rows_of_the_audit_are_shown_in_the_audit_alone(opened: Opened, entered: Entered) -> None:
    _, y = digits()
    made = opened()
    page = entered(made)
    audit, free = made._session.audit_rows, free_rows(made)
    page.until(lambda s: s["phase"] == "ready")
    assert _shown(page) == set(free)
    for row in free[:12]:
        page.label(row, y[row])
        assert not set(audit) & set(made._session.version.suggested if made._session.version else [])
    page.learned("all")
    # All others are shown, in the galleries or as next ones.
    assert _shown(page) == set(free)
    assert [item["row"] for item in page.get("/api/next", how="audit", n=300)["items"]] == audit
    assert page.client.get("/api/items", params={"rows": f"{free[0]},{audit[0]}"}).status_code == 400
    assert page.get("/api/items", rows=f"{free[0]}")["items"][0]["label"] == y[free[0]]
    for item in page.get("/api/next", how="audit")["items"]:
        assert not {"predicted", "probability", "label"} & item.keys()
    # On the map they have no class and no probability.
    n = len(y)
    sent = page.client.get("/api/predictions").content
    classes = np.frombuffer(sent[: 2 * n], "<u2")
    p, marks = np.frombuffer(sent[2 * n : 3 * n], np.uint8), np.frombuffer(sent[3 * n :], np.uint8)
    assert set(np.flatnonzero(marks == 2)) == set(audit)
    assert (classes[audit] == 65_535).all()
    assert (classes[free] < 65_535).all()
    assert set(np.flatnonzero(marks == 1)) == set(free[:12])
    assert (p[audit] == 0).all()
