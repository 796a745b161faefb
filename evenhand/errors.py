"""Errors of the package: the tree of ``schemas.errors``, and what a program can do wrong with a frame."""

from schemas.errors import (
    DataQualityError,
    EvenhandError,
    InfrastructureError,
    IntegrityError,
    SpecError,
    TooFewError,
)

__all__ = [
    "DataQualityError",
    "EvenhandError",
    "InfrastructureError",
    "InputError",
    "IntegrityError",
    "MissingExtraError",
    "NotComputedError",
    "NotFittedError",
    "SpecError",
    "TooFewError",
]


class InputError(DataQualityError, ValueError):
    """A frame, a column or a parameter is not usable; the message names it."""


class NotComputedError(EvenhandError, LookupError):
    """A result that these settings do not produce."""


class NotFittedError(EvenhandError, ValueError, AttributeError):
    """A result was read before ``fit``."""


class MissingExtraError(InfrastructureError, ImportError):
    """A library is not installed that this part of the package needs; the message has the command."""


EXTRAS = {
    "torch": "torch",
    "safetensors": "torch",
    "prefect": "pipeline",
    "great_expectations": "pipeline",
    "fastapi": "serve",
    "uvicorn": "serve",
    "weasyprint": "pdf",
    "obstore": "lake",
    "cryptography": "lake",
    "dask": "dask",
    "distributed": "dask",
    "xlsxwriter": "pipeline",
}
"""Library -> the extra that installs it."""


def missing_extra(error: ImportError, subject: str) -> MissingExtraError | None:
    """The one sentence for a library of an extra that is not installed; None for any other error of an import.

    Args:
        error: Of the import.
        subject: What needs the library, such as `GCFN`.
    """
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return MissingExtraError(f"{subject} needs {library}: pip install 'evenhand[{EXTRAS[library]}]'")
