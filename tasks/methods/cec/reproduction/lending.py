"""The data sets of the CEC paper as the rows that nets are trained on: inputs, labels, two groups, financial features.

An audit spec is read by the stages of an audit; the paper's synthetic applicants are drawn. Here belongs that, and the
two ways to turn categories into inputs. What is trained on the rows is in
``tasks.methods.cec.algorithm.training.held_out``.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from schemas.audit.spec import AuditSpec
from schemas.terms import Role
from tasks.ingest.synthetic.algorithm import consistent_lending
from tasks.ingest.synthetic.algorithm.consistent_lending import SyntheticLending
from tasks.methods.cec.algorithm.training.folds import Population
from tasks.methods.cec.algorithm.training.held_out import Lending
from tasks.numerics import columns as as_columns
from tasks.numerics.columns import Columns
from tasks.pipeline.given import ProblemTables
from tasks.plan import plan
from tasks.preprocessing.columns import columns_of
from tasks.preprocessing.groups import groups_of
from tasks.proof.plain import call_plainly


def of_spec(spec: AuditSpec) -> tuple[Lending, Columns]:
    """The rows of an audit spec with a single protected attribute, a column for each input; and these columns.

    Of a category its number is the input, as the paper seems to have it.
    """
    steps = [step for step in plan(spec).steps if step.stage.name in ("ingest", "preprocess")]
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(steps).items()}
    given = ProblemTables.of(tables)
    columns = columns_of(given.applicants, given.encodings)
    grouped = groups_of(given.memberships, given.ids, spec.protected)[spec.protected[0].name]
    labels = tables["applications"].select(["row_id", "outcome"]).to_pandas().set_index("row_id")["outcome"]
    chosen = [at for at, name in enumerate(columns.names) if Role.FINANCIAL in spec.columns[name].role]
    rows = Lending(
        Population(columns.values, labels.loc[given.ids].to_numpy(bool), grouped.group != grouped.reference),
        np.arange(len(columns.names), dtype=np.int32),
        columns.names,
        columns.values[:, chosen],
        tuple(columns.names[at] for at in chosen),
    )
    return rows, columns


def one_hot(rows: Lending, handed_in: Columns) -> Lending:
    """The same rows with an input for each category, and one for each column without categories."""
    inputs, feature = as_columns.one_hot(handed_in)
    population = replace(rows.population, features=inputs)
    return replace(rows, population=population, feature_of_input=feature)


def drawn(settings: SyntheticLending, seed: int) -> Lending:
    """The paper's synthetic applicants. Their group is an input, the last one; the paper does not say whether it is."""
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
