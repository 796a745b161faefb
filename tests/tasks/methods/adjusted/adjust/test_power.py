"""The judge of planted copies is that of the stages: on the table as it is, it gives the states of the audit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SPEC, loans

from schemas.audit.limits import Verdicts
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import State, Theory
from tasks.in_memory import call_plainly
from tasks.methods.adjusted.adjust.power import Judge, Planting, Target, power_of, targets_of
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.adjust.stability import choices_of, stability_of
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

OTHERS = {f"methods.{name}": "null" for name in ("fgce", "cst", "cec", "gcfn", "raguel")}
OVER = OTHERS | {"thresholds": "[]", "model.kind": "none", "explain.decision_makers": "[lender]"}
TWO = """
  - {name: sex, columns: [sex], reference: m}
"""


def spoilt_loans(rows: int = 1200) -> pd.DataFrame:
    """Loans with gaps that depend on the decision, applications without one, officers and a second attribute."""
    rng, frame = np.random.default_rng(4), loans(rows)
    frame["sex"] = rng.choice(["m", "f"], rows)
    frame["officer"] = rng.choice([f"o{n}" for n in range(12)], rows)
    lacking = (frame["approved"] == "no") & (frame["race"] == "w") & (rng.random(rows) < 0.3)
    frame["income"] = frame["income"].mask(lacking)
    frame["approved"] = frame["approved"].mask(rng.random(rows) < 0.05, "withdrawn")
    return frame


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditSpec, dict[str, pa.Table]]:
    place = tmp_path_factory.mktemp("spoilt")
    spoilt_loans().to_csv(place / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}")
    text = text.replace("    reference: white\n", f"    reference: white{TWO}")
    text = text.replace(
        "columns:\n  income", "columns:\n  officer: {type: nominal, role: excluded, block: none}\n  income"
    )
    spec = read_spec(text + "verdicts: {columns_complete: true}\n", "loans.yaml", OVER).spec
    tables = call_plainly([step for step in plan(spec).steps if step.stage.name not in ("publish", "report")])
    return spec, {name: pa.concat_tables(parts) for name, parts in tables.items()}


def test_the_table_as_it_is_gets_the_states_of_the_audit(audit: tuple[AuditSpec, dict[str, pa.Table]]) -> None:
    spec, tables = audit
    judge = Judge.of(spec, tables)
    states: dict[tuple[Theory, str, str], State] = {}
    files = {name: examination.files for name, examination in judge.examinations.items()}
    for attribute in files:
        of_all = judge.states(files, attribute)
        states |= {key: state for key, state in of_all.items() if key[1] == attribute}
    rows = tables["verdicts"].to_pylist()
    judged = {
        (Theory(row["theory"]), row["protected_attribute"], row["group"]): State(row["state"])
        for row in rows
        if row["role"] == "primary" and row["theory"] in (Theory.SIMILAR_APPLICANTS, Theory.APPROVAL_RATES)
    }
    assert states == judged
    assert len(judged) == 4
    # the file does mislead, and rows do hang together: the equality is about more than a plain interval
    effect = tables["judged_effects"].to_pylist()[0]
    assert effect["cluster"] == "officer"
    assert any(row["depends"] for row in tables["judged_effects"].to_pylist())
    assert {"weighted", "undecided"} <= set(tables["readings"]["reading"].to_pylist())


def test_copies_depend_on_seed_number_and_target_alone(audit: tuple[AuditSpec, dict[str, pa.Table]]) -> None:
    judge = Judge.of(*audit)
    targets = targets_of(judge)
    assert [(t.attribute, t.group) for t in targets] == [("race", "Black"), ("sex", "f")]
    planting = Planting.of(judge, targets[0], 7)
    together = planting.drawn(range(4))
    assert together == [states for number in range(4) for states in planting.drawn([number])]
    assert planting.drawn([3]) == together[3:]
    rows = power_of(planting, together)
    assert [(row.question, row.points) for row in rows] == [
        (question, points) for question in ("similar_applicants", "approval_rates") for points in (0.0, 0.02, 0.05, 0.1)
    ]
    assert {row.plants for row in rows} == {4}


def test_large_harm_is_outside_and_more_than_was_approved_has_a_reason(
    audit: tuple[AuditSpec, dict[str, pa.Table]],
) -> None:
    judge = Judge.of(*audit)
    (target,) = targets_of(judge, "sex: f")
    planting = Planting.of(judge, target, 1, points=(0.3, 0.99))
    rows = {(row.question, row.points): row for row in power_of(planting, planting.drawn(range(6)))}
    assert rows["approval_rates", 0.3].outside == 1.0
    assert "fewer members are approved" in rows["approval_rates", 0.99].reason


def test_a_target_has_enough_members(audit: tuple[AuditSpec, dict[str, pa.Table]]) -> None:
    judge = Judge.of(*audit)
    (part,) = targets_of(judge, "f", "history=bad")
    assert (part.part, 100 < part.n < 300, part.reason) == ("history: bad", True, "")
    with pytest.raises(SpecError, match="--part officer=o3: too few decided members for a verdict, which needs 50"):
        targets_of(judge, "f", "officer=o3")
    with pytest.raises(SpecError, match="--part officer=o99: 'officer' has no level 'o99'"):
        targets_of(judge, "f", "officer=o99")
    with pytest.raises(SpecError, match="--group white: no such judged group"):
        targets_of(judge, "white")


def test_choices_from_the_applications_are_those_of_the_stage(audit: tuple[AuditSpec, dict[str, pa.Table]]) -> None:
    spec, tables = audit
    settings = adjust_settings(spec)
    assert settings is not None
    assert choices_of(tables, settings).equals(tables["choices"])
    own = [row for row in tables["choices"].to_pylist() if row["number"] == 1]
    effects = {row["group"]: row for row in tables["judged_effects"].to_pylist()}
    for row in own:
        assert (row["value"], row["se_at_limit"]) == tuple(effects[row["group"]][n] for n in ("value", "se_at_limit"))
    counted = {row["group"]: row for row in tables["verdicts"].to_pylist() if row["choices"] is not None}
    for of in stability_of(tables["verdicts"], tables["choices"], spec.verdicts):
        assert len(of.choices) == 48
        assert counted[of.group]["choices"] == 48
        assert counted[of.group]["choices_outside"] == of.counts[State.OUTSIDE]
        assert counted[of.group]["choices_within"] == of.counts[State.WITHIN]
        # gaps are weighted, and no column of branches is a control
        assert 24 <= of.different < 48


def test_a_run_without_a_verdict_on_similar_applicants_has_no_choices(
    audit: tuple[AuditSpec, dict[str, pa.Table]],
) -> None:
    _, tables = audit
    with pytest.raises(SpecError, match="similar_applicants: it judges no group"):
        list(stability_of(tables["verdicts"].slice(0, 0), tables["choices"], Verdicts()))


def test_a_spec_that_does_not_judge_the_lender_is_refused(tmp_path: Path) -> None:
    loans(300).to_csv(tmp_path / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}")
    for override, message in (
        ({"methods.adjusted": "null"}, "leaves the method `adjusted` out"),
        ({"methods.adjusted.judged": "logit"}, "is logit"),
        ({"explain.decision_makers": "[model]", "model.kind": "logistic_regression"}, "leaves the lender out"),
    ):
        spec = read_spec(text, "loans.yaml", OVER | override).spec
        with pytest.raises(SpecError, match=message):
            Judge.of(spec, {})
    assert Target("race", "Black").key == "race|Black|"
