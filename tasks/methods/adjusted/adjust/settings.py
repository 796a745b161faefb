"""Settings and control blocks of the denial ladder."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from schemas.audit.column import (
    CROSS,
    LENDER,
    NAME,
    NO_BLOCK,
    PLACE,
    ColumnSpec,
    block_of,
    in_order,
    is_flag,
    is_observed,
    is_personal,
    kind_of,
    set_by_decision,
)
from schemas.audit.limits import SimilarLimits
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Explain, Protected, StageSettings
from schemas.blocks import CLUSTERS, is_place, is_through, words_of
from schemas.bounds import Strict
from schemas.errors import Location, SpecError, nearest, raise_together
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.numerics.arrays import Bools

# --------------------------------------------------------------------------------------------------------------------
# Control columns of the ladder by block: from the spec where it names them, else by role and name.
#
# Scope: names of columns, and their errors against the rest of the spec. Their values: ``columns``.


METHOD = "adjusted"
FAMILIES = ("none", "logistic_regression", "random_forest", "gradient_boosting")
"""Kinds of models with alternatives; without a model a logistic regression is fitted."""
AT: Location = ("methods", METHOD)


class ControlBlock(Strict):
    """The control columns that one rung adds to those below it."""

    name: str
    columns: tuple[str, ...] = Field(min_length=1)


def blocks_of(spec: AuditSpec, settings: AdjustedSettings) -> tuple[ControlBlock, ...]:
    """The blocks in the order of the rungs; without those that have no column, and without ``cross``."""
    if settings.blocks:
        return tuple(ControlBlock(name=name, columns=columns) for name, columns in settings.blocks.items() if columns)
    block = {name: _block(spec, name) for name in spec.kept()}
    block_names = in_order(block_name for block_name in block.values() if block_name is not None)
    return tuple(
        ControlBlock(
            name=block_name, columns=tuple(name for name, column_block in block.items() if column_block == block_name)
        )
        for block_name in block_names
    )


def primary_of(blocks: Collection[ControlBlock], settings: AdjustedSettings) -> str:
    """The block of the primary rung: the last one before ``place``, or ``none`` if there is no block."""
    before = [block.name for block in blocks if block.name != PLACE]
    return settings.primary or (before[-1] if before else NO_BLOCK)


def cluster_of(spec: AuditSpec, settings: AdjustedSettings) -> str | None:
    """The column of the ladder's clusters: that of the spec, else the lender's where it is read; None without."""
    if settings.cluster is not None:
        return None if settings.cluster == NO_BLOCK else settings.cluster
    return next((name for name in LENDER if name in spec.kept()), None)


def clusters_of(spec: AuditSpec, settings: AdjustedSettings) -> tuple[str, ...]:
    """Columns with clusters of rows for the judged effect: the first with enough values counts."""
    if settings.cluster is not None:
        return () if settings.cluster == NO_BLOCK else (settings.cluster,)
    own = _protected(spec)
    candidates = [(name, words_of(name)) for name in spec.kept() if name not in own]
    return tuple(name for word in CLUSTERS for name, words in candidates if word in words)


def directed_of(spec: AuditSpec, settings: AdjustedSettings) -> dict[str, int]:
    """Columns of the comparator files with their direction, 1 where more is better for the applicant."""
    directions = spec.directions()
    if settings.comparators is None:
        return {}
    names = settings.comparators.columns
    return directions if names is None else {name: directions[name] for name in names if name in directions}


def splits_of(spec: AuditSpec, names: Collection[str] | None) -> dict[str, ColumnSpec]:
    """Columns that part a group: all that are read, or some, but those of groups and those that the decision sets."""
    own = _protected(spec)
    about = {kind_of(name) for name in own} | {kind_of(p.name) for p in spec.protected}
    out = {}
    for name, column in spec.kept().items():
        is_own = name in own or (is_personal(name) and kind_of(name) in about - {""})
        if not (is_own or is_observed(name) or set_by_decision(name)) and (names is None or name in names):
            out[name] = column
    return out


def named(spec: AuditSpec, settings: AdjustedSettings) -> dict[str, Location]:
    """Columns that the spec itself puts into a block, and where it does."""
    if settings.blocks:
        listed = [
            (name, (*AT, "blocks", block, i))
            for block, names in settings.blocks.items()
            for i, name in enumerate(names)
        ]
        return dict(reversed(listed))
    block_of_column = {name: column.block for name, column in spec.columns.items()}
    return {
        name: ("columns", name, "block") for name, block in block_of_column.items() if block not in (None, NO_BLOCK)
    }


def personal(spec: AuditSpec, settings: AdjustedSettings) -> tuple[str, ...]:
    """Features that say who an applicant is and are in no block: the rung ``cross`` adds them.

    None says the same as a protected attribute in other words, such as another column of race, or is as observed.
    """
    inside = {name for block in blocks_of(spec, settings) for name in block.columns} | _protected(spec)
    about = {kind_of(name) for name in _protected(spec)} | {kind_of(p.name) for p in spec.protected}
    candidates = (name for name in spec.kept() if is_personal(name) and not is_observed(name) and name not in inside)
    return tuple(name for name in candidates if kind_of(name) not in about - {""})


def faults(spec: AuditSpec) -> Iterator[SpecError]:
    """Errors in the blocks, the primary rung and the clusters, checked against the columns of the spec.

    A block or a primary rung of which one year has no column is no fault of the spec: ``source.lacking`` names them.
    """
    settings = spec.methods.of(AdjustedSettings)
    if settings is None:
        return
    for name, at in named(spec, settings).items():
        yield from _of_column(spec, name, at)
    for block, columns in settings.blocks.items():
        if not columns and not spec.source.lacking:
            yield SpecError(f"the block {block!r} has no column; name some, or leave it out", (*AT, "blocks", block))
        if not re.fullmatch(NAME, block):
            message = f"{block!r} is no name of a block: letters, digits, - and _, at most 32, a letter first"
            yield SpecError(message, (*AT, "blocks", block))
        if block in (NO_BLOCK, CROSS):
            message = f"{block!r} is the name of a rung of its own; give the block another name"
            yield SpecError(message, (*AT, "blocks", block))
    block_of_column: dict[str, str] = {}
    for block, columns in settings.blocks.items():
        for i, name in enumerate(columns):
            if name in block_of_column:
                message = f"{name!r} is in the block {block_of_column[name]!r} already"
                yield SpecError(message, (*AT, "blocks", block, i))
            block_of_column.setdefault(name, block)
    block_names = [block.name for block in blocks_of(spec, settings)]
    if settings.cluster_bootstrap and cluster_of(spec, settings) is None:
        yield SpecError("there are no clusters to draw; name their column in `cluster`", (*AT, "cluster_bootstrap"))
    if settings.primary == PLACE:
        message = f"{PLACE!r} holds fixed effects, which only the linear fit tells; name the rung before it, or none"
        yield SpecError(message, (*AT, "primary"))
    if settings.primary is not None and settings.primary not in block_names and not spec.source.lacking:
        message = f"there is no block {settings.primary!r}; {nearest(settings.primary, block_names)}"
        yield SpecError(message, (*AT, "primary"))
    if settings.alternatives is not None and spec.model.kind not in FAMILIES:
        message = f"of a model of the kind {spec.model.kind!r} no other can be fitted; set model.kind to one of "
        yield SpecError(f"{message}{', '.join(FAMILIES[1:])}", (*AT, "alternatives"))
    directions = spec.directions()
    for i, name in enumerate((settings.comparators and settings.comparators.columns) or ()):
        if name not in directions:
            message = f"{name!r} has no direction, so that no applicant is better in it; {nearest(name, [*directions])}"
            yield SpecError(message, (*AT, "comparators", "columns", i))
    for name in settings.through or ():
        if name not in spec.kept():
            message = f"{name!r} is no column that is read; {nearest(name, list(spec.kept()))}"
            yield SpecError(message, (*AT, "through"))
    if settings.cluster not in (None, NO_BLOCK) and settings.cluster not in spec.kept():
        message = f"{settings.cluster!r} is no column that is read; {nearest(str(settings.cluster), list(spec.kept()))}"
        yield SpecError(message, (*AT, "cluster"))


def _of_column(spec: AuditSpec, name: str, at: Location) -> Iterator[SpecError]:
    """Errors of a control: its column is not read, or it identifies the applicant."""
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


def _block(spec: AuditSpec, name: str) -> str | None:
    """The block of a column from the spec, otherwise from its name and role."""
    column = spec.columns[name]
    if column.block is not None:
        return None if column.block == NO_BLOCK else column.block
    return None if name in _protected(spec) else block_of(name, column.role)


def _protected(spec: AuditSpec) -> set[str]:
    """Columns that groups are made of, and the columns that these are derived from."""
    columns = {name for p in spec.protected for name in p.columns}
    bases = (derived.columns for name, derived in spec.source.derive.items() if name in columns)
    return columns.union(*bases)


# --------------------------------------------------------------------------------------------------------------------
# Refusal of controls that the decision sets: a regression that holds them fixed compares what the decision made.
#
# A column is refused by its name (public HMDA's fields of loans that were made), or because the data fill it on one
# side of the decision alone. The message has the share of applications with a value, by action.


_ONE_SIDED = 0.05, 0.5
"""A column is set by the decision if fewer than the first of one side have a value, and more than the second of the
other."""

Filled = tuple[float, float]
"""Share of the approved applications with a value, and of the denied ones."""


def check_names(spec: AuditSpec, named: Mapping[str, Location]) -> None:
    """Hold the controls that the spec names against the fields that HMDA fills by the decision.

    The source is read for the message only, so that a run stops before rows are refused for what such a field lacks.

    Raises:
        SpecError: there are such fields; each with its place in the spec and the share filled by action.
    """
    refused = [name for name in named if set_by_decision(name)]
    shares = _in_source(spec, refused) if refused else {}
    raise_together([SpecError(_message(name, shares[name]), named[name]) for name in refused])


def one_sided(applications: pa.Table, columns: Iterable[str]) -> dict[str, Filled]:
    """The columns that hardly any application of one decision has a value in, and many of the other have."""
    favourable = applications["favourable"].to_numpy()
    shares = {name: _shares(applications[name].is_valid().to_numpy(), favourable) for name in columns}
    few, many = _ONE_SIDED
    return {name: share for name, share in shares.items() if min(share) < few and max(share) > many}


def check_filled(filled_columns: Mapping[str, Filled], named: Mapping[str, Location]) -> None:
    """Refuse one-sided columns that the spec names.

    Raises:
        SpecError: there are some.
    """
    raise_together(
        [SpecError(_message(name, filled_columns[name]), named[name]) for name in filled_columns if name in named]
    )


def words(filled: Filled) -> str:
    """The share filled by action in words."""
    approved, denied = (f"{100 * share:.1f} %" for share in filled)
    return f"it is filled in {approved} of the approved and {denied} of the denied applications"


def _message(name: str, filled: Filled) -> str:
    return (
        f"{name!r} is set by the decision or after it, and so is no control: {words(filled)}; take it out of its block"
    )


def _in_source(spec: AuditSpec, names: list[str]) -> dict[str, Filled]:
    """The shares by the applications of the source, as its recipe reads them."""
    from tasks.ingest import counts

    with counts.opened(spec) as table:
        return counts.filled(table, names)


def _shares(filled: Bools, favourable: Bools) -> Filled:
    def share(side: Bools) -> float:
        return float(np.mean(filled[side])) if side.any() else 0.0

    return share(favourable), share(~favourable)


# --------------------------------------------------------------------------------------------------------------------
# Settings of the denial ladder, and whether an audit requests it.


class AdjustSettings(StageSettings):
    """Settings of the ladder: blocks, estimators, decision makers, protected attributes and level."""

    memory: ClassVar[Growth] = Growth(80, 5.5)

    blocks: tuple[ControlBlock, ...]
    """In the order of the rungs."""
    named: dict[str, Location]
    """Controls that the spec itself puts into a block, with their places: they are refused, and never left out."""
    personal: tuple[str, ...]
    """Columns that the rung ``cross`` adds to the other protected attributes."""
    primary: str
    """The block of the rung that is judged."""
    cluster: str | None
    """The column with the clusters of dependent rows."""
    ladder: AdjustedSettings
    columns: dict[str, ColumnSpec]
    """Of the controls."""
    splits: dict[str, ColumnSpec]
    """Columns that part the groups."""
    places: dict[str, ColumnSpec]
    """Columns that say where, and are in no block before ``place``."""
    through: tuple[str, ...]
    """Controls that say through whom an application went."""
    directed: dict[str, int]
    """Columns of the comparator files: 1 where more is better for the applicant, -1 where less is."""
    compared: dict[str, ColumnSpec]
    """The same columns."""
    clusters: tuple[str, ...]
    """Columns whose rows may hang together; the first with enough values counts for the judged effect."""
    limits: SimilarLimits
    part_limit: float | None
    minimum_n: int
    """Fewest people of a part."""
    draws: int
    undecided: bool
    """Whether applications without a decision are looked at."""
    explain: Explain
    protected: tuple[Protected, ...]
    level: float
    seed: int


def adjust_settings(spec: AuditSpec) -> AdjustSettings | None:
    """The stage's settings; None where the audit leaves the ladder out.

    Raises:
        SpecError: a control is no column that is read, or is set by the decision; a block is empty; the primary rung
            is no block.
    """
    method_settings = spec.methods.of(AdjustedSettings)
    if method_settings is None:
        return None
    raise_together(list(faults(spec)))
    named_columns = named(spec, method_settings)
    check_names(spec, named_columns)
    blocks = blocks_of(spec, method_settings)
    personal_columns = personal(spec, method_settings) if method_settings.cross else ()
    controls = {*personal_columns, *(name for block in blocks for name in block.columns)}
    kept, verdicts = spec.kept(), spec.verdicts
    before_place = {name for block in blocks if block.name != PLACE for name in block.columns}
    by = None if verdicts.parts.by == "all" else verdicts.parts.by
    through = method_settings.through
    return AdjustSettings.of(
        spec,
        blocks=blocks,
        named=named_columns,
        personal=personal_columns,
        primary=primary_of(blocks, method_settings),
        cluster=cluster_of(spec, method_settings),
        ladder=method_settings,
        columns={name: column for name, column in kept.items() if name in controls},
        splits=splits_of(spec, by),
        places={name: column for name, column in kept.items() if is_place(name) and name not in before_place},
        through=tuple(name for name in kept if (is_through(name) if through is None else name in through)),
        directed=directed_of(spec, method_settings),
        compared={name: kept[name] for name in directed_of(spec, method_settings)},
        clusters=clusters_of(spec, method_settings),
        limits=verdicts.limits.similar_applicants or SimilarLimits(),
        part_limit=verdicts.limits.part if by is None or by else None,
        minimum_n=verdicts.parts.minimum_n,
        draws=verdicts.parts.draws,
        undecided=verdicts.undecided == "bound",
        level=spec.bootstrap.level,
    )
