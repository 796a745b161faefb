"""Missing values: what preprocess counts of them."""

import pandas as pd
import pytest
from conftest import REPOSITORY, SHARED, spec_of

from schemas.tables.applications import ANY
from tasks.in_memory import call_plainly
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

TEXAS = SHARED / "data/hmda_2022_tx_50k/hmda_tx_2022_sample.csv.gz"


def lacking(spec):
    """The table of missing values of an audit, by feature and reason."""
    (found,) = call_plainly(plan(spec).steps[:2])["missingness"]
    return found.to_pandas().set_index(["feature", "reason"])


def with_holes(place):
    """The loans with holes: of every third row the income, of every fifth an exempt amount."""
    loans = pd.read_csv(place / "loans.csv", dtype=str, keep_default_na=False)
    loans.loc[loans.index % 3 == 0, "income"] = "NA"
    loans.loc[loans.index % 5 == 0, "amount"] = "Exempt"
    loans.to_csv(place / "loans.csv", index=False)
    return loans


@pytest.mark.parametrize("missing", ["exclude", "impute"])
def test_preprocess_counts_who_lacks_what_and_how_they_were_decided_on(place, missing):
    loans = with_holes(place)
    told = {"missing": missing, "source__missing": "['', NA]", "source__exempt": "[Exempt]"}
    found = lacking(spec_of(place, **told))
    at, yes = loans.index, loans["approved"] == "yes"
    cells = {
        ("income", "missing_covariate"): ((at % 3 == 0) & (at % 5 != 0), at % 3 != 0, at < 0),
        ("income", "exempt_covariate"): (at % 15 == 0, at % 3 != 0, at % 15 == 0),
        ("amount", "exempt_covariate"): (at % 5 == 0, at % 5 != 0, at < 0),
        (ANY, ANY): ((at % 3 == 0) | (at % 5 == 0), (at % 3 != 0) & (at % 5 != 0), (at % 3 == 0) | (at % 5 == 0)),
    }
    assert set(found.index) == set(cells)
    for key, (gone, there, elsewhere) in cells.items():
        row = found.loc[key]
        assert (row["missing"], row["favourable_missing"]) == (gone.sum(), (yes & gone).sum())
        assert (row["present"], row["favourable_present"]) == (there.sum(), (yes & there).sum())
        assert (row["elsewhere"], row["favourable_elsewhere"]) == (elsewhere.sum(), (yes & elsewhere).sum())
    assert 0.4 < found.loc[(ANY, ANY), "auc"] < 0.6
    assert found["auc"].notna().sum() == 1


def test_nothing_missing_leaves_one_row_without_an_auc(place):
    found = lacking(spec_of(place))
    assert list(found.index) == [(ANY, ANY)]
    assert found["missing"].tolist() == [0]
    assert found["auc"].isna().all()


@pytest.mark.data("data/hmda_2022_tx_50k")
def test_texas_missingness_tells_the_decision():
    """Approval: DTI missing 0.348, LTV missing 0.357, exempt 0.859; missingness alone has an AUC of 0.60."""
    text = (REPOSITORY / "data/audits/hmda-tx-2022.yaml").read_text(encoding="utf-8")
    found = lacking(read_spec(text, "hmda-tx-2022.yaml", {"source.path": str(TEXAS)}).spec)
    rate = found["favourable_missing"] / found["missing"]
    assert rate["debt_to_income_ratio", "missing_covariate"] == pytest.approx(0.348, abs=5e-4)
    assert rate["loan_to_value_ratio", "missing_covariate"] == pytest.approx(0.357, abs=5e-4)
    assert rate["debt_to_income_ratio", "exempt_covariate"] == pytest.approx(0.859, abs=5e-4)
    whole = found.loc[(ANY, ANY)]
    assert whole["favourable_present"] / whole["present"] == pytest.approx(0.782, abs=5e-4)
    assert whole["auc"] == pytest.approx(0.598, abs=2e-3)
