"""One page for a person: rows of runs in, one HTML file out that needs nothing else."""

import base64
import html
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from ebse._atomic import in_place
from ebse.report.parts import Beside, Heading, Line, Part, Picture, Section, Table, Text
from ebse.report.sections import section
from ebse.report.style import STYLE

LIGHT = {"text.color": "#1d2530", "axes.labelcolor": "#1d2530", "axes.edgecolor": "#8a93a0"}
DARK = {"text.color": "#e3e8ee", "axes.labelcolor": "#e3e8ee", "axes.edgecolor": "#8a93a0"}
TICKS = {"xtick.color": "#8a93a0", "ytick.color": "#8a93a0"}
WIDE = 800
"""Pixels from which on a picture is not shrunk to the screen of a phone, but moved across it."""

HEAD: Line = ("claim", "data", "paper, or our bar", "found", "verdict")


def write_report(
    folders: Sequence[str | Path], path: str | Path, *, figures: str | Path | None = None
) -> Path:
    """The page of one or more runs, at ``path``; its pictures also as PNG files in the folder ``figures``."""
    if not folders:
        raise ValueError(
            "folders must have at least one run, got none; make one with `ebse fit` or `ebse experiment`"
        )
    sections = [section(Path(folder)) for folder in folders]
    claims = [line for each in sections for line in each.claims]
    body = ["<h1>Energy-based stochastic ensembles</h1>"]
    if claims:
        body += [
            "<p class=lead>What the paper says of its ensembles, run again: each claim beside what was found."
            " Intervals are of 95 % and speak of other episodes; differences are of the same episodes.</p>",
            _table([HEAD, *claims], verdicts_in_last=True),
        ]
    body += map(_section, sections)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>ebse report</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )
    path = Path(path)
    with in_place(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    if figures is not None:
        for each in sections:
            for shown in _pictures(each.parts):
                with in_place(Path(figures) / f"{each.name}-{shown.name}.png") as temporary:
                    temporary.write_bytes(_png(shown, LIGHT, on="white"))
    return path


def _section(content: Section) -> str:
    title, lead = html.escape(content.title), html.escape(content.lead)
    words = {"configuration": content.header["config"], "versions": content.header["versions"]}
    settings = html.escape(json.dumps(words, indent=1))
    return (
        f"<section><h2>{title}</h2><p>{lead}</p>{''.join(map(_part, content.parts))}"
        f"<details><summary>Configuration and versions</summary><pre>{settings}</pre></details></section>"
    )


def _part(part: Part) -> str:
    match part:
        case Heading(text):
            return f"<h3>{html.escape(text)}</h3>"
        case Text(words):
            return f"<p>{html.escape(words)}</p>"
        case Table(lines):
            return _table(lines)
        case Beside(pictures):
            return f"<div class=pair>{''.join(map(_figure, pictures))}</div>"
        case Picture():
            return _figure(part)


def _table(lines: Sequence[Line], *, verdicts_in_last: bool = False) -> str:
    """Lines as a table, the first of them as its head."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in lines[0])
    body = ""
    for line in lines[1:]:
        cells = [f"<td>{html.escape(cell)}</td>" for cell in line]
        if verdicts_in_last:
            cells[-1] = f'<td class="verdict {html.escape(line[-1])}">{html.escape(line[-1])}</td>'
        body += f"<tr>{''.join(cells)}</tr>"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _figure(shown: Picture) -> str:
    """A figure with its caption, drawn for light and for dark pages."""
    drawn = [_png(shown, style) for style in (LIGHT, DARK)]
    light, dark = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in drawn)
    # A PNG file has its width in bytes 16 to 19.
    wide = int.from_bytes(drawn[0][16:20], "big") >= WIDE
    return (
        f"<figure{' class=wide' * wide}><picture>"
        f'<source srcset="{dark}" media="(prefers-color-scheme: dark)">'
        f'<img src="{light}" alt="{html.escape(shown.alt)}"></picture>'
        f"<figcaption>{html.escape(shown.caption)}</figcaption></figure>"
    )


def _pictures(parts: Sequence[Part]) -> Iterator[Picture]:
    for part in parts:
        if isinstance(part, Picture):
            yield part
        elif isinstance(part, Beside):
            yield from part.pictures


def _png(shown: Picture, style: Mapping[str, str], *, on: str = "none") -> bytes:
    words = {"xtick.labelcolor": style["text.color"], "ytick.labelcolor": style["text.color"]}
    settings = {**style, **TICKS, **words, "axes.facecolor": "none", "legend.framealpha": 0.0}
    with mpl.rc_context(settings):  # type: ignore[arg-type]
        held = io.BytesIO()
        shown.draw().savefig(held, format="png", dpi=100, facecolor=on)
    return held.getvalue()
