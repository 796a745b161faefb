"""Control columns of the ladder by block: from the spec where it names them, else by role and name.

Scope: names of columns, and what is wrong with them beside the rest of the spec. Their values: ``columns``.
"""

import re
from collections.abc import Collection, Iterator

from pydantic import Field

from schemas.audit.spec import AuditSpec
from schemas.blocks import (
    CROSS,
    LENDER,
    NAME,
    NO_BLOCK,
    PLACE,
    block_of,
    in_order,
    is_flag,
    is_observed,
    is_personal,
    kind_of,
)
from schemas.bounds import Strict
from schemas.errors import Location, SpecError, nearest
from tasks.methods.adjusted.settings import AdjustedSettings

METHOD = "adjusted"
AT: Location = ("methods", METHOD)


class ControlBlock(Strict):
    """The control columns that one rung adds to those below it."""

    name: str
    columns: tuple[str, ...] = Field(min_length=1)


def blocks_of(spec: AuditSpec, asked: AdjustedSettings) -> tuple[ControlBlock, ...]:
    """The blocks in the order of the rungs; without those that have no column, and without ``cross``."""
    if asked.blocks:
        return tuple(ControlBlock(name=name, columns=columns) for name, columns in asked.blocks.items() if columns)
    block = {name: _block(spec, name) for name in spec.kept()}
    found = in_order(each for each in block.values() if each is not None)
    return tuple(
        ControlBlock(name=each, columns=tuple(name for name, own in block.items() if own == each)) for each in found
    )


def primary_of(blocks: Collection[ControlBlock], asked: AdjustedSettings) -> str:
    """The block whose rung is judged: the last one before ``place``, or ``none`` where there is no block."""
    before = [block.name for block in blocks if block.name != PLACE]
    return asked.primary or (before[-1] if before else NO_BLOCK)


def cluster_of(spec: AuditSpec, asked: AdjustedSettings) -> str | None:
    """The column of the clusters: that of the spec, else the lender's where it is read; None for independent rows."""
    if asked.cluster is not None:
        return None if asked.cluster == NO_BLOCK else asked.cluster
    return next((name for name in LENDER if name in spec.kept()), None)


def named(spec: AuditSpec, asked: AdjustedSettings) -> dict[str, Location]:
    """Columns that the spec itself puts into a block, and where it does."""
    if asked.blocks:
        listed = [
            (name, (*AT, "blocks", block, i)) for block, names in asked.blocks.items() for i, name in enumerate(names)
        ]
        return dict(reversed(listed))
    given = {name: column.block for name, column in spec.columns.items()}
    return {name: ("columns", name, "block") for name, block in given.items() if block not in (None, NO_BLOCK)}


def personal(spec: AuditSpec, asked: AdjustedSettings) -> tuple[str, ...]:
    """Features that say who an applicant is and are in no block: the rung ``cross`` adds them.

    None says the same as a protected attribute in other words, such as another column of race, or is as observed.
    """
    inside = {name for block in blocks_of(spec, asked) for name in block.columns} | _protected(spec)
    about = {kind_of(name) for name in _protected(spec)} | {kind_of(p.name) for p in spec.protected}
    others = (name for name in spec.kept() if is_personal(name) and not is_observed(name) and name not in inside)
    return tuple(name for name in others if kind_of(name) not in about - {""})


def faults(spec: AuditSpec) -> Iterator[SpecError]:
    """What is wrong with the blocks, the primary rung and the clusters beside the columns of the spec.

    A block or a primary rung of which one year has no column is no fault of the spec: ``source.lacking`` names them.
    """
    asked = spec.methods.of(AdjustedSettings)
    if asked is None:
        return
    for name, at in named(spec, asked).items():
        yield from _of_column(spec, name, at)
    for block, columns in asked.blocks.items():
        if not columns and not spec.source.lacking:
            yield SpecError(f"the block {block!r} has no column; name some, or leave it out", (*AT, "blocks", block))
        if not re.fullmatch(NAME, block):
            message = f"{block!r} is no name of a block: letters, digits, - and _, at most 32, a letter first"
            yield SpecError(message, (*AT, "blocks", block))
        if block in (NO_BLOCK, CROSS):
            message = f"{block!r} is the name of a rung of its own; give the block another name"
            yield SpecError(message, (*AT, "blocks", block))
    yield from _twice(asked)
    known = [block.name for block in blocks_of(spec, asked)]
    if asked.cluster_bootstrap and cluster_of(spec, asked) is None:
        yield SpecError("there are no clusters to draw; name their column in `cluster`", (*AT, "cluster_bootstrap"))
    if asked.primary == PLACE:
        message = f"{PLACE!r} holds fixed effects, which only the linear fit tells; name the rung before it, or none"
        yield SpecError(message, (*AT, "primary"))
    if asked.primary is not None and asked.primary not in known and not spec.source.lacking:
        message = f"there is no block {asked.primary!r}; {nearest(asked.primary, known)}"
        yield SpecError(message, (*AT, "primary"))
    if asked.cluster not in (None, NO_BLOCK) and asked.cluster not in spec.kept():
        message = f"{asked.cluster!r} is no column that is read; {nearest(str(asked.cluster), list(spec.kept()))}"
        yield SpecError(message, (*AT, "cluster"))


def _of_column(spec: AuditSpec, name: str, at: Location) -> Iterator[SpecError]:
    """A control that is not read, or that says who an applicant is."""
    if name in _protected(spec):
        message = f"{name!r} is a protected attribute and so no control; methods.adjusted.cross adds the others"
        yield SpecError(message, at)
    elif is_observed(name):
        yield SpecError(f"{name!r} says how the lender came to know a protected attribute, and is no control", at)
    elif is_flag(name):
        yield SpecError(f"{name!r} says whether another column has a value, which is no control", at)
    elif name not in spec.kept():
        hint = "give it a `block`, so that it is read" if name in spec.columns else nearest(name, list(spec.kept()))
        yield SpecError(f"{name!r} is no column that is read; {hint}", at)


def _twice(asked: AdjustedSettings) -> Iterator[SpecError]:
    seen: dict[str, str] = {}
    for block, columns in asked.blocks.items():
        for i, name in enumerate(columns):
            if name in seen:
                yield SpecError(f"{name!r} is in the block {seen[name]!r} already", (*AT, "blocks", block, i))
            seen.setdefault(name, block)


def _block(spec: AuditSpec, name: str) -> str | None:
    """The block of a column by what the spec says of it, else by its name and role."""
    column = spec.columns[name]
    if column.block is not None:
        return None if column.block == NO_BLOCK else column.block
    return None if name in _protected(spec) else block_of(name, column.role)


def _protected(spec: AuditSpec) -> set[str]:
    """Columns that groups are made of, and the columns that these are derived from."""
    columns = {name for p in spec.protected for name in p.columns}
    return columns | {derived.column for name, derived in spec.source.derive.items() if name in columns}
