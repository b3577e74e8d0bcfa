"""The rooms of the house: imports go one way, and the seams stay clean."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ebse

SOURCE = Path(ebse.__file__).parent
# From top to bottom: a room may import from the rooms above it in this list, and from itself.
ROOMS = [
    "arguments",
    "files",
    "noise",
    "kernels",
    "laws",
    "models",
    "sampling",
    "training",
    "representation",
    "preprocessing",
    "evaluation",
    "estimators",
    "data",
    "reading",
    "runs",
    "fitting",
    "experiments",
    "report",
    "cli",
    "demo",
]
FORBIDDEN = [
    ("laws", "models"),
    ("models", "training"),
    ("sampling", "training"),
    ("preprocessing", "models"),
    ("evaluation", "models"),
    ("evaluation", "laws"),
    ("data", "laws"),
    ("data", "models"),
    ("report", "models"),
    ("report", "laws"),
    ("report", "experiments"),
]


def imports() -> Iterator[tuple[str, str, str]]:
    """(file, importing room, imported room) of every import in the package."""
    for path in SOURCE.rglob("*.py"):
        relative = path.relative_to(SOURCE)
        room = relative.parts[0].removesuffix(".py")
        if room == "__init__":
            # It names what is public, and belongs to no room.
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                parts = name.split(".")
                if parts[0] == "ebse" and len(parts) > 1 and parts[1] in ROOMS:
                    yield str(relative), room, parts[1]


def test_every_room_is_listed() -> None:
    found = {
        path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert found - {"__init__", "__pycache__", "py.typed"} == set(ROOMS)


def test_imports_go_one_way() -> None:
    upward = [edge for edge in imports() if ROOMS.index(edge[2]) > ROOMS.index(edge[1])]
    assert upward == []


@pytest.mark.parametrize(("room", "other"), FORBIDDEN)
def test_seams_stay_clean(room: str, other: str) -> None:
    assert [edge for edge in imports() if edge[1] == room and edge[2] == other] == []


def test_only_the_border_prints() -> None:
    printing = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert set(printing) <= {"demo.py", "cli/shown.py"}


def test_no_file_is_long() -> None:
    long = {
        path.name: n
        for path in [*SOURCE.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
        if (n := len(path.read_text().splitlines())) > 350
    }
    assert long == {}
