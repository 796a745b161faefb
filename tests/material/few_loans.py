"""Sixty loans and their spec without any method, for tests of the user's own expectations."""

import json
from pathlib import Path
from typing import Any

from conftest import loans

ROWS = 60
FEW = """\
name: few
year: 2024
source: {kind: csv, path: loans.csv}
row_id: id
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - {name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}
columns:
  income: {type: continuous}
  purpose: {type: nominal}
  note: {type: nominal}
model: {kind: none}
methods: {adjusted: null, fgce: null}
verdicts: {limits: null}
bootstrap: {draws: 100}
"""


def few_loans(place: Path, expectations: Any = None, suite: str = "", rows: int = ROWS) -> Path:
    """Write table and spec; the expectations as a list in it, or in a file that it names."""
    table = loans(rows)
    table["income"] = [float(number) for number in range(1, rows + 1)]
    table["note"] = ["", "", *["x"] * (rows - 2)]
    table.to_csv(place / "loans.csv", index=False)
    text = FEW
    if suite:
        (place / suite).write_text(json.dumps({"name": "few", "expectations": expectations}))
        text += f"expectations: {suite}\n"
    elif expectations is not None:
        text += f"expectations: {json.dumps(expectations)}\n"
    (place / "few.yaml").write_text(text)
    return place / "few.yaml"


def mean(severity: str = "critical", least: float = 50) -> dict[str, Any]:
    """An expectation about the mean of income, which is 30.5."""
    kwargs = {"column": "income", "min_value": least}
    return {"type": "expect_column_mean_to_be_between", "kwargs": kwargs, "severity": severity}


def between(most: float, severity: str = "critical") -> dict[str, Any]:
    """An expectation about every value of income: 1 to 60."""
    kwargs = {"column": "income", "max_value": most}
    return {"type": "expect_column_values_to_be_between", "kwargs": kwargs, "severity": severity}


def query(sql: str) -> dict[str, Any]:
    """An expectation in SQL."""
    return {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": sql}}
