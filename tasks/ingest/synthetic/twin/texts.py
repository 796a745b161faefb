"""Arrays as columns of text, the form of an HMDA file."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def words(places: "np.ndarray[Any, Any]", known: Sequence[str]) -> pa.Array:
    """The words at some places ``(n,)`` of a list."""
    return pa.array(known, pa.string()).take(pa.array(places))


def numbers(values: "np.ndarray[Any, Any]") -> pa.Array:
    """Numbers ``(n,)`` as text that gives back the same numbers."""
    return pc.cast(pa.array(values), pa.string())


def always(text: str, n: int) -> pa.Array:
    """One text in every row."""
    return pa.repeat(pa.scalar(text, pa.string()), n)


def but(column: pa.Array, *exceptions: "tuple[np.ndarray[Any, Any], str]") -> pa.Array:
    """A column with another text where something holds ``(n,)``; a later exception goes over an earlier one."""
    for where, text in exceptions:
        column = pc.if_else(pa.array(where), text, column)
    return column
