"""Rerank, in an audit from its spec to its measures: costs by hand, offers that models confirm, refusals, bad input."""

import gzip
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, SHARED, loans, spec_of

from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.baselines.rankings import RANKINGS
from tasks.baselines.sources import SOURCES
from tasks.counterfactuals.algorithm.recourse import make_actions
from tasks.in_memory import call_plainly
from tasks.lake.store import Lake
from tasks.methods.raguel.algorithm import representation
from tasks.methods.raguel.algorithm.lists import to_top
from tasks.methods.raguel.settings import RaguelSettings
from tasks.pipeline.registry import read_spec
from tasks.plan import inputs, plan

ALONE = {"methods__fgce": "null", "methods__cst": "null"}
QUICK = {"block_counts": [2, 5], "tolerances": [0.5], "fewest": 30}
RULE = json.dumps({"kind": "rule", "rule": {"weights": {"income": 1.0, "amount": -0.2}, "limit": 30}})
PAIR = ["decision_maker", "protected_attribute"]


def asked(place: Path, raguel: object = None, **overrides: str) -> AuditSpec:
    return spec_of(place, **{"methods__raguel": json.dumps({**QUICK, **(raguel or {})}), **ALONE, **overrides})


def audited(spec: AuditSpec, until: str = "detect raguel") -> dict[str, pd.DataFrame]:
    """Every table of an audit, its stages called as plain functions."""
    steps = plan(spec).steps
    last = next(i for i, step in enumerate(steps) if step.name == until)
    return {name: pa.concat_tables(parts).to_pandas() for name, parts in call_plainly(steps[: last + 1]).items()}


def values(found: dict[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """An aggregate, with its parameters as columns."""
    own = found["aggregates"].query("measure == @measure").reset_index(drop=True)
    return own.join(pd.DataFrame(own["parameters"].map(json.loads).tolist(), index=own.index))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    return place


@pytest.fixture(scope="module")
def audit(kept: Path) -> dict[str, pd.DataFrame]:
    """The loans by a cross-fitted logistic regression, and by the lender."""
    return audited(asked(kept))


def of_model(found: dict[str, pd.DataFrame], order: str = "list") -> pd.DataFrame:
    return found["reranked"].query("decision_maker == 'model' and order == @order")


class TestPlan:
    def test_only_where_it_is_asked_for(self, place: Path) -> None:
        assert "rerank" in [step.name for step in plan(asked(place)).steps]
        assert "rerank" not in [step.name for step in plan(spec_of(place)).steps]

    def test_the_profile_of_the_paper_leaves_what_is_given(self, place: Path) -> None:
        paper = asked(place, {"rule": "improve"}, profile="paper").methods.of(RaguelSettings)
        assert (paper.rule, paper.direction, paper.failure, paper.steps) == ("improve", "both", "exit", False)

    @pytest.mark.parametrize(
        ("raguel", "said"),
        [
            ({"tolerance": 0}, "tolerance"),
            ({"tolerance": 1.5}, "tolerance"),
            ({"blocks": 0}, "blocks"),
            ({"block_counts": [5, 5]}, "block_counts"),
            ({"block_column": "purpose"}, "'purpose' is no column whose values have an order"),
            ({"block_column": "histori"}, "did you mean 'history'"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(self, place: Path, raguel: dict[str, object], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            plan(asked(place, raguel))

    @pytest.mark.parametrize(
        ("column", "recourse", "said"),
        [
            ("income", {"weight": 0}, "weight"),
            ("income", {"weight": -1}, "weight"),
            ("income", {"step": 0}, "step"),
            ("income", {"bounds": [5, 1]}, "expected the lower number first"),
            ("purpose", {"step": 1}, "nominal column does not hold"),
            ("history", {"bounds": [0, 1]}, "ordinal column does not hold"),
            ("history", {"step": 0.5}, "0.5 is no whole one"),
        ],
    )
    def test_recourse_that_makes_no_sense_is_refused(
        self, place: Path, column: str, recourse: dict[str, object], said: str
    ) -> None:
        with pytest.raises(SpecError, match=said):
            asked(place, **{f"columns__{column}__recourse": json.dumps(recourse)})


@pytest.mark.slow
class TestRows:
    def test_everybody_to_be_ranked_is_there_once_for_each_order_with_a_place_or_a_reason(
        self, audit: dict[str, pd.DataFrame]
    ) -> None:
        wanted = audit["decisions"].query("not favourable").groupby("decision_maker").size()
        found = audit["reranked"]
        for (maker, order), own in found.groupby(["decision_maker", "order"]):
            assert len(own) == wanted[maker]
            assert own["row_id"].is_unique
            assert (own["rank"].isna() == own["refusal"].notna()).all()
            listed = own.dropna(subset=["rank"])
            for name in ("rank", "rank_after"):
                assert sorted(listed[name]) == list(range(1, len(listed) + 1)), order
            assert listed.sort_values("rank")["cost"].is_monotonic_increasing
            assert (listed["cost_after"] <= listed["cost"] + 1e-12).all()

    def test_a_group_of_few_is_refused_and_a_missing_value_is_such_a_group(
        self, audit: dict[str, pd.DataFrame], kept: Path
    ) -> None:
        refused = of_model(audit).query("refusal == 'too_few_in_category'")
        assert set(refused["group"]) == {"(missing)"}
        assert refused["cost"].notna().all()
        few = of_model(audited(asked(kept, {"fewest": 1}), "rerank"))
        assert few["refusal"].isna().all()

    def test_findings_are_of_the_same_rows(self, audit: dict[str, pd.DataFrame]) -> None:
        places = audit["reranked"].query("order == 'list'").set_index(["decision_maker", "row_id"])
        findings = audit["findings"].set_index(["decision_maker", "row_id"]).loc[places.index]
        assert (findings["verdict"] == "offered_recourse").equals(places["attained"].notna())
        assert (findings["verdict"] == "not_tested").equals(places["refusal"].notna())
        assert findings["statistic"].equals(places["cost"].rename("statistic"))
        nearest = audit["evidence"].set_index(["decision_maker", "row_id"])["other_row_id"]
        assert nearest.equals(places["candidate"].dropna().loc[nearest.index].rename("other_row_id"))

    def test_nothing_is_left_to_chance(self, audit: dict[str, pd.DataFrame], kept: Path) -> None:
        again = audited(asked(kept))
        for name in ("reranked", "offers", "tallies", "aggregates"):
            pd.testing.assert_frame_equal(again[name], audit[name])


@pytest.mark.long
class TestOffers:
    def test_the_very_model_confirms_points_and_offers(self, audit: dict[str, pd.DataFrame]) -> None:
        found = audit["reranked"].query("decision_maker == 'model' and refusal.isna()")
        assert set(found["found_by"]) == {"steps"}
        assert found["confirmed"].astype(bool).all()
        offered = found.dropna(subset=["attained"])
        assert offered["offer_confirmed"].astype(bool).all()
        assert found[found["attained"].isna()]["offer_confirmed"].isna().all()
        lender = audit["reranked"].query("decision_maker == 'lender'")
        assert lender[["confirmed", "offer_confirmed"]].isna().all(axis=None)

    @pytest.mark.parametrize("steps", [True, False])
    def test_they_keep_direction_and_what_cannot_be_changed(self, kept: Path, steps: bool) -> None:
        found = audited(asked(kept, {"steps": steps, "fewest": 1, "reach": "any", "tolerance": 0.1}), "rerank")
        offers = found["offers"]
        assert set(offers["order"]) == {"list", "blocks", "any"}
        assert set(offers["attribute"]) <= {"income", "amount", "history"}
        assert (offers.query("attribute != 'amount'")["change"] > 0).all()
        assert (offers.query("attribute == 'amount'")["change"] < 0).all()
        offered = found["reranked"].dropna(subset=["attained"])
        keys = [*PAIR, "order", "row_id"]
        assert set(map(tuple, offers[keys].values)) == set(map(tuple, offered[keys].values))
        applicants = found["applicants"].set_index("row_id")
        for row in offers.itertuples():
            now = applicants.loc[row.row_id, row.attribute]
            assert row.from_value == (now if row.attribute == "history" else f"{now:.10g}")

    def test_costs_under_a_rule_are_distances_to_its_line(self, kept: Path) -> None:
        """The line is income - 0.2 amount = 30; both may go either way, amount is twice as hard to change."""
        free = {f"columns__{name}__constraint": "free" for name in ("income", "amount")}
        weights = {"columns__income__recourse": '{"weight": 2}', "columns__amount__recourse": '{"weight": 4}'}
        found = audited(asked(kept, {"steps": False, "fewest": 1}, model=RULE, **free, **weights), "rerank")
        own = of_model(found).set_index("row_id")
        assert set(own["found_by"]) == {"boundary"}
        of = found["applicants"].set_index("row_id")
        sd = of[["income", "amount"]].std(ddof=0)
        gap = (30 - of["income"] + 0.2 * of["amount"]).loc[own.index]
        length = np.sqrt(sd["income"] ** 2 / 0.5 + (0.2 * sd["amount"]) ** 2 / 1.0)
        np.testing.assert_allclose(own["cost"], gap / length, rtol=1e-6)
        assert own["confirmed"].astype(bool).all()
        row = own.iloc[0]
        point = {name: float(value) for name, value in json.loads(row["point"]).items()}
        assert point["income"] - 0.2 * point["amount"] == pytest.approx(30, abs=1e-6)

    def test_steps_and_bounds_are_those_of_the_user(self, kept: Path) -> None:
        recourse = {
            "columns__income__recourse": '{"step": 10, "bounds": [null, 90]}',
            "columns__amount__recourse": '{"step": 25, "bounds": [40, null]}',
        }
        for model in (RULE, '{"kind": "logistic_regression", "folds": 5}'):
            found = audited(asked(kept, {"fewest": 1, "tolerance": 0.1}, model=model, **recourse), "rerank")
            numbers = found["offers"].query("decision_maker == 'model' and attribute != 'history'")
            steps = numbers["change"] / numbers["attribute"].map({"income": 10, "amount": 25})
            np.testing.assert_allclose(steps, steps.round(), atol=1e-6)
            for attribute, own in numbers.groupby("attribute"):
                to = own["to_value"].astype(float)
                assert (to <= 90).all() if attribute == "income" else (to >= 40).all()
            for own in of_model(found).dropna(subset=["rank"]).itertuples():
                point = json.loads(own.point)
                assert float(point.get("income", 0)) <= 90
                assert float(point.get("amount", 40)) >= 40
            assert of_model(found).dropna(subset=["rank"])["confirmed"].astype(bool).all()

    def test_of_a_model_without_a_boundary_points_are_places_that_it_favours(self, kept: Path) -> None:
        found = audited(asked(kept, model='{"kind": "random_forest", "folds": 3}'), "rerank")
        own = of_model(found).query("refusal.isna() or refusal == 'too_few_in_category'")
        assert set(own["found_by"]) == {"nearest"}
        assert own["candidate"].notna().all()
        favoured = found["decisions"].query("decision_maker == 'model' and favourable")["row_id"]
        assert set(own["candidate"]) <= set(favoured)
        listed = own.dropna(subset=["rank"])
        assert listed["confirmed"].astype(bool).all()
        ratio = values(found, "ratio_of_costs").query("decision_maker == 'model'")
        assert ratio["reason"].dropna().str.contains("no linear boundary").any()


class TestMeasures:
    def test_they_are_of_the_lists(self, audit: dict[str, pd.DataFrame]) -> None:
        ratio = values(audit, "ratio_of_costs").query("over.isna()")
        for (maker, order), own in audit["reranked"].dropna(subset=["rank"]).groupby(["decision_maker", "order"]):
            group = (own["group"] == "Black").to_numpy(np.int32)
            said = ratio[(ratio["decision_maker"] == maker) & (ratio["group"] == "Black")]
            (before,), (after,) = said[said["order"].isna()]["value"], said[said["order"] == order]["value"]
            assert before == pytest.approx(representation.overall(own["cost"].to_numpy(), group))
            assert after == pytest.approx(representation.overall(own["cost_after"].to_numpy(), group))
            assert after >= before - 1e-12
            points = values(audit, "points_changed")
            points = points[(points["decision_maker"] == maker) & (points["order"] == order)]
            offered = own[own["attained"].notna()].groupby("group").size()
            for row in points.itertuples():
                assert (row.value, row.events) == (offered.get(row.group, 0),) * 2

    def test_baselines_stand_beside_the_model_and_not_beside_the_lender(self, audit: dict[str, pd.DataFrame]) -> None:
        orders = values(audit, "rnd").groupby("decision_maker")["order"].agg(lambda each: set(each.dropna()))
        assert orders["lender"] == {"list", "blocks", "fa_ir"}
        assert orders["model"] == {*orders["lender"], "demographic_parity", "equalised_odds"}

    def test_nobody_who_can_go_anywhere_leaves_no_list_and_a_share_that_says_so(self, kept: Path) -> None:
        fixed = {f"columns__{name}__constraint": "immutable" for name in ("income", "amount", "history")}
        found = audited(asked(kept, **fixed))
        own = of_model(found)
        assert set(own["refusal"]) == {"out_of_reach"}
        assert own[["cost", "rank", "cost_after"]].isna().all(axis=None)
        assert "model" not in set(found["aggregates"].query("method == 'raguel'")["decision_maker"])
        said = found["tallies"].query("measure == 'unreached_share' and decision_maker == 'model' and value == 1")
        assert said["count"].sum() == len(own)
        assert set(found["findings"].query("decision_maker == 'model'")["verdict"]) == {"not_tested"}

    def test_bands_of_a_column_may_make_the_blocks(self, kept: Path) -> None:
        own = of_model(audited(asked(kept, {"block_column": "history"}), "rerank")).dropna(subset=["rank"])
        history = loans().set_index("id")["history"].loc[own["row_id"]]
        sizes = history.value_counts().reindex(["bad", "fair", "good"]).dropna()
        assert own.groupby("block").size().tolist() == sizes.astype(int).tolist()

    def test_all_may_be_listed(self, kept: Path) -> None:
        found = audited(asked(kept, {"listed": "all"}), "rerank")
        assert len(of_model(found)) == len(found["decisions"]) / 2
        lender = found["reranked"].query("decision_maker == 'lender' and order == 'list'").set_index("row_id")
        favoured = found["decisions"].query("decision_maker == 'lender' and favourable")["row_id"]
        assert (lender.loc[favoured, "cost"] == 0).all()

    def test_a_list_of_one_group_alone_compares_nobody(self, kept: Path) -> None:
        found = audited(asked(kept, {"fewest": 95}), "rerank")
        assert set(found["reranked"].dropna(subset=["rank"])["group"]) == {"white"}
        ratio = values(found, "ratio_of_costs")
        assert ratio["value"].isna().all()
        assert (ratio["reason"] == "there is one group only, and nobody to compare it with").all()
        assert found["offers"].empty


@pytest.mark.parametrize("source", ["ar", pytest.param("mace", marks=pytest.mark.slow), "nearest"])
def test_points_can_come_from_another_paper_s_system(kept: Path, source: str) -> None:
    found = audited(asked(kept, {"source": source}, methods__raguel__refits="5"))
    own = of_model(found)
    assert set(own["found_by"]) == {source}
    reached = own[own["refusal"].isna()]
    assert len(reached) > 30
    assert (reached["cost"] > 0).all()
    assert reached["confirmed"].mean() > 0.9
    ratio = values(found, "ratio_of_costs").query("decision_maker == 'model' and order.isna() and over.isna()")
    assert ratio["reason"].str.contains("as methods.raguel.source asks").all()
    known = values(found, "recourse_cost_reference_over_group").query("decision_maker == 'model'")
    assert known["reason"].str.contains(f"methods.raguel.source is {source}").any()


def test_one_common_target_by_hand() -> None:
    """The target is (2, 3, 9): the first may only rise, the second goes either way, the third cannot be changed."""
    actions = make_actions([1.0, 0.25, 1.0], [True, True, False], 0.0, [1.0, 0.0, 0.0])
    rows = np.array([[0.0, 3.0, 5.0], [1.0, 1.0, 9.0], [4.0, 3.0, 0.0], [2.0, 3.0, 9.0]])
    found = to_top(
        rows, actions, np.array([0.1, np.nan, 0.9, 0.4]), np.array([[9, 9, 9], [8, 8, 8], [2, 3, 9.0], rows[0]])
    )
    assert found.targets.point.tolist() == [[2, 3, 5], [2, 3, 9], [4, 3, 0], [2, 3, 9]]
    assert found.targets.cost.tolist() == pytest.approx([2, np.sqrt(1 + 0.25 * 4), 0, 0])
    assert (set(found.candidate.tolist()), set(found.refusal.tolist()), found.by) == ({2}, {""}, "top")
    nobody = to_top(rows, actions, np.full(4, np.nan), rows)
    assert (set(nobody.refusal.tolist()), np.isnan(nobody.targets.cost).all()) == ({"no_candidate"}, True)


def test_a_ranking_can_have_one_common_target(kept: Path) -> None:
    found = audited(asked(kept, {"target": "top", "listed": "all"}))
    own = of_model(found).set_index("row_id")
    top = found["decisions"].query("decision_maker == 'model'").set_index("row_id")["score"].idxmax()
    assert set(own["found_by"]) == {"top"}
    assert set(own["candidate"].dropna()) == {top}
    assert own.loc[top, "cost"] == 0
    assert own["cost"].notna().all()
    ratio = values(found, "recourse_cost_reference_over_group").query("decision_maker == 'model'")
    assert ratio["reason"].str.contains("methods.raguel.target is top").any()
    of_lender = found["reranked"].query("decision_maker == 'lender'")
    assert set(of_lender["refusal"]) == {"no_candidate"}


@pytest.mark.parametrize("order", ["fair_star", "foeir"])
def test_the_whole_list_can_be_ranked_by_another_paper_s_system(kept: Path, order: str) -> None:
    found = audited(asked(kept, {"order": order}))
    assert set(found["reranked"]["order"]) == {order, "blocks"}
    own = of_model(found, order)
    ranked = own[own["refusal"].isna()]
    assert sorted(ranked["rank_after"]) == list(range(1, len(ranked) + 1))
    assert (ranked["cost_after"] == ranked["cost"]).all()
    assert ranked["attained"].isna().all()
    assert found["offers"].query("order == @order").empty
    assert {order, "blocks", "fa_ir"} <= set(values(found, "rnd")["order"].dropna())
    assert set(found["findings"]["verdict"]) <= {"rank_kept", "rank_changed", "not_tested"}


@pytest.mark.parametrize(("key", "known"), [("source", "'exact', 'ar', 'mace' or 'nearest'"), ("order", "foeir")])
def test_unknown_systems_are_refused_with_the_known_ones(kept: Path, key: str, known: str) -> None:
    with pytest.raises(SpecError, match=known):
        asked(kept, {key: "dice"})


def test_the_spec_knows_systems_of_the_registries_alone() -> None:
    fields = RaguelSettings.model_fields
    assert set(get_args(fields["source"].annotation)) <= set(SOURCES)
    assert set(get_args(fields["order"].annotation)) - {"raguel"} <= set(RANKINGS)


def test_an_audit_keeps_its_declarations_and_its_measures_are_known(kept: Path, tmp_path: Path) -> None:
    lake, done = Lake(tmp_path / "lake"), []
    for step in plan(asked(kept)).steps:
        if step.name != "report":
            done.append(step.stage.run(lake, inputs(step, done), step.settings, step.modules))
    measures = table(lake, done, "measures").query("method == 'raguel'")
    (cost,) = measures.query(
        "measure == 'recourse_cost' and parameters == '{}' and group == 'Black' and decision_maker == 'model'"
    ).itertuples()
    assert cost.low < cost.value < cost.high
    assert not measures.query("measure == 'recourse_cost_difference'").empty
    assert lake.read(next(a for p in done for a in p.tables if a.table == "reranked")).num_rows


def table(lake: Lake, done: list[Partition], name: str) -> pd.DataFrame:
    return pd.concat([lake.read(a).to_pandas() for p in done for a in p.tables if a.table == name])


@pytest.mark.data("data/german_credit")
def test_german_credit_from_its_file_to_its_findings(tmp_path: Path) -> None:
    source = SHARED / "data" / "german_credit" / "german.data.gz"
    file = tmp_path / "german.data"
    file.write_bytes(gzip.decompress(source.read_bytes()))
    text = (REPOSITORY / "data" / "audits" / "german-credit.yaml").read_text()
    given = {"source.path": str(file), "methods": json.dumps({"fgce": None, "raguel": {"fewest": 10}})}
    found = audited(read_spec(text, "german-credit.yaml", given).spec)
    own = of_model(found)
    assert own["refusal"].isna().all()
    assert own["confirmed"].astype(bool).all()
    assert "Sex" not in set(found["offers"]["attribute"])
    ratio = values(found, "ratio_of_costs").query("decision_maker == 'model' and group == 'female' and over.isna()")
    before, after = (ratio.query(query)["value"].iloc[0] for query in ("order.isna()", "order == 'list'"))
    assert after >= before
