"""``python -m ebse.labeling.learn_features FOLDER``: the classifier with learned features, for the page.

A process of its own, so that the page answers while it learns. Stages go to standard output, as JSON.
"""

import json
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path

from ebse._atomic import in_place
from ebse._stages import Stage, listening
from ebse.labeling.model import MODEL, ROWS, lower_priority


def main(folder: Path) -> None:
    """Fit to the rows of a session, and write the model beside them."""
    from ebse.semi_supervised import FewLabelClassifier

    lower_priority()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with (folder / ROWS).open("rb") as file:
        X, settings, seed = pickle.load(file)
    with warnings.catch_warnings(), listening(_say):
        warnings.simplefilter("ignore")
        made = FewLabelClassifier(**settings, random_state=seed).fit(X)
    with in_place(folder / MODEL) as temporary, temporary.open("wb") as file:
        pickle.dump(made, file, protocol=5)


def _end_with_parent() -> None:
    """End when standard input does: the server is gone, and nobody wants the model."""
    # Not by sys.stdin: Python aborts at its end where a thread holds the lock of that.
    while os.read(0, 4096):
        pass
    os._exit(1)


def _say(at: Stage) -> None:
    sys.stdout.write(json.dumps(at) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
