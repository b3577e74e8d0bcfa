"""Laws by name, and ensembles as NumPy arrays and back."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ebse.laws import Bernoulli, Gaussian, Law, Point
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.models.rbse import Visible
from ebse.models.storage import FAMILIES

LAWS: dict[str, type[Law]] = {"bernoulli": Bernoulli, "gaussian": Gaussian, "point": Point}
"""Those that users name; files name all of ebse's own."""
NOISE_NAMES: dict[type[Law], str] = {Bernoulli: "p", Gaussian: "sigma"}
"""What the noise of a law is called where it starts."""

Alpha = dict[str, dict[str, npt.NDArray[np.floating[Any]]]]


def family(name: str, law: Any) -> type[Law]:
    """The class of a law that was given by its name or as a class."""
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


def start_noise(law: type[Law], noise: float | None) -> dict[str, float]:
    """``noise`` under the name that the law's start has for it."""
    if noise is None:
        return {}
    if law not in NOISE_NAMES:
        raise ValueError(
            f"noise must be None for the law {law.__name__}, got {noise!r}; only 'bernoulli' (the "
            "probability that a connection is present) and 'gaussian' (a standard deviation) take a number"
        )
    require_noise(law, noise)
    return {NOISE_NAMES[law]: noise}


def require_noise(law: type[Law], noise: float) -> None:
    """A number that can be the noise of a law: σ of a Gaussian one, a presence of any other."""
    if law is Gaussian and not 0 <= noise < float("inf"):
        raise ValueError(
            f"noise must be a standard deviation >= 0 for the law Gaussian, got {noise!r}; pass one"
        )
    if law is not Gaussian and not 0 < noise < 1:
        raise ValueError(
            f"noise must be a probability of presence in (0, 1) for the law {law.__name__}, got {noise!r}; "
            "without noise use the law 'point'"
        )


def with_noise(ensemble: RestrictedBoltzmannEnsemble, noise: float | None) -> RestrictedBoltzmannEnsemble:
    """The ensemble moved along the gauge: σ of a Gaussian law, presence of a Bernoulli or any other one."""
    if noise is None:
        return ensemble
    require_noise(type(ensemble.W), noise)
    if isinstance(ensemble.W, Gaussian):
        return ensemble.with_noise(sigma=noise)
    return ensemble.with_noise(p=noise)


class Laws(NamedTuple):
    """Three laws without their arrays, and what visible units are."""

    templates: dict[str, Law]
    visible: Visible

    @classmethod
    def of(cls, ensemble: RestrictedBoltzmannEnsemble) -> "tuple[Laws, Alpha]":
        """An ensemble as its laws, and their α as arrays by letter and name."""
        templates = {
            # None is no value of α: the arrays are put back before anybody asks for them.
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
