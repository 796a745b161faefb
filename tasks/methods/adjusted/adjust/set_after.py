"""Refusal of controls that the decision sets: a regression that holds them fixed compares what the decision made.

A column is refused by its name (public HMDA's fields of loans that were made), or because the data fill it on one side
of the decision alone. The message has the share of applications with a value, by action.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from schemas.audit.spec import AuditSpec
from schemas.blocks import set_by_decision
from schemas.errors import Location, SpecError, raise_together
from tasks.numerics.arrays import Bools

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


def check_filled(found: Mapping[str, Filled], named: Mapping[str, Location]) -> None:
    """Refuse one-sided columns that the spec names.

    Raises:
        SpecError: there are some.
    """
    raise_together([SpecError(_message(name, found[name]), named[name]) for name in found if name in named])


def words(filled: Filled) -> str:
    """The share filled by action in words."""
    approved, denied = (f"{100 * share:.1f} %" for share in filled)
    return f"it is filled in {approved} of the approved and {denied} of the denied applications"


def _message(name: str, filled: Filled) -> str:
    return (
        f"{name!r} is set by the decision or after it, and so is no control: {words(filled)}; take it out of its block"
    )


def _in_source(spec: AuditSpec, names: list[str]) -> dict[str, Filled]:
    """The shares by the rows of the source itself."""
    from tasks.ingest import cells, registry

    read = list(dict.fromkeys([spec.decision.column, *names]))
    frame = registry.reader(spec.source).read(spec.source, read).table.to_pandas().astype(object)
    frame = frame.apply(lambda column: column.map(cells.canonical))
    gone = cells.missing_cells(frame, spec.source, {}) | frame.isin(spec.source.exempt)
    approved = frame[spec.decision.column].isin(spec.decision.favourable).to_numpy()
    decided = approved | frame[spec.decision.column].isin(spec.decision.unfavourable).to_numpy()
    return {name: _shares(~gone[name].to_numpy()[decided], approved[decided]) for name in names}


def _shares(filled: Bools, favourable: Bools) -> Filled:
    def share(side: Bools) -> float:
        return float(np.mean(filled[side])) if side.any() else 0.0

    return share(favourable), share(~favourable)
