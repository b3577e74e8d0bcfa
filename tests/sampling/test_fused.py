"""Sweeps in single precision, by the kernels: they leave the enumerated joint invariant, and agree with plain loops."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.sampling import State, clamped_sweeps, collapsed_sweeps, explicit_sweeps
from ebse.sampling import _row_sweeps as rows
from kernels.single import single
from sampling.test_stationarity import is_invariant, strong

FUSED = [("bernoulli", "point", "point"), ("gaussian", "point", "point"), ("bernoulli", "gaussian", "levels")]


@pytest.mark.parametrize("mix", FUSED, ids="-".join)
def test_fused_sweeps_leave_the_joint_invariant(
    mix: tuple[str, str, str], generator: torch.Generator
) -> None:
    small = strong(*mix)
    fused = single(small)
    assert is_invariant(small, lambda s: explicit_sweeps(fused, s, 3, generator=generator), generator)
    assert is_invariant(small, lambda s: clamped_sweeps(fused, s, 3, generator=generator), generator)
    assert is_invariant(small, lambda s: collapsed_sweeps(fused, s, 3, generator=generator), generator)


@pytest.mark.parametrize("W", ["bernoulli", "gaussian"])
def test_fused_sweeps_with_the_prior_everywhere_do_not(
    W: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, name = strong(W), f"{W}_pass"
    right = getattr(rows, name)

    def untilted(*arguments: Any, a: Tensor) -> Tensor:
        *law, v, h, b, keys = arguments
        return right(*law, torch.zeros_like(v), h, b, keys, a=a)  # type: ignore[no-any-return]

    monkeypatch.setattr(rows, name, untilted)
    assert not is_invariant(
        small, lambda s: explicit_sweeps(single(small), s, 3, generator=generator), generator
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_collapsed_sweeps_are_products_sigmoids_and_draws(dtype: torch.dtype) -> None:
    """The plain loop with the keys that the sweep counts: 2 s for v, 2 s + 1 for h."""
    small = strong("bernoulli", "gaussian", "levels")
    small = single(small) if dtype == torch.float32 else small
    v, h = (torch.ones(2000, n, dtype=dtype) for n in (3, 2))
    found = collapsed_sweeps(small, State(v, h), 2, generator=torch.Generator().manual_seed(3))
    key = rng.draw_key(torch.Generator().manual_seed(3))
    for sweep in range(2):
        v = rng.bernoulli(small.mean_v_given_h(h), rng.subkey(key, 2 * sweep))
        h = rng.bernoulli(small.mean_h_given_v(v), rng.subkey(key, 2 * sweep + 1))
    # In float32 a number next to its probability may fall on either side.
    allowed = 0 if dtype == torch.float64 else 1
    assert (found.v != v).any(-1).sum() + (found.h != h).any(-1).sum() <= allowed


def test_collapsed_sweeps_leave_their_start_alone(generator: torch.Generator) -> None:
    small, state = single(strong()), State(torch.ones(4, 3).float(), torch.ones(4, 2).float())
    collapsed_sweeps(small, state, 2, generator=generator)
    assert all(bool(x.all()) for x in state)
