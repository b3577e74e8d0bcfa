"""The workflow and the pre-commit hooks run what the Makefile runs."""

import re
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is in the extra ebse[dev]")

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "tests.yml"


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def targets(makefile: str) -> set[str]:
    """Targets that a Makefile defines, without variables."""
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.M))


def called(workflow: dict[str, Any]) -> set[str]:
    """Targets of make that the steps of a workflow run."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return {target for step in steps for target in re.findall(r"\bmake ([a-z][a-z-]*)", step.get("run", ""))}


def test_the_workflow_runs_targets_of_the_makefile() -> None:
    found = called(parsed(WORKFLOW))
    assert {"check", "test", "test-slow", "docs", "coverage"} <= found
    assert found <= targets((ROOT / "Makefile").read_text())


def test_an_unknown_target_is_noticed() -> None:
    workflow = {"jobs": {"a": {"steps": [{"uses": "x"}, {"run": "make test && make gone"}]}}}
    assert called(workflow) - targets("BIN := x\ntest: install\n\tpytest\n.venv/docs: x\n") == {"gone"}


def test_the_workflow_covers_every_python_of_the_metadata() -> None:
    metadata = (ROOT / "pyproject.toml").read_text()
    classified = set(re.findall(r"Python :: (3\.\d+)", metadata))
    matrix = parsed(WORKFLOW)["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["python"]) == classified
    assert {"lowest", "newest"} == {
        *matrix["dependencies"],
        *(one["dependencies"] for one in matrix["include"]),
    }


def test_the_hooks_run_the_linter_of_the_makefile() -> None:
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    entries = {hook["entry"].removesuffix(" --fix") for hook in repository["hooks"]}
    makefile = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    assert entries == {".venv/bin/ruff check", ".venv/bin/ruff format"}
    assert all(entry in makefile for entry in entries)
