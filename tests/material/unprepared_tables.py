"""Small made-up tables of the shapes that users bring, with nobody's rows in them."""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from flows.cli.options import BUNDLED
from tasks.ingest.hmda.layouts import BY_NAME

ROWS = 240


def german(place: Path, header: bool = False) -> Path:
    """German credit: blanks between cells, codes, the label 1 or 2 at the end, no header."""
    spec = yaml.safe_load((BUNDLED.parent / "german-credit.yaml").read_text())
    rng, codes = np.random.default_rng(1), {"Personal-Status": ["A91", "A92", "A93", "A94"], "Status": ["1", "2"]}
    codes |= {name: list(map(str, c["order"])) for name, c in spec["columns"].items() if c.get("order")}
    codes |= {"Credit-History": ["A30", "A32", "A34"], "Purpose": ["A40", "A43"]}
    numbers = {name: rng.integers(18, 4000, ROWS) for name in ("Month-Duration", "Credit-Amount", "Age")}
    columns = {name: numbers[name] if name in numbers else rng.choice(codes[name], ROWS) for name in _names(spec)}
    path = place / "german.data"
    pd.DataFrame(columns).to_csv(path, sep=" ", index=False, header=header)
    return path


def _names(spec: dict[str, dict[str, list[str]]]) -> list[str]:
    return spec["source"]["header"]


def south_german(place: Path) -> Path:
    """South German credit: German names, whole numbers for everything, `kredit` at the end."""
    rng = np.random.default_rng(2)
    columns = {
        "laufkont": rng.integers(1, 5, ROWS),
        "laufzeit": rng.integers(4, 72, ROWS),
        "moral": rng.integers(0, 5, ROWS),
        "hoehe": rng.integers(250, 18000, ROWS),
        "famges": rng.integers(1, 5, ROWS),
        "alter": rng.integers(19, 75, ROWS),
        "telef": rng.integers(1, 3, ROWS),
        "gastarb": rng.choice([1, 2], ROWS, p=[0.1, 0.9]),
        "kredit": rng.choice([0, 1], ROWS, p=[0.3, 0.7]),
    }
    path = place / "south.csv"
    pd.DataFrame(columns).to_csv(path, sep=" ", index=False)
    return path


def compas(place: Path) -> Path:
    """COMPAS: identifiers, dates, sex and race, and outcomes after the one that is audited."""
    rng = np.random.default_rng(3)
    again = rng.integers(0, 2, ROWS)
    days = pd.date_range("2013-01-01", periods=ROWS).strftime("%Y-%m-%d")
    columns = {
        "id": range(1, ROWS + 1),
        "compas_screening_date": days,
        "sex": rng.choice(["Male", "Female"], ROWS, p=[0.8, 0.2]),
        "age": rng.integers(18, 80, ROWS),
        "race": rng.choice(["African-American", "Caucasian", "Other"], ROWS),
        "priors_count": rng.integers(0, 30, ROWS),
        "c_charge_degree": rng.choice(["F", "M"], ROWS),
        "r_charge_degree": np.where(again == 1, "(F3)", ""),
        "r_offense_date": np.where(again == 1, days, ""),
        "event": again,
        "is_recid": again,
        "two_year_recid": again,
    }
    path = place / "scores.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def hmda(place: Path, year: int = 2024) -> Path:
    """Public HMDA of one lender in the layout of the data browser; most races are not available."""
    rng = np.random.default_rng(4)
    action = rng.choice(["1", "3", "4"], ROWS, p=[0.6, 0.3, 0.1])
    races = ["Race Not Available", "White", "Black or African American", "Asian"]
    columns = dict.fromkeys(BY_NAME["data_browser"].columns, np.full(ROWS, "1"))
    columns |= {name: np.full(ROWS, "") for name in columns if name.endswith(("_2", "_3", "_4", "_5"))}
    columns |= {
        "activity_year": np.full(ROWS, str(year)),
        "lei": np.full(ROWS, "549300GAX7IKJUKCJE72"),
        "county_code": rng.choice(["06001", "06013"], ROWS),
        "census_tract": rng.choice(["06001423700", "06001423800"], ROWS),
        "derived_race": rng.choice(races, ROWS, p=[0.5, 0.3, 0.1, 0.1]),
        "derived_sex": rng.choice(["Sex Not Available", "Male", "Female", "Joint"], ROWS, p=[0.4, 0.2, 0.1, 0.3]),
        "derived_ethnicity": rng.choice(
            ["Ethnicity Not Available", "Not Hispanic or Latino", "Hispanic or Latino"], ROWS
        ),
        "action_taken": action,
        "denial_reason_1": np.where(action == "3", "1", "10"),
        "interest_rate": np.where(action == "1", "6.5", "NA"),
        "rate_spread": np.where(action == "1", "0.3", "NA"),
        "payment_months": np.where(action == "1", "360", ""),
        "purchaser_type": np.where(action == "1", "3", "0"),
        "loan_amount": rng.integers(10, 900, ROWS) * 1000,
        "income": rng.integers(20, 400, ROWS),
        "property_value": rng.integers(100, 900, ROWS) * 1000,
    }
    path = place / "lender.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def adult(place: Path) -> Path:
    """Adult: a comma and a blank between cells, no header, a question mark for what is missing."""
    rng = np.random.default_rng(5)
    rows = [
        f"{rng.integers(17, 90)}, {rng.choice(['Private', 'State-gov', '?'])}, {rng.integers(10**4, 10**5)}, HS-grad, "
        f"9, Divorced, Sales, Husband, {rng.choice(['White', 'Black'])}, {rng.choice(['Male', 'Female'])}, "
        f"0, 0, 40, United-States, {rng.choice(['<=50K', '>50K'])}"
        for _ in range(ROWS)
    ]
    path = place / "adult.data"
    path.write_text("\n".join([*rows, ""]))
    return path


def lender(place: Path, delimiter: str = ",", **columns: object) -> Path:
    """A lender's own table, with columns of the caller's beside its own."""
    rng = np.random.default_rng(6)
    approved = rng.choice(["approved", "denied"], ROWS)
    own = {
        "customer": [f"C{i:04d}" for i in range(ROWS)],
        "gender": rng.choice(["w", "m", "unknown"], ROWS, p=[0.3, 0.2, 0.5]),
        "age": rng.integers(18, 80, ROWS),
        "amount": rng.integers(1, 400, ROWS),
        "purpose": rng.choice(["car", "home"], ROWS),
        "apr": np.where(approved == "approved", "5.1", ""),
        "answer": approved,
    }
    path = place / "own.csv"
    pd.DataFrame({**own, **columns}).to_csv(path, index=False, sep=delimiter)
    return path
