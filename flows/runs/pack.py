"""Reviewer's pack: the whole file of a few complainants, for a person to examine.

It has each complainant's application and decision, the values of the causal model, and both groups of neighbours with
decisions and distances. It is one workbook and two CSV files in the restricted part of the lake, readable by the owner
only. It holds personal rows and is never part of a report.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.lake.views import open_views
from tasks.metrics.algorithm.agreement import necessity_interval
from tasks.reporting.exports.workbook import Sheet, spreadsheet
from tasks.reporting.text import guarded

WARNING = (
    "Restricted: this file holds rows of persons. It is for the review of single decisions, under the rules for "
    "applicants' files; it is not to be published or passed on. A finding is a reason to look, not the end of a "
    "review. No figure here is a finding about that person."
)

Rows = list[dict[str, Any]]

_CHOSEN = """
    SELECT row_id, "group", decision_maker, verdict, statistic AS delta, low AS lower_bound, high AS upper_bound,
           control AS refused_in_control_group, test AS refused_in_test_group,
           if(control > 0, greatest(0, least(1, (control - test) / control)), NULL) AS necessity, p, q
    FROM findings SEMI JOIN (FROM decisions WHERE NOT ($denied AND favourable)) USING (row_id, decision_maker)
    WHERE method = 'cst' AND protected_attribute = $attribute AND decision_maker = $maker AND refusal IS NULL
      AND "group" = coalesce($group, "group")
    ORDER BY if($denied, -necessity, NULL) NULLS LAST, q, lower_bound DESC, row_id
    LIMIT $n
"""
"""The strongest findings first; among the denied those whose own neighbours were denied in the largest excess share.

Harm is likeliest where approval was near, and the difference is largest where it was a toss-up
(``tasks.metrics.algorithm.agreement.necessity``).
"""


_CASES = """
    SELECT DISTINCT protected_attribute, decision_maker FROM findings
    WHERE method = 'cst' AND run = $run ORDER BY ALL
"""


@dataclass(frozen=True)
class Wanted:
    """Which complainants' files are packed."""

    n: int
    """Complainants for each protected attribute and decision maker."""
    attribute: str | None = None
    """Only this protected attribute."""
    maker: str | None = None
    """Only these decisions."""
    group: str | None = None
    """Only this group."""
    denied: bool = False
    """Only applicants who were denied."""


def write(lake: Lake, run: str, selection: Wanted) -> list[Path]:
    """Write the pack of the complainants with the strongest findings.

    Args:
        lake: the lake.
        run: the run.
        selection: how many complainants, and which.

    Returns:
        The files written.

    Raises:
        SpecError: the run has no findings of CST, or none of that attribute and decision maker.
    """
    with open_views(lake, run) as connection:
        cases: list[tuple[str, str]] = connection.execute(_CASES, {"run": run}).fetchall()
        selected_cases = [(a, m) for a, m in cases if selection.attribute in (None, a) and selection.maker in (None, m)]
        if not selected_cases:
            case_names = "; ".join(f"{a}, decisions of {m}" for a, m in cases)
            raise SpecError(
                f"run {run} has no findings of CST by {selection.attribute or 'any attribute'} on decisions of "
                f"{selection.maker or 'anyone'}; "
                + (f"there are: {case_names}" if cases else "ask for `methods: {cst: {}}` in the audit spec")
            )
        return [path for a, m in selected_cases for path in _pack(connection, lake, run, a, m, selection)]


def _pack(
    connection: duckdb.DuckDBPyConnection, lake: Lake, run: str, attribute: str, maker: str, selection: Wanted
) -> list[Path]:
    parameters = {
        "attribute": attribute,
        "maker": maker,
        "n": selection.n,
        "group": selection.group,
        "denied": selection.denied,
    }
    rng, chosen, files = np.random.default_rng(0), list[dict[str, Any]](), list[dict[str, Any]]()
    for complainant in _rows(connection, _CHOSEN, parameters):
        near = _file(connection, complainant["row_id"], attribute, maker)
        files += near
        control, test = (
            [not row["pack: decided favourably"] for row in near if row["pack: role"] == role]
            for role in ("control", "test")
        )
        low, high = necessity_interval(control, test, rng)
        ends = {"necessity_low": low, "necessity_high": high} if complainant["necessity"] is not None else {}
        chosen.append({**complainant, "necessity_low": None, "necessity_high": None, **ends})
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
    parameters = {"id": row_id, "attribute": attribute, "maker": maker}
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
    first, *later_rows = _rows(connection, real, parameters)
    views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    has = ("counterfactuals",) in views
    counterfactual_rows = _rows(connection, imagined, parameters) if has else []
    return [{"pack: complainant": row_id, **row} for row in (first, *counterfactual_rows, *later_rows)]


def _rows(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, Any]) -> Rows:
    rows: Rows = connection.sql(query, params=parameters).to_arrow_table().to_pylist()
    return rows


def _columns(rows: Rows) -> list[str]:
    """All columns of the rows; counterfactual rows have additional ones."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _private(lake: Lake, path: Path, content: bytes) -> Path:
    """Write a file that only its owner can read."""
    lake.write_file(str(path.relative_to(lake.root)), content)
    for directory in (path.parent, path.parent.parent):
        directory.chmod(0o700)
    path.chmod(0o600)
    return path


def _workbook(sheets: dict[str, Rows]) -> bytes:
    """Sheets of rows, each below the warning. Rows of persons are written to no temporary file."""
    return spreadsheet((_sheet(title, rows) for title, rows in sheets.items()), in_memory=True)


def _sheet(title: str, rows: Rows) -> Sheet:
    names = _columns(rows)
    cells = tuple(tuple(_cell(row.get(name)) for name in names) for row in rows)
    return Sheet(title, tuple(names), cells, above=(WARNING,))


def _csv(rows: Rows) -> bytes:
    """Rows as CSV; text that a spreadsheet would take for a formula begins with an apostrophe."""
    sink, names = io.StringIO(), _columns(rows)
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([guarded(_cell(row.get(name))) for name in names] for row in rows)
    return sink.getvalue().encode()


def _cell(value: object) -> object:
    """A list, as noise is, in one cell: of one number as that number."""
    if not isinstance(value, list):
        return value
    return value[0] if len(value) == 1 else "; ".join(f"{number:.10g}" for number in value)
