"""The blind audit: its interval, its rows, and that the model never learns from them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from ebse import FewLabelClassifier
from ebse.labeling.audit import LOOKS, MOST, PART, Z_LOOK, Audit, Look, reserved
from ebse.labeling.model import Model, Task
from ebse.workflow.accuracy import wilson
from labeling.conftest import Entered, Opened
from labeling.pages import Page, digits, free_rows
from rendering import skip_rendering

Z = 1.959963984540054


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
@settings(max_examples=100, deadline=None)
def test_the_interval_solves_wilsons_equation(counts: tuple[int, int]) -> None:
    """Its ends are the accuracies π at which the answers are z standard errors off: |p − π| = z √(π(1−π)/n)."""
    n, right = counts
    low, high = wilson(right, n, Z)
    p = right / n

    def off(accuracy: float) -> float:
        return (p - accuracy) ** 2 - Z**2 * accuracy * (1 - accuracy) / n

    # Where all are right or wrong, one end is 1 or 0 and solves it as well; the other one is meant.
    tiny = 1e-7
    assert low == (0 if right == 0 else pytest.approx(brentq(off, 0, p - tiny, xtol=1e-14), abs=1e-9))
    assert high == (1 if right == n else pytest.approx(brentq(off, p + tiny, 1, xtol=1e-14), abs=1e-9))


def test_words() -> None:
    assert Audit(0, 0, 0.9, 60).text == "No random checks yet: the accuracy is shown from 5 on."
    assert Audit(1, 0, 0.9, 60).text == "1 random check: the accuracy is shown from 5 on."
    assert Audit(50, 47, 0.9, 50).text == "47 of 50 random checks right: between 84 and 98 %"
    # Between steps the accuracy of the last step is shown.
    assert [Audit(n, 5, 0.9, 50).text for n in (5, 9)] == [
        "5 of 5 random checks right: between 57 and 100 %"
    ] * 2
    page = Audit(50, 50, 0.85, 200, look=Look(50, 50)).described()
    assert (
        page["enough_text"] == "Good enough: at least 85 % of the predictions are right, by a 98 % interval."
    )
    assert (page["enough"], page["next_look"]) == (True, 100)
    page = Audit(50, 47, 0.85, 200, look=Look(50, 47)).described()
    assert (page["enough"], page["enough_text"]) == (
        False,
        "Not yet 85 % for sure. Label more, or check more.",
    )
    assert Audit(50, 50, 0.85, 200).described()["enough_text"] is None


def test_a_target_out_of_reach() -> None:
    """Rows that are reserved may be too few for the target, however many of them are right."""
    assert [Audit(n, 0, 0.8, 120).next_look for n in (0, 25, 99, 100)] == [25, 50, 100, None]
    # 25 and 50 answers cannot show 95 %.
    assert Audit(0, 0, 0.95, 400).next_look == 200
    page = Audit(0, 0, 0.95, 120).described()
    assert page["enough_text"] == "A target of 95 % would need 200 random checks; 120 rows are reserved."
    assert page["next_look"] is None
    page = Audit(0, 0, 0.999, 400).described()
    assert (
        page["enough_text"] == "A target of 100 % is too high for 400 random checks; 400 rows are reserved."
    )


def false_alarm(target: float, looks: Sequence[int], z: float) -> float:
    """The exact probability that at one of the looks a model of the target's accuracy is called good enough."""
    left, before, alarm = np.ones(1), 0, 0.0
    for n in looks:
        left = np.convolve(left, stats.binom.pmf(np.arange(n - before + 1), n - before, target))
        hit = np.array([wilson(right, n, z)[0] >= target for right in range(n + 1)])
        alarm += float(left[hit].sum())
        left[hit], before = 0, n
    return alarm


def test_false_alarms_are_at_most_five_percent() -> None:
    targets = np.linspace(0.5, 0.99, 50).tolist()
    assert max(false_alarm(target, LOOKS, Z_LOOK) for target in targets) < 0.05
    # The twins that must fail: a look after every answer, and the 95 % interval.
    assert false_alarm(0.8, range(25, 401), Z_LOOK) > 0.05
    assert max(false_alarm(target, LOOKS, Z) for target in targets) > 0.05


@given(n=st.integers(10, 3_000), seed=st.integers(0, 2**32), part=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_reserved_rows(n: int, seed: int, part: float) -> None:
    labeled = set(np.flatnonzero(np.random.default_rng(seed).random(n) < part).tolist())
    found = reserved(n, labeled, seed)
    assert found == reserved(n, labeled, seed)
    assert len(found) == len(set(found)) == min(MOST, (n - len(labeled)) // PART)
    assert not set(found) & labeled
    assert all(0 <= row < n for row in found)


def test_reserved_rows_are_of_the_seed() -> None:
    assert reserved(1_000, set(), 0) != reserved(1_000, set(), 1)


def test_reserved_rows_are_random() -> None:
    """Every tenth of the rows is reserved as often as others: a chi-square test that fails once in a million.

    Counts of rows drawn without replacement vary less than those with it, on which the test is based.
    """

    def statistic(rows: list[int]) -> float:
        counts = np.bincount(np.array(rows) // 50, minlength=10)
        return float(((counts - counts.mean()) ** 2 / counts.mean()).sum())

    limit = stats.chi2.isf(1e-6, 9)
    assert statistic([row for seed in range(200) for row in reserved(500, set(), seed)]) < limit
    # The twin that must fail, although its mean is right.
    assert statistic(list(range(200, 300)) * 200) > limit


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
    made = opened(target=0.6)
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
    # Only at 25: one more answer changes nothing of that, and other labels end it.
    page.label(audit[-1], y[audit[-1]], by="audit")
    assert page.learned()["audit"]["enough_text"] == after["audit"]["enough_text"]
    page.label(free_rows(made)[30], "1")
    assert page.learned()["audit"]["enough_text"] is None
    made.close()
    page = entered(opened(target=0.6))
    page.send("undo")
    assert page.learned()["audit"]["enough_text"] == after["audit"]["enough_text"]


def test_a_row_of_the_audit_may_be_left_out(opened: Opened, entered: Entered) -> None:
    made = opened()
    page, audit = entered(made), made._session.audit_rows
    page.send("skip", rows=audit[:1])
    page.send("unsure", rows=audit[1:2])
    assert [item["row"] for item in page.get("/api/next", how="audit", n=300)["items"]] == audit[2:]
    assert page.state["audit"]["unjudged"] == 2
    page.send("undo")
    assert page.get("/api/next", how="audit")["items"][0]["row"] == audit[1]


def test_a_better_version_is_offered(opened: Opened, entered: Entered) -> None:
    """Right labels, then wrong ones: restoring gives the labels of before, by the names of now."""
    X, y = digits(400)
    made = opened(X)
    page, audit = entered(made), made._session.audit_rows
    free = free_rows(made)
    page.teach(free[:60], y)
    page.learned("all")
    page.teach(audit[:30], y, by="audit")
    assert page.learned("all")["best"] is None
    before = made.labels
    page.send("rename", of="0", name="zero")
    page.send("label", rows=free[:55], of="1", by="gallery")
    best = page.learned("all")["best"]
    assert best["text"].startswith("With 60 labels, ")
    page.send("restore", event=best["event"])
    assert made.labels.to_dict() == before.replace("0", "zero").to_dict()
    assert page.learned("all")["best"] is None


def test_advice_comes_when_labels_change_nothing(opened: Opened, entered: Entered) -> None:
    X, y = digits(400)
    made = opened(X)
    page, free = entered(made), free_rows(made)
    assert page.state["advice"] is page.state["labels_per_minute"] is None
    page.teach(free[:-12], y)
    page.learned("all")
    for row in free[-12:]:
        page.label(row, y[row])
        page.learned()
    state = page.learned("all")
    assert "Check random rows now" in state["advice"]
    assert state["labels_per_minute"] > 0
    page.teach(made._session.audit_rows[:25], y, by="audit")
    assert "hardly change" in page.learned()["advice"]


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
