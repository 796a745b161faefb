"""A lender among its peers: who they are, where they lend, and a whole year's lenders side by side.

Scope: which rows of the lake are read, and the names of lenders. Counts: ``tasks.ingest.vintages.peers``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, InfrastructureError, SpecError
from schemas.vintages import Vintage
from tasks.ingest.hmda.rows import open_file
from tasks.ingest.vintages import panels
from tasks.ingest.vintages.peers import peers_of, screened
from tasks.ingest.vintages.store import file_of, newest
from tasks.lake.store import Lake

NO_PEERS = "no_peers: no lender has 0.5 to 2 times its applications in the same areas and products"


@dataclass(frozen=True)
class Peers:
    """A lender with its peers."""

    lender: str
    name: str
    vintage: str
    applications: int
    rows: list[dict[str, Any]]
    """``lender_id``, ``name``, ``applications``, ``times``, ``assets``, ``agency`` and ``state``."""
    reason: str = ""
    """Why there are none."""
    notes: tuple[str, ...] = ()


def peers(lake: Lake, lender: str, year: int | None, area: str | None = None) -> Peers:
    """The peers of a lender in the newest vintage of a year, or of the newest year that is held.

    Raises:
        SpecError: the vintage has no application of the lender, or none in the area.
        InfrastructureError: the lake holds no vintage.
    """
    vintage = _vintage(lake, year)
    with open_file(file_of(lake, vintage)) as file:
        of_lender = peers_of(file.connection, file.table(), lender, area)
    if not of_lender.applications:
        where = f" in area {area}" if area else ""
        raise SpecError(f"{vintage} has no application of {lender!r}{where}; `evenhand plan SPEC` lists its lenders")
    names, notes = _names(lake, vintage.year)
    rows = [_named(row, names) for row in of_lender.peers.to_pylist()]
    absent = sum(row["lender_id"] not in names for row in [{"lender_id": lender}, *rows]) if names else 0
    notes += [f"{absent} of these lenders are not in the panel of {vintage.year}"] if absent else []
    name = names[lender].name if lender in names else ""
    reason = "" if rows else NO_PEERS
    return Peers(lender, name, str(vintage), of_lender.applications, rows, reason, tuple(notes))


def places(spec: AuditSpec, peers_file: Path | None) -> pa.Table:
    """The lender of a spec and its peers, in the shape of ``PLACES``.

    Raises:
        SpecError: the source is no HMDA.
        DataQualityError: it has several lenders, or none is named.
        InfrastructureError: there is no such file of peers.
    """
    from tasks.methods.adjusted.follow.rows import places_of  # loads what fits
    from tasks.methods.adjusted.follow.stage import rng_of

    if spec.source.kind != "hmda":
        raise SpecError("places need census tracts with their minority share, which HMDA has", ("source", "kind"))
    if peers_file is not None and not peers_file.is_file():
        raise InfrastructureError(f"--peers {peers_file}: there is no such file")
    table = places_of(spec.source, peers_file, spec.bootstrap.level, rng_of(spec.seed))
    if not table.num_rows:
        raise DataQualityError(
            "the source has several lenders, or names none: give one lender's file, or `by: {column: lender_id}` and "
            "--by-value LEI; `evenhand peers --all --year` screens all of them"
        )
    return table


def screen(lake: Lake, year: int | None) -> tuple[str, list[dict[str, Any]]]:
    """Every lender of a year: places of it and its peers, and prices, for screening and no verdict.

    Raises:
        InfrastructureError: the lake holds no vintage.
    """
    vintage = _vintage(lake, year)
    with open_file(file_of(lake, vintage)) as file:
        rows = screened(file.connection, file.table()).to_pylist()
    names, _ = _names(lake, vintage.year)
    return str(vintage), [_named(row, names) for row in rows]


def _vintage(lake: Lake, year: int | None) -> Vintage:
    from tasks.ingest.vintages.store import vintages

    if year is None:
        years = sorted({vintage.year for vintage in vintages(lake)})
        if not years:
            raise InfrastructureError("the lake holds no vintage; `evenhand data fetch` or `evenhand data add`")
        year = years[-1]
    vintage = newest(lake, year)
    if vintage is None:
        raise InfrastructureError(f"the lake holds no vintage of {year}; `evenhand data list` prints its years")
    return vintage


def _names(lake: Lake, year: int) -> tuple[Mapping[str, panels.Lender], list[str]]:
    """Lender -> its entry in the panel, and what a reader must know of the names."""
    names = panels.lenders_of(lake, year)
    if names:
        return names, []
    other_years = ", ".join(map(str, panels.years(lake)))
    panel_words = f"the lake has panels of {other_years}" if other_years else "the lake has no panel"
    return {}, [f"no names: {panel_words}, and none of {year}; `evenhand data add --panel FILE`"]


def _named(row: Mapping[str, Any], names: Mapping[str, panels.Lender]) -> dict[str, Any]:
    lender = names.get(row["lender_id"])
    about = {name: getattr(lender, name, "") for name in ("name", "assets", "agency", "state")}
    return {"lender_id": row["lender_id"], "name": about.pop("name"), **row, **about}
