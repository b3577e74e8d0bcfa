"""Basics of the kernels: compilation, the random words of :mod:`ebse.rng`, exp in single precision."""

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

from ebse import rng

F32, I32, U32, U64 = np.float32, np.int32, np.uint32, np.uint64

ARITHMETIC = {"contract", "nsz", "arcp", "reassoc"}
"""Floating-point transformations that the compiler may use; NaN and infinity are respected."""

GOLDEN = U64(rng.GOLDEN)
(_SHIFT_1, _FACTOR_1), (_SHIFT_2, _FACTOR_2) = ((U64(shift), U64(factor)) for shift, factor in rng.MIX)
_SHIFT_3 = U64(rng.LAST_SHIFT)
_LOW, _HALF = U64(0xFFFFFFFF), U64(32)

SHARED = 2**15
"""Elements from which on a kernel uses several threads; torch has the same limit for its loops."""

Kernel = Callable[..., Any]

_PROCESS = os.getpid()
_ONE_AT_A_TIME = Lock()
_SOURCES = sorted([*Path(__file__).parent.glob("*.py"), Path(rng.__file__)])
_DIGEST = f"{zlib.crc32(b''.join(path.read_bytes() for path in _SOURCES)):08x}"


def kernel(function: Kernel) -> Kernel:
    """The function compiled twice, for one thread and for as many as torch uses; cached on disk if possible.

    It is called as f(n_elements, …). Where Numba uses OpenMP, its threads are those of torch, and still
    spinning when the next matrix product starts. They do not exist after a fork: the loop for one thread runs
    then.
    """
    alone, shared = _compiled(function, parallel=False), _compiled(function, parallel=True)

    def call(n_elements: int, *arguments: Any) -> Any:
        if n_elements < SHARED:
            return alone(*arguments)
        n_threads = torch.get_num_threads()
        if n_threads == 1 or os.getpid() != _PROCESS:
            return alone(*arguments)
        # One of the threading layers of Numba ends the process when two Python threads enter it at once.
        with _ONE_AT_A_TIME:
            before, wanted = numba.get_num_threads(), min(n_threads, numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
            if before == wanted:
                result = shared(*arguments)
            else:
                numba.set_num_threads(wanted)
                result = shared(*arguments)
                numba.set_num_threads(before)
            # The first parallel loop of Numba sets the number of threads of OpenMP, and so of torch, to its
            # own.
            if torch.get_num_threads() != n_threads:
                torch.set_num_threads(n_threads)
            return result

    return call


def _compiled(function: Kernel, *, parallel: bool) -> Kernel:
    # Cache files of Numba are named after the function alone: neither its options nor the source of the parts
    # that are inlined from other files count.
    named = FunctionType(function.__code__, function.__globals__, function.__name__)
    named.__qualname__ = f"{function.__name__}_{'shared' if parallel else 'alone'}_{_DIGEST}"
    # With the error model of Python every division is a branch, and loops with one do not vectorize.
    options: dict[str, Any] = {"fastmath": ARITHMETIC, "nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, parallel=parallel, **options)(named)  # type: ignore[no-any-return]
    except RuntimeError:
        # No writable folder for the cache: every process compiles.
        return numba.njit(parallel=parallel, **options)(named)  # type: ignore[no-any-return]


part = numba.njit(inline="always")
"""A part of a kernel, inlined."""

called: Callable[[Kernel], Kernel] = numba.njit(fastmath=ARITHMETIC, error_model="numpy", nogil=True)
"""A part of a kernel, compiled once and called: loops that would take long to compile wherever inlined."""


@part
def mixed(z):  # type: ignore[no-untyped-def]
    """:func:`ebse.rng.mix` of one number."""
    z ^= z >> _SHIFT_1
    z *= _FACTOR_1
    z ^= z >> _SHIFT_2
    z *= _FACTOR_2
    z ^= z >> _SHIFT_3
    return z


@part
def row_seed(key, row):  # type: ignore[no-untyped-def]
    """mix(key + row * golden): both halves of the seed of a row."""
    z = mixed(key + row * GOLDEN)
    return U32(z & _LOW), U32(z >> _HALF)


def _word(context, low, high, unit):  # type: ignore[no-untyped-def]
    """The 31-bit word of a unit, in 32-bit instructions: 0.3 ns, against 0.8 with widened integers."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        def constant(x: int) -> ir.Constant:
            return ir.Constant(ir.IntType(32), x)

        low, high, unit = arguments
        (first, multiplier), (second, last_multiplier) = rng.UNIT_MIX
        x = builder.add(low, builder.mul(unit, constant(rng.UNIT_STEP)))
        x = builder.xor(x, builder.lshr(x, constant(first)))
        x = builder.mul(x, constant(multiplier))
        x = builder.xor(x, builder.lshr(x, constant(second)))
        x = builder.xor(x, high)
        x = builder.mul(x, constant(last_multiplier))
        x = builder.xor(x, builder.lshr(x, constant(rng.UNIT_LAST_SHIFT)))
        return builder.lshr(x, constant(1))

    return numba.int32(numba.uint32, numba.uint32, numba.uint32), generate


word: Kernel = intrinsic(_word)


def _reinterpret(context, bits):  # type: ignore[no-untyped-def]
    """The float32 whose bits are those of an int32."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], ir.FloatType())

    return numba.float32(numba.int32), generate


_from_bits: Kernel = intrinsic(_reinterpret)


@part
def exp(x):  # type: ignore[no-untyped-def]
    """e^x in float32, within 2 units in the last place, from −87 to 88: expf of Cephes, which vectorizes."""
    x = min(max(x, F32(-87.0)), F32(88.0))
    n = np.floor(x * F32(1.44269504) + F32(0.5))
    r = x - n * F32(0.693359375)
    r = r + n * F32(2.12194440e-4)
    y = F32(1.9875691500e-4)
    y = y * r + F32(1.3981999507e-3)
    y = y * r + F32(8.3334519073e-3)
    y = y * r + F32(4.1665795894e-2)
    y = y * r + F32(1.6666665459e-1)
    y = y * r + F32(5.0000001201e-1)
    y = y * r * r + r + F32(1.0)
    return y * _from_bits(I32(I32(I32(n) + I32(127)) << I32(23)))


@part
def sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + e^−x) in float32."""
    return F32(1.0) / (F32(1.0) + exp(-x))
