"""The server of the labeling page: events, what follows from them, several tabs, and the export."""

import csv
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.lines import ran
from ebse import FewLabelClassifier
from ebse.labeling import Labeling
from ebse.labeling.export import DOWNLOADS
from labeling.conftest import Entered, Opened
from labeling.pages import Page, digits, free_rows, key, logged
from rendering import skip_rendering

X, Y = digits()


@pytest.fixture(autouse=True)
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of the exported page are made, but not rendered, which takes most of the time."""
    skip_rendering(monkeypatch)


def by_class(made: Labeling, n: int) -> list[int]:
    """The first n free rows of each class."""
    rows = free_rows(made)
    return [row for c in sorted(set(Y)) for row in [r for r in rows if Y[r] == c][:n]]


# Events


def test_an_event_is_applied_once(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened()
    page, row = entered(made), free_rows(made)[0]
    sent = {"type": "label", "rows": [row], "class": "a", "from": "own", "key": key()}
    first = page.post("/api/event", sent).json()
    # The answer was lost, and other events came before the browser sent it again.
    page.label(row, "b")
    again = page.post("/api/event", sent).json()
    assert first["id"] == again["id"] == 0
    assert again["state"]["n_events"] == 2
    assert made.labels.to_dict() == {row: "b"}
    assert [line["id"] for line in logged(tmp_path / "run")] == [0, 1]
    # The same event with a key of its own is another one.
    assert page.post("/api/event", sent | {"key": key()}).json()["id"] == 2
    assert made.labels.to_dict() == {row: "a"}


def test_an_event_that_is_sent_many_times_at_once(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened()
    page, row = entered(made), free_rows(made)[0]
    sent = {"type": "label", "rows": [row], "class": "a", "from": "own", "key": key()}
    ids: list[int] = []

    def post() -> None:
        ids.append(page.post("/api/event", sent).json()["id"])

    threads = [threading.Thread(target=post) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert ids == [0] * 8
    assert len(logged(tmp_path / "run")) == 1


@pytest.mark.parametrize("bad", [None, "short", "x" * 65, 12345678, ["12345678"]])
def test_keys_are_texts(bad: Any, opened: Opened, entered: Entered, tmp_path: Path) -> None:
    page = entered(opened())
    answer = page.post("/api/event", {"type": "class", "name": "a", "key": bad})
    assert answer.status_code == 400
    assert "key must be" in answer.json()["error"]
    assert logged(tmp_path / "run") == []


def test_an_event_is_on_the_disk_when_it_is_answered(
    opened: Opened, entered: Entered, tmp_path: Path
) -> None:
    made = opened()
    page = entered(made)
    for n, row in enumerate(free_rows(made)[:5]):
        found = page.label(row, Y[row])
        [line] = logged(tmp_path / "run")[n:]
        assert (line["kind"], line["id"]) == ("event", found["id"] == n and n)
        assert (line["rows"], line["class"], line["from"]) == ([row], Y[row], "own")


def test_labels_grow_and_are_taken_back(opened: Opened, entered: Entered) -> None:
    made = opened()
    page, rows = entered(made), free_rows(made)
    assert made.labels.empty
    assert made.model is None
    page.label(rows[3], "b")
    page.label(rows[1], "a")
    pd.testing.assert_series_equal(
        made.labels, pd.Series({rows[1]: "a", rows[3]: "b"}, dtype=object, name="label")
    )
    assert "2 labels" in repr(made)
    page.send("unlabel", rows=[rows[3]])
    assert made.labels.to_dict() == {rows[1]: "a"}
    assert page.send("undo")["state"]["n_labels"] == 2
    assert page.send("undo")["state"]["n_labels"] == 1
    state = page.send("undo")["state"]
    assert (state["n_labels"], state["can_undo"], state["classes"]) == (0, False, [])
    refused = page.post("/api/event", {"type": "undo", "key": key()})
    assert (refused.status_code, "nothing to undo" in refused.text) == (400, True)


def test_skipped_and_unsure_rows_are_not_shown_again(opened: Opened, entered: Entered) -> None:
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.send("skip", rows=rows[:2])
    state = page.send("unsure", rows=rows[2:5])["state"]
    assert (state["n_skipped"], state["n_unsure"]) == (2, 3)
    page.until(lambda s: s["phase"] == "ready" and s["n_events_seen"] == 2)
    for how in ("suggest", "random"):
        shown = [item["row"] for item in page.get("/api/next", how=how, n=300)["items"]]
        assert sorted(shown) == rows[5:]
    page.label(rows[0], "a")
    assert page.state["n_skipped"] == 1
    page.send("undo")
    page.send("undo")
    assert page.state["n_unsure"] == 0


def test_classes_are_added_renamed_and_merged(opened: Opened, entered: Entered) -> None:
    made = opened(classes=["cat", "dog"])
    page, rows = entered(made), free_rows(made)
    assert [c["name"] for c in page.state["classes"]] == ["cat", "dog"]
    page.send("class", name="horse")
    page.send("label", rows=rows[:2], of="dog", by="gallery")
    page.label(rows[2], "cat")
    page.send("rename", of="dog", name="wolf")
    assert made.labels.to_dict() == {rows[0]: "wolf", rows[1]: "wolf", rows[2]: "cat"}
    state = page.send("rename", of="wolf", name="cat")["state"]
    assert {c["name"]: c["n_labels"] for c in state["classes"]} == {"cat": 3, "horse": 0}
    state = page.send("undo")["state"]
    assert {c["name"]: c["n_labels"] for c in state["classes"]} == {"cat": 1, "wolf": 2, "horse": 0}


def test_labels_that_rows_came_with(opened: Opened, entered: Entered) -> None:
    """Their names are as they are, also where the page would not accept them for a new class."""
    names = ["two  words", " padded", "tab\there", "x" * 300]
    y = [names[row % 4] if row < 8 else None for row in range(len(X))]
    made = opened(X, y)
    page = entered(made)
    assert sorted(c["name"] for c in page.state["classes"]) == sorted(names)
    row = next(row for row in free_rows(made) if row > 8)
    for name in names:
        page.label(row, name)
        assert made.labels[row] == name
    assert sorted(c["name"] for c in page.state["classes"]) == sorted(names)
    page.send("rename", of=names[0], name="words")
    assert made.labels[0] == "words"


def test_classes_and_labels_that_are_numbers(opened: Opened, entered: Entered) -> None:
    y = pd.Series(np.arange(len(X)) % 3).astype("Int64")
    y[5:] = pd.NA
    made = opened(X, y, classes=range(3))
    assert [c["name"] for c in entered(made).state["classes"]] == ["0", "1", "2"]
    assert made.labels.to_dict() == {0: "0", 1: "1", 2: "2", 3: "0", 4: "1"}


def test_history_and_restore(opened: Opened, entered: Entered) -> None:
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.label(rows[0], "a")
    page.send("label", rows=rows[1:4], of="b", by="map")
    page.send("undo")
    page.send("class", name="c")
    page.send("restore", event=1)
    page.label(made._session.audit_rows[0], "a", by="audit")
    events = page.get("/api/history")["events"]
    assert [e["id"] for e in events] == [5, 4, 3, 2, 1, 0]
    assert [e["text"] for e in events] == [
        f"audit: labeled row {made._session.audit_rows[0] + 1} as a",
        "restored the labels after event 2",
        "new class c",
        "undid event 2",
        "labeled 3 rows as b",
        f"labeled row {rows[0] + 1} as a",
    ]
    assert [e["id"] for e in events if e["undone"]] == [1]
    assert [e["id"] for e in events if e["can_undo"]] == [5, 4, 3, 0]
    assert len(made.labels) == 4


# Several tabs


def test_two_tabs_have_the_same_state(opened: Opened, entered: Entered) -> None:
    made = opened()
    one, two = entered(made), entered(made)
    one.until(lambda s: s["phase"] == "ready" and s["map"])
    rows = free_rows(made)
    states = two.stream()
    assert next(states)["n_labels"] == 0
    one.label(rows[0], "a")
    assert next(s for s in states if s["n_labels"])["n_events"] == 1
    two.label(rows[1], "b")
    last = next(s for s in states if s["members"] == "all" and s["n_events_seen"] == 2)
    # One more version may follow, with other rows to label next.
    states_now = [last, one.state, two.state]
    versions = [state.pop("version") for state in states_now]
    assert states_now == [last] * 3
    assert versions == sorted(versions)
    assert {c["name"]: c["n_labels"] for c in last["classes"]} == {"a": 1, "b": 1}


def test_events_of_a_tab_that_is_behind_are_applied_once(opened: Opened, entered: Entered) -> None:
    """Both label the same row; the later one counts, and undo takes back the last event of either."""
    made = opened()
    one, two = entered(made), entered(made)
    row = free_rows(made)[0]
    two.state  # noqa: B018
    one.label(row, "a")
    assert two.label(row, "b")["id"] == 1
    assert made.labels.to_dict() == {row: "b"}
    one.send("undo")
    assert made.labels.to_dict() == {row: "a"}


def test_streams_end_with_the_server(opened: Opened, entered: Entered) -> None:
    made = opened()
    states = entered(made).stream()
    assert next(states)["n_rows"] == len(X)
    made.close()
    assert all(s["n_labels"] == 0 for s in states)


# What follows


def test_predictions_follow_labels(opened: Opened, entered: Entered) -> None:
    made = opened()
    page = entered(made)
    taught = by_class(made, 2)
    page.teach(taught, Y)
    state = page.learned("all")
    assert abs(sum(c["share"] for c in state["classes"]) - 1) < 1e-6
    others = [row for row in free_rows(made) if row not in taught]
    items = page.get("/api/items", rows=",".join(map(str, others)))["items"]
    assert np.mean([item["predicted"] == Y[item["row"]] for item in items]) > 0.7
    assert all(0 < item["probability"] <= 1 and item["label"] is None for item in items)
    [item] = page.get("/api/items", rows=str(taught[0]))["items"]
    assert item["label"] == Y[taught[0]]
    # As the model of the handle says.
    model = made.model
    assert isinstance(model, FewLabelClassifier)
    assert model.predict(X[others]).tolist() == [item["predicted"] for item in items]


def test_the_gallery_has_orders(opened: Opened, entered: Entered) -> None:
    made = opened()
    page = entered(made)
    page.teach(by_class(made, 2), Y)
    page.learned("all")
    found = {
        how: page.get("/api/gallery", **{"class": "0", "how": how, "n": 300})["items"]
        for how in ("typical", "uncertain", "random")
    }
    # Labeled rows come last: they are as certain as can be, and known.
    for how, sign in (("typical", -1), ("uncertain", 1)):
        keys = [(item["label"] is not None, sign * item["probability"]) for item in found[how]]
        assert len(keys) > 5
        assert keys == sorted(keys)
        assert keys[-1][0]
    assert len({frozenset(item["row"] for item in items) for items in found.values()}) == 1
    assert all(item["predicted"] == "0" for item in found["random"])
    assert len(page.get("/api/gallery", **{"class": "0", "n": 3})["items"]) == 3


def test_wrong_labels_are_most_doubtful(opened: Opened, entered: Entered) -> None:
    """By label propagation from the others, after all members have learned from the wrong labels, too."""
    more, names = digits(300)
    made = opened(more, shape=(8, 8))
    page = entered(made)
    rows = free_rows(made)[:40]
    wrong = {row: str((int(names[row]) + 3) % 10) for row in rows[::14]}
    assert len(wrong) == 3
    page.teach(rows, [wrong.get(row, name) for row, name in enumerate(names)])
    page.learned("all")
    assert page.get("/api/doubtful")["items"] == []
    found = doubtful(page)
    assert found["done"] == found["total"] == len(rows)
    # Among the first; a few right ones are odd digits, such as the 5 of row 5, which looks like a 9.
    first = {item["row"]: item["label"] for item in found["items"][:6]}
    assert wrong.items() <= first.items()
    assert len(found["items"]) < len(rows) / 2
    for item in found["items"]:
        assert item["predicted"] != item["label"]
        assert item["own_probability"] < 0.5
    # A corrected label is not the doubtful one any more.
    page.teach(list(wrong), names)
    assert not wrong.keys() & {item["row"] for item in page.get("/api/doubtful")["items"]}
    page.learned()
    assert all(item["label"] == names[item["row"]] for item in doubtful(page)["items"])


def doubtful(page: Page) -> Any:
    """Labels in doubt, once all were left out."""
    page.post("/api/doubtful")
    page.until(lambda _: not page.get("/api/doubtful")["running"])
    return page.get("/api/doubtful")


def test_the_map_has_a_place_for_each_row(opened: Opened, entered: Entered) -> None:
    made = opened()
    page = entered(made)
    page.until(lambda s: s["map"])
    held = page.client.get("/api/map")
    assert held.headers["content-type"] == "application/octet-stream"
    assert len(held.content) == 4 * len(X)
    # Before there are two classes no row has one but those with a label.
    row = free_rows(made)[0]
    page.label(row, "a")
    sent = page.client.get("/api/predictions").content
    assert len(sent) == 4 * len(X)
    classes = np.frombuffer(sent[: 2 * len(X)], "<u2")
    assert set(np.flatnonzero(classes != 65_535)) == {row}


def test_wait_and_close(opened: Opened) -> None:
    made = opened()
    assert made.wait(0) is made
    waiting = threading.Thread(target=made.wait)
    waiting.start()
    made.close()
    waiting.join(60)
    assert not waiting.is_alive()
    made.close()


# Export


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def exported(page: Page) -> Any:
    """An export while the model rests: filters of warnings, here errors, are those of all threads."""
    page.learned("all")
    page.until(lambda s: s["map"])
    answer = page.post("/api/export")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_export_is_a_model_for_predict(
    opened: Opened,
    entered: Entered,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.save(tmp_path / "rows.npy", X[:120])
    np.save(tmp_path / "new.npy", X[120:])
    made = opened(tmp_path / "rows.npy", shape=(8, 8))
    page = entered(made)
    assert page.client.get("/download/predictions.csv").status_code == 404
    early = page.post("/api/export")
    assert (early.status_code, "two classes" in early.text or "must wait" in early.text) == (400, True)
    taught = by_class(made, 2)
    taught = [row for row in taught if row < 120]
    page.teach(taught, Y, by="suggest")
    audit = made._session.audit_rows
    page.teach(audit, Y, by="audit")
    state = page.learned("all")
    found = exported(page)
    place = tmp_path / "run" / "export"
    assert found["folder"] == str(place)
    assert found["command"] == f"ebse predict {place} OTHER-DATA"
    assert {one["name"] for one in found["files"]} == set(DOWNLOADS)
    for one in found["files"]:
        answer = page.client.get(f"/download/{one['name']}")
        assert len(answer.content) == one["bytes"]
        assert answer.headers["content-disposition"] == f'attachment; filename="{one["name"]}"'
        assert answer.headers["content-type"] == "application/octet-stream"
    # Labels, with how each row was chosen.
    header, *rows = table(place / "labels.csv")
    assert header == ["row", "label", "chosen by"]
    # Numbered as in the predictions.
    expected = {f"{row + 1}": (Y[row], "suggest") for row in taught}
    expected |= {f"{row + 1}": (Y[row], "audit") for row in audit}
    assert {name: (label, by) for name, label, by in rows} == expected
    # Predictions of all rows, as they were on the page.
    header, *rows = table(place / "predictions.csv")
    assert len(rows) == 120
    at = header.index("predicted")
    shown = audit[: len(audit) // 5 * 5]
    assert sum(rows[row][at] == Y[row] for row in shown) == state["audit"]["n_right"]
    # The command that the page names.
    made.close()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert ran(f"predict '{place}' new.npy --json", monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)
    model = FewLabelClassifier.load(place / "model.safetensors")
    assert model.predict(X[120:]).shape == (30,)


def test_names_of_classes_are_no_formulas(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened()
    page = entered(made)
    page.teach(free_rows(made)[:30], ["=1+1" if name < "5" else "@x" for name in Y])
    exported(page)
    place = tmp_path / "run" / "export"
    for name in ("predictions.csv", "labels.csv"):
        cells = {cell for line in table(place / name) for cell in line}
        assert any("=1+1" in cell for cell in cells)
        assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell]


def test_an_export_replaces_the_one_before(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    made = opened()
    page, rows = entered(made), free_rows(made)
    page.teach(rows[:20], Y)
    exported(page)
    page.send("label", rows=rows[20:25], of="new", by="gallery")
    exported(page)
    names = [line[1] for line in table(tmp_path / "run" / "export" / "labels.csv")]
    assert names.count("new") == 5
    assert not [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".export")]


def test_how_rows_were_chosen_follows_undo(opened: Opened, entered: Entered, tmp_path: Path) -> None:
    """A label that came back by an undo was chosen as it was at first."""
    y = [name if row < 2 else None for row, name in enumerate(Y)]
    made = opened(X, y)
    page = entered(made)
    row = next(row for row in free_rows(made) if row > 1)
    page.label(row, "5", by="suggest")
    for at in (0, row):
        page.label(at, "7", by="gallery")
        page.send("undo")
    exported(page)
    chosen = {line[0]: line[1:] for line in table(tmp_path / "run" / "export" / "labels.csv")}
    assert chosen[f"{row + 1}"] == ["5", "suggest"]
    assert chosen["1"] == [Y[0], "file"]


def test_two_exports_at_once(opened: Opened, entered: Entered) -> None:
    made = opened()
    page = entered(made)
    page.teach(free_rows(made)[:10], Y)
    page.learned("all")
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(page.post("/api/export").status_code)) for _ in range(2)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert codes == [200] * 2


def test_an_export_of_a_table_with_a_column_named_label(
    opened: Opened, entered: Entered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"label": rng.normal(size=60), "x": rng.normal(size=60)})
    made = opened(frame)
    page, rows = entered(made), free_rows(made)
    page.teach(rows[:20], ["a" if x > 0 else "b" for x in frame["x"]])
    place = exported(page)["folder"]
    frame.to_csv(tmp_path / "more.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert ran(f"predict '{place}' more.csv --out found.csv", monkeypatch) == 0
    assert len(table(tmp_path / "found.csv")) == 61


def test_suggested_rows_alternate_with_random_ones(opened: Opened, entered: Entered) -> None:
    """Once five labels have brought no new class; the first rows are chosen to cover all clusters."""
    made = opened()
    page = entered(made)

    def suggested() -> list[int]:
        version = made._session.version
        assert version is not None
        return version.suggested[:6]

    def following() -> list[int]:
        return [item["row"] for item in page.get("/api/next", how="suggest", n=6)["items"]]

    def at_random() -> list[int]:
        return [item["row"] for item in page.get("/api/next", how="random", n=6)["items"]]

    free = free_rows(made)
    page.teach(free[:10], Y)
    page.learned("all")
    assert following() == suggested()
    for row in free[10:18]:
        page.label(row, Y[free[0]])
    page.learned("all")
    n = len(made.labels) % 2
    mixed = following()
    others = [row for row in at_random() if row not in suggested()]
    assert mixed[n::2] == suggested()[:3]
    assert mixed[1 - n :: 2] == others[:3]
