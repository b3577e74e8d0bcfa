"""Estimators on disk: one safetensors file with arrays by name and everything else as JSON; no pickle.

An estimator that saves itself has two methods:

    def _state(self) -> State: ...                      # parameters and fitted attributes
    @classmethod
    def _from_state(cls, state: State) -> Self: ...     # the same estimator; ValueError where they contradict

A representation inside another estimator is stored beside it, under a prefix. One that is not ours cannot be:
``save`` raises TypeError naming it, unless ``save`` was asked to leave it out by the estimator itself.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialize

import ebse
from ebse._atomic import in_place

FORMAT = 1
"""Version of the files; a reader refuses every other one, older or newer."""

OURS = {
    "ContrastiveFeatures": "ebse.semi_supervised",
    "FewLabelClassifier": "ebse.semi_supervised",
    "RBSE": "ebse.ensemble",
    "RBSEClassifier": "ebse.ensemble",
    "SlowFeatures": "ebse.semi_supervised",
    "SpreadingClassifier": "ebse.semi_supervised",
}
"""Estimators that files may name, and where they are."""
MAY_DIVERGE, MAY_BE_INFINITE = ("losses",), "logit_p"
"""Arrays that need not be finite: losses of training that diverged; log-odds of probabilities 0 and 1."""

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]
Estimator = TypeVar("Estimator")


class State(NamedTuple):
    """What an estimator is made of: facts that JSON can hold, and arrays."""

    facts: Facts
    arrays: Arrays

    def inside(self, prefix: str) -> "State":
        """The state of an estimator that was stored within this one by :func:`nested`."""
        start = f"{prefix}."
        arrays = {name[len(start) :]: x for name, x in self.arrays.items() if name.startswith(start)}
        return State(self.facts[prefix], arrays)


def nested(prefix: str, estimator: Any) -> State:
    """The state of one of our estimators, as part of another one's."""
    facts, arrays = _stateful(estimator)._state()
    return State(
        {prefix: {**facts, "class": type(estimator).__name__}},
        {f"{prefix}.{name}": x for name, x in arrays.items()},
    )


def restored(state: State) -> Any:
    """One of our estimators from what :func:`nested` stored."""
    name = state.facts["class"]
    made: Any = getattr(import_module(OURS[name]), name)
    return made._from_state(state)


def is_ours(estimator: Any) -> bool:
    """Whether an estimator saves itself."""
    return type(estimator).__name__ in OURS and hasattr(estimator, "_state")


def save(path: str | Path, estimator: Any) -> None:
    """Write a fitted estimator to one file, atomically; the same estimator gives the same bytes."""
    facts, arrays = _stateful(estimator)._state()
    write(Path(path), type(estimator).__name__, facts, arrays)


def load(path: str | Path, kind: type[Estimator], **options: Any) -> Estimator:
    """The estimator of a file written by :func:`save`; nothing in the file is executed."""
    state = read(Path(path), kind.__name__)
    with consistent(Path(path)):
        made: Estimator = kind._from_state(state, **options)  # type: ignore[attr-defined]
    return made


def write(path: Path, kind: str, facts: Facts, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Facts and arrays as one file with a checksum, written atomically."""
    facts = {**facts, "kind": kind, "format": FORMAT, "ebse": ebse.__version__}
    held = {name: np.asarray(x, order="C") for name, x in arrays.items()}
    facts["checksum"] = _checksum(held, facts)
    # One key alone, because the order of several is not kept and files must not differ by it.
    content = serialize(held, metadata={"ebse": json.dumps(facts, sort_keys=True)})
    try:
        with in_place(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"could not write {path} ({error.strerror}); what was there before is untouched. "
            "Free some space or choose another folder, then go on from there",
        ) from error


def read(path: Path, kind: str) -> State:
    """Facts and arrays of a file written by :func:`write`, checked."""
    facts, arrays = _parsed(path)
    if facts.get("kind") != kind:
        raise ValueError(
            f"{path} must hold kind {kind!r}, got {facts.get('kind')!r}; pass the file that does"
        )
    if facts.get("format") != FORMAT:
        raise ValueError(
            f"{path} must have format {FORMAT}, got {facts.get('format')!r}, written by ebse "
            f"{facts.get('ebse')}; read it with that version"
        )
    if facts.pop("checksum", None) != _checksum(arrays, facts):
        raise ValueError(f"{path} is damaged: it does not match its checksum; restore it from a copy")
    if kind in OURS:
        _require_finite(path, arrays)
    return State(facts, arrays)


def kind_of(path: Path) -> str:
    """What a file holds: the class of an estimator, "ensemble" or "checkpoint"."""
    return str(_parsed(path)[0].get("kind"))


@contextmanager
def consistent(path: Path) -> Iterator[None]:
    """Name the file where what it holds does not fit together."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path} must hold what ebse wrote, got contents that do not fit together "
            f"({type(error).__name__}: {error}); restore it from a copy"
        ) from error


def plain(parameters: Mapping[str, Any]) -> Facts:
    """Parameters as JSON holds them; a random state that is not a number becomes None."""
    found: Facts = {}
    for name, value in parameters.items():
        if isinstance(value, type):
            value = value.__name__
        if isinstance(value, np.generic):
            value = value.item()
        found[name] = value if isinstance(value, (str, int, float, bool, type(None))) else None
    return found


def _require_finite(path: Path, arrays: Arrays) -> None:
    """Refuse NaN and infinity in the arrays of an estimator."""
    for name, x in arrays.items():
        last = name.rpartition(".")[2]
        if x.dtype.kind != "f" or last in MAY_DIVERGE:
            continue
        if np.isnan(x).any() or (last != MAY_BE_INFINITE and np.isinf(x).any()):
            raise ValueError(
                f"{path} must hold what ebse wrote, got values that are not finite in {name}; "
                "restore it from a copy"
            )


def _stateful(estimator: Any) -> Any:
    if not is_ours(estimator):
        raise TypeError(
            f"only estimators of ebse can be saved, got {type(estimator).__name__}; save it yourself, and "
            "pass it to load as representation=…"
        )
    return estimator


def _parsed(path: Path) -> tuple[Facts, Arrays]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; check the name of the file or folder") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{path} must be a file, got a folder; name the file in it, model.safetensors"
        ) from None
    try:
        arrays = parse(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        facts: Facts = dict(json.loads(header["__metadata__"]["ebse"]))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be a file written by ebse, got something else or a damaged one "
            f"({type(error).__name__}: {error}); restore it from a copy"
        ) from None
    return facts, arrays


def _checksum(arrays: Mapping[str, npt.NDArray[Any]], facts: Facts) -> int:
    """CRC-32 of the facts and of all arrays, names and shapes included, in the order of their names."""
    total = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(arrays):
        x = arrays[name]
        total = zlib.crc32(f"{name} {tuple(x.shape)} {x.dtype}".encode(), total)
        total = zlib.crc32(x.tobytes(), total)
    return total
