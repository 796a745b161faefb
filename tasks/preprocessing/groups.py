"""Group memberships by protected attribute, as arrays in the order of the rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from schemas.audit.spec import Protected


@dataclass(frozen=True)
class Grouped:
    """The groups of one protected attribute."""

    group: NDArray[np.int32]
    """``(n,)`` number of each row's group."""
    groups: tuple[str, ...]
    """Their names."""
    reference: int
    """Number of the reference group; -1 where none of the rows belongs to it."""

    @property
    def compared(self) -> bool:
        """Whether there is somebody to compare the groups with."""
        return self.reference >= 0


def groups_of(
    memberships: pa.Table, ids: "np.ndarray[Any, Any]", protected: Iterable[Protected]
) -> Mapping[str, Grouped]:
    """The groups of the rows ``ids``, by name of the protected attribute."""
    wide = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group").loc[ids]
    out = {}
    for p in protected:
        names, codes = np.unique(wide[p.name].to_numpy(dtype=str), return_inverse=True)
        reference = int(np.searchsorted(names, p.reference)) if p.reference in names else -1
        out[p.name] = Grouped(codes.astype(np.int32), tuple(names.tolist()), reference)
    return out
