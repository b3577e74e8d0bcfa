"""Columns of raw tables: their kinds, features of variance 1, missing entries, and files."""

import copy
import datetime
import decimal
import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse, stats

from ebse._archive import State
from ebse.semi_supervised._columns import (
    MOST_LEVELS,
    TEXT_VARIANCE,
    Levels,
    Quantities,
    Table,
    as_frame,
    on_common_scale,
    raw,
)

N = 300
RNG = np.random.default_rng(0)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(i)) for i in RNG.integers(0, 900, N)]
TIMES = [datetime.datetime(day.year, day.month, day.day, i % 24, 30) for i, day in enumerate(DAYS)]
WORDS = np.array(["red", "green", "blue", "gray"])[RNG.integers(0, 4, N)]
CODES = np.repeat([0, 1, 2, 3, 4], [100, 10, 90, 10, 90])
TEXT = [" ".join(RNG.choice(["ship", "sea", "wind", "port", "crew", "sail"], 5)) for _ in range(N)]
WHOLE = RNG.integers(0, 10**6, N)
GAUSS = RNG.normal(size=N)
POISSON = np.sort(RNG.poisson(3, N))
TWO = RNG.integers(0, 2, N)

COLUMNS: dict[str, tuple[Any, str, str]] = {
    "quantity": (GAUSS, "quantity", "numbers"),
    "heavy tails": (RNG.standard_t(1, N), "quantity", "numbers, heavy tails"),
    "whole heavy tails": (
        np.exp(6 * RNG.random(N) ** 4 * 3).astype(int) + WHOLE % 100,
        "quantity",
        "heavy tails",
    ),
    "whole": (WHOLE, "quantity", "whole numbers"),
    "float32": (GAUSS.astype(np.float32), "quantity", "numbers"),
    "numbers as words": ([f" {x:.3f} " for x in GAUSS], "quantity", "numbers"),
    "decimals": ([decimal.Decimal(f"{x:.3f}") for x in GAUSS], "quantity", "numbers"),
    "durations": (pd.to_timedelta(WHOLE, unit="s"), "quantity", "numbers"),
    "nullable": (pd.array([None, *WHOLE[1:]], dtype="Int64"), "quantity", "whole numbers, 1 missing"),
    "count": (POISSON, "count", "with one peak"),
    "words": (WORDS, "category", "4 different words"),
    "string dtype": (
        pd.array([None, *WORDS[1:]], dtype="string"),
        "category",
        "4 different words, 1 missing",
    ),
    "codes": (CODES, "category", "whole numbers of 5 levels with several peaks"),
    "pandas category": (pd.Categorical(WORDS), "category", "4 different words"),
    "pandas codes": (pd.Categorical(POISSON), "category", "a category of pandas, of numbers"),
    "pandas intervals": (pd.cut(GAUSS, 4), "category", "4 different words"),
    "many levels": ([f"city {i % 200}" for i in range(N)], "category", "200 different words"),
    "mixed": ([1 if i % 3 else "one" if i % 2 else True for i in range(N)], "category", "3 different words"),
    "binary": (TWO, "binary", "two values"),
    "binary words": (np.array(["no", "yes"])[TWO], "binary", "two values"),
    "booleans": (TWO > 0, "binary", "two values"),
    "nullable booleans": (
        pd.array([None, *(TWO[1:] > 0)], dtype="boolean"),
        "binary",
        "two values, 1 missing",
    ),
    "present or not": (["x" if i else None for i in TWO], "binary", "present or missing"),
    "a date or not": ([DAYS[0] if i else None for i in TWO], "binary", "present or missing"),
    "datetime64": (np.array(TIMES, dtype="datetime64[s]"), "date", "dates"),
    "time zone": (pd.to_datetime(TIMES).tz_localize("Europe/Berlin", nonexistent="NaT"), "date", "dates"),
    "python dates": ([None, *DAYS[1:]], "date", "dates, 1 missing"),
    "python datetimes": (TIMES, "date", "dates"),
    "iso": ([day.isoformat() for day in DAYS], "date", "dates"),
    "iso with time": ([time.isoformat() for time in TIMES], "date", "dates"),
    "dotted": ([f"{day:%d.%m.%Y}" for day in DAYS], "date", "dates"),
    "day first": ([f"{day:%d/%m/%Y}" for day in DAYS], "date", "dates"),
    "month first": ([f"{day:%m/%d/%Y %H:%M}" for day in TIMES], "date", "dates"),
    "text": (TEXT, "text", "text, "),
    "constant": (np.ones(N), "drop", "constant"),
    "constant word": (["a"] * N, "drop", "constant"),
    "missing": ([np.nan] * N, "drop", "all entries are missing"),
    "missing objects": ([None] * N, "drop", "all entries are missing"),
    "missing words": (["?", "NA", "n/a", "", " ", "null"] * (N // 6), "drop", "all entries are missing"),
    "user_id": (RNG.permutation(10**6)[:N], "drop", "identifier: a different whole number"),
    "position": (np.arange(N) + 17, "drop", "identifier: a different whole number"),
    "hash": ([f"x{i:05x}" for i in RNG.permutation(10**5)[:N]], "drop", "identifier: a different word"),
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame({name: values for name, (values, _, _) in COLUMNS.items()})


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> Table:
    return Table.learned(frame)


def views_of(values: Any, kind: Any = None) -> tuple[Table, Any, Any]:
    """The table of one column, and its features in both views."""
    one = pd.DataFrame({"x": values})
    made = Table.learned(one, "auto" if kind is None else {"x": kind})
    return made, *made(one)


@pytest.mark.parametrize("name", COLUMNS)
def test_kinds_are_recognized(name: str, table: Table) -> None:
    found = table.described().set_index("column").loc[name]
    assert found["kind"] == COLUMNS[name][1]
    assert COLUMNS[name][2] in found["why"]


def test_a_light_tail_is_not_heavy(table: Table) -> None:
    found = table.described().set_index("column")["why"]
    assert "heavy" not in found["quantity"]
    assert "heavy" not in found["whole"]


def test_numbers_that_repeat_or_have_gaps_are_no_identifiers() -> None:
    for name, values in (("position", np.arange(N) * 2), ("user_id", np.arange(N) // 2), (0, np.arange(N))):
        described = Table.learned(pd.DataFrame({name: values})).described()
        assert described["kind"].tolist() == ["quantity"]


@pytest.mark.parametrize("name", [name for name, (_, kind, _) in COLUMNS.items() if kind != "drop"])
def test_variance_of_a_column_is_one(name: str) -> None:
    """In both views; a feature that marks missing entries of a quantity or a date adds to it."""
    values, kind, _ = COLUMNS[name]
    _, *views = views_of(values)
    some_missing = bool(pd.isna(pd.Series(values)).any())
    for features in views:
        assert features.dtype == np.float32
        np.testing.assert_allclose(features.mean(0), 0 if kind != "text" else features.mean(0), atol=1e-5)
        part = float(pd.isna(pd.Series(values)).mean())
        marks = {"quantity": 1.0, "date": 0.5}.get(kind, 0.0) * part * (1 - part) if some_missing else 0.0
        expected = TEXT_VARIANCE if kind == "text" else 1 + marks
        np.testing.assert_allclose(features.var(0, dtype=np.float64).sum(), expected, rtol=1e-3)


DATE_COLUMNS = ("python dates", "iso", "dotted", "day first")


@pytest.mark.parametrize("name", DATE_COLUMNS)
def test_dates_are_the_same_however_they_are_written(name: str) -> None:
    found = raw(pd.Series(COLUMNS[name][0], name="x"), "x").values
    expected = pd.Series(DAYS, dtype="datetime64[s]")
    missing = found.isna()
    assert missing.sum() == (name == "python dates")
    assert (found[~missing] == expected[~missing]).all()


@pytest.mark.parametrize(
    "pattern", ["%d/%m/%Y", "%d-%m-%y", "%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y-%m-%dT%H:%M:%S"]
)
def test_one_order_of_day_and_month_in_all_rows(pattern: str) -> None:
    """Also in rows which would allow both, alone or among others."""
    written = pd.Series([f"{day:{pattern}}" for day in DAYS])
    expected = pd.Series(DAYS, dtype="datetime64[s]")
    found = raw(written, "x")
    assert (found.values == expected).all()
    for i in range(20):
        assert raw(written.iloc[[i]], "x", form=found.form, style=found.style).values.iloc[0] == expected[i]


def test_dates_that_contradict_each_other_are_words() -> None:
    assert raw(pd.Series(["25/12/2020", "12/25/2020"]), "x").form == "word"
    assert raw(pd.Series(["31/02/2020", "12/12/2020"]), "x").form == "word"


def test_time_zones_are_converted() -> None:
    there = pd.Series(pd.to_datetime(["2020-06-01 12:00"]).tz_localize("Europe/Berlin"))
    assert raw(there, "x").values[0] == pd.Timestamp("2020-06-01 10:00")


def with_gaps(values: Any, gaps: Any) -> Any:
    column = pd.Series(values).astype(object)
    column[gaps] = None
    return column


@pytest.mark.parametrize(
    "name", ["quantity", "count", "codes", "words", "binary", "datetime64", "iso", "text"]
)
def test_missing_entries(name: str) -> None:
    """Marked by a feature, or a level of their own; rows with the entry are not all the same."""
    gaps = np.arange(0, N, 3)
    values = with_gaps(COLUMNS[name][0], gaps)
    made, standard, ranks = views_of(values)
    assert made.columns[0].kind == COLUMNS[name][1]
    assert f"{len(gaps)} missing" in made.columns[0].why
    for features in (standard, ranks):
        assert np.isfinite(features).all()
        assert (features[gaps] == features[0]).all()
        assert not (features[1:3] == features[0]).all()


def test_a_missing_quantity_is_the_median_and_marked() -> None:
    values = np.array([*np.arange(21) / 2 + 0.1, np.nan, np.nan])
    _, standard, _ = views_of(values)
    np.testing.assert_allclose(standard[-1, 0], standard[10, 0])
    part = 2 / 23
    np.testing.assert_allclose(standard[-1, 1], 1 - part, rtol=1e-6)
    np.testing.assert_allclose(standard[0, 1], -part, rtol=1e-6)


def test_entries_that_are_missing_in_new_rows_only(table: Table, frame: pd.DataFrame) -> None:
    empty = pd.DataFrame({name: [None] * 2 for name in frame.columns}, dtype=object)
    for features in table(empty):
        assert np.isfinite(features).all()
        assert features.shape[1] == table(frame).standard.shape[1]


def test_standardized_values() -> None:
    _, standard, _ = views_of(GAUSS)
    np.testing.assert_allclose(standard[:, 0], (GAUSS - GAUSS.mean()) / GAUSS.std(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "values", [RNG.normal(size=257), RNG.integers(0, 9, 257), RNG.permutation(129), np.r_[np.zeros(60), 1:6]]
)
def test_ranks_are_midranks(values: Any) -> None:
    """Of 257, 129 or 65 rows every one is a quantile: ranks are exact."""
    values = values.astype(float)
    made = Quantities.learned(values[:, np.newaxis])
    expected = (stats.rankdata(values) - 1) / (len(values) - 1)
    np.testing.assert_allclose(made._ranks(values[:, np.newaxis])[:, 0], expected, atol=1e-12)
    view = made(values[:, np.newaxis]).ranks[:, 0]
    np.testing.assert_allclose(view, (expected - expected.mean()) / expected.std(), atol=1e-5)


def test_ranks_of_many_rows_are_within_a_quantile() -> None:
    values = RNG.exponential(size=5000)
    made = Quantities.learned(values[:, np.newaxis])
    expected = (stats.rankdata(values) - 1) / 4999
    assert abs(made._ranks(values[:, np.newaxis])[:, 0] - expected).max() < 1 / 256


def test_ranks_do_not_depend_on_units() -> None:
    _, _, ranks = views_of(GAUSS)
    _, _, other = views_of(np.exp(3 * GAUSS))
    # Quantiles are interpolated between rows, which a curve changes by less than one of 256.
    assert abs(ranks - other).max() < 2 * np.sqrt(12) / 256


def test_rows_far_outside_are_limited() -> None:
    made, *_ = views_of(GAUSS)
    assert made(pd.DataFrame({"x": [1e15, -1e15]})).standard[:, 0].tolist() == [20, -20]


def test_rare_levels_are_pooled() -> None:
    values = ["a"] * 100 + ["b"] * 60 + [f"rare{i}" for i in range(20)]
    made, standard, _ = views_of(values, "category")
    assert made.coders[0].levels == ["a", "b"]
    assert len(np.unique(standard, axis=0)) == 3
    assert (standard[160:] == standard[160]).all()
    # A level that fit did not have is like the rare ones.
    np.testing.assert_array_equal(made(pd.DataFrame({"x": ["new"]})).standard[0], standard[160])


def test_levels_have_a_limit() -> None:
    values = np.repeat([f"l{i:03d}" for i in range(MOST_LEVELS + 30)], 5)
    made, standard, _ = views_of(values, "category")
    assert len(made.coders[0].levels) == MOST_LEVELS
    np.testing.assert_allclose(standard.var(0).sum(), 1, rtol=1e-4)


def test_a_level_that_fit_did_not_have_is_the_mean() -> None:
    made, standard, _ = views_of(WORDS)
    found = made(pd.DataFrame({"x": ["purple", "red", None]})).standard
    assert (found[[0, 2]] == 0).all()
    np.testing.assert_array_equal(found[1], standard[list(WORDS).index("red")])


def test_codes_are_levels_and_a_quantity() -> None:
    made, standard, ranks = views_of(CODES)
    assert standard.shape == (N, 6)
    np.testing.assert_allclose(standard[:, 5], np.sqrt(0.5) * (CODES - CODES.mean()) / CODES.std(), atol=1e-5)
    np.testing.assert_array_equal(standard[:, :5], ranks[:, :5])
    np.testing.assert_array_equal(made(pd.DataFrame({"x": CODES.astype(float)})).standard, standard)
    np.testing.assert_array_equal(made(pd.DataFrame({"x": CODES.astype(str)})).standard, standard)


def test_text_of_the_same_words_is_near() -> None:
    texts = [
        "the ship left the port",
        "a ship in the port",
        "wind and rain today",
        "rain and wind again",
    ] * 10
    made, standard, _ = views_of([f"{text} {i}" for i, text in enumerate(texts)])
    assert made.columns[0].kind == "text"
    near, far = (np.linalg.norm(standard[0] - standard[i]) for i in (1, 2))
    assert near < far
    assert (made(pd.DataFrame({"x": [None, "unknown terms only"]})).standard == 0).all()


def test_terms_of_a_single_row_are_not_kept() -> None:
    made, *_ = views_of([f"{text} secret{i}" for i, text in enumerate(TEXT)])
    assert set(made.coders[0].terms) == {"ship", "sea", "wind", "port", "crew", "sail"}


def test_text_without_common_words_is_dropped() -> None:
    made = Table.learned(pd.DataFrame({"x": GAUSS[:20], "t": [f"aa{i} bb{i} cc{i}" for i in range(20)]}))
    assert made.described()["why"][1] == "text in which no word occurs twice"


ALL_FORMS: dict[str, Any] = {
    "polars": lambda f: pl.DataFrame({name: list(f[name]) for name in f}, strict=False),
    "objects": lambda f: f.to_numpy(dtype=object),
    "lists": lambda f: f.to_numpy(dtype=object).tolist(),
}


@pytest.mark.parametrize("form", ALL_FORMS)
def test_frames_arrays_and_lists_have_the_same_features(form: str) -> None:
    plain = pd.DataFrame(
        {
            "q": GAUSS,
            "n": np.where(TWO, np.nan, GAUSS),
            "w": WHOLE,
            "c": WORDS,
            "b": TWO > 0,
            "d": TIMES,
            "t": TEXT,
        }
    )
    expected = Table.learned(plain)
    other = as_frame(ALL_FORMS[form](plain))
    found = Table.learned(other)
    assert [c.kind for c in found.columns] == [c.kind for c in expected.columns]
    for a, b in zip(found(other), expected(plain), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_polars_with_nulls() -> None:
    made = as_frame(pl.DataFrame({"i": [1, None, 3], "s": ["a", None, "b"], "d": [DAYS[0], None, DAYS[1]]}))
    assert [raw(made[c], c).form for c in made] == ["number", "word", "date"]
    assert [int(raw(made[c], c).values.isna().sum()) for c in made] == [1, 1, 1]


def test_tensors_and_images() -> None:
    images = RNG.integers(0, 256, (9, 4, 3)).astype(np.uint8)
    assert as_frame(images).shape == (9, 12)
    np.testing.assert_array_equal(as_frame(torch.as_tensor(GAUSS.reshape(-1, 3))), GAUSS.reshape(-1, 3))


def test_names_that_are_not_words_are_numbers() -> None:
    assert list(as_frame(pd.DataFrame({"a": [1], 5: [2]})).columns) == [0, 1]


BAD: dict[str, tuple[Any, Any, str]] = {
    "sparse": (
        sparse.eye(3).tocsr(),
        TypeError,
        r"X must be a frame or a dense array, got a sparse matrix; pass X\.toarray",
    ),
    "masked": (np.ma.masked_array(np.eye(3)), TypeError, "X must not be a masked array"),
    "one dimension": (GAUSS, ValueError, "X must be a table of rows and columns .2-D., got 1 dimensions"),
    "three dimensions": (np.zeros((2, 2, 2)), ValueError, "got 3 dimensions"),
    "complex": (np.eye(3) * 1j, ValueError, "X must be real. Complex data not supported"),
    "ragged": ([[1, 2], [3]], ValueError, "X must have rows of the same length"),
    "twice": (
        pd.DataFrame(np.eye(2), columns=["a", "a"]),
        ValueError,
        "columns of different names, got 'a' twice; rename",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_are_none(name: str) -> None:
    X, error, message = BAD[name]
    with pytest.raises(error, match=message):
        as_frame(X)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e25])
@pytest.mark.parametrize("as_words", [False, True])
def test_infinities_are_refused(value: float, as_words: bool) -> None:
    column: Any = np.where(np.arange(N) == 7, value, GAUSS)
    column = [str(x) for x in column] if as_words else column
    what = "infinity" if np.isinf(value) else r"1e\+25"
    with pytest.raises(
        ValueError, match=f"X must have entries below 1e.20 .*, got {what} in row 7, column 'x'; leave"
    ):
        views_of(column)
    made, *_ = views_of(GAUSS)
    with pytest.raises(ValueError, match="in row 7, column 'x'"):
        made(pd.DataFrame({"x": column}, index=range(50, 50 + N)))


def test_other_objects_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"column 'x' must hold words, numbers or dates, got list: .*; convert or drop it"
    ):
        views_of([[1, 2]] * 5)


def test_a_table_without_a_usable_column() -> None:
    message = r"X must have a column that tells rows apart, got none that is usable \('a': constant; 'b': all entries are missing\)"
    with pytest.raises(ValueError, match=message):
        Table.learned(pd.DataFrame({"a": [1, 1, 1], "b": [None, None, None]}))


def test_kinds_that_are_given() -> None:
    given = {
        "zip": "category",
        "year": "quantity",
        "id": "quantity",
        "note": "text",
        "when": "date",
        "no": "drop",
    }
    columns: dict[str, Any] = {
        "zip": WHOLE // 10**5,
        "year": CODES,
        "id": np.arange(N),
        "note": [text.split()[0] for text in TEXT],
        "when": DAYS,
        "no": GAUSS,
        "auto": GAUSS,
    }
    made = Table.learned(pd.DataFrame(columns), given)
    described = made.described().set_index("column")
    assert described["kind"].to_dict() == {**given, "auto": "quantity"}
    assert (described.loc[list(given), "why"] == "as given").all()
    automatic = Table.learned(pd.DataFrame(columns)).described().set_index("column")["kind"]
    assert (
        automatic.loc[["zip", "year", "id", "note", "no"]]
        != described.loc[["zip", "year", "id", "note", "no"], "kind"]
    ).all()
    # Levels of a category that was given are words, in any type.
    coder = made.coders[made.columns[0].coder]
    assert isinstance(coder, Levels)
    assert coder.levels == [str(i) for i in range(10)]
    as_float = made(pd.DataFrame({**columns, "zip": columns["zip"].astype(float)}))
    np.testing.assert_array_equal(as_float.standard, made(pd.DataFrame(columns)).standard)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": "drop"}, r"columns must name columns of X, got 'y'; there are \['x'\]"),
        (
            {"x": "number"},
            "columns must give one of quantity, category, date, text, drop for 'x', got 'number'; pass one",
        ),
        ("all", "columns must be 'auto' or a mapping from names to kinds, got 'all'; pass, for example"),
        (["x"], "columns must be 'auto' or a mapping"),
        ({"x": "quantity"}, "column 'x' must hold numbers to be a quantity, got 'red'; give it another kind"),
        ({"x": "date"}, "column 'x' must hold dates to be a date, got 'red'"),
    ],
)
def test_kinds_that_cannot_be_given(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table.learned(pd.DataFrame({"x": ["red", "green", "red"]}), given)


@pytest.mark.parametrize("kind", ["quantity", "category", "date", "text"])
def test_a_kind_does_not_help_a_column_that_says_nothing(kind: str) -> None:
    made = Table.learned(pd.DataFrame({"x": [None] * 5, "q": GAUSS[:5]}), {"x": kind})
    assert made.described()["kind"].tolist() == ["drop", "quantity"]


def pixels(n: int = 50, d: int = 20) -> Any:
    made = RNG.integers(0, 17, (n, d)).astype(float)
    made[0], made[1] = 0, 16
    return made


def test_pixels_have_a_common_scale() -> None:
    X = pixels()
    X[:, 3] *= 0.01
    assert on_common_scale(X)
    made = Table.learned(pd.DataFrame(X))
    assert set(made.described()["why"]) == {"numbers on a common scale, as pixels are"}
    standard, ranks = made(pd.DataFrame(X))
    np.testing.assert_array_equal(standard, ranks)
    # Divided by one number: a pixel that varies little stays so.
    np.testing.assert_allclose(standard.var(0).mean(), 1, rtol=1e-4)
    np.testing.assert_allclose(standard.std(0) / standard.std(0)[0], X.std(0) / X.std(0)[0], rtol=1e-4)


@pytest.mark.parametrize(
    "X",
    [
        pixels(d=15),
        pixels() - (np.arange(20) == 3),
        np.where(np.arange(20) == 3, np.nan, pixels()),
        pixels() * 10.0 ** np.arange(20),
        pixels() + 1,
        np.zeros((5, 20)),
        np.abs(RNG.normal(size=(50, 20))) * np.arange(1, 21),
    ],
)
def test_ordinary_tables_have_none(X: Any) -> None:
    assert on_common_scale(pixels())
    assert not on_common_scale(X)


def test_words_beside_pixels_make_an_ordinary_table() -> None:
    made = Table.learned(pd.DataFrame(pixels(), columns=[f"p{i}" for i in range(20)]).assign(c=WORDS[:50]))
    assert not made.coders[0].common


def state_of(table: Table) -> State:
    """As a file gives it back."""
    return State(json.loads(json.dumps(table.facts())), {k: x.copy() for k, x in table.arrays().items()})


def test_a_table_is_restored(table: Table, frame: pd.DataFrame) -> None:
    made = Table.from_state(state_of(table))
    assert {type(coder).__name__ for coder in made.coders} == {"Quantities", "Levels", "Dates", "Texts"}
    pd.testing.assert_frame_equal(made.described(), table.described())
    other = frame.iloc[::-1].assign(words="purple")
    for rows in (frame, other):
        for a, b in zip(made(rows), table(rows), strict=True):
            np.testing.assert_array_equal(a, b)


SMALL = pd.DataFrame(
    {"q": np.where(TWO, np.nan, GAUSS), "k": CODES, "c": WORDS, "d": DAYS, "t": TEXT, "n": np.ones(N)}
)
"""Coders: 0 Quantities, 1 and 2 Levels, 3 Dates, 4 Texts."""


def set_fact(where: list[Any], value: Any) -> Any:
    def change(state: State) -> None:
        at: Any = state.facts
        for key in where[:-1]:
            at = at[key]
        at[where[-1]] = value

    return change


def set_entry(name: str, at: Any, value: Any) -> Any:
    def change(state: State) -> None:
        state.arrays[name][at] = value

    return change


CHANGES: dict[str, Any] = {
    "no coders": set_fact(["coders"], []),
    "an unknown coder": set_fact(["coders", 0, "coder"], "Table"),
    "a coder of others": set_fact(["coders", 3, "coder"], "Quantities"),
    "a coder that is not there": set_fact(["columns", 0, 4], 5),
    "a coder before the first": set_fact(["columns", 0, 4], -2),
    "a coder that is no number": set_fact(["columns", 0, 4], 0.0),
    "a column too few": set_fact(["columns", 0, 4], -1),
    "a column too many": set_fact(["columns", 5, 4], 0),
    "a form that there is not": set_fact(["columns", 2, 3], "byte"),
    "words for a quantity": set_fact(["columns", 0, 3], "word"),
    "numbers for a date": set_fact(["columns", 3, 3], "number"),
    "a name twice": set_fact(["columns", 0, 0], "c"),
    "a name that is a list": set_fact(["columns", 0, 0], ["q"]),
    "a short column": set_fact(["columns", 0], ["q", "quantity"]),
    "levels twice": set_fact(["coders", 2, "levels"], ["blue", "blue", "green", "red"]),
    "levels of two types": set_fact(["coders", 2, "levels"], ["blue", 1.0, "green", "red"]),
    "levels that are lists": set_fact(["coders", 2, "levels"], [["blue"], ["gray"], ["green"], ["red"]]),
    "fewer levels": set_fact(["coders", 2, "levels"], ["blue"]),
    "levels as a word": set_fact(["coders", 2, "levels"], "blue"),
    "frequencies above one": set_entry("2.frequencies", 0, 3.0),
    "negative frequencies": set_entry("2.frequencies", 0, -0.1),
    "quantiles that descend": set_entry("0.quantiles", 5, 99.0),
    "a negative deviation": set_entry("0.facts", 2, -1.0),
    "a deviation of ranks of 0": set_entry("0.facts", 4, 0.0),
    "more missing than there are": set_entry("0.facts", 5, 1.5),
    "moments without a scale": set_entry("3.moments", 6, 0.0),
    "ordered by what is not there": lambda s: s.arrays.pop("1.ordered.facts"),
    "terms twice": set_fact(["coders", 4, "terms"], ["crew", "crew", "sail", "sea", "ship", "wind"]),
    "fewer terms": set_fact(["coders", 4, "terms"], ["crew"]),
    "terms that are numbers": set_fact(["coders", 4, "terms"], [1, 2, 3, 4, 5, 6]),
    "a scale of 0": set_fact(["coders", 4, "scale"], 0.0),
    "an infinite scale": set_fact(["coders", 4, "scale"], float("inf")),
    "components of other terms": lambda s: s.arrays.update(
        {"4.components": s.arrays["4.components"][:, :-1]}
    ),
    "quantiles in one dimension": lambda s: s.arrays.update({"0.quantiles": s.arrays["0.quantiles"][:, 0]}),
    "moments too few": lambda s: s.arrays.update({"3.moments": s.arrays["3.moments"][:-1]}),
}


@pytest.fixture(scope="module")
def small() -> Table:
    made = Table.learned(SMALL)
    assert [type(coder).__name__ for coder in made.coders] == [
        "Quantities",
        "Levels",
        "Levels",
        "Dates",
        "Texts",
    ]
    return made


@pytest.mark.parametrize("name", CHANGES)
def test_doctored_tables_are_refused(name: str, small: Table) -> None:
    """By an error that a reader of files names the file in."""
    state = copy.deepcopy(state_of(small))
    Table.from_state(state)
    CHANGES[name](state)
    with pytest.raises((ValueError, LookupError, TypeError)):
        Table.from_state(state)
