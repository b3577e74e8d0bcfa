"""Columns of a raw table as numbers: what kind each column is, and its features, learned without labels.

Rows have two views. In ``standard`` quantities are standardized; in ``ranks`` they are replaced by their
ranks, which depend neither on units nor on heavy tails. Categories, dates and text are the same in both.
Every column has variance 1 in total, however many features it has, and a text more.
"""

import datetime
import decimal
import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ebse import _archive
from ebse._missing import MISSING_WORDS
from ebse._validation import LARGEST
from ebse.semi_supervised._words import MOST, dates_in, numbers_in, read_dates, read_numbers

Array = npt.NDArray[Any]
Column = Any
"""A column of a frame, a pandas Series: its stubs cannot say what a raw one holds."""

GIVEN = ("quantity", "category", "date", "text", "drop")
"""Kinds that a user may give for a column."""
MOST_LEVELS, FEW_LEVELS = 50, 20
"""Levels of a category that have a feature of their own; whole numbers of no more levels may be codes."""
RARE = 0.005
"""Levels with a smaller part of the rows are pooled, and levels of a single row."""
N_QUANTILES = 257
"""Quantiles of a quantity, by which its ranks are computed."""
N_SAMPLE = 20_000
"""Rows at most of which quantiles are computed."""
WORDS = 3
"""Words in the median entry from which on a column of many levels is text."""
N_TERMS, N_TOPICS = 5_000, 50
"""Terms of TF-IDF, and components of its truncated SVD, at most."""
TEXT_VARIANCE = 5.0
"""Of all features of a text together: it says more than one number does."""
HEAVY = 10.0
"""Kurtosis above which a quantity has heavy tails; it is 3 for a Gaussian, and 9 for an exponential law."""
LEAST_COMMON = 16
"""Quantities from which on a table may be one of pixels, which are measured on a common scale."""
MOST_EXTREME = 20.0
"""Standard deviations from the mean, at most, of a row that lies outside of those of ``fit``."""
IDENTIFIERS = re.compile(r"(.*[_ .-])?(id|uuid|guid|index|key|nr|no|number)|unnamed.*|row.*", re.IGNORECASE)
"""Names of columns that number the rows."""
NUMBERS = (bool, int, float, decimal.Decimal, np.bool_, np.number)
"""Types of entries that are numbers."""
COMMON = "numbers on a common scale, as pixels are"
"""Why columns are quantities that are divided by the same number."""
UNLIKE, LEAST_UNLIKE = 0.5, 5
"""Part of the entries of a column of new rows that are unlike those of ``fit``, above which it warns; and
entries that it takes."""
FORMS = NUMBER, WORD, DAY = "number", "word", "date"
"""Forms of a column."""


class Views(NamedTuple):
    """Features of N rows, in two views (N, P)."""

    standard: Array
    ranks: Array


class Kind(NamedTuple):
    """What a column is, and why that is so."""

    kind: str
    """One of GIVEN, or "binary" or "count", which are coded as categories and quantities."""
    why: str


def as_frame(X: Any, name: str = "X") -> pd.DataFrame:
    """X, a pandas or polars frame or a 2-D array, as a pandas frame; those of an array are numbered."""
    if hasattr(X, "tocsr"):
        raise TypeError(
            f"{name} must be a frame or a dense array, got a sparse matrix; pass {name}.toarray(), or use "
            "SpreadingClassifier(TruncatedSVD())"
        )
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must not be a masked array, whose mask would be ignored; fill masked entries with NaN"
        )
    if type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "schema"):
        return pd.DataFrame({c: _of_polars(X[c]) for c in X.columns})
    if isinstance(X, pd.DataFrame):
        twice = X.columns[X.columns.duplicated()]
        if len(twice):
            raise ValueError(
                f"{name} must have columns of different names, got {twice[0]!r} twice; rename one of them"
            )
        # As scikit-learn has it: only names that are all words are names.
        named = all(isinstance(c, str) for c in X.columns)
        return X if named else X.set_axis(range(X.shape[1]), axis=1)
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.detach().cpu().numpy()
    made = X if hasattr(X, "shape") else _listed(X)
    if np.ndim(made) == 3 and made.dtype == np.uint8:
        made = made.reshape(len(made), -1)
    if np.ndim(made) != 2:
        raise ValueError(
            f"{name} must be a table of rows and columns (2-D), got {np.ndim(made)} dimensions. Reshape your "
            "data: array.reshape(-1, 1) if it has a single column, array.reshape(1, -1) if a single row"
        )
    if np.iscomplexobj(made):
        raise ValueError(f"{name} must be real. Complex data not supported: pass real and imaginary parts")
    return pd.DataFrame(made)


def all_numbers(frame: pd.DataFrame) -> Array:
    """The rows of a frame of numbers alone, without missing ones; otherwise an empty array."""
    if all(getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes):
        found: Array = frame.to_numpy()
        if found.dtype.kind in "iuf" and not np.isnan(found).any():
            return found
    return np.empty((0, frame.shape[1]))


def _listed(X: Any) -> Any:
    try:
        made = np.asarray(X)
    except ValueError:
        raise ValueError("X must have rows of the same length, got others; pass a frame") from None
    # A list of lists with words and numbers would become words alone.
    return np.asarray(X, dtype=object) if made.dtype.kind in "US" else made


def _of_polars(column: Any) -> Any:
    return column.to_numpy() if column.dtype.is_numeric() and not column.null_count() else column.to_list()


class Raw(NamedTuple):
    """A column with its missing entries marked, as numbers or words."""

    values: Column
    """float64, datetime64, or str objects; missing entries are NaN, NaT or None."""
    form: str
    """One of FORMS."""
    style: str = ""
    """How words were read as numbers or dates; see :class:`ebse.semi_supervised._words.Read`."""
    unread: tuple[str, ...] = ()
    """Words among numbers or dates, which count as missing."""


def raw(column: Column, name: Any, *, form: str | None = None, style: str = "", new: bool = True) -> Raw:
    """A column in a plain form; words that are numbers or dates are read, and infinities refused.

    With ``form`` and ``style``, those of the column in ``fit``, entries that cannot be read so are missing;
    ``new`` rows warn of them, if there are more than ``fit`` allows.
    """
    found = _plain(column, name, form, style)
    if form is None or form == WORD:
        return found
    unread = found.unread
    if found.form != form:
        unread = tuple(str(x) for x in found.values.dropna())
        found = Raw(_none_of(form, found.values.index), form)
    n = len(unread) + int(found.values.notna().sum())
    if new and len(unread) > (1 - MOST) * n:
        what = "numbers" if form == NUMBER else "dates"
        warnings.warn(
            f"column {name!r} held {what} in fit{_unit_of(form, style)}, and {len(unread)} of {n} entries "
            f"such as {unread[0]!r} cannot be read so: they count as missing; write them as in fit",
            stacklevel=2,
        )
    return found


def _unit_of(form: str, style: str) -> str:
    """The unit that numbers had in ``fit``, for a message."""
    return f" with the unit {style[1:]!r}" if form == NUMBER and len(style) > 1 else ""


def _plain(column: Column, name: Any, form: str | None, style: str = "") -> Raw:
    """A column in ``form``, if it can be read so, or in its own form."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        intervals = isinstance(dtype.categories, pd.IntervalIndex)
        column = (column.cat.rename_categories(str) if intervals else column).astype(object)
        dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if kind == "M" or isinstance(dtype, pd.DatetimeTZDtype):
        found = Raw(pd.to_datetime(column, utc=True).dt.tz_localize(None), DAY)
    elif kind == "m":
        found = Raw(column.dt.total_seconds() / 86_400, NUMBER)
    elif kind in "biuf":
        found = Raw(_finite(column.astype("float64"), name), NUMBER)
    else:
        return _of_objects(column, name, form, style)
    return Raw(_as_words(found), WORD) if form == WORD else found


def _as_words(found: Raw) -> Column:
    """Numbers or dates as words."""
    words = found.values.astype(object).where(found.values.notna(), None)
    return words.map(lambda x: None if x is None else _word(x))


def _word(entry: Any) -> str:
    """An entry as a word; 1.0, of a column that has become a float, is the word 1."""
    if isinstance(entry, (float, np.floating)) and float(entry).is_integer():
        return str(int(entry))
    return str(entry).strip()


def _none_of(form: str, index: Any) -> Column:
    """A column in which all numbers or dates are missing."""
    return pd.Series(np.nan if form == NUMBER else pd.NaT, index=index)


def _of_objects(column: Column, name: Any, form: str | None, style: str) -> Raw:
    """A column of Python objects: numbers, dates or words."""
    entries = column.astype(object)
    missing = entries.isna()
    some = entries[~missing]
    if len(some) and some.map(lambda x: isinstance(x, (datetime.date, np.datetime64))).all():
        dates = pd.to_datetime(entries.where(~missing, None), utc=True, errors="coerce")
        found = Raw(dates.dt.tz_localize(None), DAY)
        return Raw(_as_words(found), WORD) if form == WORD else found
    if some.map(lambda x: isinstance(x, NUMBERS)).all():
        found = Raw(_finite(entries.where(~missing, np.nan).astype("float64"), name), NUMBER)
        return Raw(_as_words(found), WORD) if form == WORD else found
    odd = [x for x in some if not isinstance(x, (str, *NUMBERS, datetime.date))]
    if odd:
        raise TypeError(
            f"column {name!r} must hold words, numbers or dates, got {type(odd[0]).__name__}: each argument "
            "must be a string or a number; convert or drop it"
        )
    words = entries.where(missing, entries.map(_word))
    words = words.where(~words.map(lambda x: isinstance(x, str) and x.lower() in MISSING_WORDS), None)
    words = words.where(words.notna(), None)
    return Raw(words, WORD) if form == WORD else _of_words(words, name, form, style)


def _of_words(words: Column, name: Any, form: str | None, style: str) -> Raw:
    """Words as numbers or dates, if most are; if ``form`` says so, as many as are."""
    # By position: labels of rows may be repeated.
    known = words.notna().to_numpy()
    texts = words[known].to_list()
    numbers = read_numbers(texts, style) if form == NUMBER else numbers_in(texts) if form is None else None
    if numbers is not None and numbers.n_unread < len(texts):
        values = np.full(len(words), np.nan)
        values[known] = np.array(numbers.values, dtype=np.float64)
        unread = tuple(text for text, x in zip(texts, numbers.values, strict=True) if x is None)
        return Raw(_finite(pd.Series(values, index=words.index), name), NUMBER, numbers.style, unread)
    dates = read_dates(texts, style) if form == DAY else dates_in(texts) if form is None else None
    if dates is not None and dates.n_unread < len(texts):
        written = np.full(len(words), None, dtype=object)
        written[known] = dates.values
        found = pd.to_datetime(pd.Series(written), format="mixed", errors="coerce", utc=True).dt.tz_localize(
            None
        )
        found.index = words.index
        # Days such as February 30.
        unread = tuple(words[known & found.isna().to_numpy()])
        if form is not None or len(unread) <= len(texts) - MOST * len(texts):
            return Raw(found, DAY, dates.style, unread)
    return Raw(words, WORD)


def _finite(values: Column, name: Any) -> Column:
    """Refuse infinities, and numbers whose squares overflow."""
    array = values.to_numpy()
    bad = np.abs(array) >= LARGEST
    if bad.any():
        row = int(bad.argmax())
        what = "infinity" if np.isinf(array[row]) else f"{array[row]:g}"
        raise ValueError(
            f"X must have entries below {LARGEST:g} in absolute value, got {what} in row {row}, column "
            f"{name!r}; leave entries that are not known empty (NaN)"
        )
    return values


def kind_of(found: Raw, name: Any) -> Kind:
    """What a column is, from its values and its name."""
    values = found.values
    some = values.dropna()
    n, n_levels = len(some), int(some.nunique())
    gaps = f", {len(values) - n} missing" if n < len(values) else ""
    if found.unread:
        gaps += f", {len(found.unread)} of them words such as {found.unread[0]!r:.40}"
    if n == 0:
        return Kind("drop", "all entries are missing")
    if n_levels == 1:
        if n < len(values):
            return Kind("binary", f"one value{gaps}: present or missing")
        return Kind("drop", "constant")
    if found.form == DAY:
        return Kind("date", f"dates{gaps}")
    if n_levels == 2:
        return Kind("binary", f"two values{gaps}")
    if found.form == NUMBER:
        return _kind_of_numbers(some, n_levels, name, gaps)
    return _kind_of_words(some, n_levels, gaps)


def _kind_of_numbers(some: Column, n_levels: int, name: Any, gaps: str) -> Kind:
    array = some.to_numpy()
    whole = bool((array == np.floor(array)).all())
    if not whole:
        heavy = ", heavy tails" if _kurtosis(array) > HEAVY else ""
        return Kind("quantity", f"numbers{heavy}{gaps}")
    n = len(array)
    if n_levels == n and n >= FEW_LEVELS and isinstance(name, str):
        steps = np.diff(array)
        if IDENTIFIERS.fullmatch(name) or (steps == 1).all():
            return Kind("drop", "identifier: a different whole number in every row")
    if n_levels <= FEW_LEVELS and n >= 5 * n_levels:
        _, counts = np.unique(array, return_counts=True)
        if _several_peaks(counts):
            return Kind("category", f"whole numbers of {n_levels} levels with several peaks{gaps}")
        return Kind("count", f"whole numbers of {n_levels} levels with one peak{gaps}")
    heavy = ", heavy tails" if _kurtosis(array) > HEAVY else ""
    return Kind("quantity", f"whole numbers{heavy}{gaps}")


def _kind_of_words(some: Column, n_levels: int, gaps: str) -> Kind:
    n = len(some)
    if n_levels <= min(MOST_LEVELS, max(n // 2, 2)):
        return Kind("category", f"{n_levels} different words{gaps}")
    if some.map(lambda x: len(x.split())).median() >= WORDS:
        return Kind("text", f"text, {n_levels} different{gaps}")
    if n_levels > 0.9 * n:
        return Kind("drop", "identifier: a different word in almost every row")
    return Kind("category", f"{n_levels} different words{gaps}")


def _several_peaks(counts: Array) -> bool:
    """Whether frequencies along the levels fall and then rise again, more than chance would (3 √n)."""
    lowest_since, highest = counts[0], counts[0]
    falling = False
    for n in counts[1:]:
        if falling:
            lowest_since = min(lowest_since, n)
            if n - lowest_since > 3 * np.sqrt(n + lowest_since):
                return True
        elif highest - n > 3 * np.sqrt(highest + n):
            falling, lowest_since = True, n
        highest = max(highest, n)
    return False


def _kurtosis(array: Array) -> float:
    centered = array - array.mean()
    variance = float((centered**2).mean())
    return float(((centered / np.sqrt(variance)) ** 4).mean()) if variance > 0 else 0.0


class Quantities:
    """Standardized values and ranks of d quantities; missing entries are medians, and marked by a feature."""

    def __init__(self, quantiles: Array, facts: Array, *, common: bool) -> None:
        self.quantiles = quantiles
        """(N_QUANTILES, d)"""
        self.facts = facts
        """Median, mean, standard deviation, mean and standard deviation of ranks, part missing (6, d)."""
        self.common = common
        """Whether all columns are divided by the same number, as pixels are."""

    @classmethod
    def learned(cls, values: Array, *, common: bool = False) -> "Quantities":
        """From values (N, d), with NaN where one is missing."""
        missing = np.isnan(values)
        some = values[:: max(1, len(values) // N_SAMPLE)]
        with warnings.catch_warnings():
            # A column that is missing in all of the sample: zeros serve as well.
            warnings.simplefilter("ignore", RuntimeWarning)
            quantiles = np.nan_to_num(np.nanquantile(some, np.linspace(0, 1, N_QUANTILES), axis=0))
        made = cls(quantiles, np.zeros((6, values.shape[1])), common=common)
        made.facts[0], made.facts[5] = quantiles[N_QUANTILES // 2], missing.mean(0)
        filled = np.where(missing, made.facts[0], values)
        made.facts[1], made.facts[2] = filled.mean(0), _positive(filled.std(0))
        if common:
            made.facts[2] = _positive(np.sqrt(np.mean(filled.var(0))))
        else:
            ranks = made._ranks(filled)
            made.facts[3], made.facts[4] = ranks.mean(0), _positive(ranks.std(0))
        return made

    def __call__(self, values: Array) -> Views:
        """Features of values (N, d): d of them, and one for each column that had missing entries."""
        missing = np.isnan(values)
        median, mean, deviation, rank_mean, rank_deviation, part = self.facts
        filled = np.where(missing, median, values)
        standard = np.clip((filled - mean) / deviation, -MOST_EXTREME, MOST_EXTREME)
        ranks = standard if self.common else (self._ranks(filled) - rank_mean) / rank_deviation
        gaps = self.gaps
        # Not divided by their small standard deviation: rows with a gap would be far from all others.
        marks = missing[:, gaps] - part[gaps]
        return Views(*(np.concatenate([x, marks], axis=1).astype(np.float32) for x in (standard, ranks)))

    @property
    def gaps(self) -> npt.NDArray[np.intp]:
        """Columns that had missing entries in ``fit``, which a feature marks."""
        return np.flatnonzero((self.facts[5] > 0) & (self.facts[5] < 1))

    def _ranks(self, filled: Array) -> Array:
        """Ranks in [0, 1] (N, d), midranks for equal values."""
        p = np.linspace(0, 1, len(self.quantiles))
        found = [
            (np.interp(x, q, p) - np.interp(-x, -q[::-1], -p[::-1])) / 2
            for x, q in zip(filled.T, self.quantiles.T, strict=True)
        ]
        return np.stack(found, axis=1)

    def state(self) -> _archive.State:
        """What a file holds."""
        return _archive.State({"common": self.common}, {"quantiles": self.quantiles, "facts": self.facts})

    @classmethod
    def from_state(cls, state: _archive.State) -> "Quantities":
        """The coder of a file."""
        quantiles, facts = state.arrays["quantiles"], state.arrays["facts"]
        if quantiles.ndim != 2 or len(quantiles) < 2 or facts.shape != (6, quantiles.shape[1]):
            raise ValueError(f"quantiles of shape {quantiles.shape} and facts of shape {facts.shape}")
        common, part = bool(state.facts["common"]), facts[5]
        if (np.diff(quantiles, axis=0) < 0).any() or (facts[[2] if common else [2, 4]] <= 0).any():
            raise ValueError("quantiles must ascend, and standard deviations be positive")
        if (part < 0).any() or (part > 1).any():
            raise ValueError("parts of missing entries must be from 0 to 1")
        return cls(quantiles, facts, common=common)


class Levels:
    """Indicators of the levels of a category, centered, with variance 1 in total; rare levels are pooled."""

    def __init__(self, levels: list[Any], frequencies: Array, ordered: Quantities | None) -> None:
        self.levels = levels
        self.frequencies = frequencies
        """Of the levels, of all others together, and of missing entries (n_levels + 2,)."""
        self.ordered = ordered
        """For codes that are numbers, which may be ordered."""

    @classmethod
    def learned(cls, values: Column) -> "Levels":
        """From a column of numbers or words."""
        counts = values.value_counts()
        least = max(2, RARE * len(values)) if len(counts) > 2 else 1
        kept = sorted([level for level, n in counts.items() if n >= least][:MOST_LEVELS])
        codes = len(counts) > 2 and values.dtype.kind == "f"
        ordered = Quantities.learned(values.to_numpy()[:, np.newaxis]) if codes else None
        made = cls(kept, np.zeros(len(kept) + 2), ordered)
        made.frequencies = made._indicators(values).mean(0)
        return made

    def __call__(self, values: Column) -> Views:
        """Features (N, n); those of a level that ``fit`` did not have are 0, the mean."""
        held = self.frequencies > 0
        indicators, means = self._indicators(values)[:, held], self.frequencies[held]
        centered = indicators - means
        centered[~indicators.any(1)] = 0
        # Of two levels one indicator says all.
        centered, means = (centered, means) if held.sum() > 2 else (centered[:, :1], means[:1])
        made = (centered / np.sqrt(max((means * (1 - means)).sum(), 1e-9))).astype(np.float32)
        if self.ordered is None:
            return Views(made, made)
        half = np.float32(np.sqrt(0.5))
        both = self.ordered(values.to_numpy()[:, np.newaxis])
        return Views(*(half * np.concatenate([made, x[:, :1]], axis=1) for x in both))

    def places(self, values: Column) -> npt.NDArray[np.intp]:
        """Position of each entry among the levels; then come all others, and missing entries.

        Words of another case are the same, and so are 10.50 and 10.5, unless there are levels that differ by
        this alone.
        """
        n = len(self.levels)
        at = pd.Index(self.levels).get_indexer(pd.Index(values.to_numpy()))
        folded = pd.Index([_folded(x) for x in self.levels])
        other = (at < 0) & values.notna().to_numpy()
        if other.any() and folded.is_unique:
            at[other] = folded.get_indexer(pd.Index([_folded(x) for x in values[other]]))
        return np.where(values.isna().to_numpy(), n + 1, np.where(at < 0, n, at))

    def _indicators(self, values: Column) -> Array:
        n, at = len(self.levels), self.places(values)
        found = np.zeros((len(at), n + 2))
        found[np.arange(len(at)), at] = 1
        return found

    def state(self) -> _archive.State:
        """What a file holds."""
        facts: dict[str, Any] = {"levels": self.levels, "ordered": None}
        arrays = {"frequencies": self.frequencies}
        if self.ordered is not None:
            held = self.ordered.state()
            facts["ordered"] = held.facts
            arrays |= {f"ordered.{name}": x for name, x in held.arrays.items()}
        return _archive.State(facts, arrays)

    @classmethod
    def from_state(cls, state: _archive.State) -> "Levels":
        """The coder of a file."""
        levels, frequencies = state.facts["levels"], state.arrays["frequencies"]
        if not isinstance(levels, list) or frequencies.shape != (len(levels) + 2,):
            raise ValueError(f"frequencies of shape {frequencies.shape} for {levels!r:.60}")
        one_type = all(type(x) is str for x in levels) or all(type(x) is float for x in levels)
        if not one_type or len(set(levels)) < len(levels):
            raise ValueError(f"levels must be different words or different numbers, got {levels!r:.60}")
        if (frequencies < 0).any() or abs(frequencies.sum() - 1) > 1e-6:
            raise ValueError("frequencies must sum to 1")
        ordered = None
        if state.facts["ordered"] is not None:
            ordered = Quantities.from_state(state.inside("ordered"))
        return cls(levels, frequencies, ordered)


class Dates:
    """When a date was: days as a quantity, and day of the year, weekday and hour on circles."""

    def __init__(self, days: Quantities, moments: Array) -> None:
        self.days = days
        self.moments = moments
        """Means of the circular features, and the root of the sum of their variances (7,)."""

    @classmethod
    def learned(cls, values: Column) -> "Dates":
        """From a column of datetime64."""
        circles = _circles(values)
        moments = np.array([*circles.mean(0), np.sqrt(max(circles.var(0).sum(), 1e-9))])
        return cls(Quantities.learned(_days(values)), moments)

    def __call__(self, values: Column) -> Views:
        """Features (N, 7 or 8), with variance 1 in total."""
        circles = (_circles(values) - self.moments[:-1]) / self.moments[-1]
        half = np.sqrt(0.5)
        views = self.days(_days(values))
        return Views(*(np.concatenate([half * x, half * circles], 1).astype(np.float32) for x in views))

    def state(self) -> _archive.State:
        """What a file holds."""
        facts, arrays = self.days.state()
        return _archive.State(facts, {**arrays, "moments": self.moments})

    @classmethod
    def from_state(cls, state: _archive.State) -> "Dates":
        """The coder of a file."""
        if state.arrays["moments"].shape != (7,):
            raise ValueError(f"moments of shape {state.arrays['moments'].shape}")
        if state.arrays["moments"][-1] <= 0:
            raise ValueError("the root of a variance must be positive")
        return cls(Quantities.from_state(state), state.arrays["moments"])


class Texts:
    """TF-IDF of a text, and its leading components by truncated SVD (latent semantic analysis).

    References
    ----------
    S. Deerwester et al., "Indexing by latent semantic analysis", 1990.
    """

    def __init__(self, terms: list[str], idf: Array, components: Array, scale: float) -> None:
        self.terms, self.idf, self.components, self.scale = terms, idf, components, scale

    @classmethod
    def learned(cls, values: Column, *, seed: int) -> "Texts | None":
        """From a column of words; None if no word occurs twice."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(min_df=2, max_df=0.9, max_features=N_TERMS, sublinear_tf=True)
        try:
            weights = vectorizer.fit_transform(values.fillna(""))
        except ValueError:
            return None
        terms = vectorizer.get_feature_names_out().tolist()
        n = min(N_TOPICS, len(terms) - 1, len(values) - 1)
        if n < 1:
            return None
        svd = TruncatedSVD(n, random_state=seed).fit(weights)
        made = cls(terms, vectorizer.idf_, svd.components_, 1.0)
        variance = float(made._topics(values).var(0).sum())
        made.scale = float(np.sqrt(TEXT_VARIANCE / max(variance, 1e-9)))
        return made

    def __call__(self, values: Column) -> Views:
        """Features (N, n_topics); of an empty text 0."""
        made = (self.scale * self._topics(values)).astype(np.float32)
        return Views(made, made)

    def _topics(self, values: Column) -> Array:
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(vocabulary=self.terms, sublinear_tf=True)
        vectorizer.idf_ = self.idf
        found: Array = vectorizer.transform(values.fillna("")) @ self.components.T
        return found

    def state(self) -> _archive.State:
        """What a file holds."""
        facts = {"terms": self.terms, "scale": self.scale}
        return _archive.State(facts, {"idf": self.idf, "components": self.components})

    @classmethod
    def from_state(cls, state: _archive.State) -> "Texts":
        """The coder of a file."""
        terms, idf, components = state.facts["terms"], state.arrays["idf"], state.arrays["components"]
        if idf.shape != (len(terms),) or components.ndim != 2 or components.shape[1] != len(terms):
            raise ValueError(f"components of shape {components.shape} for {len(terms)} terms")
        scale = float(state.facts["scale"])
        if not (isinstance(terms, list) and all(isinstance(x, str) for x in terms) and 0 < scale < np.inf):
            raise ValueError(f"terms must be words, and their scale positive, got {terms!r:.60} and {scale}")
        if len(set(terms)) < len(terms):
            raise ValueError("terms must be different")
        return cls(terms, idf, components, scale)


def _positive(deviation: Array) -> Array:
    found: Array = np.where(deviation > 1e-12, deviation, 1.0)
    return found


def _days(dates: Column) -> Array:
    days = (dates - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
    found: Array = days.to_numpy(dtype=np.float64)[:, np.newaxis]
    return found


def _circles(dates: Column) -> Array:
    """Cosine and sine of day of the year, weekday and time of day (N, 6); 0 for a missing date."""
    hour = dates.dt.hour + dates.dt.minute / 60
    turns = np.stack([dates.dt.day_of_year / 365.25, dates.dt.day_of_week / 7, hour / 24], axis=1)
    angles = 2 * np.pi * turns.astype(np.float64)
    found: Array = np.nan_to_num(np.concatenate([np.cos(angles), np.sin(angles)], axis=1))
    return found


def column_kinds(frame: pd.DataFrame, columns: Any = "auto") -> dict[Any, tuple[Raw, Kind]]:
    """Each column of raw rows in a plain form, and its kind; ``columns`` may give the kinds of some."""
    given = _given(columns, list(frame.columns))
    found = {name: _found(frame[name], name, given.get(name)) for name in frame.columns}
    used = [name for name, (_, kind) in found.items() if kind.kind != "drop"]
    if not used:
        raise _nothing_usable({name: kind.why for name, (_, kind) in found.items()})
    values = [found[name][0].values for name in used if found[name][0].form == NUMBER]
    if len(values) == len(used) and on_common_scale(_stacked(values)):
        found |= {name: (found[name][0], Kind("quantity", COMMON)) for name in used}
    return found


def _nothing_usable(reasons: dict[Any, str]) -> ValueError:
    shown = "; ".join(f"{name!r}: {why}" for name, why in list(reasons.items())[:5])
    return ValueError(
        f"X must have a column that tells rows apart, got none that is usable ({shown}); add columns, or "
        "give kinds with columns={...}"
    )


class Coded(NamedTuple):
    """How a column is used."""

    name: Any
    kind: str
    why: str
    form: str
    coder: int
    """Index of its coder; −1 for a column that is dropped."""
    style: str
    """How its words are read as numbers or dates."""


CODERS: dict[str, Any] = {"Quantities": Quantities, "Levels": Levels, "Dates": Dates, "Texts": Texts}


class Table:
    """The columns of a table, and the coders that make features of them.

    All quantities have one coder, which handles them together; every other column has one of its own.
    """

    def __init__(self, columns: list[Coded], coders: list[Any]) -> None:
        self.columns, self.coders = columns, coders

    @classmethod
    def learned(cls, frame: pd.DataFrame, columns: Any = "auto", *, seed: int = 0) -> "Table":
        """From raw rows, without labels; ``columns`` may give the kinds of some columns."""
        found = column_kinds(frame, columns)
        common = any(kind.why == COMMON for _, kind in found.values())
        quantities = [name for name, (_, kind) in found.items() if kind.kind in ("quantity", "count")]
        coders: list[Any] = []
        if quantities:
            values = _stacked([found[name][0].values for name in quantities])
            coders.append(Quantities.learned(values, common=common))
        coded = []
        for name, (one, kind) in found.items():
            at = 0 if name in quantities else -1
            if kind.kind not in ("drop", "quantity", "count"):
                coder = _learned(kind.kind, one.values, seed)
                if coder is None:
                    kind = Kind("drop", "text in which no word occurs twice")
                else:
                    at = len(coders)
                    coders.append(coder)
            coded.append(Coded(name, kind.kind, kind.why, one.form, at, one.style))
        if not coders:
            raise _nothing_usable({c.name: c.why for c in coded})
        return cls(coded, coders)

    def __call__(self, frame: pd.DataFrame, *, new: bool = False) -> Views:
        """Features of rows with the columns of ``fit``, in any order; ``new`` rows that differ warn."""
        of_quantities, others = self._split()
        parts = []
        missing = np.ones(len(frame), dtype=bool)
        if of_quantities:
            values = _quantities(frame, of_quantities, new=new)
            missing &= np.isnan(values).all(1)
            if new:
                _warn_of_ranges(values, [c.name for c in of_quantities], self.coders[0])
            parts.append(self.coders[0](values))
        for c in others:
            column, coder = _raw_values(frame, c, new=new), self.coders[c.coder]
            missing &= column.isna().to_numpy()
            if new and isinstance(coder, Levels):
                _warn_of_levels(column, c.name, coder)
            parts.append(coder(column))
        if new and missing.any():
            warnings.warn(
                f"{missing.sum()} of {len(frame)} rows have no entry in any column that is used; their "
                "predictions say nothing about them",
                stacklevel=5,
            )
        return Views(*(np.concatenate(views, axis=1) for views in zip(*parts, strict=True)))

    def places(self) -> dict[Any, list[int]]:
        """Positions of the features of each column that is used."""
        empty = pd.DataFrame({name: [None] for name in self.names}, dtype=object)
        of_quantities, others = self._split()
        found: dict[Any, list[int]] = {c.name: [i] for i, c in enumerate(of_quantities)}
        at = 0
        if of_quantities:
            gaps = self.coders[0].gaps
            for i, j in enumerate(gaps):
                found[of_quantities[j].name].append(len(of_quantities) + i)
            at = len(of_quantities) + len(gaps)
        for c in others:
            n = self.coders[c.coder](_raw_values(empty, c)).standard.shape[1]
            found[c.name] = list(range(at, at + n))
            at += n
        return found

    def _split(self) -> tuple[list[Coded], list[Coded]]:
        """Columns that are quantities, and others that are used."""
        together = 0 if isinstance(self.coders[0], Quantities) else -1
        used = [c for c in self.columns if c.coder >= 0]
        return [c for c in used if c.coder == together], [c for c in used if c.coder != together]

    @property
    def names(self) -> list[Any]:
        """Names of the columns, in the order of ``fit``."""
        return [c.name for c in self.columns]

    def described(self) -> pd.DataFrame:
        """One row per column: name, kind, and why."""
        return pd.DataFrame([c[:3] for c in self.columns], columns=["column", "kind", "why"])

    def facts(self) -> dict[str, Any]:
        """What a file holds beside :meth:`arrays`."""
        coders = [{"coder": type(coder).__name__, **coder.state().facts} for coder in self.coders]
        return {"columns": [list(c) for c in self.columns], "coders": coders}

    def arrays(self) -> dict[str, Array]:
        """Arrays of a file."""
        return {
            f"{i}.{name}": x
            for i, coder in enumerate(self.coders)
            for name, x in coder.state().arrays.items()
        }

    @classmethod
    def from_state(cls, state: _archive.State) -> "Table":
        """The table of a file."""
        columns = [Coded(*held) for held in state.facts["columns"]]
        coders = []
        for i, facts in enumerate(state.facts["coders"]):
            arrays = {k.removeprefix(f"{i}."): x for k, x in state.arrays.items() if k.startswith(f"{i}.")}
            coders.append(CODERS[facts["coder"]].from_state(_archive.State(facts, arrays)))
        made = cls(columns, coders)
        made._require_consistent()
        return made

    def _require_consistent(self) -> None:
        """Refuse columns and coders of a file that do not belong together."""
        sound = all(
            isinstance(c.name, (str, int))
            and c.form in FORMS
            and type(c.coder) is int
            and c.coder >= -1
            and isinstance(c.style, str)
            for c in self.columns
        )
        if not sound or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"columns must be different, and have a form and a coder, got {self.names!r:.60}"
            )
        if sorted({c.coder for c in self.columns} - {-1}) != list(range(len(self.coders))) or not self.coders:
            raise ValueError(f"{len(self.coders)} coders for {len(self.columns)} columns")
        of_quantities, others = self._split()
        forms = {Levels: (NUMBER, WORD), Dates: (DAY,), Texts: (WORD,)}
        if not all(c.form in forms.get(type(self.coders[c.coder]), ()) for c in others):
            raise ValueError("a coder must belong to columns of its own form")
        if of_quantities:
            n = self.coders[0].facts.shape[1]
            if n != len(of_quantities) or any(c.form != NUMBER for c in of_quantities):
                raise ValueError(f"a coder of {n} quantities for {len(of_quantities)} columns")


def _folded(level: Any) -> Any:
    """A level in lower case, or as a number if it is one."""
    if not isinstance(level, str):
        return level
    try:
        return str(float(level)) if level[:1] != "0" or level[:2] in ("0", "0.") else level
    except ValueError:
        return level.casefold()


def _warn_of_ranges(values: Array, names: list[Any], coder: "Quantities") -> None:
    """Warn of quantities most of whose entries lie far outside of what ``fit`` had, as in other units."""
    low, high = coder.quantiles[0], coder.quantiles[-1]
    far = (values < low - (high - low)) | (values > high + (high - low))
    n_known = (~np.isnan(values)).sum(0)
    for j in np.flatnonzero((far.sum(0) > UNLIKE * n_known) & (n_known >= LEAST_UNLIKE)):
        warnings.warn(
            f"column {names[j]!r}: {far[:, j].sum()} of {n_known[j]} entries lie far outside of what fit "
            f"had, {low[j]:g} to {high[j]:g}; use the same units",
            stacklevel=6,
        )


def _warn_of_levels(values: Column, name: Any, coder: "Levels") -> None:
    """Warn of a category most of whose entries ``fit`` did not have, or pooled."""
    at = coder.places(values)
    n, n_unseen = int((at <= len(coder.levels)).sum()), int((at == len(coder.levels)).sum())
    if n >= LEAST_UNLIKE and n_unseen > max(UNLIKE, 3 * coder.frequencies[len(coder.levels)]) * n:
        example = values[at == len(coder.levels)].iloc[0]
        warnings.warn(
            f"column {name!r}: {n_unseen} of {n} entries, such as {example!r:.40}, are levels that fit did "
            "not have, and count as average; write them as in fit",
            stacklevel=6,
        )


def _quantities(frame: pd.DataFrame, columns: list[Coded], *, new: bool) -> Array:
    """Values of columns that are quantities (N, d)."""
    some = frame[[c.name for c in columns]]
    if all(getattr(dtype, "kind", "O") in "biuf" for dtype in some.dtypes):
        # All at once, which is a hundred times faster than one by one.
        values: Array = some.to_numpy(dtype=np.float64)
        if not (np.abs(values) >= LARGEST).any():
            return values
    return _stacked([_raw_values(frame, c, new=new) for c in columns])


def _raw_values(frame: pd.DataFrame, column: Coded, *, new: bool = False) -> Column:
    return raw(frame[column.name], column.name, form=column.form, style=column.style, new=new).values


def _found(column: Column, name: Any, wanted: str | None) -> tuple[Raw, Kind]:
    """A column in a plain form, and its kind: that which is ``wanted``, unless the column says nothing."""
    if wanted == "drop":
        return Raw(column, WORD), Kind("drop", "as given")
    one = _plain(column, name, WORD if wanted in ("category", "text") else None)
    wanted_forms = {"quantity": (NUMBER,), "date": (DAY,)}.get(wanted or "", FORMS)
    if one.form not in wanted_forms:
        # As many entries as can be read so, where the user says that they are such.
        one = _plain(column, name, wanted_forms[0])
    kind = kind_of(one, name)
    if wanted is None:
        if isinstance(column.dtype, pd.CategoricalDtype) and kind.kind in ("quantity", "count"):
            kind = Kind("category", "a category of pandas, of numbers")
        # One date, or none: whether there is one is all that matters.
        return _plain(column, name, WORD) if kind.kind == "binary" and one.form == DAY else one, kind
    if kind.kind == "drop" and not kind.why.startswith("identifier"):
        return one, kind
    if one.form not in wanted_forms:
        got = one.values.dropna().iloc[0]
        raise ValueError(
            f"column {name!r} must hold {wanted_forms[0]}s to be a {wanted}, got {got!r}; give it another "
            "kind, or convert it"
        )
    unread = f", {len(one.unread)} words such as {one.unread[0]!r:.40} are missing" if one.unread else ""
    return one, Kind(wanted, f"as given{unread}")


def _stacked(columns: list[Column]) -> Array:
    return np.stack([x.to_numpy(dtype=np.float64) for x in columns], axis=1)


def _learned(kind: str, values: Column, seed: int) -> Any:
    if kind == "date":
        return Dates.learned(values)
    if kind == "text":
        return Texts.learned(values, seed=seed)
    return Levels.learned(values)


def _given(columns: Any, names: list[Any]) -> dict[Any, str]:
    """``columns`` of the user: {} for "auto"; names and kinds are checked."""
    if isinstance(columns, str) and columns == "auto":
        return {}
    if not isinstance(columns, Mapping):
        raise ValueError(
            f"columns must be 'auto' or a mapping from names to kinds, got {columns!r}; pass, for example, "
            "{'zip': 'category', 'id': 'drop'}"
        )
    for name, kind in columns.items():
        if name not in names:
            raise ValueError(f"columns must name columns of X, got {name!r}; there are {names!r:.200}")
        if kind not in GIVEN:
            raise ValueError(
                f"columns must give one of {', '.join(GIVEN)} for {name!r}, got {kind!r}; pass one of these"
            )
    return dict(columns)


def on_common_scale(values: Array) -> bool:
    """Whether columns (N, d) look like pixels of an image: many, not negative, of the same range.

    Standardizing each would make pixels that are hardly ever on as important as any other.
    """
    if values.shape[1] < LEAST_COMMON or len(values) == 0 or np.isnan(values).any() or values.min() < 0:
        return False
    highest = values.max(0)
    top = highest.max()
    return bool(top > 0 and np.mean(highest >= 0.9 * top) >= 0.5 and np.mean(values.min(0) == 0) >= 0.5)
