"""The ladder as tables: a row for each estimate, each support, test and benchmark, and for what is left out."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import pyarrow as pa

from schemas.blocks import NO_BLOCK
from schemas.table import Table
from tasks.methods.adjusted.adjust.columns import Case
from tasks.methods.adjusted.adjust.settings import AdjustSettings
from tasks.methods.adjusted.algorithm.ladder.effect import Effect
from tasks.methods.adjusted.algorithm.ladder.interactions import Interaction
from tasks.methods.adjusted.algorithm.ladder.rungs import Ladder
from tasks.methods.adjusted.algorithm.telling import TELLING, telling
from tasks.methods.adjusted.tables import (
    ADJUSTED,
    ADJUSTED_BENCHMARKS,
    ADJUSTED_INTERACTIONS,
    ADJUSTED_ROWS,
    ADJUSTED_SUPPORT,
)

JOINED = " + "
"""Between the names of a rung's blocks."""


def rows_of(case: Case, ladder: Ladder, settings: AdjustSettings) -> dict[str, pa.Table]:
    """The tables of one decision maker and protected attribute."""
    given, told = case.applications, telling(case.applications)
    blocks = {n: JOINED.join(block.name for block in given.blocks[:n]) for n in range(len(given.blocks) + 1)}
    rows: Mapping[Table, Iterable[Mapping[str, Any]]] = {
        ADJUSTED: (_effect(case, effect, settings, told) for effect in ladder.effects),
        ADJUSTED_SUPPORT: (_of_group(case, each) | {"blocks": blocks[each.rung]} for each in ladder.support),
        ADJUSTED_INTERACTIONS: (_interaction(case, each) for each in ladder.interactions),
        ADJUSTED_BENCHMARKS: (row for effect in ladder.effects for row in _benchmarks(case, effect, settings)),
        ADJUSTED_ROWS: (*_used(case, ladder), *(_counted(case, *astuple(each)) for each in ladder.left_out)),
    }
    return {table.name: _table(table, list(found)) for table, found in rows.items()}


def of_columns(case: Case, reasons: Mapping[str, str]) -> dict[str, pa.Table]:
    """The controls that the ladder leaves out because the decision sets them."""
    rows = [_counted(case, reason, -1, 0, 0) for reason in reasons.values()]
    return {ADJUSTED_ROWS.name: _table(ADJUSTED_ROWS, rows)}


def _effect(case: Case, effect: Effect, settings: AdjustSettings, told: Mapping[str, str]) -> dict[str, Any]:
    own_logit = (effect.estimator, effect.average_over) == ("logit", "own")
    telling_ones = ", ".join(name for name, block in told.items() if block in effect.blocks)
    reasons = [effect.reason, f"{TELLING}: {telling_ones}" if telling_ones else ""]
    return _of_group(case, effect) | {
        "blocks": JOINED.join(effect.blocks),
        "form": settings.ladder.form,
        "primary": own_logit and _is_primary(effect, settings),
        "strongest": effect.strongest or None,
        "unseen": _unit_bias(effect),
        "reason": "; ".join(each for each in reasons if each),
        "method": effect.fit or None,
    }


def _unit_bias(effect: Effect) -> float:
    """How far a column of unit strength moves the linear effect; NaN where it was not fitted."""
    if effect.unseen is None:
        return math.nan
    return effect.unseen.estimate.se * math.sqrt(effect.unseen.estimate.df)


def _is_primary(effect: Effect, settings: AdjustSettings) -> bool:
    return (effect.blocks[-1] if effect.blocks else NO_BLOCK) == settings.primary


def _benchmarks(case: Case, effect: Effect, settings: AdjustSettings) -> Iterator[dict[str, Any]]:
    """The linear effect of the primary rung beside unseen columns as strong as the controls."""
    if effect.unseen is None or not _is_primary(effect, settings):
        return
    for each in effect.unseen.benchmarks:
        ends = (math.nan, math.nan) if each.effect is None else each.effect.interval(settings.level)
        explained = effect.unseen.columns[each.column]
        yield _of_group(case, effect) | {
            "blocks": JOINED.join(effect.blocks),
            "column": each.column,
            "times": each.times,
            "column_of_denial": explained.outcome,
            "column_of_group": explained.group,
            "of_denial": None if each.confounder is None else each.confounder.outcome,
            "of_group": None if each.confounder is None else each.confounder.group,
            "value": None if each.effect is None else each.effect.value,
            "low": ends[0],
            "high": ends[1],
        }


def _interaction(case: Case, found: Interaction) -> dict[str, Any]:
    """A number stands in the user's units, a category by its name."""
    controls = {each.name: each for block in case.applications.blocks for each in block.controls}
    names = controls[found.column].categories
    at = None if math.isnan(found.at) else names[int(found.at)] if names else f"{found.at:.6g}"
    return _of_group(case, found) | {"at": at}


def _of_group(case: Case, row: Any) -> dict[str, Any]:
    """A dataclass of the ladder as a row."""
    return {**vars(row), **_whose(case), "group": case.applications.groups[row.group]}


def _used(case: Case, ladder: Ladder) -> Iterator[dict[str, Any]]:
    """What is left of each group without the rows left out."""
    given = case.applications
    for number in range(len(given.groups)):
        own, out = given.group == number, [each for each in ladder.left_out if each.group == number]
        rows = int(own.sum()) - sum(each.rows for each in out)
        denied = int(given.denied[own].sum()) - sum(each.denied for each in out)
        if rows:
            yield _counted(case, "", number, rows, denied)


def _counted(case: Case, reason: str, group: int, rows: int, denied: int) -> dict[str, Any]:
    name = case.applications.groups[group] if group >= 0 else None
    counts = {"group": name, "used": not reason, "reason": reason, "rows": rows, "denied": denied}
    return _whose(case) | counts


def _whose(case: Case) -> dict[str, str]:
    return {"decision_maker": case.decision_maker, "protected_attribute": case.attribute}


def _table(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table declares them; a number that is not finite is one that is not there."""
    return table.build(**{c.name: [_finite(row[c.name]) for row in rows] for c in table.columns})


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
