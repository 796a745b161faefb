"""Reviewer's pack: the whole file of a few complainants, for a person to examine.

It has each complainant's application and decision, the values of the causal model, and both groups of neighbours with
decisions and distances. It is one workbook and two CSV files in the restricted part of the lake, readable by the owner
only. It holds personal rows and is never part of a report.
"""

import csv
import io
from pathlib import Path
from typing import Any

import duckdb
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.lake.views import open_views

WARNING = (
    "Restricted: this file holds rows of persons. It is for the review of single decisions, under the rules for "
    "applicants' files; it is not to be published or passed on. A finding is a reason to look, not the end of a review."
)

Rows = list[dict[str, Any]]

_CHOSEN = """
    SELECT row_id, "group", decision_maker, verdict, statistic AS delta, low AS lower_bound, high AS upper_bound,
           control AS refused_in_control_group, test AS refused_in_test_group, p, q
    FROM findings
    WHERE method = 'cst' AND protected_attribute = $attribute AND decision_maker = $maker AND refusal IS NULL
    ORDER BY q, lower_bound DESC, row_id
    LIMIT $n
"""
"""The strongest findings first."""


def write(lake: Lake, run: str, n: int, attribute: str | None, maker: str | None) -> list[Path]:
    """Write the pack of the ``n`` complainants with the strongest findings.

    Args:
        lake: the lake.
        run: the run.
        n: complainants for each protected attribute and decision maker.
        attribute: only this protected attribute.
        maker: only this decision maker.

    Returns:
        The files written.

    Raises:
        SpecError: the run has no findings of CST, or none of that attribute and decision maker.
    """
    with open_views(lake, run) as connection:
        known = _cases(connection, run)
        asked = [(a, m) for a, m in known if attribute in (None, a) and maker in (None, m)]
        if not asked:
            there = "; ".join(f"{a}, decisions of {m}" for a, m in known)
            raise SpecError(
                f"run {run} has no findings of CST by {attribute or 'any attribute'} on decisions of "
                f"{maker or 'anyone'}; "
                + (f"there are: {there}" if known else "ask for `methods: {cst: {}}` in the audit spec")
            )
        return [path for a, m in asked for path in _pack(connection, lake, run, a, m, n)]


def _cases(connection: duckdb.DuckDBPyConnection, run: str) -> list[tuple[str, str]]:
    query = """
        SELECT DISTINCT protected_attribute, decision_maker FROM findings
        WHERE method = 'cst' AND run = $run ORDER BY ALL
    """
    return connection.execute(query, {"run": run}).fetchall()


def _pack(
    connection: duckdb.DuckDBPyConnection, lake: Lake, run: str, attribute: str, maker: str, n: int
) -> list[Path]:
    chosen = _rows(connection, _CHOSEN, {"attribute": attribute, "maker": maker, "n": n})
    files = [row for each in chosen for row in _file(connection, each["row_id"], attribute, maker)]
    home = lake.root / "restricted" / run
    name = f"{maker}-{''.join(c if c.isalnum() else '-' for c in attribute)}"
    return [
        _private(lake, home / f"{name}.xlsx", _workbook({"complainants": chosen, "files": files})),
        _private(lake, home / f"{name}-complainants.csv", _csv(chosen)),
        _private(lake, home / f"{name}-files.csv", _csv(files)),
    ]


def _file(connection: duckdb.DuckDBPyConnection, row_id: str, attribute: str, maker: str) -> Rows:
    """All rows of one complainant's file: itself, its counterfactual, its control group, its test group.

    What is not the applicant's own has a name that no feature has.
    """
    given = {"id": row_id, "attribute": attribute, "maker": maker}
    real = """
        WITH near AS (
            SELECT 'complainant' AS role, 0 AS rank, NULL::DOUBLE AS distance, $id AS row_id
            UNION ALL
            SELECT role, rank, value, other_row_id FROM evidence
            WHERE method = 'cst' AND row_id = $id AND protected_attribute = $attribute AND decision_maker = $maker
        )
        SELECT near.role AS "pack: role", near.rank AS "pack: rank", near.distance AS "pack: distance",
               near.row_id AS "pack: application", m."group" AS "pack: group",
               d.favourable AS "pack: decided favourably", a.* EXCLUDE (run, row_id)
        FROM near
        JOIN applicants a USING (row_id)
        JOIN memberships m ON m.row_id = near.row_id AND m.protected_attribute = $attribute
        JOIN decisions d ON d.row_id = near.row_id AND d.decision_maker = $maker
        ORDER BY (near.role != 'complainant'), near.role, near.rank
    """
    imagined = """
        SELECT 'counterfactual' AS "pack: role", d.favourable AS "pack: decided favourably",
               c.* EXCLUDE (run, row_id, generator, protected_attribute, "group", refusal)
        FROM counterfactuals c
        LEFT JOIN counterfactual_decisions d
          ON d.row_id = c.row_id AND d.protected_attribute = $attribute AND d.decision_maker = $maker
        WHERE c.row_id = $id AND c.protected_attribute = $attribute AND c.refusal IS NULL
    """
    first, *others = _rows(connection, real, given)
    there = _rows(connection, imagined, given) if _has(connection, "counterfactuals") else []
    return [{"pack: complainant": row_id, **row} for row in (first, *there, *others)]


def _has(connection: duckdb.DuckDBPyConnection, view: str) -> bool:
    known = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return (view,) in known


def _rows(connection: duckdb.DuckDBPyConnection, query: str, given: dict[str, Any]) -> Rows:
    rows: Rows = connection.sql(query, params=given).to_arrow_table().to_pylist()
    return rows


def _columns(rows: Rows) -> list[str]:
    """All columns of the rows; a counterfactual has some of its own."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _private(lake: Lake, path: Path, content: bytes) -> Path:
    """Write a file that only its owner can read."""
    lake.write_file(str(path.relative_to(lake.root)), content)
    for directory in (path.parent, path.parent.parent):
        directory.chmod(0o700)
    path.chmod(0o600)
    return path


def _workbook(sheets: dict[str, Rows]) -> bytes:
    """Sheets of rows, each below the warning."""
    book = Workbook(write_only=False)
    book.remove(book.active)  # type: ignore[arg-type]
    for title, rows in sheets.items():
        _fill(book.create_sheet(title), rows)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _fill(sheet: Worksheet, rows: Rows) -> None:
    names = _columns(rows)
    sheet.append([WARNING])
    sheet.append(names)
    for row in rows:
        sheet.append([_cell(row.get(name)) for name in names])
    for cells in sheet.iter_rows(min_row=3):
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # text that begins like a formula stays text
    for cell in (*sheet[1], *sheet[2]):
        cell.font = Font(bold=True)
    for position, name in enumerate(names, 1):
        sheet.column_dimensions[get_column_letter(position)].width = max(10, min(len(name) + 2, 30))
    sheet.freeze_panes = "A3"


def _csv(rows: Rows) -> bytes:
    """Rows as CSV; text that a spreadsheet would take for a formula begins with an apostrophe."""
    sink, names = io.StringIO(), _columns(rows)
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_guarded(_cell(row.get(name))) for name in names] for row in rows)
    return sink.getvalue().encode()


def _cell(value: object) -> object:
    """A list, as noise is, in one cell: of one number as that number."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else "; ".join(f"{number:.10g}" for number in value)


def _guarded(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
