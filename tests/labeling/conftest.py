"""Labeling pages that are closed after each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ebse
from ebse.labeling import Labeling
from labeling.pages import Page, digits

Opened = Callable[..., Labeling]
Entered = Callable[[Labeling], Page]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """All members learn soon after a label, not after a second."""
    monkeypatch.setattr("ebse.labeling.model.IDLE", 0.05)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens a labeling page, on 150 digits in the folder ``run`` where nothing else is said."""
    with ExitStack() as stack:

        def open_page(data: Any = None, y: Any = None, **options: Any) -> Labeling:
            if data is None:
                data, _ = digits()
                options = {"shape": (8, 8)} | options
            given: dict[str, Any] = {"folder": tmp_path / "run", "browser": False} | options
            return stack.enter_context(ebse.label(data, y, **given))

        yield open_page


@pytest.fixture
def entered() -> Iterator[Entered]:
    """Opens the link of a page in a browser without a screen."""
    with ExitStack() as stack:

        def enter(made: Labeling) -> Page:
            page = Page(made.url)
            stack.callback(page.client.close)
            return page

        yield enter
