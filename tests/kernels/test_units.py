"""Fused sampling of units against the plain versions, given the same key."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor

from ebse import rng
from ebse.kernels import units
from ebse.kernels.words import F32, U64

SHAPES = [(1, 1), (3, 5), (7, 64), (50, 131)]
NEAR = 1e-6
"""A float32 sigmoid differs by less, so that a unit may differ only where u is nearer to its probability."""


def inputs(N: int, n: int) -> tuple[Tensor, Tensor]:
    row = torch.arange(N * n, dtype=torch.float32).reshape(N, n)
    return 8 * torch.sin(row * 1.7), torch.cos(torch.arange(n, dtype=torch.float32))


def both(a: Tensor, bias: Tensor, key: int, weight: float, mean: Tensor, drawn: Tensor) -> None:
    arrays = a.numpy(), bias.numpy(), U64(key), F32(weight), mean.numpy(), drawn.numpy()
    units.mean_and_draw(a.numel(), *arrays)


@pytest.mark.parametrize(("N", "n"), SHAPES)
@pytest.mark.parametrize("key", [0, 12345, 2**64 - 1])
def test_fused_and_plain_units_agree(N: int, n: int, key: int) -> None:
    a, bias = inputs(N, n)
    mean, drawn, alone, mean_alone = (torch.full((N, n), torch.nan) for _ in range(4))
    mean, drawn, alone, mean_alone = (x.float() for x in (mean, drawn, alone, mean_alone))
    both(a, bias, key, 1.0, mean, drawn)
    units.draw_units(a, bias, key, drawn=alone)
    units.mean_units(a, bias, mean=mean_alone)
    p = torch.sigmoid(a.double() + bias.double())
    torch.testing.assert_close(mean.double(), p, rtol=3e-6, atol=1e-7)
    assert torch.equal(mean, mean_alone)
    assert torch.equal(drawn, alone)
    near = (rng.uniform(key, (N, n)) - p).abs() < NEAR
    assert ((drawn == rng.bernoulli(p, key)) | near).all()


def test_plain_units_serve_other_types() -> None:
    a, bias = (x.double() for x in inputs(4, 9))
    mean, drawn = (torch.empty_like(a) for _ in range(2))
    units.mean_units(a, bias, mean=mean)
    units.draw_units(a, bias, 7, drawn=drawn)
    assert not units.fast(a)
    torch.testing.assert_close(mean, torch.sigmoid(a + bias))
    assert torch.equal(drawn, rng.bernoulli(mean, 7))


def test_certain_units_are_certain() -> None:
    a = torch.tensor([[-200.0, 200.0, -1e30, 1e30]]).float().expand(5000, 4).contiguous()
    drawn = torch.empty_like(a)
    units.draw_units(a, torch.zeros(4).float(), 3, drawn=drawn)
    assert torch.equal(drawn, (a > 0).float())


def test_threads_do_not_change_a_draw(two_threads: Callable[[], AbstractContextManager[None]]) -> None:
    a, bias = inputs(40, 33)
    one, two = (torch.empty(4, *a.shape).float() for _ in range(2))

    def draw(into: Tensor) -> None:
        units.draw_units(a, bias, 5, drawn=into[0])
        units.mean_units(a, bias, mean=into[1])
        both(a, bias, 5, -0.5, into[2], into[3])

    draw(one)
    with two_threads():
        draw(two)
    assert torch.equal(one, two)


def test_a_view_of_a_buffer_will_do() -> None:
    """Batches are slices of larger buffers."""
    a, bias = inputs(10, 8)
    buffer = torch.full((20, 8), 9.0).float()
    units.draw_units(a, bias, 5, drawn=buffer[10:])
    whole = torch.empty_like(a)
    units.draw_units(a, bias, 5, drawn=whole)
    assert torch.equal(buffer[10:], whole)
    assert (buffer[:10] == 9).all()


def test_another_key_gives_other_units() -> None:
    a, bias = inputs(10, 8)
    one, two = torch.empty_like(a), torch.empty_like(a)
    units.draw_units(torch.zeros_like(a), bias, 5, drawn=one)
    units.draw_units(torch.zeros_like(a), bias, 6, drawn=two)
    assert not torch.equal(one, two)


SCRIPT = """
import numba, torch
from ebse.kernels import units
torch.set_num_threads(2)
a, bias = torch.zeros(400, 200), torch.zeros(200)
units.draw_units(a, bias, 1, drawn=torch.empty_like(a))
print(torch.get_num_threads())
"""


def test_kernels_leave_the_number_of_threads_alone() -> None:
    """Numba's threads are torch's: its first parallel loop would set their number."""
    environment = os.environ | {"NUMBA_NUM_THREADS": "4"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"]
