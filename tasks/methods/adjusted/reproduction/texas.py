"""What the streamed regressions obtain of Texas 2022: denial against white applicants, on rungs of public columns.

Amounts enter as logarithms clipped at their 1st and 99th percentile, loan to value clipped at 150, all without squares.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.methods.adjusted.algorithm.ladder.linear import LinearFit
from tasks.methods.adjusted.algorithm.scale.batches import Batch
from tasks.methods.adjusted.algorithm.scale.effects import logit_effects
from tasks.methods.adjusted.algorithm.scale.gram import fit_batches
from tasks.methods.adjusted.algorithm.scale.newton import fit_logit
from tasks.methods.adjusted.algorithm.sensitivity.robustness import Estimate, robustness_value
from tasks.numerics.arrays import Floats
from tasks.proof.lines import Cell, Value
from tasks.proof.specs import TEXAS_FILE

WHITE = 5
GROUPS: Mapping[str, tuple[int, ...]] = {
    "Black": (3,),
    "Asian": (2, *range(21, 28)),
    "American Indian": (1,),
    "Pacific Islander": (4, *range(41, 45)),
}
NOT_PROVIDED = "not provided"
"""Everybody else: race not provided, not applicable or missing."""

RATIO, VALUE = "loan_to_value_ratio", "property_value"
MOST_RATIO = 150.0
RUNGS: tuple[tuple[str, ...], ...] = (
    (),
    ("loan_amount", VALUE, RATIO, "loan_purpose", "occupancy_type"),
    ("income", "debt_to_income_ratio"),
    ("applicant_age", "applicant_sex"),
)
"""Columns that each rung adds."""
MONEY = ("loan_amount", VALUE, "income")
BATCH = 10_000


def cells(data: Path) -> Iterator[tuple[Cell, Value]]:
    """Effects of all groups on every rung."""
    rows = complete(data)
    yield Cell("rows", "all"), float(len(rows))
    race = rows["applicant_race-1"]
    members = [race.isin(codes) for codes in GROUPS.values()]
    rest = ~(race.isin([WHITE]) | np.logical_or.reduce(members))
    x, y = np.column_stack([np.ones(len(rows)), *members, rest]), 1.0 - rows["approved"].to_numpy(dtype=np.float64)
    for rung, names in enumerate(RUNGS):
        x = np.column_stack([x, *(design(rows, name) for name in names)])
        for group, figures in zip([*GROUPS, NOT_PROVIDED], _effects(y, x), strict=True):
            for quantity, value in figures.items():
                yield Cell(quantity, group, (f"rung {rung}",)), value


def complete(data: Path) -> pd.DataFrame:
    """The rows with an income above zero, debt ratio, loan to value, and value."""
    rows = pd.read_csv(data / TEXAS_FILE, na_values=["Exempt"], low_memory=False)
    rows = rows.astype({RATIO: float, VALUE: float})
    return rows[rows["income"] > 0].dropna(subset=["debt_to_income_ratio", RATIO, VALUE])


def design(rows: pd.DataFrame, name: str) -> Floats:
    """``(n, q)`` columns of a control: an amount, the ratio, or indicators of all categories but the first."""
    column = rows[name]
    if name in MONEY:
        logs = np.log(column.to_numpy(dtype=np.float64))
        return np.asarray(np.clip(logs, *np.quantile(logs, (0.01, 0.99))))
    if name == RATIO:
        return np.asarray(np.minimum(column.to_numpy(dtype=np.float64), MOST_RATIO))
    return np.asarray(pd.get_dummies(column.astype(str), drop_first=True, dtype=float))


def _effects(y: Floats, x: Floats) -> Iterator[dict[str, float]]:
    """The figures of each group on a rung."""
    rows = Batch(y, x)

    def batches() -> Iterator[Batch]:
        return (rows.rows(slice(start, start + BATCH)) for start in range(0, len(y), BATCH))

    columns = range(1, 2 + len(GROUPS))
    linear, logit = fit_batches(batches), fit_logit(batches)
    own = logit_effects(batches, logit.coefficients, columns).own
    for column, effect in zip(columns, own, strict=True):
        yield {
            "odds_ratio": float(np.exp(logit.coefficients[column])),
            "own_effect": effect.value,
            "lpm": float(linear.coefficients[column]),
            "lpm_error": float(linear.se[column]),
            "robustness_value": _robustness(linear, column),
        }


def _robustness(fit: LinearFit, column: int) -> float:
    se = float(np.sqrt(fit.classical[column, column]))
    return robustness_value(Estimate(float(fit.coefficients[column]), se, fit.df))
