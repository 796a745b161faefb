"""A causal graph that the data contradict makes its question unreliable; without a graph the question is not run."""

import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.terms import State, Theory
from tasks.in_memory import call_plainly
from tasks.metrics.verdicts import NO_GRAPH, state_of, theories_of
from tasks.plan import plan

pytestmark = pytest.mark.slow

QUICK = {
    "methods": "{adjusted: null, cst: {ks: [5], k: 5, null_permutations: 0, null_draws: 0, sensitivity: false}}",
    "thresholds": "[]",
    "bootstrap__draws": "100",
}
MISSING = "{edges: [[race, income], [income, history]]}"
"""Leaves out that the amount follows the income, and the purpose the group."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows, folder = loans(600), tmp_path_factory.mktemp("contradicted")
    rows["amount"] = (rows["income"] * 2 + rows["amount"] / 10).round()
    # the first of the group's applications ask for a purchase, whoever asks
    rows.loc[rows["race"] == "b", "purpose"] = "buy"
    rows.to_csv(folder / "loans.csv", index=False)
    return folder


def audited(folder, **overrides):
    spec = spec_of(folder, **{**QUICK, **overrides})
    steps = plan(spec).steps
    last = next(at for at, step in enumerate(steps) if step.stage.name == "measure")
    tables = {name: pa.concat_tables(parts) for name, parts in call_plainly(steps[: last + 1]).items()}
    rows = tables["verdicts"].to_pylist()
    states = theories_of(rows)
    return tables, rows, states, state_of(states, spec.verdicts)


def test_a_contradicted_graph_has_no_verdict_and_the_saturated_effect_beside_it(folder):
    tables, rows, states, state = audited(folder, causal_graph=MISSING)
    (test,) = tables["graph_tests"].to_pylist()
    assert test["contradicted"]
    assert test["rejected"] > 0.1 * test["tests"]
    assert states[Theory.CAUSAL_MODEL] is State.UNRELIABLE
    (row,) = [r for r in rows if r["theory"] == Theory.CAUSAL_MODEL and r["role"] == "primary"]
    assert (row["state"], row["reason"]) == (State.UNRELIABLE, test["words"])
    assert row["value"] is not None, "the measure stays, without a verdict"
    assert state is not State.WITHIN, "an unreliable answer is no pass"
    rows = tables["aggregates"].to_pandas().query("group == 'Black' and decision_maker == 'lender' and subgroup == 0")
    effects = rows.set_index("measure")["value"]
    assert effects["saturated_difference"] == pytest.approx(effects["saturated_effect"] - effects["cst_effect"])


def test_the_saturated_graph_cannot_be_contradicted(folder):
    order = "{graph: saturated, causal_order: [[race], [purpose], [income, history], [amount]], ks: [5], k: 5, "
    settings = order + "null_permutations: 0, null_draws: 0}"
    given = {"methods": f"{{adjusted: null, cst: {settings}}}", "causal_graph": "{}"}
    tables, *_ = audited(folder, **given)
    (test,) = tables["graph_tests"].to_pylist()
    assert (test["graph"], test["tests"], test["contradicted"]) == ("saturated", 0, False)
    measures = set(tables["measures"]["measure"].to_pylist())
    assert "cst_effect" in measures
    assert not measures & {"saturated_effect", "share_detected_without"}, "it is the saturated graph already"
    effects = tables["causal_effects"].to_pandas()
    assert set(effects["feature"]) == {"purpose", "income", "history", "amount"}


def test_without_a_graph_the_question_is_not_run_and_decides_nothing(folder):
    _, rows, states, state = audited(folder, causal_graph="{}")
    (row,) = [r for r in rows if r["theory"] == Theory.CAUSAL_MODEL]
    assert (row["role"], row["state"], row["reason"]) == ("theory", State.NOT_RUN, NO_GRAPH)
    assert Theory.CAUSAL_MODEL not in states, "the exit code does not hang on it"
    assert state is states[Theory.APPROVAL_RATES]
