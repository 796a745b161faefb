"""Specs without a feature: which methods, which model and which limits are left, and what is said of the others."""

from pathlib import Path

import pytest
from conftest import SPEC, spec_of

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import NO_FEATURE
from tasks.in_memory import call_plainly
from tasks.metrics.limits import check_limits
from tasks.pipeline.registry import asked_for, inapplicable, not_asked
from tasks.plan import plan

COLUMNS = ("income", "amount", "purpose", "history")
BARE = SPEC.replace("causal_graph: {edges: [[race, income], [race, history], [income, amount]]}\n", "")


def bare(place: Path, kept: tuple[str, ...] = (), text: str = BARE, **overrides: str) -> AuditSpec:
    """The spec of the loans with all columns excluded but those that are kept."""
    excluded = {f"columns__{name}__role": "excluded" for name in COLUMNS if name not in kept}
    return spec_of(place, text, **excluded, **overrides)


def test_no_method_runs_without_a_feature_and_each_says_so(place: Path) -> None:
    spec = bare(place, methods="{adjusted: {}, fgce: {}, raguel: {}}")
    assert asked_for(spec) == []
    assert inapplicable(spec) == dict.fromkeys(("adjusted", "fgce", "raguel"), NO_FEATURE)
    [sentence] = not_asked(spec)
    assert sentence.startswith(f"Not run: adjusted, fgce, raguel ({NO_FEATURE}); ")
    assert [step.name for step in plan(spec).steps] == ["ingest", "preprocess", "score", "measure", "publish", "report"]


def test_one_feature_is_enough_for_every_method(place: Path) -> None:
    assert inapplicable(bare(place, kept=("income",))) == {}


def test_a_control_is_enough_for_the_denial_ladder_alone(place: Path) -> None:
    spec = bare(place, methods="{adjusted: {}, fgce: {}}", columns__income__block="finances")
    assert [method.name for method in asked_for(spec)] == ["adjusted"]


def test_no_model_is_fitted_without_a_feature(place: Path) -> None:
    spec = bare(place, methods="{adjusted: {}}")
    assert spec.audited_model.kind == "none"
    assert f"no model is audited: {NO_FEATURE}, and a model is fitted to features" in list(spec.remarks())
    found = call_plainly(plan(spec).steps[:3])
    assert set(found["decisions"][0]["decision_maker"].to_pylist()) == {"lender"}
    assert spec_of(place).audited_model == spec_of(place).model


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"model": "{kind: file, file: {path: model.onnx}}"}, f"{NO_FEATURE}, and a model file decides by features"),
        ({"verdicts__decision_makers": "[model]"}, f"no model whose decisions could be judged \\({NO_FEATURE}\\)"),
    ],
)
def test_what_needs_a_feature_by_name_is_refused(place: Path, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        bare(place, methods="{adjusted: {}}", **overrides)


def test_a_limit_on_a_method_that_cannot_run_is_refused_with_the_reason(place: Path) -> None:
    limit = "[{measure: adjusted_effect, method: adjusted, maximum: 0.1}]"
    with pytest.raises(SpecError, match=f"'adjusted' does not run in this spec: {NO_FEATURE}; take the limit away"):
        check_limits(bare(place, methods="{adjusted: {}}", thresholds=limit))


def test_mitigations_are_not_trained_without_a_feature(place: Path) -> None:
    steps = plan(bare(place, methods="{adjusted: {}}", compare="[dir, hardt]")).steps
    compared = next(number for number, step in enumerate(steps, 1) if step.name == "compare")
    rows = call_plainly(steps[:compared])["compared_mitigations"][0].to_pandas()
    assert set(rows["mitigation"]) == {"unconstrained", "dir", "hardt"}
    assert set(rows["reason"]) == {NO_FEATURE}
    assert rows["value"].isna().all()
