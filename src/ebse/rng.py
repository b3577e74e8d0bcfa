"""Counter-based random numbers: a function of (key, row, unit), independent of chunks and threads.

A generator supplies one 64-bit key per call; everything below counts from that key. The last axis of an
array counts units, the axes before it count rows. Row r of a key has the seed mix(key + r * golden),
SplitMix64's output (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014); unit j
of the row has the 32-bit word that a two-multiplication hash makes of that seed and j. Words of 32 bits
are what the fused kernels (:mod:`ebse.kernels.words`) can make eight at a time.
"""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15
MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = 31
_WORD = 2**64

UNIT_STEP = 0x9E3779B9
"""Increment of the counter of a row from unit to unit."""
UNIT_MIX = ((16, 0x7FEB352D), (15, 0x846CA68B))
"""Shifts and factors of the hash of a unit, Wellons' "lowbias32" (2018)."""
UNIT_LAST_SHIFT = 16

Window = tuple[slice, ...]
Numbers = npt.NDArray[np.uint64]
"""Numbers of chains, which select the random numbers of each."""


def draw_key(generator: torch.Generator) -> int:
    """One 64-bit key, the only number that a call draws from its generator."""
    require_generator(generator)
    word = torch.randint(
        -(2**63), 2**63 - 1, (), generator=generator, device=generator.device, dtype=torch.int64
    )
    return int(word.item()) % _WORD


def require_generator(generator: torch.Generator) -> None:
    """Require a torch.Generator."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator, got {generator!r}; "
            "make one with torch.Generator().manual_seed(0)"
        )


def subkey(key: int, n: int) -> int:
    """Key number n below ``key``: one for every step and purpose of a call."""
    # Keys and numbers come from the same map, so the complement of n keeps them distinct.
    z = (key + (_WORD - 1 - n) * GOLDEN) % _WORD
    for shift, factor in MIX:
        z = ((z ^ (z >> shift)) * factor) % _WORD
    return z ^ (z >> LAST_SHIFT)


def uniform(
    key: int,
    shape: tuple[int, ...],
    *,
    window: Window = (),
    device: torch.device | None = None,
    numbers: Numbers | None = None,
) -> Tensor:
    """u in (0, 1), float64: the part ``window`` of the array ``shape`` of random numbers of ``key``.

    The first axis counts chains: 0, 1, … or by the ``numbers`` given.

    >>> whole = uniform(7, (4, 3))
    >>> bool((uniform(7, (4, 3), window=(slice(1, 3),)) == whole[1:3]).all())
    True
    """
    u = words(key, shape, window, numbers).astype(np.float64)
    # 31 bits and a half: every value is exact in float64 and neither 0 nor 1 can occur.
    u += 0.5
    u *= 2.0**-31
    return torch.from_numpy(u).to(device)


def words(
    key: int, shape: tuple[int, ...], window: Window = (), numbers: Numbers | None = None
) -> npt.NDArray[np.uint32]:
    """31-bit words: the part ``window`` of the array ``shape`` of random words of ``key``."""
    if not shape:
        return words(key, (1,))[0:1].reshape(())
    window = window + (slice(None),) * (len(shape) - len(window))
    seed = _index(shape[:-1], window[:-1], numbers)
    seed *= np.uint64(GOLDEN)
    seed += np.uint64(key)
    mix(seed)
    low, high = (part.astype(np.uint32)[..., np.newaxis] for part in (seed, seed >> np.uint64(32)))
    (first, multiplier), (second, last_multiplier) = UNIT_MIX
    x = np.arange(*window[-1].indices(shape[-1]), dtype=np.uint32) * np.uint32(UNIT_STEP) + low
    x ^= x >> np.uint32(first)
    x *= np.uint32(multiplier)
    x ^= x >> np.uint32(second)
    # The other half of the seed enters between the rounds, so that 64 bits distinguish rows.
    x ^= high
    x *= np.uint32(last_multiplier)
    x ^= x >> np.uint32(UNIT_LAST_SHIFT)
    x >>= np.uint32(1)
    return x


def mix(z: Numbers) -> None:
    """SplitMix64's output function, in place."""
    for shift, factor in MIX:
        z ^= z >> np.uint64(shift)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(LAST_SHIFT)


def bernoulli(probability: Tensor, key: int, numbers: Numbers | None = None) -> Tensor:
    """Binary samples with the given probabilities: 1 where u < probability."""
    u = uniform(key, tuple(probability.shape), device=probability.device, numbers=numbers)
    drawn = u < probability
    return drawn.to(probability.dtype)


def _index(shape: tuple[int, ...], window: Window, numbers: Numbers | None) -> Numbers:
    """Row-major numbers of the elements of an array that lie in the window."""
    parts = [part.indices(size) for part, size in zip(window, shape, strict=True)]
    whole = all(part == (0, size, 1) for part, size in zip(parts, shape, strict=True))
    if numbers is None and whole:
        return np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    index = np.zeros((), dtype=np.uint64)
    for axis, part in enumerate(parts):
        stride = np.uint64(math.prod(shape[axis + 1 :]))
        along = np.arange(*part, dtype=np.uint64) if axis or numbers is None else numbers[window[0]]
        index = index[..., np.newaxis] + along * stride
    return index
