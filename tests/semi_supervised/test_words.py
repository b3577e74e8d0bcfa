"""Words that are numbers or dates, as people write them."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebse.semi_supervised._words import dates_in, numbers_in, read_dates, read_numbers


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
    assert found.unread == []


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
    assert read_numbers(words).unread == ["broken"] * n_words


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
    assert found[0].values == [day.isoformat() for day in DAYS]
    assert found[1] == (form[:2] == "%d" and "b" not in form.lower())


def test_months_and_times() -> None:
    assert read_dates(["2023-04", "May 2021", "3. März 2020", "1 Okt. 2019"])[0].values == [
        *("2023-04-01", "2021-05-01", "2020-03-03", "2019-10-01")
    ]
    assert read_dates(["19-Apr-2023 10:30"])[0].values == ["2023-04-19 10:30"]


@pytest.mark.parametrize(
    "words", [["red"], ["12-Xyz-2020"], ["2023-13"], ["45.1.2020", "1.50.2020"], ["12 monkeys 20"], []]
)
def test_words_that_are_no_dates(words: list[str]) -> None:
    assert dates_in(words) is None
