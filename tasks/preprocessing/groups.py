"""Group memberships by protected attribute, as arrays in the order of the rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.spec import Protected
from schemas.errors import TooFewError


@dataclass(frozen=True)
class Grouped:
    """The groups of one protected attribute."""

    group: NDArray[np.int32]
    """``(n,)`` number of each row's group."""
    groups: tuple[str, ...]
    """Their names."""
    reference: int
    """Number of the reference group."""


def groups_of(
    memberships: pa.Table, ids: "np.ndarray[Any, Any]", protected: Iterable[Protected]
) -> Mapping[str, Grouped]:
    """The groups of the rows ``ids``, by name of the protected attribute.

    Raises:
        TooFewError: None of the rows belongs to a reference group.
    """
    wide = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group").loc[ids]
    out = {}
    for p in protected:
        names, codes = np.unique(wide[p.name].to_numpy(dtype=str), return_inverse=True)
        if p.reference not in names:
            message = f"no complete application belongs to {p.reference!r}, the reference group of {p.name}"
            raise TooFewError(f"{message}: exclude a column that its members lack, or choose another reference")
        out[p.name] = Grouped(codes.astype(np.int32), tuple(names.tolist()), int(np.searchsorted(names, p.reference)))
    return out
