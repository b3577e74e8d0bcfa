"""Ensembles on disk: one safetensors file, arrays by letter and name, the rest as JSON in its header."""

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse
from safetensors.torch import save as serialise
from torch import Tensor

import ebse
from ebse.files import in_place
from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform
from ebse.models.rbse import RestrictedBoltzmannEnsemble

FORMAT = 1
"""Version of the files; a reader refuses newer ones."""

FAMILIES: dict[str, type[Law]] = {
    family.__name__: family for family in (Bernoulli, Gaussian, Laplace, Levels, Point, SpikeSlab, Uniform)
}
"""The laws that a file may name."""

Tensors = dict[str, Tensor]
Facts = dict[str, Any]


def save_ensemble(path: str | Path, ensemble: RestrictedBoltzmannEnsemble, **facts: Any) -> None:
    """Write the ensemble, and whatever else JSON can say about it, to one file.

    The file depends on its contents alone: no clock, no machine.
    """
    described, tensors = describe(ensemble)
    write(Path(path), "ensemble", tensors, {"ensemble": described, **facts})


def load_ensemble(path: str | Path) -> RestrictedBoltzmannEnsemble:
    """The ensemble of a file written by :func:`save_ensemble`; nothing in the file is executed."""
    facts, tensors = read(Path(path), "ensemble")
    with whole(Path(path)):
        return rebuild(facts["ensemble"], tensors)


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Say which file it was, where what it holds does not fit together."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold what ebse wrote, got contents that do not fit together "
            f"({type(error).__name__}: {error}); restore it from a copy"
        ) from error


def describe(ensemble: RestrictedBoltzmannEnsemble) -> tuple[Facts, Tensors]:
    """Families and names of the laws, and their α as arrays."""
    for letter, law in ensemble.laws.items():
        if type(law) is not FAMILIES.get(type(law).__name__):
            raise TypeError(
                f"{letter} must have a law of ebse.laws to be saved, got {type(law).__name__}; "
                "save the arrays of a law of your own yourself (law.alpha)"
            )
    families = {letter: [type(law).__name__, *law.names] for letter, law in ensemble.laws.items()}
    tensors = {
        f"{letter}.{name}": value
        for letter, law in ensemble.laws.items()
        for name, value in law.alpha.items()
    }
    return {"laws": families, "visible": ensemble.visible}, tensors


def rebuild(described: Facts, tensors: Mapping[str, Tensor]) -> RestrictedBoltzmannEnsemble:
    """The ensemble that :func:`describe` described."""
    laws: dict[str, Law] = {}
    for letter, (family, *names) in described["laws"].items():
        alpha = {name: tensors[f"{letter}.{name}"] for name in names}
        make = FAMILIES[family]
        laws[letter] = Bernoulli.from_logit(**alpha) if "logit_p" in names else make(**alpha)
    return RestrictedBoltzmannEnsemble(**laws, visible=described["visible"])


def write(path: Path, kind: str, tensors: Tensors, facts: Facts) -> None:
    """Arrays and facts as one file, with a checksum, whole or not there at all."""
    facts = {**facts, "kind": kind, "format": FORMAT, "ebse": ebse.__version__}
    # Copies, because safetensors refuses arrays that share their memory.
    tensors = {
        name: x.detach().cpu().clone(memory_format=torch.contiguous_format) for name, x in tensors.items()
    }
    facts["checksum"] = _checksum(tensors, facts)
    # One key alone, because the order of several is not kept and files must not differ by it.
    content = serialise(tensors, metadata={"ebse": json.dumps(facts, sort_keys=True)})
    try:
        with in_place(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise OSError(
            error.errno,
            f"could not write {path} ({error.strerror}); what was there before is untouched. "
            "Free some space or choose another folder, then go on from there",
        ) from error


def read(path: Path, kind: str) -> tuple[Facts, Tensors]:
    """Facts and arrays of a file written by :func:`write`, checked."""
    facts, tensors = _parsed(path)
    if facts.get("kind") != kind:
        raise ValueError(
            f"{path} must hold kind {kind!r}, got {facts.get('kind')!r}; pass the file that does"
        )
    if facts.get("format") != FORMAT:
        raise ValueError(
            f"{path} must have format {FORMAT}, got {facts.get('format')!r}, written by ebse "
            f"{facts.get('ebse')}; read it with that version"
        )
    if facts.pop("checksum", None) != _checksum(tensors, facts):
        raise ValueError(f"{path} is damaged: it does not match its checksum; restore it from a copy")
    return facts, tensors


def kind_of(path: Path) -> str:
    """What a file written by :func:`write` holds: "ensemble", "estimator" or "checkpoint"."""
    return str(_parsed(path)[0].get("kind"))


def _parsed(path: Path) -> tuple[Facts, Tensors]:
    """Facts and arrays as they stand in a file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; check the name of the file or folder") from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"{path} must be a file, got a folder; name the file in it, model.safetensors"
        ) from None
    try:
        tensors = parse(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        facts: Facts = dict(json.loads(header["__metadata__"]["ebse"]))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be a file written by ebse, got something else or a damaged one "
            f"({type(error).__name__}: {error}); restore it from a copy"
        ) from None
    return facts, tensors


def _checksum(tensors: Mapping[str, Tensor], facts: Facts) -> int:
    """CRC-32 of the facts and of all arrays, names and shapes included, in the order of their names."""
    total = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        x = tensors[name].detach().cpu().contiguous()
        total = zlib.crc32(f"{name} {tuple(x.shape)} {x.dtype}".encode(), total)
        total = zlib.crc32(x.reshape(-1).view(torch.uint8).numpy().tobytes(), total)
    return total
