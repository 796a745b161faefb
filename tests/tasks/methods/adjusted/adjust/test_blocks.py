"""Control blocks: defaults by role and name of each layout, and every refusal with its line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY, SHARED, SPEC, spec_of

from schemas.audit.column import block_of, in_order, is_personal, set_by_decision
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.tables.hmda import HMDA_APPLICATIONS
from schemas.terms import Role
from tasks.methods.adjusted.adjust import settings
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.pipeline.registry import read_spec, validated


def found(spec: AuditSpec) -> dict[str, tuple[str, ...]]:
    asked = spec.methods.of(AdjustedSettings)
    assert asked is not None
    return {block.name: block.columns for block in settings.blocks_of(spec, asked)}


def example(name: str, **overrides: str) -> AuditSpec:
    text = (REPOSITORY / "data" / "audits" / f"{name}.yaml").read_text()
    return read_spec(text, name, {key.replace("__", "."): value for key, value in overrides.items()}).spec


@pytest.mark.parametrize("name", ["boston1990", "hmda", "hmda-tx-2022", "hmda-twin"])
def test_the_blocks_of_an_example_are_those_by_role_and_name(name: str) -> None:
    """What the examples say for readers is what the rule would have made of them."""
    said, left_out = found(example(name)), found(example(name, methods__adjusted="{}"))
    assert {block: set(columns) for block, columns in said.items()} == {b: set(c) for b, c in left_out.items()}
    assert list(said) == list(left_out)


def test_boston_has_three_blocks_and_texas_two() -> None:
    assert found(example("boston1990", methods__adjusted="{}")) == {
        "terms": ("loanamt", "loanprc", "term", "multi", "cosign"),
        "finances": ("appinc", "obrat", "hrat", "unem", "dep", "self", "sch"),
        "history": ("chist", "pubrec", "mortno", "mortlat1", "mortlat2"),
    }
    assert list(found(example("hmda-tx-2022"))) == ["terms", "finances"]


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("loan_to_value_ratio", "terms"),
        ("combined_loan_to_value_ratio", "terms"),
        ("loan_amount_000s", "terms"),
        ("derived_msa-md", "place"),
        ("lei", "place"),
        ("aus-1", "history"),
        ("aus_3", "history"),
        ("debt_to_income_ratio", "finances"),
        ("income_usd", "finances"),
        *((name, None) for name in ("rate_spread", "denial_reason-2", "purchaser_type_raw", "total_loan_costs")),
        *((name, None) for name in ("applicant_race_observed", "co_applicant_sex", "derived_ethnicity", "Age")),
        *((name, None) for name in ("applicant_age_above_62", "interest_rate", "action_taken", "marital_status")),
        ("purpose", "other"),
    ],
)
def test_a_column_of_a_known_name_is_in_its_block(name: str, block: str | None) -> None:
    assert block_of(name, (Role.FEATURE,)) == block


def test_a_financial_column_of_another_name_is_in_finances() -> None:
    assert block_of("savings", (Role.MEDIATOR, Role.FINANCIAL)) == "finances"


def test_place_is_the_last_block_wherever_it_is_named() -> None:
    assert in_order(["place", "other", "mine", "history", "terms"]) == ["terms", "history", "mine", "other", "place"]


def test_every_column_of_canonical_hmda_that_the_decision_sets_or_that_says_who_is_known() -> None:
    names = [column.name for column in HMDA_APPLICATIONS.columns]
    after = {re.sub(r"_\d|_raw", "", name) for name in names if set_by_decision(name)}
    assert after == {
        *("action_taken", "denial_reason", "purchaser_type", "hoepa_status", "interest_rate", "rate_spread"),
        *("total_loan_costs", "total_points_and_fees", "origination_charges", "discount_points", "lender_credits"),
    }
    who = [name for name in names if re.search(r"race|ethnicity|_sex|applicant_age", name)]
    assert [name for name in who if not is_personal(name)] == []


@pytest.mark.data("data/hmda_lar_2024_travis_cu")
def test_every_public_field_that_only_loans_have_is_known_as_set_by_the_decision() -> None:
    """Of actions 1 and 2 against 3; a field of a loan's costs is filled for 62 % of action 1 alone."""
    file = SHARED / "data/hmda_lar_2024_travis_cu/travis_cu_2024_hmda.csv"
    cells = pd.read_csv(file, dtype=str, keep_default_na=False)
    filled = ~cells.isin(["", "NA", "Exempt", "10"])  # 10: no reason of denial
    by_action = filled.groupby(cells["action_taken"]).mean()
    approved = filled[cells["action_taken"].isin(["1", "2"])].mean()
    one_sided = (approved - by_action.loc["3"]).abs() > np.maximum(0.05, 0.9 * np.maximum(approved, by_action.loc["3"]))
    assert {name for name in cells.columns[one_sided] if not set_by_decision(name)} == set()
    assert by_action.loc["1", "total_loan_costs"] == pytest.approx(508 / 817)
    assert by_action.loc["2", "total_loan_costs"] == 0
    settled_after = {"hoepa_status", "purchaser_type", "action_taken"}  # filled for all, with a code of their own
    lacking = {name for name in cells if set_by_decision(name)} - settled_after - set(cells.columns[one_sided])
    assert lacking == {"total_points_and_fees", "lender_credits", "denial_reason-3", "denial_reason-4"}, "of nobody"


def test_a_block_of_a_column_puts_it_there_and_none_takes_it_out(place: Path) -> None:
    spec = spec_of(place, columns__purpose__block="terms", columns__history__block="none")
    assert found(spec) == {"terms": ("purpose",), "finances": ("income",), "other": ("amount",)}


def test_an_excluded_column_with_a_block_is_a_control_and_no_feature(place: Path) -> None:
    spec = spec_of(place, columns__purpose__role="excluded", columns__purpose__block="place")
    assert "purpose" not in spec.features()
    assert found(spec)["place"] == ("purpose",)
    asked = adjust_settings(spec)
    assert asked is not None
    assert asked.primary == "other"


def test_protected_columns_are_no_controls(place: Path) -> None:
    given = "columns:\n  race: {type: nominal}\n"
    spec = spec_of(place, SPEC.replace("columns:\n", given, 1) if "columns:\n  income" in SPEC else SPEC)
    assert "race" not in {name for columns in found(spec).values() for name in columns}


BAD = {
    "{blocks: {terms: [amuont]}}": r"methods\.adjusted\.blocks\.terms\.0: 'amuont' is no column that is read; did you",
    "{blocks: {terms: [amount], finances: []}}": r"blocks\.finances: the block 'finances' has no column",
    "{blocks: {terms: [race]}}": r"blocks\.terms\.0: 'race' is a protected attribute and so no control",
    "{blocks: {terms: [amount], mine: [amount]}}": r"blocks\.mine\.0: 'amount' is in the block 'terms' already",
    "{blocks: {cross: [amount]}}": r"blocks\.cross: 'cross' is the name of a rung of its own",
    "{blocks: {a + b: [amount]}}": r"blocks\.a \+ b: 'a \+ b' is no name of a block: letters, digits",
    "{blocks: {'': [amount]}}": r"'' is no name of a block",
    "{estimators: [lpm, lpm]}": r"estimators: each estimator is named once, got lpm, lpm",
    "{primary: histroy}": r"primary: there is no block 'histroy'",
    "{cluster: lei}": r"cluster: 'lei' is no column that is read",
    "{blocks: {terms: [amount], place: [purpose]}, primary: place}": r"primary: 'place' holds fixed effects",
    "{cluster_bootstrap: true}": r"cluster_bootstrap: there are no clusters to draw",
}


@pytest.mark.parametrize(("asked", "message"), BAD.items())
def test_what_does_not_fit_the_columns_is_named_with_its_line(asked: str, message: str) -> None:
    text = SPEC.replace("methods:\n", f"methods:\n  adjusted: {asked}\n")
    line = text.splitlines().index(f"  adjusted: {asked}") + 1
    with pytest.raises(SpecError, match=rf"loans\.yaml, line {line}: .*{message}"):
        read_spec(text, "loans.yaml")


@pytest.mark.parametrize(
    ("parameters", "refused"), [("", True), (", parameters: {estimator: aipw, rung: other, over: own}", False)]
)
def test_a_limit_without_the_logit_that_it_judges(parameters: str, refused: bool) -> None:
    """Without the check it would hold for every rung and estimator, the raw difference too."""
    limit = f"thresholds:\n  - {{measure: adjusted_effect, maximum: 0.05{parameters}}}\n"
    text = SPEC.replace("methods:\n", "methods:\n  adjusted: {estimators: [aipw], judged: logit}\n").replace(
        "thresholds:\n", limit
    )
    if not refused:
        read_spec(text, "loans.yaml")
        return
    line = text.splitlines().index("  - {measure: adjusted_effect, maximum: 0.05}") + 1
    with pytest.raises(SpecError, match=rf"line {line}: thresholds\.0: the logit is what a limit judges"):
        read_spec(text, "loans.yaml")


@pytest.mark.parametrize(
    ("given", "cluster"),
    [
        ({}, None),
        ({"columns__lei": "{type: nominal, role: excluded, block: none}"}, "lei"),
        ({"columns__lender_id": "{type: nominal}", "columns__amount__block": "none"}, "lender_id"),
        ({"columns__lei": "{type: nominal}", "methods__adjusted": "{cluster: purpose}"}, "purpose"),
        ({"columns__lei": "{type: nominal}", "methods__adjusted": "{cluster: none}"}, None),
    ],
)
def test_rows_of_a_lender_are_a_cluster_unless_the_spec_says_otherwise(
    place: Path, given: dict[str, str], cluster: str | None
) -> None:
    asked = adjust_settings(spec_of(place, **given))
    assert asked is not None
    assert asked.cluster == cluster


def test_a_year_without_the_judged_block_is_no_fault(place: Path) -> None:
    spec = spec_of(place, methods__adjusted="{blocks: {mine: [amount], past: [history]}, primary: past}")
    said = spec.model_dump(mode="json")
    said["methods"]["adjusted"]["blocks"] = {"mine": ["amount"]}
    said["source"]["lacking"] = ["history"]
    asked = adjust_settings(validated(AuditSpec, said))
    assert asked is not None
    assert (asked.primary, [block.name for block in asked.blocks]) == ("past", ["mine"])


def test_a_fault_of_the_ladder_is_told_with_those_of_other_methods() -> None:
    text = SPEC.replace("methods:\n", "methods:\n  adjusted: {primary: place}\n").replace("ks: [5, 10]", "ks: [0]")
    with pytest.raises(SpecError) as caught:
        read_spec(text, "loans.yaml")
    assert "methods.cst.ks" in str(caught.value)


def test_a_logarithm_is_of_numbers() -> None:
    with pytest.raises(SpecError, match="`scale: log` belongs to continuous columns, not to nominal"):
        read_spec(SPEC.replace("purpose: {type: nominal", "purpose: {scale: log, type: nominal"), "loans.yaml")


def test_the_ladder_runs_by_default_beside_others_and_null_turns_it_off() -> None:
    assert read_spec(SPEC, "loans.yaml").spec.methods.running() == ("adjusted", "fgce", "cst")
    off = read_spec(SPEC, "loans.yaml", {"methods.adjusted": "null"}).spec
    assert off.methods.running() == ("fgce", "cst")
    assert adjust_settings(off) is None


def crossed(**kinds: str) -> tuple[str, ...]:
    """Columns that the rung ``cross`` adds where race is protected."""
    columns = "".join(f"  {name}: {{type: {kind}}}\n" for name, kind in kinds.items())
    text = SPEC.replace("columns:\n  income", f"columns:\n{columns}  income").replace(
        "methods:", "methods:\n  adjusted: {cross: true}"
    )
    spec = read_spec(text, "loans.yaml").spec
    asked = spec.methods.of(AdjustedSettings)
    assert asked is not None
    return settings.personal(spec, asked)


def test_the_rung_cross_never_holds_the_attribute_in_other_words() -> None:
    kinds = {"applicant_race_observed": "nominal", "derived_race": "nominal", "co_applicant_race": "nominal"}
    assert crossed(**kinds, derived_ethnicity="nominal", age="continuous", sex="binary") == ("age", "sex")


@pytest.mark.parametrize("name", ["income_missing", "dti_is_missing", "missing_income", "income_na"])
def test_a_flag_of_missing_values_is_no_control(name: str) -> None:
    assert block_of(name, (Role.FEATURE,)) is None
    assert block_of("income", (Role.FEATURE,)) == "finances"
