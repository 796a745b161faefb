"""Small files of every HMDA layout, written for tests: plausible cells, one row like the next but for its number."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.ingest.hmda.layouts import BY_NAME, Layout

CELLS = {
    "lei": "B4TYDEB6GKMZO031MB27",
    "respondent_id": "0000013044",
    "agency_code": "9",
    "agency_abbr": "CFPB",
    "agency_name": "Consumer Financial Protection Bureau",
    "action_taken": "3",
    "action_taken_name": "Application denied by financial institution",
    "loan_type": "1",
    "loan_type_name": "Conventional",
    "loan_purpose": "1",
    "loan_purpose_name": "Home purchase",
    "property_type": "1",
    "property_type_name": "One-to-four family dwelling (other than manufactured housing)",
    "preapproval": "2",
    "preapproval_name": "Preapproval was not requested",
    "owner_occupancy": "1",
    "owner_occupancy_name": "Owner-occupied as a principal dwelling",
    "occupancy_type": "1",
    "lien_status": "1",
    "lien_status_name": "Secured by a first lien",
    "hoepa_status": "2",
    "hoepa_status_name": "Not a HOEPA loan",
    "purchaser_type": "0",
    "purchaser_type_name": "Loan was not originated or was not sold in calendar year covered by register",
    "state_code": "48",
    "state_abbr": "TX",
    "state_name": "Texas",
    "county_code": "201",
    "census_tract": "0029.02",
    "census_tract_number": "0029.02",
    "applicant_race_1": "5",
    "applicant_race_name_1": "White",
    "applicant_ethnicity": "2",
    "applicant_ethnicity_1": "2",
    "applicant_ethnicity_name": "Not Hispanic or Latino",
    "applicant_sex": "1",
    "applicant_sex_name": "Male",
    "co_applicant_sex": "5",
    "co_applicant_race_1": "8",
    "co_applicant_ethnicity": "5",
    "applicant_age": "35-44",
    "loan_amount": "205",
    "loan_amount_000s": "205",
    "income": "99",
    "applicant_income_000s": "99",
    "population": "5305",
    "tract_population": "5305",
    "debt_to_income_ratio": "36",
}
MODERN = {"loan_amount": "205000.0", "state_code": "TX", "county_code": "48201", "census_tract": "48201002902"}

YEARS = {
    "historic_labels": 2012,
    "historic_codes": 2008,
    "historic_slice": 2010,
    "nara_fixed": 2006,
    "ffiec_flat": 2015,
    "flat_2017": 2017,
    "flat_2017_three_year": 2017,
    "public_lar": 2021,
    "data_browser": 2023,
    "modified_lar": 2022,
}
"""A year of each layout."""


def rows_of(layout: Layout, year: int, rows: int = 5, changed: Mapping[str, str] | None = None) -> list[list[str]]:
    """Cells of the layout's columns; ``changed`` gives other ones."""
    cells = {**CELLS, **(MODERN if layout.family == "modern" else {}), **(changed or {})}
    cells |= {"activity_year": str(year), "as_of_year": str(year)}
    return [[{**cells, "sequence_number": str(i)}.get(name, "") for name in layout.columns] for i in range(rows)]


def text_of(rows: Sequence[Sequence[str]], header: Sequence[str] | None = None, delimiter: str = ",") -> str:
    """The rows as delimited text, below a header where there is one."""
    out = io.StringIO()
    lines = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    lines.writerows([*([header] if header else []), *rows])
    return out.getvalue()


def fixed_text(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines of fixed width."""
    stops = BY_NAME["nara_fixed"].stops
    widths = [b - a for a, b in zip((0, *stops[:-1]), stops, strict=True)]
    cut = [[cell[:w].rjust(w) for cell, w in zip(row, widths, strict=True)] for row in rows]
    return "".join("".join(cells) + "\n" for cells in cut)


def write(path: Path, name: str, year: int, delimiter: str = ",", **how: object) -> Path:
    """A file of five rows in a layout, as it was published; ``how`` is for ``rows_of``."""
    layout = BY_NAME[name]
    rows = rows_of(layout, year, **how)  # type: ignore[arg-type]
    header = layout.columns if layout.header else None
    text = fixed_text(rows) if layout.stops else text_of(rows, header, delimiter)
    path.write_text(text, encoding="latin-1" if name == "ffiec_flat" else "utf-8")
    return path
