"""The content of a report page, before anything is drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.figure import Figure

Row = dict[str, Any]
Line = tuple[str, ...]


@dataclass(frozen=True)
class Stat:
    """A headline figure: a number and what it is."""

    value: str
    label: str


@dataclass(frozen=True)
class Finding:
    """A claim, what the paper says or a threshold, what was measured, and "yes", "partly" or "no"."""

    text: str
    expected: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Picture:
    """A figure with its alternative text and caption; ``narrow`` draws it for the screen of a phone."""

    kind: ClassVar[str] = "picture"
    name: str
    draw: Callable[[], Figure]
    alt: str
    caption: str
    narrow: Callable[[], Figure] | None = None


@dataclass(frozen=True)
class Pair:
    """Figures side by side where the screen is wide enough."""

    kind: ClassVar[str] = "pair"
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Table:
    """Lines of cells, the first of them the head; folded behind its title unless ``unfolded``."""

    kind: ClassVar[str] = "table"
    title: str
    lines: Sequence[Line]
    note: str = ""
    unfolded: bool = False


@dataclass(frozen=True)
class Heading:
    """Title of the parts that follow."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


Part = Picture | Pair | Table | Heading | Text


@dataclass(frozen=True)
class Section:
    """What a page shows of one run."""

    name: str
    """Prefix of the figures' file names."""
    title: str
    lead: str
    stats: Sequence[Stat]
    findings: Sequence[Finding]
    parts: Sequence[Part]
    header: Row
    """Configuration and versions."""
