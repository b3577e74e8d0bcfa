"""Laws by name, noise arguments, and ensembles as NumPy arrays and back."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ebse.laws import Bernoulli, Gaussian, Law, Point, SpikeSlab
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.rbse import Visible
from ebse.models.storage import FAMILIES

LAWS: dict[str, type[Law]] = {"bernoulli": Bernoulli, "gaussian": Gaussian, "point": Point}
"""Names that users pass; files may name every law of :mod:`ebse.laws`."""
ARGUMENTS: dict[type[Law], str] = {Bernoulli: "keep_prob", SpikeSlab: "keep_prob", Gaussian: "sigma"}
"""The argument that sets the noise of a law."""
LETTERS = {"keep_prob": "p", "sigma": "sigma"}
"""The same arguments in the low-level API."""

Alpha = dict[str, dict[str, npt.NDArray[np.floating[Any]]]]


def family(name: str, law: Any) -> type[Law]:
    """The class of a law given by its name or as a class."""
    if isinstance(law, str) and law in LAWS:
        return LAWS[law]
    if isinstance(law, str) and law in FAMILIES:
        return FAMILIES[law]
    if isinstance(law, type) and issubclass(law, Law):
        return law
    words = ", ".join(repr(word) for word in LAWS)
    raise ValueError(
        f"{name} must be one of {words} or a law of ebse.laws, got {law!r}; pass the name or the class"
    )


def start_noise(law: type[Law], keep_prob: float | None, sigma: float | None) -> dict[str, float]:
    """The noise that training starts from, as ``law.start`` takes it."""
    noise = noise_of(law, keep_prob, sigma)
    if noise and law not in ARGUMENTS:
        (name, value) = next((n, x) for n, x in (("keep_prob", keep_prob), ("sigma", sigma)) if x is not None)
        raise ValueError(
            f"{name} must be None for the law {law.__name__}, got {value!r}; only 'bernoulli' takes "
            "keep_prob, and only 'gaussian' takes sigma"
        )
    return noise


def noise_of(law: type[Law], keep_prob: float | None, sigma: float | None) -> dict[str, float]:
    """The one argument that is given, checked, under its letter in the low-level API; empty where none is."""
    given = {name: x for name, x in (("keep_prob", keep_prob), ("sigma", sigma)) if x is not None}
    if not given:
        return {}
    right = ARGUMENTS.get(law)
    if len(given) > 1:
        raise ValueError(
            f"keep_prob and sigma must not both be given, got {keep_prob!r} and {sigma!r}; pass "
            f"{right or 'one of them'} for the law {law.__name__}"
        )
    ((name, value),) = given.items()
    if right not in (None, name):
        raise ValueError(
            f"{name} must be None for the law {law.__name__}, got {value!r}; pass {right} for this law"
        )
    if name == "sigma" and not 0 <= value < float("inf"):
        raise ValueError(
            f"sigma must be a standard deviation >= 0 for the law {law.__name__}, got {value!r}; pass one"
        )
    if name == "keep_prob" and not 0 < value < 1:
        raise ValueError(
            f"keep_prob must be a probability in (0, 1) for the law {law.__name__}, got {value!r}; for "
            "weights without noise use the law 'point'"
        )
    return {LETTERS[name]: value}


class Laws(NamedTuple):
    """Three laws without their arrays, and the type of the visible units."""

    templates: dict[str, Law]
    visible: Visible

    @classmethod
    def of(cls, ensemble: RestrictedBoltzmannEnsemble) -> "tuple[Laws, Alpha]":
        """An ensemble as its laws, and their α as arrays by letter and name."""
        templates = {
            # None is not a value of α: the arrays are put back before the law is used.
            letter: law.with_alpha(dict.fromkeys(law.names))  # type: ignore[arg-type]
            for letter, law in ensemble.laws.items()
        }
        alpha = {
            letter: {name: x.detach().cpu().numpy() for name, x in law.alpha.items()}
            for letter, law in ensemble.laws.items()
        }
        return cls(templates, ensemble.visible), alpha

    def with_alpha(self, alpha: Alpha) -> RestrictedBoltzmannEnsemble:
        """The ensemble with these arrays."""
        laws = {
            letter: law.with_alpha({name: _tensor(alpha[letter][name]) for name in law.names})
            for letter, law in self.templates.items()
        }
        return RestrictedBoltzmannEnsemble(**laws, visible=self.visible)


def _tensor(x: npt.NDArray[np.floating[Any]]) -> torch.Tensor:
    return torch.from_numpy(x if x.flags.writeable else x.copy())
