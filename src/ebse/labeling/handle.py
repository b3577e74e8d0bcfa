"""``ebse.label``: the labeling page from Python, for example from a notebook."""

import atexit
import os
import shutil
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import pandas as pd

from ebse._atomic import in_place
from ebse.labeling.opening import session_on_file, session_on_rows
from ebse.labeling.security import LINK_SECONDS
from ebse.labeling.server import Server
from ebse.labeling.session import Session
from ebse.workflow.fit_config import FitConfig


@final
class Labeling:
    """A labeling page that is open.

    Attributes
    ----------
    labels : Series
        The labels so far, by row number; it grows while labels are given.
    model : FewLabelClassifier or None
        Fitted to the given columns with all labels so far; None until two classes have labels. To read it
        refits the model, and waits while features are learned, which can take minutes.
    url : str
        A new address of the page, valid once and for a minute.
    """

    def __init__(self, session: Session, server: Server) -> None:
        self._session, self._server = session, server

    @property
    def labels(self) -> pd.Series:
        """The labels so far: a Series of names by row number."""
        with self._session.lock:
            held = dict(sorted(self._session.answers.labels.items()))
        return pd.Series(held, dtype=object, name="label")

    @property
    def model(self) -> Any:
        """The classifier with all labels so far; None until two classes have labels."""
        session = self._session
        with session.lock:
            task = session._task()
            ready = session.model is not None and len(set(task.labels.values())) > 1
        return session.model.final(task) if ready and session.model is not None else None

    @property
    def url(self) -> str:
        """A new address of the page, valid once and for a minute."""
        return self._server.tokens.link()

    def wait(self, timeout: float | None = None) -> "Labeling":
        """Wait until the page is closed with :meth:`close`, or a time in seconds has passed."""
        self._session.closed.wait(timeout)
        return self

    def close(self) -> None:
        """Stop the server and the model; all labels are on the disk."""
        self._session.close()
        self._server.stop()

    def __enter__(self) -> "Labeling":
        return self

    def __exit__(self, *of: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Labeling({self._session.name!r}, {len(self._session.answers.labels)} labels)"


def label(
    data: Any,
    y: Any = None,
    *,
    folder: str | Path | None = None,
    classes: Sequence[str] = (),
    target: float = 0.95,
    shape: tuple[int, ...] | None = None,
    port: int = 0,
    browser: bool = True,
    random_state: int = 0,
) -> Labeling:
    """Open the labeling page on rows, and return at once.

    Parameters
    ----------
    data : frame, array-like (N, D), (N, height, width) or (N, height, width, channels), str or Path
        Rows, or the name of a file or a folder of images.
    y : array-like (N,), default None
        Labels that are known already; a missing entry is an unlabeled row.
    folder : str or Path, default None
        The run folder with all labels. The same folder and rows continue a session. None:
        ``runs/NAME-labels`` for a file, ``runs/labeling`` for rows in memory; give each data set in memory a
        folder of its own.
    classes : sequence of str, default ()
        Classes that are known already; others can be added on the page.
    target : float, default 0.95
        Target accuracy, from 0.5 to below 1, for the lower end of the audit's 95 % interval.
    shape : tuple of int, default None
        Height and width of images that are rows of an array, and the number of channels if there are several.
    port : int, default 0
        Port on this machine. 0: a free one.
    browser : bool, default True
        Whether to open a browser; False prints the address.
    random_state : int, default 0
        Seed of the audit and of the model.

    Returns
    -------
    Labeling
        With ``labels``, ``model``, ``wait()`` and ``close()``.
    """
    if isinstance(data, (str, Path)):
        path = Path(data)
        if y is not None:
            raise ValueError(
                "y must be left out with a file, got labels; read the file and pass rows, or use the command "
                "`ebse label FILE --label COLUMN`"
            )
        config = FitConfig(data=str(path.resolve()), random_state=random_state)
        place = default_folder(path) if folder is None else Path(folder)
        session = session_on_file(config, folder=place, shape=shape, classes=classes, target=target)
    else:
        place = Path("runs") / "labeling" if folder is None else Path(folder)
        session = session_on_rows(
            *(data, y),
            name=type(data).__name__,
            folder=place,
            shape=shape,
            classes=classes,
            target=target,
            random_state=random_state,
        )
    return opened(session, port=port, browser=browser)


def default_folder(data: Path) -> Path:
    """The run folder of a session on a file."""
    return Path("runs") / f"{data.resolve().name.split('.')[0]}-labels"


def opened(session: Session, *, port: int, browser: bool) -> Labeling:
    """Start server and model, and open the page in a browser or print its address."""
    server = Server(session, port=port)
    session.start()
    server.start()
    made = Labeling(session, server)
    # Also with a browser: that it was started does not say that it shows the page.
    print_address(server)
    if browser and has_browser():
        open_browser(server)
    return made


def has_browser() -> bool:
    """Whether a browser of this machine can show a page to the user."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def print_address(server: Server) -> None:
    """Print an address for the browser, and how to reach it from another machine."""
    lines = [f"Open within a minute: {server.tokens.link()}"]
    if os.environ.get("SSH_CONNECTION") or not has_browser():
        port = server.port
        lines.append(f"From another machine, first: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE")
    print("\n".join(lines), flush=True)  # noqa: T201


def open_browser(server: Server) -> None:
    """Open the page through a file that only this user can read.

    Other users of the machine can read the arguments of a process, and the address has a token.
    """
    folder = Path(tempfile.mkdtemp(prefix="ebse-"))
    page = folder / "open.html"
    link = server.tokens.link()
    with in_place(page) as temporary:
        temporary.chmod(0o600)
        temporary.write_text(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">'
        )

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    server.tokens.when_redeemed = remove
    # If no browser came, the link is not valid any more.
    timer = threading.Timer(LINK_SECONDS, remove)
    timer.daemon = True
    timer.start()
    atexit.register(remove)
    webbrowser.open(page.as_uri())
