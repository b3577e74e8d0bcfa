"""``ImageViews``: random shifts, rotations, scalings and elastic deformations of images."""

import math
import numbers
from typing import TYPE_CHECKING, Any, final

from ebse._validation import count

if TYPE_CHECKING:
    import torch

SMALLEST_SIDE, LARGEST_SIDE = 8, 256
"""Pixels of a side."""
LARGEST_SCALE = 0.5
"""Sizes of an image change by 1 ± 1.5 scale, and must stay positive."""


@final
class ImageViews:
    """Random views of images, for ``ContrastiveFeatures(views=ImageViews((28, 28)))``.

    A view is the image shifted, rotated, scaled and deformed smoothly (elastic deformation: random
    displacements of a coarse grid, interpolated), all at random and in one bilinear resampling; what comes
    from outside of the image is 0. The class of a small image should not depend on these. Set ``flip``
    where it does not depend on left and right either: for clothes, not for digits.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        Shape of the images; rows hold their pixels in this order, as ``image.ravel()`` gives them.
        Sides have 8 to 256 pixels.
    shift : float, default 1.0
        Largest shift in each direction, in pixels; up to about a tenth of the width. Larger shifts lose
        pixels at the border, and objects that reach it.
    rotation : float, default 8.0
        Largest rotation, in degrees.
    scale : float, default 0.1
        Relative change of size, at most 0.5: height and width change together by up to ``scale``, and each by
        up to another ``scale`` / 2. A side is divided by 1 − 1.5 ``scale`` to 1 + 1.5 ``scale``.
    elastic : float, default 0.8
        Standard deviation of the displacements of the coarse grid, in pixels. 0: none.
    flip : bool, default False
        Mirror half of the images, left to right.

    References
    ----------
    P. Simard, D. Steinkraus and J. Platt, "Best practices for convolutional neural networks applied to
    visual document analysis", 2003 (elastic deformations).

    Examples
    --------
    >>> import torch
    >>> from ebse.semi_supervised import ImageViews
    >>> views = ImageViews((8, 8))
    >>> views(torch.ones(5, 64), generator=torch.Generator().manual_seed(0)).shape
    torch.Size([5, 64])
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        shift: float = 1.0,
        rotation: float = 8.0,
        scale: float = 0.1,
        elastic: float = 0.8,
        flip: bool = False,
    ) -> None:
        self.shape = image_shape(shape)
        for name, value in (("shift", shift), ("rotation", rotation), ("scale", scale), ("elastic", elastic)):
            if not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number, got {value!r}; pass 0 for none")
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, got {value!r}; pass 0 for none")
        if scale > LARGEST_SCALE:
            raise ValueError(
                f"scale must be at most {LARGEST_SCALE}, got {scale!r}; 0.1 divides each side by 0.85 to 1.15"
            )
        self.shift, self.rotation, self.scale = float(shift), float(rotation), float(scale)
        self.elastic, self.flip = float(elastic), bool(flip)

    def __call__(self, x: "torch.Tensor", *, generator: "torch.Generator") -> "torch.Tensor":
        """A view of each of the rows x (n, D)."""
        import torch
        from torch.nn import functional

        height, width, n_channels = self.shape
        if x.ndim != 2 or x.shape[1] != height * width * n_channels:
            raise ValueError(
                f"rows must have {height * width * n_channels} columns for images of shape {self.shape}, got "
                f"{tuple(x.shape)}; pass the shape of your images"
            )
        n = len(x)

        def uniform(largest: float, *size: int) -> torch.Tensor:
            return (2 * torch.rand(n, *size, generator=generator, dtype=x.dtype) - 1) * largest

        images = x.view(n, height, width, n_channels).permute(0, 3, 1, 2)
        angle = uniform(math.radians(self.rotation))
        factors = 1 + uniform(self.scale, 1) + uniform(self.scale / 2, 2)
        if self.flip:
            factors[:, 0] *= torch.where(uniform(1.0) < 0, -1.0, 1.0)
        cos, sin = torch.cos(angle), torch.sin(angle)
        rotation = torch.stack([torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)], 1)
        # grid_sample measures in half widths and half heights, x first.
        halves = torch.tensor([width / 2, height / 2], dtype=x.dtype)
        turned = rotation * factors[:, None, :] * (halves / halves[:, None])
        moved = (uniform(self.shift, 2) / halves)[:, :, None]
        grid = functional.affine_grid(
            torch.cat([turned, moved], 2), [n, 1, height, width], align_corners=False
        )
        if self.elastic > 0:
            coarse = torch.randn(n, 2, COARSE, COARSE, generator=generator, dtype=x.dtype) * self.elastic
            smooth = functional.interpolate(coarse, (height, width), mode="bicubic", align_corners=True)
            grid = grid + (smooth / halves[:, None, None]).permute(0, 2, 3, 1)
        found = functional.grid_sample(images, grid, align_corners=False)
        return found.permute(0, 2, 3, 1).reshape(n, -1)

    def __repr__(self) -> str:
        settings = ("shift", "rotation", "scale", "elastic", "flip")
        return f"ImageViews({self.shape}, {', '.join(f'{s}={getattr(self, s)!r}' for s in settings)})"

    def facts(self) -> dict[str, Any]:
        """What a file holds of it: the arguments of another that is equal."""
        return dict(vars(self))


COARSE = 4
"""Points of the coarse grid in each direction, which elastic deformations displace."""


def image_shape(shape: Any, name: str = "shape") -> tuple[int, int, int]:
    """(height, width, channels) of a shape with or without channels."""
    try:
        sides = [count(name, n) for n in shape]
    except TypeError:
        sides = []
    if len(sides) == 2:
        sides.append(1)
    if len(sides) != 3 or not all(SMALLEST_SIDE <= n <= LARGEST_SIDE for n in sides[:2]):
        raise ValueError(
            f"{name} must be (height, width) or (height, width, channels), sides {SMALLEST_SIDE} to "
            f"{LARGEST_SIDE}, got {shape!r}; pass (28, 28), for example"
        )
    return sides[0], sides[1], sides[2]
