"""The check for columns that are known only after the decision: hand-worked values, laws, a real file, the refusal."""

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED, examples, spec_of
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.audit.column import ColumnSpec
from schemas.errors import DataQualityError, SpecError
from tasks.in_memory import call_plainly
from tasks.plan import plan
from tasks.preprocessing import checks
from tasks.preprocessing.algorithm import LEAST, area_of_categories, association, auc

CREDIT_UNION = SHARED / "data/hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv"
APPROVED = np.repeat([True, False], 20)


def columns_of(*names, kind="continuous"):
    return {name: ColumnSpec(type=kind) for name in names}


def rates(filled, n=40, approved=APPROVED):
    """A frame with a column that ``filled`` says where it has a value."""
    return pd.DataFrame({"rate": np.where(filled, 5.0, np.nan)[:n], "favourable": approved[:n]})


class TestAssociation:
    def test_shares_and_aucs_are_those_of_hand(self):
        """Filled in for 20 of 20 and 5 of 20: (1 + 1 - 0.25) / 2. Of those, the values are all alike."""
        found = association(np.where(np.arange(40) < 25, 5.0, np.nan), APPROVED, False)
        assert (found.filled_favourable, found.filled_unfavourable) == (1, 0.25)
        assert found.filled == pytest.approx(0.875)
        assert np.isnan(found.value), "5 unfavourable decisions with a value are too few"

    @settings(max_examples=examples(60), deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 5))
    def test_the_auc_is_the_share_of_pairs_in_the_better_direction(self, seed, levels):
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, levels, 60).astype(float), rng.random(60) < 0.5
        if min(y.sum(), (~y).sum()) < LEAST:
            return
        pairs = np.mean([(a > b) + (a == b) / 2 for a in x[y] for b in x[~y]])
        assert [auc(x, y), auc(-x, y)] == pytest.approx([max(pairs, 1 - pairs)] * 2)

    def test_codes_without_an_order_rank_by_the_decisions_of_other_rows(self):
        code = np.where(APPROVED, 1.0, np.tile([0.0, 0.0, 2.0, 2.0], 10))
        assert association(code, APPROVED, True).value == 1
        own = np.arange(40, dtype=float)
        assert association(own, APPROVED, True).value == 0.5, "a code of one row tells nothing of others"

    @pytest.mark.parametrize("levels", [2, 5, 50])
    def test_noise_in_a_file_that_alternates_decisions_tells_nothing(self, levels):
        alternating = np.arange(2000) % 2 == 0
        code = np.random.default_rng(levels).integers(0, levels, 2000).astype(float)
        assert association(code, alternating, True).value < 0.6

    def test_a_number_that_stands_for_nothing_is_as_being_filled_in(self):
        """Rates of both signs where approved, 0 where denied: their order tells little."""
        rate = np.where(APPROVED, np.random.default_rng(0).normal(0, 1, 40), 0.0)
        found = association(rate, APPROVED, False)
        assert found.filled == 0.5
        assert found.value < 0.7
        assert found.common == 1
        frame = pd.DataFrame({"spread": rate, "favourable": APPROVED})
        with pytest.raises(DataQualityError, match="whether spread has its most common value tells the decision"):
            checks.check_leakage(frame, columns_of("spread"), ())
        told = checks.check_leakage(frame, columns_of("spread"), ("spread",)).to_pylist()
        assert [checks.leakage_message(row, "spread") for row in told] == [
            "Whether spread has its most common value tells the decision with an AUC of 1.00; the spec allows it."
        ]

    def test_two_numbers_have_no_most_common_one(self):
        assert association(APPROVED.astype(float), APPROVED, False).common == 0.5

    def test_few_decisions_say_nothing(self):
        few = np.arange(40) < LEAST - 1
        found = association(np.where(few, 1.0, np.nan), few, False)
        assert np.isnan(found.filled)


class TestCheck:
    def test_a_column_of_approved_rows_stops_the_audit_and_says_what_to_do(self):
        with pytest.raises(DataQualityError) as stopped:
            checks.check_leakage(rates(APPROVED), columns_of("rate"), ())
        assert str(stopped.value) == (
            "rate is filled in for 100% of approved and 0% of denied rows: it is known only after the decision; "
            "exclude it or say leakage: {allow: [rate]}"
        )

    def test_an_allowed_column_passes_and_is_told_of(self):
        [row] = checks.check_leakage(rates(APPROVED), columns_of("rate"), ("rate",)).to_pylist()
        assert row == {"feature": "rate", "tells": "filled_in", "n": 40, "auc": 1.0, "allowed": True}
        assert checks.leakage_message(row, "rate") == (
            "Whether rate is filled in tells the decision with an AUC of 1.00; the spec allows it."
        )

    @pytest.mark.parametrize(("denied", "told"), [(12, [0.7]), (13, [])])
    def test_between_the_limits_a_column_is_told_of(self, denied, told):
        """Filled in for all of 20 approved and for some of 20 denied: AUC 1 - denied / 40."""
        table = checks.check_leakage(rates(np.arange(40) < 20 + denied), columns_of("rate"), ())
        assert table["auc"].to_pylist() == pytest.approx(told)

    def test_values_that_tell_all_stop_and_values_that_tell_much_do_not(self):
        frame = pd.DataFrame({"score": np.arange(40)[::-1].astype(float), "favourable": APPROVED})
        with pytest.raises(DataQualityError, match=r"score alone tells the decision with an AUC of 1\.00"):
            checks.check_leakage(frame, columns_of("score"), ())
        frame.loc[[3, 9, 15, 17], "score"] = 0.0
        assert 0.7 < auc(frame["score"].to_numpy(), APPROVED) < 0.9
        assert checks.check_leakage(frame, columns_of("score"), ()).num_rows == 0

    def test_of_many_rows_some_are_looked_at(self, monkeypatch):
        monkeypatch.setattr(checks, "MOST_ROWS", 20)
        table = checks.check_leakage(rates(APPROVED), columns_of("rate"), ("rate",))
        assert table["n"].to_pylist() == [20]


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_columns_of_a_real_file_that_follow_the_decision_are_named_and_no_other():
    names = ("loan_amount", "loan_to_value_ratio", "loan_term", "property_value", "income", "debt_to_income_ratio")
    after = ("interest_rate", "rate_spread", "total_loan_costs", "origination_charges")
    frame = pd.read_csv(CREDIT_UNION, dtype=str, keep_default_na=False)
    frame = frame[frame["action_taken"].isin(["1", "2", "3"])].replace({"": None, "NA": None})
    frame["favourable"] = frame["action_taken"] != "3"
    numbers = [name for name in (*names, *after) if name != "debt_to_income_ratio"]
    frame[numbers] = frame[numbers].apply(pd.to_numeric, errors="coerce")
    columns = columns_of(*numbers) | columns_of("debt_to_income_ratio", kind="nominal")
    with pytest.raises(DataQualityError) as stopped:
        checks.check_leakage(frame, columns, ())
    said = str(stopped.value)
    assert said.startswith("interest_rate is filled in for 100% of approved and 0% of denied rows; rate_spread is ")
    assert "say leakage: {allow: [interest_rate, rate_spread]}" in said
    assert "Look at total_loan_costs (AUC 0.80), origination_charges (AUC 0.80) as well" in said
    told = checks.check_leakage(frame, columns, after[:2])
    assert set(told["feature"].to_pylist()) == set(after)


class TestAudit:
    def through(self, place, **overrides):
        """Preprocess of loans whose amount was set at approval."""
        table = pd.read_csv(place / "loans.csv", dtype=str, keep_default_na=False)
        table.loc[table["approved"] != "yes", "amount"] = ""
        table.to_csv(place / "loans.csv", index=False)
        tables = call_plainly(plan(spec_of(place, missing="impute", **overrides)).steps[:2])
        return tables["leakage"][0].to_pylist()

    def test_an_audit_with_a_fitted_model_stops(self, place):
        with pytest.raises(DataQualityError, match="amount is filled in for 100% of approved"):
            self.through(place)

    def test_it_goes_on_where_the_spec_allows_the_column_or_fits_no_model(self, place):
        assert [row["allowed"] for row in self.through(place, leakage="{allow: [amount]}")] == [True]
        assert self.through(place, model="{kind: none}") == []

    def test_a_column_that_is_not_there_is_a_spec_error(self, place):
        with pytest.raises(SpecError, match="'amont' is no feature of this audit"):
            spec_of(place, leakage="{allow: [amont]}")


@pytest.mark.parametrize(("rows", "size"), [(9, 2), (60, 3), (400, 40), (3000, 2)])
def test_the_area_of_categories_by_counts_is_that_of_the_rows(rows: int, size: int) -> None:
    rng = np.random.default_rng(rows)
    codes, favourable = rng.integers(0, size, rows), rng.random(rows) < 0.6
    favourable |= (codes == 0) & (rng.random(rows) < 0.5)
    expected = association(codes.astype(float), favourable, unordered=True).value
    np.testing.assert_allclose(area_of_categories(codes, favourable), expected, rtol=1e-12)
