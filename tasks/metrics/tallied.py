"""What measures are made of: the tallies, aggregates and draws of all methods, and approvals as tallies like any other.

DuckDB gathers them. The stages ``measure`` and ``publish`` both start from these.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.terms import DecisionMaker
from tasks.lake.threads import connected
from tasks.metrics.algorithm import measures as algorithm
from tasks.numerics.arrays import Floats
from tasks.numerics.results import Inference
from tasks.numerics.statistics.intervals import Interval
from tasks.pipeline.registry import OUTCOMES_METHOD
from tasks.pipeline.statistics import COUNTED

_SQL = Path(__file__).parent / "sql"


@dataclass(frozen=True)
class Tallied:
    """The statistics of a run."""

    statistics: list[algorithm.Statistic]
    """Those that are distributions over units; decisions among them."""
    given: list[algorithm.Given]
    """Those that methods gave as one number."""
    drawn: Mapping[tuple[algorithm.Family, str], algorithm.Drawn]
    """What groups are set beside; none where draws were not read."""

    @classmethod
    def of(
        cls,
        applications: pa.Table,
        decisions: pa.Table,
        memberships: pa.Table,
        tallies: pa.Table,
        aggregates: pa.Table,
        draws: pa.Table | None = None,
    ) -> "Tallied":
        """From the tables as they are read."""
        with connected() as connection:
            for name, table in (
                ("applications", applications.select(["row_id", "favourable"])),
                ("decisions", decisions),
                ("memberships", memberships),
                ("tallies", tallies),
                ("draws", draws),
            ):
                if table is not None:
                    connection.register(name, table)
            connection.execute(f"CREATE TEMP VIEW tallied AS FROM tallies UNION ALL BY NAME ({_query('outcomes')})")
            statistics = list(_statistics(connection.sql(_query("tallies")).to_arrow_table()))
            drawn = {} if draws is None else dict(_matched(connection.sql(_query("draws")).to_arrow_table()))
        return cls(statistics, list(_given(aggregates)), drawn)


def refitted(model_refits: pa.Table) -> dict[tuple[str, str], Floats]:
    """(protected attribute, group) -> approval rates of the model by refits, in their order; NaN without a row."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in model_refits.sort_by("refit").to_pylist():
        rates = found.setdefault((row["protected_attribute"], row["group"]), [])
        rates.append(row["approved"] / row["n"] if row["n"] else math.nan)
    return {key: np.array(rates) for key, rates in found.items()}


def of_families(rates: Mapping[tuple[str, str], Floats]) -> dict[tuple[algorithm.Family, str], Floats]:
    """The model's approvals and denials, by the families of their measures."""
    return {
        (algorithm.Family(OUTCOMES_METHOD, DecisionMaker.MODEL, attribute, measure, "{}"), group): shares
        for (attribute, group), approved in rates.items()
        for measure, shares in (("approval_rate", approved), ("denial_rate", 1 - approved))
    }


def _query(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text(encoding="utf-8")


def _family(row: dict[str, Any]) -> algorithm.Family:
    return algorithm.Family(
        row["method"],
        row["decision_maker"],
        row["protected_attribute"],
        row["measure"],
        row["parameters"],
        row.get("subgroup", 0),
    )


def _rows(table: pa.Table, lists: tuple[str, ...]) -> Iterator[tuple[dict[str, Any], tuple[Floats, ...]]]:
    """Each row of a table, and the numbers in its columns of lists as arrays: no number becomes an object."""
    plain = table.drop_columns(list(lists)).to_pylist()
    return zip(plain, zip(*(_arrays(table[name]) for name in lists), strict=True), strict=True)


def _arrays(column: pa.ChunkedArray) -> list[Any]:
    """The lists of a column as views of one array; a number that is missing in a list is NaN."""
    whole = column.combine_chunks()
    ends = whole.offsets.to_numpy()
    flat = whole.flatten().to_numpy(zero_copy_only=False)
    return [flat[start:stop] for start, stop in itertools.pairwise((ends - ends[0]).tolist())]


def _statistics(table: pa.Table) -> Iterator[algorithm.Statistic]:
    for row, (values, counts) in _rows(table, ("values", "counts")):
        flags = row["headline"], row["compared"], row["share"]
        yield algorithm.Statistic(_family(row), row["group"], values, counts.astype(np.int64, copy=False), *flags)


def _given(table: pa.Table) -> Iterator[algorithm.Given]:
    for row, (replicates,) in _rows(table, ("replicates",)):
        value = math.nan if row["value"] is None else row["value"]
        flags = row["headline"], row["compared"]
        said = row["reason"] or "", row["events"]
        ends = None if row["low"] is None or row["high"] is None else Interval(row["low"], row["high"])
        inferred = _inferred(row)
        yield algorithm.Given(_family(row), row["group"], value, row["n"], replicates, *flags, *said, ends, inferred)


def _inferred(row: dict[str, Any]) -> Inference | None:
    """What a verdict on the aggregate rests on; None where its method gives nothing."""
    if row["scale"] is None:
        return None
    missing = {
        "se": math.nan,
        "se_above": math.nan,
        "df": math.inf,
        "p": math.nan,
        "robustness": math.nan,
        "unseen": 0.0,
    }
    numbers = {name: absent if row[name] is None else row[name] for name, absent in missing.items()}
    counted = None if row["n_used"] is None else tuple(row[name] for name in COUNTED)
    return Inference(scale=row["scale"], raised=row["raised"], lowered=row["lowered"], counted=counted, **numbers)


def _matched(table: pa.Table) -> Iterator[tuple[tuple[algorithm.Family, str], algorithm.Drawn]]:
    for row, (values,) in _rows(table, ("values",)):
        yield (_family(row), row["group"]), algorithm.Drawn(values, row["reason"] or "", row["reference"])
