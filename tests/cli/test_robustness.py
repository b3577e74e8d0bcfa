"""Runs and outputs under bad circumstances: edited files, links, removed folders, other encodings, formulas."""

import io
import json
import random
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.bad_files import BITS, bomb, few_labels, labeled
from cli.conftest import Copy
from cli.lines import SMALL, held, ran
from ebse.io import read_cells, read_rows
from ebse.workflow import fit as workflow

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def linked(run: Path) -> None:
    (run.parent / "precious").mkdir()
    (run.parent / "precious" / "file").touch()
    (run / "training").symlink_to(run.parent / "precious")


def a_folder_for_a_file(run: Path) -> None:
    (run / "predictions.csv").unlink()
    (run / "predictions.csv").mkdir()


def a_file_for_a_folder(run: Path) -> None:
    (run / "training").touch()


@pytest.mark.parametrize("change", [linked, a_folder_for_a_file, a_file_for_a_folder])
def test_force_refuses_what_is_not_of_the_run_before_it_deletes(
    change: Callable[[Path], None],
    folder: Path,
    copied: Copy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    run = copied("run", folder)
    copied("rows.csv", folder)
    change(run)
    before = held(folder)
    assert ran(f"fit rows.csv --label kind --out run --force {SMALL}", monkeypatch) == 2
    assert "run must hold nothing but the files of the run" in capsys.readouterr().err
    assert held(folder) == before


@pytest.mark.parametrize("where", ["write_npz", "_keep_predictions"])
def test_a_folder_that_is_removed_during_the_fit_is_not_recreated(
    where: str, folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("rows.csv", folder)
    real = getattr(workflow, where)

    def remove(*arguments: Any, **named: Any) -> Any:
        if (folder / "run" / "model.safetensors").exists() or where == "write_npz":
            real(*arguments, **named)
            shutil.rmtree(folder / "run")
            return None
        return real(*arguments, **named)

    monkeypatch.setattr(workflow, where, remove)
    assert ran(f"fit rows.csv --label kind --out run {SMALL} --json", monkeypatch) == 2
    assert "run must stay in place until the run is finished" in capsys.readouterr().err
    assert not (folder / "run").exists()


def test_leftovers_are_removed_when_a_run_is_opened_again(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied("stopped", folder)
    copied("rows.csv", folder)
    config = json.loads((folder / "stopped" / "config.json").read_text())
    config["config"]["data"] = str(folder / "rows.csv")
    (folder / "stopped" / "config.json").write_text(json.dumps(config))
    (folder / "stopped" / ".model.safetensors.123.partial").write_bytes(bytes(100))
    assert ran("resume stopped --json", monkeypatch) == 0
    assert not list((folder / "stopped").glob(".*.partial"))


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_survives_any_encoding(encoding: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes in Greek, printed to a stream that cannot show them, for people and for programs."""
    lines = [f"{i % 2},{i // 2 % 2},{('αβγ', 'δεζ')[i % 2] if i < 8 else ''}" for i in range(20)]
    (folder / "t.csv").write_text("\n".join(["a,b,kind", *lines]) + "\n", encoding="utf-8")

    def printed(line: str) -> bytes:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            assert ran(line, patch) == 0
            out.flush()
        found: bytes = out.buffer.getvalue()
        return found

    assert b"\\u03b1\\u03b2\\u03b3" in printed("fit t.csv --label kind")
    assert set(json.loads(printed("predict runs/t t.csv --json"))["predicted"]) == {"αβγ", "δεζ"}
    with pytest.raises(UnicodeEncodeError):
        "αβγ".encode(encoding)


FORMULAS = ["=1+1", "+1", "@now", "-a", "-1.5", "'=x", "''-a", "'tis", "plain", "\t=1", "-"]


def test_cells_are_no_formulas_and_labels_survive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels, row names, class names and column names, from a fit to its table and back through our reader."""
    names, kinds = ["=a", "+b"], [text for text in FORMULAS if text == text.strip()]
    rows = [
        [f"{text}{i}", str(i % 2), str(i // 2 % 2), kinds[i % len(kinds)]] for i, text in enumerate(kinds * 3)
    ]
    text = "\n".join(",".join(row) for row in [["name", *names, "kind"], *rows])
    (folder / "t.csv").write_text(text + "\n", encoding="utf-8")
    assert ran(f"fit t.csv --label kind --id name {SMALL} --json", monkeypatch) == 0
    content = (folder / "runs/t/predictions.csv").read_text(encoding="utf-8")
    cells = [cell for line in content.splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "-a")) or cell == "-"]
    header, *lines = read_cells(folder / "runs/t/predictions.csv")
    # A csv file that a user writes may hold escaped cells as well, which are read as what they stand for.
    expected = [{"'=x": "=x", "''-a": "'-a"}.get(row[3], row[3]) for row in rows]
    assert [line[1] for line in lines] == expected
    assert {name[2:-1] for name in header[3:]} == set(expected)
    back = read_rows(folder / "runs/t/predictions.csv", label="label", id="row", drop=("predicted",))
    assert back.labels is not None
    assert back.labels.tolist() == expected
    assert ran("sample runs/t -n 3", monkeypatch) == 0
    assert (folder / "samples.csv").read_text().startswith("'=a,'+b\n")
    assert read_rows(folder / "samples.csv").names == ("=a", "+b")


def test_archives_of_a_run_are_not_unpacked_beyond_their_size(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("run", folder)
    copied("rows.csv", folder)
    with zipfile.ZipFile(io.BytesIO(bomb())) as archive:
        huge = archive.read("X.npy")
    for name, member, line in (
        ("columns.npz", "names.npy", "predict run rows.csv"),
        ("labeled.npz", "X.npy", "predict run rows.csv"),
        ("pictures.npz", "components.npy", "report run --out page.html"),
    ):
        path = folder / "run" / name
        whole = path.read_bytes()
        with (
            zipfile.ZipFile(io.BytesIO(whole)) as old,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for each in old.namelist():
                new.writestr(each, huge if each == member else old.read(each))
        assert path.stat().st_size < 2**20
        assert ran(line, monkeypatch) == 2
        assert f"{name} must be as ebse wrote it" in capsys.readouterr().err
        path.write_bytes(whole)


VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    2.5,
    float("nan"),
    float("inf"),
    10**30,
    "",
    "x",
    [],
    ["x"],
    {},
    {"x": "y"},
]
LINES = (
    "info {}",
    "resume {}",
    "report {} --out page.html",
    "predict {} rows.csv --force",
    "evaluate {} --shots 1 --n-episodes 1",
)


def edits(rng: random.Random, value: Any) -> Any:
    """A JSON value with one part replaced, removed or added."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {key: x for key, x in value.items() if key != name}
        return value | {name: edits(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [edits(rng, x) if i == at else x for i, x in enumerate(value)]
    return rng.choice(VALUES)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
"""Of random edits: one of each in every run of the tests, the others with the slow ones."""


@pytest.mark.filterwarnings("ignore:rows.csv has columns")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("run", ["run", "few"])
def test_edited_results_never_end_in_a_traceback(
    run: str, seed: int, folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Random edits of rows.jsonl and config.json: a command works, or refuses in one line."""
    rng = random.Random(seed)
    copied(run, folder)
    data = "rows.csv" if run == "run" else "few.csv"
    shutil.copy(copied(data, folder), folder / "rows.csv") if data != "rows.csv" else None
    path = folder / run
    (path / "report.html").unlink()
    whole = {name: (path / name).read_bytes() for name in ("rows.jsonl", "config.json")}
    n_refused = 0
    for i in range(20):
        for name, content in whole.items():
            (path / name).write_bytes(content)
        if i % 3:
            rows = [json.loads(line) for line in whole["rows.jsonl"].splitlines()]
            rows[rng.randrange(len(rows))] = edits(rng, rng.choice(rows))
            (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            config = json.loads(whole["config.json"])
            (path / "config.json").write_text(json.dumps(config | {"config": edits(rng, config["config"])}))
        code = ran(LINES[i % len(LINES)].format(run), monkeypatch)
        said = capsys.readouterr().err
        assert code in (0, 2), said
        assert "Traceback" not in said
        n_refused += code == 2
    assert n_refused > 2


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path) as held:
        return {name: held[name] for name in held.files}


def array_edits(rng: random.Random, array: Any) -> Any:
    """An array of another type, shape or content."""
    choices: list[Callable[[], Any]] = [
        lambda: array[:0] if array.ndim else np.array([]),
        lambda: array[:-1] if array.ndim else np.array(3),
        lambda: np.concatenate([array, array]) if array.ndim else np.array("z"),
        lambda: array.astype("U9"),
        lambda: array.reshape(-1, 1),
        lambda: np.full_like(array, np.nan) if array.dtype.kind == "f" else np.array(7),
        lambda: np.full_like(array, np.inf) if array.dtype.kind == "f" else np.zeros_like(array),
        lambda: -array - 1 if array.dtype.kind in "fi" else array[::-1] if array.ndim else np.array(""),
        lambda: np.array(array, dtype=complex) if array.dtype.kind in "fi" else np.array(0),
        lambda: (array + 100) if array.dtype.kind in "fi" else np.array(["b"] * array.size),
    ]
    return rng.choice(choices)()


@pytest.mark.parametrize("name", ["columns.npz", "labeled.npz"])
@pytest.mark.parametrize("seed", SEEDS)
def test_edited_arrays_never_end_in_a_traceback(
    name: str,
    seed: int,
    folder: Path,
    copied: Copy,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    rng = random.Random(seed)
    path = copied("run", folder) / name
    copied("rows.csv", folder)
    whole = arrays_of(path)
    n_refused = 0
    for _ in range(12):
        member = rng.choice(sorted(whole))
        np.savez_compressed(path, **(whole | {member: array_edits(rng, whole[member])}))
        code = ran("predict run rows.csv --force", monkeypatch)
        said = capsys.readouterr().err
        assert code in (0, 2), said
        assert "Traceback" not in said
        n_refused += code == 2
    assert n_refused > 2


@pytest.mark.filterwarnings("ignore:column .* held numbers in fit")
@pytest.mark.parametrize("seed", SEEDS)
def test_edited_labeled_rows_never_end_in_a_traceback(
    seed: int, folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Of the classifier for few labels: cells replaced, lines and columns removed."""
    rng = random.Random(seed)
    path = copied("few", folder) / "labeled.csv"
    whole = [line.split(",") for line in path.read_text().splitlines()]
    n_refused = 0
    for _ in range(8):
        lines = [list(line) for line in whole]
        row, column = rng.randrange(len(lines)), rng.randrange(len(lines[0]))
        if rng.random() < 0.3:
            del lines[row]
        elif rng.random() < 0.5:
            lines = [[cell for i, cell in enumerate(line) if i != column] for line in lines]
        else:
            lines[row][column] = rng.choice(("", "x", "1e99", "inf", '"', "-1", "2024-01-01"))
        path.write_text("\n".join(map(",".join, lines)) + "\n")
        code = ran("evaluate few --shots 1 --n-episodes 1", monkeypatch)
        said = capsys.readouterr().err
        assert code in (0, 2), said
        assert "Traceback" not in said
        n_refused += code == 2
    assert n_refused > 0


def test_a_dollar_in_a_column_name(folder: Path, monkeypatch: pytest.MonkeyPatch, rendered: None) -> None:
    (folder / "t.csv").write_bytes(labeled(few_labels()).replace(b"a,b,", b"a$_{,$b$,"))
    assert ran(f"fit t.csv --label kind {SMALL} --json", monkeypatch) == 0
    assert (folder / "runs/t/report.html").exists()
    assert len(BITS) == len(read_cells(folder / "runs/t/predictions.csv")) - 1
