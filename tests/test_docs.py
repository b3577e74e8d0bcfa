"""The pages: code is executed, links resolve, lines are short, words are plain, and the site is self-contained."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXECUTED = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "dev").glob("*.md"))]
LINKED = [
    *EXECUTED,
    *(ROOT / page for page in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")),
]
NEEDED = ("sphinx", "myst_parser", "numpydoc", "furo")

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ ]*$", re.M | re.S)
LINK = re.compile(r"\]\((?P<target>[^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?)[ #]*$", re.M)

WIDEST, LONGEST = 120, {"README.md": 120, "CONTRIBUTING.md": 45}
"""Characters of a line of Markdown, and lines of a page."""
WORDING = re.compile(
    r"\b(?:speaks?|spoke|spoken|(?:is|are)\s+told|heard|taken\s+for|labels\s+that\s+spread|at\s+the\s+door|"
    r"models\s+met|have\s+a\s+say|half\s+the\s+say)\b",
    re.I,
)
"""Private terms of early versions; CONTRIBUTING.md says what to write instead."""

needs_sphinx = pytest.mark.skipif(
    not all(map(find_spec, NEEDED)), reason=f"{', '.join(NEEDED)} are not all installed: the extra ebse[docs]"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def never_executed(text: str) -> list[str]:
    """Python blocks of a page that no doctest looks at."""
    blocks = [m["body"] for m in FENCE.finditer(text) if m["language"].strip() == "python"]
    return [body for body in blocks if ">>>" not in body]


def prose(text: str) -> str:
    """A page without its code, where brackets are no links and # is no heading."""
    return re.sub(r"`[^`\n]*`", "code", FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as GitHub makes them; the second of two equal ones ends in -1."""
    seen: Counter[str] = Counter()
    found = set()
    for m in HEADING.finditer(FENCE.sub("", text)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", m["text"])
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken_links(page: Path) -> Iterator[str]:
    """Relative links of a page that lead nowhere."""
    for m in LINK.finditer(prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", m["target"]):
            continue
        path, _, anchor = m["target"].partition("#")
        linked = page.parent / path if path else page
        if not linked.exists():
            yield f"{m['target']}: no such file"
        elif anchor and anchor not in anchors(linked.read_text(encoding="utf-8")):
            yield f"{m['target']}: no such heading"


def named_files(text: str) -> set[str]:
    """Tests, and scripts of benchmarks and examples, that a page names."""
    scripts = re.findall(r"\b((?:benchmarks|examples)/[a-z]\w*\.\w+)", text)
    return {*re.findall(r"`(tests/[\w/.]+|test_\w+)`", text), *scripts}


def too_wide(text: str) -> list[int]:
    """Numbers of the lines with more than WIDEST characters."""
    return [number for number, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST]


def private_terms(text: str) -> list[tuple[int, str]]:
    """Line and words of every private term, also where it goes over the end of a line."""
    return [(text.count("\n", 0, m.start()) + 1, " ".join(m[0].split())) for m in WORDING.finditer(text)]


def worded() -> list[Path]:
    """Every file whose words users or developers read: the package, the pages, the examples."""
    kinds = (".py", ".html", ".css", ".js", ".txt", ".j2")
    source = [path for path in sorted((ROOT / "src").rglob("*")) if path.suffix in kinds]
    return [*source, *LINKED, *sorted((ROOT / "examples").glob("*.py"))]


class Foreign(HTMLParser):
    """What a page would fetch from another server when it is opened."""

    TAGS = ("audio", "embed", "iframe", "img", "link", "object", "script", "source", "track", "video")
    NAMES = ("src", "href", "srcset", "data", "poster")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.TAGS:
            for name, value in attrs:
                if name in self.NAMES and re.match(r"\s*(https?:)?//", value or ""):
                    self.found.append(f"<{tag} {name}={value}>")


def foreign(page: str) -> list[str]:
    parser = Foreign()
    parser.feed(page)
    return parser.found


def foreign_in_style(sheet: str) -> list[str]:
    """Addresses of other servers from which a style sheet would load fonts, images or sheets."""
    return re.findall(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s;]+)""", sheet)


def lost_examples(page: str) -> list[str]:
    """Examples that numpydoc reads as parameters or attributes because they lack a heading of their own."""
    return re.findall(r"<dt>\s*<strong>\s*(&gt;&gt;&gt;[^<]*)", page)


def built(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """The pages of a folder as HTML, by Sphinx, warnings being errors."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-d", str(out / "doctrees"), str(source), str(out / "html")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_every_python_block_is_executed(page: Path) -> None:
    assert never_executed(page.read_text(encoding="utf-8")) == []


def test_a_block_without_a_prompt_is_noticed() -> None:
    text = "```python\n>>> 1\n1\n\n```\n\n```python\nx = 1\n```\n\n```\nmake\n```\n"
    assert never_executed(text) == ["x = 1\n"]


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_links_that_lead_nowhere_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One title\n\n[a](gone.md) [b](#no-title) [c](other.md#gone) ![d](gone.png)\n"
        "[e](#one-title) [f](other.md#a-b-c-32) [g](other.md#twice-1) [h](https://example.org/gone) `[i](code.md)`\n\n"
        "```\n[j](code.md)\n```\n"
    )
    (tmp_path / "other.md").write_text("## A `b`, c (3.2)\n\n## Twice\n\n## Twice\n\n```\n# gone\n```\n")
    assert list(broken_links(page)) == [
        "gone.md: no such file",
        "#no-title: no such heading",
        "other.md#gone: no such heading",
        "gone.png: no such file",
    ]


def test_tests_and_scripts_that_pages_name_exist() -> None:
    functions = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set().union(*(named_files(page.read_text(encoding="utf-8")) for page in LINKED))
    assert named
    assert [
        one
        for one in sorted(named)
        if not ((ROOT / one).exists() if "/" in one else f"def {one}(" in functions)
    ] == []


def test_names_of_tests_and_scripts_are_found() -> None:
    text = "`tests/a/b.py` and `test_x`, not test_y; `python benchmarks/c.py --d`"
    assert named_files(text) == {"tests/a/b.py", "test_x", "benchmarks/c.py"}


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_lines_and_pages_are_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert too_wide(text) == []
    assert len(text.splitlines()) <= LONGEST.get(page.name if page.parent == ROOT else "", 10_000)


def test_a_wide_line_is_noticed() -> None:
    assert too_wide("a" * 120 + "\n" + "b" * 121 + "\n") == [2]


def test_plain_words() -> None:
    """No file uses a private term; a failure lists file:line."""
    found = [
        f"{name(path)}:{line}: {words}"
        for path in worded()
        for line, words in private_terms(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "\n".join(found)


def test_private_terms_are_noticed() -> None:
    text = "Rows that speak\nare\ntold. Heard?\nA speaker spoke; it is taken\n    for a class.\n"
    assert private_terms(text) == [
        (1, "speak"),
        (2, "are told"),
        (3, "Heard"),
        (4, "spoke"),
        (4, "taken for"),
    ]


def test_what_is_fetched_from_elsewhere_is_noticed() -> None:
    fetched = (
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.example.org/a.css">',
        '<img alt="" src="http://example.org/a.png"/>',
    )
    own = '<a href="https://example.org">x</a><script src="_static/a.js"></script><img src="data:image/png;base64,">'
    assert [len(foreign(part)) for part in (*fetched, own)] == [1, 1, 1, 0]
    sheet = '@import "https://e.org/a.css"; a { b: url(//e.org/f.woff2) } c { d: url("f.png") }'
    assert foreign_in_style(sheet) == ["https://e.org/a.css", "//e.org/f.woff2"]


def test_an_example_among_the_parameters_is_noticed() -> None:
    page = "<dl><dt><strong>&gt;&gt;&gt; x = 1</strong></dt><dt><strong>y</strong></dt></dl><pre>&gt;&gt;&gt; z</pre>"
    assert lost_examples(page) == ["&gt;&gt;&gt; x = 1"]


@pytest.mark.slow
@needs_sphinx
def test_the_site_is_built_without_a_warning_and_asks_no_other_server(tmp_path: Path) -> None:
    done = built(DOCS, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    pages, sheets = ([*(tmp_path / "html").rglob(f"*.{kind}")] for kind in ("html", "css"))
    assert {path.stem for path in DOCS.rglob("*.md")} <= {path.stem for path in pages}
    assert sheets
    for path in pages:
        page = path.read_text(encoding="utf-8")
        assert (foreign(page), lost_examples(page)) == ([], []), path.name
    for path in sheets:
        assert foreign_in_style(path.read_text(encoding="utf-8")) == [], path.name


@pytest.mark.slow
@needs_sphinx
def test_a_page_with_a_warning_is_not_built(tmp_path: Path) -> None:
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text('extensions = ["myst_parser"]\n')
    (source / "index.md").write_text("# Title\n\n[nowhere](gone.md)\n")
    done = built(source, tmp_path / "out")
    assert done.returncode != 0
    assert "gone.md" in done.stderr
