"""Which rows the graph of a large audit is of: seeded draws that take the same share of every group and decision.

Whom somebody can come to look like depends on how many candidates there are, so that no sample estimates what all rows
would say. What is measured is therefore said of so many rows, and drawn several times.

Scope: rows of each draw. The graph: ``rows``.
"""

import numpy as np
import pyarrow as pa

from tasks.numerics.arrays import Bools, Ints, Longs
from tasks.numerics.statistics.sampling import hashes, proportionally, thresholds

DRAWS = 5
"""Graphs of a large audit, each of rows of its own draw."""


def draws(ids: list[str], strata: Ints, favourable: Bools, most: int | None, seed: int) -> list[Longs]:
    """The rows of every draw, ascending: one of all rows where they are no more than ``most``.

    Args:
        ids: ``(n,)``.
        strata: ``(n, s)`` groups of every protected attribute.
        favourable: ``(n,)`` the lender's decisions.
        most: Rows of a graph; None: all.
        seed: Of the audit.
    """
    if most is None or len(ids) <= most:
        return [np.arange(len(ids))]
    columns = np.column_stack([strata, favourable])
    _, cell, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
    cell, sizes = cell.ravel(), proportionally(counts.astype(np.int64), most)
    found = []
    for draw in range(DRAWS):
        hashed = hashes(ids, seed, draw + 1)
        # a cell without anybody has the threshold 0, which a hash may be
        wanted = (hashed <= thresholds(hashed, cell, sizes)[cell]) & (sizes[cell] > 0)
        found.append(np.flatnonzero(wanted))
    return found


def decided(ids: list[str], applications: pa.Table) -> Bools:
    """``(n,)`` the lender's decisions on some of the applications."""
    known = dict(zip(applications["row_id"].to_pylist(), applications["favourable"].to_pylist(), strict=True))
    return np.array([bool(known[each]) for each in ids], dtype=bool)
