"""Semi-supervised and active learning with few labels and many unlabeled rows."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebse.semi_supervised.contrastive import ContrastiveFeatures
    from ebse.semi_supervised.few_label import FewLabelClassifier
    from ebse.semi_supervised.image_views import ImageViews
    from ebse.semi_supervised.slow_features import SlowFeatures
    from ebse.semi_supervised.spreading import SpreadingClassifier

__all__ = ["ContrastiveFeatures", "FewLabelClassifier", "ImageViews", "SlowFeatures", "SpreadingClassifier"]

_MODULES = {
    "ContrastiveFeatures": "contrastive",
    "FewLabelClassifier": "few_label",
    "ImageViews": "image_views",
    "SlowFeatures": "slow_features",
    "SpreadingClassifier": "spreading",
}


def __getattr__(name: str) -> Any:
    # The kinds of columns are found without scikit-learn, which takes a second to import.
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
