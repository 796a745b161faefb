"""Mediators as they would have been, as tables: what networks imagine, what the model then decides, and their checks.

One row of ``mediated`` is one applicant as a member of one other group, with the answer of the network that is nearest
to all. A row for each network would be ten times as many, and the others follow from the state in ``generators``. What
the model decides is kept of every network, since the worst of them counts.
"""

import json
import logging
from collections.abc import Iterator, Sequence
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
from tasks._columns import columns_of
from tasks._deciding import Decide, decider
from tasks._generators import Case, Generated, cases, generate, to_bytes
from tasks._scratch import Scratch
from tasks._stage import Produced
from tasks.algorithms import effects, gcfn_checks
from tasks.algorithms.columns import Columns
from tasks.algorithms.counterfactual_quality import spread
from tasks.algorithms.detector import Floats, Longs
from tasks.algorithms.gcfn_checks import Check
from tasks.mediate import MediateSettings

log = logging.getLogger("evenhand")

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
    tables = {table.name: [table.empty()] for table in writes}
    expected = 0
    for case in cases(columns, memberships, ids, settings):
        expected += _expected(case)
        tables[MEDIATED.name].append(_refused(case, ids, declared))
        if len(case.categories.groups):
            for name, table in _of_case(case, ids, declared, decide, scratch):
                tables[name].append(table)
    produced = {name: pa.concat_tables(parts) for name, parts in tables.items()}
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
    there = [Moved.of(case, found.imagined, to) for to in range(len(case.rows.categories))]
    yield from ((MEDIATED.name, _imagined(case, moved, ids, declared)) for moved in there)
    yield from ((MEDIATOR_EFFECTS.name, _effects(case, moved)) for moved in there)
    if decide is not None:
        now = decide(case.columns.rows(case.categories.rows), case.categories.rows)
        for moved in there:
            then = [decide(_as_members(case, moved, values), case.categories.rows[moved.at]) for values in moved.values]
            yield MEDIATED_DECISIONS.name, _decided(case, moved, ids, now, then)
    yield GENERATOR_CHECKS.name, _checks(case, found)
    if found.state is not None:
        yield GENERATOR_HISTORY.name, _history(case, found.state.history.double().numpy())
        yield GENERATORS.name, _state(case, to_bytes(found.state))


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


def _decided(
    case: Case, moved: Moved, ids: Ids, now: tuple[Any, Floats], then: Sequence[tuple[Any, Floats]]
) -> pa.Table:
    """Decisions and scores of all rows of the case as they are, and of those moved by network."""
    rows = case.categories.rows[moved.at]
    favourable, score = now[0][moved.at], now[1][moved.at]
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


def _effects(case: Case, moved: Moved) -> pa.Table:
    """Group by group of those who were moved."""
    group = case.rows.category[moved.at]
    parts = (_effects_of(case, moved, int(number), np.flatnonzero(group == number)) for number in np.unique(group))
    return pa.concat_tables(parts)


def _effects_of(case: Case, moved: Moved, number: int, at: Longs) -> pa.Table:
    mediators, names = case.rows.mediators, case.rows.categories
    pooled = moved.values[:, at].reshape(-1, len(mediators.names))
    members = np.flatnonzero(case.rows.category == moved.to)
    before, after = mediators.rows(moved.at[at]), mediators.rows(members).values
    told = list(effects.effects(before, pooled, mediators.names))
    there = [each.imagined for each in effects.effects(before, after, mediators.names)]
    n = len(told)
    return MEDIATOR_EFFECTS.build(
        protected_attribute=[case.protected.name] * n,
        group=[names[number]] * n,
        to_group=[names[moved.to]] * n,
        **{name: [getattr(each, name) for each in told] for name in effects.Effect._fields},
        there=there,
        n=[len(at)] * n,
        n_there=[len(members)] * n,
    )


def _checks(case: Case, found: Generated) -> pa.Table:
    rows, seed = case.rows, case.settings.seed
    checks = list(gcfn_checks.of_networks(found.imagined, rows, case.trained, seed))
    if found.convergence is not None:
        checks += gcfn_checks.of_training(found.convergence, len(case.trained))
    leaks = list(gcfn_checks.of_covariates(rows, seed))
    for leak in leaks:
        if leak.doubtful:
            log.warning(
                "%s: %s foretells the group with an AUC of %.3f, so that mediators in another group are guessed where "
                "nobody of it is; take the role of a covariate away from what gives the group away",
                *(case.protected.name, leak.column, leak.value),
            )
    checks += leaks
    n = len(checks)
    return GENERATOR_CHECKS.build(
        protected_attribute=[case.protected.name] * n,
        generator=[case.settings.gcfn.generator] * n,
        **{name: [getattr(check, name) for check in checks] for name in Check._fields},
    )


def _history(case: Case, history: Floats) -> pa.Table:
    """``(epochs, s, 3)`` as rows, network by network."""
    epochs, networks, _ = history.shape
    reconstruction, log_loss, accuracy = history.transpose(1, 0, 2).reshape(-1, history.shape[2]).T
    return GENERATOR_HISTORY.build(
        protected_attribute=[case.protected.name] * (epochs * networks),
        network=np.repeat(np.arange(networks), epochs),
        epoch=np.tile(np.arange(1, epochs + 1), networks),
        reconstruction=reconstruction,
        log_loss=log_loss,
        accuracy=accuracy,
    )


def _state(case: Case, content: bytes) -> pa.Table:
    said = (case.rows.categories, case.rows.covariates.names, case.rows.mediators.names)
    names = dict(zip(("categories", "covariates", "mediators"), ([json.dumps(each)] for each in said), strict=True))
    return GENERATORS.build(protected_attribute=[case.protected.name], content=[content], **names)
