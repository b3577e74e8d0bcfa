"""Report pages whose figures are made but not rendered, for tests that are not about their pixels."""

import io
from collections.abc import Callable, Sequence

import pytest
from matplotlib.figure import Figure
from PIL import Image

from ebse.report import page


def skip_rendering(patch: pytest.MonkeyPatch) -> None:
    """Make every figure of a page, so that errors of its data are found, but put a pixel in its place."""
    file = io.BytesIO()
    Image.new("RGBA", (1, 1)).save(file, "PNG")

    def pixels(
        draw: Callable[[], Figure], dpi: int, colors: Sequence[str] = (page.LIGHT, page.DARK), **_: str
    ) -> list[bytes]:
        assert draw().axes
        return [file.getvalue()] * len(colors)

    patch.setattr(page, "_pngs", pixels)
