"""Ranks applicants for every decision maker and protected attribute: tables in, places, offers and measures out.

Scope: the order of the work on one list. Decision makers: ``recourse``. Tables of places and offers: ``rows``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.tables.applications import MODELS
from schemas.tables.findings import AGGREGATES, TALLIES
from schemas.terms import DecisionMaker, Refusal
from tasks.counterfactuals.algorithm.recourse.targets import Targets
from tasks.detection.problems import decided, explained_and_candidates
from tasks.methods.raguel.algorithm import aggregates as raguel_aggregates
from tasks.methods.raguel.algorithm import group_thresholds, lists
from tasks.methods.raguel.algorithm import tallies as raguel_tallies
from tasks.methods.raguel.algorithm import targets as raguel_targets
from tasks.methods.raguel.algorithm.lists import Ranked
from tasks.methods.raguel.algorithm.offers import Applied, offers
from tasks.methods.raguel.algorithm.ranking.records import make_records
from tasks.methods.raguel.algorithm.summary import ListSummary, Thresholded
from tasks.methods.raguel.algorithm.targets import Found
from tasks.methods.raguel.algorithm.units import Space, space_of
from tasks.methods.raguel.rerank.recourse import Maker, attributes_of, maker_of
from tasks.methods.raguel.rerank.refitted import Decided, ratios
from tasks.methods.raguel.rerank.rows import Case, Placed, offer_rows, reranked_rows
from tasks.methods.raguel.rerank.settings import RerankSettings
from tasks.methods.raguel.tables import OFFERS, RERANKED
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.results import Aggregate, Tally
from tasks.pipeline.stage import Produced
from tasks.pipeline.statistics import Origin
from tasks.preprocessing.columns import columns_of, encoded
from tasks.preprocessing.groups import Grouped, groups_of
from tasks.scoring.refitting import Refits, refits

METHOD = "raguel"

_NEAREST = "costs lead to the nearest applicants decided on favourably, as there is no linear boundary to go to"
_OF_SOURCE = {
    "ar": "costs lead to the points of actionable recourse, as methods.raguel.source asks",
    "mace": "costs lead to the points of least total change (MACE), as methods.raguel.source asks",
    "nearest": "costs lead to the nearest applicants decided on favourably, as methods.raguel.source asks",
}
_ONE_SIDED = "some group has outcomes of one kind only, so that no threshold can be chosen for it"

_THRESHOLDS: dict[str, group_thresholds.Constraint] = {
    "demographic_parity": "demographic_parity",
    "equalised_odds": "equalized_odds",
}


@dataclass(frozen=True)
class _Rows:
    """The rows of the audit, and what one decision maker decided about them. Arrays are aligned by row."""

    maker: Maker
    columns: Columns
    encodings: pa.Table
    favourable: Bools
    outcome: Bools
    open: Bools
    """Rows that may be explained."""
    wanted: Longs
    """Rows that are to be ranked."""
    candidate: Bools
    decided: Decided
    """What the ratio of recourse costs needs."""
    bands: Longs | None
    """Of the column that gives the blocks their sizes."""


def reranked(
    decisions: pa.Table,
    applicants: pa.Table,
    encodings: pa.Table,
    memberships: pa.Table,
    models: pa.Table,
    *,
    settings: RerankSettings,
) -> Produced:
    """Does the work of the stage ``rerank``."""
    ids, columns = applicants["row_id"].to_numpy(), columns_of(applicants, encodings)
    groups = groups_of(memberships, ids, settings.protected)
    tables: dict[str, list[pa.Table]] = {t.name: [t.empty()] for t in (RERANKED, OFFERS, TALLIES, AGGREGATES)}
    lender = _of_lender(decisions, ids)
    expected = 0
    for name, frame in decided(decisions, settings.explain):
        made = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        rows = _rows(name, made, columns, encodings, models, lender, settings)
        for attribute in (each for each in settings.protected if groups[each.name].compared):
            case = Case(METHOD, name, attribute.name, ids, groups[attribute.name])
            rng = np.random.default_rng([settings.seed, crc32(f"rerank|{attribute.name}".encode())])
            placed, tallies, aggregates = _of_case(case, rows, attribute.columns, settings, rng)
            origin = Origin(METHOD, name, attribute.name, case.grouped.groups)
            tables[RERANKED.name].append(reranked_rows(case, placed))
            tables[OFFERS.name].append(offer_rows(case, placed))
            tables[TALLIES.name].append(origin.tallies(tallies))
            tables[AGGREGATES.name].append(origin.aggregates(aggregates))
            expected += len(rows.wanted) * len(lists.names(settings.raguel))
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()}, rows_in=expected)


def _rows(
    name: str,
    made: pd.DataFrame,
    columns: Columns,
    encodings: pa.Table,
    models: pa.Table,
    lender: Bools,
    settings: RerankSettings,
) -> _Rows:
    factual, candidate = explained_and_candidates(made, name, settings.explain)
    favourable, open_ = made["favourable"].to_numpy(), made["explained"].to_numpy()
    own = pa.Table.from_pandas(made, preserve_index=False)
    held = models if name == "model" else MODELS.empty()
    maker = maker_of(name, settings.model, held, columns, encodings, own)
    errors_alone = name == DecisionMaker.MODEL and settings.explain.factuals == "false_negatives"
    asked = open_ & made["outcome"].to_numpy() if errors_alone else open_
    return _Rows(
        maker=maker,
        columns=columns,
        encodings=encodings,
        favourable=favourable,
        outcome=made["outcome"].to_numpy(),
        open=open_,
        wanted=np.flatnonzero(open_ if settings.raguel.listed == "all" else factual),
        candidate=candidate,
        decided=Decided(
            x=maker.inputs.x,
            denied=~favourable & asked,
            asked=asked,
            linear=maker.linear is not None,
            refits=_refits(maker, lender, open_, settings) if name == DecisionMaker.MODEL else None,
        ),
        bands=_bands(columns, encodings, settings.raguel.block_column),
    )


def _of_lender(decisions: pa.Table, ids: "np.ndarray[Any, Any]") -> Bools:
    """``(n,)`` the lender's decisions, to which models are fitted."""
    own = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.LENDER))).to_pandas()
    favourable: Bools = own.set_index("row_id")["favourable"].loc[ids].to_numpy(bool)
    return favourable


def _refits(maker: Maker, lender: Bools, explained: Bools, settings: RerankSettings) -> Refits | None:
    asked = settings.raguel.refits
    return refits(maker.inputs.x, lender, explained, settings.model, asked, settings.seed)


def _bands(columns: Columns, encodings: pa.Table, name: str | None) -> Longs | None:
    """The band of each row: its category, its bin, or its value where numbers are not cut into bins."""
    if name is None:
        return None
    at = encodings["feature"].to_pylist().index(name)
    return np.unique(encoded(columns, encodings)[:, at], return_inverse=True)[1].astype(np.int64)


def _of_case(
    case: Case, rows: _Rows, own_columns: tuple[str, ...], settings: RerankSettings, rng: np.random.Generator
) -> tuple[Placed, list[Tally], list[Aggregate]]:
    """One decision maker and one protected attribute."""
    attributes = attributes_of(rows.maker, rows.columns, rows.encodings, settings.recourse, own_columns)
    space = space_of(rows.maker.inputs.x, attributes)
    found = _found(rows, space, settings)
    group = case.grouped.group[rows.wanted]
    refusal = _without_small_groups(found, group, settings.raguel.fewest)
    tallies = _unreached(found, group)
    kept = np.flatnonzero(refusal == "")
    placed = Placed(rows.wanted, kept, found, refusal, settings.raguel)
    cost = np.full(len(rows.favourable), np.nan)
    cost[rows.wanted] = found.targets.cost
    level = settings.bootstrap.level
    aggregates = ratios(rows.decided, cost, space, case.grouped, settings.model, settings.raguel, level)
    if not len(kept):
        return placed, tallies, aggregates
    told, applied = _told(rows, space, found, kept, case.grouped, settings, rng)
    for number in np.unique(told.group).tolist():
        tallies += [replace(t, group=number) for t in raguel_tallies.tallies(told, number)]
        aggregates += raguel_aggregates.aggregates(told, number, settings.raguel, settings.bootstrap.draws, rng)
    return replace(placed, told=told, applied=applied), tallies, aggregates


def _found(rows: _Rows, space: Space, settings: RerankSettings) -> Found:
    """The counterfactual points of the rows to be ranked."""
    values = space.values(rows.maker.inputs.x)
    here, boundaries = values[rows.wanted], rows.maker.boundaries(space)
    source, fold = settings.raguel.source, rows.maker.fold[rows.wanted]
    if boundaries is not None and source == "exact":
        return raguel_targets.to_boundaries(here, fold, boundaries, space.actions, settings.raguel)
    if boundaries is not None and source != "nearest":
        return raguel_targets.of_source(here, fold, boundaries, space.actions, values, source)
    candidates = np.flatnonzero(rows.candidate)
    favours = None if rows.maker.answers is None else _favours(rows, space)
    found = raguel_targets.to_nearest(here, values[candidates], space.actions, settings.raguel.asked, favours)
    taken = found.candidate >= 0
    found.candidate[taken] = candidates[found.candidate[taken]]
    return found


def _favours(rows: _Rows, space: Space) -> Callable[[Longs, Floats], Bools]:
    """Asks the model about rows to be ranked, by their number among these, at points in the space."""

    def favours(chosen: Longs, points: Floats) -> Bools:
        return _applied(rows, space, rows.wanted[chosen]).favoured(points)

    return favours


def _applied(rows: _Rows, space: Space, row: Longs) -> Applied:
    inputs = rows.maker.inputs
    return Applied(space, inputs.column, row, rows.columns.values[row], inputs.x[row], rows.maker.answers)


def _without_small_groups(found: Found, group: Ints, fewest: int) -> "np.ndarray[tuple[int], np.dtype[np.str_]]":
    """Why each row is not ranked, ``(w,)``: it has no cost, or too few of its group have one."""
    few = np.bincount(group[found.targets.reached], minlength=int(group.max(initial=0)) + 1) < fewest
    return np.where(found.targets.reached & few[group], str(Refusal.TOO_FEW_IN_CATEGORY), found.refusal)


def _unreached(found: Found, group: Ints) -> list[Tally]:
    return [
        replace(tally, group=number)
        for number in np.unique(group).tolist()
        for tally in raguel_tallies.unreached(~found.targets.reached[group == number])
    ]


def _told(
    rows: _Rows,
    space: Space,
    found: Found,
    kept: Longs,
    grouped: Grouped,
    settings: RerankSettings,
    rng: np.random.Generator,
) -> tuple[ListSummary, Applied]:
    """The list of the rows that are ranked, re-ranked in every way."""
    row, reached = rows.wanted[kept], found.targets
    applied, asked = _applied(rows, space, row), settings.raguel
    targets = Targets(reached.point[kept], reached.cost[kept], reached.rate[kept])
    values, group = space.values(applied.x), grouped.group[row]
    records = make_records(values, targets, group, space.actions, found.boundary, asked.together)
    sizes = lists.block_sizes(len(row), asked, None if rows.bands is None else rows.bands[row])
    ranked = Ranked(records, len(grouped.groups), grouped.reference, sizes)
    orders, unfavourable = tuple(lists.orders(ranked, asked, rng)), ~rows.favourable[row]
    gains = {each.name: _gains(rows, space, row, each.values - values) for each in orders}
    told = ListSummary(
        ranked=ranked,
        initial=lists.initial(ranked),
        orders=orders,
        offers={each.name: offers(applied, ranked, each) for each in orders},
        columns=rows.columns.names,
        confirmed=applied.confirmed(targets.point, unfavourable),
        offers_confirmed={each.name: applied.offers_confirmed(each, gains[each.name], unfavourable) for each in orders},
        cells=tuple(lists.grid(ranked, asked)),
        thresholded=tuple(_thresholded(rows, row, grouped, settings.seed)),
        note=_note(rows, found.by),
    )
    return told, applied


def _note(rows: _Rows, by: str) -> str:
    """What qualifies the costs of a list; empty where they are exact ones to a boundary."""
    if by == "nearest" and rows.maker.linear is None:
        return _NEAREST
    return _OF_SOURCE.get(by, "")


def _gains(rows: _Rows, space: Space, row: Longs, moved: Floats) -> Floats:
    """By how much the score of each row is to rise with its offer; 0 where there is no linear form to count on."""
    gains = np.zeros(len(row))
    for number, boundary in (rows.maker.boundaries(space) or {}).items():
        own = rows.maker.fold[row] == number
        gains[own] = moved[own] @ boundary.slope
    return gains


def _thresholded(rows: _Rows, row: Longs, grouped: Grouped, seed: int) -> Iterator[Thresholded]:
    """The lists that thresholds by group would have left, on the scores of the same model."""
    scores = rows.maker.scores
    at = np.flatnonzero(rows.open & np.isin(grouped.group, grouped.group[row]))
    if not len(at) or np.isnan(scores[at]).any():
        return
    group = grouped.group[at]
    for name, constraint in _THRESHOLDS.items():
        if group_thresholds.one_sided(rows.outcome[at], group):
            yield Thresholded(name, np.zeros(len(row), np.bool_), np.zeros(0, np.int64), _ONE_SIDED)
            continue
        favourable = rows.favourable.copy()
        favourable[at] = group_thresholds.decided(scores[at], rows.outcome[at], group, constraint, seed)
        other = grouped.group[favourable != rows.favourable]
        yield Thresholded(name, ~favourable[row], np.bincount(other, minlength=len(grouped.groups)).astype(np.int64))
