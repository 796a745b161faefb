"""Data sets: twins with their truth, and a table as people export it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh


def test_a_twin_without_anything_planted_has_no_decision_that_hangs_on_the_group() -> None:
    twin = eh.datasets.load_twin(600, "none", seed=4)
    assert len(twin.X) == len(twin.y) == len(twin.race) == len(twin.truth) == 600
    assert not twin.truth["flips"].any()
    assert twin.flip_shares.to_dict() == {"Black": 0.0, "White": 0.0}
    assert not twin.X.isna().any().any()


@pytest.mark.parametrize("planted", ["direct", "mediated"])
def test_the_truth_of_a_twin_is_the_decision_in_the_other_group(planted: str) -> None:
    twin = eh.datasets.load_twin(1500, planted, seed=4)
    truth = twin.truth
    assert ((truth["y_otherwise"] != twin.y) == truth["flips"]).all()
    assert (twin.flip_shares > 0.05).all()
    flipped = truth["flips"]
    assert (truth.loc[flipped & (twin.race == "Black"), "y_otherwise"] == 1).all()  # the disadvantage only takes away
    assert twin.y[twin.race == "Black"].mean() < twin.y[twin.race == "White"].mean() - 0.05
    equal = eh.datasets.load_twin(1500, planted, seed=4)
    pd.testing.assert_frame_equal(twin.X, equal.X)
    means = twin.X["income_usd"].groupby(twin.race).median()
    assert (means["Black"] < 0.9 * means["White"]) == (planted == "mediated")


def test_debt_is_in_ordered_bands() -> None:
    bands = eh.datasets.load_twin(400, seed=1).X["debt_to_income_ratio"].cat
    assert bands.ordered
    assert list(bands.categories[:2]) == ["<20%", "20%-<30%"]


def test_a_twin_of_another_world_or_without_rows_is_refused() -> None:
    with pytest.raises(eh.errors.InputError, match="planted is 'some'; give one of none, direct, mediated"):
        eh.datasets.load_twin(100, "some")
    with pytest.raises(eh.errors.InputError, match="rows of the twin is 0"):
        eh.datasets.load_twin(0)


def test_drawn_loans_are_as_messy_as_an_export_and_the_same_each_time(tmp_path: Path) -> None:
    eh.datasets.draw_loans(tmp_path / "a.csv", rows=300, seed=2, year=2023)
    eh.datasets.draw_loans(tmp_path / "b.csv", rows=300, seed=2, year=2023)
    text = (tmp_path / "a.csv").read_text()
    assert text == (tmp_path / "b.csv").read_text()
    lines = text.splitlines()
    assert lines[0] == '"Loan applications 2023, exported from the branch system"'
    assert lines[-1].startswith("Total,")
    rows = pd.read_csv(tmp_path / "a.csv", skiprows=2, skipfooter=1, engine="python", keep_default_na=False)
    assert len(rows) == 300
    assert {"Approved", "APPROVED ", "approved", "Denied", "Withdrawn by applicant"} <= set(rows["Decision"])
    assert rows["Income"].str.fullmatch(r"\$[\d,]+|N/A").all()
    decided = rows[rows["Decision"] != "Withdrawn by applicant"]
    approved = decided["Decision"].str.strip().str.casefold() == "approved"
    shares = approved.groupby(decided["Race"]).mean()
    assert shares["Black or African American"] < shares["White"] - 0.1
    assert np.array_equal(decided["Interest rate"] != "", approved)
