"""The labeling page in Chromium: a person who knows the digits labels them by keys, from nothing."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from ebse.labeling.handle import Labeling, opened
from ebse.labeling.opening import session_on_file, session_on_rows
from ebse.labeling.session import Session
from ebse.workflow.fit_config import FitConfig

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LIMIT = 60_000
"""Milliseconds after which something never happens."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium is installed (Debian: apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Oracle:
    """Somebody who knows all classes, at the keyboard."""

    def __init__(self, page: Any, handle: Labeling, y: Any) -> None:
        self.page, self.handle, self.names = page, handle, [f"digit {c}" for c in y]
        self.known: list[str] = []

    def wait(self, selector: str) -> None:
        self.page.wait_for_selector(selector, state="attached", timeout=LIMIT)

    def row(self) -> str:
        self.wait("#example[data-row]")
        return str(self.page.get_attribute("#example", "data-row"))

    def label(self) -> None:
        """Give the example its class, by one key or by the name of a new class."""
        row = self.row()
        name = self.names[int(row)]
        if name in self.known:
            self.page.keyboard.press(str((self.known.index(name) + 1) % 10))
        else:
            if self.known:
                self.page.keyboard.press("n")
            self.page.fill("#new-class-name", name)
            self.page.press("#new-class-name", "Enter")
            self.known.append(name)
        self.wait(f'#example[data-row]:not([data-row="{row}"])')
        self.settle()

    def answer(self, key: str) -> int:
        """Answer the example by one key. Its row."""
        row = self.row()
        self.page.keyboard.press(key)
        self.wait(f'#example[data-row]:not([data-row="{row}"])')
        self.settle()
        return int(row)

    def settle(self) -> None:
        """Wait until nothing is being saved, and predictions have learned from all events."""
        self.page.wait_for_function(
            "() => !document.getElementById('status').textContent.includes('saving')", timeout=LIMIT
        )
        self.page.wait_for_function(
            "(n) => Number(document.body.dataset.seen) >= n",
            arg=len(self.handle._session.events),
            timeout=LIMIT,
        )

    def accuracy(self) -> float:
        version = self.handle._session.version
        assert version is not None
        if not version.classes:
            return 0.0
        found = np.array(version.classes, dtype=object)[version.predicted]
        return float((found == np.array(self.names, dtype=object)).mean())


def visit(chromium: Any, handle: Labeling, **options: Any) -> tuple[Any, list[str], list[str]]:
    """The page, and lists of messages and of addresses that will be filled."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800}, **options)
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(handle.url)
    return page, messages, requests


def digits(folder: Path, n: int = 120, **options: Any) -> tuple[Session, Any]:
    """A session on images of digits, and their classes."""
    X, y = load_digits(return_X_y=True)
    return session_on_rows(X[:n].reshape(-1, 8, 8), name="digits", folder=folder, **options), y[:n]


def label(session: Session, rows: list[int], name: str) -> None:
    """A label that another page gives."""
    event = {"type": "label", "rows": rows, "class": name, "from": "own", "key": uuid.uuid4().hex}
    session.add(event)


def test_an_oracle_labels_digits_by_keys(chromium: Any, tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    np.save(tmp_path / "digits.npy", X)
    config = FitConfig(data=str(tmp_path / "digits.npy"))
    session = session_on_file(config, folder=tmp_path / "run", shape=(8, 8))
    with opened(session, port=0, browser=False) as handle:
        page, messages, requests = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.wait('body[data-phase="ready"]')
        reached: dict[float, int] = {}
        while 0.97 not in reached and len(handle.labels) < 41:
            oracle.label()
            for goal in (0.9, 0.97):
                if oracle.accuracy() >= goal:
                    reached.setdefault(goal, len(handle.labels))
        assert reached[0.9] <= 20
        assert reached[0.97] <= 40

        # Undo shows the example again, and takes the label back.
        n = len(handle.labels)
        last = page.get_attribute("#example", "data-row")
        oracle.label()
        page.keyboard.press("Backspace")
        oracle.wait(f'#example[data-row="{last}"]')
        oracle.settle()
        assert len(handle.labels) == n

        # A reload loses nothing.
        page.reload()
        oracle.wait("#classes [data-class]")
        assert page.locator("#classes [data-class]").count() == len(oracle.known)
        assert len(handle.labels) == n

        # Audit: blind, never learned from.
        page.keyboard.press("a")
        for _ in range(5):
            row = int(oracle.row())
            assert row in session.audit_rows
            assert str(session.items.name(row)).lower() in page.inner_text("#example").lower()
            oracle.label()
        assert len(handle.labels) == n
        assert "5 random checks right" in page.inner_text("#audit-text")
        page.keyboard.press("a")

        # The gallery relabels several rows by one event, which one undo takes back.
        page.click("#tab-gallery")
        page.select_option("#gallery-class", oracle.known[0])
        cards = page.locator("#gallery-grid [data-row]")
        cards.first.wait_for()
        for i in range(3):
            cards.nth(i).click()
        n_events = len(session.events)
        page.keyboard.press("2")
        oracle.settle()
        assert len(session.events) == n_events + 1
        assert set(session.events[-1]["rows"]) <= {
            row for row in range(len(y)) if row not in session.audit_rows
        }
        assert len(session.events[-1]["rows"]) == 3
        page.click("#tab-history")
        page.locator("#history-list button").first.click()
        oracle.settle()
        assert len(handle.labels) == n

        # The lasso opens rows of the map in the gallery.
        page.click("#tab-map")
        box = page.locator("#map-canvas").bounding_box()
        assert box is not None
        oracle.wait("#map-message:empty")
        corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.02)]
        for i, (x, z) in enumerate(corners):
            page.mouse.move(box["x"] + x * box["width"], box["y"] + z * box["height"], steps=5)
            if i == 0:
                page.mouse.down()
        page.mouse.up()
        page.locator("#gallery-grid [data-row]").first.wait_for()
        shown = {int(str(card.get_attribute("data-row"))) for card in cards.all()}
        assert shown
        assert not shown & set(session.audit_rows)
        for i in range(2):
            cards.nth(i).click()
        chosen = [int(str(cards.nth(i).get_attribute("data-row"))) for i in range(2)]
        page.keyboard.press("3")
        oracle.settle()
        event = session.events[-1]
        assert (event["type"], event["rows"], event["from"]) == ("label", chosen, "map")
        assert handle.labels[chosen].tolist() == [oracle.known[2]] * 2
        page.keyboard.press("Backspace")
        oracle.settle()
        assert len(handle.labels) == n

        page.click("#tab-export")
        page.click("#export-button")
        page.locator("a[href='/download/predictions.csv']").wait_for(timeout=LIMIT)
        with page.expect_download() as download:
            page.click("a[href='/download/predictions.csv']")
        predictions = pd.read_csv(download.value.path())
        assert (predictions["predicted"] == oracle.names).mean() > 0.9
        page.close()
    assert messages == []
    base = f"http://127.0.0.1:{handle._server.port}/"
    assert [url for url in requests if not url.startswith(base)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 640, 1280])
def test_the_page_fits(width: int, scheme: str, chromium: Any, tmp_path: Path) -> None:
    """Also at 200 % zoom of 1280 pixels, which is 640."""
    X, _ = load_digits(return_X_y=True)
    session = session_on_rows(X[:100].reshape(-1, 8, 8), name="digits", folder=tmp_path / "run")
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle, color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_selector("#example[data-row]", timeout=LIMIT)
        for tab in ("label", "map", "gallery", "doubtful", "history", "export"):
            page.click(f"#tab-{tab}")
            wide = page.evaluate("() => document.documentElement.scrollWidth > window.innerWidth")
            assert not wide, tab
        unnamed = page.evaluate(
            "() => [...document.querySelectorAll('button, input, select, canvas, img')].filter((e) => "
            "!(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || "
            "e.alt !== undefined && e.hasAttribute('alt') || (e.labels && e.labels.length) || e.title))"
            ".map((e) => e.outerHTML.slice(0, 100))"
        )
        assert unnamed == []
        page.close()
    assert messages == []


def test_hostile_cells_are_inert(chromium: Any, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    frame = pd.DataFrame({"note": [f"{hostile} {'long ' * 20} {i}" for i in range(40)], "x": range(40)})
    session = session_on_rows(frame, name=f"{hostile}.csv", folder=tmp_path / "run", classes=[hostile, "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, requests = visit(chromium, handle)
        page.wait_for_selector("#example[data-row]", timeout=LIMIT)
        assert "<img src=x" in page.inner_text("#example")
        page.keyboard.press("1")
        page.wait_for_selector('body[data-saved="1"]', state="attached", timeout=LIMIT)
        for tab in ("gallery", "history", "map", "doubtful", "export"):
            page.click(f"#tab-{tab}")
        assert page.title() != "taken"
        assert page.locator("#example img, #classes img, #history-list img").count() == 0
        page.close()
    assert messages == []
    assert not [url for url in requests if url.endswith("/x")]


def test_two_tabs_show_the_same(chromium: Any, tmp_path: Path) -> None:
    X, _ = load_digits(return_X_y=True)
    session = session_on_rows(X[:100], name="digits", folder=tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        first, _, _ = visit(chromium, handle)
        second, _, _ = visit(chromium, handle)
        for page in (first, second):
            page.wait_for_selector("#example[data-row]", timeout=LIMIT)
        first.bring_to_front()
        first.keyboard.press("1")
        second.wait_for_selector('body[data-saved="1"]', state="attached", timeout=LIMIT)
        assert "1 label" in second.inner_text("#classes [data-class='a']")
        first.close()
        second.close()


def test_skip_and_unsure_by_key(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        skipped, unsure = oracle.answer("s"), oracle.answer("u")
        assert (session.answers.skipped, session.answers.unsure) == ({skipped}, {unsure})
        assert "1 skipped, 1 unsure" in page.inner_text("#counts")
        for row in (unsure, skipped):
            page.keyboard.press("Backspace")
            oracle.wait(f'#example[data-row="{row}"]')
        oracle.settle()
        assert not session.answers.skipped | session.answers.unsure
        assert handle.labels.empty
        page.close()
    assert messages == []


def test_audit_rows_that_cannot_be_judged(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.row()
        page.keyboard.press("a")
        oracle.wait("#audit-notice:not([hidden])")
        assert {oracle.answer("s"), oracle.answer("u")} == set(session.audit_rows[:2])
        page.wait_for_function(
            "() => document.getElementById('audit-unjudged').innerText === '2 could not be judged.'",
            timeout=LIMIT,
        )
        assert int(oracle.row()) == session.audit_rows[2]
        page.close()
    assert messages == []


def test_single_key_shortcuts_can_be_switched_off(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)

        def switch() -> None:
            page.click("#help-button")
            page.focus("#shortcuts-on")
            page.keyboard.press("Space")
            page.keyboard.press("Escape")

        def nothing_happens() -> None:
            row = oracle.row()
            for key in ("1", "s", "u", "n", "a", "/", "m", "?", "Backspace"):
                page.keyboard.press(key)
            assert oracle.row() == row
            assert page.locator("dialog[open], #new-class-form:visible, #panel-map:visible").count() == 0

        oracle.wait("#classes [data-class]")
        switch()
        nothing_happens()
        page.reload()
        oracle.wait("#classes [data-class]")
        assert not page.is_checked("#shortcuts-on")
        nothing_happens()
        switch()
        # Events are saved in order: one of before would be the first.
        row = oracle.answer("1")
        assert len(session.events) == 1
        assert handle.labels.to_dict() == {row: "a"}
        page.close()
    assert messages == []


def test_a_class_is_found_by_typing(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["ham", "spam", "eggs"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        dialog = page.locator("#find")
        row = oracle.row()
        page.keyboard.press("/")
        page.keyboard.type("sp")
        page.keyboard.press("Enter")
        oracle.wait(f'#example[data-row]:not([data-row="{row}"])')
        oracle.settle()
        assert handle.labels.to_dict() == {int(row): "spam"}

        # One class begins with the letter of a shortcut: its name without "/" labels nothing.
        page.keyboard.press("e")
        assert not dialog.is_visible()
        page.keyboard.type("spam")
        page.keyboard.press("Enter")
        assert not dialog.is_visible()
        page.keyboard.press("l")
        page.keyboard.press("a")
        assert page.is_checked("#how-suggest")
        oracle.settle()
        assert len(handle.labels) == 1

        session.add({"type": "rename", "class": "spam", "name": "ham", "key": "of another page"})
        oracle.wait("#classes:not(:has([data-class='spam']))")
        row = oracle.row()
        page.keyboard.type("eg")
        assert dialog.is_visible()
        page.keyboard.press("Enter")
        oracle.wait(f'#example[data-row]:not([data-row="{row}"])')
        oracle.settle()
        assert handle.labels[int(row)] == "eggs"
        page.close()
    assert messages == []


def test_one_undo_takes_back_a_new_class(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.wait("#classes [data-class]")
        row = oracle.row()
        page.keyboard.press("n")
        page.fill("#new-class-name", "misspelt")
        page.keyboard.press("Enter")
        oracle.wait("#classes [data-class='misspelt']")
        page.keyboard.press("Backspace")
        oracle.wait(f'#example[data-row="{row}"]')
        oracle.wait("#classes:not(:has([data-class='misspelt']))")
        oracle.settle()
        assert [event["type"] for event in session.events] == ["label", "undo"]
        assert session.answers.classes == ["a", "b"]
        page.close()
    assert messages == []


def test_classes_are_renamed_and_merged(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b", "c"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        first, second = oracle.answer("1"), oracle.answer("2")
        for old, note in (("a", ""), ("b", "The two classes are merged.")):
            page.click(f"[data-rename='{old}']")
            page.fill("#rename-name", "first")
            assert note in page.inner_text("#rename-note")
            page.press("#rename-name", "Enter")
            oracle.wait(f"#classes:not(:has([data-class='{old}']))")
            # The focus goes to the button of the new name.
            oracle.wait("[data-rename='first']:focus")
        oracle.settle()
        assert session.answers.classes == ["first", "c"]
        assert handle.labels.to_dict() == {first: "first", second: "first"}
        assert "2 labels" in page.inner_text("#classes [data-class='first']")
        page.close()
    assert messages == []


def test_wrong_labels_are_found_and_corrected(chromium: Any, tmp_path: Path) -> None:
    _, y = load_digits(return_X_y=True)
    rows = {c: np.flatnonzero(y[:150] == c)[:3].tolist() for c in range(10)}
    labels = np.full(150, None, dtype=object)
    for c, of in rows.items():
        labels[of[:2]] = f"digit {c}"
    kept, corrected, late = rows[0][2], rows[1][2], rows[2][2]
    labels[[kept, corrected]] = ["digit 5", "digit 6"]
    session, _ = digits(tmp_path / "run", n=150, y=labels)
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)

        def doubt(row: int) -> Any:
            return page.locator(f'#doubtful-list [data-row="{row}"]')

        def look(row: int) -> None:
            """Look for doubtful labels until the end; one of them is this."""
            page.click("#doubtful-button")
            doubt(row).wait_for(timeout=LIMIT)
            oracle.wait("#doubtful-button:not([disabled])")

        oracle.wait('body[data-phase="ready"]')
        page.click("#tab-doubtful")
        look(corrected)
        assert "The other labels predict digit 1; your label digit 6 has" in doubt(corrected).inner_text()
        doubt(kept).get_by_text("Keep").click()
        assert doubt(kept).count() == 0
        doubt(corrected).locator("[data-class='digit 1']").click()
        assert doubt(corrected).count() == 0
        oracle.settle()
        assert handle.labels[[kept, corrected]].tolist() == ["digit 5", "digit 1"]
        # A label that was kept does not come back.
        label(session, [late], "digit 7")
        look(late)
        assert doubt(kept).count() == 0
        assert doubt(corrected).count() == 0
        page.close()
    assert messages == []


def test_the_map_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.row()

        def rows(*keys: str) -> set[int]:
            """Rows that the circle opens after these keys."""
            page.keyboard.press("m")
            oracle.wait("#map-message:empty")
            page.focus("#map-canvas")
            for key in keys:
                page.keyboard.press(key)
            told = page.inner_text("#map-count")
            page.keyboard.press("Enter")
            # Not the rows of before.
            page.wait_for_selector("#gallery-message:not(:text('Loading'))", state="attached", timeout=LIMIT)
            cards = page.locator("#gallery-grid [data-row]").all()
            shown = {int(str(card.get_attribute("data-row"))) for card in cards}
            assert told.startswith(f"Circle: {len(shown)} row")
            assert not shown & set(session.audit_rows)
            page.keyboard.press("l")
            return shown

        small = rows(*["+"] * 3)
        middle = rows(*["+"] * 3)
        assert small < middle
        assert session.model is not None
        places = session.model.map
        assert places is not None
        for axis, (low, high) in enumerate((("Left", "Right"), ("Up", "Down"))):
            for there, back, sign in ((low, high, -1), (high, low, 1)):
                moved = rows(*[f"Shift+Arrow{there}"] * 2)
                far = places[list(moved), axis].mean() - places[list(middle), axis].mean()
                assert sign * far > 0
                assert rows(*[f"Shift+Arrow{back}"] * 2) == middle
        page.close()
    assert messages == []


def test_a_full_disk_is_told(chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with opened(session, port=0, browser=False) as handle:
        page, _, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        row = oracle.row()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            page.keyboard.press("1")
            oracle.wait("#alert:not([hidden])")
            # The example is there again.
            oracle.wait(f'#example[data-row="{row}"]')
            assert "The disk is full" in page.inner_text("#alert")
            assert handle.labels.empty
        assert oracle.answer("1") == int(row)
        oracle.wait("#alert[hidden]")
        assert handle.labels.to_dict() == {int(row): "a"}

        # Other failures are not told as a full disk.
        page.route("**/api/event", lambda route: route.fulfill(status=500, json={"error": "of the disk"}))
        page.keyboard.press("2")
        oracle.wait("#alert:not([hidden])")
        assert "not saved. of the disk" in page.inner_text("#alert")
        assert "full" not in page.inner_text("#alert")
        assert len(handle.labels) == 1
        page.close()


def test_the_focus_is_visible(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        Oracle(page, handle, y).wait("#classes [data-class]")
        for tab in ("label", "map", "gallery", "doubtful", "history", "export"):
            page.click(f"#tab-{tab}")
            names = [""]
            while names[-1] != "BODY" and len(names) < 60:
                page.keyboard.press("Tab")
                name, style, width = page.evaluate(
                    "() => { const e = document.activeElement, css = getComputedStyle(e);"
                    "return [e.id || e.tagName, css.outlineStyle, parseFloat(css.outlineWidth)]; }"
                )
                names.append(name)
                assert name == "BODY" or (style != "none" and width >= 2), name
            assert names[-1] == "BODY"
            assert len(names) > 4
        page.close()
    assert messages == []


def test_the_focus_stays_when_a_class_comes(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        first, _, _ = visit(chromium, handle)
        second, _, _ = visit(chromium, handle)
        oracle = Oracle(second, handle, y)
        oracle.wait("#classes [data-class]")
        first.wait_for_selector("#classes [data-class='b']", timeout=LIMIT)
        first.focus("#classes [data-class='b']")
        first.evaluate(
            "() => document.addEventListener('focusin', () => { document.body.dataset.moved = 'yes'; })"
        )
        second.bring_to_front()
        row = oracle.row()
        second.keyboard.press("n")
        second.fill("#new-class-name", "c")
        second.press("#new-class-name", "Enter")
        oracle.wait(f'#example[data-row]:not([data-row="{row}"])')
        first.wait_for_selector("#classes [data-class='c']", timeout=LIMIT)
        assert first.evaluate("() => document.activeElement.dataset.class") == "b"
        # Also when classes before it go.
        second.click("[data-rename='a']")
        second.fill("#rename-name", "c")
        second.press("#rename-name", "Enter")
        first.wait_for_selector("#classes:not(:has([data-class='a']))", timeout=LIMIT)
        assert first.evaluate("() => document.activeElement.dataset.class") == "b"
        # It was not taken away and given back, which a screen reader would read aloud.
        assert first.get_attribute("body", "data-moved") is None
        first.close()
        second.close()


def test_a_new_link_after_a_restart(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, _, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.answer("1")
        oracle.answer("2")
        labels, port = handle.labels, handle._server.port
    session, _ = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=port, browser=False) as handle:
        page.wait_for_function(
            "() => document.getElementById('connection').innerText.includes('new link')", timeout=LIMIT
        )
        page.close()
        page, messages, _ = visit(chromium, handle)
        page.wait_for_selector("#classes [data-class='b']", timeout=LIMIT)
        assert [page.inner_text(f"#classes [data-class='{c}'] .count") for c in "ab"] == ["1 label"] * 2
        assert page.is_hidden("#connection")
        assert handle.labels.equals(labels)
        page.close()
    assert messages == []


def test_the_gallery_waits_for_predictions(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["digit 0", "digit 1"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        oracle.wait('body[data-phase="ready"]')
        page.click("#tab-gallery")
        oracle.wait("#gallery-message:text('No row is predicted as this class yet.')")
        for c in (0, 1):
            free = [row for row in np.flatnonzero(y == c).tolist() if row not in session.audit_rows]
            label(session, free[:1], f"digit {c}")
        page.locator("#gallery-grid [data-row]").first.wait_for(timeout=LIMIT)
        page.close()
    assert messages == []


def test_the_next_example_is_announced(chromium: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"note": [f"the {i}th of many notes" for i in range(40)]})
    frame["x"] = np.arange(40) % 4
    session = session_on_rows(frame, name="notes", folder=tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, np.zeros(40, int))
        row = oracle.answer("1")
        following = int(oracle.row())
        told = page.text_content("#live")
        assert f"the {following}th of many" in told
        assert f"row {following + 1}" in told
        assert f"Row {row + 1}: a, saved." in told
        page.close()
    assert messages == []


def test_images_of_answered_examples_are_dropped(chromium: Any, tmp_path: Path) -> None:
    session, y = digits(tmp_path / "run", classes=["a", "b"])
    with opened(session, port=0, browser=False) as handle:
        page, messages, _ = visit(chromium, handle)
        oracle = Oracle(page, handle, y)
        row = 0
        for _ in range(40):
            row = oracle.answer("s")
        devtools = page.context.new_cdp_session(page)
        images = devtools.send("Runtime.evaluate", {"expression": "HTMLImageElement.prototype"})
        held = devtools.send("Runtime.queryObjects", {"prototypeObjectId": images["result"]["objectId"]})
        n = devtools.send(
            "Runtime.callFunctionOn",
            {
                "objectId": held["objects"]["objectId"],
                "functionDeclaration": "function () { return this.length; }",
                "returnByValue": True,
            },
        )
        assert 1 <= n["result"]["value"] <= 20
        # An example that is shown again has its image again.
        page.keyboard.press("Backspace")
        oracle.wait(f'#example[data-row="{row}"] img[src="/image/{row}"]')
        page.close()
    assert messages == []
