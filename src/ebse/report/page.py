"""Write the report: rows of runs in, one self-contained HTML page out."""

import base64
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ebse import __version__
from ebse._atomic import in_place
from ebse.report.findings import WORDS
from ebse.report.parts import Pair, Part, Picture, Section
from ebse.report.sections import section

LIGHT, DARK = "#1d2530", "#e3e8ee"
"""Colors of text on light and on dark pages; all other colors are readable on both."""
STYLE = {
    "text.color": LIGHT,
    "axes.labelcolor": LIGHT,
    "axes.edgecolor": "#8a93a0",
    "xtick.color": "#8a93a0",
    "ytick.color": "#8a93a0",
    "xtick.labelcolor": LIGHT,
    "ytick.labelcolor": LIGHT,
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
                    temporary.write_bytes(_pngs(picture.draw, DPI, (LIGHT,), background="white")[0])
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
    pngs = _pngs(picture.draw, DPI)
    if picture.narrow is not None:
        pngs += _pngs(picture.narrow, NARROW_DPI)
    return _Drawn(*(f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in pngs))


def _pngs(
    draw: Callable[[], Figure],
    dpi: int,
    colors: Sequence[str] = (LIGHT, DARK),
    *,
    background: str = "none",
) -> list[bytes]:
    """A figure with its text in each of several colors; laid out once, which takes longest."""
    found = []
    settings: Any = {**STYLE, "figure.dpi": dpi}
    with mpl.rc_context(settings):
        figure = draw()
        figure.set_facecolor(background)
        canvas, layout = FigureCanvasAgg(figure), figure.get_layout_engine()
        assert layout is not None
        layout.execute(figure)
        figure.set_layout_engine("none")
        inked = [text for text in figure.findobj(Text) if text.get_color() == LIGHT]
        for color in colors:
            for text in inked:
                text.set_color(color)
            file = io.BytesIO()
            canvas.print_png(file)  # type: ignore[no-untyped-call]
            found.append(file.getvalue())
    return found


def _pictures(parts: Sequence[Part]) -> Iterator[Picture]:
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Pair):
            yield from part.pictures
