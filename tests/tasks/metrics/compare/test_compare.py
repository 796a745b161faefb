"""Comparison of mitigations: a law over all that are offered, the folds, the means, the spec, the stage, the report."""

import json

import numpy as np
import pytest
from conftest import spec_of
from question_sections import tables
from report_tables import material, spec
from sklearn.model_selection import StratifiedKFold

from schemas.errors import SpecError
from tasks.baselines.mitigation import Decided
from tasks.in_memory import call_plainly
from tasks.metrics.compare import algorithm
from tasks.metrics.compare.algorithm import FIGURES, FOLDS, Columns, People, performance
from tasks.pipeline.registry import METHODS, mitigations
from tasks.plan import plan
from tasks.reporting.data_page import mitigations as section
from tasks.reporting.material import Material

CHEAP = ("unconstrained", "dir", "correlation_remover", "cec", "cfua")
EXPLAINED = ("unconstrained", "dir", "correlation_remover", "adversarial", "lagrangian", "cec")
"""Those that end in one net with a logit."""
LABELS = Columns(np.array([False, False, True, False]), np.array([False, False, False, True]), ("income", "debt"))


def drawn(n=160, seed=0):
    """All but the group decide; the third input is a covariate, and the last one the group."""
    rng = np.random.default_rng(seed)
    protected = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3)) - protected[:, None] * [0.5, 0, 0]
    label = x[:, 0] - x[:, 1] + x[:, 2] + rng.normal(0, 0.5, n) > 0
    return People(np.column_stack([x, protected]), label, protected, x[:, :2])


@pytest.fixture(scope="module")
def fold():
    return next(algorithm.split(drawn(), LABELS, 0))


def mitigated(name, fold, seed=3):
    return METHODS[mitigations()[name]].module("mitigations").mitigate(name, fold, seed=seed)


class TestLaw:
    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in CHEAP else pytest.mark.long) for name in mitigations()]
    )
    def test_whatever_is_offered_decides_on_every_row_the_same_each_time_or_says_why_not(self, name, fold):
        rows, label = fold
        people = drawn()
        cell = people.label * 2 + people.protected
        tested = next(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(cell, cell))[1]
        found, again = mitigated(name, rows), mitigated(name, rows)
        assert (found.predicted is None) == bool(found.reason), found
        if found.predicted is not None:
            assert found.predicted.shape == label.shape
            assert found.predicted.dtype == np.bool_
            assert (found.predicted == again.predicted).all()
            assert (found.predicted == label).mean() > 0.5
        if found.expected is not None:
            assert ((found.expected >= 0) & (found.expected <= 1)).all()
            assert found.predicted[found.expected == 1].all(), "decisions are drawn from these probabilities"
            assert not found.predicted[found.expected == 0].any()
        if found.scores is not None:
            assert np.isfinite(found.scores).all()
            assert (found.scores == again.scores).all()
        if found.explained is not None:
            cec, members = found.explained(label, people.financial[tested]), rows.test_protected
            assert np.isnan(cec[~members]).all()
            assert np.isfinite(cec[members]).mean() > 0.9
            assert ((cec[members] >= 0) & (cec[members] <= 1)).all()
            bare = np.zeros((len(label), 2))
            assert not np.array_equal(found.explained(label, bare), cec), "applicants are matched by these columns"
        assert (found.explained is None) == (name not in EXPLAINED)

    def test_every_name_is_offered_once(self):
        offered = [name for method in METHODS.values() for name in method.mitigations]
        assert len(offered) == len(set(offered))
        asked = {"dir", "hardt", "agarwal", "adversarial", "lagrangian", "cec", "gcfn", "cfua", "hscic"}
        assert asked | {"unconstrained"} <= set(offered)

    def test_without_what_it_needs_a_mitigation_says_so(self, fold):
        rows, _ = fold
        bare = type(rows)(**{**vars(rows), "financial": rows.financial[:, :0], "covariate": rows.covariate & False})
        assert mitigated("cec", bare).reason == "no column is financial, by which applicants are matched"
        assert "covariate" in mitigated("cfua", bare).reason


class TestFolds:
    def test_every_mitigation_sees_the_same_folds_and_each_row_is_held_out_once(self, monkeypatch):
        people, seen = drawn(), {"one": [], "two": []}

        def decided(name):
            def decide(rows):
                seen[name].append(rows)
                return Decided(np.ones(len(rows.test_inputs), np.bool_))

            return decide

        monkeypatch.setattr(algorithm, "REPEATS", 1)
        trained = algorithm.compared(people, LABELS, {name: decided(name) for name in seen}, 1)
        found = {model.name: model.means for model in trained}
        assert [len(rows) for rows in seen.values()] == [FOLDS, FOLDS]
        for one, two in zip(*seen.values(), strict=True):
            assert (one.test_inputs == two.test_inputs).all()
            assert np.allclose(one.inputs.mean(axis=0), 0)
        assert sum(len(rows.test_inputs) for rows in seen["one"]) == len(people.label)
        assert {mean.figure: mean.value for mean in found["one"]}["positive_rate"] == 1

    def test_means_are_over_all_folds_or_there_is_a_reason(self):
        label, group = np.array([True, True, False, False] * 2), np.array([True, False] * 4)
        whole = performance(label, group, label, label.astype(float))
        bare = performance(label, group, ~label, None)
        by = {mean.figure: mean for mean in algorithm.means([whole, bare])}
        assert (by["f1"].value, by["f1"].deviation) == (0.5, pytest.approx(np.sqrt(0.5)))
        assert (np.isnan(by["auc"].value), by["auc"].reason) == (True, algorithm.NO_SCORES)
        assert {mean.reason for mean in algorithm.means([whole, "diverged"])} == {"diverged"}

    def test_a_rare_label_is_refused(self):
        people = drawn(400)
        few = People(people.inputs, people.label & ~people.protected, people.protected, people.financial)
        assert "too few rows of a label" in algorithm.refusal(few)
        assert algorithm.refusal(people) == ""

    def test_of_many_rows_some_are_drawn_with_the_shares_of_the_labels(self, monkeypatch):
        monkeypatch.setattr(algorithm, "MOST_ROWS", 80)
        people = drawn()
        some = algorithm.drawn(people, 0)
        assert len(some.label) == 80
        for group in (some.protected, ~some.protected):
            every = people.protected if group is some.protected else ~people.protected
            assert some.label[group].mean() == pytest.approx(people.label[every].mean(), abs=0.03)

    def test_of_a_small_group_nobody_is_left_out(self, monkeypatch):
        monkeypatch.setattr(algorithm, "MOST_ROWS", 100)
        people, few = drawn(400), np.arange(400) < 40
        some = algorithm.drawn(People(people.inputs, people.label, few, people.financial), 0)
        assert (int(some.protected.sum()), len(some.label)) == (40, 100)


class TestSpec:
    @pytest.mark.parametrize(
        ("names", "said"),
        [
            (
                "[dirr]",
                r"no mitigation 'dirr'; did you mean 'dir'\?.*there are unconstrained, dir, correlation_remover",
            ),
            ("[dir, hardt, dir]", "'dir' is named twice"),
        ],
    )
    def test_unknown_and_repeated_names_are_errors(self, place, names, said):
        with pytest.raises(SpecError, match=said):
            spec_of(place, compare=names)

    def test_one_margin_of_performance_is_fixed_before_the_run(self, place):
        assert (spec_of(place).comparable.by, spec_of(place).comparable.margin) == ("accuracy", 0.01)
        with pytest.raises(SpecError, match="one margin decides"):
            spec_of(place, comparable="{auc: 0.01, accuracy: 0.01}")

    def test_what_each_model_is_trained_with_is_said_without_its_seed(self):
        for name, method in mitigations().items():
            said = METHODS[method].module("mitigations").hyperparameters(name)
            assert said
            assert "seed" not in json.dumps(said, default=str), name

    def test_nothing_is_planned_unless_it_is_asked_for(self, place):
        assert "compare" not in [step.name for step in plan(spec_of(place)).steps]
        assert "compare" in [step.name for step in plan(spec_of(place, compare="[dir]")).steps]


def test_the_stage_tells_the_means_of_each_group_beside_the_reference_group(place, monkeypatch):
    monkeypatch.setattr(algorithm, "REPEATS", 2)
    asked = spec_of(place, compare="[hardt]", comparable="{auc: 0.02}", columns__income__role="financial")
    steps = [step for step in plan(asked).steps if step.name in ("ingest", "preprocess", "compare")]
    written = call_plainly(steps)
    [table], [models] = written["compared_mitigations"], written["compared_models"]
    found = table.to_pandas()
    assert list(found["mitigation"].unique()) == ["unconstrained", "hardt"]
    assert "white" not in set(found["group"])
    assert len(found) == len(FIGURES) * 2 * found["group"].nunique()
    assert (found["value"].isna() == (found["reason"] != "")).all()
    black = found[found["group"] == "Black"].set_index(["mitigation", "figure"])["value"]
    assert black["unconstrained", "f1"] > 0.5
    assert np.isnan(black["hardt", "auc"])
    pairs = models.to_pandas()
    assert set(pairs["mitigation"]) == {"hardt"}
    of_black = pairs[pairs["group"] == "Black"].set_index("quantity")
    assert list(of_black.index) == list(algorithm.QUANTITIES)
    told = of_black.drop(["auc", "cec"])
    assert (told["low"] <= told["difference"]).all()
    assert (told["difference"] <= told["high"]).all()
    assert of_black.loc["auc", "reason"] == algorithm.NO_SCORES
    assert of_black.loc["cec", "reason"] == algorithm.UNEXPLAINED
    assert set(of_black["frontier"]) <= {"dominated", "not_dominated", "cannot_tell"}
    assert (set(pairs["comparable_by"]), set(pairs["margin"])) == ({"auc"}, {0.02})
    assert 0 < of_black["drawn"].iloc[0] < 1, "some of these decisions are drawn"
    [register] = written["model_register"]
    tried = register.to_pandas().set_index(["group", "mitigation"])
    assert len(tried) == 2 * found["group"].nunique()
    base, other = tried.loc[("Black", "unconstrained")], tried.loc[("Black", "hardt")]
    assert (base["standing"], other["standing"]) == ("base", "not_candidate")
    assert other["reason"] == "it is not shown that auc is worse by less than 0.02", "it has no scores"
    assert (base["first_seed"], base["folds"], base["repeats"]) == (asked.seed, FOLDS, 2)
    assert json.loads(other["hyperparameters"])["learning_rate"] == 3e-4


def test_the_report_has_a_row_for_each_mitigation_and_reasons_below():
    own = {"protected_attribute": "race", "group": "Black", "position": 0, "deviation": 0.1}
    rows = (
        {**own, "mitigation": "dir", "figure": "f1", "value": 0.8421, "reason": ""},
        {**own, "mitigation": "hardt", "figure": "f1", "value": 0.5, "reason": ""},
        {**own, "mitigation": "hardt", "figure": "auc", "value": None, "reason": algorithm.NO_SCORES},
    )
    made = material([], spec())
    shown = section(Material(made.settings, made.measures, {**made.tables, "published_compared_mitigations": rows}))
    [view] = tables(shown)
    pair = {**own, "mitigation": "dir", "difference": -0.104, "low": -0.16, "high": -0.05, "frontier": "cannot_tell"}
    pair |= {"comparable_by": "accuracy", "margin": 0.01, "drawn": 0.25}
    pairs = ({**pair, "quantity": "sp_gap", "performance": "comparable"},)
    both = {"published_compared_mitigations": rows, "published_compared_models": pairs}
    beside = tables(section(Material(made.settings, made.measures, {**made.tables, **both})))[1]
    minus = "\N{MINUS SIGN}"
    assert [cell.text for cell in beside.rows[0]] == [
        *("race", "Black", "dir", "none", f"{minus}0.104 [{minus}0.160, {minus}0.050]", *["none"] * 4),
        *("cannot tell", "yes"),
    ]
    assert "accuracy lower by less than 0.01" in beside.note
    assert "dir: some decisions are drawn (25 %)" in beside.note
    assert [[cell.text for cell in row][:5] for row in view.rows] == [
        ["race", "Black", "dir", "none", "0.842"],
        ["race", "Black", "hardt", "none", "0.5"],
    ]
    assert view.note == f"None for hardt: {algorithm.NO_SCORES}."
    assert section(made) is None
    assert json.dumps(shown.words)
