"""Reads the law students, defendants and earners of the GCFN paper by the stages of an audit."""

from dataclasses import dataclass

import numpy as np

from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.ingest.synthetic.algorithm.mediated_lending import People
from tasks.numerics.arrays import Bools, Floats
from tasks.numerics.columns import Columns
from tasks.numerics.mediation import Mediation
from tasks.proof.plain import labelled


@dataclass(frozen=True)
class Earners:
    """People of Adult by sex; all arrays ``(n,)``."""

    mediation: Mediation
    rich: Bools
    """Whether the income is above 50,000 dollars."""
    women: Bools


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
    """Reads the defendants of an audit spec of COMPAS by race."""
    read = labelled(spec)
    columns, category, categories = read.columns, read.grouped.group.astype(np.int64), read.grouped.groups
    covariates, mediators = (_with_role(columns, spec, role) for role in (Role.COVARIATE, Role.MEDIATOR))
    return Defendants(
        Mediation(covariates, category, categories, mediators),
        ~read.label,
        columns.values[:, columns.names.index("decile_score")],
        columns.values[:, columns.names.index("priors_count")],
        category == categories.index("Black"),
    )


def earners(spec: AuditSpec) -> Earners:
    """Reads the people of an audit spec of Adult by sex."""
    read = labelled(spec)
    category, categories = read.grouped.group.astype(np.int64), read.grouped.groups
    covariates, mediators = (_with_role(read.columns, spec, role) for role in (Role.COVARIATE, Role.MEDIATOR))
    mediation = Mediation(covariates, category, categories, mediators)
    return Earners(mediation, read.label, category == categories.index("women"))


def students(spec: AuditSpec) -> People:
    """Reads the law students of an audit spec. Category 1 of the equations is men."""
    read = labelled(spec)
    columns, male = read.columns, read.grouped.groups.index("male")
    resident, white = columns.values[:, [columns.names.index(name) for name in ("resident", "white")]].T
    return People(resident, white, (read.grouped.group == male).astype(np.int64))


def _with_role(columns: Columns, spec: AuditSpec, role: Role) -> Columns:
    at = [place for place, name in enumerate(columns.names) if role in spec.columns[name].role]
    return Columns(
        tuple(columns.names[place] for place in at),
        tuple(columns.kinds[place] for place in at),
        tuple(columns.categories[place] for place in at),
        columns.values[:, at],
    )
