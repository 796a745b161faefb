"""HMDA files as a source: their digest, their columns, and their rows as a table of text.

How rows are laid out, and what is done where a file departs from its layout, is in ``laying``.
"""
# ruff: noqa: S608 names are ours

import hashlib
from collections.abc import Sequence

from schemas.audit.source import Source
from tasks.ingest.hmda.applications import columns_of
from tasks.ingest.hmda.canonical.codes import CANONICAL
from tasks.ingest.hmda.identity import identity
from tasks.ingest.hmda.laying import check_unknown_columns, lay, placed
from tasks.ingest.hmda.sorted_rows import located
from tasks.ingest.sources.raw import Raw
from tasks.lake.threads import connected


def digest(source: Source) -> str:
    """sha256 of the file, as it was delivered; of several files, that of their digests in order.

    That of a vintage is the same whenever the same file was converted by the same code.

    Raises:
        SpecError: the source names a vintage, and nobody has looked up its file.
        InfrastructureError: a file is not there.
    """
    digests = [identity(path) for path in located(placed(source))]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def header(source: Source) -> list[str]:
    """Canonical columns that every file gives, and then the files' own that no layout knows.

    Under a policy other than `stop` the canonical columns that a file does not give are among them, too.

    Raises:
        DataQualityError: a file has no known layout, or columns of its own and the policy says to stop.
        InfrastructureError: a file is not there.
    """
    given, own = [], []
    for path in located(placed(source)):
        columns, unknown = columns_of(path)
        check_unknown_columns(path.name, unknown, source)
        given.append(columns)
        own.append(unknown)
    stops = source.policy.missing_columns == "stop"
    kept = [name for name in CANONICAL if not stops or all(name in columns for columns in given)]
    return [*kept, *(name for name in own[0] if all(name in unknown for unknown in own))]


def read(source: Source, columns: Sequence[str]) -> Raw:
    """The named columns as text, in the order of the files; see ``laying.lay``, which also says what it raises."""
    with connected() as connection, lay(source, columns, connection) as laid:
        rows = connection.sql(f"SELECT * FROM ({laid.rows}) ORDER BY place").to_arrow_table()
    table = rows.select([f"c{i}" for i in range(len(columns))]).rename_columns(list(columns))
    flags = {key: rows[f"q{i}"].to_numpy() for i, key in enumerate(laid.quarantined)}
    return Raw(table, rows["place"].to_pylist(), laid.unread, flags)


def lacking(name: str) -> str | None:
    """What to do about a canonical column that the source does not give; None of another name."""
    if name not in CANONICAL:
        return None
    return (
        f"the file gives no {name!r}: its layout has no such column, or no row has a value there. `evenhand backfill` "
        "leaves out what a year lacks; else take it out of the spec, or set source.policy.missing_columns: accept"
    )
