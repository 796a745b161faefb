"""Score: who is scored by what. Connect: constraints of the spec become rules of the graph."""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import spec_of
from safetensors.numpy import save
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from schemas.audit.spec import AuditSpec
from schemas.errors import IntegrityError, SpecError
from tasks.in_memory import call_plainly
from tasks.numerics.attributions import KIND, Linear
from tasks.pipeline.registry import validated
from tasks.plan import plan
from tasks.scoring.fitting import fit_of
from tasks.scoring.models import ModelFile, kept, linear_form, probabilities, read

UNTIL_CONNECT = 4


def tables(place: Path, steps: int = UNTIL_CONNECT, **overrides: str) -> dict[str, pd.DataFrame]:
    found = call_plainly(plan(spec_of(place, **overrides)).steps[:steps])
    return {name: pd.concat([t.to_pandas() for t in parts]) for name, parts in found.items()}


def test_cross_fitting_scores_every_row_and_matches_the_rate(place: Path) -> None:
    decided = tables(place, 3)["decisions"]
    model = decided[decided["decision_maker"] == "model"]
    lender = decided[decided["decision_maker"] == "lender"]
    assert len(model) == len(lender) == 500
    assert model["explained"].all()
    assert model["favourable"].mean() == pytest.approx(lender["favourable"].mean(), abs=0.005)
    assert (model["favourable"] == (model["score"] >= model["threshold"])).all()


def test_the_paper_holds_out_three_in_ten(place: Path) -> None:
    decided = tables(place, 3, profile="paper")["decisions"].query("decision_maker == 'model'")
    assert decided["explained"].sum() == 150
    assert (decided["threshold"] == 0.5).all()


def test_metrics_by_group_are_of_rows_the_model_had_not_seen(place: Path) -> None:
    metrics = tables(place, 3, profile="paper")["model_metrics"]
    n = metrics[metrics["metric"] == "accuracy"].set_index("group")["n"]
    assert n.sum() == 150
    assert set(n.index) == {"white", "Black", "(missing)"}


def test_the_models_are_stored_as_numbers_and_score_again_what_they_scored(place: Path) -> None:
    found = tables(place, 3)
    decided = found["decisions"].query("decision_maker == 'model'").reset_index(drop=True)
    x = found["features"].iloc[:, 1:].to_numpy()
    assert len(found["models"]) == decided["fold"].nunique() == 5
    for fold, content in found["models"].itertuples(index=False):
        mine, model = (decided["fold"] == fold).to_numpy(), read(ModelFile(content, "the model"))
        assert isinstance(model, Linear)
        assert json.dumps(list(found["features"].columns[1:]))[1:-1].replace('"', r"\"").encode() in content
        assert np.array_equal(probabilities(model, x[mine]), decided.loc[mine, "score"].to_numpy())


@pytest.mark.parametrize(("n", "d"), [(20, 1), (57, 3), (1990, 12), (9001, 25)])
def test_the_numbers_of_a_logistic_regression_decide_as_scikit_learn_to_the_last_bit(n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.random((n, d)), rng.random(n) < 0.6
    fitted = LogisticRegression(max_iter=1000, random_state=1).fit(x, y)
    model = fit_of("logistic_regression", 1)(x, y)
    assert kept(model) == kept(fit_of("logistic_regression", 1)(x, y))
    for rows in (x, x[rng.permutation(n)[: n // 3]], np.asfortranarray(x)):
        for each in (model, read(ModelFile(kept(model), "the model"))):
            assert np.array_equal(probabilities(each, rows), fitted.predict_proba(rows)[:, 1])
    form, former = linear_form(read(ModelFile(kept(model), "the model"))), linear_form(fitted)
    assert form is not None
    assert former is not None
    assert (form.coefficients.tolist(), form.intercept) == (former.coefficients.tolist(), former.intercept)


@pytest.mark.parametrize(
    "arrays",
    [
        {"coefficients": np.ones(2)},
        {"coefficients": np.ones((2, 1)), "intercept": np.ones(1)},
        {"coefficients": np.array([1.0, np.inf]), "intercept": np.ones(1)},
    ],
)
def test_numbers_that_are_no_logistic_regression_are_an_integrity_error(arrays: dict[str, np.ndarray]) -> None:
    content = save(arrays, {"model": json.dumps({"kind": KIND, "inputs": []})})
    with pytest.raises(IntegrityError, match="logistic regression"):
        read(ModelFile(content, "the model"))


def test_a_model_is_kept_as_the_same_bytes_whenever_it_is_fitted() -> None:
    x, y = np.random.default_rng(0).random((60, 3)), np.arange(60) % 2
    for estimator in (
        LogisticRegression(),
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(random_state=0),
    ):
        first = kept(clone(estimator).fit(x, y))
        time.sleep(2.1)  # what is written in an archive has the time, in steps of two seconds
        again = clone(estimator).fit(x, y)
        assert kept(again) == first
        assert probabilities(read(ModelFile(first, "model")), x) == pytest.approx(again.predict_proba(x)[:, 1], abs=0)


RULE = {"kind": "rule", "rule": {"weights": {"income": 1.0, "amount": -0.1}, "limit": 40.0, "above": True}}


def test_a_rule_decides_by_what_was_handed_in(place: Path) -> None:
    found = call_plainly(plan(rule_spec(place)).steps[:3])
    decided = found["decisions"][0].to_pandas().query("decision_maker == 'model'")
    handed_in = found["applicants"][0].to_pandas()
    wanted = handed_in["income"] - 0.1 * handed_in["amount"] > 40
    assert decided["favourable"].to_list() == wanted.to_list()
    assert decided["score"].isna().all()
    assert found["models"][0].num_rows == 0


def rule_spec(place: Path) -> AuditSpec:
    return validated(AuditSpec, spec_of(place).model_dump(mode="json") | {"model": RULE})


def test_a_rule_names_columns_that_are_numbers(place: Path) -> None:
    bad = RULE | {"rule": {"weights": {"history": 1.0}, "limit": 0.0}}
    with pytest.raises(SpecError, match=r"'history' is no continuous column"):
        validated(AuditSpec, spec_of(place).model_dump(mode="json") | {"model": bad})


def test_too_few_decisions_of_one_kind_leave_the_lender_alone(place: Path) -> None:
    found = tables(place, 3, model__folds="400")
    assert set(found["decisions"]["decision_maker"]) == {"lender"}
    assert found["models"].empty
    assert found["model_metrics"].empty


def test_no_model_leaves_the_lender_alone(place: Path) -> None:
    found = tables(place, 3, model__kind="none")
    assert set(found["decisions"]["decision_maker"]) == {"lender"}
    assert found["model_metrics"].empty


def test_no_edge_breaks_a_constraint_or_crosses_a_group(place: Path) -> None:
    found = tables(
        place,
        columns__history__transitions="{bad: [fair], fair: [good], good: []}",
        columns__history__constraint="free",
    )
    edges = found["feasibility_edges"]
    assert len(edges) > 100
    members = found["memberships"].set_index("row_id")["group"]
    first = found["feasibility_nodes"].drop_duplicates("node").set_index("node")["row_id"]
    rows = found["features"].set_index("row_id").loc[first.sort_index()].reset_index(drop=True)
    rows["group"] = members.loc[first.sort_index()].to_numpy()
    start, end = (
        rows.iloc[edges["source"]].reset_index(drop=True),
        rows.iloc[edges["destination"]].reset_index(drop=True),
    )
    assert (start["group"] == end["group"]).all()
    assert (end["income"] >= start["income"]).all()
    assert (end["amount"] <= start["amount"]).all()
    assert (start["purpose=buy"] == end["purpose=buy"]).all()
    step = (end["history"] - start["history"]).round(6)
    assert set(step) <= {0.0, 0.5}  # one grade at a time, never down
    features = [c for c in rows.columns if c != "group"]
    distance = np.sqrt(((end[features] - start[features]) ** 2).sum(axis=1))
    assert np.allclose(distance, edges["distance"])


def test_a_given_epsilon_is_kept(place: Path) -> None:
    found = tables(place, methods__fgce__epsilon="0.25")
    facts = found["feasibility_facts"].set_index("fact")["value"]
    assert facts["epsilon"] == 0.25
    assert found["feasibility_edges"]["distance"].max() <= 0.25
