"""Writes counterfactual mediators, the model's decisions on them, and their checks as tables.

A row of ``mediated`` is one applicant as a member of one other group, with the values of the network that is nearest to
all. A row for each network would be ten times as many, and the others follow from the state in ``generators``. The
model's decisions are kept for every network, since the worst of them counts.

Scope: tables with rows of applicants, and the order of the work on a protected attribute.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.table import Column, Table
from schemas.tables.counterfactuals import (
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
)
from schemas.tables.findings import TALLIES
from schemas.terms import DecisionMaker, Kind
from tasks.counterfactuals.gan.ensembles import Case, cases, generate
from tasks.methods.gcfn.mediate import tables
from tasks.methods.gcfn.mediate.counterfactuals import Reassigned, ReassignedDecisions
from tasks.methods.gcfn.mediate.settings import MediateSettings
from tasks.methods.gcfn.mediate.tallies import densities, who
from tasks.numerics.arrays import Floats, Longs
from tasks.numerics.columns import Columns
from tasks.pipeline.scratch import Scratch
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import columns_of
from tasks.scoring.decider import Decide, decider

Ids = np.ndarray[tuple[int], np.dtype[np.object_]]


def mediated(
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    decisions: pa.Table,
    models: pa.Table,
    *,
    settings: MediateSettings,
    scratch: Scratch,
) -> Produced:
    """Does the work of the stage ``mediate``."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    decide = decider(settings.model, models, encodings, decisions)
    declared = MEDIATED.extended(_own(columns, settings))
    writes = (declared, MEDIATED_DECISIONS, MEDIATOR_EFFECTS, GENERATOR_CHECKS, GENERATOR_HISTORY, GENERATORS, TALLIES)
    parts = {table.name: [table.empty()] for table in writes}
    expected = 0
    for case in cases(columns, memberships, ids, settings):
        expected += _expected(case)
        parts[MEDIATED.name].append(_refused(case, ids, declared))
        if len(case.categories.groups):
            for name, table in _of_case(case, ids, declared, decide, scratch):
                parts[name].append(table)
    produced = {name: pa.concat_tables(each) for name, each in parts.items()}
    return Produced(produced, rows_in=expected, declared={MEDIATED.name: declared})


def _own(columns: Columns, settings: MediateSettings) -> Iterator[Column]:
    """The audit's own columns: the mediators."""
    for name in settings.mediators:
        kind = columns.kinds[columns.names.index(name)]
        words = "as it would have been; none of a refused row, or of an attribute that is made of it"
        yield Column(name, "double" if kind is Kind.CONTINUOUS else "string", words, nullable=True)


def _expected(case: Case) -> int:
    """Applicants to be imagined: all outside the reference group once, its members once for each other category."""
    inside = int((case.grouped.group == case.grouped.reference).sum())
    return len(case.grouped.group) - inside + inside * max(0, len(case.categories.groups) - 1)


def _of_case(
    case: Case, ids: Ids, declared: Table, decide: Decide | None, scratch: Scratch
) -> Iterator[tuple[str, pa.Table]]:
    """All tables of a protected attribute whose groups can be learnt from."""
    found = generate(case, scratch)
    several = [Reassigned.of(case, found.imagined, to) for to in range(len(case.rows.categories))]
    for moved in several:
        yield MEDIATED.name, _imagined(case, moved, ids, declared)
        yield MEDIATOR_EFFECTS.name, tables.mediator_effects(case, moved.to, moved.at, moved.values)
    yield TALLIES.name, densities(case, several)
    if decide is not None:
        decided = [ReassignedDecisions.of(case, moved, decide) for moved in several]
        for moved, again in zip(several, decided, strict=True):
            yield MEDIATED_DECISIONS.name, _decided(case, moved, ids, again)
        yield TALLIES.name, who(case, several, decided)
    yield GENERATOR_CHECKS.name, tables.checks(case, found)
    if found.state is not None:
        yield GENERATOR_HISTORY.name, tables.history(case, found.state)
        yield GENERATORS.name, tables.generators(case, found.state)


def _imagined(case: Case, moved: Reassigned, ids: Ids, declared: Table) -> pa.Table:
    rows, mediators = case.categories.rows[moved.at], case.rows.mediators
    shown = moved.values[moved.network, np.arange(len(rows))]
    own = {name: _as_handed_in(shown[:, at], mediators.categories[at]) for at, name in enumerate(mediators.names)}
    nothing = dict.fromkeys((c.name for c in declared.columns[len(MEDIATED.columns) :]), [None] * len(rows))
    return declared.build(
        **nothing | own,
        **_named(case, rows, ids, moved.to),
        group=np.array(case.grouped.groups, dtype=object)[case.grouped.group[rows]],
        generator=[case.settings.gan.generator] * len(rows),
        network=moved.network,
        spread=moved.spread,
        refusal=[None] * len(rows),
    )


def _refused(case: Case, ids: Ids, declared: Table) -> pa.Table:
    rows, reasons = case.categories.refused
    nothing: list[Any] = [None] * len(rows)
    groups = case.grouped.groups
    return declared.build(
        **dict.fromkeys((c.name for c in declared.columns), nothing)
        | {
            "row_id": ids[rows],
            "generator": [case.settings.gan.generator] * len(rows),
            "protected_attribute": [case.protected.name] * len(rows),
            "group": np.array(groups, dtype=object)[case.grouped.group[rows]],
            "to_group": [groups[case.grouped.reference]] * len(rows),
            "refusal": reasons,
        }
    )


def _named(case: Case, rows: Longs, ids: Ids, to: int) -> dict[str, Any]:
    return {
        "row_id": ids[rows],
        "protected_attribute": [case.protected.name] * len(rows),
        "to_group": [case.rows.categories[to]] * len(rows),
    }


def _as_handed_in(values: Floats, categories: tuple[str, ...]) -> "np.ndarray[Any, Any]":
    return np.array(categories, dtype=object)[values.astype(np.int64)] if categories else values


def _decided(case: Case, moved: Reassigned, ids: Ids, decided: ReassignedDecisions) -> pa.Table:
    """Whether the model decides otherwise on the mediators of each network, and by how much scores move."""
    rows = case.categories.rows[moved.at]
    return MEDIATED_DECISIONS.build(
        **_named(case, rows, ids, moved.to),
        decision_maker=[DecisionMaker.MODEL] * len(rows),
        score_changes=_lists(decided.change.T),
        flips=_lists(decided.flips.T.astype(np.float64)),
    )


def _lists(values: Floats) -> pa.Array:
    """A list for each row of ``(n, s)``."""
    ends = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(ends, np.ascontiguousarray(values).ravel())
