"""Train: what it writes keeps its word, a run that was killed goes on to the same table, and errors say what to do."""

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import REPOSITORY, environment, loans, spec_of

from schemas.artifact import Partition
from schemas.errors import DataQualityError, IntegrityError, SpecError
from schemas.terms import State
from tasks.in_memory import call_plainly
from tasks.lake.store import Lake
from tasks.methods.cec.algorithm import mitigations
from tasks.methods.cec.settings import CecSettings
from tasks.methods.cec.train import stage as train
from tasks.methods.cec.train.nets import States
from tasks.numerics.networks.network import of_safetensors
from tasks.numerics.networks.training import of_bytes
from tasks.pipeline.registry import validated
from tasks.pipeline.stage import Produced, Scratch, hold
from tasks.plan import Step, inputs, plan

TRAINING = {
    "epochs": 3,
    "folds": 2,
    "hidden": [8, 4],
    "learning_rate": 0.01,
    "device": "cpu",
    "grid": [2.0],
    "mitigations": ["threshold_optimizer", "disparate_impact_remover"],
}
SPEC = {
    "methods__adjusted": "null",
    "methods__fgce": "null",
    "methods__cst": "null",
    "columns__income__role": "financial",
    "columns__amount__role": "financial",
}
NAMES = (
    "unconstrained",
    "pred+EO",
    "pred+CEC",
    "full",
    "EO 2, CEC 2",
    "threshold_optimizer",
    "disparate_impact_remover",
)
OF_DECISIONS = ("auc", "f1", "balanced_accuracy", "positive_rate", "eo_gap", "sp_gap")


def steps_of(place: Path, training: dict[str, object] = TRAINING, **overrides: str) -> list[Step]:
    spec = spec_of(place, methods__cec=json.dumps({"training": training}), **{**SPEC, **overrides})
    return [step for step in plan(spec).steps if step.name in ("ingest", "preprocess", "train")]


def produced(place: Path, **overrides: str) -> tuple[Produced, dict[str, pa.Table]]:
    """The stage after those that come before it, as plain functions."""
    *first, last = steps_of(place, **overrides)
    before = {name: pa.concat_tables(parts) for name, parts in call_plainly(first).items()}
    given = [before[table.name] for table in last.stage.reads]
    return last.stage.function(*given, settings=last.settings), before


def frame(aggregates: pa.Table) -> pd.DataFrame:
    found = aggregates.to_pandas()
    said = found["parameters"].map(json.loads)
    for name in ("model", "over_folds", "regime", "lambda_eo", "lambda_cec"):
        found[name] = said.map(lambda each, name=name: each.get(name))
    return found


class TestPlan:
    def test_only_where_it_is_asked_for(self, place: Path) -> None:
        assert [step.name for step in steps_of(place)] == ["ingest", "preprocess", "train"]
        cec = spec_of(place, methods__cec="{}", **SPEC)
        assert "train" not in [step.name for step in plan(cec).steps]
        assert "train" not in [step.name for step in plan(spec_of(place)).steps]

    def test_what_is_trained_touches_neither_findings_nor_the_other_way_round(self, place: Path) -> None:
        def settings(name: str, cec: str) -> object:
            steps = plan(spec_of(place, methods__cec=cec, **SPEC)).steps
            return next(step.settings for step in steps if step.name == name)

        some, other = '{"training": {"epochs": 3}, "theta_steps": 5}', '{"training": {"epochs": 4}, "theta_steps": 5}'
        assert (
            settings("detect cec", some)
            == settings("detect cec", other)
            == settings("detect cec", '{"theta_steps": 5}')
        )
        assert settings("train", some) != settings("train", other)
        assert settings("train", some) == settings("train", some.replace("5", "7"))
        assert settings("train", some) != settings("train", some.replace('"theta_steps": 5', '"theta": 0.2'))

    def test_who_does_not_train_does_not_load_torch(self) -> None:
        code = "import tasks.plan, sys; sys.exit('torch' in sys.modules or 'fairlearn' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], env=environment(None), check=False).returncode == 0

    def test_the_profile_reaches_the_settings_of_training_and_leaves_what_is_given(self, place: Path) -> None:
        def training(given: str, profile: str) -> object:
            return spec_of(place, methods__cec=given, profile=profile, **SPEC).methods.of(CecSettings).training

        assert (training("{training: {}}", "default").steps, training("{training: {}}", "paper").steps) == (8, 32)
        assert training("{training: {}}", "paper").pair_share == 1
        assert training("{training: {steps: 5}}", "paper").steps == 5
        assert training("{}", "paper") is None
        assert spec_of(place, methods__cec="{}", profile="paper", **SPEC).methods.of(CecSettings).winsorise is None
        whole = spec_of(place, methods__cec="{training: {steps: 5}}", profile="paper", **SPEC)
        assert validated(type(whole), whole.model_dump(mode="json")) == whole

    def test_an_attribute_that_is_not_there_is_named(self, place: Path) -> None:
        with pytest.raises(SpecError, match="no protected attribute 'rase'; did you mean 'race'"):
            steps_of(place, {"attributes": ["rase"]})

    def test_a_key_that_is_not_there_is_named_with_the_nearest(self, place: Path) -> None:
        with pytest.raises(SpecError, match=r"methods\.cec\.training\.epoch: unknown key; did you mean 'epochs'"):
            steps_of(place, {"epoch": 3})

    @pytest.mark.parametrize("wrong", [{"folds": 1}, {"grid": [1, 1]}, {"mitigations": ["hardt"]}, {"dropout": 1}])
    def test_values_that_make_no_sense_are_refused(self, place: Path, wrong: dict[str, object]) -> None:
        with pytest.raises(SpecError, match=next(iter(wrong))):
            steps_of(place, wrong)

    def test_crossed_attributes_are_left_out_unless_they_are_named(self, place: Path) -> None:
        crossed = (
            "[{name: race, columns: [race], reference: w}, {name: both, columns: [race, purpose], reference: w buy}]"
        )
        named = steps_of(place, {**TRAINING, "attributes": ["both"]}, protected=crossed)[-1].settings
        left_out = steps_of(place, protected=crossed)[-1].settings
        assert [p.name for p in named.protected] == ["both"]
        assert [p.name for p in left_out.protected] == ["race"]


Made = tuple[Path, Produced, dict[str, pa.Table]]


@pytest.fixture(scope="module")
def of_loans(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What the stage gives of the loans, and the tables before it."""
    place = tmp_path_factory.mktemp("loans")
    loans().to_csv(place / "loans.csv", index=False)
    return place, *produced(place)


class TestTables:
    def test_they_keep_their_declarations(self, of_loans: Made) -> None:
        _, found, _ = of_loans
        kept, _, results, _ = hold(train.train, found, 500)
        assert all(results["success"].to_pylist())
        assert kept["aggregates"].num_rows == found.tables["aggregates"].num_rows
        assert kept["trained_nets"].num_rows == 2 * 2 * 4

    def test_every_model_has_every_measure(self, of_loans: Made) -> None:
        aggregates = frame(of_loans[1].tables["aggregates"])
        assert set(aggregates["decision_maker"]) == {"lender"}
        assert set(aggregates["method"]) == {"cec"}
        assert not aggregates[["headline", "compared"]].any(axis=None)
        for (group, model), own in aggregates.groupby(["group", "model"]):
            assert group in ("Black", "(missing)")
            grid = model == "EO 2, CEC 2"
            means, sds = own.query("over_folds == 'mean'"), own.query("over_folds == 'sd'")
            of_folds = {"trained_collapsed", *([] if grid else ["trained_non_dominated"])}
            assert set(means["measure"]) - set(sds["measure"]) == of_folds
            assert {f"trained_{name}" for name in OF_DECISIONS} <= set(sds["measure"])
            shares = means.query("measure == 'trained_regime_share'")
            assert shares["regime"].tolist() == ["A", "B", "C", "D"]
            if model != "threshold_optimizer":
                assert shares["value"].sum() == pytest.approx(1)
                assert own["reason"].isna().all()
                assert means["value"].notna().all()
            else:
                assert shares["value"].isna().all()
                assert shares["reason"].notna().all()
            weighted = own[["lambda_eo", "lambda_cec"]].notna()
            assert (weighted if model in NAMES[:5] else ~weighted).all(axis=None)
        assert set(aggregates["model"]) == set(NAMES)

    def test_n_counts_held_out_rows_and_scored_pairs(self, of_loans: Made) -> None:
        _, found, before = of_loans
        sizes = before["memberships"].to_pandas().groupby("group").size()
        aggregates = frame(found.tables["aggregates"]).query("model == 'full'")
        for group in ("Black", "(missing)"):
            own = aggregates.query("group == @group").set_index("measure")["n"]
            assert set(own["trained_f1"]) == {sizes["white"] + sizes[group]}
            assert (own["trained_cec"] <= own["trained_f1"].iloc[0]).all()
            assert own["trained_cec"].min() > 0

    def test_a_net_that_is_kept_decides_as_it_was_measured(self, of_loans: Made) -> None:
        """From the tables alone: applicants as they came, inputs by their names, and the same folds."""
        place, found, before = of_loans
        applicants = before["applicants"].to_pandas().set_index("row_id")
        group = before["memberships"].to_pandas().set_index("row_id")["group"].loc[applicants.index]
        favourable = before["applications"].to_pandas().set_index("row_id")["outcome"].loc[applicants.index]
        chosen = group.isin(["white", "Black"]).to_numpy()
        nets = found.tables["trained_nets"].to_pandas().query("group == 'Black' and model == 'full'")
        names = json.loads(nets["inputs"].iloc[0])
        assert names == [
            *("income", "amount", "purpose=buy", "purpose=refinance"),
            *("history=bad", "history=fair", "history=good"),
        ]
        parts = [name.partition("=") for name in names]
        x = np.column_stack([applicants[c] == v if sign else applicants[c] for c, sign, v in parts]).astype(float)[
            chosen
        ]
        population = mitigations.Population(x, favourable.to_numpy()[chosen], (group == "Black").to_numpy()[chosen])
        split = mitigations.split(population, 2, steps_of(place)[-1].settings.seed)
        rates = [
            (of_safetensors(net).logit(x[fold.test]) >= 0).mean()
            for fold, net in zip(split, nets.sort_values("fold")["content"], strict=True)
        ]
        measured = frame(found.tables["aggregates"]).query(
            "group == 'Black' and model == 'full' and measure == 'trained_positive_rate' and over_folds == 'mean'"
        )
        assert np.mean(rates) == pytest.approx(measured["value"].iloc[0], abs=0.005)

    def test_a_group_with_too_few_is_a_row_with_its_reason(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        table = loans()
        kept = (table["race"] != "") | (table["race"].eq("").cumsum() <= 3)
        table[kept].to_csv(tmp_path / "loans.csv", index=False)
        with caplog.at_level(logging.DEBUG, logger="evenhand"):
            found, _ = produced(tmp_path)
        aggregates = frame(found.tables["aggregates"])
        few = aggregates.query("group == '(missing)'")
        assert few["measure"].unique().tolist() == ["trained_cec"]
        assert sorted(few["model"]) == sorted(set(NAMES) - {"EO 2, CEC 2"})
        assert few["value"].isna().all()
        assert (few["reason"] == "a label of a group has fewer rows than the 2 folds").all()
        assert aggregates.query("group == 'Black'")["value"].notna().any()
        assert "race: (missing): nothing is trained" in caplog.text
        assert "training for race: Black 14 of 14: fold 2 of 2, disparate_impact_remover: CEC" in caplog.text

    def test_measures_are_made_of_it_and_can_be_limited(self, place: Path) -> None:
        limit = "[{measure: trained_cec, parameters: {model: full, over_folds: mean}, maximum: 0.5}]"
        spec = spec_of(place, methods__cec=json.dumps({"training": TRAINING}), thresholds=limit, **SPEC)
        steps = [step for step in plan(spec).steps if step.name not in ("publish", "report")]
        measures = pa.concat_tables(call_plainly(steps)["measures"]).to_pandas()
        ours = measures[measures["measure"].str.startswith("trained_")]
        assert len(ours) > 100
        judged = ours[~ours["state"].isin([State.NOT_RUN, State.INFORMATION])]
        assert sorted(judged["group"]) == ["Black"], "groups that are no people are not judged"
        assert set(judged["measure"]) == {"trained_cec"}
        of = judged["parameters"].map(json.loads)
        assert {(each["model"], each["over_folds"]) for each in of} == {("full", "mean")}
        assert set(judged["state"]) == {State.INCONCLUSIVE}  # no interval, no verdict
        others = ours.drop(judged.index)
        assert ((others["state"] == State.INFORMATION) == others["value"].notna()).all()  # no limit, no interval
        assert ours[["low", "high", "p", "q", "reference_group"]].isna().all(axis=None)


NETS = {**TRAINING, "grid": [], "mitigations": [], "hidden": [4]}
"""What is stopped: of two groups, in two folds, four nets of three epochs."""

KILLED = """
import os, signal, sys
from pathlib import Path
import test_train as own
from tasks.pipeline.progress import progress
from tasks.pipeline.stage import Scratch
write, left = Scratch.write, [25]
def counted(self, name, content):
    write(self, name, content)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
Scratch.write = counted
own.run(Path(sys.argv[1]), "killed")
"""


@dataclass(frozen=True)
class Stopped:
    """Loans, and a lake of theirs on which training was killed with its 25th state written."""

    place: Path
    whole: str
    """Digest of the tables of a run that nobody stopped."""

    def copy(self, lake: str) -> Path:
        """A copy of the lake, to be gone on with; gives the directory of the states."""
        shutil.copytree(self.place / "killed", self.place / lake)
        return scratch_of(self.place, lake)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """A process killed for good, and a run that nobody stopped."""
    place = tmp_path_factory.mktemp("stopped")
    loans(200).to_csv(place / "loans.csv", index=False)
    paths = os.pathsep.join(
        map(str, (REPOSITORY, REPOSITORY / "tests", REPOSITORY / "tests" / "material", Path(__file__).parent))
    )
    command = [sys.executable, "-c", KILLED, str(place)]
    env = {**environment(None), "PYTHONPATH": paths}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    return Stopped(place, digests(run(place, "untouched")))


@pytest.mark.slow
class TestStopped:
    """Killed, damaged, diverged."""

    def test_a_run_that_was_killed_goes_on_to_the_same_tables(
        self, stopped: Stopped, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        states = stopped.copy("resumed")
        assert len(list(states.glob("*.safetensors"))) == 9  # eight runs of three epochs, and one on its way
        assert not list((stopped.place / "resumed" / "stages").glob("train/*"))
        written: list[str] = []
        write = Scratch.write
        monkeypatch.setattr(Scratch, "write", lambda self, *args: written.append(args[0]) or write(self, *args))
        assert digests(run(stopped.place, "resumed")) == stopped.whole
        assert len(written) == 2 * 2 * 4 * 3 - 25
        assert not list((stopped.place / "resumed" / "unfinished").iterdir())

    def test_a_damaged_state_is_trained_anew_and_said_to_be(
        self, stopped: Stopped, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, *_ = sorted(stopped.copy("damaged").glob("*.safetensors"))
        content = bytearray(first.read_bytes())
        content[-1] ^= 1
        first.write_bytes(bytes(content))
        with caplog.at_level(logging.WARNING, logger="evenhand"):
            assert digests(run(stopped.place, "damaged")) == stopped.whole
        assert str(first) in caplog.text
        assert "train from the start" in caplog.text

    def test_a_state_of_another_run_is_refused_and_its_place_named(self, stopped: Stopped) -> None:
        states = stopped.copy("foreign")
        first, second, *_ = sorted(states.glob("*.safetensors"))
        first.write_bytes(second.read_bytes())
        with pytest.raises(IntegrityError, match="other rows or with other settings") as refused:
            run(stopped.place, "foreign")
        assert f"remove {states} to train from the start" in str(refused.value)

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_a_loss_that_is_no_number_stops_with_the_last_good_state_on_disk(self, stopped: Stopped) -> None:
        with pytest.raises(
            DataQualityError, match=r"race: \(missing\), fold 1 unconstrained: training diverged"
        ) as stop:
            run(stopped.place, "diverged", {**NETS, "learning_rate": 1e38})
        message = str(stop.value)
        assert "in epoch 1, batch" in message
        assert "lower learning_rate or the lambdas" in message
        assert "methods.cec.training" in message
        (kept,) = scratch_of(stopped.place, "diverged").glob("*.safetensors")
        assert str(kept) in message
        assert of_bytes(kept.read_bytes()).epoch == 0

    def test_states_of_groups_and_runs_do_not_meet(self, tmp_path: Path) -> None:
        scratch = Scratch(Lake(tmp_path), "train", "k")
        files = {States(scratch, group).file(run) for group in ("0-1", "0-2") for run in ("fold 1 full", "fold 2 full")}
        assert len(files) == 4


def run(place: Path, lake: str, training: dict[str, object] = NETS) -> Partition:
    """The stage and those before it on a lake."""
    store, done = Lake(place / lake), list[Partition]()
    for step in steps_of(place, training):
        done.append(step.stage.run(store, inputs(step, done), step.settings, step.modules))
    return done[-1]


def scratch_of(place: Path, lake: str) -> Path:
    (home,) = (place / lake / "unfinished").iterdir()
    return home


def digests(partition: Partition) -> str:
    """Of the tables; what the run cost is no part of it."""
    return hashlib.sha256("".join(a.sha256 for a in partition.tables).encode()).hexdigest()
