"""Refused rows of a stage: counted exactly by kind, and kept as rows, all of them or a weighted sample.

Rows are counted before any is left out, so that counts never rest on the sample. Scope: the tables ``refusals`` and
``refusal_counts``. Which rows are refused and why: the stages, and ``tasks.pipeline.stage.hold``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from schemas.audit.source import KeptRule
from schemas.tables.applications import REFUSAL_COUNTS, REFUSALS
from schemas.terms import Refusal

WHOLE_ROWS = 100_000
"""Refused rows of a stage up to which ``sample`` keeps all of them."""
SAMPLED_ROWS = 1_000
"""Rows of a reason and column in a sample."""

_LIKE = ["stage", "reason", "column", "favourable"]
_HASHED = "SELECT md5_number_lower(concat($seed, ':', row_id)) AS hash FROM refusals"


@dataclass(frozen=True)
class Keeping:
    """How the refused rows of a stage are counted and kept."""

    rule: KeptRule = "sample"
    seed: int = 0
    memberships: pa.Table | None = None
    """Groups of the rows that came in, as ``MEMBERSHIPS``."""
    failed: bool = False
    """Whether rows that failed an expectation are kept by any rule: after ingest nothing else tells which they are."""


def counted(refusals: pa.Table, memberships: pa.Table | None) -> pa.Table:
    """Number of refused rows by kind, exactly, in the shape of ``REFUSAL_COUNTS``.

    Rows that ``memberships`` does not have, as nothing of them could be read, are of no group of each attribute.
    """
    if refusals.num_rows == 0:
        return REFUSAL_COUNTS.empty()
    rows = refusals.select(_LIKE)
    marks: list[tuple[str, str]] = []
    for name, groups in _by_attribute(refusals["row_id"], memberships):
        marks.append((name, f"group {len(marks)}"))  # a name of ours, whatever the attribute is called
        rows = rows.append_column(marks[-1][1], groups)
    kinds = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    kinds = kinds.sort_by([(name, "ascending") for name in rows.column_names]).to_pylist()
    lines = [(number, kind, *mark) for number, kind in enumerate(kinds) for mark in marks]
    return REFUSAL_COUNTS.build(
        **{name: [kind[name] for _, kind, _, _ in lines] for name in _LIKE},
        kind=[number for number, _, _, _ in lines],
        protected_attribute=[name for _, _, name, _ in lines],
        group=[kind[mark] for _, kind, _, mark in lines],
        n=[kind["count_all"] for _, kind, _, _ in lines],
    )


def _by_attribute(ids: pa.ChunkedArray, memberships: pa.Table | None) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Attributes in the order of their names, each with the group of every row; of one without a name if none is."""
    names = [] if memberships is None else sorted(pc.unique(memberships["protected_attribute"]).to_pylist())
    if memberships is None or not names:
        yield "", pa.chunked_array([pa.nulls(len(ids), pa.string())])
        return
    for name in names:
        mine = memberships.filter(pc.equal(memberships["protected_attribute"], name))
        at = pc.index_in(ids, value_set=mine["row_id"].combine_chunks())
        yield name, mine["group"].combine_chunks().take(at.combine_chunks())


def rows_counted(counts: pa.Table) -> int:
    """Number of rows in ``REFUSAL_COUNTS``, where each is counted once for every attribute."""
    if counts.num_rows == 0:
        return 0
    attributes = counts["protected_attribute"].to_pylist()
    return sum(n for n, name in zip(counts["n"].to_pylist(), attributes, strict=True) if name == attributes[0])


def kept(refusals: pa.Table, keeping: Keeping) -> pa.Table:
    """The refused rows that are written, in their order, each with the number of rows that it stands for.

    A sample is drawn by the hash of seed and row id: whether a row is drawn depends neither on the order of the rows
    nor on the rows of other reasons.
    """
    if keeping.rule == "all" or (keeping.rule == "sample" and refusals.num_rows <= WHOLE_ROWS):
        return refusals
    failed = pc.equal(refusals["reason"], str(Refusal.FAILED_EXPECTATION))
    always = refusals.filter(pc.and_(failed, pa.scalar(keeping.failed)))
    rest = refusals.filter(pc.invert(pc.and_(failed, pa.scalar(keeping.failed))))
    if keeping.rule == "counts":
        return always
    return pa.concat_tables([_sampled(rest, keeping.seed), always])


def _sampled(refusals: pa.Table, seed: int) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("refusals", refusals.select(["row_id"]))
        hashes = connection.sql(_HASHED, params={"seed": seed}).fetchnumpy()["hash"]
    lines, weights = _lines(refusals), np.zeros(refusals.num_rows)
    for line in np.unique(lines):
        rows = np.flatnonzero(lines == line)
        drawn = rows[np.argsort(hashes[rows], kind="stable")[:SAMPLED_ROWS]]
        weights[drawn] = len(rows) / len(drawn)
    at = REFUSALS.schema().get_field_index("weight")
    chosen = refusals.set_column(at, REFUSALS.schema().field(at), pa.array(weights))
    return chosen.filter(pa.array(weights > 0))


def _lines(refusals: pa.Table) -> NDArray[np.int64]:
    """``(rows,)`` number of each row's reason and column."""
    reason, column = (
        refusals[name].combine_chunks().dictionary_encode(null_encoding="encode") for name in ("reason", "column")
    )
    return np.asarray(reason.indices.to_numpy().astype(np.int64) * len(column.dictionary) + column.indices.to_numpy())


def without(memberships: pa.Table, refusals: pa.Table, written: pa.Table) -> pa.Table:
    """Memberships but for the refused rows that are not written."""
    if written.num_rows == refusals.num_rows:
        return memberships
    mine = written["row_id"].combine_chunks()
    gone = refusals["row_id"].filter(pc.invert(pc.is_in(refusals["row_id"], value_set=mine))).combine_chunks()
    return memberships.filter(pc.invert(pc.is_in(memberships["row_id"], value_set=gone)))
