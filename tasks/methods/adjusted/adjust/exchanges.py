"""From a given model's exchanged decisions to rows: the effect on each group, or why the attribute is not exchanged."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.terms import DecisionMaker
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.exchanged import Exchange, effects
from tasks.methods.adjusted.tables import ADJUSTED_EXCHANGED
from tasks.preprocessing.groups import Grouped, groups_of


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
        own = decisions.filter(pc.equal(decisions["decision_maker"], str(DecisionMaker.MODEL)))
        groups = groups_of(memberships, own["row_id"].to_numpy(), settings.protected)
        for each in exchanges.to_pylist():
            mine = decided.filter(pc.equal(decided["protected_attribute"], each["protected_attribute"]))
            rows += _rows(each, own, mine, groups[each["protected_attribute"]], settings.level)
    return ADJUSTED_EXCHANGED.build(**{c.name: [row.get(c.name) for row in rows] for c in ADJUSTED_EXCHANGED.columns})


def _rows(
    each: dict[str, Any], own: pa.Table, decided: pa.Table, grouped: Grouped, level: float
) -> Iterator[dict[str, Any]]:
    """A row for each group other than the reference group; the stage ``score`` wrote both tables in one order."""
    whose = {"decision_maker": str(DecisionMaker.MODEL), **each}
    denied = ~own["favourable"].to_numpy()
    if each["reason"]:
        for number, group in enumerate(grouped.groups):
            of = grouped.group == number
            if number != grouped.reference:
                yield whose | {"group": group, "n": int(of.sum()), "events": int(np.sum(denied & of))}
        return
    there = ~decided["favourable"].to_numpy()
    for found in effects(denied, there, grouped.group, len(grouped.groups), grouped.reference, level):
        yield whose | {"group": grouped.groups[found.group], **_numbers(found)}


def _numbers(found: Exchange) -> dict[str, Any]:
    of = found.changes
    counts = {"n": of.n, "events": found.denied, "raised": of.raised, "lowered": of.lowered}
    return counts | {"effect": found.value, "low": found.low, "high": found.high}
