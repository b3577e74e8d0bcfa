"""The page in a browser: it is displayed without errors, and it requests nothing from elsewhere."""

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
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_shows_the_page(scheme: str, width: int, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = write_report([made(tmp_path / "run", ROWS_OF_TWO_SEEDS)], tmp_path / "report.html")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        messages: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        assert page.title() == "One-shot classification of <digits> (section 3.2), run"
        assert page.locator(".verdict").all_inner_texts() == ["holds", "holds", "does not hold", "holds"]
        loaded = page.evaluate(
            "[...document.images].every(image => image.complete && image.naturalWidth > 100)"
        )
        wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        current = page.evaluate("document.images[0].currentSrc")
        sources = page.evaluate("[...document.images[0].parentNode.children].map(e => e.srcset || e.src)")
        browser.close()
    assert loaded
    assert not wide
    assert color == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 30)")
    # Phones and dark pages have figures of their own.
    chosen = {(390, "dark"): 0, (390, "light"): 1, (1400, "dark"): 2, (1400, "light"): 3}[width, scheme]
    assert current == sources[chosen]
    assert len(set(sources)) == 4
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
