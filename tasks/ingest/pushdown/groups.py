"""SQL of the group of every row, for each protected attribute."""

from collections.abc import Sequence

from schemas.audit.spec import Protected
from tasks.ingest.pushdown.bound_values import BoundValues
from tasks.ingest.pushdown.cells import Cells


def groups(protected: Sequence[Protected], cells: Cells, bound: BoundValues) -> list[str]:
    """The group of each attribute; a crossed one joins those of its columns, by the attributes over them alone."""
    single = {p.columns[0]: p for p in reversed(protected) if len(p.columns) == 1}
    out = []
    for p in protected:
        crossed = len(p.columns) > 1
        each = [_group(column, single.get(column, p) if crossed else p, cells, bound) for column in p.columns]
        out.append(" || ' and ' || ".join(each))
    return out


def _group(column: str, p: Protected, cells: Cells, bound: BoundValues) -> str:
    """Of one column; of a crossed attribute that lists no groups, its value."""
    text, missing = cells.text(column), f"WHEN {cells.absent(column)} THEN {bound.value(p.missing)}"
    if not p.groups:
        return f"CASE {missing} ELSE {text} END"
    listed = " ".join(f"WHEN {bound.among(text, values)} THEN {bound.value(name)}" for name, values in p.groups.items())
    return f"CASE {listed} {missing} ELSE {bound.value(p.unlisted)} END"
