"""Noise that is a function of (key, index), so that chunks and threads do not change it.

A generator supplies one 64-bit key per call; everything below counts from that key. Number n of the
stream of a key is SplitMix64's output, mix(key + n * golden), due to Steele, Lea and Flood,
"Fast splittable pseudorandom number generators" (2014).
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_WORD = 2**64

Window = tuple[slice, ...]


def draw_key(generator: torch.Generator) -> int:
    """One 64-bit key, the only number a call takes from its generator."""
    require_generator(generator)
    word = torch.randint(
        -(2**63), 2**63 - 1, (), generator=generator, device=generator.device, dtype=torch.int64
    )
    return int(word.item()) % _WORD


def require_generator(generator: torch.Generator) -> None:
    """Say what a generator is where something else was passed."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator, got {generator!r}; "
            "make one with torch.Generator().manual_seed(0)"
        )


def subkey(key: int, n: int) -> int:
    """Key number n below ``key``: one for every step and purpose of a call."""
    # Keys and numbers come from the same map, so the two are told apart by the complement of n.
    z = (key + (_WORD - 1 - n) * _GOLDEN) % _WORD
    for shift, factor in _MIX:
        z = ((z ^ (z >> shift)) * factor) % _WORD
    return z ^ (z >> _LAST_SHIFT)


def uniform(
    key: int, shape: tuple[int, ...], *, window: Window = (), device: torch.device | None = None
) -> Tensor:
    """u in (0, 1), float64, the part ``window`` of the array ``shape`` that belongs to ``key``.

    >>> whole = uniform(7, (4, 3))
    >>> bool((uniform(7, (4, 3), window=(slice(1, 3),)) == whole[1:3]).all())
    True
    """
    z = _index(shape, window)
    z *= np.uint64(_GOLDEN)
    z += np.uint64(key)
    for shift, factor in _MIX:
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(_LAST_SHIFT)
    # 52 bits and a half: every value is exact in float64 and neither 0 nor 1 can occur.
    z >>= np.uint64(12)
    u = z.astype(np.float64)
    u += 0.5
    u *= 2.0**-52
    return torch.from_numpy(u).to(device)


def bernoulli(probability: Tensor, key: int) -> Tensor:
    """Binary draws with the given probabilities: 1 where u < probability."""
    u = uniform(key, tuple(probability.shape), device=probability.device)
    drawn = u < probability
    return drawn.to(probability.dtype)


def _index(shape: tuple[int, ...], window: Window) -> npt.NDArray[np.uint64]:
    """Row-major numbers of the elements of an array that lie in the window."""
    window = window + (slice(None),) * (len(shape) - len(window))
    parts = [part.indices(size) for part, size in zip(window, shape, strict=True)]
    if all(part == (0, size, 1) for part, size in zip(parts, shape, strict=True)):
        return np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    index = np.zeros((), dtype=np.uint64)
    for axis, part in enumerate(parts):
        stride = np.uint64(math.prod(shape[axis + 1 :]))
        index = index[..., np.newaxis] + np.arange(*part, dtype=np.uint64) * stride
    return index
