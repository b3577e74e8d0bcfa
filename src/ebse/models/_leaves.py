"""Ensembles whose α are leaves of autograd."""

from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from ebse.laws import Alpha, Law


class HasLaws(Protocol):
    """An ensemble: laws by name, and the same ensemble with other laws."""

    @property
    def laws(self) -> dict[str, Law]:
        """The law of each parameter array."""

    def with_laws(self, **laws: Law) -> Self:
        """The ensemble with some of its laws exchanged."""


Gradient = dict[str, Alpha]
"""One array for each of α, by parameter array and by name: gradient["W"]["p"]."""


def leaves_of(ensemble: HasLaws) -> Gradient:
    """α of every law as leaves that record gradients; they share memory with the laws."""
    return {
        letter: {name: x.detach().requires_grad_() for name, x in law.alpha.items()}
        for letter, law in ensemble.laws.items()
    }


E = TypeVar("E", bound=HasLaws)


def rebuilt(ensemble: E, alpha: Gradient) -> E:
    """The ensemble whose laws have these α."""
    laws = {letter: law.with_alpha(alpha[letter]) for letter, law in ensemble.laws.items()}
    return ensemble.with_laws(**laws)


def gradient_of(value: Tensor, alpha: Gradient) -> Gradient:
    """∂ value / ∂α, zero for those of α that it does not depend on."""
    flat = [x for part in alpha.values() for x in part.values()]
    slopes = iter(torch.autograd.grad(value, flat, allow_unused=True, materialize_grads=True))
    return {letter: {name: next(slopes) for name in part} for letter, part in alpha.items()}
