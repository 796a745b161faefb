"""Formats of model files: archives, ONNX graphs and skops, checked before they are read."""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schemas.errors import InfrastructureError, SpecError
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.networks.network import Network

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin


# --------------------------------------------------------------------------------------------------------------------
# Judges an archive of a stranger by its directory, before a byte of it is unpacked.
#
# Scope: archives of skops and TorchScript, which are zip files. What their members say is for their own readers.


MEMBERS = 10_000
MEMBER = 10**9
UNPACKED = 2 * 10**9
RATIO = 200
"""Unpacked bytes for each packed one; 200 times 10 kB of zeros are packed so well and do no harm."""
HARMLESS = 2**20
"""Members that unpack to no more than this may have any ratio."""

SCHEMA = "schema.json"
SCHEMA_SIZE = 16 * 2**20
NESTED = 200

TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def check_archive(content: bytes, name: str) -> None:
    """Refuse an archive that is too large, or has names that are not plain.

    Args:
        content: the file.
        name: how messages call it.

    Raises:
        SpecError: it is.
    """
    members = zipfile.ZipFile(io.BytesIO(content)).infolist()
    if len(members) > MEMBERS:
        raise SpecError(f"{name} is an archive of {len(members):,} files; a model has at most {MEMBERS:,}: {_AGAIN}")
    twice = [member_name for member_name, times in Counter(member.filename for member in members).items() if times > 1]
    if twice:
        raise SpecError(f"{name} is an archive with two files of the name {_shown(twice[0])}; {_AGAIN}")
    for member in members:
        size, path = member.file_size, PurePosixPath(member.filename)
        what = f"{name} is an archive whose file {_shown(member.filename)}"
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
            raise SpecError(f"{what} would lie outside of it; {_AGAIN}")
        most = SCHEMA_SIZE if member.filename == SCHEMA else MEMBER
        if size > most:
            raise SpecError(f"{what} unpacks to {size:,} bytes; at most {most:,} are read: {_AGAIN}")
        if size > HARMLESS and size > RATIO * max(member.compress_size, 1):
            raise SpecError(f"{what} unpacks to {size:,} bytes from {member.compress_size:,}; {_AGAIN}")
    total = sum(member.file_size for member in members)
    if total > UNPACKED:
        raise SpecError(f"{name} unpacks to {total:,} bytes; a model has at most {UNPACKED:,}: {_AGAIN}")


_AGAIN = "write it again, or give a smaller model"


def check_schema(schema: bytes, name: str) -> None:
    """Refuse a schema that is nested so deeply that no reader comes back from it.

    Raises:
        SpecError: it is.
    """
    signs = np.frombuffer(TEXTS.sub(b"", schema), np.uint8)
    steps = np.isin(signs, list(b"[{")).astype(np.int64) - np.isin(signs, list(b"]}"))
    depth = int(steps.cumsum().max(initial=0))
    if depth > NESTED:
        raise SpecError(f"{name} is nested {depth:,} levels deep; a model has at most {NESTED}: {_AGAIN}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


# --------------------------------------------------------------------------------------------------------------------
# Counts what the operators of an ONNX graph hold, and holds the sizes of its arrays against their bytes.
#
# The library gives the fields of a file as they are written: an operator may lack its inputs, and an array may say that
# it is larger than the file. Scope: single operators and arrays. How they chain: ``onnx_graphs``.


INPUTS = {
    "Gemm": (2, 3),
    "MatMul": (2, 2),
    "Add": (2, 2),
    "Mul": (2, 2),
    "Sigmoid": (1, 1),
    "Relu": (1, 1),
    "Softplus": (1, 1),
    "Identity": (1, 1),
    "Dropout": (1, 3),
    "Constant": (0, 0),
}
"""Fewest and most inputs of each operator that is read; of others, whatever they have."""


def check_operators(graph: Any, name: str) -> None:
    """Refuse a graph with an operator without an input, its output or the value that it holds.

    Raises:
        SpecError: it has one.
    """
    for place, node in enumerate(graph.node):
        what = f"{name}: operator {place}, a {node.op_type[:40]},"
        fewest, most = INPUTS.get(node.op_type, (0, len(node.input)))
        if not fewest <= len(node.input) <= most:
            raise SpecError(
                f"{what} has {len(node.input)} inputs; it takes {fewest} to {most}: {_ONNX_OPERATORS_AGAIN}"
            )
        if not node.output:
            raise SpecError(f"{what} has no output; {_ONNX_OPERATORS_AGAIN}")
        if node.op_type == "Constant" and [attribute.name for attribute in node.attribute] != ["value"]:
            raise SpecError(f"{what} holds no array; {_ONNX_OPERATORS_AGAIN}")


def array_of(tensor: Any, name: str) -> Floats:
    """The array that a graph holds.

    Raises:
        SpecError: its shape and its bytes do not agree, or it holds no numbers.
    """
    what = f"{name}: the array {tensor.name[:80]!r} of the shape {tuple(tensor.dims)[:8]}"
    if any(size < 0 for size in tensor.dims):
        raise SpecError(f"{what} has a size below 0; {_ONNX_OPERATORS_AGAIN}")
    try:
        array: Floats = import_module("onnx").numpy_helper.to_array(tensor)
    except Exception as error:  # of the library, which has several
        raise SpecError(f"{what} does not fit its bytes: {error}; {_ONNX_OPERATORS_AGAIN}") from error
    if array.dtype.kind not in "fiu" or not np.prod(tensor.dims, dtype=float) == array.size:
        raise SpecError(f"{what} holds no numbers; {_ONNX_OPERATORS_AGAIN}")
    return array


_ONNX_OPERATORS_AGAIN = "write it again"


# --------------------------------------------------------------------------------------------------------------------
# Reads ONNX graphs as networks: chains of linear layers with one kind of activation, ending in the logit.
#
# The graph is read as data and never run. Other graphs are refused by name: they have no closed form here, and no
# maintained library turns any graph into torch.
#
# Scope: the walk along the chain. Networks: ``tasks.numerics.networks.network``.


ACTIVATIONS = {"Relu": "relu", "Softplus": "softplus"}
"""Operators that are activations by themselves; SiLU is a Sigmoid and a Mul."""

PASSED = ("Identity", "Dropout")
"""Operators that change nothing in evaluation."""

Layer = tuple[Floats, Floats]
"""Weights ``(out, in)`` and biases ``(out,)``."""


def network_of(content: bytes, name: str, output: Literal["logit", "probability"] = "logit") -> Network:
    """The network that an ONNX file describes; a sigmoid at its end is taken off.

    Args:
        content: The file.
        name: How messages call it.
        output: What its user says that it gives; a probability takes a sigmoid at the end.

    Raises:
        SpecError: It is no ONNX file, or no such network.
        IntegrityError: Its layers do not fit together.
        InfrastructureError: The library ``onnx`` is not installed.
    """
    nodes, arrays = _operators(content, name)
    if output == "probability" and nodes[-1].op_type != "Sigmoid":
        message = f"{name} ends in {nodes[-1].op_type} and not in a sigmoid, so that it gives a logit"
        raise SpecError(f"{message}, but `output` is probability in the spec; leave `output` out")
    parts = list(_parts(nodes, arrays, name))
    layers, kinds = parts[::2], parts[1::2]
    part_kinds = [part if isinstance(part, str) else "linear" for part in parts]
    alternating = len(layers) == len(kinds) + 1 and set(part_kinds[::2]) == {"linear"}
    if not alternating or "linear" in part_kinds[1::2] or len(set(part_kinds[1::2])) > 1:
        raise SpecError(f"{name} is made of {part_kinds}; {_EXPECTED}")
    linear = [part for part in layers if not isinstance(part, str)]
    for number, (weight, bias) in enumerate(linear):
        if weight.ndim != 2 or not weight.size:
            raise SpecError(f"{name}: layer {number} has weights of the shape {weight.shape}; {_EXPECTED}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise SpecError(f"{name}: layer {number} has weights that are not numbers; train it and write it again")
    weights, biases = zip(*linear, strict=True)
    return Network(weights, biases, kinds[0] if kinds else "relu")  # type: ignore[arg-type]


_EXPECTED = "expected Gemm or MatMul and Add, with Relu, Softplus or SiLU between them, and one logit at the end"


def _operators(content: bytes, name: str) -> tuple[list[Any], dict[str, Floats]]:
    """The operators between input and output, each with the output of the previous one as its input; arrays by name."""
    try:
        onnx = import_module("onnx")
    except ImportError as error:
        raise InfrastructureError(f"{name} is ONNX, and reading it needs `pip install onnx`") from error
    try:
        graph = onnx.load_model_from_string(content).graph
    except Exception as error:  # of protobuf, which has several
        raise SpecError(f"{name} is not a model in the ONNX format: {error}") from error
    check_operators(graph, name)
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    tensors |= {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors.values()):
        raise SpecError(f"{name} keeps its parameters in another file; save it with its parameters inside")
    arrays = {key: array_of(tensor, name) for key, tensor in tensors.items()}
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    outputs = {node.output[0] for node in nodes}
    earlier = [value.name for value in graph.input if value.name not in arrays]
    if len(earlier) != 1:
        raise SpecError(f"{name} takes the inputs {earlier}; expected one, the features of each row")
    for node in nodes:
        # Mul takes the input of the Sigmoid before it too, which the walk over the parts looks at
        if earlier[-1] not in node.input or (node.op_type != "Mul" and len(outputs & set(node.input)) > 1):
            raise SpecError(f"{name} branches at the operator {node.op_type}; {_EXPECTED}")
        earlier.append(node.output[0])
    if not nodes or [value.name for value in graph.output] != earlier[-1:]:
        raise SpecError(f"{name} does not end in one output at the end of its chain; {_EXPECTED}")
    return [node for node in nodes if node.op_type not in PASSED], arrays


def _parts(nodes: list[Any], arrays: Mapping[str, Floats], name: str) -> Iterator[Layer | str]:
    """The layers and the names of the activations, in their order."""
    nodes = list(nodes)
    while nodes:
        node = nodes.pop(0)
        following = nodes[0].op_type if nodes else ""
        if node.op_type == "Gemm":
            attributes = {
                attribute.name: attribute.f if attribute.name in ("alpha", "beta") else attribute.i
                for attribute in node.attribute
            }
            if attributes.get("transA"):
                raise SpecError(f"{name} transposes its rows; {_EXPECTED}")
            gemm_weight = attributes.get("alpha", 1.0) * _array(node.input[1], arrays, name)
            gemm_weight = gemm_weight if attributes.get("transB") else gemm_weight.T
            bias = (
                attributes.get("beta", 1.0) * _array(node.input[2], arrays, name)
                if len(node.input) > 2
                else np.zeros(1)
            )
            gemm = gemm_weight, _per_unit(bias, gemm_weight)
            yield gemm
        elif node.op_type == "MatMul" and following == "Add":
            weight = _array(node.input[1], arrays, name).T
            biases = [
                _array(tensor_name, arrays, name) for tensor_name in nodes.pop(0).input if tensor_name != node.output[0]
            ]
            if len(biases) != 1:
                raise SpecError(f"{name} adds a thing to itself; {_EXPECTED}")
            yield weight, _per_unit(biases[0], weight)
        elif node.op_type == "Sigmoid" and following == "Mul":
            if sorted(nodes.pop(0).input) != sorted([node.input[0], node.output[0]]):
                raise SpecError(f"{name} multiplies a sigmoid by another thing than what went into it; {_EXPECTED}")
            yield "silu"
        elif node.op_type == "Sigmoid" and not nodes:
            return  # what goes into it is the logit
        elif node.op_type in ACTIVATIONS:
            yield ACTIVATIONS[node.op_type]
        else:
            raise SpecError(f"{name} has the operator {node.op_type}; {_EXPECTED}")


def _per_unit(bias: Floats, weight: Floats) -> Floats:
    """Biases as ONNX lets them be written, a number or a row, as one for each unit."""
    return np.full(len(weight), bias.ravel()[0]) if bias.size == 1 else bias.ravel()


def _array(tensor: str, arrays: Mapping[str, Floats], name: str) -> Floats:
    if tensor not in arrays:
        raise SpecError(f"{name} computes {tensor!r}, where a network holds its parameters; {_EXPECTED}")
    return np.asarray(arrays[tensor], np.float64)


# --------------------------------------------------------------------------------------------------------------------
# Checks the nodes of decision trees as data, before a tree is made of them.
#
# scikit-learn follows the numbers of children and inputs without looking whether they are there: a wrong one ends the
# process, and one that points back never ends. Children come after their parents in every tree that it writes, so that
# a tree whose children do has no loop.
#
# Scope: arrays. Where they are in a file of skops: ``skops_models``.


LEAF = -1
"""What scikit-learn writes in place of a leaf's children."""

FIELDS = ("left_child", "right_child", "feature")
BOOSTED = ("left", "right", "feature_idx", "is_leaf", "is_categorical", "missing_go_to_left", "bitset_idx")
WORDS = 8
"""Of 32 bits: a bit for each of 256 categories."""


def check_tree(args: Sequence[Any], state: Mapping[str, Any], inputs: int | None, what: str) -> None:
    """Refuse what scikit-learn would make a faulty tree of.

    Args:
        args: with which a ``Tree`` is made: inputs, classes of each output, outputs.
        state: what it is filled with: ``node_count``, ``nodes``, ``values``.
        inputs: that it gets, if that is known.
        what: how messages call it, as `model.skops: tree 0`.

    Raises:
        SpecError: it would.
    """
    tree_inputs, classes, outputs = _whole(args[0], what), np.asarray(args[1]), _whole(args[2], what)
    nodes, values = np.asarray(state["nodes"]), np.asarray(state["values"])
    count = _whole(state["node_count"], what)
    if nodes.ndim != 1 or len(nodes) != count or len(values) != count or count < 1:
        raise SpecError(
            f"{what} declares {count} nodes and has {len(nodes)} with {len(values)} values; {_ONNX_OPERATORS_AGAIN}"
        )
    if outputs != 1 or classes.shape != (1,):
        raise SpecError(
            f"{what} has {outputs} outputs and classes of {classes.shape}; a decision has one: {_ONNX_OPERATORS_AGAIN}"
        )
    if inputs is not None and tree_inputs != inputs:
        raise SpecError(f"{what} takes {tree_inputs} inputs, and the model around it {inputs}; {_ONNX_OPERATORS_AGAIN}")
    _check_fields(nodes, FIELDS, what)
    left_child, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
    inner = (left_child != LEAF) | (right != LEAF)
    _check_children((left_child, right), inner, what)
    _check_inputs(nodes["feature"].astype(np.int64), inner, tree_inputs, what)


def check_boosted(state: Mapping[str, Any], inputs: int | None, what: str) -> None:
    """Refuse what scikit-learn would make a faulty tree of a boosted model of.

    Args:
        state: what a ``TreePredictor`` is filled with: ``nodes``, and the bits of categories.
        inputs: that it gets, if that is known.
        what: how messages call it.

    Raises:
        SpecError: it would.
    """
    nodes, bits = np.asarray(state["nodes"]), np.asarray(state["raw_left_cat_bitsets"])
    if nodes.ndim != 1 or not len(nodes):
        raise SpecError(f"{what} has nodes of the shape {nodes.shape}; {_ONNX_OPERATORS_AGAIN}")
    _check_fields(nodes, BOOSTED, what)
    inner = nodes["is_leaf"] == 0
    _check_children((nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)), inner, what)
    _check_inputs(nodes["feature_idx"].astype(np.int64), inner, inputs, what)
    for field in ("is_leaf", "is_categorical", "missing_go_to_left"):
        _refuse(nodes[field] > 1, what, f"says neither yes nor no in {field}")
    by_category = inner & (nodes["is_categorical"] != 0)
    if by_category.any() and (bits.ndim != 2 or bits.shape[1] != WORDS):
        raise SpecError(f"{what} has categories of the shape {bits.shape}; {_ONNX_OPERATORS_AGAIN}")
    _refuse(by_category & (nodes["bitset_idx"] >= len(bits)), what, f"asks for categories beyond its {len(bits)}")


def _whole(number: Any, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise SpecError(f"{what} has {number!r} where it counts; {_ONNX_OPERATORS_AGAIN}")
    return int(number)


def _check_fields(nodes: Any, fields: Sequence[str], what: str) -> None:
    missing = [field for field in fields if field not in (nodes.dtype.names or ())]
    if missing:
        raise SpecError(f"{what} has nodes without {', '.join(missing)}; {_ONNX_OPERATORS_AGAIN}")


def _check_children(children: tuple[Longs, Longs], inner: Bools, what: str) -> None:
    at = np.arange(len(inner))
    for child in children:
        wrong = inner & ((child <= at) | (child >= len(inner)))
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            model_name, _, tree = what.rpartition(": ")
            message = f"{model_name}: node {node} of {tree} points to node {child[node]} of {len(inner)}"
            raise SpecError(f"{message}; {_ONNX_OPERATORS_AGAIN}")


def _check_inputs(feature: Longs, inner: Bools, inputs: int | None, what: str) -> None:
    most = np.inf if inputs is None else inputs
    _refuse(inner & ((feature < 0) | (feature >= most)), what, f"asks for an input beyond its {inputs}")


def _refuse(wrong: Bools, what: str, fault: str) -> None:
    if wrong.any():
        model_name, _, tree = what.rpartition(": ")
        raise SpecError(
            f"{model_name}: node {int(np.flatnonzero(wrong)[0])} of {tree} {fault}; {_ONNX_OPERATORS_AGAIN}"
        )


# --------------------------------------------------------------------------------------------------------------------
# Looks at the trees in a file of skops before anything is made of it.
#
# skops lays a file out as a tree of its own nodes, each a part of the model that is still to be made. Arrays are made
# of the parts that hold them and no other; whether they are those of a sound tree says ``trees``.


DIRECT = ("sklearn.ensemble._forest", "sklearn.ensemble._gb")
"""Ensembles that hand rows to their trees without holding the widths against each other."""


def check_parts(root: Any, name: str) -> list[Any]:
    """Refuse a model with a faulty tree; returns those parts of it that are boosted trees with categories.

    Args:
        root: the node of skops for the whole model.
        name: how messages call the model.

    Raises:
        SpecError: it has one.
    """
    boosted, number = [], 0
    for part, inputs in _parts_of_model(root):
        what = f"{name}: tree {number}"
        if part.class_name == "TreePredictor":
            check_boosted(part.attrs.construct(), inputs, what)
        elif hasattr(part, "constructor") and part.constructor.class_name == "Tree":
            check_tree(part.args.construct(), part.attrs.construct(), inputs, what)
        else:
            boosted += [part] if part.class_name.startswith("HistGradientBoosting") else []
            continue
        number += 1
    return boosted


def check_categories(model: Any, name: str) -> None:
    """Refuse boosted trees that ask for the category of an input that has none.

    Raises:
        SpecError: they do.
    """
    by_category = np.asarray(model._bin_mapper.is_categorical_, dtype=bool)  # scikit-learn shows it nowhere else
    if by_category.shape != (model.n_features_in_,):
        message = f"{name} says of {by_category.size} inputs whether they are categories, and takes"
        raise SpecError(f"{message} {model.n_features_in_}; write it again")
    for predictor in (predictor for round_ in model._predictors for predictor in round_):
        split_features = predictor.nodes["feature_idx"][
            (predictor.nodes["is_leaf"] == 0) & (predictor.nodes["is_categorical"] != 0)
        ]
        if not by_category[split_features].all():
            raise SpecError(f"{name} uses the category of an input that is a number; write it again")


def _parts_of_model(root: Any) -> Iterator[tuple[Any, int | None]]:
    """Every object of the model, in their order, with the number of its inputs if that is declared."""
    stack: list[tuple[Any, int | None, bool]] = [(root, None, False)]
    visited: set[tuple[int, int | None, bool]] = set()
    while stack:
        part, inputs, direct = stack.pop()
        part = getattr(part, "cached", part)  # a part that was met before, and may be handed to another model here
        if (id(part), inputs, direct) in visited:
            continue
        visited.add((id(part), inputs, direct))
        attributes = getattr(getattr(part, "attrs", None), "content", None)
        declared: Any = attributes.get("n_features_in_") if isinstance(attributes, dict) else None
        number = None if declared is None else getattr(declared, "cached", declared).construct()
        if part.module_name == "sklearn.pipeline":
            inputs, direct = None, False  # its steps change how many there are
        elif isinstance(number, int | np.integer) and not isinstance(number, bool):
            inputs, direct = (inputs if direct else int(number)), part.module_name in DIRECT
        yield part, inputs
        children: list[tuple[Any, int | None, bool]] = []
        for child in part.children.values():
            nodes = child.values() if isinstance(child, dict) else child if isinstance(child, list) else [child]
            children += [(node, inputs, direct) for node in nodes if hasattr(node, "children")]
        stack += reversed(children)


# --------------------------------------------------------------------------------------------------------------------
# Models of scikit-learn as bytes and back, in the format of skops, which runs no code when it is read.
#
# skops writes the time, addresses of objects, and padding between the fields of a tree's nodes. All three are replaced,
# so that the key of a stage that reads models depends on the models alone.


TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
"""What forests and boosted trees are made of: arrays of nodes, which skops does not count as harmless by itself."""


def kept(model: "ClassifierMixin") -> bytes:
    """A fitted model as bytes that depend on nothing else."""
    import skops.io  # seconds to import, and only a fit needs it

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as written:
        files = {name: written.read(name) for name in written.namelist()}
    order: dict[str, str] = {}
    schema = _numbered(json.loads(files.pop(SCHEMA)), order)
    named = []
    for name, content in files.items():
        array = np.load(io.BytesIO(content), allow_pickle=False)
        if array.dtype.names:  # zeros between the fields of its records
            clean, file = np.zeros(array.shape, array.dtype), io.BytesIO()
            for field in array.dtype.names:
                clean[field] = array[field]
            np.save(file, clean, allow_pickle=False)
            content = file.getvalue()
        named.append((_renamed(name, order), content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in (*sorted(named), (SCHEMA, json.dumps(schema).encode())):
            archive.writestr(zipfile.ZipInfo(name), content)  # of 1980, as any file without a time
    return out.getvalue()


def classifier(content: bytes, name: str) -> "ClassifierMixin":
    """A fitted classifier of two classes, made of scikit-learn's own harmless parts and of trees.

    Raises:
        SpecError: It is something else, or no file of skops at all.
    """
    try:
        from skops.io._audit import get_tree
        from skops.io._utils import read_schema

        # made as ``skops.io.loads`` makes it, but only once its trees were checked
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_schema(archive.read(SCHEMA), name)
            schema, context = read_schema(archive)
            root = get_tree(schema, context, trusted=list(TREES))
        unknown = sorted(root.get_unsafe_set() - set(TREES))
        if unknown:
            message = f"{name} holds the types {unknown}, which are not known to be harmless"
            raise SpecError(f"{message}; give a model of scikit-learn that consists only of scikit-learn parts")
        boosted = check_parts(root, name)
        model = root.construct()
        for boosted_model in boosted:
            check_categories(boosted_model.construct(), name)
    except SpecError:
        raise
    except Exception as error:  # of whatever the reader stumbles over
        raise SpecError(f"{name} cannot be read as a model of skops: {error!r}; write it again") from error
    kind = type(model).__name__
    if not hasattr(model, "predict_proba"):
        message = f"{name} is a {kind} without probabilities; a model decides by that of the favourable decision"
        raise SpecError(f"{message}: give a classifier with `predict_proba`")
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise SpecError(f"{name} is a {kind} that was not fitted; save it once it is")
    if np.shape(classes) != (2,):
        message = f"{name} is a {kind} of the {len(classes)} classes {list(classes)[:5]}"
        raise SpecError(f"{message}; a decision has two, and the second is the favourable one")
    return model


def _numbered(node: Any, order: dict[str, str]) -> Any:
    """A part of the schema with the addresses of objects replaced by the order in which they are met."""
    if isinstance(node, list):
        return [_numbered(child, order) for child in node]
    if not isinstance(node, dict):
        return node
    out = {key: _numbered(value, order) for key, value in node.items()}
    if isinstance(out.get("__id__"), int):
        out["__id__"] = int(order.setdefault(str(out["__id__"]), str(len(order) + 1)))
    if isinstance(out.get("file"), str):
        out["file"] = _renamed(out["file"], order)
    return out


def _renamed(file: str, order: dict[str, str]) -> str:
    path = PurePosixPath(file)
    return order.setdefault(path.stem, str(len(order) + 1)) + path.suffix
