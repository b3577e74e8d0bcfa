"""Energy-based stochastic ensembles: a learned law over models."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebse.estimators import (
        RBSE,
        ContrastiveFeatures,
        FewShotClassifier,
        Relabelled,
        SlowFeatures,
        SpreadingClassifier,
    )

__version__ = "0.1.0"
__all__ = [
    "RBSE",
    "ContrastiveFeatures",
    "FewShotClassifier",
    "Relabelled",
    "SlowFeatures",
    "SpreadingClassifier",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # Torch and scikit-learn take seconds to import: they are when they are asked for.
    if name in __all__:
        from ebse import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'ebse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
