"""The page in a real browser: it shows, it says nothing wrong, and it asks nobody for anything."""

import shutil
from pathlib import Path

import pytest

from ebse.report import write_report
from report.test_page import ROWS_OF_TWO_SEEDS, made

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt-get install chromium)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_the_page(scheme: str, width: int, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = write_report([made(tmp_path / "run", ROWS_OF_TWO_SEEDS)], tmp_path / "report.html")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        assert page.title() == "ebse report"
        assert page.locator("td.verdict").all_inner_texts() == ["yes", "yes", "no", "yes"]
        loaded = page.evaluate(
            "[...document.images].every(image => image.complete && image.naturalWidth > 100)"
        )
        wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
        browser.close()
    assert loaded
    assert not wide
    assert shown == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 30)")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
