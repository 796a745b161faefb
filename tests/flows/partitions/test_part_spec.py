"""The audit of one partition: its spec, and the name of its run, which no other partition can change."""

import pandas as pd
import pytest
from conftest import spec_of
from loans_of_lenders import lenders_spec, loans_of_lenders

from flows.partitions.part_spec import spec_of_part, spec_to_audit, spec_today
from flows.partitions.partition_list import Listed, listed_value, listing
from flows.runs.index import shares_rows
from schemas.audit.partition import ALL, By
from schemas.errors import SpecError
from tasks.lake.store import Lake
from tasks.pipeline.registry import not_asked
from tasks.plan import plan

YEAR = 2024
METHODS = "{adjusted: {}, fgce: {}, cst: {}, raguel: {}}"


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


def runs_of_all(spec, lake):
    """Value of each audited partition -> the id of its run."""
    found = [each for each in listing(spec, YEAR, lake) if not each.too_few]
    return {each.value: plan(spec_of_part(spec, YEAR, each, lake)).run for each in found}


def ingest_key(spec):
    step = plan(spec).steps[0]
    return step.stage.key({}, step.settings, step.modules)


def test_a_part_is_its_rows_without_what_they_lack(tmp_path, lake):
    spec = lenders_spec(tmp_path)
    one = spec_to_audit(spec, lake, "No income")
    assert (one.source.part.column, one.source.part.value) == ("lender", "No income")
    assert "income" not in one.columns
    assert one.source.lacking == ("income",)
    assert set(one.causal_graph.edges) == {("race", "amount"), ("race", "history")}
    assert one.partition == {"column": "lender", "value": "No income"}


def test_a_group_that_a_part_lacks_is_left_out_and_told(tmp_path, lake):
    groups = "[{name: race, columns: [race], groups: {white: [w], Black: [b], Asian: [a]}, reference: white}]"
    table = loans_of_lenders()
    table.loc[table.index[table["lender"] == "Bank-A"][:40], "race"] = "a"
    spec = lenders_spec(tmp_path, table, protected=groups)
    assert spec_to_audit(spec, lake, "Bank-A").source.lacking == ()
    of_bank = spec_to_audit(spec, lake, "Bank A")
    assert of_bank.source.lacking == ("race: Asian",)
    assert list(of_bank.protected[0].groups) == ["white", "Black"]


def test_the_column_of_the_partitions_is_no_column_of_one(tmp_path, lake):
    lender = "lender: {type: nominal, role: excluded, block: place}"
    columns = f"{{income: {{type: continuous}}, amount: {{type: continuous}}, {lender}}}"
    spec = lenders_spec(
        tmp_path,
        columns=columns,
        causal_graph="{}",
        methods="{adjusted: {blocks: {loan: [income, amount], place: [lender]}}}",
    )
    part, whole = spec_to_audit(spec, lake, "Bank A"), spec_to_audit(spec, lake)
    assert (list(part.columns), part.source.lacking) == (["income", "amount"], ())
    assert dict(part.methods.named("adjusted").blocks) == {"loan": ("income", "amount")}
    assert "lender" in whole.columns


def test_an_attribute_without_its_reference_group_leaves_the_others(tmp_path, lake):
    table = loans_of_lenders()
    table["sex"] = ["f" if i % 2 or lender == "Bank A" else "m" for i, lender in enumerate(table["lender"])]
    protected = (
        "[{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}, "
        "{name: sex, columns: [sex], groups: {men: [m], women: [f]}, reference: men}]"
    )
    one = spec_to_audit(lenders_spec(tmp_path, table, protected=protected), lake, "Bank A")
    assert [p.name for p in one.protected] == ["race"]
    assert one.source.lacking == ("sex: men", "sex: women")


def test_the_whole_runs_the_methods_of_a_year_and_says_which_it_does_not(tmp_path, lake):
    spec = lenders_spec(tmp_path, methods=METHODS, thresholds="[]")
    whole, part = spec_to_audit(spec, lake), spec_to_audit(spec, lake, "Bank A")
    assert (whole.source.part, whole.partition) == (None, {"column": "lender", "value": ALL})
    assert whole.methods.running() == ("adjusted", "fgce", "cst")
    assert "raguel (not run in `all`, which is every row of the year" in " ".join(not_asked(whole))
    assert part.methods.running() == ("adjusted", "fgce", "cst", "raguel")
    assert "`all`" not in " ".join(not_asked(part))


def test_limits_on_methods_that_the_whole_does_not_run_go_with_them(tmp_path, lake):
    limits = "[{measure: approval_rate_ratio, minimum: 0.8}, {measure: rank_gap, maximum: 5}]"
    spec = lenders_spec(tmp_path, methods=METHODS, thresholds=limits)
    assert [limit.measure for limit in spec_to_audit(spec, lake).thresholds] == ["approval_rate_ratio"]
    assert len(spec_to_audit(spec, lake, "Bank A").thresholds) == 2


@pytest.mark.parametrize("value", [None, "Bank A"])
def test_a_spec_that_was_made_is_taken_as_it_is(tmp_path, lake, value):
    once = spec_to_audit(lenders_spec(tmp_path), lake, value)
    assert spec_to_audit(once, lake) == once


def test_a_spec_without_by_has_no_values(tmp_path, lake):
    lenders_spec(tmp_path)
    spec = spec_of(tmp_path)
    assert spec_to_audit(spec, lake) == spec
    with pytest.raises(SpecError, match="the spec has no `by`"):
        spec_to_audit(spec, lake, "Bank A")


def test_the_run_of_a_part_does_not_follow_which_others_are_asked_for(tmp_path, lake):
    spec = lenders_spec(tmp_path)
    restricted = spec.model_copy(update={"by": By(column="lender", minimum=150, values=("Bank A",), largest=1)})
    every, own = runs_of_all(spec, lake), runs_of_all(restricted, lake)
    assert set(own) == {ALL, "Bank A"}
    assert own.items() <= every.items()


def test_values_with_one_slug_have_runs_of_their_own(tmp_path, lake):
    runs = runs_of_all(lenders_spec(tmp_path), lake)
    names = [runs[value].rpartition("-")[0] for value in ("Bank A", "Bank-A")]
    assert names == ["loans-2024-Bank_A"] * 2
    assert runs["Bank A"] != runs["Bank-A"]
    assert runs[ALL].startswith("loans-2024-all-")


@pytest.mark.parametrize("added", [0, 3], ids=["corrected", "corrected, and rows added before the others"])
def test_a_corrected_lender_changes_its_own_run_alone(tmp_path, lake, added):
    table = loans_of_lenders()
    spec = lenders_spec(tmp_path, table)
    before, key = runs_of_all(spec, lake), ingest_key(spec_to_audit(spec, lake, "Bank A"))
    corrected = table.copy()
    at = corrected.index[corrected["lender"] == "Bank-A"]
    corrected.loc[at[0], "amount"] += 1.0
    first = corrected.loc[at[:added]].assign(id=[f"N{i}" for i in range(added)])
    spec = lenders_spec(tmp_path, pd.concat([first, corrected]))
    after = runs_of_all(spec, lake)
    assert {value for value in before if before[value] != after[value]} == {"Bank-A", ALL}
    assert ingest_key(spec_to_audit(spec, lake, "Bank A")) == key


def test_a_run_is_of_today_as_long_as_its_own_rows_are(tmp_path, lake):
    table = loans_of_lenders()
    spec = lenders_spec(tmp_path, table)
    bank, other = (spec_to_audit(spec, lake, value) for value in ("Bank A", "Bank-A"))
    assert spec_today(bank, YEAR, lake) == bank
    table.loc[table["lender"] == "Bank-A", "amount"] += 1
    lenders_spec(tmp_path, table)
    assert plan(spec_today(bank, YEAR, lake)).run == plan(bank).run
    assert plan(spec_today(other, YEAR, lake)).run != plan(other).run
    lenders_spec(tmp_path, table[table["lender"] != "Bank A"])
    with pytest.raises(SpecError, match="no row of 2024 has 'Bank A' in 'lender' any more"):
        spec_today(bank, YEAR, lake)


def test_where_the_file_of_all_rows_lies_is_not_the_parts_business(tmp_path, lake):
    (tmp_path / "moved").mkdir()
    one, other = (spec_to_audit(lenders_spec(place), lake, "Bank A") for place in (tmp_path, tmp_path / "moved"))
    assert plan(one).run == plan(other).run
    assert ingest_key(one) == ingest_key(other)


def test_a_run_is_of_one_partition(tmp_path, lake):
    a, b, whole = ({"column": "lender", "value": value} for value in ("A", "B", ALL))
    state = {"column": "state", "value": "TX"}
    assert not shares_rows(a, b)
    assert all(shares_rows(*pair) for pair in ((a, a), (a, whole), (a, None), (a, state), (None, None)))


def test_a_listed_partition_alone_makes_its_spec(tmp_path, lake):
    spec = lenders_spec(tmp_path)
    listed = listed_value(spec, YEAR, lake, "Bank-A")
    assert isinstance(listed, Listed)
    assert spec_of_part(spec, YEAR, listed, lake).source.part.rows_sha256 == listed.rows_sha256


def test_a_partition_is_computed_as_short_as_its_report_unless_it_is_asked_for_in_full(tmp_path, lake):
    def settings_of(value, **overrides):
        spec = spec_to_audit(lenders_spec(tmp_path, methods=METHODS, **overrides), lake, value)
        fgce, cst = (spec.methods.named(name) for name in ("fgce", "cst"))
        return (fgce.curves, fgce.size_matched_draws, fgce.ablations), (cst.ks, cst.sensitivity)

    full = (True, 40, True), ((15, 30, 50, 100), True)
    short = (False, 0, False), ((30,), False)
    by = "by: {column: lender, minimum: 100, full: true}\n"
    assert settings_of("Bank A") == short
    assert settings_of("Bank A", by=by) == settings_of(None) == full
    limit = "[{measure: coverage, maximum: 0.9, parameters: {k: 3}}]"
    assert settings_of("Bank A", thresholds=limit) == (full[0], short[1])
