"""What our code obtains of FGCE on one of the paper's data sets: the stages as plain functions, their tables as cells.

Only the model's decisions are explained, as the profile `paper` has it: the paper knows no others.

Here belong stages and tables. What no table holds is made anew in ``selections``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from schemas.audit.spec import AuditSpec
from tasks.numerics.arrays import Ints
from tasks.plan import plan
from tasks.proof.lines import Cell, Value
from tasks.proof.plain import call_plainly


@dataclass(frozen=True)
class Tables:
    """The tables of the stages up to detection, each whole, by name."""

    by_name: Mapping[str, pa.Table]

    def __getitem__(self, name: str) -> pa.Table:
        return self.by_name[name]

    @property
    def group(self) -> tuple[Ints, list[str]]:
        """``(n,)`` index of each row's group, and the groups' names, which are in the order of G0 and G1."""
        member = self["memberships"].to_pandas().set_index("row_id")["group"]
        names, codes = np.unique(member.loc[self["features"]["row_id"].to_pylist()], return_inverse=True)
        return codes.astype(np.int32), [str(name) for name in names]


def through(spec: AuditSpec) -> Tables:
    """Ingest, preprocess, score, connect and detect, without lake and validation."""
    steps = plan(spec).steps
    last = next(place for place, step in enumerate(steps) if step.stage.name == "detect")
    return Tables({name: pa.concat_tables(parts) for name, parts in call_plainly(steps[: last + 1]).items()})


def cells(tables: Tables) -> Mapping[Cell, Value]:
    """Measures of the whole groups, shares and areas over the coverable rows as in the paper."""
    found = dict(_aggregates(tables["aggregates"].to_pandas()))
    found |= _means(tables["tallies"].to_pandas())
    return {**found, **_highest(found), **_cheapest(found)}


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


def _highest(found: Mapping[Cell, Value]) -> Mapping[Cell, Value]:
    """The highest coverage of any k at each limit d."""
    best: dict[Cell, Value] = {}
    for (quantity, group, at), value in found.items():
        if quantity == "coverage":
            cell = Cell("dauc_coverage", group, at[:1])
            best[cell] = max(float(best.get(cell, 0.0)), float(value))
    return best


def _cheapest(found: Mapping[Cell, Value]) -> Mapping[Cell, Value]:
    """The smallest least cost of any k at each share c."""
    best: dict[Cell, Value] = {}
    for (quantity, group, at), value in found.items():
        if quantity == "least_cost":
            cell = Cell("smallest_cost", group, at[:1])
            best[cell] = float(np.fmin(float(best.get(cell, np.nan)), float(value)))
    return best
