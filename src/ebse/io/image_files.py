"""Images: a folder of image files, with one subfolder per class, and idx files."""

import gzip
import math
import struct
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ebse._stages import stage
from ebse.io.arrays import DENSEST, LOOSE
from ebse.io.rows import Rows, Wanted, bad, numbered

Gray = np.ndarray[tuple[int, int], np.dtype[np.uint8]]
Images = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "PPM", "TIFF", "WEBP")
"""Formats that are opened; Pillow knows more, and each one is more code that reads untrusted files."""
SEVERAL = ("TIFF", "WEBP")
"""Formats whose files may hold several images; of the others Pillow reports previews as images, too."""
LARGEST, MOST = 2**22, 2**26
"""Most pixels of images that are read as they are, far more than a model can be trained on; and of others."""
SIDE = 32
"""Height and width to which images of different sizes are scaled, and images of more than LARGEST pixels."""
FOLDER, LABELS = "folder", "labels"
"""Values of --label: the subfolder of an image, and the idx file of labels beside that of the images."""


def read_folder(path: Path, wanted: Wanted) -> Rows:
    """Gray images of a folder and its subfolders; with the label "folder" the subfolder is the class."""
    # ebse.datasets imports torch, which the other readers do without.
    from ebse.datasets._download import found_in
    from ebse.datasets.images import load_images

    held = found_in(path) or []
    idx = bool(held)
    label = wanted.label
    if wanted.is_new and label != (LABELS if idx else FOLDER):
        label = None
    if idx:
        for file in held:
            _require_credible(file)
        # An absolute path, because "mnist" alone is the name of a data set.
        images = load_images(path.resolve())
        if label not in (None, LABELS):
            raise bad(path, "be read with --label labels", f"--label {label!r}", "pass --label labels")
        y = None if label is None else np.array([str(value) for value in images.y], dtype=object)
        wanted.require_size(path, *images.X.shape)
        wanted.require_count(path, images.X.shape[1])
        return Rows(path, images.X, numbered(images.X.shape[1]), y, images.shape)
    if label not in (None, FOLDER):
        raise bad(
            path,
            "be read with --label folder",
            f"--label {label!r}",
            "pass --label folder: subfolders are classes",
        )
    inside = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    files = [p for p in inside if p.suffix.lower() in SUFFIXES]
    if not files:
        raise bad(
            path, f"hold images ({', '.join(SUFFIXES)}) or MNIST's idx files", "none", "check the folder"
        )
    _warn_of_others(path, [p for p in inside if p.suffix.lower() not in SUFFIXES])
    grays = _of_one_size(files)
    scaled = grays is None or _was_scaled(grays, wanted)
    if scaled:
        grays = _scaled(files)
    assert grays is not None
    X, shape = grays.reshape(len(grays), -1), (grays.shape[1], grays.shape[2])
    wanted.require_count(path, X.shape[1])
    wanted.require_size(path, *X.shape)
    y = None
    if label is not None:
        parts = [file.relative_to(path).parts for file in files]
        y = np.array([each[0] if len(each) > 1 else None for each in parts], dtype=object)
    how = "scaled to" if scaled else "of"
    notes = (f"{len(files)} images {how} {shape[1]} × {shape[0]} pixels, read as gray values",)
    places = tuple(file.relative_to(path).as_posix() for file in files)
    return Rows(path, X, numbered(X.shape[1]), y, shape, places, notes)


def read_idx_file(path: Path, wanted: Wanted) -> Rows:
    """Images, or rows of bytes, of one idx file."""
    if wanted.label is not None and not wanted.is_new:
        raise bad(
            path,
            "be in a folder with its labels",
            f"--label {wanted.label!r}",
            "give the folder, and --label labels",
        )
    from ebse.datasets.idx import read_idx

    _require_credible(path)
    array = read_idx(path)
    if array.ndim not in (2, 3):
        raise bad(
            path, "hold images or rows", f"shape {array.shape}, as labels have", "give the file of images"
        )
    shape = None if array.ndim == 2 else (array.shape[1], array.shape[2])
    X = array.reshape(len(array), -1) if array.size else array.reshape(len(array), 0)
    wanted.require_size(path, *X.shape)
    wanted.require_count(path, X.shape[1])
    return Rows(path, X, numbered(X.shape[1]), None, shape)


def _require_credible(path: Path) -> None:
    """Refuse a compressed idx file that claims far more than it can hold."""
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            return
    try:
        with gzip.open(path) as content:
            begin = content.read(4)
            claimed = math.prod(int(n) for n in np.frombuffer(content.read(4 * begin[3]), ">u4"))
    except (OSError, EOFError, zlib.error, IndexError, ValueError):
        # Not idx: the idx reader says so.
        return
    size = path.stat().st_size
    if claimed > LOOSE and claimed > DENSEST * size:
        raise bad(
            path,
            f"hold an array that is compressed {DENSEST} times at most",
            f"one of {claimed} bytes made of {size}",
            "decompress it first",
        )


def _warn_of_others(path: Path, others: list[Path]) -> None:
    """Say which files of a folder are no images that can be read."""
    if others:
        counts = Counter(other.suffix.lower() or "no suffix" for other in others)
        listed = ", ".join(f"{n} {suffix}" for suffix, n in counts.most_common())
        warnings.warn(
            f"{path} holds files that are not read as images: {listed}; convert them to PNG if they are "
            "images",
            stacklevel=4,
        )


def _of_one_size(files: list[Path]) -> Images | None:
    """Gray values of image files (N, height, width); None where their sizes differ, or are too large."""
    first = _gray(files[0])
    if first.size > LARGEST:
        return None
    images = np.empty((len(files), *first.shape), dtype=np.uint8)
    with stage("reading", total=len(files), unit="images") as done:
        for at, file in enumerate(files):
            image = _gray(file)
            if image.shape != first.shape:
                return None
            images[at] = image
            done(1)
    return images


def _was_scaled(images: Images, wanted: Wanted) -> bool:
    """Whether the images of a run were scaled, and these new ones must be."""
    return wanted.only is not None and len(wanted.only) == SIDE**2 != images[0].size


def _scaled(files: list[Path]) -> Images:
    """Gray values of image files (N, SIDE, SIDE), each stretched to this size."""
    images = np.empty((len(files), SIDE, SIDE), dtype=np.uint8)
    with stage("reading", total=len(files), unit="images") as done:
        for at, file in enumerate(files):
            whole = Image.fromarray(_gray(file))
            images[at] = np.asarray(whole.resize((SIDE, SIDE), Image.Resampling.BOX))
            done(1)
    return images


def _gray(path: Path) -> Gray:
    """Gray values of an image file (height, width), upright, with transparent parts on white."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            # Of damaged EXIF data, which are then ignored.
            warnings.filterwarnings("ignore", category=UserWarning, module="PIL")
            with Image.open(path, formats=FORMATS) as image:
                size = f"{image.width} × {image.height}"
                if image.width * image.height > MOST:
                    refused = bad(path, f"have at most {MOST} pixels", size, "scale it down")
                elif image.mode[0] in "IF":
                    # Pillow would clip them to 255.
                    refused = bad(path, "have 8 bits a pixel", f"mode {image.mode}", "convert it to 8 bits")
                elif image.format in SEVERAL and getattr(image, "n_frames", 1) > 1:
                    refused = bad(path, "hold one image", "several", "save each in a file of its own")
                else:
                    return _on_white(ImageOps.exif_transpose(image))
    except (
        UnidentifiedImageError,
        ValueError,
        SyntaxError,
        EOFError,
        struct.error,
        IndexError,
        KeyError,
        TypeError,
        ZeroDivisionError,
        OverflowError,
        Image.DecompressionBombWarning,
        Image.DecompressionBombError,
    ) as error:
        raise bad(
            path, f"be an image ({', '.join(FORMATS)})", f"something else ({error})", "remove or repair it"
        ) from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise bad(path, "be a complete image", f"a damaged one ({error})", "remove or repair it") from None
    raise refused


def _on_white(image: Image.Image) -> Gray:
    """Gray values of an image whose transparent parts show a white background."""
    if image.has_transparency_data:
        colors = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", colors.size, "white"), colors)
    gray: Gray = np.asarray(image.convert("L"))
    return gray
