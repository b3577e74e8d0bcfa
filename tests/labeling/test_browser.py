"""The labeling page in Chromium: a person who knows the digits labels them by keys, from nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from ebse.labeling.handle import Labeling, opened
from ebse.labeling.opening import session_on_file, session_on_rows
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
        for _ in range(3):
            row = int(oracle.row())
            assert row in session.audit_rows
            assert str(session.items.name(row)).lower() in page.inner_text("#example").lower()
            oracle.label()
        assert len(handle.labels) == n
        assert "3 random checks right" in page.inner_text("#audit-text")
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

        # The lasso opens rows of the map in the gallery; so does the keyboard.
        page.click("#tab-map")
        box = page.locator("#map-canvas").bounding_box()
        assert box is not None
        page.wait_for_function(
            "() => fetch('/api/state').then((r) => r.json()).then((s) => s.map > 0)", timeout=LIMIT
        )
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
