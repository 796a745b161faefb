"""Location and lender of an application by era: state, county, tract, metropolitan area and lender.

Until 2017 the parts of a place are columns of their own and the tract is a number such as 29.02; from 2018 county and
tract are written whole. Scope: that difference.
"""

from collections.abc import Iterator

from schemas.tables.hmda import STATES
from tasks.ingest.hmda.canonical.cells import Cell, code, digits, label, listed, literal, quoted
from tasks.ingest.hmda.canonical.codes import FIPS_OF_STATE, NO_AREA, NOT_APPLICABLE
from tasks.ingest.hmda.files.recognition import Recognised

_AREAS = ("derived_msa_md", "msa_md", "msamd")
_TRACTS = ("census_tract_number", "census_tract")
_TEXTS = {  # canonical column -> the files' columns, the first that is there
    "county_name": ("county_name",),
    "msa_md_name": ("msamd_name",),
    "edit_status": ("edit_status", "edit_status_name"),
    "sequence_number": ("sequence_number",),
    "application_date_indicator": ("application_date_indicator",),
}
_OF_NUMBER = {spelt: letters for letters, number in FIPS_OF_STATE.items() for spelt in (number, number.lstrip("0"))}


def place_cells(recognised: Recognised) -> Iterator[Cell]:
    """Cells of state, county and tract, over the file's columns."""
    has, modern = set(recognised.columns), recognised.layout.family == "modern"
    if "state_code" in has:
        yield code("state_code", "state_code", STATES) if modern else label("state_code", "state_code", _OF_NUMBER)
    elif "state_abbr" in has:
        yield code("state_code", "state_abbr", STATES)
    if modern:
        if "county_code" in has:
            yield digits("county_fips5", "county_code", 5)
        if "census_tract" in has:
            yield digits("tract_fips11", "census_tract", 11)
        return
    if "county_code" in has and "state_code" in has:
        county = digits("county_fips5", "county_code", 3)
        state = digits("state_code", "state_code", 2)
        yield Cell("county_fips5", "county_code", "code", f"({state.value}) || ({county.value})")
    for source in _TRACTS:
        if source in has:
            yield _tract_in_county(source)
            return


def _tract_in_county(source: str) -> Cell:
    """29.02 -> 002902 and 9501 -> 950100: four digits, a point, two digits."""
    text = quoted(source)
    plain = f"CASE WHEN {text} <> {literal(NOT_APPLICABLE)} THEN TRY_CAST({text} AS DOUBLE) END"
    whole = f"CAST(round(({plain}) * 100) AS BIGINT)"
    value = f"CASE WHEN {plain} >= 0 AND {plain} < 10000 THEN lpad(CAST({whole} AS VARCHAR), 6, '0') END"
    return Cell("census_tract", source, "code", value)


def place_texts(recognised: Recognised) -> dict[str, str]:
    """Canonical column -> SQL of a text that is taken as it is, over the file's columns."""
    has, out = set(recognised.columns), {}
    for column, sources in _TEXTS.items():
        found = next((source for source in sources if source in has), None)
        if found:
            out[column] = quoted(found)
    lender = next((name for name in ("lei", "respondent_id") if name in has), None)
    if lender:
        out["lender_id"] = quoted(lender)
    area = next((name for name in _AREAS if name in has), None)
    if area:
        out["msa_md"] = f"CASE WHEN NOT list_contains({listed(NO_AREA)}, {quoted(area)}) THEN {quoted(area)} END"
    return out


def made_of_places(recognised: Recognised) -> dict[str, str]:
    """Canonical column -> SQL over the canonical columns that were read: what is put together from several."""
    if recognised.layout.family == "modern":
        return {"census_tract": "right(tract_fips11, 6)"} if "census_tract" in recognised.columns else {}
    out = {}
    if {"county_code", "state_code"} <= set(recognised.columns) and any(t in recognised.columns for t in _TRACTS):
        out["tract_fips11"] = "county_fips5 || census_tract"
    if "respondent_id" in recognised.columns:
        # two lenders of different agencies may have one respondent_id; without the agency nobody can be named
        out["lender_id"] = "CAST(agency_code AS VARCHAR) || '-' || lender_id"
    return out
