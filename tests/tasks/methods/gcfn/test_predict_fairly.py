"""Predict fairly, in an audit from its spec to its report: predictors by group, beside the audited model."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import loans, spec_of

from schemas.artifact import Partition
from schemas.audit.causal import CausalGraph
from schemas.audit.spec import AuditSpec, Protected
from schemas.errors import DataQualityError, SpecError
from schemas.tables.applications import MEMBERSHIPS
from schemas.terms import Kind
from tasks.counterfactuals.generators import World
from tasks.in_memory import call_plainly
from tasks.ingest.synthetic.algorithm.lending import Synthetic, synthetic
from tasks.lake.store import Lake
from tasks.methods.gcfn.algorithm.predictors import split
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Mediation
from tasks.plan import inputs, plan

PREDICTION = {"lambdas": [0, 1], "epochs": 2, "hidden": [8], "gammas": [0.5], "bins": 4}
GCFN = {"networks": 2, "epochs": 2, "hidden": 8, "batch": 32, "device": "cpu"}
ROLES = {"columns__income__role": "mediator", "columns__history__role": "mediator", "causal_graph": "{}"}
MODELS = [("CFAN", 0.0), ("CFUA", 0.0), ("GCFN", 1.0), ("unconstrained", 0.0)]


OTHERS = ("methods__adjusted", "methods__fgce", "methods__cst")


def asked(place: Path, prediction: object = PREDICTION, **overrides: str) -> AuditSpec:
    gcfn = json.dumps({**GCFN, "prediction": prediction})
    return spec_of(place, **{"methods__gcfn": gcfn, **dict.fromkeys(OTHERS, "null"), **ROLES, **overrides})


def audited(spec: AuditSpec, lake: Lake) -> list[Partition]:
    done: list[Partition] = []
    for step in plan(spec).steps:
        done.append(step.stage.run(lake, inputs(step, done), step.settings, step.modules))
    return done


def tables(lake: Lake, done: list[Partition], name: str) -> pd.DataFrame:
    return pd.concat([lake.read(a).to_pandas() for p in done for a in p.tables if a.table == name])


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, list[Partition]]:
    """A whole audit of the loans by GCFN alone."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    lake = Lake(place / "lake")
    return lake, audited(asked(place), lake)


@pytest.fixture
def measures(audit: tuple[Lake, list[Partition]]) -> pd.DataFrame:
    found = tables(*audit, "measures").query("method == 'gcfn'")
    said = found["parameters"].map(json.loads)
    return found.assign(**{name: said.map(lambda each, n=name: each.get(n)) for name in ("model", "lambda", "gamma")})


class TestPlan:
    def test_only_where_it_is_asked_for(self, place: Path) -> None:
        names = [step.name for step in plan(asked(place)).steps]
        assert names[-6:] == ["mediate", "predict_fairly", "detect gcfn", "measure", "publish", "report"]
        assert "predict_fairly" not in [step.name for step in plan(asked(place, None)).steps]

    @pytest.mark.parametrize("wrong", [{"lambdas": []}, {"lambdas": [1, 1]}, {"test": 1}, {"gammas": [-1]}])
    def test_values_that_make_no_sense_are_refused(self, place: Path, wrong: dict[str, object]) -> None:
        with pytest.raises(SpecError, match=next(iter(wrong))):
            asked(place, wrong)

    def test_a_key_that_is_not_there_is_named_with_the_nearest(self, place: Path) -> None:
        with pytest.raises(SpecError, match=r"methods\.gcfn\.prediction\.epoch: unknown key; did you mean 'epochs'"):
            asked(place, {"epoch": 3})


def test_an_audit_has_every_measure_of_every_model_and_group(measures: pd.DataFrame) -> None:
    fair = measures.query("decision_maker == 'lender'")
    for group in ("white", "Black"):
        own = fair[fair["group"] == group]
        for measure in ("fair_accuracy", "fair_ppv", "fair_fpr", "fair_fnr"):
            models = sorted(own.loc[own["measure"] == measure, "model"])
            assert models == sorted([*(name for name, _ in MODELS), "given"])
        for measure in ("fair_unfairness", "fair_utility", "treated_differently_share"):
            of = own[own["measure"] == measure]
            assert sorted(zip(of["model"], of["lambda"], strict=True)) == MODELS
        assert own.query("measure == 'fair_accuracy'")[["value", "low", "high"]].notna().all(axis=None)
    made = measures.query("decision_maker == 'model'")["measure"]
    assert {"decision_flip_share", "score_change_quantile", "not_identified_share"} <= set(made)


def test_a_group_that_is_too_small_is_a_row_with_its_reason(measures: pd.DataFrame) -> None:
    small = measures.query("decision_maker == 'lender' and group == '(missing)'")
    assert set(small["measure"]) == {"fair_unfairness"}
    assert small["value"].isna().all()
    assert small["note"].str.startswith("the group, or the reference group, has fewer rows").all()


def test_utility_is_accuracy_less_unfairness(measures: pd.DataFrame) -> None:
    of = measures.query("decision_maker == 'lender' and group == 'Black' and model == 'GCFN'").set_index("measure")[
        "value"
    ]
    assert of["fair_utility"] == pytest.approx(of["fair_accuracy"] - 0.5 * of["fair_unfairness"])


def test_the_audited_model_is_measured_on_the_rows_held_out(
    audit: tuple[Lake, list[Partition]], measures: pd.DataFrame
) -> None:
    """From the tables alone."""
    members = tables(*audit, "memberships").set_index("row_id")["group"]
    outcome = tables(*audit, "applications").set_index("row_id")["outcome"]
    decided = tables(*audit, "decisions").query("decision_maker == 'model'").set_index("row_id")
    ids = [i for i in tables(*audit, "applicants")["row_id"] if members[i] in ("white", "Black")]
    category = (members.loc[ids] == "white").to_numpy(np.int64)
    people = Mediation.__new__(Mediation)
    object.__setattr__(people, "category", category)
    _, test = split(people, outcome.loc[ids].to_numpy(dtype=bool), 0.2, plan_seed(audit))
    held = decided.loc[np.array(ids)[test]]
    right = (held["favourable"] == held["outcome"]).groupby(members.loc[held.index]).mean()
    given = measures.query("model == 'given' and measure == 'fair_accuracy'").set_index("group")["value"]
    assert given.to_dict() == pytest.approx(right.to_dict())


def plan_seed(_: object) -> int:
    return AuditSpec.model_fields["seed"].default  # type: ignore[no-any-return]


def test_a_second_audit_computes_nothing_and_a_third_elsewhere_is_the_same(
    audit: tuple[Lake, list[Partition]], tmp_path: Path
) -> None:
    lake, done = audit
    spec = asked(lake.root.parent)
    assert all(partition.reused for partition in audited(spec, lake))
    steps = [step for step in plan(spec).steps if step.name not in ("detect gcfn", "measure", "publish", "report")]
    again = call_plainly(steps)
    for name in ("tallies", "aggregates"):
        of = next(a for p in done if p.stage == "predict_fairly" for a in p.tables if a.table == name)
        assert again[name][-1].equals(lake.read(of))


def test_a_training_that_diverges_names_its_settings(place: Path) -> None:
    with pytest.raises(DataQualityError, match=r"race: training of the predictor.*methods\.gcfn\.prediction"):
        call_plainly(plan(asked(place, {**PREDICTION, "learning_rate": 1e38})).steps[:-3])


def told(spec: AuditSpec, table: str) -> pd.DataFrame:
    """What the predictors leave, with a column for each parameter."""
    steps = [step for step in plan(spec).steps if step.name not in ("detect gcfn", "measure", "publish", "report")]
    found = call_plainly(steps)[table][-1].to_pandas()
    said = pd.DataFrame([json.loads(each) for each in found["parameters"]])
    return found.join(said)


class TestNoise:
    """What CFAN sees: noise that the causal model of the audit spec abducts, or residuals."""

    def shares(self, place: Path, graph: str) -> dict[str, float]:
        found = told(asked(place, causal_graph=graph), "aggregates").query("measure == 'noise_abducted_share'")
        assert set(found["group"]) == {"white", "Black"}
        return found.groupby("mediator")["value"].min().to_dict()

    def test_it_is_abducted_of_the_mediators_that_the_causal_graph_leads_to(self, place: Path) -> None:
        graph = "{edges: [[race, income], [amount, income]]}"
        assert self.shares(place, graph) == {"income": 1.0, "history": 0.0}

    def test_without_a_causal_graph_or_one_that_leads_there_it_is_the_residual(self, place: Path) -> None:
        assert self.shares(place, "{}") == {"income": 0.0, "history": 0.0}
        assert self.shares(place, "{edges: [[race, amount]]}") == {"income": 0.0, "history": 0.0}

    def test_a_graph_changes_what_cfan_says_and_nothing_else(self, place: Path) -> None:
        graph = "{edges: [[race, income], [race, history]]}"
        bare, given = (
            told(asked(place, causal_graph=each), "tallies").drop(columns="parameters") for each in ("{}", graph)
        )
        same, other = (
            [table[(table["model"] == "CFAN") == cfan].reset_index(drop=True) for table in (bare, given)]
            for cfan in (False, True)
        )
        assert same[0].equals(same[1])
        assert not other[0].equals(other[1])

    def test_where_mechanisms_are_linear_and_additive_it_is_the_true_noise_up_to_scale(self) -> None:
        """Of applicants whose noise is known, by the causal world of an audit; and not without a cause."""
        rows = synthetic(Synthetic(rows=3_000, noise=0.5, beta_3=2.0), np.random.default_rng(0))
        columns = Columns(
            ("x1", "m1"), (Kind.CONTINUOUS,) * 2, ((),) * 2, np.column_stack([rows.covariates, rows.mediators])
        )
        ids = np.array([f"r{i}" for i in range(3_000)], dtype=object)
        groups = np.array(["A0", "A1"], dtype=object)[rows.category]
        members = MEMBERSHIPS.build(row_id=ids, protected_attribute=["group"] * 3_000, group=groups)
        found = {
            edges: World.of(columns, members, ids, Stated(CausalGraph(edges=edges))).noise("group")["m1"][:, 0]
            for edges in ((("group", "m1"), ("x1", "m1")), (("group", "m1"),))
        }
        right, wrong = (np.corrcoef(each, rows.noise[:, 0])[0, 1] for each in found.values())
        assert right > 0.999
        assert wrong < 0.6

    def test_nothing_is_abducted_of_an_attribute_that_causes_nothing(self) -> None:
        columns = Columns(("m1",), (Kind.CONTINUOUS,), ((),), np.arange(4.0)[:, None])
        ids = np.array(list("abcd"), dtype=object)
        members = MEMBERSHIPS.build(row_id=ids, protected_attribute=["group"] * 4, group=["A0", "A1"] * 2)
        assert World.of(columns, members, ids, Stated(CausalGraph(edges=(("x", "m1"),)))).noise("group") == {}


@dataclass(frozen=True)
class Stated:
    """What decides a causal world."""

    causal_graph: CausalGraph
    protected: tuple[Protected, ...] = (Protected(name="group", columns=("group",), reference="A0"),)
    decision: None = None
    seed: int = 0


def test_who_is_treated_differently_adds_up_to_the_group(place: Path) -> None:
    found = told(asked(place, {**PREDICTION, "epochs": 30, "test": 0.7}), "tallies")
    bands = found.query("measure == 'treated_differently_by_band'")
    assert set(zip(bands["model"], bands["lambda"], strict=True)) == {("GCFN", 1.0)}
    assert bands["group"].eq("white").any()
    for group, own in bands.groupby("group"):
        whole = found[(found["measure"] == "treated_differently_share") & (found["model"] == "GCFN")]
        (differs,) = whole[(whole["group"] == group) & (whole["value"] == 1)]["count"]
        by = own[own["value"] == 1].groupby(own["mediator"].fillna("score"))["count"].sum()
        assert set(by) == {differs}
        assert differs > 0
