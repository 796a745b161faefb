"""Runs the stages of an audit as plain function calls: no lake, no validation, no Prefect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from threadpoolctl import threadpool_limits

from schemas.audit.spec import AuditSpec
from tasks.numerics.arrays import Bools
from tasks.numerics.encoding import Columns
from tasks.pipeline.method import ProblemTables
from tasks.pipeline.stage import Produced
from tasks.plan import Step, plan
from tasks.preprocessing.columns import Grouped, columns_of, groups_of


def call_plainly(
    steps: Sequence[Step],
    keep: Callable[[Step, Produced, int], Mapping[str, pa.Table]] = lambda step, produced, rows_in: produced.unheld(),  # noqa: ARG005 as others do
) -> dict[str, list[pa.Table]]:
    """Runs every step and returns its tables by name, a list with a part for each step that made some.

    Args:
        steps: Of a plan.
        keep: Makes the tables that later steps read, of a step, its output, and the rows that came in.
    """
    tables: dict[str, list[pa.Table]] = {}
    for step in steps:
        other_tables = {name: parts for name, parts in tables.items() if name not in {t.name for t in step.unread}}
        arguments = [pa.concat_tables(other_tables.get(t.name) or [t.empty()]) for t in step.stage.reads]
        with threadpool_limits(1, user_api="blas"):  # as ``Stage.run``
            produced: Produced = step.stage.function(*arguments, settings=step.settings)
            rows_in = produced.rows_in if produced.rows_in is not None else arguments[0].num_rows
            for name, table in keep(step, produced, rows_in).items():
                tables.setdefault(name, []).append(table)
    return tables


def tables_through(spec: AuditSpec, stage: str) -> dict[str, pa.Table]:
    """Runs an audit up to the first step of a stage and returns all tables by name."""
    steps = plan(spec).steps
    last = next(at for at, step in enumerate(steps) if step.stage.name == stage)
    return {name: pa.concat_tables(parts) for name, parts in call_plainly(steps[: last + 1]).items()}


@dataclass(frozen=True)
class Labelled:
    """The complete rows of a data set, ``n`` of them, in the same order."""

    columns: Columns
    grouped: Grouped
    """Groups of the spec's first protected attribute."""
    label: Bools
    """``(n,)``."""


def labelled(spec: AuditSpec, label: str = "outcome") -> Labelled:
    """Reads and encodes the data set of an audit spec; ``label`` is a column of the applications."""
    tables = tables_through(spec, "preprocess")
    problem = ProblemTables.of(tables)
    by_row = tables["applications"].select(["row_id", label]).to_pandas().set_index("row_id")[label]
    return Labelled(
        columns_of(problem.applicants, problem.encodings),
        groups_of(problem.memberships, problem.ids, spec.protected)[spec.protected[0].name],
        by_row.loc[problem.ids].to_numpy(bool),
    )
