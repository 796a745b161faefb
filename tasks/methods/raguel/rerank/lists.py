"""Ranks applicants for every decision maker and protected attribute."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import logit

from schemas.audit.column import Recourse
from schemas.audit.model import Model, TakenAs
from schemas.tables.applications import MODELS
from schemas.tables.findings import AGGREGATES, TALLIES
from schemas.terms import Constraint, DecisionMaker, Kind, Refusal
from tasks.counterfactuals.algorithm.recourse import Boundary, Targets
from tasks.detection.problems import decided, explained_and_candidates
from tasks.methods.raguel.algorithm import lists, statistics
from tasks.methods.raguel.algorithm.lists import Ranked, RowTargets
from tasks.methods.raguel.algorithm.representation import make_records
from tasks.methods.raguel.algorithm.statistics import (
    Answers,
    Applied,
    Attribute,
    Costs,
    ListSummary,
    Space,
    Thresholded,
    offers,
    space_of,
)
from tasks.methods.raguel.rerank.settings import RerankSettings
from tasks.methods.raguel.settings import RaguelSettings
from tasks.methods.raguel.tables import OFFERS, RERANKED
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.attributions import Linear
from tasks.numerics.encoding import Columns, Scale
from tasks.numerics.results import Aggregate, Tally
from tasks.pipeline.method import Origin
from tasks.pipeline.stage import Produced
from tasks.preprocessing.columns import Grouped, Inputs, columns_of, encoded, groups_of, inputs_of
from tasks.scoring.decider import Decide, decider
from tasks.scoring.fitting import Refits, refits
from tasks.scoring.model_reader.confined import stored
from tasks.scoring.models import linear_form

# --------------------------------------------------------------------------------------------------------------------
# Reads what recourse costs need of a decision maker: its inputs, decision boundary and decisions.
#
# Scope: decision makers. Lists of applicants: ``lists``.


MARGIN = 1e-9
"""Of a score, relatively: a boundary is crossed by so much, or rounding would decide on those who go to it."""

_DIRECTIONS = {Constraint.UP: 1, Constraint.DOWN: -1}


@dataclass(frozen=True)
class Maker:
    """What recourse needs of a decision maker. Arrays are aligned by row."""

    name: str
    inputs: Inputs
    taken_as: TakenAs
    fold: Ints
    """``(n,)`` number of the model that decided on each row."""
    linear: Mapping[int, Linear] | None
    """By number of the model, above 0 for a favourable decision; None without such a form."""
    answers: Answers | None
    """None where it cannot be queried."""
    scores: Floats
    """``(n,)`` probabilities; NaN where there are none."""

    def boundaries(self, space: Space) -> dict[int, Boundary] | None:
        """Returns the boundaries of its models in a space; None without a linear form."""
        if self.linear is None:
            return None
        return {
            number: Boundary(form.coefficients * space.unit, form.intercept) for number, form in self.linear.items()
        }


def maker_of(
    name: str, model: Model, models: pa.Table, columns: Columns, encodings: pa.Table, decisions: pa.Table
) -> Maker:
    """Returns a decision maker; a lender gets the inputs of a model, and its reasons are unknown.

    Args:
        name: Of the decision maker.
        model: That of the audit.
        models: Those that the stage ``score`` left.
        columns: What applicants handed in.
        encodings: How it is encoded.
        decisions: Its decisions, in the order of the rows.
    """
    n, scores = decisions.num_rows, decisions["score"].to_numpy()
    if name != DecisionMaker.MODEL:
        inputs = inputs_of(columns, encodings, "encoded")
        return Maker(name, inputs, "encoded", np.zeros(n, np.int32), None, None, np.full(n, np.nan))
    taken_as: TakenAs = "codes" if model.rule is not None else model.taken_as
    inputs = inputs_of(columns, encodings, taken_as)
    decide = decider(model, models, encodings, decisions)
    if model.rule is not None:
        answers = None if decide is None else partial(_answers, decide, columns, None)
        weights = np.array([model.rule.weights.get(name, 0.0) for name in columns.names])
        form = {0: above(Linear(weights), model.rule.limit)}
        return Maker(name, inputs, taken_as, np.zeros(n, np.int32), form, answers, scores)
    cut = float(logit(decisions["threshold"][0].as_py()))
    answers = None if decide is None else partial(_answers, decide, columns, cut)
    forms = {number: linear_form(content) for number, content in stored(models, model).items()}
    linear = {number: above(form, cut) for number, form in forms.items() if form is not None}
    fold = decisions["fold"].to_numpy().astype(np.int32)
    return Maker(name, inputs, taken_as, fold, linear if len(linear) == len(forms) else None, answers, scores)


def above(form: Linear, cut: float) -> Linear:
    """How far the logit lies above the cut, and a trifle less, so that the boundary is crossed."""
    return Linear(form.coefficients, form.intercept - cut - MARGIN * max(1.0, abs(cut)))


def _answers(decide: Decide, columns: Columns, cut: float | None, rows: Longs, values: Floats) -> tuple[Bools, Floats]:
    """Decisions on columns as they would be, and scores: of a model log odds above the cut, of a rule its sum."""
    favourable, scores = decide(Columns(columns.names, columns.kinds, columns.categories, values), rows)
    return favourable, scores if cut is None else logit(scores) - cut


def attributes_of(
    maker: Maker, columns: Columns, encodings: pa.Table, recourse: Mapping[str, Recourse], fixed: Sequence[str]
) -> tuple[Attribute | None, ...]:
    """Returns the attribute of each input of a decision maker; None for one of several categories.

    Args:
        maker: The decision maker.
        columns: What applicants handed in.
        encodings: How it is encoded, and in which direction it may change.
        recourse: What the spec says of each column.
        fixed: Columns that a protected attribute is made of: to change them is no recourse.
    """
    firsts = {row["feature"]: row for row in encodings.to_pylist()}
    ordered = [kind in (Kind.ORDINAL, Kind.BINARY) and maker.taken_as != "one_hot" for kind in columns.kinds]
    attributes: list[Attribute | None] = []
    for at in maker.inputs.column.tolist():
        name, categories = columns.names[at], columns.categories[at]
        first = firsts[name]
        if categories and not ordered[at]:
            attributes.append(None)
            continue
        scale = None
        if maker.taken_as == "encoded":
            bins = None if first["bins"] is None else int(first["bins"])
            scale = Scale(first["low"], first["high"], bins)
            if categories:
                scale = Scale(0.0, max(len(categories) - 1.0, 1.0), None)
        bound = first["constraint"] == Constraint.IMMUTABLE or first["transitions"] is not None or name in fixed
        attributes.append(
            Attribute(
                name,
                categories,
                scale,
                recourse[name].weight,
                recourse[name].step,
                recourse[name].limits,
                _DIRECTIONS.get(first["constraint"], 0),
                not bound,
            )
        )
    return tuple(attributes)


# --------------------------------------------------------------------------------------------------------------------
# The ratio of recourse costs of a decision maker: costs of the audit's model, and of models fitted to resamples.
#
# Scope: decision makers, resamples and boundaries. The ratio and its interval: ``algorithm.cost_ratio``.


NO_BOUNDARY = "costs are to other applicants, as there is no linear boundary to go to"
OTHER_SOURCE = "methods.raguel.source is {source}, whose points are not found again in resamples"
COMMON_TARGET = "methods.raguel.target is top, one applicant's place, which is not found again in resamples"
NOT_ASKED = "methods.raguel.refits is 0"
NOT_FITTED = "a model of the kind {kind} is not fitted again"


@dataclass(frozen=True)
class Priced:
    """Who is denied in a resample."""

    row: Longs
    """``(r,)`` numbers of rows that are in it."""
    cost: Floats
    """``(r,)`` recourse costs; NaN where there is no way."""
    count: Floats
    """``(r,)`` how often each is in it."""


@dataclass(frozen=True)
class Decided:
    """What one decision maker decided. Arrays are aligned by row."""

    x: Floats
    """``(n, d)`` inputs."""
    denied: Bools
    """``(n,)`` rows that are explained and were decided on unfavourably."""
    eligible: Bools
    """``(n,)`` rows that would be explained, were they denied."""
    linear: bool
    """Whether costs lead to a linear boundary."""
    refits: Refits | None
    resamples: dict[bytes, tuple[Priced, ...]] = field(default_factory=dict)
    """By what may be changed: protected attributes over no feature share them."""


def ratios(
    decided: Decided,
    cost: Floats,
    space: Space,
    grouped: Grouped,
    model: Model,
    settings: RaguelSettings,
    level: float,
) -> list[Aggregate]:
    """The reference group's mean cost over that of each group with rows.

    Args:
        decided: Decisions, and the models of resamples.
        cost: ``(n,)`` recourse costs by the decision maker itself; NaN where there is none.
        space: In which costs are measured; that of the audit's rows in all resamples.
        grouped: The groups.
        model: That of the audit.
        settings: ``steps``, ``most`` and ``refits``.
        level: Of the intervals.
    """
    costs, size = Costs.of(cost, grouped.group, decided.denied), len(grouped.groups)
    errors: Floats | str = _why(decided, model, settings)
    if not errors and decided.refits is not None:
        draw_means = means(decided, decided.refits, space, grouped.group, size, settings)
        errors = statistics.errors_of_draws(draw_means, grouped.reference)
    elif not errors:
        errors = statistics.errors_of_rows(costs, size, grouped.reference)
    present = np.unique(grouped.group).tolist()
    return statistics.aggregates(costs, present, grouped.reference, errors, level)


def _why(decided: Decided, model: Model, settings: RaguelSettings) -> str:
    """Why there is no honest interval; empty where there is one."""
    if not settings.refits:
        return NOT_ASKED
    if settings.target == "top":
        return COMMON_TARGET
    if not decided.linear:
        return NO_BOUNDARY
    if settings.source != "exact":
        return OTHER_SOURCE.format(source=settings.source)
    return NOT_FITTED.format(kind=model.kind) if not model.is_given and decided.refits is None else ""


def means(decided: Decided, refits: Refits, space: Space, group: Ints, groups: int, settings: RaguelSettings) -> Floats:
    """``(draws, groups)`` mean costs on each resample, to the boundary of the model that was fitted to it."""
    key = space.actions.changeable.tobytes()  # all else that protected attributes have in common
    if key not in decided.resamples:
        values, denied = space.values(decided.x), ~refits.favourable(decided.x) & decided.eligible[:, None]
        resamples = []
        for draw, cut in enumerate(refits.cut.tolist()):
            rows = np.flatnonzero(denied[:, draw] & (refits.counts[:, draw] > 0))
            form = above(Linear(refits.coefficients[:, draw], float(refits.intercept[draw])), cut)
            boundary = {0: Boundary(form.coefficients * space.unit, form.intercept)}
            fold = np.zeros(len(rows), np.int32)
            cost = lists.to_boundaries(values[rows], fold, boundary, space.actions, settings).targets.cost
            resamples.append(Priced(rows, cost, refits.counts[rows, draw].astype(np.float64)))
        decided.resamples[key] = tuple(resamples)
    return np.array(
        [Costs.of(priced.cost, group[priced.row], priced.count).means(groups) for priced in decided.resamples[key]]
    )


# --------------------------------------------------------------------------------------------------------------------
# Writes places in lists and offers as rows of the tables ``reranked`` and ``offers``, one list at a time.


@dataclass(frozen=True)
class Case:
    """Identity of a list."""

    method: str
    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    """``(rows,)`` identifiers of all rows of the audit."""
    grouped: Grouped


@dataclass(frozen=True)
class ListResult:
    """Results of the ``w`` rows that were to be ranked."""

    rows: Longs
    listed: Longs
    """``(n,)`` numbers, among them, of those that are ranked: the records of the list."""
    targets: RowTargets
    refusal: NDArray[np.str_]
    """``(w,)`` empty, or the reason."""
    settings: RaguelSettings
    summary: ListSummary | None = None
    """None where no row is ranked."""
    applied: Applied | None = None


def reranked_rows(case: Case, placed: ListResult) -> pa.Table:
    """Returns a row for each row that was to be ranked, and each order."""
    w, row_targets = len(placed.rows), placed.targets
    group = np.array(case.grouped.groups, dtype=object)[case.grouped.group[placed.rows]]
    shared = {
        "row_id": case.ids[placed.rows],
        "decision_maker": [case.decision_maker] * w,
        "protected_attribute": [case.attribute] * w,
        "group": group,
        "found_by": [row_targets.by] * w,
        "cost": row_targets.targets.cost,
        "candidate": [None if at < 0 else case.ids[at] for at in row_targets.candidate.tolist()],
        "refusal": [str(reason) or None for reason in placed.refusal],
    }
    orders = lists.names(placed.settings)
    return pa.concat_tables([RERANKED.build(**shared, order=[name] * w, **_places(placed, name)) for name in orders])


def _places(placed: ListResult, name: str) -> dict[str, list[Any]]:
    """What is known of the rows that are ranked, by column; None for the others."""
    columns = ("point", "confirmed", "rank", "block", "cost_after", "rank_after", "block_after", "attained")
    empty: dict[str, list[Any]] = {c: [None] * len(placed.rows) for c in (*columns, "offer_confirmed")}
    summary, applied = placed.summary, placed.applied
    if summary is None or applied is None:
        return empty
    order = next(candidate_order for candidate_order in summary.orders if candidate_order.name == name)
    attained = lists.attained(summary.ranked, order, placed.settings.delta)
    # what differs at each counterfactual point, in the user's units
    values, target = summary.ranked.records.values, summary.ranked.records.target
    new_values = applied.moved(target)
    points: list[dict[str, str]] = [{} for _ in values]
    for record, place in zip(*np.nonzero(values != target), strict=True):
        attribute, new_value = _attribute(applied, int(place)), float(new_values[record, applied.column[place]])
        points[record][attribute.name] = attribute.said_offer(
            new_value, bool(target[record, place] < values[record, place])
        )
    by_column: dict[str, list[Any]] = {
        "point": [json.dumps(changes) for changes in points],
        "confirmed": _flags(summary.confirmed),
        "rank": summary.initial.rank.tolist(),
        "block": (summary.initial.block + 1).tolist(),
        "cost_after": order.cost.tolist(),
        "rank_after": order.rank.tolist(),
        "block_after": (order.block + 1).tolist(),
        "attained": [str(rule) or None for rule in attained],
        "offer_confirmed": _flags(summary.offers_confirmed[name]),
    }
    for column, entries in by_column.items():
        for at, value in zip(placed.listed.tolist(), entries, strict=True):
            empty[column][at] = value
    return empty


def _flags(confirmed: "np.ndarray[Any, Any]") -> list[bool | None]:
    return [None if np.isnan(flag) else bool(flag) for flag in confirmed]


def _attribute(applied: Applied, place: int) -> Attribute:
    """The attribute of an input that an offer changes: offers change only inputs that are attributes."""
    attribute = applied.space.attributes[place]
    if attribute is None:
        raise ValueError(f"input {place} represents one category and cannot be changed by an offer")
    return attribute


def offer_rows(case: Case, placed: ListResult) -> pa.Table:
    """Returns a row for each column that an applicant is to change, in each order."""
    summary, applied = placed.summary, placed.applied
    if summary is None or applied is None:
        return OFFERS.empty()
    parts = []
    for name, changes in summary.offers.items():
        n, attributes = len(changes.record), [_attribute(applied, place) for place in changes.place.tolist()]
        ends = zip(attributes, changes.before.tolist(), changes.after.tolist(), changes.falls.tolist(), strict=True)
        texts = [(a.said(before), a.said_offer(after, falls)) for a, before, after, falls in ends]
        parts.append(
            OFFERS.build(
                row_id=case.ids[applied.row[changes.record]],
                decision_maker=[case.decision_maker] * n,
                protected_attribute=[case.attribute] * n,
                order=[name] * n,
                attribute=[attribute.name for attribute in attributes],
                from_value=[before for before, _ in texts],
                to_value=[after for _, after in texts],
                change=changes.after - changes.before,
            )
        )
    return pa.concat_tables(parts)


# --------------------------------------------------------------------------------------------------------------------
# Ranks applicants for every decision maker and protected attribute: tables in, places, offers and measures out.
#
# Scope: the order of the work on one list. Decision makers: ``recourse``. Tables of places and offers: ``rows``.


METHOD = "raguel"

_NEAREST = "costs lead to the nearest applicants decided on favourably, as there is no linear boundary to go to"
_OF_SOURCE = {
    "top": "costs lead to the place of the applicant with the highest score, as methods.raguel.target asks",
    "ar": "costs lead to the points of actionable recourse, as methods.raguel.source asks",
    "mace": "costs lead to the points of least total change (MACE), as methods.raguel.source asks",
    "nearest": "costs lead to the nearest applicants decided on favourably, as methods.raguel.source asks",
}
_ONE_SIDED = "some group has outcomes of one kind only, so that no threshold can be chosen for it"

_THRESHOLDS: dict[str, lists.Constraint] = {
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
    listed: Longs
    """Rows that are to be ranked."""
    candidate: Bools
    decided: Decided
    """What the ratio of recourse costs needs."""
    bands: Longs | None
    """Of the column that gives the blocks their sizes."""
    targets: dict[bytes, RowTargets] = field(default_factory=dict)
    """By what may be changed, as ``Decided.resamples``."""


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
    # `(n,)` the lender's decisions, to which models are fitted.
    lender_decisions = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.LENDER))).to_pandas()
    lender: Bools = lender_decisions.set_index("row_id")["favourable"].loc[ids].to_numpy(bool)
    expected = 0
    for name, frame in decided(decisions, settings.explain):
        maker_decisions = pd.DataFrame({"row_id": ids}).merge(frame, on="row_id", validate="one_to_one")
        rows = _rows(name, maker_decisions, columns, encodings, models, lender, settings)
        for attribute in (protected for protected in settings.protected if groups[protected.name].compared):
            case = Case(METHOD, name, attribute.name, ids, groups[attribute.name])
            rng = np.random.default_rng([settings.seed, crc32(f"rerank|{attribute.name}".encode())])
            placed, tallies, aggregates = _of_case(case, rows, attribute.columns, settings, rng)
            origin = Origin(METHOD, name, attribute.name, case.grouped.groups)
            tables[RERANKED.name].append(reranked_rows(case, placed))
            tables[OFFERS.name].append(offer_rows(case, placed))
            tables[TALLIES.name].append(origin.tallies(tallies))
            tables[AGGREGATES.name].append(origin.aggregates(aggregates))
            expected += len(rows.listed) * len(lists.names(settings.raguel))
    return Produced({name: pa.concat_tables(parts) for name, parts in tables.items()}, rows_in=expected)


def _rows(
    name: str,
    maker_decisions: pd.DataFrame,
    columns: Columns,
    encodings: pa.Table,
    models: pa.Table,
    lender: Bools,
    settings: RerankSettings,
) -> _Rows:
    factual, candidate = explained_and_candidates(maker_decisions, name, settings.explain)
    favourable, open_ = maker_decisions["favourable"].to_numpy(), maker_decisions["explained"].to_numpy()
    decision_table = pa.Table.from_pandas(maker_decisions, preserve_index=False)
    model_table = models if name == "model" else MODELS.empty()
    maker = maker_of(name, settings.model, model_table, columns, encodings, decision_table)
    errors_alone = name == DecisionMaker.MODEL and settings.explain.factuals == "false_negatives"
    eligible = open_ & maker_decisions["outcome"].to_numpy() if errors_alone else open_
    fitted, raguel = None, settings.raguel
    if name == DecisionMaker.MODEL:
        fitted = refits(maker.inputs.x, lender, open_, settings.model, raguel.refits, settings.seed)
    bands = None
    if raguel.block_column is not None:  # categories, bins, or values where numbers are not cut into bins
        at = encodings["feature"].to_pylist().index(raguel.block_column)
        bands = np.unique(encoded(columns, encodings)[:, at], return_inverse=True)[1].astype(np.int64)
    return _Rows(
        maker=maker,
        columns=columns,
        encodings=encodings,
        favourable=favourable,
        outcome=maker_decisions["outcome"].to_numpy(),
        open=open_,
        listed=np.flatnonzero(open_ if raguel.listed == "all" else factual),
        candidate=candidate,
        decided=Decided(maker.inputs.x, ~favourable & eligible, eligible, maker.linear is not None, fitted),
        bands=bands,
    )


def _of_case(
    case: Case, rows: _Rows, own_columns: tuple[str, ...], settings: RerankSettings, rng: np.random.Generator
) -> tuple[ListResult, list[Tally], list[Aggregate]]:
    """One decision maker and one protected attribute."""
    attributes = attributes_of(rows.maker, rows.columns, rows.encodings, settings.recourse, own_columns)
    space = space_of(rows.maker.inputs.x, attributes)
    key = space.actions.changeable.tobytes()
    if key not in rows.targets:
        rows.targets[key] = _targets(rows, space, settings)
    row_targets = rows.targets[key]
    group, reached = case.grouped.group[rows.listed], row_targets.targets.reached
    few = np.bincount(group[reached], minlength=int(group.max(initial=0)) + 1) < settings.raguel.fewest
    refusal = np.where(reached & few[group], str(Refusal.TOO_FEW_IN_CATEGORY), row_targets.refusal)
    tallies = [
        replace(tally, group=number)
        for number in np.unique(group).tolist()
        for tally in statistics.unreached(~reached[group == number])
    ]
    positions = np.flatnonzero(refusal == "")
    placed = ListResult(rows.listed, positions, row_targets, refusal, settings.raguel)
    cost = np.full(len(rows.favourable), np.nan)
    cost[rows.listed] = row_targets.targets.cost
    level = settings.bootstrap.level
    aggregates = ratios(rows.decided, cost, space, case.grouped, settings.model, settings.raguel, level)
    if not len(positions):
        return placed, tallies, aggregates
    summary, applied = _summary(rows, space, row_targets, positions, case.grouped, settings, rng)
    for number in np.unique(summary.group).tolist():
        tallies += [replace(t, group=number) for t in statistics.tallies(summary, number)]
        aggregates += statistics.aggregates_values(summary, number, settings.raguel, settings.bootstrap.draws, rng)
    return replace(placed, summary=summary, applied=applied), tallies, aggregates


def _targets(rows: _Rows, space: Space, settings: RerankSettings) -> RowTargets:
    """The counterfactual points of the rows to be ranked."""
    values = space.values(rows.maker.inputs.x)
    row_values, boundaries = values[rows.listed], rows.maker.boundaries(space)
    source, fold = settings.raguel.source, rows.maker.fold[rows.listed]
    if settings.raguel.target == "top":
        open_rows = np.flatnonzero(rows.open)
        to_top = lists.to_top(row_values, space.actions, rows.maker.scores[open_rows], values[open_rows])
        has_candidate = to_top.candidate >= 0
        to_top.candidate[has_candidate] = open_rows[to_top.candidate[has_candidate]]
        return to_top
    if boundaries is not None and source == "exact":
        return lists.to_boundaries(row_values, fold, boundaries, space.actions, settings.raguel)
    if boundaries is not None and source != "nearest":
        return lists.of_source(row_values, fold, boundaries, space.actions, values, source)

    def favours(chosen: Longs, points: Floats) -> Bools:
        return _applied(rows, space, rows.listed[chosen]).favoured(points)

    candidates = np.flatnonzero(rows.candidate)
    model = None if rows.maker.answers is None else favours
    nearest = lists.to_nearest(row_values, values[candidates], space.actions, settings.raguel.asked, model)
    has_candidate = nearest.candidate >= 0
    nearest.candidate[has_candidate] = candidates[nearest.candidate[has_candidate]]
    return nearest


def _applied(rows: _Rows, space: Space, row: Longs) -> Applied:
    inputs = rows.maker.inputs
    return Applied(space, inputs.column, row, rows.columns.values[row], inputs.x[row], rows.maker.answers)


def _summary(
    rows: _Rows,
    space: Space,
    row_targets: RowTargets,
    positions: Longs,
    grouped: Grouped,
    settings: RerankSettings,
    rng: np.random.Generator,
) -> tuple[ListSummary, Applied]:
    """The list of the rows that are ranked, re-ranked in every way."""
    row, reached = rows.listed[positions], row_targets.targets
    applied, raguel = _applied(rows, space, row), settings.raguel
    targets = Targets(reached.point[positions], reached.cost[positions], reached.rate[positions])
    values, group = space.values(applied.x), grouped.group[row]
    records = make_records(values, targets, group, space.actions, row_targets.boundary, raguel.together)
    sizes = lists.block_sizes(len(row), raguel, None if rows.bands is None else rows.bands[row])
    ranked = Ranked(records, len(grouped.groups), grouped.reference, sizes)
    orders, unfavourable = tuple(lists.orders(ranked, raguel, rng)), ~rows.favourable[row]
    # by how much each offer should raise the score; 0 without a linear form to count on
    gains = {order.name: np.zeros(len(row)) for order in orders}
    for number, boundary in (rows.maker.boundaries(space) or {}).items():
        fold_rows = rows.maker.fold[row] == number
        for order in orders:
            gains[order.name][fold_rows] = (order.values - values)[fold_rows] @ boundary.slope
    by_nearest = row_targets.by == "nearest" and rows.maker.linear is None
    summary = ListSummary(
        ranked=ranked,
        initial=lists.initial(ranked),
        orders=orders,
        offers={order.name: offers(applied, ranked, order) for order in orders},
        columns=rows.columns.names,
        confirmed=applied.confirmed(targets.point, unfavourable),
        offers_confirmed={
            order.name: applied.offers_confirmed(order, gains[order.name], unfavourable) for order in orders
        },
        cells=tuple(lists.grid(ranked, raguel)),
        thresholded=tuple(_thresholded(rows, row, grouped, settings.seed)),
        note=_NEAREST if by_nearest else _OF_SOURCE.get(row_targets.by, ""),
    )
    return summary, applied


def _thresholded(rows: _Rows, row: Longs, grouped: Grouped, seed: int) -> Iterator[Thresholded]:
    """The lists that thresholds by group would have left, on the scores of the same model."""
    scores = rows.maker.scores
    at = np.flatnonzero(rows.open & np.isin(grouped.group, grouped.group[row]))
    if not len(at) or np.isnan(scores[at]).any():
        return
    group = grouped.group[at]
    for name, constraint in _THRESHOLDS.items():
        if lists.one_sided(rows.outcome[at], group):
            yield Thresholded(name, np.zeros(len(row), np.bool_), np.zeros(0, np.int64), _ONE_SIDED)
            continue
        favourable = rows.favourable.copy()
        favourable[at] = lists.decided(scores[at], rows.outcome[at], group, constraint, seed)
        other = grouped.group[favourable != rows.favourable]
        yield Thresholded(name, ~favourable[row], np.bincount(other, minlength=len(grouped.groups)).astype(np.int64))
