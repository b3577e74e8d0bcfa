"""The labeling page: label examples in a browser while predictions for all rows follow every label."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ebse.labeling.handle import Labeling, label

__all__ = ["Labeling", "label"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        try:
            from ebse.labeling import handle
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in ("starlette", "uvicorn"):
                raise ModuleNotFoundError(
                    f"the labeling page needs {missing}, which is not installed; "
                    "run: pip install 'ebse[label]'",
                    name=error.name,
                ) from None
            raise
        return getattr(handle, name)
    raise AttributeError(f"module 'ebse.labeling' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
