"""Runs the stages of a plan as plain function calls."""

from collections.abc import Sequence

import pyarrow as pa

from tasks.pipeline.stage import Produced
from tasks.plan import Step


def call_plainly(steps: Sequence[Step]) -> dict[str, list[pa.Table]]:
    """Every stage as the plain function that it is: no lake, no validation, no Prefect."""
    tables: dict[str, list[pa.Table]] = {}
    for step in steps:
        held = {name: parts for name, parts in tables.items() if name not in {t.name for t in step.unread}}
        given = [pa.concat_tables(held.get(t.name) or [t.empty()]) for t in step.stage.reads]
        produced: Produced = step.stage.function(*given, settings=step.settings)
        for name, table in {**produced.tables, "refusals": produced.refusals}.items():
            tables.setdefault(name, []).append(table)
    return tables
