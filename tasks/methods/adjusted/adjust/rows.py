"""Rows of the ladder's tables, and applications as arrays."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.column import CROSS, NO_BLOCK, PLACE, ColumnSpec
from schemas.audit.spec import Protected
from schemas.table import Table
from schemas.terms import DecisionMaker, Kind
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.comparators import Candidates, compare, pair
from tasks.methods.adjusted.algorithm.design import Applications, Block, Control
from tasks.methods.adjusted.algorithm.detection import TELLING, effects, telling
from tasks.methods.adjusted.algorithm.estimators import Effect
from tasks.methods.adjusted.algorithm.ladder import Ladder
from tasks.methods.adjusted.algorithm.sensitivity import gamma_of_pairs, p_of_pairs
from tasks.methods.adjusted.tables import (
    ADJUSTED,
    ADJUSTED_BENCHMARKS,
    ADJUSTED_EXCHANGED,
    ADJUSTED_INTERACTIONS,
    ADJUSTED_ROWS,
    ADJUSTED_SUPPORT,
    COMPARATORS,
    COMPARED_FILES,
)
from tasks.numerics.arrays import Bools, Ints
from tasks.preprocessing.columns import Grouped, codes_of, groups_of

# --------------------------------------------------------------------------------------------------------------------
# Applications as arrays: decisions, groups, and control columns in the user's units, with what is missing.


@dataclass(frozen=True)
class Case:
    """The applications of one decision maker and one protected attribute."""

    decision_maker: str
    attribute: str
    applications: Applications


def cases(
    applications: pa.Table, decisions: pa.Table, memberships: pa.Table, left_out: set[str], settings: AdjustSettings
) -> Iterator[Case]:
    """One case for each decision maker with explained decisions and each protected attribute.

    Args:
        applications: as ingested.
        decisions: of the lender and of the model.
        memberships: groups.
        left_out: controls that the decision sets.
        settings: of the stage.
    """
    for maker, rows, denied in _decided(applications, decisions, settings):
        ids = rows["row_id"].to_numpy()
        controls_of_block = {
            block.name: tuple(
                control(rows, name, settings.columns[name]) for name in block.columns if name not in left_out
            )
            for block in settings.blocks
        }
        own_blocks = tuple(Block(name, controls) for name, controls in controls_of_block.items() if controls)
        groups = groups_of(memberships, ids, settings.protected)
        cluster = _clusters(rows, settings)
        for p in (protected for protected in settings.protected if groups[protected.name].compared):
            other_attributes = _others(rows, memberships, p, settings) if settings.ladder.cross else ()
            blocks = (*own_blocks, Block(CROSS, other_attributes)) if other_attributes else own_blocks
            yield Case(maker, p.name, Applications(denied, **vars(groups[p.name]), blocks=blocks, cluster=cluster))


def judged(settings: AdjustSettings, case: Case) -> AdjustSettings:
    """The settings with the name of the primary rung. A declared rung is used even if its block is missing.

    Without a declared one it is the last one that is left where no column of its block is.
    """
    if settings.ladder.primary is not None:
        return settings
    names = [block.name for block in case.applications.blocks if block.name not in (PLACE, CROSS)]
    block_names = [block.name for block in case.applications.blocks]
    primary = settings.primary if settings.primary in block_names else names[-1] if names else NO_BLOCK
    ladder = settings.ladder.model_copy(update={"primary": None if primary == NO_BLOCK else primary})
    return settings.model_copy(update={"primary": primary, "ladder": ladder})


def _decided(
    applications: pa.Table, decisions: pa.Table, settings: AdjustSettings
) -> Iterator[tuple[str, pa.Table, Bools]]:
    """The decision maker, the applications of the decisions, and the denied applications.

    The lender decided on every application, the model on the complete ones; of its decisions those count which it
    made on rows that it was not fitted to.
    """
    if DecisionMaker.LENDER in settings.explain.decision_makers:
        yield str(DecisionMaker.LENDER), applications, ~applications["favourable"].to_numpy()
    of_model = pc.and_(decisions["explained"], pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
    by_model = decisions.filter(of_model)
    if DecisionMaker.MODEL in settings.explain.decision_makers and by_model.num_rows:
        places = pc.index_in(applications["row_id"], value_set=by_model["row_id"].combine_chunks())
        rows = applications.filter(places.is_valid())
        yield str(DecisionMaker.MODEL), rows, ~by_model["favourable"].take(places.drop_null()).to_numpy()


def control(rows: pa.Table, name: str, column: ColumnSpec) -> Control:
    """A column as a control: numbers as they are, categories by number in their order.

    One with two values is a number, 0 for the lower: it has no categories that could be too rare to tell apart.
    """
    if column.type is Kind.CONTINUOUS:
        values = rows[name].to_numpy().astype(np.float64)
        return Control(name, "number", values, scale=column.scale)
    category_control = _category(name, rows[name].to_pandas(), column.order)
    return Control(name, "number", category_control.values) if column.type is Kind.BINARY else category_control


def _category(name: str, values: pd.Series, order: tuple[str, ...]) -> Control:
    categories = order or tuple(sorted(values.dropna().unique()))
    codes = pd.Categorical(values, categories=list(categories)).codes.astype(np.float64)
    return Control(name, "category", np.where(codes < 0, np.nan, codes), categories, ordered=bool(order))


def _others(rows: pa.Table, memberships: pa.Table, p: Protected, settings: AdjustSettings) -> tuple[Control, ...]:
    """The other protected attributes as controls, those excepted that share a column, and columns like age."""
    apart = [other for other in settings.protected if set(other.columns).isdisjoint(p.columns)]
    ids: np.ndarray[Any, Any] = rows["row_id"].to_numpy()
    coded = codes_of(memberships, ids, [other.name for other in apart])
    groups = (
        Control(other.name, "category", codes.astype(np.float64), names)
        for other, (codes, names) in zip(apart, coded, strict=True)
    )
    personal_columns: Mapping[str, ColumnSpec] = {name: settings.columns[name] for name in settings.personal}
    return (*groups, *(control(rows, name, column) for name, column in personal_columns.items()))


def _clusters(rows: pa.Table, settings: AdjustSettings) -> Ints | None:
    """The cluster of each row, -1 where it has none.

    None for independent rows, and for those of a single lender where the spec does not ask for clusters.
    """
    if settings.cluster is None:
        return None
    codes, clusters = pd.factorize(rows[settings.cluster].to_pandas())
    if settings.ladder.cluster is None and len(clusters) < 2:
        return None
    cluster_codes: Ints = codes.astype(np.int32)
    return cluster_codes


# --------------------------------------------------------------------------------------------------------------------
# From a given model's exchanged decisions to rows: the effect on each group, or why the attribute is not exchanged.


def exchanged(
    decisions: pa.Table, memberships: pa.Table, exchanges: pa.Table, decided: pa.Table, settings: AdjustSettings
) -> pa.Table:
    """The table ``adjusted_exchanged``; without a row where the model is not explained, or takes no attribute.

    Args:
        decisions: of all decision makers.
        memberships: groups.
        exchanges: attributes that the model takes.
        decided: decisions with an attribute exchanged.
        settings: of the stage.
    """
    rows: list[dict[str, Any]] = []
    if DecisionMaker.MODEL in settings.explain.decision_makers and exchanges.num_rows:
        model_decisions = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
        groups = groups_of(memberships, model_decisions["row_id"].to_numpy(), settings.protected)
        for exchange in exchanges.to_pylist():
            attribute_decisions = decided.filter(
                pc.equal(decided["protected_attribute"], exchange["protected_attribute"])
            )
            rows += _rows(
                exchange, model_decisions, attribute_decisions, groups[exchange["protected_attribute"]], settings.level
            )
    return ADJUSTED_EXCHANGED.build(**{c.name: [row.get(c.name) for row in rows] for c in ADJUSTED_EXCHANGED.columns})


def _rows(
    record: dict[str, Any], model_decisions: pa.Table, decided: pa.Table, grouped: Grouped, level: float
) -> Iterator[dict[str, Any]]:
    """A row for each group other than the reference group; the stage ``score`` wrote both tables in one order."""
    identity = {"decision_maker": str(DecisionMaker.MODEL), **record}
    denied = ~model_decisions["favourable"].to_numpy()
    if record["reason"]:
        for number, group in enumerate(grouped.groups):
            of = grouped.group == number
            if number != grouped.reference:
                yield identity | {"group": group, "n": int(of.sum()), "events": int(np.sum(denied & of))}
        return
    exchanged_denied = ~decided["favourable"].to_numpy()
    for effect in effects(denied, exchanged_denied, grouped.group, len(grouped.groups), grouped.reference, level):
        changes = effect.changes
        yield identity | {
            "group": grouped.groups[effect.group],
            "n": changes.n,
            "events": effect.denied,
            "raised": changes.raised,
            "lowered": changes.lowered,
            "effect": effect.value,
            "low": effect.low,
            "high": effect.high,
        }


# --------------------------------------------------------------------------------------------------------------------
# Comparator files: pairs of a denied and an approved application, and how many denied applications have one.


def comparator_rows(
    applications: pa.Table, memberships: pa.Table, settings: AdjustSettings
) -> Iterator[tuple[str, pa.Table]]:
    """The tables ``compared_files`` and ``comparators`` of each protected attribute, by the lender's decisions.

    Args:
        applications: as ingested, without copies.
        memberships: groups.
        settings: of the stage.
    """
    if settings.ladder.comparators is None:
        return
    controls = [control(applications, name, column) for name, column in settings.compared.items()]
    turned = [settings.directed[c.name] * c.values for c in controls]
    values = np.column_stack([np.empty((applications.num_rows, 0)), *turned])
    complete = np.isfinite(values).all(axis=1)
    rows = applications.filter(pa.array(complete))
    denied, ids = ~rows["favourable"].to_numpy(), rows["row_id"].to_numpy()
    every = codes_of(memberships, ids, [p.name for p in settings.protected])
    for p, (coded, groups) in zip(settings.protected, every, strict=True):
        rng = np.random.default_rng([settings.seed, crc32(f"comparators|{p.name}".encode())])
        reference = groups.index(p.reference) if p.reference in groups else -1
        of = Candidates(values[complete], denied, coded)
        compared_pairs = list(compare(of, reference, settings.ladder.comparators.most, rng)) if controls else []
        columns = JOINED.join(c.name for c in controls)
        of_groups, shares = [], []
        for c in compared_pairs:
            row = {"protected_attribute": p.name, "group": groups[c.group], "to_group": groups[c.to_group]}
            of_groups.append((c, row))
            n = len(c.denied)
            of_sample = f"a sample of {n:,} of {c.of:,} denied applicants" if n < c.of else ""
            counts = {"columns": columns, "n": n, "events": c.matched, "matched": c.matched / n, "reason": of_sample}
            if c.group != reference:
                matched = pair(of, c.group, reference, rng)
                signs = matched.member_denied, matched.other_denied
                counts |= {"pairs": matched.n, "member_denied": signs[0], "other_denied": signs[1]}
                counts |= {"p": p_of_pairs(*signs), "gamma": gamma_of_pairs(*signs)}
            shares.append(row | counts)
        yield COMPARED_FILES.name, table_of(COMPARED_FILES, shares)
        for c, row in of_groups:
            sizes = [len(nearest) for nearest in c.nearest]
            n = sum(sizes)
            yield (
                COMPARATORS.name,
                COMPARATORS.build(
                    row_id=np.repeat(ids[c.denied], sizes),
                    rank=np.concatenate([np.arange(1, count + 1) for count in sizes]),
                    other_row_id=ids[np.concatenate(c.nearest)],
                    distance=np.concatenate(c.distances),
                    **{name: pa.repeat(value, n) for name, value in row.items()},
                ),
            )


# --------------------------------------------------------------------------------------------------------------------
# The ladder as tables: a row for each estimate, each support, test and benchmark, and for what is left out.


JOINED = " + "
"""Between the names of a rung's blocks."""


def rows_of(case: Case, ladder: Ladder, settings: AdjustSettings) -> dict[str, pa.Table]:
    """The tables of one decision maker and protected attribute."""
    applications, block_of_control = case.applications, telling(case.applications)
    blocks = {
        n: JOINED.join(block.name for block in applications.blocks[:n]) for n in range(len(applications.blocks) + 1)
    }
    controls = {control.name: control for block in applications.blocks for control in block.controls}
    interactions = []
    for interaction in ladder.interactions:  # numbers in the user's units, categories by name
        names = controls[interaction.column].categories
        at = None if math.isnan(interaction.at) else names[int(interaction.at)] if names else f"{interaction.at:.6g}"
        interactions.append(_of_group(case, interaction) | {"at": at})
    rows: Mapping[Table, Iterable[Mapping[str, Any]]] = {
        ADJUSTED: (_effect(case, effect, settings, block_of_control) for effect in ladder.effects),
        ADJUSTED_SUPPORT: (_of_group(case, support) | {"blocks": blocks[support.rung]} for support in ladder.support),
        ADJUSTED_INTERACTIONS: interactions,
        ADJUSTED_BENCHMARKS: (row for effect in ladder.effects for row in _benchmarks(case, effect, settings)),
        ADJUSTED_ROWS: (*_used(case, ladder), *(_count_row(case, *astuple(left_out)) for left_out in ladder.left_out)),
    }
    return {table.name: table_of(table, list(table_rows)) for table, table_rows in rows.items()}


def of_columns(case: Case, reasons: Mapping[str, str]) -> dict[str, pa.Table]:
    """The controls that the ladder leaves out because the decision sets them."""
    rows = [_count_row(case, reason, -1, 0, 0) for reason in reasons.values()]
    return {ADJUSTED_ROWS.name: table_of(ADJUSTED_ROWS, rows)}


def _effect(
    case: Case, effect: Effect, settings: AdjustSettings, block_of_control: Mapping[str, str]
) -> dict[str, Any]:
    estimator = settings.ladder.judged if case.decision_maker == DecisionMaker.LENDER else "logit"
    is_judged = (effect.estimator, effect.average_over) == (estimator, "own")
    telling_ones = ", ".join(name for name, block in block_of_control.items() if block in effect.blocks)
    reasons = [effect.reason, f"{TELLING}: {telling_ones}" if telling_ones else ""]
    # how far a column of unit strength moves the linear effect; NaN where that was not fitted
    unseen = math.nan
    if effect.unseen is not None:
        unseen = effect.unseen.estimate.se * math.sqrt(effect.unseen.estimate.df)
    return _of_group(case, effect) | {
        "blocks": JOINED.join(effect.blocks),
        "form": settings.ladder.form,
        "primary": is_judged and _is_primary(effect, settings),
        "strongest": effect.strongest or None,
        "unseen": unseen,
        "reason": "; ".join(reason for reason in reasons if reason),
        "method": effect.fit or None,
    }


def _is_primary(effect: Effect, settings: AdjustSettings) -> bool:
    return (effect.blocks[-1] if effect.blocks else NO_BLOCK) == settings.primary


def _benchmarks(case: Case, effect: Effect, settings: AdjustSettings) -> Iterator[dict[str, Any]]:
    """The linear effect of the primary rung, adjusted for unseen confounders as strong as the controls."""
    if effect.unseen is None or not _is_primary(effect, settings):
        return
    for benchmark in effect.unseen.benchmarks:
        ends = (math.nan, math.nan) if benchmark.effect is None else benchmark.effect.interval(settings.level)
        explained = effect.unseen.columns[benchmark.column]
        yield _of_group(case, effect) | {
            "blocks": JOINED.join(effect.blocks),
            "column": benchmark.column,
            "times": benchmark.times,
            "column_of_denial": explained.outcome,
            "column_of_group": explained.group,
            "of_denial": None if benchmark.confounder is None else benchmark.confounder.outcome,
            "of_group": None if benchmark.confounder is None else benchmark.confounder.group,
            "value": None if benchmark.effect is None else benchmark.effect.value,
            "low": ends[0],
            "high": ends[1],
        }


def _of_group(case: Case, row: Any) -> dict[str, Any]:
    """A dataclass of the ladder as a row."""
    return {**vars(row), **_identity(case), "group": case.applications.groups[row.group]}


def _used(case: Case, ladder: Ladder) -> Iterator[dict[str, Any]]:
    """Rows and denials of each group without the rows left out."""
    applications = case.applications
    for number in range(len(applications.groups)):
        in_group = applications.group == number
        out = [left_out for left_out in ladder.left_out if left_out.group == number]
        rows = int(in_group.sum()) - sum(left_out.rows for left_out in out)
        denied = int(applications.denied[in_group].sum()) - sum(left_out.denied for left_out in out)
        if rows:
            yield _count_row(case, "", number, rows, denied)


def _count_row(case: Case, reason: str, group: int, rows: int, denied: int) -> dict[str, Any]:
    name = case.applications.groups[group] if group >= 0 else None
    counts = {"group": name, "used": not reason, "reason": reason, "rows": rows, "denied": denied}
    return _identity(case) | counts


def _identity(case: Case) -> dict[str, str]:
    return {"decision_maker": case.decision_maker, "protected_attribute": case.attribute}


def table_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table declares them; a number that is not finite becomes a missing value."""
    values = {c.name: [row.get(c.name) for row in rows] for c in table.columns}
    return table.build(
        **{
            name: [None if isinstance(value, float) and not math.isfinite(value) else value for value in column]
            for name, column in values.items()
        }
    )
