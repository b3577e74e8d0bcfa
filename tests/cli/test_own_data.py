"""A user's own data, from the file to predictions, and runs that are stopped and resumed."""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.bad_files import BITS, GRAY, NAMES, idx, labeled, npy, npz
from cli.conftest import Copy, stop_at
from cli.lines import SMALL, held, ran
from ebse import FewLabelClassifier
from ebse.workflow.ensemble import PICTURES
from ebse.workflow.fit import FILES, load
from ebse.workflow.run_folder import read_header, read_results

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
"""Of models that were trained for two epochs."""

Captured = pytest.CaptureFixture[str]
ENSEMBLE = set(FILES) - {"labeled.csv"}
UNLABELED = ENSEMBLE - {"labeled.npz", "predictions.csv"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(line: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Any:
    """The output of a command for programs: one object on one line, and nothing else."""
    capsys.readouterr()
    assert ran(f"{line} --json", monkeypatch) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.count("\n") == 1
    return json.loads(output.out)


def table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_data_without_labels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, rendered: None
) -> None:
    (folder / "rows.new.npy").write_bytes(npy(BITS))
    assert ran(f"fit rows.new.npy {SMALL}", monkeypatch) == 0
    output = capsys.readouterr()
    assert "40 rows of 6 columns; binary" in output.out
    assert all(f"  {name}: done in" in output.err for name in ("reading", "training", "report"))
    assert "ebse transform runs/rows OTHER-DATA" in output.out
    run = folder / "runs" / "rows"
    assert set(held(run)) == UNLABELED
    assert [row["kind"] for row in read_results(run)] == ["training", "finished"]


def test_few_labels(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    copied("rows.csv", folder)
    assert ran(f"fit rows.csv --label kind {SMALL}", monkeypatch) == 0
    assert "Labels: even 10, odd 10" in capsys.readouterr().out
    run = folder / "runs" / "rows"
    assert set(held(run)) == ENSEMBLE
    header, *lines = table(run / "predictions.csv")
    assert header == ["row", "label", "predicted", "p(even)", "p(odd)"]
    assert [line[0] for line in lines] == [str(i) for i in range(1, 41)]
    assert {line[1] for line in lines} == {"even", "odd", ""}
    assert all(abs(float(line[3]) + float(line[4]) - 1) < 1e-3 for line in lines)
    page = (run / "report.html").read_text()
    assert all(text in page for text in ("even", "odd", "Rows to label next"))


FEW = set(FILES) - {PICTURES, "columns.npz", "labeled.npz"}
"""Files of a run of the classifier for few labels."""


def test_few_labels_of_a_table(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Two groups of rows that few labels tell apart; no ensemble is trained, and no flag is needed."""
    copied("few.csv", folder)
    copied("all.csv", folder)
    assert ran("fit few.csv --label kind --out run", monkeypatch) == 0
    printed = capsys.readouterr()
    assert "few.csv: 60 rows of 8 columns\n  binary (two values): b0, b1, b2" in printed.out
    assert "Accuracy: too few labels to estimate accuracy" in printed.out
    assert all(f"  {name}: done in" in printed.err for name in ("reading", "clustering", "classifiers"))
    assert "training" not in printed.err
    assert set(held(folder / "run")) == FEW
    results = {row["kind"]: row for row in read_results(folder / "run")}
    assert set(results) == {"members", "labels", "finished"}
    assert results["labels"]["source"] == "members"
    label_next = results["members"]["label_next"]
    # Ten at most, each once, and none that is labeled.
    assert 5 <= len(label_next) == len(set(label_next)) <= 10
    assert min(label_next) > 4
    page = (folder / "run" / "report.html").read_text()
    assert all(
        part in page
        for part in (
            "Too few labels to estimate accuracy",
            "Rows to label next",
            "Most doubtful rows",
            "Which columns matter",
            "Members and their weights",
            "What was done with each column",
        )
    )
    found = answer("predict run all.csv", monkeypatch, capsys)
    assert found["n_labeled"] + found["n_learned"] == 60
    assert found["accuracy"] > 0.9
    assert [line[2:] for line in table(Path("run/predictions.csv"))] == [
        line[2:] for line in table(Path("all-predictions.csv"))
    ]


def test_accuracy_is_estimated_where_labels_suffice(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("all.csv", folder)
    found = answer("fit all.csv --label kind", monkeypatch, capsys)["accuracy"]
    assert (found["how"], found["n"]) == ("cross-validation", 60)
    assert 0.8 < found["low"] < found["accuracy"] <= found["high"] <= 1
    assert "cross-validation over 60 labels" in (folder / "runs/all/report.html").read_text()
    found = answer("fit all.csv --label kind --force --hold-back 0.5", monkeypatch, capsys)["accuracy"]
    assert (found["how"], found["n"]) == ("held back", 30)
    capsys.readouterr()
    assert ran("info runs/all", monkeypatch) == 0
    assert "30 labels, chosen at random and held back" in capsys.readouterr().out


def test_an_estimate_from_suggested_rows_is_marked_as_biased(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The rows that the last run in the same folder suggested are labeled, then all others."""
    whole = copied("all.csv", folder).read_text().splitlines()
    copied("few.csv", folder)
    label_next = answer("fit few.csv --label kind --out run", monkeypatch, capsys)["label_next"]
    few = (folder / "few.csv").read_text().splitlines()
    others = [n for n in range(5, 61) if n not in label_next][:20]
    for rows, n_biased in ((label_next, len(label_next)), ([*label_next, *others], None)):
        header, *lines = (whole[n] if n in rows else line for n, line in enumerate(few))
        # Rows are recognized by their entries: people sort their tables.
        (folder / "few.csv").write_text("\n".join([header, *lines[::-1]]) + "\n")
        assert ran("fit few.csv --label kind --out run --force", monkeypatch) == 0
        said = capsys.readouterr().out
        assert "Biased: " in said
        # Equal rows have the same key.
        found = int(said.partition("Biased: ")[2].partition(" ")[0])
        assert n_biased is None or n_biased <= found < n_biased + 4
    # Another table in the same folder begins anew.
    copied("all.csv", folder)
    assert ran("fit all.csv --label kind --out run --force", monkeypatch) == 0
    assert "Biased" not in capsys.readouterr().out


@pytest.mark.filterwarnings("always:new.csv has columns")
def test_columns_of_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Words, dates, text, decimal commas and missing entries, separated by semicolons; and new rows."""
    rng = np.random.default_rng(0)
    lines, truth = [], []
    for i in range(120):
        kind = i % 2
        truth.append("wet" if kind else "dry")
        label = truth[-1] if i < 12 else ""
        color = ("blue", "brown")[kind] if rng.random() < 0.9 else ""
        day = f"{rng.integers(1, 28):02d}.{(1 if kind else 7)}.2024"
        amount = f"{5 * kind + rng.normal():.2f}".replace(".", ",")
        code = f"{rng.integers(0, 99):05d}"
        words = rng.choice(("rain cloud water storm" if kind else "sun sand heat wind").split(), 4)
        lines.append(";".join((f"site {i}", color, day, amount, code, " ".join(words), label)))
    names = "site;color;day;amount;code;note;state"
    (folder / "t.csv").write_text("\n".join([names, *lines]) + "\n")
    assert ran("fit t.csv --label state --id site --column code=category", monkeypatch) == 0
    said = capsys.readouterr().out
    for part in (
        "columns are separated by ';'",
        "date (dates): day",
        "quantity (numbers): amount",
        "category (as given): code",
        "missing): color",
        "different): note",
    ):
        assert part in said, said
    header, *rows = table(folder / "runs/t/predictions.csv")
    assert header[:3] == ["row", "label", "predicted"]
    assert [row[0] for row in rows] == [f"site {i}" for i in range(120)]
    assert np.mean([row[2] == word for row, word in zip(rows, truth, strict=True)]) > 0.9
    # New rows: other order of columns, one more column, decimal points and commas as delimiters.
    (folder / "new.csv").write_text(
        "note,more,amount,day,color,code\nrain water,1,5.1,03.01.2024,blue,00007\n"
    )
    assert ran("predict runs/t new.csv", monkeypatch) == 0
    assert "new.csv has columns that the run did not have, and they are not used: 'more'" in (
        capsys.readouterr().err
    )
    assert table(folder / "new-predictions.csv")[1][2] == "wet"
    (folder / "less.csv").write_text("note,amount\nrain water,5.1\n")
    assert ran("predict runs/t less.csv", monkeypatch) == 2
    assert "less.csv must have the columns of the run, got none named 'color', 'day', 'code'" in (
        capsys.readouterr().err
    )
    (folder / "case.csv").write_text("Note,amount,day,color,code\nrain,5.1,03.01.2024,blue,00007\n")
    assert ran("predict runs/t case.csv", monkeypatch) == 2
    assert "got none named 'note', but 'Note'; rename" in capsys.readouterr().err


def test_a_table_without_names(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The label comes first; another file may be compressed."""
    lines = [line.split(",") for line in copied("all.csv", folder).read_text().splitlines()[1:]]
    rows = [",".join([line[-1], *line[:-1]]) for line in lines]
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    with gzip.open(folder / "new.csv.gz", "wt") as file:
        file.write("\n".join(rows[:20]) + "\n")
    assert ran("fit t.csv --no-header --label 0", monkeypatch) == 0
    found = answer("predict runs/t new.csv.gz", monkeypatch, capsys)
    assert (found["n_rows"], found["n_learned"]) == (20, 20)
    assert answer("evaluate runs/t --shots 1 --n-episodes 2", monkeypatch, capsys)["rows"]


def test_labels_that_cannot_be_held_back_are_refused_before_anything_is_deleted(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("few", folder)
    copied("few.csv", folder)
    before = held(folder)
    assert ran("fit few.csv --label kind --out few --force --hold-back 0.5", monkeypatch) == 2
    assert "hold_back must leave labels of every class" in capsys.readouterr().err
    assert held(folder) == before


@pytest.mark.filterwarnings("always:all.csv has")
def test_labels_that_the_run_does_not_have_are_said(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("few", folder)
    path = copied("all.csv", folder)
    path.write_text(path.read_text().replace("kind1", "other"))
    assert ran("predict few all.csv --json", monkeypatch) == 0
    output = capsys.readouterr()
    assert "all.csv has 30 labels that the run does not have, such as 'other'" in output.err
    assert json.loads(output.out)["accuracy"] < 0.6


@pytest.mark.filterwarnings("ignore:the members")
def test_a_class_that_is_never_predicted_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Three labels of a class in the middle of another one, whose frequency is given as tiny."""
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{y:.3f}," for x, y in rng.normal(size=(80, 2))]
    for i in range(20):
        lines[i] += "ok" if i > 2 else "bad"
    (folder / "t.csv").write_text("\n".join(["a,b,state", *lines]) + "\n")
    assert ran("fit t.csv --label state --class-prior ok=0.999,bad=0.001", monkeypatch) == 0
    output = capsys.readouterr()
    assert "no row without a label is predicted as bad" in output.err
    assert "No row without a label is predicted as: bad." in (folder / "runs/t/report.html").read_text()


def test_settings_of_the_ensemble_train_one(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("few.csv", folder)
    assert ran(f"fit few.csv --label kind --out run {SMALL}", monkeypatch) == 0
    assert "n_components is a setting of the ensemble, so an ensemble is trained" in capsys.readouterr().out
    assert answer("info run/model.safetensors", monkeypatch, capsys)["kind"] == "RBSEClassifier"


def test_a_loaded_model_predicts_what_was_fitted(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits as a classifier that is fitted here, and nothing is fitted at load."""
    fitted = load(runs / "few")
    rows = fitted.read(runs / "few.csv", delimiter=None, array=None, labels=True)
    here = FewLabelClassifier(random_state=0).fit(rows.X, rows.labels)
    np.testing.assert_array_equal(fitted.model.predict_proba(rows.X), here.predict_proba(rows.X))

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(FewLabelClassifier, "fit", fail)
    monkeypatch.setattr("ebse.ensemble.RBSEClassifier.fit", fail)
    for run in ("few", "run"):
        again = load(runs / run)
        data = "few.csv" if run == "few" else "rows.csv"
        assert ran(f"predict {runs / run} {runs / data} --out {run}.csv --json", monkeypatch) == 0
        assert table(Path(f"{run}.csv")) == table(runs / run / "predictions.csv")
        assert again.classes


def test_class_prior(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    for name in ("few", "few.csv", "all.csv"):
        copied(name, folder)
    assert ran("fit few.csv --label kind --out sized --class-prior kind0=0.95,kind1=0.05", monkeypatch) == 0
    assert "kind0=0.95,kind1=0.05" in (folder / "sized" / "report.html").read_text()
    assert load(folder / "sized").model.class_prior == {"kind0": 0.95, "kind1": 0.05}
    rows = answer("evaluate few all.csv --shots 1 --n-episodes 3", monkeypatch, capsys)["rows"]
    means = {row["method"]: row["mean"] for row in rows}
    assert set(means) == {"FewLabelClassifier", "columns, logistic regression"}
    assert means["FewLabelClassifier"] > 0.9
    for setting in ("class-prior equal", "hold-back 0.2", "model few-label", "unlabeled-label -1"):
        assert ran(f"fit few.csv --drop kind --out none --{setting}", monkeypatch) == 2
        assert "must be given with labels, got none" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["transform few few.csv", "sample few"])
def test_commands_of_the_ensemble_need_one(
    line: str, folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("few", folder)
    copied("few.csv", folder)
    before = held(folder)
    assert ran(line, monkeypatch) == 2
    assert "few must have an ensemble" in (said := capsys.readouterr().err)
    assert "fit with --model rbse" in said
    assert held(folder) == before


def test_output_for_programs(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copied("rows.csv", folder)
    found = answer(f"fit rows.csv --label kind --out r {SMALL}", monkeypatch, capsys)
    assert (found["n_rows"], found["n_columns"], found["labels"]) == (40, 6, {"even": 10, "odd": 10})
    assert found["finished_before"] is False
    before = held(folder / "r")
    again = answer("resume r", monkeypatch, capsys)
    assert again == found | {"finished_before": True}
    assert held(folder / "r") == before

    found = answer("predict r rows.csv", monkeypatch, capsys)
    assert (found["predictions"], found["n_learned"]) == ("rows-predictions.csv", 20)
    assert table(folder / "rows-predictions.csv") == table(folder / "r" / "predictions.csv")

    assert answer("transform r rows.csv --out h.csv", monkeypatch, capsys)["shape"] == [40, 4]
    assert table(folder / "h.csv")[0] == ["h0", "h1", "h2", "h3"]
    found = answer("transform r rows.csv --n-draws 3 --n-sweeps 2 --out h.npz", monkeypatch, capsys)
    assert found["shape"] == [40, 3, 4]
    with np.load(folder / "h.npz") as arrays:
        assert arrays["X"].shape == (40, 3, 4)
    assert answer("transform r rows.csv", monkeypatch, capsys)["out"] == "rows-representations.npy"
    assert np.load(folder / "rows-representations.npy").shape == (40, 4)

    assert answer("sample r -n 5", monkeypatch, capsys)["shape"] == [5, 6]
    header, *lines = table(folder / "samples.csv")
    assert header == list(NAMES)
    assert {float(x) for line in lines for x in line} <= {0.0, 1.0}

    assert answer("info r", monkeypatch, capsys)["state"] == "finished"
    assert answer("info r/model.safetensors", monkeypatch, capsys)["kind"] == "RBSEClassifier"
    found = answer("info rows.csv --label kind", monkeypatch, capsys)
    assert (found["rows"], found["unlabeled"], found["labels"]) == (40, 20, {"even": 10, "odd": 10})
    assert answer("report r", monkeypatch, capsys)["report"] == "report.html"


@pytest.mark.parametrize(
    ("run", "kind"), [("run", "RBSEClassifier"), ("plain", "RBSE"), ("few", "FewLabelClassifier")]
)
def test_info_shows_the_kind_of_a_model(
    run: str, kind: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert answer(f"info {runs / run / 'model.safetensors'}", monkeypatch, capsys)["kind"] == kind


def test_evaluation_is_kept_once(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A second call replaces the accuracies of the same methods and numbers of labels; DATA keeps nothing."""
    copied("run", folder)
    copied("rows.csv", folder)

    def kept() -> dict[tuple[str, int], int]:
        rows = [row for row in read_results(folder / "run") if row["kind"] == "accuracy"]
        found = {(row["method"], row["n_shots"]): len(row["accuracies"]) for row in rows}
        assert len(found) == len(rows)
        return found

    found = answer("evaluate run --shots 1 2 --n-episodes 3", monkeypatch, capsys)["rows"]
    assert {row["n_shots"] for row in found} == {1, 2}
    first = kept()
    assert set(first.values()) == {3}
    assert len(first) == 6
    assert answer("evaluate run --shots 2 --n-episodes 4", monkeypatch, capsys)["rows"]
    assert kept() == {key: 4 if key[1] == 2 else 3 for key in first}
    assert "Accuracy with few labels" in (folder / "run" / "report.html").read_text()
    before = held(folder / "run")
    assert answer("evaluate run rows.csv --shots 1 --n-episodes 2", monkeypatch, capsys)["rows"]
    assert held(folder / "run") == before


def test_evaluation_uses_as_many_labels_as_there_are(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """By default of 1, 2 and 5 labels those that leave a row of each class to test."""
    copied("run", folder)
    table = pd.read_csv(copied("rows.csv", folder))
    table.groupby("kind").head(3).to_csv(folder / "few_labels.csv", index=False)
    found = answer("evaluate run few_labels.csv --n-episodes 2", monkeypatch, capsys)["rows"]
    assert {row["n_shots"] for row in found} == {1, 2}


def test_output_for_people(
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
    for line, expected in lines.items():
        assert ran(line, monkeypatch) == 0
        assert expected in capsys.readouterr().out
    assert held(folder / "run") == before


def test_rows_without_labels_are_predicted(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order of columns, with others among them."""
    copied("run", folder)
    (folder / "new.csv").write_text("name,f,e,d,c,b,a\nx,0,1,0,1,0,1\n")
    assert ran("predict run new.csv --out deep/er/answers.csv", monkeypatch) == 0
    assert len(table(folder / "deep" / "er" / "answers.csv")) == 2
    assert ran("predict run new.csv --out deep/er/answers.csv --force", monkeypatch) == 0


def test_a_table_without_column_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    lines = [f"{i % 2},{i // 2 % 2},{'xy'[i % 2] if i < 8 else ''}" for i in range(30)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    assert ran(f"fit rows.csv --no-header --label 2 {SMALL}", monkeypatch) == 0
    assert "30 rows of 2 columns" in capsys.readouterr().out
    assert answer("predict runs/rows rows.csv", monkeypatch, capsys)["n_rows"] == 30


def test_force_replaces_a_run(folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("rows.csv", folder)
    copied("run", folder)
    assert ran(f"fit rows.csv --drop kind --out run --force {SMALL} --json", monkeypatch) == 0
    assert set(held(folder / "run")) == UNLABELED
    assert read_header(folder / "run")["config"]["label"] is None


def test_missing_entries_and_quartiles(
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
    output = capsys.readouterr().out
    assert "2 of 4 columns are split at their quartiles" in output
    assert "missing entries are imputed by the ensemble" in output
    assert ran("predict runs/rows rows.csv", monkeypatch) == 0
    assert len(table(folder / "rows-predictions.csv")) == 41
    assert ran("transform runs/rows rows.csv --out h.npy", monkeypatch) == 0
    assert np.isfinite(np.load(folder / "h.npy")).all()
    assert ran("evaluate runs/rows --shots 1 --n-episodes 2", monkeypatch) == 0


def test_other_files(folder: Path, monkeypatch: pytest.MonkeyPatch, rendered: None) -> None:
    """An archive with labels, and images in an idx file; hidden files have names, too."""
    (folder / "x.npz").write_bytes(npz(images=BITS, y=np.arange(40) % 2))
    (folder / ".x-idx3-ubyte").write_bytes(idx(np.concatenate([GRAY] * 3)))
    assert ran(f"fit x.npz --label y {SMALL} --json", monkeypatch) == 0
    assert ran("predict runs/x x.npz --json", monkeypatch) == 0
    assert ran(f"fit .x-idx3-ubyte {SMALL} --json", monkeypatch) == 0
    assert (folder / "runs" / "x-idx3-ubyte" / "model.safetensors").exists()


def test_a_label_marks_unlabeled_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Without the option -1 is a class, with a note; with it the rows are those of empty labels."""
    marked = [("odd", "even", "-1", "-1")[i % 4] for i in range(40)]
    (folder / "rows.csv").write_bytes(labeled(marked))
    line = f"fit rows.csv --label kind {SMALL}"
    assert ran(f"{line} --out without", monkeypatch) == 0
    output = capsys.readouterr().out
    assert "-1 is the most frequent label (20 rows) and is read as a class" in output
    assert "Labels: -1 20, even 10, odd 10." in output
    assert ran(f"{line} --unlabeled-label -1 --out marked", monkeypatch) == 0
    output = capsys.readouterr().out
    assert "most frequent" not in output
    assert "Labels: even 10, odd 10." in output
    assert answer("predict marked rows.csv", monkeypatch, capsys)["n_learned"] == 20
    (folder / "rows.csv").write_bytes(labeled([word.replace("-1", "") for word in marked]))
    assert ran(f"{line} --out empty", monkeypatch) == 0
    one, two = held(folder / "marked"), held(folder / "empty")
    assert all(one[name] == two[name] for name in ("model.safetensors", "predictions.csv"))


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
def test_a_stopped_fit_gives_the_same_model_when_resumed(
    epoch: int, settings: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (folder / "rows.csv").write_bytes(labeled(["odd", "even"] * 20))
    line = f"fit rows.csv --label kind --n-components 4 --n-epochs 4 --batch-size 16 {settings}"
    assert ran(f"{line} --out whole", monkeypatch) == 0
    with monkeypatch.context() as patch:
        stop_at(epoch, patch)
        capsys.readouterr()
        assert ran(f"{line} --out parted", monkeypatch) == 130
    output = capsys.readouterr().err
    assert output == "ebse: stopped; `ebse resume parted` goes on\n"
    assert not (folder / "parted" / "model.safetensors").exists()
    assert ran("resume parted", monkeypatch) == 0
    whole, parted = held(folder / "whole"), held(folder / "parted")
    assert set(whole) == set(parted) == ENSEMBLE
    for name in ("model.safetensors", "predictions.csv", "columns.npz", "labeled.npz", "pictures.npz"):
        assert whole[name] == parted[name], name


def test_a_fit_stopped_before_its_page_gets_one(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied("run", folder)
    (folder / "run" / "report.html").unlink()
    assert ran("resume run", monkeypatch) == 0
    assert set(held(folder / "run")) == ENSEMBLE


def test_a_stopped_fit_of_few_labels_is_resumed(
    folder: Path, copied: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied("few.csv", folder)
    copied("few", folder)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ebse.workflow.fit.write_predictions", stopped)
        assert ran("fit few.csv --label kind --out parted", monkeypatch) == 130
    assert ran("resume parted", monkeypatch) == 0
    whole, parted = held(folder / "few"), held(folder / "parted")
    assert set(whole) == set(parted) == FEW
    for name in ("model.safetensors", "predictions.csv", "labeled.csv"):
        assert whole[name] == parted[name], name


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


def test_row_names_and_accuracy_on_new_rows_only(
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
    found = answer("predict runs/t all.csv", monkeypatch, capsys)
    # Every pair of values with its label was among the eight labeled rows of the fit.
    assert (found["n_learned"], found["n_labeled"], found["accuracy"]) == (40, 0, None)


def test_few_labels_do_not_import_torch(folder: Path, copied: Copy) -> None:
    """Fit and predict in a new process; scikit-learn is imported, so modules are found."""
    copied("few.csv", folder)
    code = """
import sys
from ebse.cli.app import main
for line in ("fit few.csv --label kind", "predict runs/few few.csv"):
    sys.argv = ["ebse", *line.split(), "--json"]
    try:
        main()
    except SystemExit as end:
        assert not end.code
print(*({"sklearn", "torch"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "sklearn"


def test_python_m_ebse(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ebse", "--help"], capture_output=True, text=True, check=True
    )
    assert all(f" {name} " in done.stdout for name in ("fit", "predict", "report"))
