"""Refused rows of a stage: counted exactly by kind, and kept as rows, all of them or a weighted sample.

Rows are counted before any is left out, so that counts never rest on the sample. Scope: the tables ``refusals`` and
``refusal_counts``. Which rows are refused and why: the stages, and ``tasks.pipeline.stage.hold``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from numpy.typing import NDArray

from schemas.audit.source import KeptRule
from schemas.tables.applications import REFUSAL_COUNTS, REFUSALS
from schemas.terms import Refusal
from tasks.lake.drafts import Written
from tasks.lake.threads import connected

WHOLE_ROWS = 100_000
"""Refused rows of a stage up to which ``sample`` keeps all of them."""
SAMPLED_ROWS = 1_000
"""Rows of a reason and column in a sample."""

_LIKE = ["stage", "reason", "column", "favourable"]
_HASHED = "SELECT md5_number_lower(concat($seed, ':', row_id)) AS hash FROM refusals"


@dataclass(frozen=True)
class Kinds:
    """Numbers of refused rows that are alike in reason, column, decision and the groups of all attributes."""

    attributes: tuple[str, ...]
    """In the order of their names; one without a name where there is none."""
    rows: pa.Table
    """``stage``, ``reason``, ``column``, ``favourable``, ``group 0``, ``group 1``, ... and ``n``, in any order."""

    @classmethod
    def of(cls, attributes: Sequence[str], columns: Sequence[pa.ChunkedArray | pa.Array]) -> "Kinds":
        """From the columns of ``rows``."""
        groups = [(f"group {i}", pa.string()) for i in range(len(attributes))]  # names of ours, whatever theirs are
        like = [(name, REFUSAL_COUNTS.schema().field(name).type) for name in _LIKE]
        schema = pa.schema([*like, *groups, ("n", pa.int64())])
        return cls(tuple(attributes), pa.Table.from_arrays(list(columns), names=schema.names).cast(schema))

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(pc.sum(self.rows["n"]).as_py() or 0)

    def table(self) -> pa.Table:
        """In the shape of ``REFUSAL_COUNTS``, the kinds numbered in the order of what they are alike in."""
        names = self.rows.column_names[:-1]
        kinds = self.rows.sort_by([(name, "ascending") for name in names]).to_pylist()
        marks = [(name, f"group {i}") for i, name in enumerate(self.attributes)]
        lines = [(number, kind, *mark) for number, kind in enumerate(kinds) for mark in marks]
        return REFUSAL_COUNTS.build(
            **{name: [kind[name] for _, kind, _, _ in lines] for name in _LIKE},
            kind=[number for number, _, _, _ in lines],
            protected_attribute=[name for _, _, name, _ in lines],
            group=[kind[mark] for _, kind, _, mark in lines],
            n=[kind["n"] for _, kind, _, _ in lines],
        )


@dataclass(frozen=True)
class Keeping:
    """How the refused rows of a stage are counted and kept."""

    rule: KeptRule = "sample"
    seed: int = 0
    memberships: pa.Table | Written | None = None
    """Groups of the rows that came in, as ``MEMBERSHIPS``."""
    failed: bool = False
    """Whether rows that failed an expectation are kept by any rule: after ingest nothing else tells which they are."""
    counted: Kinds | None = None
    """The refused rows, where the stage has counted them itself and gives those alone that are written."""
    given: int = 0
    """Number of the rows that such a stage gives."""

    @property
    def left_out(self) -> int:
        """Refused rows that the stage has counted and not given."""
        return 0 if self.counted is None else self.counted.total - self.given


def counted(refusals: pa.Table, memberships: pa.Table | None) -> pa.Table:
    """Number of refused rows by kind, exactly, in the shape of ``REFUSAL_COUNTS``.

    Rows that ``memberships`` does not have, as nothing of them could be read, are of no group of each attribute.
    """
    return kinds_of(refusals, memberships).table() if refusals.num_rows else REFUSAL_COUNTS.empty()


def counts(refusals: pa.Table, keeping: Keeping) -> pa.Table:
    """The same of all refused rows of a stage, those among them that it has counted and not given."""
    if keeping.counted is None:
        return counted(refusals, _of(refusals, keeping.memberships))
    later, found = refusals.slice(keeping.given), keeping.counted
    if later.num_rows:
        rows = kinds_of(later, _of(later, keeping.memberships)).rows
        found = replace(found, rows=pa.concat_tables([found.rows, rows]))
    return found.table()


def kinds_of(refusals: pa.Table, memberships: pa.Table | None) -> Kinds:
    """The kinds of refused rows."""
    rows, names = refusals.select(_LIKE), list[str]()
    for name, groups in _by_attribute(refusals["row_id"], memberships):
        rows = rows.append_column(f"group {len(names)}", groups)
        names.append(name)
    return Kinds.of(names, rows.group_by(rows.column_names).aggregate([([], "count_all")]).columns)


def _of(refusals: pa.Table, memberships: pa.Table | Written | None) -> pa.Table | None:
    """The memberships of these rows, where they lie in a file."""
    if not isinstance(memberships, Written):
        return memberships
    return memberships.dataset().to_table(filter=pads.field("row_id").isin(refusals["row_id"].combine_chunks()))


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
    if whole(keeping.rule, refusals.num_rows + keeping.left_out):
        return refusals
    drawn = refusals.slice(0, keeping.given if keeping.left_out else 0)
    later = refusals.slice(drawn.num_rows)
    failed = pc.and_(pc.equal(later["reason"], str(Refusal.FAILED_EXPECTATION)), pa.scalar(keeping.failed))
    always, rest = later.filter(failed), later.filter(pc.invert(failed))
    if keeping.rule == "counts":
        return pa.concat_tables([drawn, always])
    return pa.concat_tables([drawn, _sampled(rest, keeping.seed), always])


def whole(rule: KeptRule, rows: int) -> bool:
    """Whether every one of so many refused rows of a stage is written."""
    return rule == "all" or (rule == "sample" and rows <= WHOLE_ROWS)


def _sampled(refusals: pa.Table, seed: int) -> pa.Table:
    with connected() as connection:
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


def without(memberships: pa.Table | Written, refusals: pa.Table, written: pa.Table) -> pa.Table | Written:
    """Memberships but for the refused rows that are not written."""
    if written.num_rows == refusals.num_rows:
        return memberships
    mine = written["row_id"].combine_chunks()
    gone = refusals["row_id"].filter(pc.invert(pc.is_in(refusals["row_id"], value_set=mine))).combine_chunks()
    if isinstance(memberships, Written):
        return memberships.filtered(lambda rows: pc.invert(pc.is_in(rows["row_id"], value_set=gone)))
    return memberships.filter(pc.invert(pc.is_in(memberships["row_id"], value_set=gone)))
