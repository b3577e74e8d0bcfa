"""A user's own data, from the file to predictions, and runs that are stopped and go on."""

import csv
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.bad_files import BITS, GRAY, NAMES, idx, labeled, npy, npz
from cli.conftest import Copy
from cli.lines import SMALL, held, ran
from ebse.cli._show import Progress
from ebse.workflow import _spread as spread
from ebse.workflow.fit import FILES, SPREAD, load
from ebse.workflow.run_folder import read_header, read_results

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Of models that were trained for two epochs."""

Captured = pytest.CaptureFixture[str]
MADE = set(FILES) - {SPREAD}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(line: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Any:
    """What a command answers for machines: one object on one line, and nothing else."""
    capsys.readouterr()
    assert ran(f"{line} --json", monkeypatch) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.count("\n") == 1
    return json.loads(output.out)


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_data_alone(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    (folder / "rows.new.npy").write_bytes(npy(BITS))
    assert ran(f"fit rows.new.npy {SMALL}", monkeypatch) == 0
    output = capsys.readouterr()
    assert "40 rows of 6 columns; binary" in output.out
    assert "100 %" in output.err
    assert "ebse transform runs/rows OTHER-DATA" in output.out
    run = folder / "runs" / "rows"
    assert set(held(run)) == MADE - {"labeled.npz", "predictions.csv"}
    assert [row["kind"] for row in read_results(run)] == ["training", "finished"]


def test_few_labels(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    copied("rows.csv", folder)
    assert ran(f"fit rows.csv --label kind {SMALL}", monkeypatch) == 0
    assert "Labels: even 10, odd 10" in capsys.readouterr().out
    run = folder / "runs" / "rows"
    assert set(held(run)) == MADE
    header, *lines = table(run / "predictions.csv")
    assert header == ["row", "label", "predicted", "p(even)", "p(odd)"]
    assert [line[0] for line in lines] == [str(i) for i in range(1, 41)]
    assert {line[1] for line in lines} == {"even", "odd", ""}
    assert all(abs(float(line[3]) + float(line[4]) - 1) < 1e-3 for line in lines)
    page = (run / "report.html").read_text()
    assert all(text in page for text in ("even", "odd", "Rows to label next"))


def test_labels_spread_where_most_rows_have_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Two groups of rows that a label of each tells apart; predictions, suggestions and episodes follow."""
    monkeypatch.setattr(spread, "LEAST_ROWS", 50)
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    bits = (rng.random((60, 8)) < np.where(kind[:, None] == (np.arange(8) < 4), 0.95, 0.05)).astype(int)
    names = ",".join(f"b{i}" for i in range(8))

    def write(path: str, n_labels: int) -> None:
        lines = [
            ",".join(map(str, row)) + "," + (f"kind{k}" if i < n_labels else "")
            for i, (row, k) in enumerate(zip(bits, kind, strict=True))
        ]
        (folder / path).write_text("\n".join([f"{names},kind", *lines]) + "\n")

    write("few.csv", 4)
    write("all.csv", 60)
    assert ran(f"fit few.csv --label kind --out run {SMALL}", monkeypatch) == 0
    printed = capsys.readouterr()
    assert "Most rows have no label: the labels spread over all rows" in printed.out
    assert "s  labels spread over all rows" in printed.err
    assert set(held(folder / "run")) == MADE | {SPREAD}
    (labels,) = (row for row in read_results(folder / "run") if row["kind"] == "labels")
    assert labels["source"] == "spreading"
    # As many as clusters that hold rows without a label, ten at most, each once.
    assert 5 <= len(labels["label_next"]) == len(set(labels["label_next"])) <= 10
    assert min(labels["label_next"]) > 4
    page = (folder / "run" / "report.html").read_text()
    assert "Those that say most of other rows" in page
    found = said("predict run all.csv", monkeypatch, capsys)
    assert found["n_labeled"] + found["n_learned"] == 60
    assert found["accuracy"] > 0.9
    # The same rows are taken for the same as in the run.
    predicted = [
        [line[2] for line in table(path)[1:]]
        for path in (Path("run/predictions.csv"), Path("all-predictions.csv"))
    ]
    assert predicted[0] == predicted[1]
    rows = said("evaluate run all.csv --shots 1 --n-episodes 3", monkeypatch, capsys)["rows"]
    means = {row["method"]: row["mean"] for row in rows}
    assert means["SpreadingClassifier"] > 0.9
    sized = "--class-prior kind0=0.95,kind1=0.05"
    assert ran(f"fit few.csv --label kind --out sized {sized} {SMALL}", monkeypatch) == 0
    assert "kind0=0.95,kind1=0.05" in (folder / "sized" / "report.html").read_text()
    factors = [np.load(folder / run / SPREAD)["scales"] for run in ("run", "sized")]
    assert factors[0].tolist() == [1, 1]
    assert factors[1][0] > factors[1][1]
    assert "with class sizes kind0=0.95,kind1=0.05" in capsys.readouterr().out
    # Sizes that are far from the true ones are believed, here and there.
    rows = said("evaluate sized all.csv --shots 1 --n-episodes 3", monkeypatch, capsys)["rows"]
    assert {row["method"]: row["mean"] for row in rows}["SpreadingClassifier"] < 0.8
    for setting in ("class-prior equal", "n-rounds 0"):
        assert ran(f"fit few.csv --out none --{setting} {SMALL}", monkeypatch) == 2
        name = setting.split()[0].replace("-", "_")
        assert f"{name} must be given with labels, got none" in capsys.readouterr().err
    assert ran(f"fit few.csv --label kind --out alone --n-rounds 0 {SMALL}", monkeypatch) == 0
    alone = np.load(folder / "alone" / SPREAD)
    np.testing.assert_array_equal(alone["scores"], alone["alone"])
    held_by_the_run = load(folder / "alone").spread
    assert held_by_the_run is not None
    assert held_by_the_run.n_rounds == 0
    assert (np.load(folder / "run" / SPREAD)["scores"] != np.load(folder / "run" / SPREAD)["alone"]).any()
    # Fewer rows than labels need to spread: the ensemble's classifier.
    monkeypatch.setattr(spread, "LEAST_ROWS", 61)
    assert ran(f"fit few.csv --label kind --out run --force {SMALL}", monkeypatch) == 0
    assert set(held(folder / "run")) == MADE


def test_answers_for_machines(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("rows.csv", folder)
    found = said(f"fit rows.csv --label kind --out r {SMALL}", monkeypatch, capsys)
    assert (found["n_rows"], found["n_columns"], found["labels"]) == (40, 6, {"even": 10, "odd": 10})
    assert found["finished_before"] is False
    before = held(folder / "r")
    again = said("resume r", monkeypatch, capsys)
    assert again == found | {"finished_before": True}
    assert held(folder / "r") == before

    found = said("predict r rows.csv", monkeypatch, capsys)
    assert (found["predictions"], found["n_learned"]) == ("rows-predictions.csv", 20)
    assert table(folder / "rows-predictions.csv") == table(folder / "r" / "predictions.csv")

    assert said("transform r rows.csv --out h.csv", monkeypatch, capsys)["shape"] == [40, 4]
    assert table(folder / "h.csv")[0] == ["h0", "h1", "h2", "h3"]
    found = said("transform r rows.csv --n-draws 3 --n-sweeps 2 --out h.npz", monkeypatch, capsys)
    assert found["shape"] == [40, 3, 4]
    with np.load(folder / "h.npz") as arrays:
        assert arrays["X"].shape == (40, 3, 4)
    assert said("transform r rows.csv", monkeypatch, capsys)["out"] == "rows-representations.npy"
    assert np.load(folder / "rows-representations.npy").shape == (40, 4)

    assert said("sample r -n 5", monkeypatch, capsys)["shape"] == [5, 6]
    header, *lines = table(folder / "samples.csv")
    assert header == list(NAMES)
    assert {float(x) for line in lines for x in line} <= {0.0, 1.0}

    found = said("evaluate r --shots 1 2 --n-episodes 3", monkeypatch, capsys)["rows"]
    assert {row["n_shots"] for row in found} == {1, 2}
    assert "How well few labels do" in (folder / "r" / "report.html").read_text()
    before = held(folder / "r")
    assert said("evaluate r rows.csv --shots 1 --n-episodes 2", monkeypatch, capsys)["rows"]
    assert held(folder / "r") == before

    assert said("info r", monkeypatch, capsys)["state"] == "finished"
    assert said("info r/model.safetensors", monkeypatch, capsys)["kind"] == "estimator"
    found = said("info rows.csv --label kind", monkeypatch, capsys)
    assert (found["rows"], found["unlabeled"], found["labels"]) == (40, 20, {"even": 10, "odd": 10})
    assert said("report r", monkeypatch, capsys)["report"] == "report.html"


def test_answers_for_people(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("run", folder)
    copied("rows.csv", folder)
    before = held(folder / "run")
    lines = {
        "resume run": "run is finished: nothing to do.",
        "info run": "run of",
        "info rows.csv --label kind": "even 10, odd 10",
        "predict run rows.csv": "Predictions: rows-predictions.csv",
        "transform run rows.csv": "40 × 4",
        "sample run": "16 × 6",
    }
    for line, answer in lines.items():
        assert ran(line, monkeypatch) == 0
        assert answer in capsys.readouterr().out
    assert held(folder / "run") == before


def test_rows_without_labels_are_predicted(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any order of columns, with others among them."""
    copied("run", folder)
    (folder / "new.csv").write_text("name,f,e,d,c,b,a\nx,0,1,0,1,0,1\n")
    assert ran("predict run new.csv --out deep/er/answers.csv", monkeypatch) == 0
    assert len(table(folder / "deep" / "er" / "answers.csv")) == 2
    assert ran("predict run new.csv --out deep/er/answers.csv --force", monkeypatch) == 0


def test_force_begins_anew(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("rows.csv", folder)
    copied("run", folder)
    assert ran(f"fit rows.csv --drop kind --out run --force {SMALL} --json", monkeypatch) == 0
    assert set(held(folder / "run")) == MADE - {"labeled.npz", "predictions.csv"}
    assert read_header(folder / "run")["config"]["label"] is None


def test_missing_entries_and_quantities(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([BITS[:, :2], 100 * rng.random((40, 2))])
    lines = [
        ",".join("" if (i + j) % 7 == 0 else f"{x:.3f}" for j, x in enumerate(row)) for i, row in enumerate(X)
    ]
    kinds = ["x,", "y,", ",", ","] * 10
    text = "kind,a,b,c,d\n" + "".join(f"{kind}{line}\n" for kind, line in zip(kinds, lines, strict=True))
    (folder / "rows.csv").write_text(text)
    assert ran(f"fit rows.csv --missing --split --label kind {SMALL}", monkeypatch) == 0
    assert "2 of 4 columns are split at their quartiles" in capsys.readouterr().out
    assert ran("predict runs/rows rows.csv", monkeypatch) == 0
    assert len(table(folder / "rows-predictions.csv")) == 41
    assert ran("transform runs/rows rows.csv --out h.npy", monkeypatch) == 0
    assert np.isfinite(np.load(folder / "h.npy")).all()
    assert ran("evaluate runs/rows --shots 1 --n-episodes 2", monkeypatch) == 0


def test_other_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive with labels, and images in an idx file; hidden files have names, too."""
    (folder / "x.npz").write_bytes(npz(images=BITS, y=np.arange(40) % 2))
    (folder / ".x-idx3-ubyte").write_bytes(idx(np.concatenate([GRAY] * 3)))
    assert ran(f"fit x.npz --label y {SMALL} --json", monkeypatch) == 0
    assert ran("predict runs/x x.npz --json", monkeypatch) == 0
    assert ran(f"fit .x-idx3-ubyte {SMALL} --json", monkeypatch) == 0
    assert (folder / "runs" / "x-idx3-ubyte" / "model.safetensors").exists()


def test_settings_from_a_file(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("rows.csv", folder)
    (folder / "fit.toml").write_text('label = "kind"\nn_components = 3\nn_epochs = 1\nlaw = "gaussian"\n')
    assert ran("fit rows.csv --config fit.toml --n-components 5 --json", monkeypatch) == 0
    config = read_header(folder / "runs" / "rows")["config"]
    assert [config[name] for name in ("label", "n_components", "n_epochs", "law")] == [
        "kind",
        5,
        1,
        "gaussian",
    ]


@pytest.mark.parametrize(
    ("epoch", "settings"), [(1, "--law gaussian --momentum 0.5"), (2, ""), (4, "--law point --algorithm cd")]
)
def test_a_stopped_fit_goes_on_as_if_nothing_had_been(
    epoch: int, settings: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "rows.csv").write_bytes(labeled(["odd", "even"] * 20))
    line = f"fit rows.csv --label kind --n-components 4 --n-epochs 4 --batch-size 16 {settings}"
    assert ran(f"{line} --out whole", monkeypatch) == 0

    def stop(progress: Progress, step: Any) -> None:
        if step.done == epoch:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "at", stop)
        capsys.readouterr()
        assert ran(f"{line} --out parted", monkeypatch) == 130
    output = capsys.readouterr().err
    assert output == "ebse: stopped; what was learned is kept, and `ebse resume parted` goes on\n"
    assert not (folder / "parted" / "model.safetensors").exists()
    assert ran("resume parted", monkeypatch) == 0
    whole, parted = held(folder / "whole"), held(folder / "parted")
    assert set(whole) == set(parted) == MADE
    for name in ("model.safetensors", "predictions.csv", "columns.npz", "labeled.npz", "pictures.npz"):
        assert whole[name] == parted[name], name


def test_a_fit_stopped_before_its_page_gets_one(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied("run", folder)
    (folder / "run" / "report.html").unlink()
    assert ran("resume run", monkeypatch) == 0
    assert set(held(folder / "run")) == MADE


def test_a_fit_that_diverges_says_what_to_lower(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("rows.csv", folder)
    line = f"fit rows.csv --drop kind {SMALL} --json"
    assert ran(f"{line} --learning-rate 1e30", monkeypatch) == 2
    output = capsys.readouterr().err
    assert output.count("\n") == 1
    assert "lower learning_rate" in output
    assert ran(f"{line} --force", monkeypatch) == 0


def test_rows_are_called_by_a_column_and_those_learned_from_do_not_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    lines = [f"r{i},{i % 2},{(i // 2) % 2},{'xy'[i % 2]}" for i in range(40)]
    known = [line if i < 8 else line.rpartition(",")[0] + "," for i, line in enumerate(lines)]
    (folder / "t.csv").write_text("\n".join(["name,a,b,kind", *known]))
    (folder / "all.csv").write_text(
        "\n".join(["kind,b,a,name", *(",".join(line.split(",")[::-1]) for line in lines)])
    )
    assert ran(f"fit t.csv --label kind --id name {SMALL}", monkeypatch) == 0
    written = (folder / "runs/t/predictions.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in written] == ["row", *(f"r{i}" for i in range(40))]
    capsys.readouterr()
    assert ran("predict runs/t all.csv --json", monkeypatch) == 0
    told = json.loads(capsys.readouterr().out)
    # Every pair of values with its label was among the eight rows that were learned from.
    assert (told["n_learned"], told["n_labeled"], told["accuracy"]) == (40, 0, None)
