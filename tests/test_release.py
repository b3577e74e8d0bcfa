"""The release: a wheel and an sdist with the right files, which work in an empty environment."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import ebse

ROOT = Path(__file__).parent.parent
PACKAGE = Path(ebse.__file__).parent
HEAVY = {"torch", "sklearn", "numba", "scipy", "pandas", "matplotlib", "numpy"}
"""Packages that take seconds to import, and are imported on first use."""

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_heavy_packages_are_imported_on_first_use() -> None:
    """Neither by the package nor by its command line, but by the first estimator, which needs them."""
    lines = printed(f"""
import sys
import ebse, ebse.cli.app
print(*sys.modules)
sys.modules |= dict.fromkeys({HEAVY})
try:
    ebse.RBSE
except ImportError as error:
    print(error.name)
""").splitlines()
    loaded = set(lines[0].split())
    assert {"ebse", "ebse.cli.app"} <= loaded
    assert not HEAVY & loaded
    assert lines[1] in HEAVY
    assert set(dir(ebse)) >= {"RBSE", "SpreadingClassifier", "__version__"}


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {ebse.__version__}\n" in citation
    assert f"\n## [{ebse.__version__}]" in changelog


def built(folder: Path) -> tuple[Path, Path]:
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_released_files(tmp_path: Path) -> None:
    """The wheel, built from the sdist, has the package and nothing else, and works in an empty environment."""
    wheel, sdist = built(tmp_path / "dist")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"ebse-{ebse.__version__}.dist-info/METADATA").decode()
    sources = {
        f"ebse/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == sources
    assert "ebse/py.typed" in names
    assert f"Version: {ebse.__version__}" in metadata
    assert "Typing :: Typed" in metadata
    with tarfile.open(sdist) as packed:
        tops = {name.split("/")[1] for name in packed.getnames() if "/" in name}
    assert {
        "src",
        "tests",
        "docs",
        "examples",
        "README.md",
        "LICENSE",
        "SECURITY.md",
        "pyproject.toml",
    } <= tops
    assert not tops & {".venv", ".git", ".ci", "demo", "runs", "dist"}

    # An environment with nothing but the wheel's requirements.
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    table = tmp_path / "table.csv"
    table.write_text("a,b,c\n" + "1,0,1\n0,1,0\n" * 20)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        command = [str(python.with_name("ebse")), *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert run("--version").strip() == ebse.__version__
    assert "40 rows of 3 columns; binary" in run("fit", "table.csv", "--n-components", "2", "--n-epochs", "2")
    assert (tmp_path / "runs" / "table" / "model.safetensors").exists()
