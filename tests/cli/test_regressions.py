"""Regression tests of the command line: each of these was wrong once."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cli.lines import SMALL, ran

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(path: str, lines: list[str], names: str = "a,b,kind") -> None:
    Path(path).write_text("\n".join([names, *lines]) + "\n")


def classes(run: str) -> list[str]:
    rows = [json.loads(line) for line in (Path(run) / "rows.jsonl").read_text().splitlines()]
    return list(next(row for row in rows if row["kind"] == "labels")["labels"])


def test_force_is_refused_while_another_process_uses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    table("t.csv", ["0,1,x", "1,0,y"] * 10)
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    before = sorted(path.name for path in Path("runs/t").iterdir())
    code = (
        "import pathlib, sys; from ebse.workflow.run_folder import Lock\n"
        "held = Lock(pathlib.Path('runs/t')); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert ran(f"fit t.csv {SMALL} --label kind --force", monkeypatch) == 2
        other.communicate("")
    assert sorted(path.name for path in Path("runs/t").iterdir()) == before


def test_a_column_that_is_empty_at_first_is_imputed(monkeypatch: pytest.MonkeyPatch) -> None:
    table("t.csv", [",1", ",0", *["1,0", "0,1"] * 10], names="a,b")
    assert ran(f"fit t.csv {SMALL} --missing", monkeypatch) == 0


def test_labels_with_and_without_a_point_are_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    table("t.csv", ["0,1,0.0", "1,0,1.0", "1,1,"] * 8)
    table("u.csv", ["0,1,0", "1,0,1"] * 8)
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    assert classes("runs/t") == ["0", "1"]
    assert ran("predict runs/t u.csv", monkeypatch) == 0


def test_none_is_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    table("t.csv", ["0,1,none", "1,0,mild", "1,1,NA"] * 8)
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    assert classes("runs/t") == ["mild", "none"]


def test_many_classes_of_one_label_and_quantities_for_labels(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    letters = [f"{i % 2},{i // 2 % 2},{chr(97 + i) if i < 26 else ''}" for i in range(40)]
    table("t.csv", letters)
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    table("u.csv", [f"{i % 2},{i // 2 % 2},{i}.5" for i in range(26)])
    assert ran(f"fit u.csv {SMALL} --label kind", monkeypatch) == 2
    assert "must have labels that rows share" in capsys.readouterr().err


def test_labels_may_not_change_between_stop_and_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    lines = ["0,1,x", "1,0,y"] * 10
    table("t.csv", lines)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ebse.workflow.fit_pictures.picture_arrays", stopped)
        assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 130
    table("t.csv", ["0,1,z", *lines[1:]])
    assert ran("resume runs/t", monkeypatch) == 2
    assert "must be what the run began with" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["precious.csv", "folder"])
def test_a_page_replaces_no_other_file(name: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    table("precious.csv", ["0,1", "1,0"] * 5, names="a,b")
    Path("folder").mkdir()
    assert ran(f"fit precious.csv {SMALL}", monkeypatch) == 0
    before = Path("precious.csv").read_bytes()
    assert ran(f"report runs/precious --out {name}", monkeypatch) == 2
    assert "--out must be a page that ends in .html" in capsys.readouterr().err
    assert Path("precious.csv").read_bytes() == before


def test_images_of_another_size_or_scale(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    rng = np.random.default_rng(0)
    gray = rng.integers(0, 256, (20, 3, 3), dtype=np.uint8)
    np.savez("t.npz", X=gray, y=np.arange(20) % 2)
    np.savez("large.npz", X=rng.integers(0, 256, (20, 4, 4), dtype=np.uint8))
    np.savez("unit.npz", X=gray / 255)
    assert ran(f"fit t.npz {SMALL} --label y", monkeypatch) == 0
    assert ran("predict runs/t large.npz", monkeypatch) == 2
    assert "have 9 values in a row" in capsys.readouterr().err
    assert ran("predict runs/t unit.npz", monkeypatch) == 2
    assert "gray values from 0 to 255, got values up to 0.9" in capsys.readouterr().err
    np.savez("u.npz", X=(gray > 100).astype(float), y=np.arange(20) % 2)
    assert ran(f"fit u.npz {SMALL} --label y", monkeypatch) == 0
    assert ran("predict runs/u t.npz", monkeypatch) == 2
    assert "from 0 to 1, got values up to" in capsys.readouterr().err
    # The same for the classifier for few labels, and for tables of whole numbers.
    line = "--label kind"
    for name, X in (("bytes", gray.astype(float)), ("unit", gray / 255)):
        rows = [
            ",".join([*map(str, row), "xy"[i % 2] if i < 6 else ""]) for i, row in enumerate(X.reshape(20, 9))
        ]
        table(f"{name}.csv", rows, names="a,b,c,d,e,f,g,h,i,kind")
        assert ran(f"fit {name}.csv {line}", monkeypatch) == 0
    assert ran("predict runs/bytes unit.csv", monkeypatch) == 2
    assert (
        "unit.csv has entries from 0 to 1, but the rows of fit are from 0 to 255" in capsys.readouterr().err
    )
    assert ran("predict runs/unit bytes.csv", monkeypatch) == 2
    assert "but the rows of fit are from 0 to 1; divide it by 255" in capsys.readouterr().err
    assert ran("predict runs/unit unit.csv", monkeypatch) == 0


def test_other_compressions_and_long_headers_are_not_unpacked(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with zipfile.ZipFile("b.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", bytes(1000))
    assert ran("fit b.npz", monkeypatch) == 2
    assert "of another compression" in capsys.readouterr().err
    Path("h.npy").write_bytes(b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + bytes(100))
    assert ran("fit h.npy", monkeypatch) == 2
    assert "it is longer than any header" in capsys.readouterr().err


def test_nested_json_and_half_an_evaluation(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    table("t.csv", ["0,1,x", "1,0,y"] * 10)
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    with Path("runs/t/rows.jsonl").open("a") as file:
        for method, n in (("RBM mean", 4), ("RBSEClassifier", 6)):
            row = {"kind": "accuracy", "seed": None, "method": method, "n_shots": 1, "accuracies": [0.5] * n}
            file.write(json.dumps(row) + "\n")
    assert ran("report runs/t", monkeypatch) == 0
    with Path("runs/t/rows.jsonl").open("a") as file:
        file.write("[" * 100_000 + "]" * 100_000 + "\n")
    assert ran("report runs/t", monkeypatch) == 2
    assert "rows.jsonl must hold a line of JSON" in capsys.readouterr().err


def test_a_bug_ends_with_one(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    table("t.csv", ["0,1", "1,0"] * 5, names="a,b")

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ebse.workflow.fit.begin", broken)
    assert ran("fit t.csv", monkeypatch) == 1
    assert "this is a bug in ebse" in capsys.readouterr().err


def separable(path: str, n: int, labeled: int, seed: int = 0) -> np.ndarray:
    """Two classes that every column separates: values from 1 to 4 and from 6 to 9."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.where(y[:, None] == 1, rng.uniform(6, 9, (n, 4)), rng.uniform(1, 4, (n, 4)))
    words = [("high" if k else "low") if i < labeled else "" for i, k in enumerate(y)]
    lines = [",".join([*(f"{x:.4f}" for x in row), word]) for row, word in zip(X, words, strict=True)]
    table(path, lines, names="a,b,c,d,kind")
    return np.where(y == 1, "high", "low")


def test_predictions_are_right_on_separable_classes(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    truth = separable("t.csv", 200, 6)
    separable("new.csv", 60, 60, seed=1)
    line = "fit t.csv --label kind --split --n-components 8 --n-epochs 100"
    assert ran(line, monkeypatch) == 0
    written = [line.split(",") for line in Path("runs/t/predictions.csv").read_text().splitlines()]
    assert written[0] == ["row", "label", "predicted", "p(high)", "p(low)"]
    assert [row[2] for row in written[1:]] == truth.tolist()
    assert all((float(row[3]) > 0.5) == (row[2] == "high") for row in written[1:])
    capsys.readouterr()
    assert ran("predict runs/t new.csv --json", monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["accuracy"], found["n_labeled"], found["predicted"]) == (1.0, 60, {"high": 30, "low": 30})
    assert ran("evaluate runs/t new.csv --shots 1 5 --n-episodes 5 --json", monkeypatch) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["method"]: row["mean"] for row in rows if row["n_shots"] == 5} == {
        "RBM mean": 1.0,
        "RBSEClassifier": 1.0,
        "columns, logistic regression": 1.0,
    }


def test_seeds_and_keep_prob_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    separable("t.csv", 60, 60)
    assert ran("fit t.csv --label kind --split --n-components 8 --n-epochs 50", monkeypatch) == 0
    for name, flags in (("a", "--random-state 1"), ("b", "--random-state 2"), ("c", "--random-state 1")):
        assert ran(f"sample runs/t -n 20 --out {name}.npy {flags}", monkeypatch) == 0
        draws = f"transform runs/t t.csv --n-draws 2 --out {name}-draws.npy {flags}"
        assert ran(draws + (" --keep-prob 0.05" if name == "c" else ""), monkeypatch) == 0
    a, b, c = (np.load(f"{name}.npy") for name in "abc")
    np.testing.assert_array_equal(a, c)
    assert not np.array_equal(a, b)
    a, b, c = (np.load(f"{name}-draws.npy") for name in "abc")
    assert not np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_names_are_escaped_and_uncertain_rows_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    table("t.csv", ["0,1,<script>", "1,0,y", "1,1,", "0,0,"] * 5, names="a,<b>,kind")
    assert ran(f"fit t.csv {SMALL} --label kind", monkeypatch) == 0
    page = Path("runs/t/report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    rows = [line.split(",") for line in Path("runs/t/predictions.csv").read_text().splitlines()[1:]]
    sure = {row[0]: max(map(float, row[3:])) for row in rows if not row[1]}
    listed = re.findall(
        r"<tr><td>(\d+)</td><td>(?:y|&lt;)", page.split("Rows to label next")[1].split("</table>")[0]
    )
    assert [sure[row] for row in listed] == sorted(sure.values())[: len(listed)]
    assert listed
