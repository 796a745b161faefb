"""Models that a user gives, and our own network: they decide as they say, again on imagined applicants, and explain."""

import hashlib
import io
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from conftest import REPOSITORY, SPEC, loans, spec_of
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_modules import to_module

from schemas.audit.model import Model
from schemas.audit.spec import AuditSpec
from schemas.errors import DataQualityError, InfrastructureError, IntegrityError, SpecError
from schemas.tables.applications import MODELS
from tasks.detection import stage as detect
from tasks.detection.problems import cases
from tasks.in_memory import call_plainly
from tasks.numerics.networks.network import Network, to_safetensors
from tasks.pipeline.method import ProblemTables
from tasks.pipeline.registry import validated
from tasks.plan import plan
from tasks.scoring import stage as score
from tasks.scoring.decision_makers import fitted
from tasks.scoring.model_reader.confined import stored
from tasks.scoring.models import ModelFile, kept, probabilities, read

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # and still what users have

FINANCIAL = SPEC.replace("{type: continuous, constraint: up}", "{type: continuous, constraint: up, role: financial}")
BOTH = {"methods__adjusted": "null", "methods__fgce": "null", "methods__cec": "{theta_steps: 2, substitute: true}"}
ORDERS = {"purpose": ["buy", "refinance"], "history": ["bad", "fair", "good"]}
UNTIL_SCORE = 3


def as_taken(frame: pd.DataFrame, inputs: str) -> np.ndarray:
    """What each applicant handed in as a model takes it, one by one."""
    rows = []
    for _, row in frame.iterrows():
        inputs_of_row = [row["income"], row["amount"]]
        for name, order in ORDERS.items():
            if inputs == "one_hot":
                inputs_of_row += [float(row[name] == category) for category in order]
            else:
                inputs_of_row.append(float(order.index(row[name])))
        rows.append(inputs_of_row)
    return np.array(rows)


def network(inputs: int = 7) -> Network:
    """A network whose logits lie on both sides of 0; amounts are some 160, incomes some 60."""
    rng = np.random.default_rng(8)
    first = rng.normal(size=(6, inputs)) / 50
    first[:, 2:] *= 20
    return Network((first, rng.normal(size=(1, 6))), (rng.normal(size=6), np.array([0.3])), "relu")


def logistic(inputs: str) -> object:
    frame = loans()
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(
        as_taken(frame, inputs), frame["approved"] == "yes"
    )


def onnx_of(model: Network) -> bytes:
    from onnx import helper

    nodes, arrays, into = [], [], "x"
    for layer, (weight, bias) in enumerate(zip(model.weights, model.biases, strict=True)):
        for name, values in ((f"w{layer}", weight), (f"b{layer}", bias)):
            arrays.append(helper.make_tensor(name, 1, values.shape, values.ravel().astype(np.float32)))
        nodes.append(helper.make_node("Gemm", [into, f"w{layer}", f"b{layer}"], [f"z{layer}"], transB=1))
        into = f"a{layer}"
        nodes.append(helper.make_node("Relu", [f"z{layer}"], [into]))
    nodes[-1] = helper.make_node("Sigmoid", [f"z{layer}"], ["y"])
    ends = [helper.make_tensor_value_info(n, 1, ["n", size]) for n, size in (("x", model.inputs), ("y", 1))]
    return helper.make_model(helper.make_graph(nodes, "graph", ends[:1], ends[1:], arrays)).SerializeToString()


def torchscript(model: Network) -> bytes:
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(to_module(model)), out)
    return out.getvalue()


def spec_with(place: Path, content: bytes, *, sha256: str | None = None, text: str = SPEC, **options: str) -> AuditSpec:
    """The audit of a model in a file; options are keys of ``model.file``, or dotted keys of the spec."""
    path = place / "model.bin"
    path.write_bytes(content)
    keys = {name: options.pop(name) for name in ("inputs", "output") if name in options}
    if sha256 is not None:
        keys["sha256"] = sha256
    file = ", ".join(f"{key}: {value}" for key, value in {"path": path, **keys}.items())
    return spec_of(place, text, model=f"{{kind: file, file: {{{file}}}}}", **options)


def tables(spec: AuditSpec, steps: int = UNTIL_SCORE) -> dict[str, pa.Table]:
    return {name: pa.concat_tables(parts) for name, parts in call_plainly(plan(spec).steps[:steps]).items()}


def of_the_model(found: dict[str, pa.Table], table: str = "decisions") -> pd.DataFrame:
    return found[table].to_pandas().query("decision_maker == 'model'").reset_index(drop=True)


def refused(place: Path, content: bytes, error: type[Exception] = SpecError, **options: str) -> str:
    """The message with which a file is refused."""
    with pytest.raises(error) as caught:
        tables(spec_with(place, content, **options))
    return str(caught.value)


FILES = {
    "safetensors": (lambda: to_safetensors(network()), "one_hot"),
    "safetensors, numbers of categories": (lambda: to_safetensors(network(4)), "codes"),
    "onnx": (lambda: onnx_of(network()), "one_hot"),
    "torchscript": (lambda: torchscript(network()), "one_hot"),
    "skops": (lambda: kept(logistic("one_hot")), "one_hot"),
    "skops, numbers of categories": (lambda: kept(logistic("codes")), "codes"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_decides_on_every_row_as_it_says(place: Path, name: str) -> None:
    make, inputs = FILES[name]
    content = make()
    sha256 = hashlib.sha256(content).hexdigest()
    found = tables(spec_with(place, content, inputs=inputs, sha256=sha256))
    decided = of_the_model(found)
    if name.startswith("skops"):
        wanted = logistic(inputs).predict_proba(as_taken(loans(), inputs))[:, 1]
    else:
        wanted = expit(network(4 if inputs == "codes" else 7).logit(as_taken(loans(), inputs)))
    assert decided["score"].to_numpy() == pytest.approx(wanted, abs=1e-5)  # an ONNX file holds single precision
    assert (decided["favourable"] == (decided["score"] >= 0.5)).all()
    assert 0.05 < decided["favourable"].mean() < 0.95
    assert decided["explained"].all()
    assert found["models"].to_pylist() == [{"fold": 0, "content": content}]
    assert set(found["model_metrics"].to_pandas()["n"]) == set(found["memberships"].to_pandas()["group"].value_counts())


def test_a_file_can_take_what_models_fitted_here_take(place: Path) -> None:
    found = tables(spec_with(place, to_safetensors(network(5)), inputs="encoded"))
    encoded = found["features"].to_pandas().iloc[:, 1:].to_numpy()
    assert of_the_model(found)["score"].to_numpy() == pytest.approx(expit(network(5).logit(encoded)), abs=1e-12)


def test_a_rate_matched_threshold_denies_as_many_as_the_lender(place: Path) -> None:
    decided = tables(spec_with(place, to_safetensors(network()), model__threshold="rate_matched"))["decisions"]
    denied = decided.to_pandas().groupby("decision_maker")["favourable"].apply(lambda each: int((~each).sum()))
    assert denied["model"] == denied["lender"]


def test_a_classifier_fitted_on_named_columns(place: Path) -> None:
    named = pd.DataFrame(as_taken(loans(), "codes"), columns=["income", "amount", *ORDERS])
    forest = RandomForestClassifier(5, random_state=0).fit(named, loans()["approved"] == "yes")
    decided = of_the_model(tables(spec_with(place, kept(forest), inputs="codes")))
    assert decided["score"].to_numpy() == pytest.approx(forest.predict_proba(named)[:, 1], abs=0)
    turned = named[["amount", "income", *ORDERS]]
    other = RandomForestClassifier(5, random_state=0).fit(turned, loans()["approved"] == "yes")
    told = refused(place, kept(other), inputs="codes")
    assert "fitted with 'amount' as input 1, and would get 'income' there" in told


# decided again, and looked into


@pytest.mark.parametrize("name", ["onnx", "torchscript", "skops"])
def test_imagined_applicants_are_decided_on_by_the_file(place: Path, name: str) -> None:
    make, inputs = FILES[name]
    content = make()
    spec = spec_with(place, content, inputs=inputs, sha256=hashlib.sha256(content).hexdigest(), **BOTH)
    steps = plan(spec).steps[:4]
    found = {table: pa.concat_tables(parts) for table, parts in call_plainly(steps).items()}
    again = of_the_model(found, "counterfactual_decisions")
    made = found["counterfactuals"].to_pandas().set_index("row_id").loc[again["row_id"]]
    model = read(ModelFile(content, name, hashlib.sha256(content).hexdigest()))
    assert again["score"].to_numpy() == pytest.approx(probabilities(model, as_taken(made, inputs)), abs=1e-9)
    assert (again["favourable"] == (again["score"] >= 0.5)).all()
    assert len(again) > 100


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("{kind: net, folds: 2}", marks=pytest.mark.slow),
        pytest.param("{kind: net, split: holdout}", marks=pytest.mark.slow),
        "onnx",
        pytest.param("torchscript", marks=pytest.mark.slow),
        pytest.param("skops", marks=pytest.mark.slow),
        pytest.param("forest", marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_model_serves_both_methods(place: Path, model: str) -> None:
    if model.startswith("{"):
        spec = spec_of(place, FINANCIAL, model=model, **BOTH)
    else:
        x = as_taken(loans(), "one_hot")
        content = (
            kept(RandomForestClassifier(5, random_state=0).fit(x, loans()["approved"] == "yes"))
            if model == "forest"
            else FILES[model][0]()
        )
        sha256 = hashlib.sha256(content).hexdigest()
        spec = spec_with(place, content, sha256=sha256, text=FINANCIAL, **BOTH)
    steps = plan(spec).steps
    until = next(i for i, step in enumerate(steps) if step.name == "measure")
    findings = tables(spec, until)["findings"].to_pandas().query("decision_maker == 'model'")
    assert set(findings["method"]) == {"cst", "cec"}
    compared = findings[(findings["method"] == "cec") & findings["refusal"].isna()]
    assert compared["statistic"].between(0, 1).all()
    assert len(compared) > 10
    assert "holdout" in model or "no_model" not in set(findings["refusal"])


@pytest.mark.parametrize(("inputs", "of_column"), [("one_hot", [0, 1, 2, 2, 3, 3, 3]), ("codes", [0, 1, 2, 3])])
def test_a_file_is_looked_into_by_its_own_inputs(place: Path, inputs: str, of_column: list[int]) -> None:
    spec = spec_with(place, to_safetensors(network(len(of_column))), text=FINANCIAL, inputs=inputs, methods__cec="{}")
    found = tables(spec)
    settings = detect.detect_settings(spec, "cec")
    problems = {case.decision_maker: case.problem for case in cases(ProblemTables.of(found), settings)}
    explained = problems["model"].look_into(substitute=False)
    assert explained.x == pytest.approx(as_taken(loans(), inputs), abs=0)
    assert explained.feature_of_column.tolist() == of_column
    assert explained.features == ("income", "amount", "purpose", "history")
    assert ((explained.models[0].logit(explained.x) >= 0) == explained.favourable).all()
    assert (explained.favourable == of_the_model(found)["favourable"].to_numpy()).all()
    assert explained.pools[0].all()  # it learnt from nobody here, and everybody may be a match
    assert (explained.explainer == 0).all()


def test_later_stages_need_no_file(place: Path) -> None:
    spec = spec_with(place, to_safetensors(network()), text=FINANCIAL, **BOTH)
    scored = tables(spec)
    (place / "model.bin").unlink()
    settings = detect.detect_settings(spec, "cec")
    given = [scored.get(table.name, table.empty()) for table in detect.detect.reads]
    assert detect.detect.function(*given, settings=settings).tables["findings"].num_rows


# the network of our own


def test_a_net_is_kept_as_what_it_decided_with(place: Path) -> None:
    found = tables(spec_of(place, model="{kind: net, folds: 2}"))
    decided, x = of_the_model(found), found["features"].to_pandas().iloc[:, 1:].to_numpy()
    for fold, content in zip(*found["models"].to_pydict().values(), strict=True):
        mine = (decided["fold"] == fold).to_numpy()
        again = probabilities(read(ModelFile(content, "net")), x[mine])
        assert again == pytest.approx(decided.loc[mine, "score"].to_numpy(), abs=1e-12)
    metrics = found["model_metrics"].to_pandas().set_index(["group", "metric"])["value"]
    assert metrics["white", "auc"] > 0.6  # it was trained, and on the right label
    assert found["models"].equals(tables(spec_of(place, model="{kind: net, folds: 2}"))["models"])


def test_the_scale_of_inputs_moves_into_the_first_layer() -> None:
    rng = np.random.default_rng(0)
    x, centre, scale = rng.normal(size=(20, 7)), rng.normal(size=7), rng.uniform(0.1, 3, size=7)
    moved = network().before_scaling(centre, scale)
    assert moved.logit(x) == pytest.approx(network().logit((x - centre) / scale), rel=1e-9)


@pytest.mark.parametrize("kind", ["logistic_regression", "net"])
def test_training_rows_of_one_kind_are_named(kind: str) -> None:
    """Of 40 rows 12 are learnt from; the seeds are looked for whose draw holds none of the four denials."""
    x, y = np.random.default_rng(0).random((40, 2)), np.arange(40) >= 4
    drawn = (train_test_split(np.arange(40), test_size=0.7, random_state=seed)[0].min() for seed in range(100))
    unlucky = next(seed for seed, first in enumerate(drawn) if first >= 4)
    with pytest.raises(DataQualityError, match="occurs 0 times among 12"):
        fitted(x, y, Model(kind=kind, split="holdout", holdout=0.7), unlucky)


# what is refused


def test_pickles_and_unknown_files_are_refused(place: Path) -> None:
    assert "is a pickle" in refused(place, pickle.dumps([1]))
    assert "in no format that is known" in refused(place, b"weights: [1, 2]")
    assert "in no format that is known" in refused(place, b"")
    broken = kept(logistic("one_hot")).replace(b"__class__", b"__clash__")
    with pytest.raises(SpecError, match="cannot be read as a model of skops"):
        read(ModelFile(broken, "model.bin"))


def test_torchscript_without_its_digest_is_refused(place: Path) -> None:
    assert "not read on trust" in refused(place, torchscript(network()))


@pytest.mark.parametrize("name", ["safetensors", "onnx", "skops", "torchscript"])
def test_another_file_than_the_one_that_was_stated_is_refused(place: Path, name: str) -> None:
    assert "it is another file" in refused(place, FILES[name][0](), sha256="a" * 64)


@pytest.mark.parametrize(
    ("content", "inputs", "takes", "gets"),
    [
        (
            lambda: to_safetensors(network(4)),
            "one_hot",
            4,
            "7 (income, amount, purpose=buy, purpose=refinance, history=bad",
        ),
        (lambda: onnx_of(network(7)), "codes", 7, "4 (income, amount, purpose, history)"),
        (
            lambda: kept(logistic("one_hot")),
            "encoded",
            7,
            "5 (income, amount, purpose=buy, purpose=refinance, history)",
        ),
    ],
)
def test_a_model_of_another_width_is_refused(place: Path, content, inputs: str, takes: int, gets: str) -> None:
    told = refused(place, content(), inputs=inputs)
    assert f"model.bin takes {takes} inputs and would get {gets}" in told
    assert "set model.file.inputs to what it was fitted on (one_hot 7, codes 4, encoded 5)" in told


def test_a_module_of_another_width_is_refused_by_what_it_says_itself(place: Path) -> None:
    content = torchscript(network(4))
    told = refused(place, content, sha256=hashlib.sha256(content).hexdigest())
    assert "does not take the 7 inputs that it gets (income, amount" in told
    assert "shapes cannot be multiplied" in told


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: LogisticRegression().fit(x / x.max(), np.arange(500) % 3), "of the 3 classes .* a decision has two"),
        (lambda x: RandomForestClassifier(2).fit(x, np.zeros(500)), "of the 1 classes"),
        (lambda x: StandardScaler().fit(x), "is a StandardScaler without probabilities"),
        (lambda x: LogisticRegression(), "was not fitted"),
    ],
)
def test_what_is_no_fitted_classifier_of_two_classes_is_refused(model, words: str) -> None:
    content = kept(model(as_taken(loans(), "one_hot")))
    with pytest.raises(SpecError, match=words):
        read(ModelFile(content, "model.bin"))


def test_a_probability_is_between_0_and_1(place: Path) -> None:
    content = torchscript(network())
    options = {"sha256": hashlib.sha256(content).hexdigest(), "output": "probability"}
    assert "are no probabilities" in refused(place, content, **options)
    assert "which gives a logit" in refused(place, to_safetensors(network()), output="probability")
    linear = Network((network().weights[0][:1],), (np.zeros(1),), "relu")
    without = onnx_of(linear).replace(b"Sigmoid", b"Softmax")
    assert "not in a sigmoid" in refused(place, without, output="probability")
    assert tables(spec_with(place, onnx_of(linear), output="probability"))["models"].num_rows == 1


def test_scores_that_are_no_numbers_are_refused(place: Path) -> None:
    module = torch.nn.Sequential(to_module(network()), torch.nn.Threshold(0.0, float("nan")))
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(module), out)
    told = refused(place, out.getvalue(), sha256=hashlib.sha256(out.getvalue()).hexdigest())
    assert "gives no finite number for" in told


def test_a_network_that_does_not_fit_is_refused_as_its_file_is(place: Path) -> None:
    content = to_safetensors(network()).replace(b'"relu"', b'"tanh"')
    assert "model.bin: a network has the activation 'tanh'" in refused(place, content)


def test_a_stored_model_that_cannot_be_read_was_not_stored_here() -> None:
    for content in (pickle.dumps([1]), kept(StandardScaler().fit(np.eye(2)))):
        with pytest.raises(IntegrityError, match="a stored model cannot be read again"):
            stored(MODELS.build(fold=[0], content=[content]), Model())


def test_errors_of_a_file_have_their_place_in_the_spec(place: Path) -> None:
    with pytest.raises(SpecError) as caught:
        tables(spec_with(place, pickle.dumps([1])))
    assert caught.value.location == ("model", "file")


def test_a_missing_file_is_named_before_anything_is_run(place: Path) -> None:
    spec = spec_with(place, to_safetensors(network()))
    (place / "model.bin").unlink()
    with pytest.raises(
        InfrastructureError, match=r"no file at model\.file\.path .*model\.bin.*--set model\.file\.path"
    ):
        plan(spec)


def test_a_file_that_changes_while_the_audit_runs_is_refused(place: Path) -> None:
    spec = spec_with(place, to_safetensors(network()))
    steps = plan(spec).steps[:UNTIL_SCORE]
    before = score.score_settings(spec)
    (place / "model.bin").write_bytes(onnx_of(network()))
    with pytest.raises(InfrastructureError, match="changed while the audit ran"):
        call_plainly(steps)
    assert score.score_settings(spec) != before  # and so has another key


def test_outcomes_of_one_kind_leave_nothing_to_compare(place: Path) -> None:
    frame = pd.read_csv(place / "loans.csv", keep_default_na=False).assign(repaid="1")
    frame.to_csv(place / "loans.csv", index=False)
    text = FINANCIAL + "outcome: {column: repaid, favourable: [1], unfavourable: [0]}\n"
    spec = spec_with(place, to_safetensors(network()), text=text, **{**BOTH, "methods__cst": "null"})
    reasons = (
        call_plainly(plan(spec).steps[:-2])["verdicts"][0].to_pandas().query("theory == 'model_reasons'")["reason"]
    )
    assert reasons.str.contains("have the same label; CEC needs rows of both labels").any()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("{kind: file}", "a model of kind `file` needs `file: {path: ...}`"),
        ("{kind: net, file: {path: m.onnx}}", "a model of kind `file` needs"),
        ("{kind: file, file: {path: m.onnx}, split: holdout}", "`split`: how a model is fitted here"),
        ("{kind: file, file: {path: m.onnx}, folds: 5, holdout: 0.5}", "`folds` and `holdout`: how a model is fitted"),
        ("{kind: file, file: {path: m.onnx, sha256: abc}}", "String should match pattern"),
        ("{kind: file, file: {path: m.onnx, input: codes}}", "did you mean 'inputs'?"),
    ],
)
def test_specs_that_contradict_themselves(place: Path, model: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(place, model=model)
    assert words in str(caught.value)


def test_a_threshold_of_a_half_unless_another_is_given(place: Path) -> None:
    assert spec_of(place, model="{kind: file, file: {path: m}}").model.threshold == 0.5
    assert spec_of(place, model="{kind: file, file: {path: m}, threshold: 0.7}").model.threshold == 0.7
    paper = spec_of(place, model="{kind: file, file: {path: m}}", profile="paper")
    assert (paper.model.threshold, paper.model.split) == (0.5, "crossfit")
    assert validated(AuditSpec, paper.model_dump(mode="json")) == paper


def test_nothing_that_every_audit_imports_imports_torch() -> None:
    said = "import sys, tasks.plan, tasks.methods.cec.algorithm.detection\n"
    said += "import tasks.scoring.decision_makers, tasks.scoring.decider, tasks.scoring.decider\n"
    said += "print(sorted({'torch', 'skops', 'onnx'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", said], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
