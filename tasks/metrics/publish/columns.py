"""The ends of encoded columns as they are published: none that is the value of fewer people than may be told of."""

import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.applications import ENCODINGS
from tasks.metrics.publish.algorithm.profiles import Policy


def encodings(made: pa.Table, applications: pa.Table, policy: Policy) -> pa.Table:
    """The table with each end withheld that fewer than ``smallest`` applicants reach.

    Columns are cut off at quantiles; in a small table, or where that is turned off, an end is one person's value.
    """
    rows = made.to_pylist()
    for row in rows if policy.protects else ():
        if row["low"] is None or row["feature"] not in applications.column_names:
            continue
        values = applications[row["feature"]]
        reached = {"low": pc.less_equal(values, row["low"]), "high": pc.greater_equal(values, row["high"])}
        row |= {end: None for end, there in reached.items() if (pc.sum(there).as_py() or 0) < policy.smallest}
    return ENCODINGS.build(**{column.name: [row[column.name] for row in rows] for column in ENCODINGS.columns})
