"""Rates, differences and ratios are those of fairlearn on the same arrays, to the last digit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, selection_rate

import evenhand as eh


@pytest.mark.slow
def test_rates_and_ratios_are_those_of_fairlearn() -> None:
    X, y, race = eh.datasets.load_boston(return_X_y_A=True)  # noqa: N806 as scikit-learn
    complete = X.notna().all(axis=1) & race.notna()
    X, y, race = X[complete], y[complete], race[complete]  # noqa: N806
    settings = {"model": {"kind": "none"}, "bootstrap": {"draws": 100}}
    few = {"adjusted": {"splits": 1, "estimators": ["logit"], "judged": "logit", "terms": "none"}}
    result = eh.audit(
        X.assign(race=race, approve=y),
        decision="approve",
        favourable=1,
        protected="race",
        reference="white",
        methods=few,
        settings=settings,
    )
    theirs = MetricFrame(metrics=selection_rate, y_true=y, y_pred=y, sensitive_features=race)
    by_group = theirs.by_group.astype(float)
    ours = result.by_group("approval_rates")["estimate"]
    pd.testing.assert_series_equal(ours, by_group, check_names=False, rtol=0, atol=1e-15)
    assert result.overall["estimate"] == pytest.approx(theirs.overall, abs=1e-15)
    others = by_group.drop("white")
    np.testing.assert_allclose(result.ratio()["estimate"], others / by_group["white"], rtol=1e-15)
    np.testing.assert_allclose(result.difference()["estimate"], others - by_group["white"], rtol=1e-12)
    similar = result.by_group("similar_applicants")
    on_denial = result.tables["verdicts"].to_pandas().query("theory == 'similar_applicants' and role == 'primary'")
    assert (similar["estimate"] < 0).all(), "approved less often, as the first page says"
    np.testing.assert_array_equal(similar["estimate"], -on_denial.set_index("group")["value"].sort_index())
    np.testing.assert_array_equal(similar["high"], -on_denial.set_index("group")["plain_low"].sort_index())


@pytest.mark.slow
def test_a_lake_has_the_sign_of_the_first_page(tmp_path: Path) -> None:
    X, y, race = eh.datasets.load_boston(return_X_y_A=True)  # noqa: N806 as scikit-learn
    settings = {"model": {"kind": "none"}, "bootstrap": {"draws": 100}}
    few = {"adjusted": {"splits": 1, "estimators": ["logit"], "judged": "logit", "terms": "none"}}
    eh.audit(
        X.assign(race=race, approve=y),
        decision="approve",
        favourable=1,
        protected="race",
        reference="white",
        methods=few,
        settings=settings,
        lake=tmp_path / "lake",
    )
    with eh.open(tmp_path / "lake") as lake:
        run = lake[lake.runs().iloc[0].id]
        measures = run.measures(measure="adjusted_effect").query("parameters == '{}' and group == 'black'")
        verdicts = run.verdicts().query("question == 'similar_applicants' and role == 'primary' and group == 'black'")
    assert (measures["high"] < 0).all()
    assert (verdicts["value"] < 0).all()
    assert (len(measures), len(verdicts)) == (1, 1)
