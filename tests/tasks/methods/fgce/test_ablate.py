"""Ablate: the baseline is what detect finds, rules are lifted feature by feature, and the tables keep their word."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import spec_of
from points_of_curves import every_measure

from tasks.feasibility_graph.rows import rules_of
from tasks.in_memory import call_plainly
from tasks.methods.fgce.ablate import searches
from tasks.methods.fgce.ablate import stage as ablate
from tasks.methods.fgce.algorithm.connectivity import MEASURES  # noqa: F401 by name in a query
from tasks.pipeline.stage import Produced, hold
from tasks.plan import plan

FEATURES = ["income", "amount", "purpose", "history"]
WITHOUT = ["nothing", *FEATURES, "epsilon", "every constraint", "every constraint and epsilon"]


def produced(place: Path, **overrides: str) -> tuple[Produced, dict[str, list[pa.Table]]]:
    """The stage after all that come before it."""
    spec = spec_of(place, **overrides)
    before = call_plainly(plan(spec).steps[:4])
    given = [pa.concat_tables(before[table.name]) for table in ablate.ablate.reads]
    return ablate.ablate.function(*given, settings=ablate.ablate_settings(spec)), before


def means(tallies: pd.DataFrame) -> pd.DataFrame:
    """Mean of every tally over the rows that have a value."""
    known = tallies.dropna(subset="value").query("count > 0")
    keys = ["decision_maker", "group", "measure", "parameters"]
    summed = known.assign(total=known["value"] * known["count"]).groupby(keys)[["total", "count"]].sum()
    return (summed["total"] / summed["count"]).rename("mean").reset_index()


def test_the_baseline_is_what_detect_finds(place: Path) -> None:
    cheap = {"methods__fgce__size_matched_draws": "0", "methods__fgce__resolves": "0", "methods__fgce__k": "1"}
    found, _ = produced(place, **cheap)
    ours = means(found.tables["tallies"].to_pandas()).query('parameters == \'{"without": "nothing"}\'')
    names = ("ingest", "preprocess", "score", "connect", "detect fgce")
    steps = [step for step in plan(spec_of(place, **cheap)).steps if step.name in names]
    theirs = pa.concat_tables(call_plainly(steps)["tallies"]).to_pandas().query("subgroup == 0")
    expected = means(theirs).set_index(["decision_maker", "group", "measure"])["mean"]
    assert len(ours) == 2 * 3 * 2
    for row in ours.itertuples():
        assert row.mean == pytest.approx(expected[row.decision_maker, row.group, row.measure.removesuffix("_without")])


def test_every_variant_for_every_group_and_maker_and_nobody_worse_off(place: Path) -> None:
    found, before = produced(place)
    tallies = found.tables["tallies"].to_pandas()
    tallies["without"] = [json.loads(p)["without"] for p in tallies["parameters"]]
    seen = tallies.groupby(["decision_maker", "group", "measure"])["without"].agg(lambda w: list(dict.fromkeys(w)))
    assert len(seen) == 2 * 3 * 2
    assert all(each == WITHOUT for each in seen)
    factuals = pa.concat_tables(before["decisions"]).to_pandas().query("explained and not favourable")
    counted = tallies.query("measure == 'burden_without'").groupby(["decision_maker", "without"])["count"].sum()
    for maker, n in factuals.groupby("decision_maker").size().items():
        assert (counted[maker] == n).all()
    share = tallies.query("measure == 'infeasible_share_without' and value == 1").set_index(
        ["decision_maker", "group", "without"]
    )["count"]
    for name in WITHOUT[1:]:
        assert (share.xs(name, level="without") <= share.xs("nothing", level="without")).all()
    assert (share.xs("nothing", level="without") > share.xs("every constraint and epsilon", level="without")).any()


def test_connectivity_is_stored_once_and_at_the_chosen_epsilon_it_is_that_of_the_graph(place: Path) -> None:
    found, before = produced(place)
    aggregates = found.tables["aggregates"].to_pandas().query("measure in @MEASURES")
    assert set(aggregates["decision_maker"]) == {"lender"}
    facts = pa.concat_tables(before["feasibility_facts"]).to_pandas().set_index("fact")["value"]
    aggregates["epsilon"] = [json.loads(p)["epsilon"] for p in aggregates["parameters"]]
    chosen = aggregates[aggregates["epsilon"] == facts["epsilon"]]
    assert aggregates["epsilon"].nunique() == 8
    nodes = pa.concat_tables(before["feasibility_nodes"]).to_pandas()
    assert chosen.query("measure == 'components'")["n"].sum() == len(nodes)
    # two equal rows are a component of two, so that isolated nodes may be more than isolated rows
    assert chosen.query("measure == 'singletons'")["value"].sum() <= facts["isolated"]
    assert chosen.query("measure == 'density'")["value"].between(0, 1).all()


def test_the_tables_keep_their_declarations(place: Path) -> None:
    found, _ = produced(place)
    kept, _, results, _ = hold(ablate.ablate, found, 500)
    assert kept["tallies"].num_rows == found.tables["tallies"].num_rows > 0
    assert kept["aggregates"].num_rows == 8 * 4 * 3 + 2 * 2 * 2  # epsilons, relabelled groups
    assert kept["draws"].num_rows == found.tables["draws"].num_rows > 0
    assert all(results["success"].to_pylist())


def test_every_tally_and_aggregate_of_a_smaller_group_has_its_draws(place: Path) -> None:
    found, _ = produced(place, methods__fgce__ablation_draws="3", methods__fgce__relabelled_draws="0")
    keys = ["decision_maker", "group", "measure", "parameters"]
    draws = found.tables["draws"].to_pandas()
    said = pd.concat([found.tables[name].to_pandas()[keys] for name in ("tallies", "aggregates")]).drop_duplicates()
    assert set(said["group"]) == {"white", "Black", "(missing)"}
    assert set(said.query("group != 'white'").itertuples(index=False, name=None)) == set(
        draws[keys].itertuples(index=False, name=None)
    )
    assert (draws.groupby(keys).size() == 3).all()
    assert draws.query("measure == 'infeasible_share_without'")["value"].dropna().between(0, 1).all()
    # a subsample has as many rows as the group, and at most as many components
    sizes = found.tables["aggregates"].to_pandas().query("measure == 'components'").groupby("group")["n"].first()
    parts = draws.query("measure == 'components'").groupby("group")["value"].max()
    assert (parts <= sizes[parts.index]).all()


def test_draws_follow_from_the_seed_and_none_are_made_if_none_are_wanted(place: Path) -> None:
    one, same, other = (
        produced(place, methods__fgce__ablation_draws="2", seed=seed)[0].tables["draws"] for seed in ("1", "1", "2")
    )
    assert one.equals(same)
    assert not one.equals(other)
    none, _ = produced(place, methods__fgce__ablation_draws="0")
    assert set(none.tables["draws"]["reference"].to_pylist()) == {"null"}, "relabelled groups alone"
    bare, _ = produced(place, methods__fgce__ablation_draws="0", methods__fgce__relabelled_draws="0")
    assert bare.tables["draws"].num_rows == 0
    assert none.tables["tallies"].num_rows > 0


def test_size_matched_measures_are_made_of_the_draws_and_not_tested(place: Path) -> None:
    spec = spec_of(place, methods__fgce__ablation_draws="4", methods__fgce__size_matched_draws="0", methods__cst="null")
    steps = plan(spec).steps
    made = call_plainly([step for step in steps if step.name not in ("report", "detect fgce")])
    measures = every_measure({name: pa.concat_tables(parts) for name, parts in made.items() if parts})
    draws = pa.concat_tables(made["draws"]).to_pandas()
    at = "decision_maker == 'lender' and group == 'Black' and parameters == '{\"without\": \"income\"}'"
    drawn = draws.query(f"{at} and measure == 'infeasible_share_without'")["value"]
    row = measures.query(f"{at} and measure == 'infeasible_share_without_size_matched'").iloc[0]
    assert (row["value"], row["n"]) == (pytest.approx(drawn.mean()), 4)
    assert drawn.min() <= row["low"] <= row["high"] <= drawn.max()
    ours = measures[measures["measure"].str.contains("without|components|singletons|density")]
    forms = {
        re.sub("^(infeasible_share_without|burden_without|.*components|singletons|density)", "", m)
        for m in ours["measure"]
    }
    assert forms == {"", "_size_matched"}
    assert ours[["p", "q"]].isna().all(axis=None)


def test_lifting_frees_the_feature_and_nothing_else(place: Path) -> None:
    overrides = {
        "columns__history__transitions": "{bad: [fair], fair: [good], good: []}",
        "columns__history__constraint": "free",
    }
    before = call_plainly(plan(spec_of(place, **overrides)).steps[:2])
    encodings = before["encodings"][0]
    encoded = np.column_stack([before["features"][0][name].to_numpy() for name in encodings["encoded"].to_pylist()])
    variants = {v.without: v for v in searches._variants(encoded, encodings, 0.5)}
    assert list(variants) == WITHOUT
    given = rules_of(encoded, encodings)[0]
    feature = np.array(encodings["feature"].to_pylist())
    for name in FEATURES:
        expected = np.where(feature == name, 0, given.direction)
        assert variants[name].rules.direction.tolist() == expected.tolist()
        assert len(variants[name].rules.transitions) == (name != "history")
        assert variants[name].codes.shape[1] == (name != "history")
    assert not variants["every constraint"].rules.direction.any()
    assert variants["every constraint"].rules.transitions == ()


def test_no_model_and_no_constraint(place: Path) -> None:
    free = {f"columns__{name}__constraint": "free" for name in FEATURES}
    found, _ = produced(place, model__kind="none", **free)
    tallies = found.tables["tallies"].to_pandas()
    assert set(tallies["decision_maker"]) == {"lender"}
    assert {json.loads(p)["without"] for p in tallies["parameters"]} == {"nothing", "epsilon"}
