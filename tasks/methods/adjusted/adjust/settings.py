"""What decides the denial ladder, and whether an audit asks for it."""

from typing import ClassVar

from schemas.audit.column import ColumnSpec
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Explain, Protected, StageSettings
from schemas.errors import Location, raise_together
from tasks.methods.adjusted.adjust.blocks import (
    ControlBlock,
    blocks_of,
    cluster_of,
    faults,
    named,
    personal,
    primary_of,
)
from tasks.methods.adjusted.adjust.set_after import check_names
from tasks.methods.adjusted.settings import AdjustedSettings


class AdjustSettings(StageSettings):
    """What decides the ladder: blocks, estimators, whose decisions, the protected attributes and the level."""

    memory: ClassVar[Growth] = Growth(80, 5.5)

    blocks: tuple[ControlBlock, ...]
    """In the order of the rungs."""
    named: dict[str, Location]
    """Controls that the spec itself puts into a block, with their places: they are refused, and never left out."""
    personal: tuple[str, ...]
    """Columns that the rung ``cross`` adds beside the other protected attributes."""
    primary: str
    """The block whose rung is judged."""
    cluster: str | None
    """The column whose values are clusters of dependent rows."""
    ladder: AdjustedSettings
    columns: dict[str, ColumnSpec]
    """Of the controls."""
    explain: Explain
    protected: tuple[Protected, ...]
    level: float
    seed: int


def settings_of(spec: AuditSpec) -> AdjustSettings | None:
    """The stage's settings; None where the audit leaves the ladder out.

    Raises:
        SpecError: a control is no column that is read, or is set by the decision; a block is empty; the primary rung
            is no block.
    """
    asked = spec.methods.of(AdjustedSettings)
    if asked is None:
        return None
    raise_together(list(faults(spec)))
    given = named(spec, asked)
    check_names(spec, given)
    blocks, own = blocks_of(spec, asked), personal(spec, asked) if asked.cross else ()
    controls = {*own, *(name for block in blocks for name in block.columns)}
    return AdjustSettings.of(
        spec,
        blocks=blocks,
        named=given,
        personal=own,
        primary=primary_of(blocks, asked),
        cluster=cluster_of(spec, asked),
        ladder=asked,
        columns={name: column for name, column in spec.kept().items() if name in controls},
        level=spec.bootstrap.level,
    )
