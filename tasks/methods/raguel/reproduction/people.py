"""The people of the RAGUEL paper's files, read by the stages of an audit, and what of theirs may change.

Here belongs what is known of them before any classifier is fitted. Lists are made of them in ``lists``.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import AuditSpec
from schemas.terms import Constraint, Kind
from tasks.numerics.arrays import Bools, Floats, Ints
from tasks.pipeline.given import ProblemTables
from tasks.plan import plan
from tasks.preprocessing.columns import columns_of
from tasks.preprocessing.groups import groups_of
from tasks.proof.plain import call_plainly

_WAYS = {Constraint.UP: 1.0, Constraint.DOWN: -1.0, Constraint.FREE: 0.0, Constraint.IMMUTABLE: 0.0}


@dataclass(frozen=True)
class People:
    """``n`` people with ``d`` attributes; of a category, its place in the order is the attribute."""

    names: tuple[str, ...]
    values: Floats
    """``(n, d)`` in the units of the file."""
    group: Ints
    """``(n,)``."""
    groups: tuple[str, ...]
    reference: int
    favourable: Bools
    """``(n,)`` the label."""
    changeable: Bools
    """``(d,)``."""
    weight: Floats
    """``(d,)`` recourse weights; not read where an attribute cannot be changed."""
    step: Floats
    """``(d,)`` in the units of the file."""
    direction: Floats
    """``(d,)`` 1 only up, -1 only down, 0 either way."""
    lower: Floats
    """``(d,)`` what nothing may be moved below: a bound of the spec, or the least value that anybody has."""
    upper: Floats
    """``(d,)`` likewise, above."""


def read(spec: AuditSpec) -> People:
    """The people of an audit spec with a single protected attribute."""
    steps = [step for step in plan(spec).steps if step.stage.name in ("ingest", "preprocess")]
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(steps).items()}
    given = ProblemTables.of(tables)
    columns = columns_of(given.applicants, given.encodings)
    grouped = groups_of(given.memberships, given.ids, spec.protected)[spec.protected[0].name]
    labels = tables["applications"].select(["row_id", "favourable"]).to_pandas().set_index("row_id")["favourable"]
    specs = [spec.columns[name] for name in columns.names]
    low, high = np.array([each.recourse.limits for each in specs]).T
    return People(
        columns.names,
        columns.values,
        grouped.group,
        grouped.groups,
        grouped.reference,
        labels.loc[given.ids].to_numpy(bool),
        np.array([each.constraint is not Constraint.IMMUTABLE for each in specs]),
        np.array([each.recourse.weight for each in specs]),
        np.array([_step(each) for each in specs]),
        np.array([_WAYS[each.constraint] for each in specs]),
        np.maximum(low, columns.values.min(axis=0)),
        np.minimum(high, columns.values.max(axis=0)),
    )


def _step(column: ColumnSpec) -> float:
    """Of categories one of them, where the spec says nothing; of numbers any amount."""
    return column.recourse.step or (0.0 if column.type is Kind.CONTINUOUS else 1.0)
