"""Few labels and many unlabeled rows, and the energy-based stochastic ensembles of the paper."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebse.ensemble import RBSE
    from ebse.labeling import label
    from ebse.semi_supervised import ContrastiveFeatures, FewLabelClassifier, SpreadingClassifier

__version__ = "0.1.0"
__all__ = ["RBSE", "ContrastiveFeatures", "FewLabelClassifier", "SpreadingClassifier", "__version__", "label"]

_PACKAGES = {
    "RBSE": "ebse.ensemble",
    "label": "ebse.labeling",
    "ContrastiveFeatures": "ebse.semi_supervised",
    "FewLabelClassifier": "ebse.semi_supervised",
    "SpreadingClassifier": "ebse.semi_supervised",
}


def __getattr__(name: str) -> Any:
    # PyTorch and scikit-learn take seconds to import: they are imported on first use.
    if name in _PACKAGES:
        return getattr(import_module(_PACKAGES[name]), name)
    raise AttributeError(f"module 'ebse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
