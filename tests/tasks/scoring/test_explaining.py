"""Models given by a user: each format to its attributor, and what is not trusted refused."""

import hashlib
import io
import pickle
import warnings

import joblib
import numpy as np
import pytest
import torch
from completeness import completeness_error
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC
from torch_modules import to_module

from schemas.errors import IntegrityError, SpecError
from tasks.numerics.attributions import CLIP, Differences, Linear, Quadrature
from tasks.numerics.networks.network import Network, to_safetensors
from tasks.numerics.piecewise_attributions import Piecewise
from tasks.scoring import decider, models
from tasks.scoring.model_formats import network_of
from tasks.scoring.models import ModelFile, format_of, read

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # and still what users have

RNG = np.random.default_rng(0)
X = RNG.normal(3.0, 2.0, size=(300, 4))
Y = X[:, 0] - X[:, 1] + RNG.normal(size=300) > 0
BASELINE = np.broadcast_to(X.mean(axis=0), (20, 4))


def network(activation: str = "relu") -> Network:
    rng = np.random.default_rng(1)
    sizes = [(6, 4), (3, 6), (1, 3)]
    return Network(tuple(rng.normal(size=s) for s in sizes), tuple(rng.normal(size=s[0]) for s in sizes), activation)


def torchscript(module: torch.nn.Module) -> bytes:
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(module), out)
    return out.getvalue()


def given(content: bytes, **options) -> ModelFile:
    return ModelFile(content, "model.bin", **options)


def attributor(file: ModelFile, substitute: bool = False):
    return decider.attributor(read(file), file.name, substitute)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(("activation", "kind"), [("relu", Piecewise), ("softplus", Quadrature), ("silu", Quadrature)])
def test_a_network_in_safetensors(activation, kind):
    model = attributor(given(to_safetensors(network(activation))))
    assert isinstance(model, kind)
    np.testing.assert_array_equal(model.logit(X), network(activation).logit(X))


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(with_mean=False), StandardScaler(with_std=False), LogisticRegression()),
    ],
)
def test_linear_models_have_a_closed_form(estimator):
    fitted = estimator.fit(X, Y)
    model = attributor(given(models.kept(fitted)))
    assert isinstance(model, Linear)
    np.testing.assert_allclose(model.logit(X), fitted.decision_function(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=5),
        HistGradientBoostingClassifier(max_iter=5),
        make_pipeline(MinMaxScaler(), LogisticRegression()),
    ],
)
def test_models_without_a_gradient_need_the_substitute(estimator):
    fitted = estimator.fit(X, Y)
    content = models.kept(fitted)
    with pytest.raises(SpecError, match="no gradient to integrate; choose the substitute"):
        attributor(given(content))
    model = attributor(given(content), substitute=True)
    assert isinstance(model, Differences)
    chance = np.clip(fitted.predict_proba(X)[:, 1], CLIP, 1 - CLIP)
    np.testing.assert_allclose(1 / (1 + np.exp(-model.logit(X))), chance, rtol=1e-9)
    found = model.attribute(X[:20], BASELINE)
    assert (completeness_error(model, X[:20], BASELINE, found) < 1e-9).all()


def test_scikit_learn_models_that_do_not_fit_are_refused():
    from skops.io import dumps  # takes seconds: looks through all of scikit-learn

    with pytest.raises(SpecError, match="LinearSVC without probabilities"):
        attributor(given(dumps(LinearSVC().fit(X, Y))), substitute=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        unknown = MLPClassifier((3,), max_iter=2).fit(X, Y)
    with pytest.raises(SpecError, match="AdamOptimizer"):
        attributor(given(dumps(unknown)), substitute=True)


def test_torchscript_is_read_only_where_its_digest_is_stated():
    content = torchscript(to_module(network("silu")))
    with pytest.raises(SpecError, match="not read on trust"):
        attributor(given(content))
    with pytest.raises(SpecError, match="another file"):
        attributor(given(content, sha256="0" * 64))
    model = attributor(given(content, sha256=sha256(content).upper()))
    np.testing.assert_allclose(model.logit(X), network("silu").logit(X), rtol=1e-9)
    own = Quadrature(network("silu")).attribute(X[:20], BASELINE)
    np.testing.assert_allclose(model.attribute(X[:20], BASELINE), own, rtol=1e-6, atol=1e-9)


def test_torchscript_that_gives_probabilities_in_single_precision():
    module = torch.nn.Sequential(to_module(network("silu")).float(), torch.nn.Sigmoid())
    content = torchscript(module)
    model = attributor(given(content, sha256=sha256(content), output="probability"))
    inside = np.abs(network("silu").logit(X)) < 8
    np.testing.assert_allclose(model.logit(X)[inside], network("silu").logit(X)[inside], rtol=1e-2, atol=1e-3)
    assert inside.any()


def test_torchscript_that_torch_cannot_read_is_refused():
    content = torchscript(to_module(network()))
    broken = content.replace(b"__torch__", b"__truck__")
    with pytest.raises(SpecError, match="not TorchScript that this torch can read"):
        attributor(given(broken, sha256=sha256(broken)))


class Trap:
    """What a pickle can do when it is read."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


@pytest.mark.parametrize("write", [pickle.dump, joblib.dump, torch.save])
def test_pickles_are_never_read(write):
    out = io.BytesIO()
    write(Trap(), out)
    for stated in (None, sha256(out.getvalue())):
        with pytest.raises(SpecError, match="is a pickle"):
            attributor(given(out.getvalue(), sha256=stated))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"weights: [1, 2]", b"(lp0\nI1\na."])
def test_other_files_are_refused(content):
    assert format_of(content) == "unknown"
    with pytest.raises(SpecError, match="in no format that is known"):
        attributor(given(content))


def test_an_archive_of_something_else_is_refused():
    out = io.BytesIO()
    np.savez(out, weights=np.ones(3))
    assert format_of(out.getvalue()) == "unknown"


def test_a_network_that_does_not_fit_is_refused():
    content = to_safetensors(network()).replace(b'"relu"', b'"tanh"')
    with pytest.raises(IntegrityError, match="'tanh'"):
        attributor(given(content))


# ONNX: the library is an extra


def onnx_of(nodes, arrays, inputs=4, output="y") -> bytes:
    helper = pytest.importorskip("onnx").helper
    tensors = [
        helper.make_tensor(name, 1, np.shape(value), np.ravel(value).astype(np.float32).tolist())
        for name, value in arrays.items()
    ]
    made = [helper.make_node(op, into, [out], **more) for op, into, out, more in nodes]
    ends = [helper.make_tensor_value_info(name, 1, ["n", size]) for name, size in (("x", inputs), (output, 1))]
    graph = helper.make_graph(made, "graph", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def arrays_of(model: Network) -> dict[str, np.ndarray]:
    named = {f"w{layer}": weight for layer, weight in enumerate(model.weights)}
    return named | {f"b{layer}": bias for layer, bias in enumerate(model.biases)}


def gemm(layer: int, into: str, out: str, **more):
    return "Gemm", [into, f"w{layer}", f"b{layer}"], out, {"transB": 1, **more}


def test_a_relu_network_in_onnx():
    nodes = [gemm(0, "x", "a"), ("Relu", ["a"], "b", {}), ("Dropout", ["b"], "c", {}), gemm(1, "c", "d")]
    nodes += [("Relu", ["d"], "e", {}), gemm(2, "e", "f"), ("Sigmoid", ["f"], "y", {})]
    content = onnx_of(nodes, arrays_of(network()))
    assert format_of(content) == "onnx"
    model = attributor(given(content))
    assert isinstance(model, Piecewise)
    np.testing.assert_allclose(model.logit(X), network().logit(X), rtol=1e-5, atol=1e-5)


def test_silu_by_its_parts_and_products_with_sums():
    one = network("silu")
    nodes = []
    for layer, into in enumerate(["x", "s0", "s1"]):
        out = f"z{layer}" if layer < 2 else "y"
        nodes += [("MatMul", [into, f"w{layer}"], f"m{layer}", {}), ("Add", [f"m{layer}", f"b{layer}"], out, {})]
        if layer < 2:
            nodes += [("Sigmoid", [out], f"g{layer}", {}), ("Mul", [out, f"g{layer}"], f"s{layer}", {})]
    arrays = {name: value.T for name, value in arrays_of(one).items()}
    found = network_of(onnx_of(nodes, arrays), "silu.onnx")
    assert found.activation == "silu"
    np.testing.assert_allclose(found.logit(X), one.logit(X), rtol=1e-5, atol=1e-5)


def test_factors_of_gemm():
    arrays = {"w0": np.array([[1.0], [2.0], [3.0], [4.0]]), "b0": np.array([[10.0]])}
    found = network_of(onnx_of([gemm(0, "x", "y", transB=0, alpha=2.0, beta=0.5)], arrays), "linear.onnx")
    assert found.logit(np.ones((1, 4))).tolist() == [25.0]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([gemm(0, "x", "a"), ("Tanh", ["a"], "b", {}), gemm(1, "b", "y")], "operator Tanh"),
        ([gemm(0, "x", "a"), gemm(1, "a", "y")], "made of"),
        ([gemm(0, "x", "a"), ("Relu", ["a"], "b", {}), gemm(1, "x", "y")], "branches"),
        ([gemm(0, "x", "a"), ("Relu", ["a"], "b", {}), ("Add", ["a", "b"], "y", {})], "branches"),
        ([gemm(0, "x", "a"), ("Relu", ["a"], "b", {})], "does not end in one output"),
        ([gemm(0, "x", "a"), ("Sigmoid", ["a"], "b", {}), ("Mul", ["b", "b0"], "y", {})], "multiplies a sigmoid"),
        ([("Gemm", ["x", "x"], "y", {})], "computes 'x'"),
        ([gemm(0, "x", "y", transA=1)], "transposes its rows"),
    ],
)
def test_graphs_that_are_no_network_are_refused(nodes, words):
    with pytest.raises(SpecError, match=words):
        network_of(onnx_of(nodes, arrays_of(network())), "model.onnx")


def test_files_that_are_no_onnx_are_refused():
    pytest.importorskip("onnx")
    with pytest.raises(SpecError, match="not a model in the ONNX format"):
        attributor(given(b"\x08 not at all"))
