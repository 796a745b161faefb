"""Stage adjust on real rows of Boston: golden values, rows that add up, refusals; its measures with their intervals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SPEC, loans, spec_of

from schemas.errors import SpecError
from schemas.terms import Note
from tasks.in_memory import call_plainly
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.algorithm.sensitivity import e_value
from tasks.methods.adjusted.tables import ADJUSTED, ADJUSTED_INTERACTIONS
from tasks.pipeline.registry import read_spec
from tasks.pipeline.validation import validate
from tasks.plan import plan

OTHERS = {f"methods.{name}": "null" for name in ("fgce", "cst", "cec", "gcfn", "raguel")}
DIRECTED = "[appinc, loanprc, obrat, hrat, chist, pubrec, mortlat1, mortlat2]"
LINEAR = f"{{form: linear, comparators: {{columns: {DIRECTED}}}, estimators: [logit, lpm], "
LINEAR += "blocks: {terms: [loanamt, loanprc, term, multi, cosign], "
LINEAR += (
    "finances: [appinc, hrat, obrat, unem, dep, self, sch], history: [chist, pubrec, mortno, mortlat1, mortlat2]}}"
)
LIMITS = "[{measure: adjusted_effect, maximum: 0.02}]"


def audited(spec_text: str, **overrides: str) -> dict[str, pd.DataFrame]:
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    spec = read_spec(spec_text, "spec.yaml", OTHERS | given).spec
    tables = call_plainly(plan(spec).steps[:-2])
    return {name: pa.concat_tables(parts).to_pandas() for name, parts in tables.items()}


@pytest.fixture(scope="module")
def boston() -> dict[str, pd.DataFrame]:
    text = (REPOSITORY / "data" / "audits" / "boston1990.yaml").read_text()
    given = {"explain.decision_makers": "[lender]", "methods.adjusted": LINEAR, "bootstrap.draws": "100"}
    return audited(text, **{k.replace(".", "__"): v for k, v in given.items()}, thresholds=LIMITS)


GOLDEN = {
    ("Black", ""): (4.828, 0.2342, 0.0341, 0.2342, 0.2342, 0.196, 6.63),
    ("Black", "terms"): (3.765, 0.2033, 0.0342, 0.1781, 0.1972, 0.167, 4.79),
    ("Black", "terms + finances"): (3.556, 0.1931, 0.0343, 0.1579, 0.1833, 0.158, 4.37),
    ("Black", "terms + finances + history"): (2.504, 0.1326, 0.0333, 0.0955, 0.1309, 0.118, 2.77),
    ("Hispanic", "terms + finances + history"): (2.409, 0.1068, 0.0366, 0.0904, 0.1020, 0.074, 3.05),
}


def test_comparator_files_of_boston_and_the_control_comparison(boston: dict[str, pd.DataFrame]) -> None:
    """Specification of lending, section 6: 56 % of 64, 73 % of 154, and 60 % of these an approved Black one."""
    files = boston["compared_files"].set_index(["group", "to_group"])
    shares = {pair: (files.loc[pair, "n"], round(100 * files.loc[pair, "matched"])) for pair in files.index}
    assert shares["Black", "white"] == (64, 56)
    assert shares["white", "white"] == (154, 73)
    assert shares["white", "Black"] == (154, 60)
    of_black = files.loc[("Black", "white")]
    assert [of_black[name] for name in ("pairs", "member_denied", "other_denied")] == [148, 28, 22]
    assert of_black["p"] > 0.05
    assert files.loc[("white", "Black"), ["pairs", "gamma"]].isna().all()
    pairs = boston["comparators"].query("group == 'Black' and rank == 1")
    assert len(pairs) == files.loc[("Black", "white"), "events"]
    applications = boston["applications"].set_index("row_id")
    denied, approved = (applications.loc[pairs[name]] for name in ("row_id", "other_row_id"))
    assert not denied["favourable"].any()
    assert approved["favourable"].all()
    assert (approved["appinc"].to_numpy() <= denied["appinc"].to_numpy()).all()
    assert (approved["loanprc"].to_numpy() >= denied["loanprc"].to_numpy()).all()


def test_a_column_without_a_direction_has_no_better_and_no_worse() -> None:
    text = (REPOSITORY / "data" / "audits" / "boston1990.yaml").read_text()
    with pytest.raises(SpecError, match="'term' has no direction"):
        read_spec(text, "spec.yaml", {"methods.adjusted": "{comparators: {columns: [term]}}"})


@pytest.mark.parametrize(("at", "golden"), GOLDEN.items(), ids=lambda each: str(each)[:40])
def test_the_golden_values_come_out_of_the_whole_way(
    boston: dict[str, pd.DataFrame], at: tuple[str, str], golden: tuple[float, ...]
) -> None:
    rows = boston["adjusted"].query("group == @at[0] and blocks == @at[1]").set_index(["estimator", "average_over"])
    own, every, linear = (rows.loc[kind] for kind in (("logit", "own"), ("logit", "all"), ("lpm", "all")))
    found = (own["odds_ratio"], own["value"], own["se"], every["value"], linear["value"], linear["rv"], own["e_value"])
    digits = (3, 4, 4, 4, 4, 3, 2)
    assert tuple(round(value, each) for value, each in zip(found, digits, strict=True)) == golden


def test_used_and_left_out_rows_are_all_rows(boston: dict[str, pd.DataFrame]) -> None:
    rows = boston["adjusted_rows"]
    assert rows["rows"].sum() == len(boston["applications"]) == 1989
    assert rows[~rows["used"]]["rows"].sum() == 5
    assert rows["denied"].sum() == (~boston["applications"]["favourable"]).sum()


def test_the_primary_rung_is_the_measure_and_brings_its_own_interval(boston: dict[str, pd.DataFrame]) -> None:
    judged = boston["adjusted"].query("primary").set_index("group")
    assert set(judged["blocks"]) == {"terms + finances + history"}
    measure = (
        boston["measures"]
        .query("decision_maker == 'lender' and measure == 'adjusted_effect' and parameters == '{}'")
        .set_index("group")
    )
    assert set(measure.index) == {"Black", "Hispanic"}
    for group in measure.index:
        for name in ("value", "low", "high"):
            assert measure.loc[group, name] == judged.loc[group, name]
    assert boston["aggregates"].query("method == 'adjusted'")["replicates"].map(len).max() == 0


def test_a_limit_judges_the_interval_of_the_formula(boston: dict[str, pd.DataFrame]) -> None:
    states = (
        boston["measures"]
        .query("decision_maker == 'lender' and measure == 'adjusted_effect' and parameters == '{}'")
        .set_index("group")["state"]
    )
    low = boston["adjusted"].query("primary").set_index("group")["low"]
    assert low["Black"] > 0.02
    assert states["Black"] == "outside"


def test_every_rung_and_estimator_is_a_measure_with_parameters(boston: dict[str, pd.DataFrame]) -> None:
    rows = boston["measures"].query("method == 'adjusted' and parameters != '{}'")
    assert len(rows) == len(boston["adjusted"])
    assert '{"estimator": "lpm", "over": "all", "rung": "none"}' in set(rows["parameters"])


def test_the_e_value_of_the_near_end_stands_beside_that_of_the_estimate(boston: dict[str, pd.DataFrame]) -> None:
    own = boston["adjusted"].query("estimator == 'logit' and average_over == 'own'")
    share = own["events"] / own["n"]
    assert (own["low"] > 0).all()
    assert own["e_value"].to_numpy() == pytest.approx([e_value(r) for r in share / (share - own["value"])])
    assert own["e_value_near"].to_numpy() == pytest.approx([e_value(r) for r in share / (share - own["low"])])


def test_nobody_has_a_finding(boston: dict[str, pd.DataFrame]) -> None:
    assert len(boston["findings"]) == 0


def test_benchmarks_and_interactions_are_of_the_primary_rung(boston: dict[str, pd.DataFrame]) -> None:
    benchmarks = boston["adjusted_benchmarks"]
    assert set(benchmarks["rung"]) == {3}
    assert len(benchmarks) == 2 * 17 * 3
    assert {"pubrec", "obrat"} <= set(boston["adjusted_interactions"]["column"])


def test_a_benchmark_has_what_the_control_explains_beside_the_bound(boston: dict[str, pd.DataFrame]) -> None:
    once = boston["adjusted_benchmarks"].query("times == 1")
    of_group = once["column_of_group"]
    assert (of_group / (1 - of_group)).to_numpy() == pytest.approx(once["of_group"].to_numpy())
    assert (once["column_of_denial"] < once["of_denial"]).all()


def small_loans(place: Path, **columns: object) -> str:
    frame = loans(900).assign(**columns)
    frame.to_csv(place / "loans.csv", index=False)
    own = "".join(f"  {name}: {{type: continuous, role: excluded, block: terms}}\n" for name in columns)
    return SPEC.replace("path: loans.csv", f"path: {place / 'loans.csv'}").replace(
        "columns:\n  income", f"columns:\n{own}  income"
    )


def test_interactions_tell_percentiles_of_ordered_categories_and_levels_of_others(tmp_path: Path) -> None:
    blocks = "{estimators: [logit], blocks: {terms: [amount, purpose, history]}}"
    found = audited(small_loans(tmp_path), methods__adjusted=blocks, model__kind="none")["adjusted_interactions"]
    at = found.query("group == 'Black'").groupby("column")[["percentile", "at"]].agg(list)
    assert at.loc["amount", "percentile"] == [10, 50, 90]
    assert at.loc["history"].tolist() == [[10, 50, 90], ["bad", "fair", "good"]]
    assert at.loc["purpose", "at"] == ["buy", "refinance"]
    assert pd.isna(at.loc["purpose", "percentile"]).all()
    whole = pa.Table.from_pandas(found, ADJUSTED_INTERACTIONS.schema(), preserve_index=False)
    assert all(each.success for each in validate(whole, ADJUSTED_INTERACTIONS))


def test_a_named_control_set_after_the_decision_is_refused_with_the_share_filled_by_action(tmp_path: Path) -> None:
    approved = loans(900)["approved"] == "yes"
    text = small_loans(tmp_path, rate_spread=approved.map({True: 0.5, False: None}))
    read = read_spec(text, "loans.yaml", OTHERS)
    with pytest.raises(SpecError, match="'rate_spread' is set by the decision") as caught:
        adjust_settings(read.spec)
    told = read.describe(caught.value)
    line = next(i for i, each in enumerate(text.splitlines(), 1) if "rate_spread" in each)
    assert f"line {line}: columns.rate_spread.block" in told
    assert "filled in 100.0 % of the approved and 0.0 % of the denied applications" in told


def test_the_share_filled_by_action_is_of_cells_as_the_recipe_reads_them(tmp_path: Path) -> None:
    approved = loans(900)["approved"] == "yes"
    spellings = approved.map({True: " YES", False: "No."})
    text = small_loans(tmp_path, rate_spread=approved.map({True: 0.5, False: -999}), approved=spellings)
    text = text.replace("  approved: {type: continuous, role: excluded, block: terms}\n", "")
    recipe = {"source.intake": "{columns: {rate_spread: {read: number, codes: ['-999']}}}"}
    with pytest.raises(SpecError, match=r"filled in 100\.0 % of the approved and 0\.0 % of the denied"):
        adjust_settings(read_spec(text, "loans.yaml", OTHERS | recipe).spec)


def test_a_named_control_that_one_decision_fills_is_refused_whatever_its_name(tmp_path: Path) -> None:
    approved = loans(900)["approved"] == "yes"
    text = small_loans(tmp_path, settled=approved.map({True: 1.5, False: None}))
    with pytest.raises(SpecError, match="'settled' is set by the decision or after it"):
        audited(text)


def test_missing_values_of_a_control_are_counted_and_the_rows_left_out(tmp_path: Path) -> None:
    frame = loans(900)
    value = frame["income"].where(frame.index % 10 > 0)
    found = audited(small_loans(tmp_path, savings=value), methods__adjusted="{estimators: [lpm]}", model__kind="none")
    rows = found["adjusted_rows"]
    assert rows["rows"].sum() == 900
    assert rows.query("reason == 'missing savings'")["rows"].sum() == 90


def test_a_group_of_few_denials_is_refused_by_name_and_never_a_pass(tmp_path: Path) -> None:
    loans(900).to_csv(tmp_path / "loans.csv", index=False)
    spec = small_loans(tmp_path)
    found = audited(
        spec, methods__adjusted="{minimum_events: 400, estimators: [logit]}", thresholds=LIMITS, model__kind="none"
    )
    rows = found["adjusted"]
    assert rows["value"].isna().all()
    assert rows["reason"].str.startswith("too_few_events").all()
    judged = found["measures"].query("measure == 'adjusted_effect' and parameters == '{}'")
    assert set(judged.query("group == 'Black'")["state"]) == {"inconclusive"}
    assert set(judged.query("group == '(missing)'")["state"]) == {"not_run"}, "groups that are no people are not judged"


def test_the_cross_rung_adds_the_other_attributes_and_is_not_judged(tmp_path: Path) -> None:
    frame = loans(900)
    frame["sex"] = ["m" if i % 2 else "f" for i in range(len(frame))]
    frame.to_csv(tmp_path / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}")
    text = text.replace("columns:\n  income", "  - {name: sex, columns: [sex], reference: m}\ncolumns:\n  income")
    found = audited(text, methods__adjusted="{cross: true, estimators: [logit]}", model__kind="none")["adjusted"]
    assert set(found.query("primary")["blocks"]) == {"finances + other"}
    assert set(found["blocks"]) == {"", "finances", "finances + other", "finances + other + cross"}


def test_without_a_control_there_is_the_raw_difference_alone(tmp_path: Path) -> None:
    off = {f"columns__{name}__block": "none" for name in ("income", "amount", "purpose", "history")}
    found = audited(small_loans(tmp_path), **off, methods__adjusted="{estimators: [logit, lpm]}", model__kind="none")
    assert set(found["adjusted"]["rung"]) == {0}
    assert found["adjusted"].query("primary")["value"].notna().all()


def test_poor_support_gives_no_verdict(tmp_path: Path) -> None:
    frame = loans(900)
    frame["income"] = frame["income"].where(frame["race"] != "b", frame["income"] / 12)
    frame.to_csv(tmp_path / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}")
    found = audited(text, methods__adjusted="{estimators: [logit, overlap]}", thresholds=LIMITS, model__kind="none")
    judged = found["measures"].query("measure == 'adjusted_effect' and parameters == '{}' and group == 'Black'").iloc[0]
    primary = found["adjusted"].query("primary and group == 'Black'").iloc[0]
    assert primary["support"] < 0.8
    assert primary["reason"].endswith(
        f"poor_support: {primary['support']:.0%} of the group have a propensity in [0.05, 0.95] at equal group sizes"
    )
    assert judged["note"] == Note.POOR_SUPPORT
    assert (judged["state"], judged["reason"]) == (
        "inconclusive",
        "too few of the group are where applicants of both groups are found",
    )


def test_a_judged_block_that_the_decision_sets_is_not_measured_and_nothing_else_is_judged(tmp_path: Path) -> None:
    frame = loans(900)
    frame["price"] = frame["amount"].where(frame["approved"] == "yes")
    frame.to_csv(tmp_path / "loans.csv", index=False)
    text = SPEC.replace("path: loans.csv", f"path: {tmp_path / 'loans.csv'}")
    text = text.replace("columns:\n  income", "columns:\n  price: {type: continuous}\n  income")
    off = {f"columns__{name}__block": "terms" for name in ("income", "amount", "purpose", "history")}
    asked = "{primary: other, estimators: [logit]}"
    found = audited(text, **off, methods__adjusted=asked, thresholds=LIMITS, model__kind="none")
    judged = found["measures"].query("measure == 'adjusted_effect' and parameters == '{}' and group == 'Black'").iloc[0]
    assert judged["value"] != judged["value"]
    assert judged["state"] == "inconclusive"
    assert judged["reason"].startswith("not measured: no_primary: these data have no column of the block 'other'")
    assert found["adjusted"].query("rung == 1")["value"].notna().all()


def test_several_lenders_are_clusters_and_a_single_one_is_none(tmp_path: Path) -> None:
    own = {"columns__lei": "{type: nominal, role: excluded, block: none}", "model__kind": "none"}
    errors = []
    for lenders in (1, 40):
        text = small_loans(tmp_path)
        loans(900).assign(lei=[f"L{i % lenders}" for i in range(900)]).to_csv(tmp_path / "loans.csv", index=False)
        for cluster in ("null", "none"):
            asked = f"{{estimators: [lpm], cluster: {cluster}}}"
            found = audited(text, **own, methods__adjusted=asked)["adjusted"]
            errors.append(found.query("estimator == 'lpm'")["se"].tolist())
    assert errors[0] == errors[1] == errors[3]
    assert all(clustered != each for clustered, each in zip(errors[2], errors[3], strict=True))


def test_few_branches_are_no_clusters_and_a_second_estimate_compares_inside_them(tmp_path: Path) -> None:
    own = {"columns__branch": "{type: nominal, role: excluded, block: none}", "model__kind": "none"}
    inside = []
    for branches in (4, 40):
        text = small_loans(tmp_path)
        frame = loans(900).assign(branch=[f"B{i % branches}" for i in range(900)])
        frame.to_csv(tmp_path / "loans.csv", index=False)
        tables = audited(text, **own, methods__adjusted="{estimators: [lpm]}")
        inside.append(
            ("office" in set(tables["readings"]["reading"]), tables["judged_effects"]["cluster"].notna().all())
        )
    assert inside == [(True, False), (False, True)]


def test_a_linear_difference_far_from_any_probability_is_told_and_ends_no_audit(tmp_path: Path) -> None:
    frame = loans(900)
    noise = (frame["approved"] == "yes") + np.random.default_rng(0).normal(size=900)
    marker = (frame["race"] == "b") + 1e-3 * noise
    text = small_loans(tmp_path, marker=marker)
    found = audited(text, methods__adjusted="{form: linear, estimators: [lpm]}", model__kind="none")["adjusted"]
    assert found["value"].abs().max() > 2
    outcomes = validate(pa.Table.from_pandas(found, ADJUSTED.schema(), preserve_index=False), ADJUSTED)
    assert all(each.success for each in outcomes)


def test_a_group_that_nobody_decided_on_shifts_no_other_group(tmp_path: Path) -> None:
    text = small_loans(tmp_path)
    frame = loans(900)
    frame.loc[frame.index[:3], ["race", "approved"]] = ["a", "withdrawn"]
    frame.to_csv(tmp_path / "loans.csv", index=False)  # sorted before the others
    groups = "[{name: race, columns: [race], groups: {a: [a], b: [b], w: [w]}, reference: w}]"
    tables = audited(text, protected=groups, model__kind="none")
    ladder = tables["adjusted"].query("estimator == 'expected'").set_index("group")["value"]
    judged = tables["judged_effects"].set_index("group")["value"]
    assert set(judged.index) == {"(missing)", "a", "b"}
    assert ladder.to_dict() == judged.drop("a").to_dict()


def test_the_settings_of_the_stage_know_the_order_of_the_blocks(place: Path) -> None:
    asked = adjust_settings(spec_of(place, methods__adjusted="{blocks: {mine: [amount], finances: [income]}}"))
    assert asked is not None
    assert [block.name for block in asked.blocks] == ["mine", "finances"]
    assert asked.primary == "finances"
