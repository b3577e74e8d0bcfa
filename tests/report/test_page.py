"""The report page: numbers of the rows, escaped text, nothing from elsewhere."""

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from ebse.report import drawings, page, write_report
from ebse.report.claims import CLAIMS, Verdict
from ebse.report.findings import manifold_findings, one_shot_findings, one_shot_stats
from ebse.report.summaries import BySeed, accuracies, aligned_claims, checked_claims, difference, interval
from ebse.workflow.run_folder import CONFIG, FORMAT, ROWS
from rendering import skip_rendering


@pytest.fixture(autouse=True)
def unrendered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not rendered where a test is about the text of a page."""
    if "rendered" not in request.fixturenames:
        skip_rendering(monkeypatch)


@pytest.fixture
def rendered() -> None:
    """For tests in which figures are rendered."""


def accuracy(method: str, values: list[float], seed: int | None = None, n_shots: int = 1) -> dict[str, Any]:
    return {
        "kind": "accuracy",
        "method": method,
        "seed": seed,
        "n_shots": n_shots,
        "accuracies": values,
        "seconds": 1.0,
    }


ROWS_OF_TWO_SEEDS = [
    accuracy("pixels", [0.40, 0.42, 0.44]),
    accuracy("RBM mean", [0.50, 0.52, 0.54], seed=0),
    accuracy("RBM mean", [0.52, 0.54, 0.56], seed=1),
    accuracy("DropConnect, prior", [0.48, 0.50, 0.52], seed=0),
    accuracy("DropConnect, prior", [0.50, 0.52, 0.54], seed=1),
    accuracy("Bernoulli posterior samples", [0.50, 0.53, 0.54], seed=0),
    accuracy("Bernoulli posterior samples", [0.52, 0.53, 0.56], seed=1),
    accuracy("Bernoulli chain-sampled models", [0.60, 0.62, 0.65], seed=0),
    accuracy("Bernoulli chain-sampled models", [0.62, 0.64, 0.67], seed=1),
]


TRAINING = [
    {
        "kind": "training",
        "seed": 0,
        "model": "point",
        "seconds": 1.0,
        "history": [{"epoch": 1.0, "pseudo_log_likelihood": -3.0}],
    }
]


def made(folder: Path, rows: list[dict[str, Any]], experiment: str = "one-shot", **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"data": "folder/<digits>", "shots": [1], "seeds": [0, 1], "n_episodes": 3, **config}
    header = {"format": FORMAT, "experiment": experiment, "config": settings, "versions": {"ebse": "1"}}
    (folder / CONFIG).write_text(json.dumps(header))
    (folder / ROWS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


class Page(HTMLParser):
    """Cells of tables, text, and everything that a browser would load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.loaded: list[str] = []
        self.alternatives: list[str] = []
        self.text = ""
        self.open_tables = 0
        self._in_cell = False
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._in_cell = tag in ("td", "th")
        if self._in_cell:
            self.cells.append("")
        self.loaded += [named[name] or "" for name in ("src", "srcset", "href") if name in named]
        self.open_tables += tag == "details" and "open" in named
        if tag == "img":
            self.alternatives.append(named.get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_cell:
            self.cells[-1] += data


def test_intervals_are_students_t() -> None:
    found = interval({0: np.array([0.5, 0.6, 0.7]), 1: np.array([0.7, 0.8, 0.9])})
    assert found.mean == pytest.approx(70)
    assert found.by_seed == pytest.approx((60, 80))
    # Means of episodes are 60, 70, 80: standard error 10/√3, t of two degrees of freedom 4.3027.
    assert found.high - found.mean == pytest.approx(4.302653 * 10 / 3**0.5, rel=1e-6)
    # One episode has no interval.
    assert str(interval({None: np.array([0.5])})) == "50.0"


def test_differences_are_paired() -> None:
    pixels: BySeed = {None: np.array([0.1, 0.5, 0.9])}
    better: BySeed = {0: np.array([0.2, 0.6, 1.0]), 1: np.array([0.3, 0.7, 1.1])}
    found = difference(better, pixels)
    assert found is not None
    assert found.mean == pytest.approx(15)
    assert found.high - found.low == pytest.approx(0, abs=1e-9)
    reverse = difference(pixels, better)
    assert reverse is not None
    assert reverse.mean == pytest.approx(-15)


def test_unfinished_seeds_are_not_paired_with_others() -> None:
    reference: BySeed = {5: np.array([0.5, 0.5]), 0: np.array([0.3, 0.3]), 7: np.array([0.9, 0.9])}
    found = difference({7: np.array([0.9, 1.0])}, reference)
    assert found is not None
    assert found.by_seed == pytest.approx((5,))
    assert difference({8: np.array([0.9, 1.0])}, reference) is None


def test_claims_have_their_verdicts() -> None:
    found = checked_claims(accuracies(ROWS_OF_TWO_SEEDS, 1))
    assert [c.verdict for c in found] == ["yes", "yes", "no", "yes"]
    assert [c.difference.mean for c in found] == pytest.approx([11, -2, 0, 10 + 1 / 3], abs=1e-9)
    less = [accuracy("pixels", [0.4, 0.4, 0.41]), accuracy("RBM mean", [0.43, 0.43, 0.44], seed=0)]
    assert checked_claims(accuracies(less, 1))[0].verdict == "partly"
    unsure = [accuracy("pixels", [0.4, 0.4, 0.4]), accuracy("RBM mean", [0.4, 0.4, 0.8], seed=0)]
    assert checked_claims(accuracies(unsure, 1))[0].verdict == "no"
    hardly = [accuracy("pixels", [0.4, 0.4, 0.41]), accuracy("RBM mean", [0.41, 0.41, 0.42], seed=0)]
    assert checked_claims(accuracies(hardly, 1))[0].verdict == "no"
    assert "+11.0" in aligned_claims(accuracies(ROWS_OF_TWO_SEEDS, 1))


def test_numbers_of_the_rows_are_on_the_page(tmp_path: Path, rendered: None) -> None:
    rows = [*ROWS_OF_TWO_SEEDS, *TRAINING]
    path = write_report([made(tmp_path / "run", rows)], tmp_path / "deep" / "report.html")
    page = Page(path)
    assert "+10.3 (+8.9 to +11.8)" in page.cells
    assert "+11.0 (+11.0 to +11.0) points" in page.text
    assert "52 %" not in page.text
    assert "42 %" in page.text
    assert "52.0, 54.0" in page.cells
    assert "−2.0, −2.0" in page.cells
    assert all(alternative for alternative in page.alternatives)
    assert len(page.alternatives) == 2
    assert page.open_tables == 0
    assert all(address.startswith("data:") for address in page.loaded)
    assert "<digits>" not in path.read_text()
    assert not re.search(r"https?://", path.read_text())
    assert path.stat().st_size < 5e6


def test_curves_need_several_numbers_of_labels(tmp_path: Path) -> None:
    rows = [
        accuracy(m, [0.4, 0.5], n_shots=k, seed=s)
        for m, s in (("pixels", None), ("RBM mean", 0))
        for k in (1, 5)
    ]
    page = Page(write_report([made(tmp_path / "run", rows, shots=[1, 5])], tmp_path / "r.html"))
    assert "Accuracy against the number of labels per class" in page.alternatives


def test_two_runs_share_a_page(tmp_path: Path) -> None:
    row = {
        "kind": "manifold",
        "manifold": "arc",
        "law": "point",
        "seed": 0.0,
        "self_distance": 0.01,
        "image_distance": 0.01,
    }
    row |= {
        "isotropic_distance": 0.1,
        "tangent_spread": 0.0,
        "normal_spread": 0.0,
        "outliers_after_before": 0.7,
        "coverage": 0.4,
    }
    curves = made(tmp_path / "curves", [row], "manifolds", laws=["point"])
    page = Page(write_report([curves, made(tmp_path / "run", ROWS_OF_TWO_SEEDS)], tmp_path / "r.html"))
    assert "An RBM maps points of the curve to themselves: distance" in page.cells
    assert "RBM mean − pixels: +11.0 (+11.0 to +11.0) points" in page.text
    assert "1 of 1" in page.text


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folders must have at least one run"):
        write_report([], tmp_path / "r.html")
    with pytest.raises(ValueError, match="which has none yet"):
        write_report([made(tmp_path / "empty", [])], tmp_path / "r.html")
    with pytest.raises(ValueError, match="must be a run of manifolds, one-shot or fit, got 'other'"):
        write_report([made(tmp_path / "other", [{"kind": "other"}], "other")], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_figures_as_files(tmp_path: Path, rendered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        *ROWS_OF_TWO_SEEDS,
        {"kind": "training", "seed": 0, "model": "point", "seconds": 1.0, "history": []},
    ]
    run = made(tmp_path / "run", rows)
    write_report([run], tmp_path / "r.html", figures=tmp_path / "figures")
    found = sorted((tmp_path / "figures").iterdir())
    assert [path.name for path in found] == ["run-dots.png", "run-training.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in found)
    skip_rendering(monkeypatch)
    write_report([run], tmp_path / "r.html")
    assert len(list(tmp_path.iterdir())) == 3


FIT_CONFIG: dict[str, Any] = {
    "data": "folder/<prices>.csv",
    "class_prior": "estimate",
    "n_components": 8,
    "law": "bernoulli",
}
"""Settings of a fit; the paths and names in it are a user's own."""


MEMBERS: dict[str, Any] = {
    "kind": "members",
    "columns": [["<price>", "quantity", "numbers"], ["$size", "drop", "constant"]],
    "members": [["trees", 0.75, "1 label per class"], ["logistic regression", 0.25, "1 label per class"]],
    "prior": [["$5_{x}", 0.4, 0.05], ["<b>&", 0.6, 0.05]],
    "accuracy": None,
    "n_chosen": 0,
    "largest": ["<b>&", 2 / 3],
    "matters": [["<price>", 0.31]],
    "doubtful": [5, 6],
    "votes": [["trees", ["<b>&", "<b>&"]], ["logistic regression", ["$5_{x}", "<b>&"]]],
    "far": [[4, 3.25]],
    "label_next": [6, 4],
    "next_keys": [11, 22],
    "contents": [["<price>"], [["12"], ["13.5"]]],
}
"""What the classifier for few labels says about its answer."""


def fitted(folder: Path, source: str, *, never: list[str] | None = None, **more: Any) -> Path:
    """A fit with two classes whose names are awkward, and three unlabeled rows."""
    labels = {
        "kind": "labels",
        "labels": {"$5_{x}": 1, "<b>&": 2},
        "predicted": {"$5_{x}": 2, "<b>&": 4},
        "source": source,
        "n_sweeps": 0,
        "never": never or [],
    }
    rows = [labels, {"kind": "finished", "n_rows": 6, "n_columns": 3}]
    if source == "members":
        rows.insert(0, MEMBERS | more)
    made(folder, rows, "fit", **FIT_CONFIG)
    lines = [
        "row,label,predicted,p($5_{x}),p(<b>&)",
        "1,$5_{x},$5_{x},1,0",
        "2,<b>&,<b>&,0,1",
        "3,<b>&,<b>&,0,1",
    ]
    lines += ["4,,$5_{x},0.9,0.1", "5,,<b>&,0.45,0.55", "6,,<b>&,0.2,0.8"]
    (folder / "predictions.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("source", "model"), [("members", "few-label classifier"), ("draws", "ensemble"), ("mean", "ensemble")]
)
def test_a_fit_has_its_classes(source: str, model: str, tmp_path: Path) -> None:
    page = Page(write_report([fitted(tmp_path / "run", source)], tmp_path / "r.html"))
    for part in ("Model of <prices>.csv", model, "labels given, of 2 classes", "rows of 3 columns"):
        assert part in page.text
    assert page.alternatives[0] == "Rows predicted as each class"
    counts = page.cells.index("<b>&")
    assert page.cells[counts : counts + 3] == ["<b>&", "2", "4"]
    assert "A single label: $5_{x}." in page.text
    assert page.open_tables == 1


def test_a_page_of_few_labels_says_why(tmp_path: Path) -> None:
    """Rows to label as suggested, doubtful rows with votes, columns that matter, members and columns."""
    page = Page(write_report([fitted(tmp_path / "run", "members")], tmp_path / "r.html"))
    assert "Too few labels to estimate accuracy" in page.text
    first = page.cells.index("row")
    assert page.cells[first : first + 5] == ["row", "predicted", "p($5_{x})", "p(<b>&)", "<price>"]
    assert [page.cells[first + 5 * n] for n in (1, 2)] == ["6", "4"]
    assert [page.cells[first + 5 * n + 4] for n in (1, 2)] == ["12", "13.5"]
    second = page.cells.index("row", first + 1)
    assert page.cells[second : second + 5] == [
        "row",
        "predicted",
        "p($5_{x})",
        "p(<b>&)",
        "votes of the members",
    ]
    assert page.cells[second + 5 : second + 10] == [
        *("5", "<b>&", "0.45", "0.55", "<b>&: trees; $5_{x}: logistic regression")
    ]
    far = page.cells.index("3.2 ×")
    assert page.cells[far - 2 : far] == ["4", "$5_{x}"]
    assert "Rows predicted as another class if a column is shuffled" in page.alternatives
    trees = page.cells.index("trees")
    assert page.cells[trees : trees + 3] == ["trees", "0.75", "1 label per class"]
    constant = page.cells.index("$size")
    assert page.cells[constant : constant + 3] == ["$size", "drop", "constant"]


def test_a_page_names_classes_that_are_never_predicted(tmp_path: Path) -> None:
    run = fitted(tmp_path / "run", "members", never=["<b>&"])
    assert (
        "No row without a label is predicted as: <b>&." in Page(write_report([run], tmp_path / "r.html")).text
    )


@pytest.mark.parametrize(("n_chosen", "biased"), [(0, False), (2, True)])
def test_a_page_says_how_accurate_the_model_is(n_chosen: int, biased: bool, tmp_path: Path) -> None:
    accuracy = ["cross-validation", [["$5_{x}", 5, 10], ["<b>&", 40, 40]]]
    run = fitted(tmp_path / "run", "members", accuracy=accuracy, n_chosen=n_chosen)
    text = Page(write_report([run], tmp_path / "r.html")).text
    assert "90.0%, 95 % interval 78.6% to 95.7% (cross-validation over 50 labels)." in text
    assert "Too few labels" not in text
    assert "Always answering <b>& would be right for 66.7%." in text
    assert ("Biased: 2 of the labeled rows were suggested" in text) is biased


BASELINE = "columns, logistic regression"


def test_a_page_describes_the_methods_that_were_run(tmp_path: Path) -> None:
    """Of few labels: no ensemble, and differences to the baseline that the evaluation chose."""
    run = fitted(tmp_path / "run", "members")
    evaluated = [
        accuracy("FewLabelClassifier", [0.9, 1.0, 1.0]),
        accuracy(BASELINE, [0.5, 0.6, 0.6]),
    ]
    with (run / ROWS).open("a") as file:
        file.writelines(json.dumps(row | {"baseline": BASELINE}) + "\n" for row in evaluated)
    page = Page(write_report([run], tmp_path / "r.html"))
    assert "RBM" not in page.text
    assert "RBSEClassifier" not in page.text
    assert "FewLabelClassifier: the classifier of this run, fitted to the chosen labels" in page.text
    assert f"{BASELINE}: logistic regression on the standardized columns" in page.text
    assert f"points over {BASELINE}" in page.cells
    assert "+40.0 (+40.0 to +40.0)" in page.cells
    # Student's t interval of 90, 100, 100 is 82.3 to 111.0.
    assert "96.7 (82.3 to 100.0)" in page.cells


def test_a_page_of_an_ensemble_describes_its_methods(tmp_path: Path) -> None:
    run = fitted(tmp_path / "run", "mean")
    names = ("RBM mean", "RBSEClassifier", BASELINE)
    with (run / ROWS).open("a") as file:
        file.writelines(
            json.dumps(accuracy(name, [0.5, 0.6]) | {"baseline": "RBM mean"}) + "\n" for name in names
        )
    page = Page(write_report([run], tmp_path / "r.html"))
    assert "points over RBM mean" in page.cells
    assert all(f"{name}: " in page.text for name in names)
    assert "FewLabelClassifier" not in page.text


@pytest.mark.parametrize(("n_rows", "most"), [(3, False), (6, False), (7, True)])
def test_a_page_tells_of_unlabeled_rows_where_most_are(n_rows: int, most: bool, tmp_path: Path) -> None:
    """Three rows are labeled."""
    run = fitted(tmp_path / "run", "members")
    with (run / ROWS).open("a") as file:
        file.write(json.dumps({"kind": "finished", "n_rows": n_rows, "n_columns": 3}) + "\n")
    page = Page(write_report([run], tmp_path / "r.html"))
    assert ("Most rows have no label." in page.text) is most


def test_doubtful_rows_are_to_label_next_where_nothing_is_suggested(tmp_path: Path) -> None:
    page = Page(write_report([fitted(tmp_path / "run", "mean")], tmp_path / "r.html"))
    first = page.cells.index("row")
    assert [page.cells[first + 4 * n] for n in (1, 2, 3)] == ["5", "6", "4"]


def test_names_of_users_are_text(tmp_path: Path) -> None:
    """Neither HTML nor mathematics: the names of the classes are on the page as they are."""
    content = write_report([fitted(tmp_path / "run", "members")], tmp_path / "r.html").read_text()
    assert "<b>&" not in content
    assert "&lt;b&gt;&amp;" in content
    assert "<prices>" not in content


@pytest.mark.parametrize("name", ["$5", "$a$ and $b$", r"$\notacommand$", "a_$x^$", "$"])
def test_dollars_are_drawn_as_dollars(name: str, rendered: None) -> None:
    """With mathematics on, matplotlib refuses or changes these names."""
    from matplotlib.mathtext import MathTextParser

    def texts() -> list[str]:
        parsed: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MathTextParser, "parse", lambda self, text, *_: parsed.append(text))
            pngs = page._pngs(lambda: drawings.class_bars({name: 1, "b": 2}, {name: 3}), 50)
        assert [png[:4] for png in pngs] == [b"\x89PNG"] * 2
        return parsed

    assert texts() == []


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: drawings.class_bars({"a": 1, "b": 2}, {"a": 3}),
        lambda: drawings.heat_map(np.eye(2), ["a", "b"], label="row", signed=True),
        lambda: drawings.learning_curves(TRAINING),
    ],
    ids=["bars", "heat map", "legend"],
)
def test_only_the_text_of_a_figure_is_dark_or_light(draw: Callable[[], Figure], rendered: None) -> None:
    """A dark figure is the figure that is drawn in dark colors from the beginning."""
    light, dark = map(pixels, page._pngs(draw, 50))
    assert light.shape == dark.shape
    np.testing.assert_array_equal(light[..., 3], dark[..., 3])
    settings: Any = {name: page.DARK if x == page.LIGHT else x for name, x in page.STYLE.items()}
    with mpl.rc_context(settings):
        file = io.BytesIO()
        draw().savefig(file, format="png", dpi=50, facecolor="none")
    np.testing.assert_array_equal(dark, pixels(file.getvalue()))
    assert not np.array_equal(light, dark)


def test_a_damaged_table_of_predictions_is_refused(tmp_path: Path) -> None:
    run = fitted(tmp_path / "run", "mean")
    (run / "predictions.csv").write_text("row,label\n1,a\n")
    with pytest.raises(ValueError, match=r"predictions.csv must be as ebse wrote it"):
        write_report([run], tmp_path / "r.html")


def test_label_propagation_is_compared_with_pixels(tmp_path: Path) -> None:
    name = "label propagation on contrastive features"
    rows = [*ROWS_OF_TWO_SEEDS, accuracy(name, [0.7, 0.72, 0.74], seed=0)]
    rows += [accuracy(f"{name}, equal class prior", [0.8, 0.82, 0.84], seed=0)]
    found = one_shot_findings(accuracies(rows, 1))
    assert (found[-1].measured, found[-1].verdict) == (
        f"{name} − pixels: +30.0 (+30.0 to +30.0) points",
        "yes",
    )
    assert [stat.value for stat in one_shot_stats(accuracies(rows, 1), "1 label per class")] == [
        *("72 %", "42 %", "+10.3 points")
    ]
    worse = [*ROWS_OF_TWO_SEEDS, accuracy(name, [0.3, 0.32, 0.34], seed=0)]
    assert one_shot_findings(accuracies(worse, 1))[-1].verdict == "no"


def test_findings_of_the_curves_are_grouped_by_panel() -> None:
    claim = next(c for c in CLAIMS if c.panel == "c")
    good = Verdict(claim, 0.2, 0.25, 2)
    bad = Verdict(claim, 0.4, 0.45, 2)
    assert [f.verdict for f in manifold_findings([good, good])] == ["yes"]
    assert [f.verdict for f in manifold_findings([good, bad])] == ["partly"]
    assert [f.verdict for f in manifold_findings([bad])] == ["no"]
