"""Methods that could not run, on a spec or on a problem: the verdicts say why, and rates keep theirs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SPEC, loans, spec_of

from schemas.audit.spec import AuditSpec
from tasks.in_memory import call_plainly
from tasks.plan import plan

METHODS = "{cst: {ks: [5], k: 5, null_permutations: 2, null_complainants: 20}}"


def verdicts(spec: AuditSpec) -> pd.DataFrame:
    """The table of verdicts of a spec, with exact numbers."""
    steps = plan(spec).steps
    measured = next(number for number, step in enumerate(steps, 1) if step.name == "measure")
    return call_plainly(steps[:measured])["verdicts"][0].to_pandas()


def test_a_method_without_a_feature_is_not_run_and_rates_are_judged(place: Path) -> None:
    excluded = {f"columns__{name}__role": "excluded" for name in ("income", "amount", "purpose", "history")}
    spec = spec_of(place, methods="{adjusted: {}}", causal_graph="{}", thresholds="[]", **excluded)
    found = verdicts(spec)
    whole = found[found["role"] == "theory"].set_index("theory")
    assert (whole.loc["similar_applicants", "state"], whole.loc["similar_applicants", "reason"]) == (
        "not_run",
        "the spec has no feature",
    )
    assert whole.loc["causal_model", "reason"] == "no causal model was given"
    rate = found.query("theory == 'approval_rates' and role == 'primary' and group == 'Black'").iloc[0]
    frame = loans()
    approved = (frame["approved"] == "yes").groupby(frame["race"]).mean()
    assert np.isclose(rate["value"], approved["b"] / approved["w"])


def test_a_group_of_which_no_application_is_complete_is_named(place: Path) -> None:
    frame = loans()
    frame.loc[frame["race"] == "w", "income"] = None
    frame.to_csv(place / "loans.csv", index=False)
    found = verdicts(spec_of(place, methods=METHODS, thresholds="[]"))
    row = found.query("theory == 'causal_model' and role == 'primary' and group == 'Black'").iloc[0]
    assert row["reason"] == "not measured: every application of white lacks a feature"
    assert np.isfinite(found.query("theory == 'approval_rates' and role == 'primary'")["value"]).all()


@pytest.mark.slow
def test_a_problem_that_a_method_cannot_work_on_has_the_reason(place: Path) -> None:
    loans().assign(income=5.0).to_csv(place / "loans.csv", index=False)
    text = SPEC.replace("income: {type: continuous,", "income: {type: continuous, role: [feature, financial],")
    found = verdicts(spec_of(place, text, methods="{cec: {}}", thresholds="[]"))
    row = found.query("theory == 'model_reasons' and role == 'primary' and group == 'Black'").iloc[0]
    assert row["reason"].startswith("not measured: financial feature 'income' is constant among the rows to be matched")
    assert not any(letter.isdigit() for letter in row["reason"]), "no count is told before publication"
