"""The people of the RAGUEL paper's files, read by the stages of an audit, and what of theirs may change.

Here belongs what is known of them before any classifier is fitted. Lists are made of them in ``lists``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from flows.bench import call_plainly
from flows.plan import plan
from flows.reproducing.raguel.hardness import Hardness
from schemas.settings import AuditSpec
from schemas.terms import Constraint
from tasks._columns import columns_of
from tasks._given import Given
from tasks._groups import groups_of
from tasks.algorithms.detector import Bools, Floats, Ints

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


def read(spec: AuditSpec, hardness: Mapping[str, Hardness]) -> People:
    """The people of an audit spec with a single protected attribute."""
    steps = [step for step in plan(spec).steps if step.stage.name in ("ingest", "preprocess")]
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(steps).items()}
    given = Given.of(tables)
    columns = columns_of(given.applicants, given.encodings)
    grouped = groups_of(given.memberships, given.ids, spec.protected)[spec.protected[0].name]
    labels = tables["applications"].select(["row_id", "favourable"]).to_pandas().set_index("row_id")["favourable"]
    constraints = [spec.columns[name].constraint for name in columns.names]
    hard = [hardness.get(name, Hardness(1.0, 0.0)) for name in columns.names]
    return People(
        columns.names,
        columns.values,
        grouped.group,
        grouped.groups,
        grouped.reference,
        labels.loc[given.ids].to_numpy(bool),
        np.array([constraint is not Constraint.IMMUTABLE for constraint in constraints]),
        np.array([each.weight for each in hard]),
        np.array([each.step for each in hard]),
        np.array([_WAYS[constraint] for constraint in constraints]),
    )
