"""Reads or draws the data sets of the CEC paper as training rows: inputs, labels, two groups, financial features.

Scope: the rows, and the two encodings of categories (a number, or one-hot columns). Training and scoring:
``tasks.methods.cec.algorithm.training.held_out``.
"""

from dataclasses import replace

import numpy as np

from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.ingest.synthetic.algorithm import consistent_lending
from tasks.ingest.synthetic.algorithm.consistent_lending import SyntheticLending
from tasks.methods.cec.algorithm.training.folds import Population
from tasks.methods.cec.algorithm.training.held_out import Lending
from tasks.numerics import columns as as_columns
from tasks.numerics.columns import Columns
from tasks.proof.plain import labelled


def of_spec(spec: AuditSpec) -> tuple[Lending, Columns]:
    """Reads the training rows of an audit spec with a single protected attribute, and their columns.

    The input of a category is its number, as the paper seems to have it.
    """
    read = labelled(spec)
    columns, grouped = read.columns, read.grouped
    chosen = [at for at, name in enumerate(columns.names) if Role.FINANCIAL in spec.columns[name].role]
    rows = Lending(
        Population(columns.values, read.label, grouped.group != grouped.reference),
        np.arange(len(columns.names), dtype=np.int32),
        columns.names,
        columns.values[:, chosen],
        tuple(columns.names[at] for at in chosen),
    )
    return rows, columns


def one_hot(rows: Lending, handed_in: Columns) -> Lending:
    """Encodes the same rows with an input for each category, and one for each column without categories."""
    inputs, feature = as_columns.one_hot(handed_in)
    population = replace(rows.population, features=inputs)
    return replace(rows, population=population, feature_of_input=feature)


def drawn(settings: SyntheticLending, seed: int) -> Lending:
    """Draws the paper's synthetic applicants. The last input is the group; the paper does not say whether it is one."""
    rows = consistent_lending.generate(settings, np.random.default_rng(seed))
    inputs = np.column_stack([rows.features, rows.protected])
    kinds = (("financial", settings.financial), ("proxy", settings.proxies), ("noise", settings.noise))
    names = tuple(f"{kind} {number + 1}" for kind, count in kinds for number in range(count))
    return Lending(
        Population(inputs, rows.favourable, rows.protected),
        np.arange(inputs.shape[1], dtype=np.int32),
        (*names, "group"),
        rows.features[:, rows.financial],
        tuple(names[at] for at in rows.financial),
    )
