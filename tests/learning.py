"""A small learning problem for the tests of training."""

from typing import Any

import torch

from ebse.laws import Law, Point
from ebse.models import RestrictedBoltzmannEnsemble, exact

D, K = 6, 3
# Two patterns and their neighbors: an easy distribution that an untrained model is far from.
DATA = torch.tensor([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]).double()
DATA = DATA.repeat(15, 1)


def start(law: type[Law], generator: torch.Generator, **options: Any) -> RestrictedBoltzmannEnsemble:
    return RestrictedBoltzmannEnsemble(
        W=law.start((D, K), generator=generator, **options), b=Point(torch.zeros(D)), c=Point(torch.zeros(K))
    )


def log_likelihood(small: RestrictedBoltzmannEnsemble) -> float:
    return float(exact.log_likelihood(small, DATA).mean())
