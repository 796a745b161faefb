"""Times the validation of two large tables by Great Expectations against plain counts by DuckDB in the same process.

Each table is drawn and judged in a process of its own. Plain counts are the same rules as SQL alone, without Great
Expectations: they judged tables in earlier versions.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from research.benchmark import Bench, Room, Row, answer, apart, at_most, peak_mb, timed, timed_row
from schemas.table import Column, Table

MOST_RATIO, MOST_MB = 1.2, {"wide": 600, "long": 900}
ROWS = {"wide": 2_000_000, "long": 20_000_000}
COLUMNS = {"wide": 20, "long": 4}
CODES = ("a", "b", "c")
FREE_MB = 3_000

_run = partial(apart, "research.bench.validation")


def _lines(room: Room) -> Iterator[Row]:
    for shape, rows in ROWS.items():
        run = _run("judged", shape, min(rows, room.limit))
        name, plain = f"{COLUMNS[shape]} columns, drawn", {"rows": run["rows"], **run["plain"]}
        yield timed_row(name, plain, "plain counts by DuckDB", ratio=1.0)
        ratio = run["cpu_s"] / plain["cpu_s"]
        found = f"{run['rules']} rules, all alike"
        what = "judged by Great Expectations"
        yield timed_row(name, run, what, ratio=ratio, found=found, **at_most(ratio, MOST_RATIO, " times"))
        yield timed_row(name, run, "its peak memory", **at_most(run["peak_mb"], MOST_MB[shape], " MB"))


def judged(shape: str, rows: str) -> Mapping[str, Any]:
    """Judges a table by Great Expectations, then counts by plain SQL, and compares the counts.

    Args:
        shape: ``wide`` or ``long``.
        rows: of the table.
    """
    from tasks.pipeline.validation import prepare_engine, validate

    content, declared = _drawn(shape, int(rows))
    prepare_engine()
    with timed() as times:
        outcomes = validate(content, declared)
    peak = peak_mb()
    with timed() as plain:
        counts = _counts(content, declared)
    judged_counts = {(o.expectation, o.column): o.unexpected for o in outcomes[2:]}  # after types and order
    if judged_counts != counts:
        raise RuntimeError("the counts of Great Expectations are not those of SQL")
    return {"rows": content.num_rows, **times, "peak_mb": peak, "plain": plain, "rules": len(counts)}


def _counts(content: pa.Table, declared: Table) -> dict[tuple[str, str], int]:
    """Rows that break each rule, by SQL alone."""
    from tasks.pipeline.validation.connections import quoted, rows_of, view
    from tasks.pipeline.validation.rows import rules_of, some_present

    of_values = [rule for rule in rules_of(declared) if "OVER" not in rule.broken]
    keys = [rule for rule in rules_of(declared) if "OVER" in rule.broken]
    names = ", ".join(quoted(name) for name in declared.key)
    with view(declared.name, content):
        table = quoted(declared.name)
        marks = ", ".join(f"count(*) FILTER (WHERE {rule.broken})" for rule in of_values)
        [counts] = rows_of(f"SELECT {marks} FROM {table}")  # noqa: S608 names are quoted
        repeats = f"SELECT count(*) AS n FROM {table} WHERE {some_present(declared.key)} GROUP BY {names}"  # noqa: S608
        [(repeated,)] = rows_of(f"SELECT coalesce(sum(n), 0) FROM ({repeats}) WHERE n > 1")  # noqa: S608
    by_rule = zip([*of_values, *keys], [*counts, int(repeated)], strict=True)
    return {(rule.expectation, rule.column): number for rule, number in by_rule}


def _drawn(shape: str, rows: int) -> tuple[pa.Table, Table]:
    """A table with a key of its first column, or of two, and a rule or two for each of the others."""
    rng = np.random.default_rng(8)
    columns = [Column("number", "int64", "a part of the key"), Column("part", "int64", "a part of the key")]
    arrays: list[Any] = [np.arange(rows) // 2, np.arange(rows) % 2]
    for place in range(COLUMNS[shape] - 2):
        if place % 3 == 2:
            columns.append(Column(f"kind_{place}", "string", "codes", codes=CODES))
            arrays.append(pa.DictionaryArray.from_arrays(rng.integers(0, 3, rows, np.int8), CODES).cast(pa.string()))
        else:
            columns.append(Column(f"share_{place}", "double", "a range", minimum=0, maximum=1))
            arrays.append(rng.random(rows))
    declared = Table("drawn", "For the benchmark.", tuple(columns), key=("number", "part"))
    return pa.table(dict(zip(declared.schema().names, arrays, strict=True)), schema=declared.schema()), declared


BENCH = Bench("validation", _lines, fewest=10_000, why="with fewer nothing takes any time", memory_mb=FREE_MB)


if __name__ == "__main__":
    answer(judged)
