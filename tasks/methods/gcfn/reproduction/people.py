"""The people of the GCFN paper's files, read by the stages of an audit: law students and defendants."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.ingest.synthetic.algorithm.mediated_lending import People
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.mediation import Mediation
from tasks.pipeline.given import ProblemTables
from tasks.plan import plan
from tasks.preprocessing.columns import columns_of
from tasks.preprocessing.groups import groups_of
from tasks.proof.plain import call_plainly


@dataclass(frozen=True)
class Defendants:
    """Defendants of COMPAS by race; all arrays ``(n,)``."""

    mediation: Mediation
    offended: Bools
    """Whether they were charged anew."""
    score: Floats
    """COMPAS score, 1 to 10."""
    priors: Floats
    black: Bools


def defendants(spec: AuditSpec) -> Defendants:
    """The defendants of an audit spec of COMPAS by race."""
    columns, category, categories, favourable = _read(spec)
    covariates, mediators = (_with_role(columns, spec, role) for role in (Role.COVARIATE, Role.MEDIATOR))
    return Defendants(
        Mediation(covariates, category, categories, mediators),
        ~favourable,
        columns.values[:, columns.names.index("decile_score")],
        columns.values[:, columns.names.index("priors_count")],
        category == categories.index("Black"),
    )


def students(spec: AuditSpec) -> People:
    """The law students of an audit spec. Category 1 of the equations is men."""
    columns, category, categories, _ = _read(spec)
    resident, white = columns.values[:, [columns.names.index(name) for name in ("resident", "white")]].T
    return People(resident, white, (category == categories.index("male")).astype(np.int64))


def _read(spec: AuditSpec) -> tuple[Columns, Longs, tuple[str, ...], Bools]:
    """Features, the number and the names of the groups, and the label of every row that is complete."""
    steps = [step for step in plan(spec).steps if step.stage.name in ("ingest", "preprocess")]
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(steps).items()}
    given = ProblemTables.of(tables)
    grouped = groups_of(given.memberships, given.ids, spec.protected)[spec.protected[0].name]
    labels = tables["applications"].select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    columns = columns_of(given.applicants, given.encodings)
    return columns, grouped.group.astype(np.int64), grouped.groups, labels.loc[given.ids].to_numpy(bool)


def _with_role(columns: Columns, spec: AuditSpec, role: Role) -> Columns:
    at = [place for place, name in enumerate(columns.names) if role in spec.columns[name].role]
    return Columns(
        tuple(columns.names[place] for place in at),
        tuple(columns.kinds[place] for place in at),
        tuple(columns.categories[place] for place in at),
        columns.values[:, at],
    )
