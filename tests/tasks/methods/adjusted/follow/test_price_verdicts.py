"""The price joins the question of similar applicants: it may put it outside, and is no other answer about approval."""

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SPEC, loans

from flows.runs.first_page import summary
from schemas.tables.verdicts import effect_words, in_approval, limit_words, row_words
from tasks.in_memory import call_plainly
from tasks.pipeline.registry import read_spec
from tasks.plan import plan
from tasks.reporting.pages import FIRST, files
from tasks.reporting.stage import READ, material_of

OTHERS = {f"methods.{name}": "null" for name in ("fgce", "cst", "cec", "gcfn", "raguel")}
GIVEN = {
    "methods.adjusted": "{practice: always, estimators: [logit, lpm]}",
    "model.kind": "none",
    "verdicts.columns_complete": "true",
    "verdicts.parts.by": "[]",
}


def judged(place: Path, effect: float, **overrides: str) -> dict[str, pd.DataFrame]:
    frame = loans(900)
    rng = np.random.default_rng(4)
    spread = 1 + effect * (frame["race"] == "b") + rng.normal(0, 0.2, 900)
    frame["rate_spread"] = spread.where(frame["approved"] == "yes").round(3)
    frame.to_csv(place / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    spec = read_spec(text, "spec.yaml", OTHERS | GIVEN | given).spec
    tables = call_plainly(plan(spec).steps[:-2])
    return {name: pa.concat_tables(tables[name]).to_pandas() for name in ("verdicts", "agreement", "measures")}


def alike(place: Path, effect: float | None, **overrides: str) -> tuple[list[dict[str, object]], dict[str, bytes]]:
    """Verdicts and report of a lender that decides alike, and adds an effect to Black borrowers' rates, if any."""
    frame = loans(900)
    rng = np.random.default_rng(11)
    merit = 0.03 * frame["income"] - 0.01 * frame["amount"] + rng.logistic(0, 1, 900)
    frame["approved"] = np.where(merit > -0.3, "yes", "no")
    if effect is not None:
        spread = 1 + effect * (frame["race"] == "b") + rng.normal(0, 0.2, 900)
        frame["rate_spread"] = spread.where(frame["approved"] == "yes").round(3)
    frame.to_csv(place / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    steps = plan(read_spec(text, "spec.yaml", OTHERS | GIVEN | given).spec).steps
    made = call_plainly(steps[:-1])
    material = material_of(
        [pa.concat_tables(made.get(table.name) or [table.empty()]) for table in READ], steps[-1].settings
    )
    return pa.concat_tables(made["verdicts"]).to_pylist(), files(material)


@pytest.mark.slow
def test_a_lender_that_harms_by_price_alone_is_outside_and_every_output_says_price(tmp_path: Path) -> None:
    rows, report = alike(tmp_path, 0.4)
    unpriced_rows, unpriced = alike(tmp_path, None, methods__adjusted="{practice: never, estimators: [logit, lpm]}")
    equal_rows, equal = alike(tmp_path, 0.0)

    states = {row["measure"]: row["state"] for row in rows if row["theory"] == "similar_applicants"}
    assert states["adjusted_effect"] != "outside"
    assert (states["rate_spread_effect"], states[""]) == ("outside", "outside")
    [theory] = [row for row in rows if row["theory"] == "similar_applicants" and row["role"] == "theory"]
    assert theory["reason"] == "beyond the limit: Black (price)"
    [priced] = [row for row in rows if row["measure"] == "rate_spread_effect"]
    assert row_words(priced).startswith("Similar applicants, price, race: Black +0.")

    document = json.loads(report["report.json"])
    said = "Black borrowers paid more for their loans than similar white borrowers."
    [question] = [line for line in document["questions"] if line["theory"] == "similar_applicants"]
    assert (document["state"], document["headline"]["rule"], question["state"]) == ("outside", "price", "outside")
    page = unescape(re.sub(r"<[^>]+>", " ", report[FIRST].decode()))
    own_page = unescape(re.sub(r"<[^>]+>", " ", report["pages/similar-applicants.html"].decode()))
    terminal = " ".join(" ".join(summary(document, "report.html")).split())
    for text in (page, terminal, document["headline"]["words"]):
        assert said in " ".join(text.split())
    assert "Similar Black borrowers paid 0." in question["sentence"]
    for text in (page, terminal):
        assert "percentage points more above the benchmark rate" in " ".join(text.split())
    assert "Outside the limit of 0.1 percentage points in prices" in page
    assert "Prices outside their limit of 0.1 percentage points: Black." in own_page

    # without harm by price, and as if there were no prices
    assert [row for row in equal_rows if row["measure"] != "rate_spread_effect"] == unpriced_rows
    of_approvals = [row for row in rows if row["role"] != "theory" and row["measure"] != "rate_spread_effect"]
    assert of_approvals == [row for row in unpriced_rows if row["role"] != "theory"]
    for key in ("state", "headline", "questions"):
        assert json.loads(equal["report.json"])[key] == json.loads(unpriced["report.json"])[key]


def test_a_price_is_printed_in_percentage_points_and_keeps_its_sign() -> None:
    row = {"theory": "similar_applicants", "measure": "rate_spread_effect", "role": "adds", "scale": "linear"}
    row |= {"value": 0.4, "low": 0.36, "high": 0.44, "limit": 0.1, "side": "at_most", "bias": 0.0}
    assert in_approval(row) == row
    assert effect_words(row) == "+0.400 percentage points [+0.360, +0.440]"
    assert limit_words(row) == "at most 0.1 percentage points"
    denial = {**row, "measure": "adjusted_effect"}
    assert in_approval(denial)["value"] == -0.4


@pytest.fixture(scope="module")
def dear(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    return judged(tmp_path_factory.mktemp("dear"), 0.4)


def price_of(tables: dict[str, pd.DataFrame]) -> dict[str, object]:
    [row] = tables["verdicts"].query("measure == 'rate_spread_effect' and group == 'Black'").to_dict("records")
    return row


@pytest.mark.slow
def test_a_dear_price_is_outside_its_own_limit_and_puts_the_question_outside(dear: dict[str, pd.DataFrame]) -> None:
    price = price_of(dear)
    assert (price["state"], price["role"], price["limit"], price["side"]) == ("outside", "adds", 0.1, "at_most")
    [theory] = dear["verdicts"].query("theory == 'similar_applicants' and role == 'theory'").to_dict("records")
    assert theory["state"] == "outside"


@pytest.mark.slow
def test_prices_and_approvals_do_not_contradict_each_other(dear: dict[str, pd.DataFrame]) -> None:
    assert "rate_spread_effect" not in set(dear["agreement"]["measure"])
    [theory] = dear["verdicts"].query("theory == 'similar_applicants' and role == 'theory'").to_dict("records")
    assert "disagree" not in theory["reason"]


@pytest.mark.slow
def test_standardised_differences_are_measures_without_a_state(dear: dict[str, pd.DataFrame]) -> None:
    rows = dear["measures"].query("measure == 'smd' and group == 'Black'")
    assert rows["parameters"].tolist() == ['{"of": "rate_spread"}']
    assert set(rows["state"]) <= {"no_limit", "information"}


@pytest.mark.slow
def test_an_equal_price_is_within_and_no_limit_is_no_state(tmp_path: Path) -> None:
    assert price_of(judged(tmp_path, 0.0))["state"] == "within"
    assert price_of(judged(tmp_path, 0.0, verdicts__limits__rate_spread="null"))["state"] == "no_limit"


@pytest.mark.slow
def test_columns_that_the_table_lacks_widen_a_price_as_they_widen_denials(tmp_path: Path) -> None:
    price = price_of(judged(tmp_path, 0.1, verdicts__columns_complete="false"))
    assert price["bias"] > 0.02
    assert price["state"] == "inconclusive"
