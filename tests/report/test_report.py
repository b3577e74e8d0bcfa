"""Claims of section 3.1 and Figure 2: rows in, numbers and figures out."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ebse._atomic import in_place
from ebse.report import page
from ebse.report.claims import CLAIMS, Row, claims_table, figures_table, verdicts
from ebse.report.figure2 import figure2


def row(law: str, manifold: str, **values: float) -> Row:
    base: Row = {
        "law": law,
        "manifold": manifold,
        "self_distance": 0.01,
        "image_distance": 0.02,
        "isotropic_distance": 0.03,
        "tangent_spread": 0.6,
        "normal_spread": 0.2,
        "outliers_after_before": 0.25,
        "coverage": 0.95,
    }
    return base | values


def test_a_claim_is_judged_by_its_mean_over_seeds() -> None:
    rows = [row("gaussian", "arc", outliers_after_before=x) for x in (0.2, 0.38)]
    found = {v.claim.panel: v for v in verdicts(rows)}
    assert found["c"].mean == pytest.approx(0.29)
    assert found["c"].worst == 0.38
    assert found["c"].met
    assert found["b"].mean == pytest.approx(3.0)
    rows.append(row("gaussian", "arc", outliers_after_before=0.4))
    assert not {v.claim.panel: v for v in verdicts(rows)}["c"].met


def test_the_worst_seed_is_the_one_nearest_to_failing() -> None:
    rows = [row("gaussian", "arc", coverage=x) for x in (0.7, 1.0)]
    assert {v.claim.panel: v for v in verdicts(rows)}["d"].worst == 0.7


def test_claims_without_rows_are_left_out() -> None:
    assert verdicts([]) == []
    assert {v.claim.manifold for v in verdicts([row("gaussian", "line")])} == {"line"}


def test_tables_hold_the_numbers() -> None:
    rows = [row(law, data) for law in ("point", "gaussian", "bernoulli") for data in ("arc", "line")]
    text = claims_table(verdicts(rows))
    assert len(text.splitlines()) == 1 + len(CLAIMS)
    assert text.count("does not hold") == 1  # 3 < 10 on the line
    assert text.count(" holds") == len(CLAIMS) - 1
    text = figures_table(rows)
    lines = [line.split() for line in text.splitlines()]
    assert lines[1][-1] == "3.00"
    assert lines[3][-1] == "–"
    assert "0.250" in lines[1]


def test_the_figure_has_a_row_of_panels_for_each_law() -> None:
    """In both widths, and it is rendered."""
    rng = np.random.default_rng(0)
    points = {name: rng.random((30, 2)) for name in ("training", "test", "outliers", "few")}
    points |= {f"{name}_images": rng.random((30, 7, 2)) for name in ("test", "outlier", "few")}
    figure = figure2({"point": points, "gaussian": points})
    assert len(figure.axes) == 8
    assert [axes.get_ylabel() for axes in figure.axes[::4]] == ["RBM", "Gaussian RBSE"]
    narrow = figure2({"point": points, "gaussian": points}, narrow=True)
    assert [axes.get_title() for axes in narrow.axes[:2]] == ["RBM", "Gaussian\nRBSE"]
    for each in (figure, narrow):
        light, dark = page._pngs(
            partial(figure2, {"point": points, "gaussian": points}, narrow=each is narrow), 40
        )
        assert light[:4] == dark[:4] == b"\x89PNG"
        assert light != dark


def test_writes_are_atomic(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    with in_place(path) as temporary:
        temporary.write_text("old")

    def fail() -> None:
        with in_place(path) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["rows.json"]
