"""Ensembles in safetensors files: arrays by letter and name, everything else as JSON in the header."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ebse import _archive
from ebse._archive import Facts, consistent
from ebse.laws import Bernoulli, Gaussian, Laplace, Law, Levels, Point, SpikeSlab, Uniform
from ebse.models.rbse import RestrictedBoltzmannEnsemble

FAMILIES: dict[str, type[Law]] = {
    family.__name__: family for family in (Bernoulli, Gaussian, Laplace, Levels, Point, SpikeSlab, Uniform)
}
"""The laws that a file may name."""

Tensors = dict[str, Tensor]


def save_ensemble(path: str | Path, ensemble: RestrictedBoltzmannEnsemble, **facts: Any) -> None:
    """Write the ensemble, and further facts as JSON, to one file, atomically.

    The same contents give the same bytes.
    """
    described, tensors = describe(ensemble)
    write(Path(path), "ensemble", tensors, {"ensemble": described, **facts})


def load_ensemble(path: str | Path) -> RestrictedBoltzmannEnsemble:
    """The ensemble of a file written by :func:`save_ensemble`; nothing in the file is executed."""
    facts, tensors = read(Path(path), "ensemble")
    with consistent(Path(path)):
        return rebuild(facts["ensemble"], tensors)


def describe(ensemble: RestrictedBoltzmannEnsemble) -> tuple[Facts, Tensors]:
    """Families and names of the laws, and their α as arrays."""
    for letter, law in ensemble.laws.items():
        if type(law) is not FAMILIES.get(type(law).__name__):
            raise TypeError(
                f"{letter} must have a law of ebse.laws to be saved, got {type(law).__name__}; "
                "save the arrays of a custom law yourself (law.alpha)"
            )
    families = {letter: [type(law).__name__, *law.names] for letter, law in ensemble.laws.items()}
    tensors = {
        f"{letter}.{name}": value
        for letter, law in ensemble.laws.items()
        for name, value in law.alpha.items()
    }
    return {"laws": families, "visible": ensemble.visible}, tensors


def rebuild(described: Facts, tensors: Mapping[str, Tensor]) -> RestrictedBoltzmannEnsemble:
    """The ensemble from what :func:`describe` returned."""
    laws: dict[str, Law] = {}
    for letter, (family, *names) in described["laws"].items():
        alpha = {name: tensors[f"{letter}.{name}"] for name in names}
        make = FAMILIES[family]
        laws[letter] = Bernoulli.from_logit(**alpha) if "logit_p" in names else make(**alpha)
    return RestrictedBoltzmannEnsemble(**laws, visible=described["visible"])


def write(path: Path, kind: str, tensors: Tensors, facts: Facts) -> None:
    """Tensors and facts as one file, see :func:`ebse._archive.write`."""
    _archive.write(path, kind, facts, {name: x.detach().cpu().numpy() for name, x in tensors.items()})


def read(path: Path, kind: str) -> tuple[Facts, Tensors]:
    """Facts and tensors of a file written by :func:`write`, checked."""
    facts, arrays = _archive.read(path, kind)
    # Arrays of a file are read-only.
    return facts, {name: torch.from_numpy(x.copy()) for name, x in arrays.items()}
