"""What is wrong with a lending table, or lacking in it, has a name in what commands print."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY, evenhand, loans

from tasks.ingest.synthetic.algorithm.twin import TwinSettings
from tasks.ingest.synthetic.twin_files import write

pytestmark = pytest.mark.slow

WORDS = {
    "white": ("White", "white", "WHITE", "White/Caucasian", "Caucasian", "w"),
    "Black": ("Black", "black", "BLACK", "Black or African American", "African American", "b"),
}
SPEC = f"""\
name: loans
year: 2024
source: {{kind: csv, path: loans.csv}}
row_id: id
decision: {{column: approved, favourable: ['yes'], unfavourable: ['no']}}
protected:
  - name: race
    columns: [race]
    file: people.csv
    key: id
    groups: {json.dumps({**{name: list(words) for name, words in WORDS.items()}, "Asian": ["Asian"]})}
    reference: white
columns:
  income: {{type: continuous, constraint: up}}
  amount: {{type: continuous, constraint: down}}
  history: {{type: ordinal, order: [bad, fair, good], constraint: up}}
model: {{kind: none}}
methods: {{adjusted: {{practice: always, splits: 1, estimators: [logit]}}, fgce: null}}
disclosure: {{profile: internal}}
bootstrap: {{draws: 100}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audited table of loans of one product; who is who is in a second file."""
    place, rng = tmp_path_factory.mktemp("bad"), np.random.default_rng(4)
    frame = loans(900).drop(columns="purpose")
    frame["race"] = frame["race"].map({"w": "white", "b": "Black"}).fillna("Asian")
    frame.loc[frame["race"] == "Asian", "approved"] = "no"
    at = np.arange(900)
    spread = (1 + rng.normal(0, 0.2, 900)).round(3).astype(str)
    priced = np.select([frame["approved"] != "yes", at % 4 == 0, at % 4 == 1], ["", "Exempt", ""], spread)
    frame["rate_spread"], frame["lien_status"] = priced, 1
    people = frame[["id"]].assign(race=[rng.choice(WORDS.get(name, (name,))) for name in frame["race"]])
    people = pd.concat([people.iloc[5:], people.iloc[[100]].assign(race="Asian")])
    people.to_csv(place / "people.csv", index=False)
    frame.drop(columns="race").to_csv(place / "loans.csv", index=False)
    (place / "loans.yaml").write_text(SPEC)
    done = evenhand("audit", str(place / "loans.yaml"), "--lake", str(place / "lake"), cwd=place)
    assert done.returncode in (0, 1, 3), done.stderr
    return place


def answered(place: Path, *words: str) -> Any:
    done = evenhand(*words, "--lake", str(place / "lake"), "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_loans_without_a_price_are_no_zeros_and_each_reason_has_a_name(place: Path) -> None:
    rows = [row for row in answered(place, "pricing") if row["outcome"] == "rate_spread"]
    [asian] = [row for row in rows if row["group"] == "Asian"]
    assert asian["reason"].startswith("no_originations")
    black = [row for row in rows if row["group"] == "Black"]
    assert any("one_product" in row["reason"] for row in black)
    assert all(0.3 < row["filled"] < 0.7 for row in black)
    [judged] = [row for row in black if row["judged"]]
    assert judged["low"] < 0 < judged["high"], "no price was planted; zeros in place of them would be one"


def test_spellings_are_groups_and_keys_without_a_partner_or_with_two_are_counted(place: Path) -> None:
    sizes = {row["group"]: row["n"] for row in answered(place, "flow") if row["outcome"] == "denied"}
    assert set(sizes) == {"white", "Black", "Asian", "(missing)"}
    assert sizes["(missing)"] == 5
    counts = "SELECT reason, CAST(sum(n) AS BIGINT) AS n FROM refusal_counts WHERE stage = 'ingest' GROUP BY ALL"
    assert {row["reason"]: row["n"] for row in answered(place, "sql", counts)} == {"outside_join": 1}


def test_a_search_without_an_eligible_candidate_says_so(place: Path) -> None:
    given = ("--loss", "0", "--candidates", "3", "--set", "model.kind=logistic_regression")
    gains = answered(place, "alternatives", "loans.yaml", *given)["gains"]
    assert any(gain["reason"].startswith("no_eligible_candidate") for gain in gains)
    assert not any(gain["above_zero"] for gain in gains)


def test_a_lender_of_one_tract_or_without_peers_has_shares_and_no_state(tmp_path: Path) -> None:
    file = write(tmp_path, TwinSettings(rows=2000, year=2024), 1).rows
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="|"))
    lender = Counter(row["lei"] for row in rows).most_common(1)[0][0]
    own = [row for row in rows if row["lei"] == lender]
    tract = {name: own[0][name] for name in ("census_tract", "tract_minority_population_percent")}
    tables = {
        "own": own,
        "one": [{**row, **tract} for row in own],
        "few": [row for row in rows if row["lei"] != lender][:20],
    }
    for name, lines in tables.items():
        with (tmp_path / f"{name}.txt").open("w", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]), delimiter="|")
            writer.writeheader()
            writer.writerows(lines)
    hmda = str(REPOSITORY / "data" / "audits" / "hmda.yaml")
    given = [word for key in ("vintage=null", "keep={}") for word in ("--set", f"source.{key}")]

    def places(name: str, *words: str) -> list[dict[str, Any]]:
        path = ("--set", f"source.path={name}.txt", "--set", "year=2024")
        rows: list[dict[str, Any]] = answered(tmp_path, "places", hmda, *given, *path, *words)
        return [row for row in rows if row["band"] == "above 50 %" and row["of"] == "applications"]

    [[single], [alone], [unasked]] = (
        places("one", "--peers", file.name),
        places("own", "--peers", "few.txt"),
        places("own"),
    )
    assert [row["reason"].partition(":")[0] for row in (single, alone, unasked)] == ["one_tract", "no_peers", "not_run"]
    assert {row["state"] for row in (single, alone, unasked)} == {""}
    assert single["ratio"] is not None
    assert (alone["ratio"], unasked["ratio"]) == (None, None)


def test_a_panel_of_another_year_is_refused(tmp_path: Path) -> None:
    panel = tmp_path / "panel.csv"
    panel.write_text("activity_year,lei,agency_code,respondent_name\n2023,TWIN0000000000000001,5,First Bank\n")
    done = evenhand("data", "add", "--panel", str(panel), "--year", "2024", "--lake", str(tmp_path / "lake"))
    assert done.returncode == 4
    assert "is a panel of 2023 and not of 2024" in done.stderr


def test_an_unknown_surname_has_an_outcome_and_no_probability(tmp_path: Path) -> None:
    frame = loans(300).assign(family=np.where(np.arange(300) < 40, "Xqzt", "Garcia"), zip="78704")
    frame.drop(columns="race").to_csv(tmp_path / "loans.csv", index=False)
    people = frame[["id", "race"]].replace({"race": {"": "Asian"}})
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "loans.yaml").write_text(SPEC)
    given = ("--set", "source.proxy={surname: family, place: zip}", "--lake", str(tmp_path / "lake"))
    done = evenhand("audit", "loans.yaml", *given, cwd=tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    query = 'SELECT outcome, CAST(sum("rows") AS BIGINT) AS n FROM proxy_outcomes GROUP BY ALL ORDER BY ALL'
    assert {row["outcome"]: row["n"] for row in answered(tmp_path, "sql", query)}["unknown_surname"] == 40
