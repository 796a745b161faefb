"""Query from the columns of a recognised file to those of the canonical table; DuckDB streams it.

The query has two layers. The inner one reads every cell by itself and hands on beside it what was filed; in the outer
one codes are rolled up, and what concerns a whole row is told: what is exempt, blank, unknown or flagged, and whether
the row is refused. Scope: which column comes from where. How a cell is read: ``cells`` and ``places``.
"""
# ruff: noqa: S608 what goes into the SQL is quoted, or a name of ours

from collections.abc import Iterator, Mapping

from schemas.terms import Refusal
from tasks.ingest.hmda.canonical.cells import (
    SQL_TYPES,
    Cell,
    any_of,
    code,
    enumeration,
    joined,
    label,
    literal,
    number,
    quoted,
)
from tasks.ingest.hmda.canonical.codes import CANONICAL, HISTORIC, LABELS, MODERN, ROLLED_UP, WORDS
from tasks.ingest.hmda.canonical.derived import DERIVED
from tasks.ingest.hmda.canonical.places import made_of_places, place_cells, place_texts
from tasks.ingest.hmda.canonical.units import unit_flag
from tasks.ingest.hmda.files.recognition import Recognised

_PEOPLE = {
    f"{who}_{what}_{i}_raw": (f"{who}_{what}_{i}", *([f"{who}_{what}"] if i == 1 else []))
    for who in ("applicant", "co_applicant")
    for what in ("race", "ethnicity")
    for i in range(1, 6)
}
_NAMES: Mapping[str, tuple[str, ...]] = {  # canonical column -> what the files call it, where they do otherwise
    "activity_year": ("activity_year", "as_of_year"),
    "loan_amount_usd": ("loan_amount_000s", "loan_amount"),
    "income_usd": ("applicant_income_000s", "income"),
    "property_value_usd": ("property_value",),
    "ltv_ratio": ("combined_loan_to_value_ratio", "loan_to_value_ratio"),
    "loan_purpose_raw": ("loan_purpose",),
    "occupancy_raw": ("owner_occupancy", "occupancy_type"),
    "preapproval_raw": ("preapproval",),
    "lien_status_raw": ("lien_status",),
    "purchaser_type_raw": ("purchaser_type",),
    **_PEOPLE,
    "tract_population": ("population", "tract_population"),
    "tract_minority_pct": ("minority_population", "tract_minority_population_percent"),
    "ffiec_median_family_income": ("hud_median_family_income", "ffiec_msa_md_median_family_income"),
    "tract_to_msa_income_pct": ("tract_to_msamd_income", "tract_to_msa_income_percentage"),
    "tract_owner_occupied_units": ("number_of_owner_occupied_units", "tract_owner_occupied_units"),
    "tract_1_4_family_units": (
        *("number_of_1_to_4_family_units", "tract_one_to_four_family_units", "tract_one_to_four_family_homes"),
    ),
}
_ROUNDED = {"tract_minority_pct": 2, "tract_to_msa_income_pct": 2}
_NULL = {name: f"NULL::{SQL_TYPES[column.type]}" for name, column in CANONICAL.items()}
_MARKS = {"exempt", "blank", "unknown_codes", "unit_flag"}
"""Canonical columns that say something of the others."""
_OF_PLACES = {"state_code", "county_fips5", "tract_fips11"}
_MADE = {"occupancy", "preapproval", "lien_status", *ROLLED_UP, *_OF_PLACES}
"""Canonical columns that are not read under their own name."""


def select(recognised: Recognised) -> str:
    """A SELECT of all canonical columns over ``raw``, and of ``refusal``: null, or why the row is no application.

    ``raw`` has the file's columns as text, blank cells as null, and ``source_row``. ``refusal`` is a struct of
    ``reason``, ``column`` and ``detail``. A column that the file does not have is null.
    """
    cells = list(_cells(recognised))
    texts = place_texts(recognised)
    inner = ["source_row", *(cell.selected for cell in cells), *(f"{sql} AS {quoted(c)}" for c, sql in texts.items())]
    values = _values(recognised, cells, {*texts, "source_row"})
    outer = [f"{values[name]} AS {quoted(name)}" for name in CANONICAL]
    return f"SELECT {', '.join(outer)}, {_refusal(cells)} AS refusal FROM (SELECT {', '.join(inner)} FROM raw)"


def lacking(recognised: Recognised) -> tuple[str, ...]:
    """Columns of the canonical table that a file of these columns cannot give: they are null whatever its rows hold."""
    values = _values(recognised, list(_cells(recognised)), set(place_texts(recognised)) | {"source_row"})
    return tuple(name for name, sql in values.items() if sql == _NULL[name] and name not in _MARKS)


def _cells(recognised: Recognised) -> Iterator[Cell]:
    """How each canonical column that the file can give is read."""
    modern, has = recognised.layout.family == "modern", set(recognised.columns)
    yield from place_cells(recognised)
    for column in CANONICAL.values():
        if column.name in _MADE or not (column.codes or column.type != "string"):
            continue
        names = _NAMES.get(column.name, (column.name,))
        source = next((name for name in names if name in has), None)
        if column.type != "string":
            if source and column.name != "source_row":
                yield number(column.name, source, _scale(column.name, modern), _ROUNDED.get(column.name))
        elif source:
            era = MODERN if modern else HISTORIC
            known, words = era.get(column.name, column.codes), WORDS.get(column.name, ())
            yield code(column.name, source, known, words)
        else:
            yield from (label(column.name, s, LABELS[s]) for s in map(_label_of, names) if s in has)


def _scale(column: str, modern: bool) -> int:
    """Incomes are filed in thousands, loan amounts until 2017."""
    return 1000 if column == "income_usd" or (column == "loan_amount_usd" and not modern) else 1


def _label_of(source: str) -> str:
    """The column that says a code in words: applicant_race_1 -> applicant_race_name_1."""
    stem, _, last = source.rpartition("_")
    if source == "agency_code":
        return "agency_abbr"
    return f"{stem}_name_{last}" if last.isdigit() else f"{source}_name"


def _values(recognised: Recognised, cells: list[Cell], others: set[str]) -> dict[str, str]:
    """Canonical column -> SQL over the inner layer; of a column that the file cannot give, null."""
    read = {cell.column for cell in cells} | others
    out = {name: quoted(name) if name in read else null for name, null in _NULL.items()}
    if "activity_year" in read:
        out["activity_year"] = "TRY_CAST(activity_year AS INTEGER)"
    out |= {name: _as_code(name, f"left({_text(name)}, 1)") for name in ROLLED_UP if f"{name}_raw" in read}
    out |= _changed_in_2018(recognised.layout.family == "modern", read)
    for name, (rule, needed) in DERIVED.items():
        if name not in read and read.issuperset(needed):
            out[name] = rule(recognised.layout.family == "modern")
    out |= made_of_places(recognised)
    numbers = [cell for cell in cells if cell.kind == "number"]
    out["exempt"] = joined((cell.column, cell.exempt) for cell in numbers)
    out["blank"] = joined((cell.column, cell.blank) for cell in numbers)
    out["unknown_codes"] = _unknown([cell for cell in cells if cell.kind == "code"])
    out["unit_flag"] = unit_flag()
    return out


def _text(column: str) -> str:
    """The code as filed of a column that is made of it, as text."""
    return f"CAST({quoted(f'{column}_raw')} AS VARCHAR)"


def _as_code(column: str, sql: str) -> str:
    return f"TRY_CAST({sql} AS {enumeration(CANONICAL[column].codes)})"


def _changed_in_2018(modern: bool, read: set[str]) -> dict[str, str]:
    """Columns whose codes mean other things before and after."""
    out = {}
    if "occupancy_raw" in read:  # 2 was any other use; from 2018 it is a second residence and 3 an investment
        text = _text("occupancy")
        out["occupancy"] = f"CASE {text} WHEN '3' THEN '2' ELSE {text} END" if modern else f"nullif({text}, '3')"
    if "preapproval_raw" in read:
        out["preapproval"] = f"nullif({_text('preapproval')}, '3')"
    if "lien_status_raw" in read:
        out["lien_status"] = f"nullif({_text('lien_status')}, '4')"
    if "derived_dwelling_category" in read and "property_type" not in read:
        out["property_type"] = (
            "CASE WHEN starts_with(derived_dwelling_category, 'Multifamily') THEN '3' "
            "WHEN ends_with(derived_dwelling_category, 'Manufactured') THEN '2' "
            "WHEN derived_dwelling_category IS NOT NULL THEN '1' END"
        )
    elif {"construction_method", "total_units"} <= read:
        few = "total_units IN ('1', '2', '3', '4')"
        out["property_type"] = (
            f"CASE WHEN {few} THEN CAST(construction_method AS VARCHAR) WHEN total_units IS NOT NULL THEN '3' END"
        )
    return {column: _as_code(column, sql) for column, sql in out.items()}


def _unknown(codes: list[Cell]) -> str:
    """SQL of a JSON object of the codes that are not known; null where all are."""
    if not codes:
        return "NULL::VARCHAR"
    key = {cell.column: literal(f'"{cell.column}": ') for cell in codes}
    parts = ", ".join(
        f"CASE WHEN {cell.unknown} THEN {key[cell.column]} || to_json({cell.filed}) END" for cell in codes
    )
    told = "'{' || " + f"concat_ws(', ', {parts})" + " || '}'"
    return f"CASE WHEN {any_of(cell.unknown for cell in codes)} THEN {told} END"


_REQUIRED = {"activity_year": Refusal.MISSING_VALUE, "action_taken": Refusal.MISSING_DECISION}
"""Columns that a file must fill in where it has them."""


def _refusal(cells: list[Cell]) -> str:
    """SQL of the first fault of a row; whether there is any is asked first, since hardly a row has one."""
    faults, any_fault = [], []
    for cell in cells:
        if cell.column in _REQUIRED:
            faults.append((_REQUIRED[cell.column], cell, cell.absent))
            any_fault.append(cell.absent)
        if cell.column == "activity_year":
            faults.append((Refusal.NOT_A_NUMBER, cell, "activity_year <> floor(activity_year)"))
            any_fault.append("activity_year <> floor(activity_year)")
        if cell.kind == "number":
            faults += [(reason, cell, test) for reason, test in cell.faults(CANONICAL[cell.column]).items()]
            any_fault.append(cell.faulty(CANONICAL[cell.column]))
    said = " ".join(
        f"WHEN {test} THEN {{'reason': {literal(reason)}, 'column': {literal(cell.column)}, 'detail': {cell.filed}}}"
        for reason, cell, test in faults
    )
    return (
        f"CASE WHEN {any_of(any_fault)} THEN CASE {said} END END"
        if faults
        else 'NULL::STRUCT(reason VARCHAR, "column" VARCHAR, detail VARCHAR)'
    )
