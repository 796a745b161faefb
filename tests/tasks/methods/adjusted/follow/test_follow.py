"""Stage follow: counts that add up to the file, named outcomes, prices of planted loans; and a real credit union."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED, SPEC, loans, spec_of

from tasks.in_memory import call_plainly
from tasks.methods.adjusted.follow.rows import quarter_of
from tasks.methods.adjusted.follow.settings import follow_settings, follows
from tasks.methods.adjusted.tables import FOLLOWED
from tasks.pipeline.registry import read_spec
from tasks.pipeline.validation import validate
from tasks.plan import plan

TRAVIS = "data/hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv"
OTHERS = {f"methods.{name}": "null" for name in ("fgce", "cst", "cec", "gcfn", "raguel")}
STAGES = ("ingest", "preprocess", "score", "follow")


def followed(text: str, **overrides: str) -> dict[str, pd.DataFrame]:
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    spec = read_spec(text, "spec.yaml", OTHERS | given).spec
    tables = call_plainly([step for step in plan(spec).steps if step.name in STAGES])
    whole = {table.name: pa.concat_tables(tables[table.name]) for table in FOLLOWED}
    for table in FOLLOWED:
        assert all(outcome.success for outcome in validate(whole[table.name], table)), table.name
    return {name: rows.to_pandas() for name, rows in whole.items()}


def own_loans(place: Path, frame: pd.DataFrame) -> str:
    frame.to_csv(place / "loans.csv", index=False)
    return SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """900 loans of a table of one's own, with spreads of those that were made: 0.4 points more for Black borrowers."""
    frame = loans(900)
    rng = np.random.default_rng(4)
    spread = 1 + 0.4 * (frame["race"] == "b") + rng.normal(0, 0.2, 900)
    frame["rate_spread"] = spread.where(frame["approved"] == "yes").round(3)
    frame["lien_status"] = np.where(np.arange(900) % 4 == 0, 2, 1)
    text = own_loans(tmp_path_factory.mktemp("own"), frame)
    return followed(text, methods__adjusted="{practice: always}", model__kind="none")


def test_ends_of_applications_add_up_to_the_file(own: dict[str, pd.DataFrame]) -> None:
    flow = own["flow"].query("outcome != 'fallout'")
    assert flow.groupby("protected_attribute")["events"].sum().tolist() == [900]
    assert set(flow["outcome"]) == {"approved", "denied"}


def test_a_planted_price_is_found_on_the_judged_rung(own: dict[str, pd.DataFrame]) -> None:
    [row] = own["pricing"].query("primary and group == 'Black'").to_dict("records")
    assert row["blocks"].startswith("product + ")
    assert row["low"] < 0.4 < row["high"]
    assert row["low"] > 0.3
    higher = own["pricing"].query("outcome == 'higher_priced' and group == 'Black'")
    assert set(higher["estimator"]) == {"logit"}


def test_products_are_compared_by_themselves_and_none_is_judged(own: dict[str, pd.DataFrame]) -> None:
    inside = own["pricing"].query("product != '' and group == 'Black'")
    assert set(inside["product"]) == {"first lien", "subordinate lien"}
    assert not inside["primary"].any()


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """The same as people export it: percent signs, words where a loan was denied, and cells that are no number."""
    frame = loans(900)
    rng = np.random.default_rng(4)
    spread = 1 + 0.4 * (frame["race"] == "b") + rng.normal(0, 0.2, 900)
    made = frame["approved"] == "yes"
    frame["rate_spread"] = (spread.round(3).astype(str) + "%").where(made, "not applicable")
    frame.loc[frame.index[made & (frame["race"] == "b")][:3], "rate_spread"] = "see file"
    frame["lien_status"] = np.where(np.arange(900) % 2 == 0, "", "1")
    frame["application_month"] = np.where(np.arange(900) % 3 == 0, "2024-05-17", "2024-01")
    frame["loan_amount_usd"] = 100_000
    frame["lender_credits"] = np.where(frame["race"] == "b", "500", "")
    text = own_loans(tmp_path_factory.mktemp("messy"), frame)
    return followed(text, methods__adjusted="{practice: always}", model__kind="none")


def test_prices_are_read_as_texts_and_refuse_no_row(messy: dict[str, pd.DataFrame]) -> None:
    flow = messy["flow"].query("outcome != 'fallout'")
    assert set(flow["outcome"]) == {"approved", "denied"}
    assert flow.groupby("protected_attribute")["events"].sum().tolist() == [900]
    row = messy["pricing"].query("outcome == 'rate_spread' and rung == 0 and estimator == 'ols' and group == 'Black'")
    [row] = row[row["product"] == ""].to_dict("records")
    assert "have a price that is no number" in row["reason"]
    assert row["low"] < 0.4 < row["high"]


def test_a_product_that_is_not_known_leaves_one_judged_row(messy: dict[str, pd.DataFrame]) -> None:
    of_group = messy["pricing"].query("outcome == 'rate_spread' and group == 'Black'")
    assert set(of_group["product"]) == {"", "not known", "first lien"}
    assert of_group.query("primary")["product"].tolist() == [""]


def test_more_credits_are_a_lower_price_and_blank_is_none(messy: dict[str, pd.DataFrame]) -> None:
    row = messy["pricing"].query("outcome == 'lender_credits' and group == 'Black' and rung == 0")
    assert row["value"].tolist() == pytest.approx([-0.5])


@pytest.mark.parametrize(
    ("month", "quarter"),
    [
        ("2024-01", "2024 quarter 1"),
        ("2024-05-17", "2024 quarter 2"),
        ("2024-12", "2024 quarter 4"),
        *((text, "") for text in ("January", "2024-13", "17.05.2024", "05", "")),
    ],
)
def test_a_month_that_is_none_has_no_quarter(month: str, quarter: str) -> None:
    assert quarter_of(month) == quarter


def test_a_file_without_reasons_or_tracts_has_no_row_of_them(own: dict[str, pd.DataFrame]) -> None:
    assert own["denial_reasons"].empty
    assert own["places"].empty


def test_without_a_loan_each_group_has_a_row_that_says_so(tmp_path: Path) -> None:
    frame = loans(300)
    frame["action"] = np.where(frame["approved"] == "yes", "approved, not accepted", "denied")
    text = own_loans(tmp_path, frame)
    spec = read_spec(text, "spec.yaml", OTHERS | {"methods.adjusted": "{practice: always}", "model.kind": "none"}).spec
    settings = follow_settings(spec)
    assert settings is not None
    no_price = followed(text, methods__adjusted="{practice: always}", model__kind="none")["pricing"].query("primary")
    assert set(no_price["reason"].str.partition(":")[0]) == {"no_price"}
    assert no_price["value"].isna().all()


def test_only_hmda_is_followed_unless_the_spec_says_so(place: Path) -> None:
    spec = spec_of(place)
    assert not follows(spec)
    assert follow_settings(spec) is None
    assert [step.name for step in plan(spec).steps if step.name == "follow"] == []


@pytest.fixture(scope="module")
def credit_union() -> dict[str, pd.DataFrame]:
    text = (REPOSITORY / "data" / "audits" / "hmda.yaml").read_text()
    given = {"source.path": str(SHARED / TRAVIS), "source.vintage": "null", "source.keep": "{}", "year": "2024"}
    given |= {"methods.adjusted.form": "linear", "model.kind": "none"}
    # of both columns, as the figures of the specification are
    crossed = (
        "[{name: origin, columns: [derived_ethnicity, derived_race], "
        "reference: Not Hispanic or Latino and White}, {name: ethnicity, columns: [derived_ethnicity], "
        "reference: Not Hispanic or Latino}]"
    )
    return followed(text, protected=crossed, **{key.replace(".", "__"): value for key, value in given.items()})


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_flow_and_reasons_of_a_credit_union_are_those_of_its_file(credit_union: dict[str, pd.DataFrame]) -> None:
    flow = credit_union["flow"].query("protected_attribute == 'ethnicity'").groupby("outcome")["events"].sum()
    ends = {"originated": 817, "not_accepted": 43, "denied": 379, "withdrawn": 155, "incomplete": 33}
    assert flow[list(ends)].to_dict() == ends
    assert flow.drop("fallout").sum() == 1442
    assert flow["fallout"] == 43 + 155 + 33 + 15
    reasons = credit_union["denial_reasons"].query("protected_attribute == 'ethnicity'")
    first = reasons.groupby("reason_code")["events"].sum()
    assert (first["1"], first["9"], first["4"], first.sum()) == (284, 36, 31, 379)


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_places_of_a_credit_union_have_no_peers_and_its_own_shares(credit_union: dict[str, pd.DataFrame]) -> None:
    places = credit_union["places"].set_index(["of", "band"])
    assert set(places["reason"]) == {"not_run: no peers were given; --peers of `evenhand places` names their file"}
    assert round(places.loc[("applications", "above 50 %"), "share"], 3) == 0.701
    assert round(places.loc[("originations", "above 50 %"), "share"], 3) == 0.682
    assert round(places.loc[("applications", "above 80 %"), "share"], 3) == 0.183
    assert places.loc[("applications", "above 50 %"), "n"] == 1442


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_standardised_differences_of_a_credit_union(credit_union: dict[str, pd.DataFrame]) -> None:
    spread = credit_union["disparities"].query("of == 'rate_spread' and protected_attribute == 'origin'")
    hispanic = spread[spread["group"].str.startswith("Hispanic")]
    assert len(hispanic)
    assert credit_union["pricing"].query("outcome == 'rate_spread' and rung == 0 and product == ''")["n"].max() > 100
