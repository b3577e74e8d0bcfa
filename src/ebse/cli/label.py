"""``ebse label``: the labeling page in a browser of this machine."""

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ebse.cli._command import Array, Delimiter, Sheet, command, require_existing
from ebse.cli._show import say
from ebse.workflow.fit_config import FitConfig

app = command(
    "label",
    "label photos/",
    "label reviews.csv --classes positive,negative",
    "label visits.csv --label outcome --id patient --target 0.9",
    "label digits.npy --shape 28x28",
    about="""Opens a page in the browser. Each label that you give there, by one key, is on the disk at once,
and the predictions for all rows follow. An audit of random rows estimates how accurate they are. Export
writes the model, predictions and labels. The same command again continues. The server can be reached from
this machine alone; from another machine use ssh -L. Needs: pip install 'ebse[label]'.""",
)


@app.default
def label(
    data: Annotated[
        Path,
        Parameter(
            help="A table, a folder of images, a NumPy file (.npy, .npz) or an idx file, as for `ebse fit`."
        ),
    ],
    *,
    label: Annotated[
        str | None,
        Parameter(help='Column of labels that exist already. For a folder of images: "folder".'),
    ] = None,
    classes: Annotated[
        str | None, Parameter(help="Classes that are known already, such as cat,dog. Others can be added.")
    ] = None,
    target: Annotated[
        float,
        Parameter(
            help="Target accuracy, from 0.5 to below 1, for the lower end of the audit's 95 % interval."
        ),
    ] = 0.95,
    port: Annotated[int, Parameter(help="Port on this machine. Default: a free one.")] = 0,
    browser: Annotated[
        bool, Parameter(help="Whether to open the browser. With --no-browser the address is printed.")
    ] = True,
    shape: Annotated[
        str | None,
        Parameter(
            help="Height and width of the images that are the rows of an array, such as 28x28, and channels "
            "if there are several, such as 32x32x3."
        ),
    ] = None,
    id: Annotated[  # noqa: A002
        str | None, Parameter(help="Column that identifies each row, such as a number or a file name.")
    ] = None,
    drop: Annotated[tuple[str, ...], Parameter(help="Columns to leave out.")] = (),
    column: Annotated[
        tuple[str, ...], Parameter(help="Kinds of columns, such as zip=category, as for `ebse fit`.")
    ] = (),
    unlabeled_label: Annotated[
        str | None, Parameter(help="Label that marks rows without one, such as -1.")
    ] = None,
    delimiter: Delimiter = None,
    array: Array = None,
    sheet: Sheet = None,
    header: Annotated[
        bool, Parameter(help="Whether the first line of a table holds the column names.")
    ] = True,
    out: Annotated[
        Path | None,
        Parameter(help="Folder of the session. Default: runs/ and the name of DATA with -labels."),
    ] = None,
    random_state: Annotated[int, Parameter(help="Seed of the audit and of the model.")] = 0,
) -> None:
    """Label rows in the browser while predictions for all rows follow."""
    require_existing(data)
    from ebse.labeling import label as _needs_the_extra  # noqa: F401
    from ebse.labeling.handle import default_folder, opened
    from ebse.labeling.opening import session_on_file, shape_from

    config = FitConfig(
        data=str(data.resolve()),
        label=label,
        id=id,
        drop=drop,
        column=column,
        unlabeled_label=unlabeled_label,
        delimiter=delimiter,
        array=array,
        sheet=sheet,
        header=header,
        random_state=random_state,
    )
    folder = out or default_folder(data)
    session = session_on_file(
        config,
        folder=folder,
        shape=None if shape is None else shape_from(shape),
        classes=[] if classes is None else [name.strip() for name in classes.split(",") if name.strip()],
        target=target,
    )
    say(f"{session.name}: {len(session.items)} rows, {len(session.answers.labels)} labels. Folder: {folder}")
    page = opened(session, port=port, browser=browser)
    entered = "Enter: a new link. " if sys.stdin and sys.stdin.isatty() else ""
    say(f"{entered}Control-C: stop; the same command continues.")
    session.listen(_once_failed(session))
    stopped = threading.Event()
    _stop_on_signals(stopped)
    _new_links(page)
    stopped.wait()
    page.close()
    say(f"Stopped. {len(session.answers.labels)} labels are in {folder}; the same command continues.")


def _once_failed(session: Any) -> Callable[[], None]:
    """A listener that prints the error of a session once."""
    said: list[str] = []

    def listen() -> None:
        if session.phase == "failed" and not said:
            said.append(session.error)
            say(f"Error: {session.error}")

    return listen


def _stop_on_signals(stopped: threading.Event) -> None:
    def stop(*of: Any) -> None:
        stopped.set()

    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, stop)


def _new_links(page: Any) -> None:
    """Print a new link for each line of the terminal."""
    if not sys.stdin or not sys.stdin.isatty():
        return

    def read() -> None:
        for _ in sys.stdin:
            say(f"Open within a minute: {page.url}")

    threading.Thread(target=read, daemon=True).start()
