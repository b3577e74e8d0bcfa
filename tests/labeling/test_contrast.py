"""The files of the labeling page: contrast of its colors (WCAG 2.2), its size, and nothing from elsewhere."""

import re
from itertools import product
from pathlib import Path

import pytest

import ebse.labeling

STATIC = Path(ebse.labeling.__file__).parent / "static"
FILES = sorted(path for path in STATIC.iterdir() if path.is_file())
MOST_BYTES = 100 * 1024

Colors = dict[str, str]


def colors(block: str) -> Colors:
    """Custom properties of a block of style rules."""
    return dict(re.findall(r"(--[\w-]+):\s*(#[0-9a-fA-F]{6})\s*;", block))


def themes() -> dict[str, Colors]:
    """Colors in light, and in dark where those of light are replaced."""
    style = (STATIC / "style.css").read_text()
    light = re.search(r"^:root\s*\{(.*?)\}", style, re.DOTALL | re.MULTILINE)
    dark = re.search(r"@media \(prefers-color-scheme: dark\)\s*\{\s*:root\s*\{(.*?)\}", style, re.DOTALL)
    assert light
    assert dark
    return {"light": colors(light[1]), "dark": colors(light[1]) | colors(dark[1])}


def luminance(color: str) -> float:
    """Relative luminance of WCAG."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_of_known_colors() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    # The lightest gray that is enough for text on white, and the next one.
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")


GROUNDS = ("--background", "--surface")
TEXTS = [*product(("--text", "--muted", "--link", "--error", "--ok"), GROUNDS), ("--button-text", "--button")]
MARKS = [*product([f"--class-{i}" for i in range(10)] + ["--border", "--focus"], GROUNDS)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(theme: str) -> None:
    found = themes()[theme]
    low = {
        pair: round(contrast(*(found[name] for name in pair)), 2)
        for least, pairs in ((4.5, TEXTS), (3.0, MARKS))
        for pair in pairs
        if contrast(*(found[name] for name in pair)) < least
    }
    assert not low


def test_dark_replaces_all_colors() -> None:
    light, dark = themes().values()
    assert set(light) == set(dark)
    assert all(light[name] != dark[name] for name in light)
    classes = [light[f"--class-{i}"] for i in range(10)]
    assert len(set(classes)) == 10


def test_the_page_is_small() -> None:
    assert {path.suffix for path in FILES} == {".html", ".css", ".js"}
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    """No other address, no HTML made of data, and nothing that the content security policy would refuse."""
    # The name of SVG, which createElementNS needs, looks like an address and is none.
    text = path.read_text().replace('"http://www.w3.org/2000/svg"', "")
    for word in ("http://", "https://", "@import", "url("):
        assert word not in text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.search(r"(src|href)=\"//", text)
    if path.suffix == ".html":
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)


def test_all_files_of_the_page_are_used() -> None:
    """Names in the page and in its modules are files, and all files are named somewhere."""
    named = set()
    for path in FILES:
        named |= set(re.findall(r"[\"'](?:/static/|\./|static/)([\w-]+\.(?:js|css))[\"']", path.read_text()))
    assert named == {path.name for path in FILES} - {"index.html"}
