"""Views of images: geometry against loops of bilinear interpolation, laws of the random changes, errors."""

import copy
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from ebse.semi_supervised import ImageViews
from ebse.semi_supervised.image_views import LARGEST_SIDE, SMALLEST_SIDE, image_shape
from monte_carlo import FAILURE_RATE, means_depart

Image = npt.NDArray[np.float32]
NONE: dict[str, Any] = {"shift": 0, "rotation": 0, "scale": 0, "elastic": 0}
SHAPES = [(8, 8), (8, 12), (12, 8), (9, 10, 3)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def image_of(shape: tuple[int, ...], seed: int = 0) -> Image:
    return np.random.default_rng(seed).random(shape).astype(np.float32)


def viewed(views: ImageViews, image: Image, n: int = 1, seed: int = 0) -> Image:
    """n views of one image, as images."""
    rows = torch.from_numpy(np.repeat(image.reshape(1, -1), n, axis=0))
    return views(rows, generator=seeded(seed)).numpy().reshape(n, *image.shape)


def always(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers that are uniform in (0, 1) are all this one: 0 and 1 are the ends of every range."""
    monkeypatch.setattr(torch, "rand", lambda *size, **_: torch.full(size, value))


def interpolated(image: Image, y: float, x: float) -> Any:
    """The image at a point, in pixels from its first one, by bilinear interpolation; 0 outside."""
    total = np.zeros(image.shape[2:])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += (1 - abs(y - row)) * (1 - abs(x - column)) * image[row, column]
    return total


# ---- geometry


@pytest.mark.parametrize("shape", SHAPES)
def test_without_any_range_views_are_the_images(shape: tuple[int, ...]) -> None:
    image = image_of(shape)
    np.testing.assert_allclose(viewed(ImageViews(shape, **NONE), image, 3)[2], image, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_whole_pixels_shift_and_leave_zeros(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the whole range: up and left at one of its ends, down and right at the other."""
    image = image_of(shape)
    up, down = np.zeros_like(image), np.zeros_like(image)
    up[:-2, :-2], down[2:, 2:] = image[2:, 2:], image[:-2, :-2]
    for value, expected in ((1.0, up), (0.0, down)):
        always(value, monkeypatch)
        found = viewed(ImageViews(shape, **{**NONE, "shift": 2}), image)[0]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_quarter_turn_of_a_square(monkeypatch: pytest.MonkeyPatch) -> None:
    image = image_of((9, 9))
    views = ImageViews((9, 9), **{**NONE, "rotation": 90})
    turned = []
    for value in (0.0, 1.0):
        always(value, monkeypatch)
        turned.append(viewed(views, image)[0])
    directions = [np.rot90(image), np.rot90(image, -1)]
    if abs(turned[0] - directions[0]).max() > 0.1:
        directions.reverse()
    np.testing.assert_allclose(turned, directions, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_half_a_turn(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    always(1.0, monkeypatch)
    image = image_of(shape)
    found = viewed(ImageViews(shape, **{**NONE, "rotation": 180}), image)[0]
    np.testing.assert_allclose(found, image[::-1, ::-1], atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 12), (12, 8)])
def test_a_quarter_turn_of_a_rectangle(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A square in the middle turns as it would alone; what comes from beyond the short sides is 0."""
    image = image_of(shape)
    always(1.0, monkeypatch)
    found = viewed(ImageViews(shape, **{**NONE, "rotation": 90}), image)[0]
    middle = tuple(slice((n - 8) // 2, (n - 8) // 2 + 8) for n in shape)
    turns = [np.rot90(image[middle], k) for k in (1, -1)]
    assert min(abs(found[middle] - one).max() for one in turns) < 1e-5
    outside = np.ones(shape, dtype=bool)
    outside[middle] = False
    np.testing.assert_allclose(found[outside], 0, atol=1e-5)


def test_an_image_that_is_round_stays_as_it_is() -> None:
    """Small angles of a smooth, round image that is 0 at the border: only interpolation changes it."""
    y, x = np.mgrid[-9.5:10, -13.5:14]
    image = np.exp(-(y**2 + x**2) / 8).astype(np.float32)
    found = viewed(ImageViews(image.shape, **{**NONE, "rotation": 180}), image, 20)
    np.testing.assert_allclose(found, np.repeat(image[None], 20, 0), atol=0.05)
    # The twin: an ellipse does not.
    long = np.exp(-(y**2 + x**2 / 4) / 8).astype(np.float32)
    assert abs(viewed(ImageViews(image.shape, **{**NONE, "rotation": 180}), long, 20) - long).max() > 0.3


def test_an_image_grows_or_shrinks_about_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the ends of the range of sizes, against interpolation at the scaled positions."""
    shape = (8, 11)
    image = image_of(shape)
    sizes = []
    for value in (0.0, 1.0):
        always(value, monkeypatch)
        found = viewed(ImageViews(shape, **{**NONE, "scale": 0.2}), image)[0]
        errors = []
        # Both changes of size together are between one and two ranges.
        for factor in 1 + (2 * value - 1) * 0.2 * np.array([1, 1.25, 1.5, 1.75, 2]):
            expected = [
                [interpolated(image, 3.5 + factor * (y - 3.5), 5 + factor * (x - 5)) for x in range(11)]
                for y in range(8)
            ]
            errors.append(abs(found - np.array(expected)).max())
        assert min(errors) < 1e-4
        sizes.append(float(found.sum()))
    # Sampled at wider positions, an image is smaller.
    assert sizes[0] > 1.2 * sizes[1]


# ---- where pixels of views come from

PATTERN = 3


def located(views: ImageViews, n: int, seed: int = 0) -> tuple[Any, Any, Image, Image]:
    """Of views of an image with four channels: the points (n, height, width, 2) that they are sampled at,
    as (y, x) in pixels, which of them are well inside, all channels, and the image.

    The first two channels are coordinates, which interpolation reproduces; the third is 1 inside.
    """
    height, width, _ = views.shape
    y, x = np.mgrid[:height, :width].astype(np.float32)
    image = np.stack([y, x, np.ones_like(y), image_of((height, width))], 2)
    found = viewed(views, image, n, seed)
    return found[..., :2], found[..., 2] > 1 - 1e-5, found, image


RANGES: list[dict[str, Any]] = [
    {"shift": 1.7},
    {"rotation": 30},
    {"scale": 0.3},
    {"elastic": 0.8},
    {"shift": 1.3, "rotation": 20, "scale": 0.15, "elastic": 0.5, "flip": True},
]


@pytest.mark.parametrize("ranges", RANGES)
@pytest.mark.parametrize("shape", [(8, 13), (13, 8)])
def test_pixels_are_interpolated_where_they_come_from(shape: tuple[int, int], ranges: dict[str, Any]) -> None:
    points, inside, found, image = located(ImageViews((*shape, 4), **{**NONE, **ranges}), 3)
    assert inside.mean() > 0.3
    for i, y, x in np.argwhere(inside)[::7]:
        expected = interpolated(image, *map(float, points[i, y, x]))[PATTERN]
        assert float(found[i, y, x, PATTERN]) == pytest.approx(expected, abs=1e-3)


def affine(points: Any, inside: Any) -> tuple[Any, Any]:
    """M (2, 2) and t (2,) of points = M p + t, p a pixel from the middle of the image, also the points."""
    height, width = inside.shape
    middle = np.array([(height - 1) / 2, (width - 1) / 2])
    p = np.argwhere(inside) - middle
    known = np.column_stack([p, np.ones(len(p))])
    solved, *_ = np.linalg.lstsq(known, points[inside] - middle, rcond=None)
    assert abs(known @ solved + middle - points[inside]).max() < 1e-3
    return solved[:2].T, solved[2]


def affines(ranges: dict[str, Any], n: int, shape: tuple[int, int] = (8, 13)) -> tuple[Any, Any]:
    """M (n, 2, 2) and t (n, 2) of n views, (y, x) of both."""
    points, inside, _, _ = located(ImageViews((*shape, 4), **{**NONE, **ranges}), n)
    found = [affine(p, i) for p, i in zip(points, inside, strict=True)]
    return np.array([M for M, _ in found]), np.array([t for _, t in found])


@pytest.mark.parametrize("shape", [(8, 13), (13, 8)])
def test_each_range_changes_what_it_says(shape: tuple[int, int]) -> None:
    """Shifts keep M; rotations are rotations, in pixels, also of rectangles; scaling is along the sides."""
    M, t = affines({"shift": 2}, 30, shape)
    np.testing.assert_allclose(M, np.broadcast_to(np.eye(2), M.shape), atol=1e-3)
    assert abs(t).max() < 2 + 1e-3
    assert abs(t[:, 0] - t[:, 1]).max() > 0.5
    M, t = affines({"rotation": 25}, 30, shape)
    np.testing.assert_allclose(M @ M.transpose(0, 2, 1), np.broadcast_to(np.eye(2), M.shape), atol=2e-3)
    angles = np.degrees(np.arctan2(M[:, 0, 1], M[:, 0, 0]))
    assert abs(angles).max() < 25 + 0.1
    assert angles.min() < -5 < 5 < angles.max()
    np.testing.assert_allclose(t, 0, atol=2e-3)
    M, t = affines({"scale": 0.2}, 30, shape)
    np.testing.assert_allclose(M[:, [0, 1], [1, 0]], 0, atol=1e-3)
    assert abs(M[:, [0, 1], [0, 1]] - 1).max() < 2 * 0.2 + 1e-3
    assert abs(M[:, 0, 0] - M[:, 1, 1]).max() > 0.02
    np.testing.assert_allclose(t, 0, atol=2e-3)


def test_a_rotation_in_relative_units_would_be_found_out() -> None:
    """The twin: the same angle in units of half sides is no rotation of a rectangle in pixels."""
    halves = np.array([4, 6.5])
    angle = np.radians(20)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    M = turn * halves[:, None] / halves
    assert abs(M @ M.T - np.eye(2)).max() > 0.1


def allowed(scale: float) -> bool:
    try:
        ImageViews(SHAPES[0], scale=scale)
    except ValueError:
        return False
    return True


def test_no_scale_mirrors_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes stay positive at the smaller end of every range that is allowed."""
    always(0.0, monkeypatch)
    scales = [scale for scale in (0.12, 0.4, 0.6, 0.8, 0.95) if allowed(scale)]
    assert len(scales) >= 2
    for scale in scales:
        M, _ = affines({"scale": scale}, 1)
        assert M[0, 0, 0] > 0, scale
        assert M[0, 1, 1] > 0, scale


# ---- laws of the random changes

N = 1_000


def uniform_departs(values: Any, largest: float) -> bool:
    """Whether values depart from the uniform law on [−largest, largest], in mean or mean square."""
    x = torch.from_numpy(np.asarray(values, dtype=np.float64))
    mean, square = torch.zeros(x.shape[1:]).double(), torch.full(x.shape[1:], largest**2 / 3).double()
    rate = FAILURE_RATE / 2
    return means_depart(x, mean, variance=square, failure_rate=rate) or means_depart(
        x**2,
        square,
        variance=torch.full(x.shape[1:], largest**4 * (1 / 5 - 1 / 9)).double(),
        failure_rate=rate,
    )


def shifts() -> Any:
    return affines({"shift": 1.5}, N, (8, 9))[1]


def angles() -> Any:
    M, _ = affines({"rotation": 20}, N, (8, 9))
    return np.degrees(np.arctan2(M[:, 0, 1], M[:, 0, 0]))[:, None]


@pytest.mark.parametrize(("draw", "largest"), [(shifts, 1.5), (angles, 20)])
def test_shifts_and_angles_are_uniform(draw: Any, largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not uniform_departs(draw(), largest)
    rand = torch.rand
    # The twin: more often at one end.
    monkeypatch.setattr(torch, "rand", lambda *size, **options: rand(*size, **options).square())
    assert uniform_departs(draw(), largest)


def test_half_of_the_images_are_mirrored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left to right and not upside down; the twin mirrors a quarter."""
    image = image_of((8, 9))

    def mirrored() -> Tensor:
        found = viewed(ImageViews((8, 9), **NONE, flip=True), image, N)
        same, other = (abs(found - one).max((1, 2)) < 1e-4 for one in (image, image[:, ::-1]))
        assert (same ^ other).all()
        return torch.from_numpy(other).double()

    half, variance = torch.tensor(0.5).double(), torch.tensor(0.25).double()
    assert not means_depart(mirrored(), half, variance=variance)
    rand = torch.rand
    monkeypatch.setattr(torch, "rand", lambda *size, **options: rand(*size, **options).sqrt())
    assert means_depart(mirrored(), half, variance=variance)


def displacements(n: int) -> tuple[Any, Any]:
    """Of elastic deformations of a rectangle: (n, 8, 13, 2) in pixels, and which are well inside."""
    points, inside, _, _ = located(ImageViews((8, 13, 4), **{**NONE, "elastic": 0.3}), n)
    return points - np.moveaxis(np.mgrid[:8, :13], 0, -1), inside


def test_elastic_displacements_are_alike_in_both_directions() -> None:
    """In pixels, whatever the sides: mean 0, and equal mean squares; the twin has them relative to sides."""
    moved, inside = displacements(N)
    # Next to the middle of the image, and inside in all views.
    assert inside[:, 4, 6].all()
    at = torch.from_numpy(moved[:, 4, 6].astype(np.float64))
    zero = torch.zeros(2).double()
    assert not means_depart(at, zero, failure_rate=FAILURE_RATE / 2)
    squares = at[:, 0] ** 2 - at[:, 1] ** 2
    assert not means_depart(squares, zero[0], failure_rate=FAILURE_RATE / 2)
    assert means_depart(at[:, 0] ** 2 - (at[:, 1] * 13 / 8) ** 2, zero[0], failure_rate=FAILURE_RATE / 2)


def test_elastic_displacements_are_smooth() -> None:
    """Neighboring pixels move nearly alike, distant ones do not."""
    moved, inside = displacements(50)
    inside = inside.all(0)
    rows, columns = np.nonzero(inside[:, :-1] & inside[:, 1:])
    steps = moved[:, rows, columns + 1] - moved[:, rows, columns]
    typical = moved[:, rows, columns].std()
    assert 0.05 < typical < 0.6
    assert steps.std() < typical


# ---- channels, rows, seeds


def test_channels_are_kept_apart() -> None:
    """Each is moved as the image of it alone is, by the same random numbers."""
    image = image_of((8, 10, 3))
    image[..., 1] = 0
    color = viewed(ImageViews((8, 10, 3)), image, 4)
    assert (color[..., 1] == 0).all()
    for channel in (0, 2):
        gray = viewed(ImageViews((8, 10)), image[..., channel], 4)
        np.testing.assert_allclose(color[..., channel], gray, atol=1e-5)


def test_every_row_has_a_view_of_its_own() -> None:
    found = viewed(ImageViews((8, 8)), image_of((8, 8)), 6)
    assert len(np.unique(found.reshape(6, -1), axis=0)) == 6


def test_views_leave_the_rows_as_they_are() -> None:
    rows = torch.rand(4, 64, generator=seeded())
    before = rows.clone()
    ImageViews((8, 8))(rows, generator=seeded())
    assert torch.equal(rows, before)


def test_same_seed_same_views_other_seed_other_views() -> None:
    views, image = ImageViews((8, 8), flip=True), image_of((8, 8))
    state = torch.get_rng_state()
    np.testing.assert_array_equal(viewed(views, image, 4), viewed(views, image, 4))
    assert (viewed(views, image, 4) != viewed(views, image, 4, seed=1)).any()
    # The user's own generator is left alone.
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_keep_their_precision(dtype: torch.dtype, default: torch.dtype) -> None:
    """Whatever torch's default is."""
    torch.set_default_dtype(default)
    rows = torch.rand(2, 64, generator=seeded(), dtype=dtype)
    assert ImageViews((8, 8))(rows, generator=seeded()).dtype == dtype


def test_views_are_copied_and_shown() -> None:
    """As scikit-learn's clone does."""
    views = ImageViews((8, 10), shift=1, flip=True)
    image = image_of((8, 10))
    np.testing.assert_array_equal(viewed(copy.deepcopy(views), image, 2), viewed(views, image, 2))
    assert "shift=1" in repr(views)
    assert "flip=True" in repr(views)


# ---- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": -1}, "shift must be a number from 0 on, got -1; pass 0 for none"),
        ({"rotation": math.nan}, "rotation must be a number from 0 on, got nan"),
        ({"elastic": math.inf}, "elastic must be a number from 0 on, got inf"),
        ({"scale": -0.1}, "scale must be a number from 0 on, got -0.1"),
        ({"scale": 1.0}, "scale must be at most 0.5, got 1.0"),
    ],
)
def test_bad_ranges(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ImageViews((8, 8), **options)


@pytest.mark.parametrize(
    "shape",
    [
        None,
        5,
        64,
        (),
        (8,),
        (8, 8, 1, 1),
        (8, SMALLEST_SIDE - 1),
        (LARGEST_SIDE + 1, 8),
        (8.5, 8),
        ("8", "8"),
        "88",
        (8, 0),
        (8, 8, 0),
        (-8, -8),
        (True, 8),
    ],
)
def test_bad_shapes(shape: Any) -> None:
    with pytest.raises(ValueError, match="shape must be"):
        ImageViews(shape)


@pytest.mark.parametrize("given", [(8, 9), [8, 9], np.array([8, 9]), (8, 9, 1)])
def test_gray_images_have_one_channel(given: Any) -> None:
    assert image_shape(given) == (8, 9, 1)
    assert all(type(n) is int for n in image_shape(given))


@pytest.mark.parametrize("rows", [(2, 63), (64,), (2, 8, 8)])
def test_rows_of_other_images_are_refused(rows: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"rows must have 64 columns for images of shape \(8, 8, 1\), got \("
    ):
        ImageViews((8, 8))(torch.zeros(rows), generator=seeded())
