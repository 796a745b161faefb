"""Applications as arrays: decisions, groups, and control columns in the user's units, with what is missing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.column import ColumnSpec
from schemas.audit.spec import Protected
from schemas.blocks import CROSS, NO_BLOCK, PLACE
from schemas.terms import DecisionMaker, Kind
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Block, Control
from tasks.numerics.arrays import Bools, Ints
from tasks.preprocessing.groups import groups_of


@dataclass(frozen=True)
class Case:
    """The applications of one decision maker and one protected attribute."""

    decision_maker: str
    attribute: str
    applications: Applications


def cases(
    applications: pa.Table, decisions: pa.Table, memberships: pa.Table, left_out: set[str], settings: AdjustSettings
) -> Iterator[Case]:
    """One case for each decision maker whose decisions are explained, and each protected attribute.

    Args:
        applications: as ingested.
        decisions: of the lender and of the model.
        memberships: groups.
        left_out: controls that the decision sets.
        settings: of the stage.
    """
    for maker, rows, denied in _decided(applications, decisions, settings):
        ids = rows["row_id"].to_numpy()
        own = tuple(_blocks(rows, left_out, settings))
        groups = groups_of(memberships, ids, settings.protected)
        cluster = _clusters(rows, settings)
        for p in (each for each in settings.protected if groups[each.name].compared):
            others = _others(rows, memberships, p, settings) if settings.ladder.cross else ()
            blocks = (*own, Block(CROSS, others)) if others else own
            yield Case(maker, p.name, Applications(denied, **vars(groups[p.name]), blocks=blocks, cluster=cluster))


def judged(settings: AdjustSettings, case: Case) -> AdjustSettings:
    """The settings with the primary rung by name: one that the spec declares, whether its block is there or not.

    Without a declared one it is the last one that is left where no column of its block is.
    """
    if settings.ladder.primary is not None:
        return settings
    names = [block.name for block in case.applications.blocks if block.name not in (PLACE, CROSS)]
    known = [block.name for block in case.applications.blocks]
    primary = settings.primary if settings.primary in known else names[-1] if names else NO_BLOCK
    ladder = settings.ladder.model_copy(update={"primary": None if primary == NO_BLOCK else primary})
    return settings.model_copy(update={"primary": primary, "ladder": ladder})


def _decided(
    applications: pa.Table, decisions: pa.Table, settings: AdjustSettings
) -> Iterator[tuple[str, pa.Table, Bools]]:
    """Whose decisions, the applications that they are on, and which of them were denied.

    The lender decided on every application, the model on the complete ones; of its decisions those count which it
    made on rows that it was not fitted to.
    """
    made = decisions.filter(decisions["explained"]).select(["row_id", "decision_maker", "favourable"]).to_pandas()
    if DecisionMaker.LENDER in settings.explain.decision_makers:
        yield str(DecisionMaker.LENDER), applications, ~applications["favourable"].to_numpy()
    model = made[made["decision_maker"] == str(DecisionMaker.MODEL)].set_index("row_id")["favourable"]
    if DecisionMaker.MODEL in settings.explain.decision_makers and len(model):
        ids = applications["row_id"].to_pandas()
        rows = applications.filter(pa.array(ids.isin(model.index)))
        yield str(DecisionMaker.MODEL), rows, ~model.loc[rows["row_id"].to_pylist()].to_numpy(dtype=bool)


def _blocks(rows: pa.Table, left_out: set[str], settings: AdjustSettings) -> Iterator[Block]:
    for block in settings.blocks:
        names = [name for name in block.columns if name not in left_out]
        if names:
            yield Block(block.name, tuple(control(rows, name, settings.columns[name]) for name in names))


def control(rows: pa.Table, name: str, column: ColumnSpec) -> Control:
    """A column as a control: numbers as they are, categories by number in their order.

    One with two values is a number, 0 for the lower: it has no categories that could be too rare to tell apart.
    """
    if column.type is Kind.CONTINUOUS:
        values = rows[name].to_numpy().astype(np.float64)
        return Control(name, "number", values, scale=column.scale)
    found = _category(name, rows[name].to_pandas(), column.order)
    return Control(name, "number", found.values) if column.type is Kind.BINARY else found


def _category(name: str, values: pd.Series, order: tuple[str, ...]) -> Control:
    known = order or tuple(sorted(values.dropna().unique()))
    codes = pd.Categorical(values, categories=list(known)).codes.astype(np.float64)
    return Control(name, "category", np.where(codes < 0, np.nan, codes), known, ordered=bool(order))


def _others(rows: pa.Table, memberships: pa.Table, p: Protected, settings: AdjustSettings) -> tuple[Control, ...]:
    """The other protected attributes as controls, those excepted that share a column, and columns like age."""
    apart = [other for other in settings.protected if set(other.columns).isdisjoint(p.columns)]
    ids: np.ndarray[Any, Any] = rows["row_id"].to_numpy()
    wide = memberships.to_pandas().pivot(index="row_id", columns="protected_attribute", values="group").loc[ids]
    groups = (_category(other.name, wide[other.name].reset_index(drop=True), ()) for other in apart)
    own: Mapping[str, ColumnSpec] = {name: settings.columns[name] for name in settings.personal}
    return (*groups, *(control(rows, name, column) for name, column in own.items()))


def _clusters(rows: pa.Table, settings: AdjustSettings) -> Ints | None:
    """The cluster of each row, -1 where it has none.

    None for independent rows, and for those of a single lender where the spec does not ask for clusters.
    """
    if settings.cluster is None:
        return None
    codes, known = pd.factorize(rows[settings.cluster].to_pandas())
    if settings.ladder.cluster is None and len(known) < 2:
        return None
    found: Ints = codes.astype(np.int32)
    return found
