"""Every required dependency has a reason on docs/dev/dependencies.md, is imported, and has a lower bound."""

import ast
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import ebse

ROOT = Path(__file__).parent.parent
SOURCE = Path(ebse.__file__).parent
PAGE = ROOT / "docs" / "dev" / "dependencies.md"
BROUGHT = {"llvmlite"}
"""Part of another requirement: Numba's intrinsics are written with llvmlite."""
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """Names of the packages of requirements, without versions and extras."""
    return {re.split(r"[\s<>=!~;\[]", one, maxsplit=1)[0].lower() for one in requirements}


def reasons(page: str, heading: str) -> dict[str, str]:
    """Package and reason of each row of the table under a heading."""
    section = re.split(r"^## ", page.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.M)[0]
    rows = re.findall(r"^\| `([^`]+)` \|([^|]*)\|", section, re.M)
    return {package: reason.strip() for package, reason in rows}


def imported() -> set[str]:
    """Top-level names of the third-party modules that the package imports, anywhere in a file."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"ebse"}


def test_every_required_dependency_has_a_reason() -> None:
    listed = reasons(PAGE.read_text(encoding="utf-8"), "Required")
    assert set(listed) == names(PROJECT["dependencies"])
    assert all(len(reason.split()) > 3 for reason in listed.values())


def test_every_extra_has_a_reason() -> None:
    assert set(reasons(PAGE.read_text(encoding="utf-8"), "Extras")) == set(PROJECT["optional-dependencies"])


def test_a_dependency_without_a_row_is_noticed() -> None:
    page = "## Required\n\n| package | reason |\n|---|---|\n| `numpy` | arrays of numbers everywhere |\n\n## Extras\n\n| `x` | y |\n"
    assert reasons(page, "Required") == {"numpy": "arrays of numbers everywhere"}
    assert names(["numpy>=1.26", "SciPy >=1", "rich[x]>=2"]) - set(reasons(page, "Required")) == {
        "scipy",
        "rich",
    }


def test_imports_are_declared_and_what_is_required_is_imported() -> None:
    distributions = packages_distributions()
    used = {distributions.get(module, [module])[0].lower() for module in imported()}
    extras = names([one for extra in PROJECT["optional-dependencies"].values() for one in extra])
    required = names(PROJECT["dependencies"])
    assert used - required - extras - BROUGHT == set()
    assert required - used == set()


def test_lower_bounds_become_constraints() -> None:
    lowest = runpy.run_path(str(ROOT / ".github" / "lowest_versions.py"))["lowest"]
    assert {line.partition("==")[0] for line in lowest(PROJECT["dependencies"])} == names(
        PROJECT["dependencies"]
    )
    assert lowest(["numpy>=1.26", "torch >= 2.4"]) == ["numpy==1.26", "torch==2.4"]
    with pytest.raises(ValueError, match="got rich; add a lower bound"):
        lowest(["numpy>=1.26", "rich"])
