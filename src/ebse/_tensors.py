"""Checks of tensors: finite, in range, of one shape."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def as_float_tensor(name: str, value: Tensor | float | Sequence[float]) -> Tensor:
    """``value`` as a finite floating tensor; integers become the default float type."""
    # A tensor is kept, with its graph; anything else is copied, so that it cannot change later.
    x = value if isinstance(value, Tensor) else torch.as_tensor(value).clone()
    if x.is_complex():
        raise TypeError(f"{name} must be real, got {x.dtype}; pass its real part")
    if not x.is_floating_point():
        x = x.to(torch.get_default_dtype())
    if not bool(torch.isfinite(x).all()):
        bad = x[~torch.isfinite(x)].flatten()[0].item()
        raise ValueError(f"{name} must be finite, got {bad}; remove or impute NaN and infinity first")
    return x


def within(name: str, x: Tensor, low: float, high: float, *, remedy: str, closed: bool = True) -> Tensor:
    """``x`` where every element lies in [low, high], or in (low, high) if not ``closed``."""
    fine = (x >= low) & (x <= high) if closed else (x > low) & (x < high)
    if not bool(fine.all()):
        bad = x[~fine].flatten()[0].item()
        closing = "]" if closed and math.isfinite(high) else ")"
        interval = f"{'[' if closed else '('}{low:g}, {high:g}{closing}"
        raise ValueError(f"{name} must lie in {interval}, got {bad:g}; {remedy}")
    return x


def same_shape(**arrays: Tensor) -> list[Tensor]:
    """The arrays broadcast to one shape and one floating type."""
    try:
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in arrays.values()))
    except ValueError:
        found = ", ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ValueError(
            f"{' and '.join(arrays)} must broadcast to one shape, got {found}; "
            "give them the same shape or make one a scalar"
        ) from None
    # A scalar takes the type of the array that it is paired with.
    dtype = max(arrays.values(), key=lambda x: (x.ndim, x.element_size())).dtype
    return [x.to(dtype).expand(shape) for x in arrays.values()]


def units(name: str, x: Tensor, n: int, *, dtype: torch.dtype) -> Tensor:
    """``x`` as unit values (..., n) in [0, 1]."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(x).__name__}; wrap it with torch.as_tensor"
        )
    if x.ndim == 0 or x.shape[-1] != n:
        raise ValueError(
            f"{name} must have shape (..., {n}), got {tuple(x.shape)}; "
            f"the last axis counts the {n} units of the ensemble (images: v.flatten(1))"
        )
    if x.dtype != dtype:
        x = x.to(dtype)
    if x.numel():
        low, high = (bound.item() for bound in x.aminmax())
        # Written so that NaN, which compares false with everything, fails too.
        if not (low >= 0 and high <= 1):
            got = "NaN" if math.isnan(low) else f"values from {low:g} to {high:g}"
            raise ValueError(
                f"{name} must lie in [0, 1], got {got}; "
                "scale each feature to [0, 1] and remove or impute missing values"
            )
    return x


def fractional(x: Tensor) -> bool:
    """Whether some values lie strictly between 0 and 1: probabilities rather than binary units."""
    return bool(((x > 0) & (x < 1)).any())
