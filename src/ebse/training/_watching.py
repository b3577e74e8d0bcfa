"""Which rows are watched, and what the monitors find in them."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training.data import Description, Rows
from ebse.training.monitors import Monitor, Row

N_WATCHED, SHARE, CHEAP = 1000, 200, 2**22
"""Rows that are watched: one in SHARE, or as many as have CHEAP connections in all, and no more than this."""


@final
class Watch:
    """Monitors, and so few rows that looking at them costs little beside training on all."""

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self.monitors = tuple(monitors)
        self.v: Tensor | None = None
        self.held_out: Tensor | None = None
        self.held_out_facts: Description | None = None

    @property
    def names(self) -> list[str]:
        """Of the monitors."""
        return [_name(monitor) for monitor in self.monitors]

    def begin(self, v: Rows, held_out: Rows | None, n_connections: int) -> None:
        """Choose rows of the training set and of those held out."""
        n = min(max((v.n_rows or 0) // SHARE, CHEAP // n_connections, 1), N_WATCHED)
        self.v = v.spread(n)
        self.held_out = None if held_out is None else held_out.spread(n)
        self.held_out_facts = None if held_out is None else held_out.describe()

    def row(self, ensemble: RestrictedBoltzmannEnsemble) -> Row:
        """What the monitors find, as plain numbers that a file can hold."""
        assert self.v is not None
        row: Row = {}
        with torch.no_grad():
            for monitor in self.monitors:
                found = monitor(ensemble, self.v, self.held_out)
                try:
                    row |= {name: float(value) for name, value in found.items()}
                except (AttributeError, TypeError, ValueError):
                    raise TypeError(
                        f"monitors must return a dict of numbers by name, got {found!r} from "
                        f"{_name(monitor)}; return {{'name': float(value)}}"
                    ) from None
        return row


def _name(monitor: Monitor) -> str:
    return getattr(monitor, "__name__", type(monitor).__name__)
