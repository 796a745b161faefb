"""Sampled audits through their stages: the same people for every method, neighbours whole, ranges over draws."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.audit.partition import Sampling, asked_and_of
from schemas.audit.spec import AuditSpec
from tasks.feasibility_graph.rows import DRAWS
from tasks.in_memory import call_plainly
from tasks.plan import plan

SMALL = Sampling.model_construct(queries=60, graph_rows=200)
"""Smaller than a spec may ask for, so that loans are many."""
METHODS = (
    "{fgce: {size_matched_draws: 2, ablation_draws: 0, relabelled_draws: 19, resolves: 0, k: 4}, "
    "cst: {ks: [5], k: 5, null_permutations: 0, null_draws: 0, sensitivity: false}, cec: {relabelled_draws: 9}}"
)

Tables = dict[str, pd.DataFrame]


def computed(spec: AuditSpec, sampling: Sampling | None) -> Tables:
    steps = plan(spec.model_copy(update={"sampling": sampling})).steps
    last = ("report",) if sampling is SMALL else ("measure", "publish", "report")
    found = call_plainly([step for step in steps if step.name not in last])
    return {name: pa.concat_tables(parts).to_pandas() for name, parts in found.items() if parts}


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Tables, Tables]:
    """Everybody, by a limit that nobody reaches and without a limit; and a sample."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    roles = {"columns__income__role": "financial", "columns__amount__role": "financial"}
    spec = spec_of(place, methods=METHODS, bootstrap__draws="100", disclosure__profile="strict", **roles)
    return tuple(computed(spec, each) for each in (None, Sampling(), SMALL))  # type: ignore[return-value]


@pytest.mark.long
def test_below_the_limits_nothing_changes(audits: tuple[Tables, Tables, Tables]) -> None:
    everybody, limited, _ = audits
    for name in ("findings", "evidence", "tallies", "aggregates", "draws", "feasibility_edges", "feasibility_nodes"):
        pd.testing.assert_frame_equal(everybody[name], limited[name], check_exact=True)
    assert set(everybody["findings"]["weight"]) == {1.0}
    assert not everybody["tallies"]["parameters"].str.contains("sampled").any()
    assert set(everybody["feasibility_nodes"]["draw"]) == {0}


def test_the_same_people_are_asked_by_everybody_and_stand_for_their_group(
    audits: tuple[Tables, Tables, Tables],
) -> None:
    everybody, _, sampled = audits
    asked = {key: set(rows["row_id"]) for key, rows in _asked(sampled).groupby(["method", "decision_maker"])}
    assert len(asked) == 3, "cst of both decision makers, and cec of the model"
    assert len({frozenset(rows) for rows in asked.values()}) == 1
    whole = _asked(everybody).groupby(["method", "decision_maker", "group"]).size()
    weighed = _asked(sampled).groupby(["method", "decision_maker", "group"])["weight"].sum()
    np.testing.assert_allclose(weighed, whole.loc[weighed.index], rtol=1e-12)
    b = _asked(sampled).query("group == 'Black' and method == 'cst' and decision_maker == 'lender'")
    assert len(b) == 60 < b["weight"].sum()


def test_whom_they_are_compared_with_is_not_sampled(audits: tuple[Tables, Tables, Tables]) -> None:
    everybody, _, sampled = audits
    keys = ["row_id", "method", "decision_maker", "protected_attribute"]
    columns = [*keys, "verdict", "statistic", "control", "test", "low", "high", "p"]
    own = _asked(sampled)[columns].set_index(keys)
    theirs = _asked(everybody)[columns].set_index(keys).loc[own.index]
    pd.testing.assert_frame_equal(own, theirs, check_exact=True)


def test_what_was_asked_of_a_sample_says_so_and_is_less_sure(audits: tuple[Tables, Tables, Tables]) -> None:
    everybody, _, sampled = audits
    for name in ("tallies", "aggregates"):
        rows = sampled[name].query("method in ['cst', 'cec'] and not measure.str.startswith('trained')")
        said = rows["parameters"].map(lambda text: json.loads(text).get("sampled"))
        assert said[rows["group"] == "Black"].notna().all()
        assert said[~rows["group"].isin(["Black", "white"])].isna().all(), "groups asked whole say nothing"
        assert {asked_and_of(each)[0] for each in said.dropna()} == {60}
    wide, narrow = (_effect(tables, "st_effect") for tables in (sampled, everybody))
    assert wide["se"] > narrow["se"]
    assert wide["n"] == 60 < narrow["n"]
    assert wide["n_used"] == narrow["n_used"], "the regressions are of everybody"


def test_a_graph_is_drawn_five_times_with_the_same_share_of_every_group_and_decision(
    audits: tuple[Tables, Tables, Tables],
) -> None:
    everybody, _, sampled = audits
    nodes, applications = sampled["feasibility_nodes"], sampled["applications"]
    members = sampled["memberships"].set_index("row_id")["group"]
    drawn = nodes.merge(applications[["row_id", "favourable"]], on="row_id").assign(
        group=lambda rows: members.loc[rows["row_id"]].to_numpy()
    )
    whole = everybody["feasibility_nodes"].merge(applications[["row_id", "favourable"]], on="row_id")
    whole = whole.assign(group=members.loc[whole["row_id"]].to_numpy()).groupby(["group", "favourable"]).size()
    assert len({frozenset(rows["row_id"]) for _, rows in drawn.groupby("draw")}) == DRAWS
    for _, rows in drawn.groupby("draw"):
        assert len(rows) == SMALL.graph_rows
        cells = rows.groupby(["group", "favourable"]).size().reindex(whole.index, fill_value=0)
        assert (abs(cells - whole * SMALL.graph_rows / whole.sum()) < 1).all()
    spans = drawn.groupby("draw")["node"].agg(["min", "max"])
    assert (spans["min"].to_numpy()[1:] == spans["max"].to_numpy()[:-1] + 1).all()


def test_measures_of_a_drawn_graph_have_a_range_and_no_interval(audits: tuple[Tables, Tables, Tables]) -> None:
    _, _, sampled = audits
    assert (sampled["tallies"].query("method == 'fgce'")["measure"].str.contains("_without")).all(), "those of ablate"
    said = sampled["aggregates"].query("method == 'fgce'")
    of = said["parameters"].map(lambda text: json.loads(text).get("sampled"))
    assert set(of) == {"200 of 500"} or len(set(of)) == 1, set(of)
    share = said.query("measure == 'infeasible_share' and subgroup == 0")
    assert len(share) >= 4
    ranged = share.dropna(subset="low")
    assert (ranged["low"] <= ranged["value"]).all()
    assert (ranged["value"] <= ranged["high"]).all()
    assert ranged["reason"].str.contains("range").all()
    curves = said.query("measure in ['kauc', 'least_cost', 'kauc_saturation']")
    assert curves["value"].notna().any()
    assert curves["low"].isna().all(), "curves are of the first draw alone"
    assert said["se"].dropna().empty or set(said.dropna(subset="se")["measure"]) <= {"infeasible_share_relabelled"}
    weights = sampled["findings"].query("method == 'fgce'")["weight"]
    assert (weights > 1).all()


def test_a_sampled_audit_is_measured_judged_and_told(audits: tuple[Tables, Tables, Tables]) -> None:
    _, _, sampled = audits
    measures = sampled["published_measures"].query("method == 'cst' and group == 'Black'")
    said = {json.loads(text)["sampled"] for text in measures["parameters"]}
    assert len(said) == 1
    asked, of = asked_and_of(said.pop())
    assert asked == 60 < of
    assert of % 5 == 0, "printed as numbers of people are"
    judged = sampled["verdicts"].query("measure == 'st_effect' and decision_maker == 'lender'")
    assert judged["value"].notna().all()
    assert len(judged) == 1, "what is judged is found beside the number asked"


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditSpec, Tables, Tables]:
    """A sample compared with all rows, and one compared with a pool; race, purpose, and both crossed."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    methods = (
        "{cst: {ks: [5], k: 5, null_permutations: 0, null_draws: 0, sensitivity: false, generator: nearest}, "
        "cec: {relabelled_draws: 1, pairs: reference, theta_steps: 0}}"
    )
    protected = (
        "[{name: race, columns: [race], groups: {white: [w], Black: [b]}, reference: white}, "
        "{name: purpose, columns: [purpose], groups: {buy: [buy], again: [refinance]}, reference: buy}, "
        "{name: both, columns: [race, purpose], reference: white and buy}]"
    )
    roles = {"columns__income__role": "financial", "columns__amount__role": "financial"}
    spec = spec_of(place, methods=methods, protected=protected, bootstrap__draws="100", **roles)
    compared_with_all = SMALL.model_copy(update={"pool_rows": None})
    compared_with_pool = SMALL.model_copy(update={"pool_rows": 300})
    return spec, computed(spec, compared_with_all), computed(spec, compared_with_pool)


def test_the_same_people_are_compared_with_a_pool(pools: tuple[AuditSpec, Tables, Tables]) -> None:
    spec, whole, pooled = pools
    keys = ["method", "decision_maker", "protected_attribute", "row_id"]
    assert len(spec.protected) == 3
    pd.testing.assert_frame_equal(
        whole["findings"].sort_values(keys)[[*keys, "group", "weight"]].reset_index(drop=True),
        pooled["findings"].sort_values(keys)[[*keys, "group", "weight"]].reset_index(drop=True),
    )
    members = pooled["memberships"].set_index(["protected_attribute", "row_id"])["group"]
    for attribute, rows in pooled["evidence"].groupby("protected_attribute"):
        of_whole = whole["evidence"].query("protected_attribute == @attribute")
        groups = members.loc[attribute].value_counts()
        others = members.loc[attribute].loc[rows["other_row_id"].unique()].value_counts().reindex(groups.index)
        assert (others <= np.maximum(np.ceil(groups * 300 / groups.sum()), 60)).all(), attribute
        assert rows["other_row_id"].nunique() < of_whole["other_row_id"].nunique(), attribute
    for name in ("tallies", "aggregates"):
        rows, of_whole = (
            tables[name].set_index(["method", "decision_maker", "protected_attribute", "group", "measure"])
            for tables in (pooled, whole)
        )
        said, before = ({*zip(t.index, t["parameters"].map(_sampled), strict=True)} for t in (rows, of_whole))
        assert said == before, "of how many they are a sample is of the file, not of the pool"


def test_fewer_to_compare_with_make_an_effect_less_sure(pools: tuple[AuditSpec, Tables, Tables]) -> None:
    _, whole, pooled = pools
    race = "protected_attribute == 'race'"
    narrow, wide = (_effect({**t, "aggregates": t["aggregates"].query(race)}, "st_effect") for t in (whole, pooled))
    assert wide["se"] > narrow["se"]
    assert wide["n"] == narrow["n"] == 60
    assert wide["n_used"] < narrow["n_used"]


def _sampled(parameters: str) -> str | None:
    return json.loads(parameters).get("sampled")


def _asked(tables: Tables) -> pd.DataFrame:
    return tables["findings"].query("method in ['cst', 'cec']")


def _effect(tables: Tables, measure: str) -> pd.Series:
    rows = tables["aggregates"].query("measure == @measure and group == 'Black' and decision_maker == 'lender'")
    assert len(rows) == 1
    return rows.iloc[0]
