"""What a page is made of, before anything is drawn."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

Row = dict[str, Any]
Line = tuple[str, ...]


class Picture(NamedTuple):
    """A figure, what is said to those who cannot see it, and what to look for."""

    name: str
    draw: Callable[[], Figure]
    alt: str
    caption: str


class Beside(NamedTuple):
    """Pictures side by side, where there is room."""

    pictures: list[Picture]


class Table(NamedTuple):
    """Lines of cells, the first of them the head."""

    lines: Sequence[Line]


class Heading(NamedTuple):
    """What the parts that follow are about."""

    text: str


class Text(NamedTuple):
    """A paragraph."""

    words: str


Part = Picture | Beside | Table | Heading | Text


class Section(NamedTuple):
    """What belongs to one run."""

    name: str
    """Of the experiment and its data, as files of pictures are called."""
    title: str
    lead: str
    claims: list[Line]
    parts: list[Part]
    header: Row
    """Configuration and versions."""
