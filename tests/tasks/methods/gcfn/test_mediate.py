"""Mediate and detect GCFN: from roles of columns to mediators in another group, decisions on them, and findings."""

import json
import logging
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import loans, spec_of

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from schemas.terms import Refusal
from tasks.counterfactuals.gan import cases, regenerated
from tasks.in_memory import call_plainly
from tasks.methods.gcfn.mediate import stage as mediate
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.metrics.publish.algorithm.profiles import POLICIES
from tasks.numerics.networks.training import of_bytes
from tasks.numerics.problem import ALL_COVARIATES
from tasks.pipeline.registry import validated
from tasks.pipeline.stage import Produced, hold
from tasks.plan import Step, plan
from tasks.preprocessing.columns import columns_of

GCFN = {"networks": 3, "epochs": 3, "hidden": 8, "batch": 16, "device": "cpu"}
ROLES = {"columns__income__role": "mediator", "columns__history__role": "[financial, mediator]"}
OTHERS = {"methods__adjusted": "null", "methods__fgce": "null", "methods__cst": "null", "causal_graph": "{}"}
STEPS = ("ingest", "preprocess", "score", "mediate")
QUANTILE = {"generator": "quantile"}

DENSITIES = {"mediator_share", "imagined_mediator_share"}
"""Measures of applications, whoever decides on them."""

Tables = dict[str, pd.DataFrame]


def asked(place: Path, gcfn: dict[str, object] = GCFN, **overrides: str) -> AuditSpec:
    return spec_of(place, **{"methods__gcfn": json.dumps(gcfn), **ROLES, **OTHERS, **overrides})


def steps_of(spec: AuditSpec, names: tuple[str, ...] = STEPS) -> list[Step]:
    return [step for step in plan(spec).steps if step.name in names]


def produced(spec: AuditSpec) -> tuple[Produced, dict[str, pa.Table], Step]:
    """The stage after those that come before it, as plain functions."""
    *first, last = steps_of(spec)
    before = {name: pa.concat_tables(parts) for name, parts in call_plainly(first).items()}
    given = [before[table.name] for table in last.stage.reads]
    return last.stage.function(*given, settings=last.settings), before, last


def frames(spec: AuditSpec) -> Tables:
    found, before, _ = produced(spec)
    return {name: table.to_pandas() for name, table in {**before, **found.tables}.items()}


def detected(spec: AuditSpec) -> Tables:
    tables = call_plainly(steps_of(spec, (*STEPS, "detect gcfn")))
    return {name: pa.concat_tables(parts).to_pandas() for name, parts in tables.items()}


def said_of(tallies: pd.DataFrame) -> pd.DataFrame:
    """Tallies with a column for each of their parameters."""
    said = pd.DataFrame([json.loads(each) for each in tallies["parameters"]], index=tallies.index)
    return tallies.reset_index(drop=True).join(said.reset_index(drop=True))


class TestPlan:
    def test_only_where_it_is_asked_for_and_before_its_findings(self, place: Path) -> None:
        names = [step.name for step in plan(asked(place)).steps]
        assert names[-6:] == ["score", "mediate", "detect gcfn", "measure", "publish", "report"]
        assert "mediate" not in [step.name for step in plan(spec_of(place, **ROLES)).steps]

    def test_what_is_said_later_touches_no_generator(self, place: Path) -> None:
        def settings(**more: object) -> object:
            return steps_of(asked(place, {**GCFN, **more}))[-1].settings

        assert settings() == settings(wide=0.5, quantile=0.9, prediction={"epochs": 2})
        assert settings() != settings(alpha=1)

    def test_predictors_touch_no_finding(self, place: Path) -> None:
        def settings(**more: object) -> object:
            return steps_of(asked(place, {**GCFN, **more}), ("detect gcfn",))[-1].settings

        assert settings() == settings(prediction={"epochs": 2})
        assert settings() != settings(wide=0.5)

    def test_settings_come_back_from_what_travels_between_tasks(self, place: Path) -> None:
        for step in steps_of(asked(place, {**GCFN, "prediction": {}}), ("mediate", "predict_fairly")):
            assert validated(step.stage.settings, step.settings.model_dump(mode="json")) == step.settings

    def test_roles_decide_who_is_what(self, place: Path) -> None:
        left = steps_of(asked(place))[-1].settings
        assert (left.mediators, left.covariates) == (("income", "history"), ("amount", "purpose"))
        said = steps_of(asked(place, columns__purpose__role="covariate"))[-1].settings
        assert said.covariates == ("purpose",)

    def test_the_profile_of_the_paper(self, place: Path) -> None:
        found = asked(place, {**GCFN, "prediction": {}}, profile="paper").methods.of(GcfnSettings)
        assert (found.alpha, found.adversarial, found.among_alike, found.decay_from) == (1, "algorithm_1", False, 1)
        assert found.prediction.lipschitz == 1
        assert asked(place, {**GCFN, "alpha": 3}, profile="paper").methods.of(GcfnSettings).alpha == 3


class TestBadInput:
    def test_no_mediator(self, place: Path) -> None:
        with pytest.raises(SpecError, match=r"no column is a mediator of race.*add `role: mediator`"):
            plan(asked(place, columns__income__role="feature", columns__history__role="feature"))

    def test_an_attribute_does_not_mediate_itself(self, place: Path) -> None:
        own = {"columns__race": "{type: nominal, role: mediator}", "columns__income__role": "feature"}
        with pytest.raises(SpecError, match="no column is a mediator of race"):
            plan(asked(place, **own, columns__history__role="feature"))

    def test_quantiles_of_categories(self, place: Path) -> None:
        with pytest.raises(SpecError, match="'history' is ordinal; use `generator: gan`"):
            plan(asked(place, QUANTILE))

    @pytest.mark.parametrize(("key", "value"), [("batch", 1), ("networks", 0), ("generator", "scm"), ("wide", 0)])
    def test_values_that_make_no_sense(self, place: Path, key: str, value: object) -> None:
        with pytest.raises(SpecError, match=key):
            asked(place, {**GCFN, key: value})

    def test_a_key_that_is_not_there(self, place: Path) -> None:
        with pytest.raises(SpecError, match=r"methods\.gcfn\.epoch: unknown key; did you mean 'epochs'"):
            asked(place, {"epoch": 3})

    def test_a_group_with_fewer_rows_than_a_batch_is_refused_by_reason(self, place: Path) -> None:
        found = detected(asked(place, {**GCFN, "batch": 32}))
        sizes = found["memberships"].groupby("group").size()
        small = found["mediated"].query("group == '(missing)'")
        assert len(small) == sizes["(missing)"] < 32
        assert set(small["refusal"]) == {Refusal.TOO_FEW_IN_CATEGORY}
        assert small[["network", "spread", "income", "history"]].isna().all(axis=None)
        assert set(found["mediated"].query("group == 'white'")["to_group"]) == {"Black"}
        assert set(found["findings"].query("group == '(missing)'")["verdict"]) == {"not_tested"}
        outside = set(found["memberships"].query("group != 'white'")["row_id"])
        in_order = [i for i in found["applicants"]["row_id"] if i in outside]
        assert found["findings"]["row_id"].tolist() == in_order
        unmediated = found["tallies"].query("measure == 'unmediated_share' and group == '(missing)' and value == 1")
        assert unmediated["count"].tolist() == [len(small)]

    def test_a_mediator_that_is_constant_in_a_group(self, tmp_path: Path) -> None:
        loans().assign(income=lambda f: f["income"].where(f["race"] != "b", 40.0)).to_csv(tmp_path / "loans.csv")
        found = frames(asked(tmp_path, row_id="id"))["mediated"]
        assert set(found.query("group == 'Black'")["refusal"]) == {Refusal.CONSTANT_MEDIATOR}
        assert found.query("group == '(missing)'")["refusal"].isna().all()

    def test_without_a_reference_group_that_is_large_enough_everyone_is_refused(self, place: Path) -> None:
        found = detected(asked(place, {**GCFN, "batch": 1000}))
        assert set(found["mediated"]["refusal"]) == {Refusal.TOO_FEW_IN_CATEGORY}
        assert len(found["mediated"]) == len(found["findings"]) == (found["memberships"]["group"] != "white").sum()
        assert found["generators"].empty
        assert found["mediated_decisions"].empty
        assert set(found["findings"]["verdict"]) == {"not_tested"}

    def test_a_covariate_that_gives_the_group_away_is_warned_about(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        loans().assign(amount=lambda f: f["amount"] + 10_000 * (f["race"] == "w")).to_csv(tmp_path / "loans.csv")
        with caplog.at_level(logging.WARNING, logger="evenhand"):
            checks = frames(asked(tmp_path, row_id="id"))["generator_checks"]
        assert "race: amount foretells the group with an AUC of 1.000" in caplog.text
        leaks = checks.query("check == 'leak'").set_index("column")["doubtful"]
        assert leaks.to_dict() == {"amount": True, "purpose": False, ALL_COVARIATES: True}


@pytest.fixture(scope="module")
def of_loans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Produced, dict[str, pa.Table], Step]:
    """What the stage gives of the loans, the tables before it, and the step."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    return produced(asked(place))


Made = tuple[Produced, dict[str, pa.Table], Step]


class TestTables:
    def test_they_keep_their_declarations_and_rows_balance(self, of_loans: Made) -> None:
        found, _, step = of_loans
        kept, refusals, results, _ = hold(step.stage, found, found.rows_in)
        assert all(results["success"].to_pylist())
        assert refusals.num_rows == 0
        assert kept["mediated"].num_rows == found.rows_in

    def test_who_is_imagined_as_whose_member(self, of_loans: Made) -> None:
        found, before, _ = of_loans
        members = before["memberships"].to_pandas()
        made = found.tables["mediated"].to_pandas()
        outside = made.query("group != 'white'")
        assert sorted(outside["row_id"]) == sorted(members.query("group != 'white'")["row_id"])
        assert set(outside["to_group"]) == {"white"}
        inside = made.query("group == 'white'").groupby("to_group")["row_id"].apply(sorted).to_dict()
        assert inside == dict.fromkeys(("Black", "(missing)"), sorted(members.query("group == 'white'")["row_id"]))
        assert set(made["generator"]) == {"gan"}
        assert set(made["history"]) <= {"bad", "fair", "good"}
        assert made["spread"].ge(0).all()

    def test_the_network_that_is_shown_imagines_the_same_again_from_its_kept_state(self, of_loans: Made) -> None:
        """From the tables alone, and to the bit."""
        found, before, step = of_loans
        columns, ids = columns_of(before["applicants"], before["encodings"]), before["applicants"]["row_id"].to_numpy()
        (case,) = cases(columns, before["memberships"], ids, step.settings)
        again = regenerated(case, found.tables["generators"]["content"][0].as_py())
        made = found.tables["mediated"].to_pandas()
        row = pd.Series(np.arange(len(ids)), index=ids).loc[made["row_id"]].to_numpy()
        at = np.searchsorted(case.categories.rows, row)
        to = [case.rows.categories.index(name) for name in made["to_group"]]
        assert (again[made["network"].astype(int), to, at, 0] == made["income"]).all()
        assert json.loads(found.tables["generators"]["categories"][0].as_py()) == list(case.rows.categories)

    def test_the_very_model_that_decided_decides_again(self, of_loans: Made) -> None:
        """Networks that imagine what is there leave the decision, to the last digit."""
        found, before, _ = of_loans
        decided = found.tables["mediated_decisions"].to_pandas()
        made = found.tables["mediated"].to_pandas()
        assert len(decided) == len(made)
        assert {len(each) for each in decided["score_changes"]} == {GCFN["networks"]}
        scores = before["decisions"].to_pandas().query("decision_maker == 'model'").set_index("row_id")
        now, change = scores["score"].loc[decided["row_id"]], np.stack(decided["score_changes"])
        then = now.to_numpy()[:, None] + change
        assert ((then > -1e-9) & (then < 1 + 1e-9)).all()
        favourable = then >= scores["threshold"].loc[decided["row_id"]].to_numpy()[:, None]
        flips = favourable != scores["favourable"].loc[decided["row_id"]].to_numpy()[:, None]
        assert (flips == np.stack(decided["flips"])).all()

    def test_effects_are_quantiles_of_what_is_there_and_here(self, of_loans: Made) -> None:
        found, before, _ = of_loans
        effects = found.tables["mediator_effects"].to_pandas()
        people = before["applicants"].to_pandas().merge(before["memberships"].to_pandas(), on="row_id")
        (median,) = effects.query(
            "group == 'Black' and to_group == 'white' and feature == 'income' and quantile == 0.5"
        ).to_dict("records")
        of_group = people.groupby("group")["income"]
        assert median["factual"] == pytest.approx(of_group.median()["Black"])
        assert median["there"] == pytest.approx(of_group.median()["white"])
        assert (median["n"], median["n_there"]) == (of_group.size()["Black"], of_group.size()["white"])
        shares = effects.query("feature == 'history'").groupby(["group", "to_group"])[["factual", "imagined", "there"]]
        assert (shares.sum() - 1).abs().max(axis=None) < 1e-9

    def test_history_and_checks_of_every_network(self, of_loans: Made) -> None:
        found, *_ = of_loans
        history = found.tables["generator_history"].to_pandas()
        assert history.groupby("network")["epoch"].apply(list).tolist() == [[1, 2, 3]] * 3
        checks = found.tables["generator_checks"].to_pandas()
        by_network = checks[checks["network"].notna()].groupby("check").size().to_dict()
        of_training = dict.fromkeys(("reconstruction", "advantage", "accuracy", "converged"), 3)
        assert by_network == {**of_training, "kept": 6, "beyond_mean": 6, "apart_from_quantiles": 3}
        state = of_bytes(found.tables["generators"]["content"][0].as_py())
        assert state.history[:, 1, 0].tolist() == pytest.approx(
            history.query("network == 1")["reconstruction"].tolist()
        )

    def test_densities_are_shares_of_people_in_intervals_that_part_the_line(self, of_loans: Made) -> None:
        """From the tables alone."""
        found, before, _ = of_loans
        told = said_of(found.tables["tallies"].to_pandas())
        people = before["applicants"].to_pandas().merge(before["memberships"].to_pandas(), on="row_id")
        groups = {"mediator_share": {"white", "Black"}, "imagined_mediator_share": {"Black"}}
        for measure, known in groups.items():
            own = told[told["measure"] == measure]
            assert set(own["group"]) == known
            assert set(own["mediator"]) == {"income"}
            shares = own["value"].mul(own["count"]).groupby(own["group"]).sum()
            assert shares.to_dict() == pytest.approx({g: (people["group"] == g).sum() for g in known})
        black = told[(told["measure"] == "mediator_share") & (told["group"] == "Black") & (told["value"] == 1)]
        incomes = people.query("group == 'Black'")["income"]
        for low, high, count in zip(
            black["from"].fillna(-np.inf), black["to"].fillna(np.inf), black["count"], strict=True
        ):
            assert incomes.between(low, high, inclusive="left").sum() == count

    def test_who_would_be_decided_on_otherwise_adds_up_to_the_headline(self, place: Path) -> None:
        found = detected(asked(place))
        told = said_of(found["tallies"])
        flips = told[(told["group"] == "Black") & (told["value"] > 0)]
        (headline,) = flips.query("measure == 'decision_flip_share' and over.isna()")["count"]
        by = flips.query("measure == 'flip_share_by_band'")
        assert set(by["by"]) == {"score", "mediator"}
        assert by.groupby(by["mediator"].fillna("score"))["count"].sum().to_dict() == {
            "score": headline, "income": headline, "history": headline,
        }  # fmt: skip

    def test_who_is_sorted_by_the_score_of_the_model_and_by_the_mediators_as_they_are(self, place: Path) -> None:
        found = detected(asked(place))
        told = said_of(found["tallies"]).query("measure == 'large_change_share_by_band' and group == 'Black'")
        members = found["memberships"].query("group == 'Black'")["row_id"]
        people = found["applicants"].set_index("row_id").loc[members]
        scores = found["decisions"].query("decision_maker == 'model'").set_index("row_id")["score"].loc[members]
        for known, values in (("income", people["income"]), (None, scores)):
            own = told[told["mediator"] == known] if known else told[told["by"] == "score"]
            sizes = own.groupby([own["from"].fillna(-np.inf), own["to"].fillna(np.inf)])["count"].sum()
            assert len(sizes) > 1
            for (low, high), count in sizes.items():
                assert values.between(low, high, inclusive="left").sum() == count >= 30
        history = told[told["mediator"] == "history"].groupby("category")["count"].sum()
        assert history.to_dict() == people["history"].value_counts().to_dict()

    def test_findings_are_those_outside_the_reference_group_and_nobody_asks_the_lender(self, place: Path) -> None:
        found = detected(asked(place))
        findings, members = found["findings"], found["memberships"]
        assert sorted(findings["row_id"]) == sorted(members.query("group != 'white'")["row_id"])
        told = found["tallies"][~found["tallies"]["measure"].isin(DENSITIES)]
        assert set(findings["decision_maker"]) == set(told["decision_maker"]) == {"model"}
        changes = found["mediated_decisions"].query("to_group == 'white'").set_index("row_id")["score_changes"]
        mean = changes.map(np.mean).loc[findings["row_id"]].to_numpy()
        assert findings["statistic"].to_numpy() == pytest.approx(mean)
        (headline,) = {m for m, h in zip(found["tallies"]["measure"], found["tallies"]["headline"], strict=True) if h}
        assert headline == "decision_flip_share"


class TestGivenRules:
    """With the map of quantiles and a rule, decisions in the other group can be worked out by hand."""

    RULE: ClassVar = {
        "model": "{kind: rule, rule: {weights: {income: 1}, limit: 60}}",
        "columns__history__role": "feature",
    }

    def test_a_decision_changes_where_the_imagined_income_crosses_the_limit(self, place: Path) -> None:
        found = detected(asked(place, QUANTILE, **self.RULE))
        both = found["mediated"].merge(found["applicants"], on="row_id", suffixes=("", "_now"))
        both = both.merge(found["mediated_decisions"], on=["row_id", "to_group"])
        assert (
            both["flips"].map(list) == [[float(c)] for c in (both["income"] >= 60) != (both["income_now"] >= 60)]
        ).all()
        moved = both["score_changes"].map(lambda each: each[0])
        assert moved.to_numpy() == pytest.approx((both["income"] - both["income_now"]).to_numpy())
        assert both["spread"].isna().all()
        assert found["generators"].empty
        assert found["generator_history"].empty
        assert not found["tallies"]["measure"].isin(["not_identified_share", "mediator_spread"]).any()
        verdicts = found["findings"].set_index("row_id")["verdict"]
        outside = both.query("to_group == 'white'").set_index("row_id")
        expected = np.where(outside["flips"].map(lambda each: each[0]) == 1, "decision_changes", "decision_kept")
        assert (verdicts.loc[outside.index] == expected).all()

    def test_columns_of_the_attribute_change_with_the_group_and_are_no_covariates(self, tmp_path: Path) -> None:
        """Income mediates nothing here; the rule asks for the group alone."""
        loans().assign(minority=lambda f: (f["race"] != "w").astype(float)).to_csv(tmp_path / "loans.csv")
        spec = asked(
            tmp_path,
            QUANTILE,
            row_id="id",
            protected="[{name: group, columns: [minority], reference: '0'}]",
            columns__minority="{type: continuous, clip: false}",
            columns__history__role="feature",
            model="{kind: rule, rule: {weights: {minority: -1}, limit: 0}}",
        )
        found = frames(spec)
        assert (np.stack(found["mediated_decisions"]["flips"]) == 1).all()
        assert "minority" not in set(found["generator_checks"]["column"])


def test_under_the_strict_profile_no_small_number_of_people_can_be_had_from_bands(place: Path) -> None:
    """Neither from a band, nor by subtraction from the number of all who flip, or of the group."""
    names = (*STEPS, "detect gcfn", "measure", "publish")
    steps = steps_of(asked(place, disclosure="{profile: strict}"), names)
    tables = {name: pa.concat_tables(parts).to_pandas() for name, parts in call_plainly(steps).items()}
    smallest, key = POLICIES["strict"].smallest, ["group", "measure", "parameters"]
    counted = "measure in ('flip_share_by_band', 'large_change_share_by_band', 'mediator_share')"
    cells = tables["tallies"].query(f"{counted} and (group != 'white' or measure != 'flip_share_by_band')")
    # a member of the reference group counts with the mean over two groups, which is no count
    events = cells["count"].where(cells["value"] == 1, 0).groupby([cells[name] for name in key]).sum()
    sizes = cells.groupby(key)["count"].sum()
    whole = {"flip_share_by_band": 0, "large_change_share_by_band": 0, "mediator_share": 0}
    published = tables["published_measures"].query("measure in @cells['measure']")
    told = published.set_index(key)["value"].reindex(events.index)
    frame = said_of(pd.DataFrame({"n": sizes, "events": events, "value": told}).reset_index())
    for (_, measure, *_), own in frame.groupby(["group", "measure", frame["by"].fillna(""), "mediator"], dropna=False):
        shown, hidden = own[own["value"].notna()], own[own["value"].isna()]
        assert not shown["events"].between(1, smallest - 1).any()
        assert not (shown["n"] - shown["events"]).between(1, smallest - 1).any()
        assert len(hidden) != 1
        assert len(shown) == 0 or not 0 < hidden["events"].sum() < smallest
        whole[measure] += len(hidden)
    assert all(whole.values())


def test_without_a_model_mediators_are_imagined_and_nobody_is_asked(place: Path) -> None:
    found = detected(asked(place, {**GCFN, "epochs": 1}, model="{kind: none}"))
    assert found["mediated"]["income"].notna().all()
    assert found["mediated_decisions"].empty
    assert found["findings"].empty
    assert set(found["tallies"]["measure"]) == DENSITIES
    assert set(found["tallies"]["decision_maker"]) == {"lender"}


def test_crossed_attributes_are_imagined_by_their_crossed_groups(place: Path) -> None:
    crossed = (
        "[{name: race, columns: [race], reference: w}, {name: both, columns: [race, purpose], reference: w and buy}]"
    )
    found = frames(asked(place, {**GCFN, "epochs": 1}, protected=crossed))
    made = found["mediated"].query("protected_attribute == 'both'")
    kept = made[made["refusal"].isna()]
    assert set(kept.query("to_group == 'w and buy'")["group"]) >= {"b and buy", "b and refinance", "w and refinance"}
    assert set(found["generators"]["protected_attribute"]) == {"race", "both"}


def test_rows_to_learn_from_can_be_fewer(place: Path) -> None:
    checks = frames(asked(place, {**GCFN, "rows": 200}))["generator_checks"]
    learnt = set(checks.query("check == 'converged'")["n"])
    assert learnt < {*range(195, 215)}
    assert set(checks.query("check == 'kept'")["n"]) == {500}


def test_how_far_a_training_has_come_is_told_ten_times(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="evenhand"):
        produced(asked(place, {**GCFN, "epochs": 20}))
    told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("generators for race")]
    assert len(told) == 10
    assert told[-1].startswith("generators for race 10 of 10: epoch 20 of 20: reconstruction")


def test_the_stage_is_resumable_and_balanced() -> None:
    assert mediate.mediate.resumable
    assert mediate.mediate.balanced
