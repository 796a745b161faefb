"""Converts the tables of an audit by FGCE to cells of the reproduction.

Only the model's decisions are explained, as the profile `paper` has it: the paper knows no others.

Scope: cells that some table holds. Cells that are computed anew: ``selections``.
"""

import json
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.numerics.arrays import Ints
from tasks.proof.lines import Cell, Value

Tables = Mapping[str, pa.Table]
"""The tables of the stages up to detection, by name."""


def groups_of(tables: Tables) -> tuple[Ints, list[str]]:
    """Returns each row's group ``(n,)`` as an index, and the groups' names in the order of G0 and G1."""
    member = tables["memberships"].to_pandas().set_index("row_id")["group"]
    names, codes = np.unique(member.loc[tables["features"]["row_id"].to_pylist()], return_inverse=True)
    return codes.astype(np.int32), [str(name) for name in names]


def cells(tables: Tables) -> Mapping[Cell, Value]:
    """Returns the measures of whole groups, with shares and areas over the coverable rows as in the paper."""
    found = dict(_aggregates(tables["aggregates"].to_pandas()))
    found |= _means(tables["tallies"].to_pandas())
    found |= dict(_best(found, "coverage", "dauc_coverage", np.fmax))
    return found | dict(_best(found, "least_cost", "smallest_cost", np.fmin))


def constraints(encodings: pa.Table) -> Iterator[tuple[Cell, Value]]:
    """Yields the rule of each attribute: ``free``, ``up``, ``down``, ``immutable`` or ``transitions``."""
    for row in encodings.to_pandas().drop_duplicates("feature").itertuples():
        yield Cell("constraint", row.feature), row.constraint if pd.isna(row.transitions) else "transitions"


def _aggregates(table: pd.DataFrame) -> Iterator[tuple[Cell, Value]]:
    for row in table[table["subgroup"] == 0].itertuples():
        yield Cell(row.measure, row.group, _at(row.parameters)), float(row.value)
        if row.measure == "k0":
            yield Cell("coverable", row.group), float(row.n)


def _means(table: pd.DataFrame) -> Iterator[tuple[Cell, Value]]:
    """Means over the rows on which a measure is defined."""
    kept = table[
        (table["subgroup"] == 0) & table["measure"].isin(["coverage", "kauc", "dauc"]) & table["value"].notna()
    ]
    kept = kept[kept["parameters"].str.contains('"denominator": "feasible"')]
    for (measure, group, parameters), rows in kept.groupby(["measure", "group", "parameters"]):
        n = rows["count"].sum()
        mean = float(rows["value"] @ rows["count"] / n) if n else float("nan")
        yield Cell(measure, group, _at(parameters)), mean


def _at(parameters: str) -> tuple[Value, ...]:
    """Values of a measure's parameters by name, but for the denominator."""
    return tuple(float(value) for name, value in sorted(json.loads(parameters).items()) if name != "denominator")


def _best(
    found: Mapping[Cell, Value], quantity: str, name: str, pick: Callable[[float, float], float]
) -> Iterator[tuple[Cell, Value]]:
    """The best value of any k, at each limit d or share c."""
    best: dict[Cell, float] = {}
    for cell, value in found.items():
        if cell.quantity == quantity:
            at = Cell(name, cell.group, cell.at[:1])
            best[at] = float(pick(best.get(at, np.nan), float(value)))
    yield from best.items()
