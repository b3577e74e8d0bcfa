"""Write the report: rows of runs in, one self-contained HTML page out."""

import base64
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from ebse import __version__
from ebse._atomic import in_place
from ebse.report.findings import WORDS
from ebse.report.parts import Pair, Part, Picture, Section
from ebse.report.sections import section

LIGHT = {"text.color": "#1d2530", "axes.labelcolor": "#1d2530", "axes.edgecolor": "#8a93a0"}
DARK = {"text.color": "#e3e8ee", "axes.labelcolor": "#e3e8ee", "axes.edgecolor": "#8a93a0"}
STYLE = {
    "xtick.color": "#8a93a0",
    "ytick.color": "#8a93a0",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.framealpha": 0.0,
    # Names of columns and classes are a user's own: a $ in them is a dollar, not mathematics.
    "text.parse_math": False,
}
DPI, NARROW_DPI = 130, 160
TITLE = "Energy-based stochastic ensembles"
LEAD = "The claims of the paper, measured again, and what goes beyond the paper."


def write_report(
    folders: Sequence[str | Path], path: str | Path, *, figures: str | Path | None = None
) -> Path:
    """Write one self-contained HTML page about one or more runs.

    Parameters
    ----------
    folders : sequence of paths
        Run folders of `ebse fit` or `ebse experiment`.
    path : path
        The page; written atomically. It loads nothing from elsewhere.
    figures : path, default=None
        Folder for the figures as PNG files.

    Returns
    -------
    Path
        The path of the page.
    """
    if not folders:
        raise ValueError(
            "folders must have at least one run, got none; make one with `ebse fit` or `ebse experiment`"
        )
    sections = [section(Path(folder)) for folder in folders]
    path = Path(path)
    page = _html(sections)
    with in_place(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    if figures is not None:
        for each in sections:
            for picture in _pictures(each.parts):
                with in_place(Path(figures) / f"{each.name}-{picture.name}.png") as temporary:
                    temporary.write_bytes(_png(picture.draw, LIGHT, DPI, background="white"))
    return path


def _html(sections: Sequence[Section]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    alone = sections[0].title if len(sections) == 1 else None
    shown = [
        {
            "title": each.title,
            "lead": each.lead,
            "findings": each.findings,
            "parts": each.parts,
            "settings": json.dumps(
                {"configuration": each.header["config"], "versions": each.header["versions"]},
                indent=1,
                ensure_ascii=False,
            ),
        }
        for each in sections
    ]
    return environment.get_template("page.html.j2").render(
        title=alone or TITLE,
        lead="" if alone else LEAD,
        stats=[stat for each in sections for stat in each.stats],
        sections=shown,
        words=WORDS,
        draw=_drawn,
        version=__version__,
    )


class _Drawn(NamedTuple):
    """A figure as data URLs, for light and dark pages and for narrow screens."""

    light: str
    dark: str
    narrow_light: str | None = None
    narrow_dark: str | None = None


def _drawn(picture: Picture) -> _Drawn:
    urls = [_url(picture.draw, colors, DPI) for colors in (LIGHT, DARK)]
    if picture.narrow is not None:
        urls += [_url(picture.narrow, colors, NARROW_DPI) for colors in (LIGHT, DARK)]
    return _Drawn(*urls)


def _url(draw: Callable[[], Figure], colors: Mapping[str, str], dpi: int) -> str:
    return f"data:image/png;base64,{base64.b64encode(_png(draw, colors, dpi)).decode()}"


def _png(
    draw: Callable[[], Figure], colors: Mapping[str, str], dpi: int, *, background: str = "none"
) -> bytes:
    labels = {"xtick.labelcolor": colors["text.color"], "ytick.labelcolor": colors["text.color"]}
    settings: dict[str, Any] = {**STYLE, **colors, **labels}
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        file = io.BytesIO()
        draw().savefig(file, format="png", dpi=dpi, facecolor=background)
    return file.getvalue()


def _pictures(parts: Sequence[Part]) -> Iterator[Picture]:
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Pair):
            yield from part.pictures
