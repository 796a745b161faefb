"""Reads ONNX graphs as networks: chains of linear layers with one kind of activation, ending in the logit.

The graph is read as data and never run. Other graphs are refused by name: they have no closed form here, and no
maintained library turns any graph into torch.

Scope: the walk along the chain. Networks: ``tasks.numerics.networks.parameters``.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from schemas.errors import InfrastructureError, SpecError
from tasks.numerics.arrays import Floats
from tasks.numerics.networks.parameters import Network
from tasks.scoring.formats.onnx_operators import array_of, check_operators

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
    graph, arrays = _read(content, name)
    nodes = _chain(graph, arrays, name)
    if output == "probability" and nodes[-1].op_type != "Sigmoid":
        message = f"{name} ends in {nodes[-1].op_type} and not in a sigmoid, so that it gives a logit"
        raise SpecError(f"{message}, and the spec says probability; leave `output` out")
    parts = list(_parts(nodes, arrays, name))
    layers, kinds = parts[::2], parts[1::2]
    shown = [part if isinstance(part, str) else "linear" for part in parts]
    alternating = len(layers) == len(kinds) + 1 and set(shown[::2]) == {"linear"}
    if not alternating or "linear" in shown[1::2] or len(set(shown[1::2])) > 1:
        raise SpecError(f"{name} is made of {shown}; {_EXPECTED}")
    _check_numbers(layers, name)  # type: ignore[arg-type]
    weights, biases = zip(*layers, strict=True)
    return Network(weights, biases, kinds[0] if kinds else "relu")  # type: ignore[arg-type]


def _check_numbers(layers: Sequence[Layer], name: str) -> None:
    for number, (weight, bias) in enumerate(layers):
        if weight.ndim != 2 or not weight.size:
            raise SpecError(f"{name}: layer {number} has weights of the shape {weight.shape}; {_EXPECTED}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise SpecError(f"{name}: layer {number} has weights that are not numbers; train it and write it again")


_EXPECTED = "expected Gemm or MatMul and Add, with Relu, Softplus or SiLU between them, and one logit at the end"


def _read(content: bytes, name: str) -> tuple[Any, dict[str, Floats]]:
    """The graph, and the arrays that it holds by name."""
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
    return graph, {key: array_of(tensor, name) for key, tensor in tensors.items()}


def _chain(graph: Any, arrays: Mapping[str, Floats], name: str) -> list[Any]:
    """The operators between input and output, each of which takes what the one before it gives."""
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    given = {node.output[0] for node in nodes}
    earlier = [value.name for value in graph.input if value.name not in arrays]
    if len(earlier) != 1:
        raise SpecError(f"{name} takes the inputs {earlier}; expected one, the features of each row")
    for node in nodes:
        # Mul takes the input of the Sigmoid before it too, which the walk over the parts looks at
        if earlier[-1] not in node.input or (node.op_type != "Mul" and len(given & set(node.input)) > 1):
            raise SpecError(f"{name} branches at the operator {node.op_type}; {_EXPECTED}")
        earlier.append(node.output[0])
    if not nodes or [value.name for value in graph.output] != earlier[-1:]:
        raise SpecError(f"{name} does not end in one output at the end of its chain; {_EXPECTED}")
    return [node for node in nodes if node.op_type not in PASSED]


def _parts(nodes: list[Any], arrays: Mapping[str, Floats], name: str) -> Iterator[Layer | str]:
    """The layers and the names of the activations, in their order."""
    nodes = list(nodes)
    while nodes:
        node = nodes.pop(0)
        following = nodes[0].op_type if nodes else ""
        if node.op_type == "Gemm":
            yield _gemm(node, arrays, name)
        elif node.op_type == "MatMul" and following == "Add":
            weight = _array(node.input[1], arrays, name).T
            biases = [_array(each, arrays, name) for each in nodes.pop(0).input if each != node.output[0]]
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


def _gemm(node: Any, arrays: Mapping[str, Floats], name: str) -> Layer:
    """``alpha x W + beta b``."""
    given = {each.name: each.f if each.name in ("alpha", "beta") else each.i for each in node.attribute}
    if given.get("transA"):
        raise SpecError(f"{name} transposes its rows; {_EXPECTED}")
    weight = given.get("alpha", 1.0) * _array(node.input[1], arrays, name)
    weight = weight if given.get("transB") else weight.T
    bias = given.get("beta", 1.0) * _array(node.input[2], arrays, name) if len(node.input) > 2 else np.zeros(1)
    return weight, _per_unit(bias, weight)


def _per_unit(bias: Floats, weight: Floats) -> Floats:
    """Biases as ONNX lets them be written, a number or a row, as one for each unit."""
    return np.full(len(weight), bias.ravel()[0]) if bias.size == 1 else bias.ravel()


def _array(tensor: str, arrays: Mapping[str, Floats], name: str) -> Floats:
    if tensor not in arrays:
        raise SpecError(f"{name} computes {tensor!r}, where a network holds its parameters; {_EXPECTED}")
    return np.asarray(arrays[tensor], np.float64)
