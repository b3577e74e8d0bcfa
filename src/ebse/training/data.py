"""Mini-batches from a tensor, an array on disk, a sparse matrix, or an iterable of chunks."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from ebse import rng
from ebse._tensors import units

N_SAMPLE, MOST_VALUES = 1000, 2**22
"""Rows that are read before a run starts, and the largest number of values in them."""

Data = Tensor | np.ndarray[Any, Any] | Iterable[Any] | Callable[[], Iterable[Any]]
"""What ``fit`` takes: rows (N, D) as a tensor, a NumPy array (also memory-mapped), a SciPy csr matrix; or
chunks (n, D) of these as something that can be iterated anew every epoch, or a function that returns that."""

Description = dict[str, int | None]
"""Number of rows and checksums, by which a resumed run recognizes its data."""

Batch = tuple[Tensor, Tensor]
"""The rows (n, D) of a mini-batch, and their indices in the training set."""


class DataChangedError(ValueError):
    """Rows differ from those that a run was started with.

    Parameters
    ----------
    name
        The argument: ``"v"`` or ``"held_out"``.
    expected, got
        Descriptions of the rows of the run and of the rows passed now.

    Examples
    --------
    >>> DataChangedError("v", expected="40 rows", got="60 rows").name
    'v'
    """

    def __init__(self, name: str, *, expected: str, got: str) -> None:
        super().__init__(
            f"{name} must be what the run began with ({expected}), got {got}; pass the same data"
        )
        self.name, self.expected, self.got = name, expected, got

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from their positional arguments, which here are the message alone.
        return partial(DataChangedError, expected=self.expected, got=self.got), (self.name,)


class Rows(ABC):
    """The rows of a training set, in mini-batches."""

    n_batches: int | None
    """Mini-batches of an epoch, where known in advance."""

    @abstractmethod
    def batches(self, key: int, into: Tensor | None = None) -> Iterator[Batch]:
        """Mini-batches of one epoch, in the random order of ``key``, ``into`` a buffer where possible."""

    _described: Description | None = None
    n_rows: int | None
    """Number of rows, where known in advance."""

    @abstractmethod
    def spread(self, n: int) -> Tensor:
        """At most n rows, evenly spread."""

    def sample(self) -> Tensor:
        """Rows that are read before a run starts: the same for the same data, in whatever form."""
        return self.spread(N_SAMPLE)

    def whole(self) -> Tensor | None:
        """All rows, where they are a tensor."""
        return None

    def describe(self) -> Description:
        """Checksums of some rows, and of all rows in memory, for the check of a resumed run."""
        if self._described is None:
            some = zlib.crc32(self.sample().cpu().numpy().tobytes())
            self._described = {"n_rows": self.n_rows, "some": some, "all": self._checksum()}
        return self._described

    def _checksum(self) -> int | None:
        return None


def require_same_rows(name: str, before: Description | None, now: Description | None) -> None:
    """Require the rows of the start of a run, as far as their descriptions show."""
    if before is None and now is None:
        return
    if before is not None and now is not None:
        both = None not in (before["all"], now["all"])
        compared = ("n_rows", "some", "all") if both else ("n_rows", "some")
        if all(before[part] == now[part] for part in compared):
            return
    was, got = ("none" if x is None else f"{x['n_rows'] or 'chunks of'} rows" for x in (before, now))
    others = ", others" if was == got else ""
    raise DataChangedError(name, expected=was, got=f"{got}{others}")


def require_same_columns(name: str, v: Any, n_units: int) -> None:
    """Require the number of columns of the start of a run, where the data have a shape."""
    shape = tuple(getattr(v, "shape", ()))
    if len(shape) == 2 and shape[1] != n_units:
        raise DataChangedError(name, expected=f"{n_units} columns", got=f"{shape[1]} columns")


@final
class _Array(Rows):
    """Rows that can be selected by index; only a mini-batch at a time is converted."""

    def __init__(self, v: Any, pick: Callable[[Tensor], Tensor], batch_size: int) -> None:
        self._v, self._pick, self._batch_size = v, pick, batch_size
        self.n_rows: int = v.shape[0]
        self.n_batches = -(-self.n_rows // batch_size)

    def spread(self, n: int) -> Tensor:
        """At most n rows, evenly spread, of at most MOST_VALUES values."""
        n = max(min(n, MOST_VALUES // self._v.shape[1]), 1)
        return self._pick(torch.arange(0, self.n_rows, -(-self.n_rows // n)))

    def batches(self, key: int, into: Tensor | None = None) -> Iterator[Batch]:
        """A random permutation, cut into batches."""
        v, parts = self._v, torch.split(permutation(self.n_rows, key), self._batch_size)
        if into is None or not isinstance(v, Tensor) or v.device.type != "cpu":
            yield from ((self._pick(rows), rows) for rows in parts)
            return
        first, last = into[: self._batch_size], into[: len(parts[-1])]
        for rows in parts[:-1]:
            yield torch.index_select(v, 0, rows, out=first), rows
        yield torch.index_select(v, 0, parts[-1], out=last), parts[-1]

    def whole(self) -> Tensor | None:
        """All rows, where they are a tensor."""
        return self._v if isinstance(self._v, Tensor) else None

    def _checksum(self) -> int | None:
        # A file may be larger than memory, and takes long to read.
        if isinstance(self._v, np.memmap):
            return None
        total, step = 0, max(MOST_VALUES // self._v.shape[1], 1)
        for start in range(0, self.n_rows, step):
            rows = torch.arange(start, min(start + step, self.n_rows))
            total = zlib.crc32(self._pick(rows).cpu().numpy().tobytes(), total)
        return total


@final
class _Chunks(Rows):
    """Rows in chunks, in the order of the iterable; each chunk is shuffled by itself."""

    n_batches, n_rows = None, None

    def __init__(
        self, source: Iterable[Any] | Callable[[], Iterable[Any]], rows: Callable[[Any], _Array]
    ) -> None:
        self._source, self._rows = source, rows
        self._first: Tensor | None = None

    def batches(self, key: int, into: Tensor | None = None) -> Iterator[Batch]:
        """The batches of each chunk in turn; the last of each may be smaller."""
        n_chunks, n_rows = 0, 0
        for n, chunk in enumerate(self._source() if callable(self._source) else self._source):
            part = self._rows(chunk)
            for v, rows in part.batches(rng.subkey(key, n), into):
                yield v, rows + n_rows
            n_chunks, n_rows = n + 1, n_rows + part.n_rows
        if not n_chunks:
            raise ValueError(
                "v must yield at least one chunk of rows every epoch, got none; pass a list of chunks or a "
                "function that returns a new iterator, because an iterator can be used only once"
            )

    def spread(self, n: int) -> Tensor:
        """Rows of the first chunk."""
        if self._first is None:
            if isinstance(self._source, Iterator):
                raise TypeError(
                    f"v must be something that can be iterated every epoch, got "
                    f"{type(self._source).__name__}, which can be used only once; "
                    "pass a function that returns a new iterator"
                )
            chunk = next(iter(self._source() if callable(self._source) else self._source), None)
            if chunk is None:
                raise ValueError("v must yield at least one chunk of rows, got none; pass chunks (n, D)")
            self._first = self._rows(chunk).spread(N_SAMPLE)
        return self._first[:: -(-len(self._first) // n)]


def rows_of(name: str, v: Any, n_units: int, *, dtype: torch.dtype, batch_size: int) -> Rows:
    """The rows of the training set ``v``."""
    if hasattr(v, "shape"):
        return _array(name, v, n_units, dtype, batch_size)
    if callable(v) or (isinstance(v, Iterable) and not isinstance(v, str | bytes | dict)):
        return _Chunks(v, lambda chunk: _array(f"a chunk of {name}", chunk, n_units, dtype, batch_size))
    raise TypeError(
        f"{name} must be a tensor, an array, a csr matrix or an iterable of such chunks, "
        f"got {type(v).__name__}; wrap lists of numbers with torch.as_tensor"
    )


def permutation(n: int, key: int) -> Tensor:
    """The random order of n rows given by ``key``."""
    # Torch takes seeds of 63 bits.
    return torch.randperm(n, generator=torch.Generator().manual_seed(key >> 1))


def _array(name: str, v: Any, n_units: int, dtype: torch.dtype, batch_size: int) -> _Array:
    if not hasattr(v, "shape"):
        raise TypeError(
            f"{name} must be a tensor, an array or a csr matrix, got {type(v).__name__}; wrap lists of "
            "numbers with torch.as_tensor, and unpack a DataLoader's batches: lambda: (x for x, *_ in loader)"
        )
    if isinstance(v, Tensor) and v.layout != torch.strided:
        raise TypeError(
            f"{name} must be a dense tensor or a SciPy csr matrix, got {v.layout}; use to_dense()"
        )
    if len(v.shape) != 2 or v.shape[0] == 0 or v.shape[1] != n_units:
        raise ValueError(
            f"{name} must have shape (N, {n_units}) with N >= 1, got {tuple(v.shape)}; "
            "pass one row per example (images: v.flatten(1))"
        )
    if isinstance(v, Tensor):
        # All rows are checked once, and then no batch needs to be.
        v = units(name, v.detach(), n_units, dtype=dtype)
        return _Array(v, lambda rows: v[rows.to(v.device)], batch_size)
    if hasattr(v, "tocsr"):
        v = v.tocsr()

        def pick(rows: Tensor) -> Tensor:
            return _checked(name, v[rows.numpy()].toarray(), n_units, dtype)
    else:

        def pick(rows: Tensor) -> Tensor:
            return _checked(name, v[rows.numpy()], n_units, dtype)

    return _Array(v, pick, batch_size)


def _checked(name: str, batch: np.ndarray[Any, Any], n_units: int, dtype: torch.dtype) -> Tensor:
    """A batch as a tensor, checked: arrays on disk cannot be checked as a whole."""
    kind = batch.dtype.kind
    if kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {batch.dtype}; convert it with astype(float)")
    # Torch knows neither other byte orders nor all unsigned types.
    batch = batch.astype(np.float64 if kind == "f" and batch.dtype.itemsize > 4 else np.float32)
    return units(name, torch.from_numpy(batch), n_units, dtype=dtype)
