"""Synthetic loans of several years, each another case, and the audit spec over them."""

from pathlib import Path

import numpy as np
import pandas as pd
from conftest import loans

from schemas.audit.spec import AuditSpec
from tasks.pipeline.registry import read_spec

WITHIN, LACKING, ONE_SIDED, BREACH, ABSENT = 2012, 2013, 2014, 2015, 2016
"""Nothing amiss; without a column; without a denial; with a breach; without a file."""
AUDITED = (WITHIN, LACKING, BREACH)
SPEC = """\
name: yearly
title: Synthetic loans by year
year: 2024
source: {kind: csv, path: 'PLACE/loans_{year}.csv'}
row_id: id
decision: {column: approved, favourable: ['yes'], unfavourable: ['no']}
protected:
  - name: race
    columns: [race]
    groups: {white: [w], Black: [b]}
    reference: white
columns:
  income: {type: continuous, constraint: up}
  amount: {type: continuous, constraint: down}
  history: {type: ordinal, order: [bad, fair, good], constraint: up}
causal_graph: {edges: [[race, income], [race, history], [income, amount]]}
model: {kind: logistic_regression, folds: 2}
methods: {adjusted: null, fgce: null}
thresholds:
  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.4}
verdicts: {limits: null}
disclosure: {profile: public}
bootstrap: {draws: 100}
"""


def year_of_loans(year: int) -> pd.DataFrame:
    """The loans of a year, each with a race."""
    frame = loans(420, seed=year)
    frame = frame[frame["race"] != ""].reset_index(drop=True)
    if year == LACKING:
        return frame.drop(columns="history")
    if year == ONE_SIDED:
        return frame.assign(approved="yes")
    if year == BREACH:
        denied = (frame["race"] == "b") & (np.arange(len(frame)) % 10 != 0)
        return frame.assign(approved=frame["approved"].mask(denied, "no"))
    return frame


def write_years(place: Path) -> Path:
    """The files of all years but the absent one, and the spec, whose path is given back."""
    for year in (WITHIN, LACKING, ONE_SIDED, BREACH):
        year_of_loans(year).to_csv(place / f"loans_{year}.csv", index=False)
    spec = place / "yearly.yaml"
    spec.write_text(SPEC.replace("PLACE", str(place)))
    return spec


def yearly_spec(place: Path, **overrides: str) -> AuditSpec:
    """The spec over the years in a directory; overrides are dotted keys with ``__`` for the dot."""
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return read_spec(SPEC.replace("PLACE", str(place)), "yearly.yaml", dotted).spec
