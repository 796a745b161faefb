"""A table of loans of several lenders, and a spec that audits them one by one."""

from pathlib import Path

import numpy as np
import pandas as pd
from conftest import SPEC, loans, spec_of

from schemas.audit.spec import AuditSpec

ROWS = {"Bank A": 300, "Bank-A": 200, "Small": 60, "Approver": 120, "Of b": 130, "Few b": 140, "No income": 150}
NOBODY = 25
"""Rows without a lender."""
BY = "by: {column: lender, minimum: 100}\n"


def loans_of_lenders() -> pd.DataFrame:
    """One that approves all, one without the reference group, one with ten black applicants, one without incomes."""
    table = loans(sum(ROWS.values()) + NOBODY)
    lender = np.repeat([*ROWS, ""], [*ROWS.values(), NOBODY])
    table["lender"] = lender
    table.loc[lender == "Approver", "approved"] = "yes"
    table.loc[lender == "Of b", "race"] = "b"
    few = table.index[lender == "Few b"]
    table.loc[few, "race"] = "w"
    table.loc[few[:10], "race"] = "b"
    table["income"] = table["income"].mask(lender == "No income")
    return table


def lenders_spec(place: Path, table: pd.DataFrame | None = None, by: str = BY, **overrides: str) -> AuditSpec:
    """Write the table into a directory, and give its spec."""
    (loans_of_lenders() if table is None else table).to_csv(place / "loans.csv", index=False)
    return spec_of(place, SPEC + by, **overrides)
