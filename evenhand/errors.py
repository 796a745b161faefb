"""Errors of the package: the tree of ``schemas.errors``, and what a program can do wrong with a frame."""

from sklearn import exceptions

from schemas.errors import (
    DataQualityError,
    EvenhandError,
    InfrastructureError,
    IntegrityError,
    MissingExtraError,
    SpecError,
    TooFewError,
)

__all__ = [
    "DataQualityError",
    "EvenhandError",
    "InfrastructureError",
    "InputError",
    "InputTypeError",
    "IntegrityError",
    "MissingExtraError",
    "NotComputedError",
    "NotFittedError",
    "SpecError",
    "TooFewError",
]


class InputError(DataQualityError, ValueError):
    """A frame, a column or a parameter is not usable; the message names it."""


class InputTypeError(InputError, TypeError):
    """A cell of a frame is neither a text nor a number."""


class NotComputedError(EvenhandError, LookupError):
    """A result that these settings do not produce."""


class NotFittedError(EvenhandError, exceptions.NotFittedError):  # type: ignore[misc]  # scikit-learn has no types
    """A result was read before ``fit``."""
