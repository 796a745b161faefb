"""Models of an audit, looked into: they decide as they did, and explain rows that they had not learnt from."""

from pathlib import Path

import numpy as np
import pytest
from conftest import SPEC, spec_of

from schemas.errors import SpecError
from tasks.detection.problems import cases
from tasks.in_memory import call_plainly
from tasks.pipeline.method import ProblemTables
from tasks.plan import plan

FINANCIAL = SPEC.replace("{type: continuous, constraint: up}", "{type: continuous, constraint: up, role: financial}")
RULE = "{kind: rule, rule: {weights: {income: 1.0, amount: -0.1}, limit: 40.0, above: %s%s}}"
ALONE = {
    "methods__fgce": "null",
    "methods__cst": "null",
    "methods__adjusted": "null",
    "methods__cec": "{theta_steps: 4}",
}


def looked_into(place: Path, model: str, text: str = FINANCIAL):
    """The problem of the model's decisions, and these decisions."""
    steps = plan(spec_of(place, text, model=model, **ALONE)).steps
    detect = next(step for step in steps if step.name == "detect cec")
    tables = {name: parts[0] for name, parts in call_plainly(steps[: steps.index(detect)]).items()}
    found = {case.decision_maker: case.problem for case in cases(ProblemTables.of(tables), detect.settings)}
    decided = tables["decisions"].to_pandas().query("decision_maker == 'model'")
    return found, decided


@pytest.mark.parametrize(
    "model",
    [
        "{kind: logistic_regression, folds: 4}",
        pytest.param("{kind: random_forest, folds: 2}", marks=pytest.mark.slow),
        "{kind: gradient_boosting, folds: 4}",
        "{kind: net, folds: 2}",
        "{kind: logistic_regression, split: holdout}",
        "{kind: net, split: holdout}",
        RULE % ("true", ""),
        RULE % ("false", ""),
        RULE % ("true", ", decimals: 0"),
        RULE % ("false", ", decimals: 0"),
    ],
)
def test_the_models_decide_as_the_audit_did(place: Path, model: str) -> None:
    found, decided = looked_into(place, model)
    explained = found["model"].look_into(substitute=True)
    favourable = decided["favourable"].to_numpy()
    for number, fit in enumerate(explained.models):
        own = explained.rows_of(number)
        assert own.any()
        decides = (
            fit.logit(explained.x) >= explained.cut(number) if explained.favourable is None else explained.favourable
        )
        assert (decides == favourable)[own].all()
        assert "rule" in model or not explained.pools[number][own].any()
    assert (explained.label == decided["outcome"].to_numpy()).all()


def test_the_lender_cannot_be_looked_into(place: Path) -> None:
    found, _ = looked_into(place, "{kind: logistic_regression, folds: 4}")
    assert found["lender"].look_into is None


def test_trees_need_a_substitute_that_was_chosen(place: Path) -> None:
    found, _ = looked_into(place, "{kind: gradient_boosting, folds: 2}")
    with pytest.raises(SpecError, match="has no gradient to integrate; choose the substitute"):
        found["model"].look_into(substitute=False)


def test_without_a_financial_column_nobody_is_comparable(place: Path) -> None:
    found, _ = looked_into(place, "{kind: logistic_regression, folds: 4}", SPEC)
    with pytest.raises(SpecError, match="no column has the role `financial`"):
        found["model"].look_into(substitute=False)


def test_the_categories_of_a_nominal_financial_column_are_a_column_each(place: Path) -> None:
    text = FINANCIAL.replace("{type: nominal, ", "{type: nominal, role: financial, ")
    found, _ = looked_into(place, "{kind: logistic_regression, folds: 4}", text)
    explained = found["model"].look_into(substitute=False)
    assert explained.financial_names == ("income", "purpose=buy", "purpose=refinance")
    assert np.unique(explained.financial[:, 1:].sum(axis=1)).tolist() == [1]


@pytest.mark.parametrize("model", ["{kind: logistic_regression, folds: 4}", "{kind: net, folds: 2}"])
def test_models_are_fitted_again_on_resampled_rows(place: Path, model: str) -> None:
    found, _ = looked_into(place, model)
    explained, refit = found["model"].look_into(substitute=False), found["model"].refit
    same = refit(explained, np.arange(len(explained.x)))
    for before, after in zip(explained.models, same.models, strict=True):
        assert np.allclose(before.logit(explained.x), after.logit(explained.x), atol=1e-4)
    rows = np.random.default_rng(0).integers(0, len(explained.x), len(explained.x))
    drawn = refit(explained, rows)
    assert (drawn.x == explained.x[rows]).all()
    assert not np.allclose(drawn.models[0].logit(explained.x), explained.models[0].logit(explained.x), atol=1e-3)
    for number, pool in enumerate(drawn.pools):
        assert not set(rows[pool]) & set(rows[drawn.rows_of(number)])
    alike = np.flatnonzero(found["lender"].candidate)
    assert refit(explained, alike) is None, "decisions of one kind"
    assert found["lender"].refit is None


@pytest.mark.parametrize(
    "model", [pytest.param("{kind: random_forest, folds: 2}", marks=pytest.mark.slow), RULE % ("true", "")]
)
def test_other_kinds_are_not_fitted_again(place: Path, model: str) -> None:
    found, _ = looked_into(place, model)
    assert found["model"].refit is None
    asked = {**ALONE, "methods__cec": "{theta_steps: 4, refits: 20}"}
    with pytest.raises(SpecError, match=f"kind {'rule' if 'rule' in model else 'random_forest'} is not fitted again"):
        plan(spec_of(place, FINANCIAL, model=model, **asked))
