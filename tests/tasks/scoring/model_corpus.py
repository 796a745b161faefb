"""Altered model files: one byte turned round in each format, and files made by hand to end or to hold their reader."""

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from schemas.errors import SpecError
from tasks.numerics.networks.network import Network, to_safetensors
from tasks.scoring.model_formats import kept
from tasks.scoring.model_reader.confined import opened
from tasks.scoring.models import ModelFile, probabilities

WIDTH = 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, WIDTH))
Y = X[:, 0] - X[:, 1] + RNG.normal(size=200) > 0
FLIPS = 20


@cache
def forest() -> bytes:
    from sklearn.ensemble import RandomForestClassifier

    return kept(RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, Y))


@cache
def boosted() -> bytes:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return kept(HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(X, Y))


def network() -> Network:
    rng = np.random.default_rng(1)
    return Network((rng.normal(size=(6, WIDTH)), rng.normal(size=(1, 6))), (rng.normal(size=6), np.zeros(1)), "relu")


def onnx(change: Callable = lambda graph: None) -> bytes:
    from onnx import helper

    one, into, arrays, nodes = network(), "x", [], []
    for layer, (weight, bias) in enumerate(zip(one.weights, one.biases, strict=True)):
        for name, values in ((f"w{layer}", weight), (f"b{layer}", bias)):
            arrays.append(helper.make_tensor(name, 1, values.shape, values.astype(np.float32).tobytes(), raw=True))
        nodes.append(helper.make_node("Gemm", [into, f"w{layer}", f"b{layer}"], [f"z{layer}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"z{layer}"], [into := f"a{layer}"]))
    nodes[-1] = helper.make_node("Sigmoid", ["z1"], ["y"])
    ends = [helper.make_tensor_value_info(n, 1, ["n", size]) for n, size in (("x", WIDTH), ("y", 1))]
    model = helper.make_model(helper.make_graph(nodes, "graph", ends[:1], ends[1:], arrays))
    change(model.graph)
    return model.SerializeToString()


@cache
def torchscript() -> bytes:
    import torch

    out, layers = io.BytesIO(), (torch.nn.Linear(WIDTH, 3), torch.nn.SiLU(), torch.nn.Linear(3, 1))
    torch.jit.save(torch.jit.script(torch.nn.Sequential(*layers)), out)
    return out.getvalue()


SOUND: dict[str, Callable[[], bytes]] = {
    "forest.skops": forest,
    "boosted.skops": boosted,
    "net.onnx": onnx,
    "net.safetensors": lambda: to_safetensors(network()),
    "net.pt": torchscript,
}


def flipped(content: bytes, places: int) -> Iterator[bytes]:
    """The file with the bits of one byte turned round, at places spread over all of it."""
    for at in np.linspace(0, len(content) - 1, FLIPS).astype(int)[:: FLIPS // places]:
        yield content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]


def archived(members: list[tuple[str, bytes]], packed: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def members(content: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def with_nodes(content: bytes, field: str, change: Callable[[np.ndarray], np.ndarray | None]) -> bytes:
    """A file of skops whose first table of nodes with a field is changed."""
    found = members(content)
    for place, (name, member) in enumerate(found):
        array = np.load(io.BytesIO(member)) if name.endswith(".npy") else np.zeros(0)
        if field in (array.dtype.names or ()):
            changed, out = change(array), io.BytesIO()
            np.save(out, array if changed is None else changed)
            found[place] = (name, out.getvalue())
            return archived(found)
    raise AssertionError(field)


def node(field: str, value: int, at: int = 0) -> Callable[[np.ndarray], None]:
    def change(nodes: np.ndarray) -> None:
        nodes[field][at] = value

    return change


def with_schema(content: bytes, change: Callable[[str], str]) -> bytes:
    return archived([(n, change(c.decode()).encode() if n == "schema.json" else c) for n, c in members(content)])


def header(said: object, payload: bytes = b"") -> bytes:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return len(text).to_bytes(8, "little") + text + payload


def weights(value: float) -> Callable:
    def change(graph) -> None:
        graph.initializer[2].raw_data = np.full(6, value, np.float32).tobytes()

    return change


def _shape(*dims: int) -> Callable:
    def change(graph) -> None:
        del graph.initializer[0].dims[:]
        graph.initializer[0].dims.extend(dims)

    return change


def _no_weights(graph) -> None:
    del graph.node[0].input[1:]


def _twice(graph) -> None:
    graph.node[0].op_type, graph.node[1].op_type = "MatMul", "Add"
    del graph.node[0].input[2:], graph.node[0].attribute[:]
    del graph.node[1].input[:]
    graph.node[1].input.extend(["z0", "z0"])


HAND_MADE: dict[str, tuple[Callable[[], bytes], str]] = {
    "forest, child beyond": (
        lambda: with_nodes(forest(), "left_child", node("left_child", 10**9)),
        r"node 0 of tree 0 points to node 1000000000 of \d+; write it again",
    ),
    "forest, child points back": (
        lambda: with_nodes(forest(), "left_child", node("right_child", 0, 1)),
        "node 1 of tree 0 points to node 0 of",
    ),
    "forest, one child": (lambda: with_nodes(forest(), "left_child", node("left_child", -1)), "points to node -1 of"),
    "forest, input beyond": (
        lambda: with_nodes(forest(), "left_child", node("feature", 10**6)),
        "node 0 of tree 0 asks for an input beyond its 4",
    ),
    "forest, nodes cut short": (
        lambda: with_nodes(forest(), "left_child", lambda n: n[:3]),
        "declares .* nodes and has 3",
    ),
    "boosted, child beyond": (
        lambda: with_nodes(boosted(), "is_leaf", node("left", 10**9)),
        "node 0 of tree 0 points to node 1000000000 of",
    ),
    "boosted, child points back": (lambda: with_nodes(boosted(), "is_leaf", node("right", 0)), "points to node 0 of"),
    "boosted, input beyond": (
        lambda: with_nodes(boosted(), "is_leaf", node("feature_idx", 4)),
        "asks for an input beyond its 4",
    ),
    "boosted, nodes cut short": (lambda: with_nodes(boosted(), "is_leaf", lambda n: n[:2]), "points to node"),
    "boosted, no nodes": (lambda: with_nodes(boosted(), "is_leaf", lambda n: n[:0]), r"nodes of the shape \(0,\)"),
    "boosted, categories beyond": (
        lambda: with_nodes(boosted(), "is_leaf", node("is_categorical", 1)),
        "categories beyond its 0",
    ),
    "boosted, direction": (
        lambda: with_nodes(boosted(), "is_leaf", node("missing_go_to_left", 7)),
        "neither yes nor no in missing_go_to_left",
    ),
    "forest whose trees are wider": (
        lambda: with_schema(forest(), lambda schema: _narrowed(schema)),
        "asks for an input beyond its 2",
    ),
    "schema nested": (
        lambda: archived([("schema.json", b'{"a":' + b"[" * 10**5)]),
        "is nested 100,001 levels deep; a model has at most 200",
    ),
    "schema too large": (lambda: archived([("schema.json", b" " * (17 * 2**20))]), "at most 16,777,216 are read"),
    "archive that unpacks to more": (
        lambda: archived([("a.npy", bytes(64 * 2**20)), ("schema.json", b"{}")], zipfile.ZIP_DEFLATED),
        r"'a\.npy' unpacks to 67,108,864 bytes from",
    ),
    "archive that says 2.5 GB": (
        lambda: _sized(archived([("a.npy", bytes(100)), ("schema.json", b"{}")]), 2_500_000_000),
        r"unpacks to 2,500,000,000 bytes; at most 1,000,000,000",
    ),
    "archive, outside": (
        lambda: archived([("../../etc/a", b""), ("schema.json", b"{}")]),
        "'../../etc/a' would lie outside",
    ),
    "archive, absolute": (lambda: archived([("/a", b""), ("schema.json", b"{}")]), "'/a' would lie outside"),
    "archive, many files": (
        lambda: archived([(str(n), b"") for n in range(10_001)] + [("schema.json", b"{}")]),
        "an archive of 10,002 files; a model has at most 10,000",
    ),
    "archive, one name twice": (
        lambda: archived([("aa", b""), ("ab", b""), ("schema.json", b"{}")]).replace(b"ab", b"aa"),
        "two files of the name 'aa'",
    ),
    "onnx, operator without weights": (lambda: onnx(_no_weights), "operator 0, a Gemm, has 1 inputs; it takes 2 to 3"),
    "onnx, sum of a thing with itself": (lambda: onnx(_twice), "adds a thing to itself"),
    "onnx, shape beyond its bytes": (lambda: onnx(_shape(2**20, 2**20)), "does not fit its bytes"),
    "onnx, shape below 0": (lambda: onnx(_shape(-6, -4)), "has a size below 0"),
    "onnx, no numbers": (lambda: onnx(weights(np.nan)), "layer 1 has weights that are not numbers"),
    "safetensors, no numbers": (
        lambda: to_safetensors(network()).replace(network().weights[1].tobytes(), np.full(6, np.inf).tobytes()),
        "parameters that are not finite",
    ),
    "safetensors, beyond the file": (
        lambda: header({"layers.0.weight": {"dtype": "F64", "shape": [10**9], "data_offsets": [0, 8 * 10**9]}}),
        "not in the safetensors format",
    ),
    "safetensors, header of 200 MB": (
        lambda: (2 * 10**8).to_bytes(8, "little") + b"{" + bytes(2 * 10**8),
        "a header of 200,000,000 bytes",
    ),
    "safetensors, nested": (lambda: header(b'{"a":' * 10**5), "not in the safetensors format"),
}


def _narrowed(schema: str) -> str:
    """A model that says it takes two inputs; what it is made of stays."""
    return re.sub(r'("n_features_in_": {[^{}]*"content": )"4"', r'\g<1>"2"', schema, count=1)


def _sized(content: bytes, size: int) -> bytes:
    """An archive whose directory says another size of its first file."""
    at = content.index(b"PK\x01\x02") + 24
    return content[:at] + size.to_bytes(4, "little") + content[at + 4 :]


def outcome(name: str, content: bytes, sha256: str | None = None) -> str:
    """What becomes of a file that is read, and asked for every row: the refusal, or nothing."""
    try:
        probabilities(opened(ModelFile(content, name, sha256)), X)
    except SpecError as error:
        return str(error)
    return ""
