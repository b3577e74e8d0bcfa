"""Print pip constraints that pin every dependency of pyproject.toml to its lower bound.

python .github/lowest_versions.py > constraints.txt
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest(requirements: list[str]) -> list[str]:
    """``name==bound`` for each requirement ``name>=bound``; any other form is an error."""
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][^,;\s]*)", one) for one in requirements]
    without = [one for one, match in zip(requirements, found, strict=True) if match is None]
    if without:
        raise ValueError(f"dependencies must be NAME>=VERSION, got {', '.join(without)}; add a lower bound")
    return [f"{match[1]}=={match[2]}" for match in found if match is not None]


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    sys.stdout.writelines(f"{line}\n" for line in lowest(project["dependencies"]))
