"""Rates, differences and ratios are those of fairlearn on the same arrays, to the last digit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame, selection_rate

import evenhand as eh

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """The complete applications of Boston, with ``race`` and ``approve``."""
    X, y, race = eh.datasets.load_boston(return_X_y_A=True)  # noqa: N806 as scikit-learn
    return X.assign(race=race, approve=y).dropna()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peers") / "lake"


@pytest.fixture(scope="module")
def result(rows: pd.DataFrame, lake: Path) -> eh.AuditResult:
    """Of one audit, which the lake keeps."""
    few = {"adjusted": {"splits": 1, "estimators": ["logit"], "judged": "logit", "terms": "none"}}
    return eh.audit(
        rows,
        decision="approve",
        favourable=1,
        protected="race",
        reference="white",
        methods=few,
        settings={"model": {"kind": "none"}, "bootstrap": {"draws": 100}},
        lake=lake,
    )


def test_rates_and_ratios_are_those_of_fairlearn(rows: pd.DataFrame, result: eh.AuditResult) -> None:
    y = rows["approve"]
    theirs = MetricFrame(metrics=selection_rate, y_true=y, y_pred=y, sensitive_features=rows["race"])
    by_group = theirs.by_group.astype(float)
    ours = result.by_group("approval_rates")["estimate"]
    pd.testing.assert_series_equal(ours, by_group, check_names=False, rtol=0, atol=1e-15)
    assert result.overall["estimate"] == pytest.approx(theirs.overall, abs=1e-15)
    assert {row["method"] for row in result.tables["measures"].to_pylist()} == {"outcomes", "adjusted"}, "as asked"
    others = by_group.drop("white")
    np.testing.assert_allclose(result.ratio()["estimate"], others / by_group["white"], rtol=1e-15)
    np.testing.assert_allclose(result.difference()["estimate"], others - by_group["white"], rtol=1e-12)
    similar = result.by_group("similar_applicants")
    on_denial = result.tables["verdicts"].to_pandas().query("theory == 'similar_applicants' and role == 'primary'")
    assert (similar["estimate"] < 0).all(), "approved less often, as the first page says"
    np.testing.assert_array_equal(similar["estimate"], -on_denial.set_index("group")["value"].sort_index())
    np.testing.assert_array_equal(similar["high"], -on_denial.set_index("group")["plain_low"].sort_index())


def test_a_lake_has_the_sign_of_the_first_page(result: eh.AuditResult, lake: Path) -> None:
    with eh.open(lake) as opened:
        run = opened[opened.runs().iloc[0].id]
        measures = run.measures(measure="adjusted_effect").query("parameters == '{}' and group == 'black'")
        verdicts = run.verdicts().query("question == 'similar_applicants' and role == 'primary' and group == 'black'")
    assert (measures["high"] < 0).all()
    assert (verdicts["value"] < 0).all()
    assert (len(measures), len(verdicts)) == (1, 1)
