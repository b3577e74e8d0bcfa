"""Imports go one way, and the seams between packages stay clean."""

import ast
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import ebse

SOURCE = Path(ebse.__file__).parent
# From top to bottom: a package may import from the packages above it in this list, and from itself.
PACKAGES = [
    "_validation",
    "_missing",
    "_tensors",
    "_atomic",
    "_jsonl",
    "_archive",
    "_stages",
    "_threads",
    "rng",
    "kernels",
    "laws",
    "models",
    "sampling",
    "training",
    "preprocessing",
    "evaluation",
    "_estimators",
    "_labels",
    "_chains",
    "ensemble",
    "semi_supervised",
    "datasets",
    "io",
    "workflow",
    "paper",
    "report",
    "labeling",
    "cli",
    "__main__",
]
FORBIDDEN = [
    ("laws", "models"),
    ("models", "training"),
    ("sampling", "training"),
    ("preprocessing", "models"),
    ("evaluation", "models"),
    ("evaluation", "laws"),
    ("semi_supervised", "ensemble"),
    ("semi_supervised", "models"),
    ("datasets", "laws"),
    ("datasets", "models"),
    ("report", "models"),
    ("report", "laws"),
    ("report", "paper"),
    ("labeling", "models"),
    ("labeling", "ensemble"),
]


@cache
def trees() -> dict[Path, ast.Module]:
    """The syntax tree of every file in the package."""
    return {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


@cache
def imports() -> list[tuple[str, str, str]]:
    """(file, importing package, imported package) of every import in the package."""
    found = []
    for path, tree in trees().items():
        relative = path.relative_to(SOURCE)
        package = relative.parts[0].removesuffix(".py")
        if package == "__init__":
            # It names what is public, and belongs to no package.
            continue
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                parts = name.split(".")
                if parts[0] == "ebse" and len(parts) > 1 and parts[1] in PACKAGES:
                    found.append((str(relative), package, parts[1]))
    return found


def test_every_package_is_listed() -> None:
    found = {
        path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert found - {"__init__", "__pycache__", "py.typed"} == set(PACKAGES)


def test_imports_go_one_way() -> None:
    upward = [edge for edge in imports() if PACKAGES.index(edge[2]) > PACKAGES.index(edge[1])]
    assert upward == []


@pytest.mark.parametrize(("package", "other"), FORBIDDEN)
def test_seams_stay_clean(package: str, other: str) -> None:
    assert [edge for edge in imports() if edge[1] == package and edge[2] == other] == []


def test_only_the_command_line_prints() -> None:
    """And ``ebse.label``, which prints the address of its page where it cannot open a browser."""
    printing = [
        str(path.relative_to(SOURCE))
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert set(printing) <= {"cli/demo.py", "cli/_show.py", "labeling/handle.py"}


def modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if not path.name.startswith("__")]


def test_no_two_modules_have_one_name() -> None:
    """But for a model and the estimator on it, and a command and what it runs."""
    names = Counter(path.stem for path in modules())
    assert {name for name, n in names.items() if n > 1} <= {"demo", "fit", "rbse"}


def test_no_module_is_hidden_by_what_its_package_exports() -> None:
    for package in {path.parent for path in modules()} - {SOURCE}:
        exported = import_module(f"ebse.{'.'.join(package.relative_to(SOURCE).parts)}")
        hidden = {
            path.stem
            for path in package.glob("*.py")
            if path.stem in vars(exported) and not isinstance(vars(exported)[path.stem], ModuleType)
        }
        assert hidden == set(), package.name
