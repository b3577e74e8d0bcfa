"""Words that are numbers or dates, as people write them."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebse.semi_supervised._words import DAY_FIRST, dates_in, numbers_in, read_dates, read_numbers


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "-2.5", "+3", "1e3", ".5"], [1, -2.5, 3, 1000, 0.5]),
        (["$1,200", "$50", "-$3.5"], [1200, 50, -3.5]),
        (["1.234,50 €", "12,00 €", "7 €"], [1234.5, 12, 7]),
        (["50.1%", "7 %", "-3%"], [50.1, 7, -3]),
        (["5 kg", "12.5kg", "0 KG"], [5, 12.5, 0]),
        (["1,234", "5,678"], [1234, 5678]),
        (["1,234", "5,5"], [1.234, 5.5]),
        (["1'000", "2 500.5", "3"], [1000, 2500.5, 3]),
        (["20 km/h", "35 km/h"], [20, 35]),
        (["-1,5", "2"], [-1.5, 2]),
    ],
)
def test_numbers(words: list[str], expected: list[float]) -> None:
    found = numbers_in(words)
    assert found is not None
    assert found.values == expected
    assert found.n_unread == 0


@pytest.mark.parametrize(
    "words",
    [
        ["01067", "10115", "80331"],
        ["12a", "12b", "7c"],
        ["5 kg", "7 lb"],
        ["red", "blue"],
        ["A1", "A2"],
        ["1-2", "3-4"],
        ["1st", "2nd", "3rd", "4th"],
        ["1.2.3", "2.0.1"],
        ["10:30", "11:45"],
        ["$5", "€5", "£7"],
        ["192.168.100.200", "10.0.0.1"],
        ["007A", "012 345"],
        [],
    ],
)
def test_words_that_are_no_numbers(words: list[str]) -> None:
    assert numbers_in(words) is None


@pytest.mark.parametrize(("n_words", "is_read"), [(1, True), (2, True), (3, False)])
def test_a_tenth_of_the_words_may_be_something_else(n_words: int, is_read: bool) -> None:
    words = [f"{i}.5" for i in range(20 - n_words)] + ["broken"] * n_words
    found = numbers_in(words)
    assert (found is not None) == is_read
    # All that can be read are read where the user says that they are numbers.
    assert read_numbers(words).n_unread == n_words


@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 3)), min_size=1), st.sampled_from(["", " kg", "%"])
)
def test_numbers_with_a_unit_are_read_back(numbers: list[float], unit: str) -> None:
    assert read_numbers([f"{x:.3f}{unit}" for x in numbers]).values == numbers
    # At least one entry must show that the comma is a decimal one.
    german = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) + unit for x in (*numbers, 1.25)]
    assert read_numbers(german).values == [float(f"{x:.2f}") for x in (*numbers, 1.25)]


DAYS = [datetime.date(2023, 4, 19), datetime.date(1999, 12, 31), datetime.date(2020, 2, 29)]
FORMS = (
    *(
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%y",
        "%d-%b-%Y",
        "%d.%b.%y",
        "%d %B %Y",
    ),
    *("%B %d, %Y", "%b %d %Y"),
)


@pytest.mark.parametrize("form", FORMS)
def test_dates(form: str) -> None:
    found = dates_in([day.strftime(form) for day in DAYS])
    assert found is not None
    assert found.values == [day.isoformat() for day in DAYS]
    assert (found.style == DAY_FIRST) == (form[:2] == "%d" and "b" not in form.lower())


def test_months_and_times() -> None:
    assert read_dates(["2023-04", "May 2021", "3. März 2020", "1 Okt. 2019"]).values == [
        *("2023-04-01", "2021-05-01", "2020-03-03", "2019-10-01")
    ]
    assert read_dates(["19-Apr-2023 10:30"]).values == ["2023-04-19 10:30"]


@pytest.mark.parametrize(
    "words",
    [
        ["red"],
        ["12-Xyz-2020"],
        ["2023-13"],
        ["45.1.2020", "1.50.2020"],
        ["12 monkeys 20"],
        ["Marathon 2020"],
        ["Mayor 2021"],
        [],
    ],
)
def test_words_that_are_no_dates(words: list[str]) -> None:
    assert dates_in(words) is None


@pytest.mark.parametrize(
    "words",
    [
        ["1,5", "1,234", "2,75", "3,125"],
        ["1,234 kg", "2,5 kg"],
        ["1,234", "5,678"],
        ["0.123", "1.250", "0.500", "2.125"] * 5 + ["1,5"],
        ["$1,200", "$50"],
        ["12.5%", "7%"],
    ],
)
def test_numbers_mean_the_same_alone(words: list[str]) -> None:
    """One by one, in the style of the column, as together."""
    found = numbers_in(words)
    assert found is not None
    assert [read_numbers([word], found.style).values[0] for word in words] == found.values


def test_one_comma_does_not_change_points() -> None:
    assert read_numbers(["0.123", "1.250", "0.500"] * 5 + ["1,5"]).values == [0.123, 1.25, 0.5] * 5 + [None]


def test_another_unit_is_not_read() -> None:
    assert read_numbers(["500 g", "3 kg", "4"], ".kg").values == [None, 3, 4]


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y"])
def test_dates_mean_the_same_alone(form: str) -> None:
    days = [datetime.date(2020, 3, 2), datetime.date(2020, 5, 4), datetime.date(2021, 12, 25)]
    found = dates_in([day.strftime(form) for day in days])
    assert found is not None
    for day in days:
        assert read_dates([day.strftime(form)], found.style).values == [day.isoformat()]
    # A typo of another row changes none.
    odd = [day.strftime(form) for day in days[:2]] + ["13/13/2020"]
    assert read_dates(odd, found.style).values[:2] == [day.isoformat() for day in days[:2]]


def test_long_words_are_refused_at_once() -> None:
    """Backtracking over many blanks would take minutes."""
    assert read_numbers(["1" + " " * 100_000 + "!"]).values == [None]
    assert read_dates(["1" * 100_000]).values == [None]
