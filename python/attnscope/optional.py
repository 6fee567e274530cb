"""Packages that are imported for what needs them alone."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingPackage


def require(package: str, what: str, least: int = 0) -> Any:
    """The package, imported. MissingPackage (an ImportError) where it is not installed, or older than version
    `least`; `what` needs it."""
    least_text = f" {least} or newer" if least else ""
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        raise MissingPackage(
            f"{what} needs {package}{least_text}, which is not here ({error}): pip install {package}"
        ) from None
    if least and int(module.__version__.split(".")[0]) < least:
        raise MissingPackage(f"{what} needs {package}{least_text} (got {module.__version__}): pip install -U {package}")
    return module
