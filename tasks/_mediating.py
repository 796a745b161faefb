"""Mediators as they would have been, as tables: what networks imagine, what the model then decides, and their checks.

One row of ``mediated`` is one applicant as a member of one other group, with the answer of the network that is nearest
to all. A row for each network would be ten times as many, and the others follow from the state in ``generators``. What
the model decides is kept of every network, since the worst of them counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.counterfactuals import (
    GENERATOR_CHECKS,
    GENERATOR_HISTORY,
    GENERATORS,
    MEDIATED,
    MEDIATED_DECISIONS,
    MEDIATOR_EFFECTS,
)
from schemas.table import Column, Table
from schemas.terms import DecisionMaker, Kind
from tasks import _generator_tables as tables
from tasks._columns import columns_of
from tasks._deciding import Decide, decider
from tasks._generators import Case, cases, generate
from tasks._scratch import Scratch
from tasks._stage import Produced
from tasks.algorithms import gcfn_checks
from tasks.algorithms.columns import Columns
from tasks.algorithms.counterfactual_quality import spread
from tasks.algorithms.detector import Floats, Longs
from tasks.mediate import MediateSettings

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
    """As the stage ``mediate`` says."""
    columns, ids = columns_of(applicants, encodings), applicants["row_id"].to_numpy()
    decide = decider(settings.model, models, encodings, decisions)
    declared = MEDIATED.extended(_own(columns, settings))
    writes = (declared, MEDIATED_DECISIONS, MEDIATOR_EFFECTS, GENERATOR_CHECKS, GENERATOR_HISTORY, GENERATORS)
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
    for to in range(len(case.rows.categories)):
        moved = Moved.of(case, found.imagined, to)
        yield MEDIATED.name, _imagined(case, moved, ids, declared)
        yield MEDIATOR_EFFECTS.name, tables.mediator_effects(case, moved.to, moved.at, moved.values)
        if decide is not None:
            yield MEDIATED_DECISIONS.name, _decided(case, moved, ids, decide)
    yield GENERATOR_CHECKS.name, tables.checks(case, found)
    if found.state is not None:
        yield GENERATOR_HISTORY.name, tables.history(case, found.state)
        yield GENERATORS.name, tables.generators(case, found.state)


@dataclass(frozen=True)
class Moved:
    """Applicants as members of one category."""

    to: int
    """Number of the category."""
    at: Longs
    """``(m,)`` who they are, among the rows of the case."""
    values: Floats
    """``(s, m, p)`` their mediators by network."""
    spread: Floats
    """``(m,)``; NaN for a single network."""
    network: Longs
    """``(m,)`` the network whose answer is the most typical."""

    @classmethod
    def of(cls, case: Case, imagined: Floats, to: int) -> "Moved":
        """Whoever is to be imagined as a member of a category."""
        rows, group = case.rows, int(case.categories.groups[to])
        at = np.flatnonzero(case.categories.asked(group)[case.categories.rows])
        deviation, values = rows.mediators.values.std(axis=0), imagined[:, to, at]
        chosen = rows.rows(at)
        apart = spread(values[:, None], chosen, deviation) if len(values) > 1 else np.full(len(at), np.nan)
        return cls(to, at, values, apart, gcfn_checks.typical(values, chosen, deviation))


def _imagined(case: Case, moved: Moved, ids: Ids, declared: Table) -> pa.Table:
    rows, mediators = case.categories.rows[moved.at], case.rows.mediators
    shown = moved.values[moved.network, np.arange(len(rows))]
    own = {name: _as_handed_in(shown[:, at], mediators.categories[at]) for at, name in enumerate(mediators.names)}
    nothing = dict.fromkeys((c.name for c in declared.columns[len(MEDIATED.columns) :]), [None] * len(rows))
    return declared.build(
        **nothing | own,
        **_named(case, rows, ids, moved.to),
        group=np.array(case.grouped.groups, dtype=object)[case.grouped.group[rows]],
        generator=[case.settings.gcfn.generator] * len(rows),
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
            "generator": [case.settings.gcfn.generator] * len(rows),
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


def _as_members(case: Case, moved: Moved, mediators: Floats) -> Columns:
    """Applicants with other mediators, and with what is commonest in the category in the attribute's own columns."""
    rows, group = case.categories.rows[moved.at], case.categories.groups[moved.to]
    values = case.columns.values[rows]
    for name in case.protected.columns:
        if name in case.columns.names:
            place = case.columns.names.index(name)
            known, counts = np.unique(case.columns.values[case.grouped.group == group, place], return_counts=True)
            values[:, place] = known[counts.argmax()]
    values[:, case.places] = mediators
    return replace(case.columns, values=values)


def _decided(case: Case, moved: Moved, ids: Ids, decide: Decide) -> pa.Table:
    """Whether the model decides otherwise on the mediators of each network, and by how much scores move."""
    rows = case.categories.rows[moved.at]
    favourable, score = decide(case.columns.rows(rows), rows)
    then = [decide(_as_members(case, moved, values), rows) for values in moved.values]
    return MEDIATED_DECISIONS.build(
        **_named(case, rows, ids, moved.to),
        decision_maker=[DecisionMaker.MODEL] * len(rows),
        score_changes=_lists(np.column_stack([found - score for _, found in then])),
        flips=_lists(np.column_stack([decision != favourable for decision, _ in then]).astype(np.float64)),
    )


def _lists(values: Floats) -> pa.Array:
    """A list for each row of ``(n, s)``."""
    ends = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(ends, np.ascontiguousarray(values).ravel())
