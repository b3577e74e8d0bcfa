"""What a chain carries from sweep to sweep."""

from typing import Literal, NamedTuple

from torch import Tensor

Units = Literal["sampled", "mean"]
"""Whether units take sampled values or their conditional means (mean field)."""


class State(NamedTuple):
    """Units of a batch of chains: v (N, D) and h (N, K)."""

    v: Tensor
    h: Tensor
