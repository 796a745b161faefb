"""Rates, differences and ratios are those of fairlearn on the same arrays, to the last digit."""

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
