"""Counts what the operators of an ONNX graph hold, and holds the sizes of its arrays against their bytes.

The library gives the fields of a file as they are written: an operator may lack its inputs, and an array may say that
it is larger than the file. Scope: single operators and arrays. How they chain: ``onnx_graphs``.
"""

from importlib import import_module
from typing import Any

import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Floats

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
    """Refuse a graph with an operator that lacks an input, its output or the value that it holds.

    Raises:
        SpecError: it has one.
    """
    for place, node in enumerate(graph.node):
        what = f"{name}: operator {place}, a {node.op_type[:40]},"
        fewest, most = INPUTS.get(node.op_type, (0, len(node.input)))
        if not fewest <= len(node.input) <= most:
            raise SpecError(f"{what} has {len(node.input)} inputs; it takes {fewest} to {most}: {_AGAIN}")
        if not node.output:
            raise SpecError(f"{what} has no output; {_AGAIN}")
        if node.op_type == "Constant" and [each.name for each in node.attribute] != ["value"]:
            raise SpecError(f"{what} holds no array; {_AGAIN}")


def array_of(tensor: Any, name: str) -> Floats:
    """The array that a graph holds.

    Raises:
        SpecError: its shape and its bytes do not agree, or it holds no numbers.
    """
    what = f"{name}: the array {tensor.name[:80]!r} of the shape {tuple(tensor.dims)[:8]}"
    if any(size < 0 for size in tensor.dims):
        raise SpecError(f"{what} has a size below 0; {_AGAIN}")
    try:
        array: Floats = import_module("onnx").numpy_helper.to_array(tensor)
    except Exception as error:  # of the library, which has several
        raise SpecError(f"{what} does not fit its bytes: {error}; {_AGAIN}") from error
    if array.dtype.kind not in "fiu" or not np.prod(tensor.dims, dtype=float) == array.size:
        raise SpecError(f"{what} holds no numbers; {_AGAIN}")
    return array


_AGAIN = "write it again"
