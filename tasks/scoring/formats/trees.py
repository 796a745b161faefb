"""Checks the nodes of decision trees as data, before a tree is made of them.

scikit-learn follows the numbers of children and inputs without looking whether they are there: a wrong one ends the
process, and one that points back never ends. Children come after their parents in every tree that it writes, so that
a tree whose children do has no loop.

Scope: arrays. Where they are in a file of skops: ``skops_models``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schemas.errors import SpecError
from tasks.numerics.arrays import Bools, Longs

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
    own, classes, outputs = _whole(args[0], what), np.asarray(args[1]), _whole(args[2], what)
    nodes, values = np.asarray(state["nodes"]), np.asarray(state["values"])
    count = _whole(state["node_count"], what)
    if nodes.ndim != 1 or len(nodes) != count or len(values) != count or count < 1:
        raise SpecError(f"{what} says {count} nodes and has {len(nodes)} with {len(values)} values; {_AGAIN}")
    if outputs != 1 or classes.shape != (1,):
        raise SpecError(f"{what} has {outputs} outputs and classes of {classes.shape}; a decision has one: {_AGAIN}")
    if inputs is not None and own != inputs:
        raise SpecError(f"{what} takes {own} inputs, and the model around it {inputs}; {_AGAIN}")
    _check_fields(nodes, FIELDS, what)
    left, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
    inner = (left != LEAF) | (right != LEAF)
    _check_children((left, right), inner, what)
    _check_inputs(nodes["feature"].astype(np.int64), inner, own, what)


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
        raise SpecError(f"{what} has nodes of the shape {nodes.shape}; {_AGAIN}")
    _check_fields(nodes, BOOSTED, what)
    inner = nodes["is_leaf"] == 0
    _check_children((nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)), inner, what)
    _check_inputs(nodes["feature_idx"].astype(np.int64), inner, inputs, what)
    for field in ("is_leaf", "is_categorical", "missing_go_to_left"):
        _refuse(nodes[field] > 1, what, f"says neither yes nor no in {field}")
    by_category = inner & (nodes["is_categorical"] != 0)
    if by_category.any() and (bits.ndim != 2 or bits.shape[1] != WORDS):
        raise SpecError(f"{what} has categories of the shape {bits.shape}; {_AGAIN}")
    _refuse(by_category & (nodes["bitset_idx"] >= len(bits)), what, f"asks for categories beyond its {len(bits)}")


_AGAIN = "write it again"


def _whole(number: Any, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise SpecError(f"{what} has {number!r} where it counts; {_AGAIN}")
    return int(number)


def _check_fields(nodes: Any, fields: Sequence[str], what: str) -> None:
    missing = [field for field in fields if field not in (nodes.dtype.names or ())]
    if missing:
        raise SpecError(f"{what} has nodes without {', '.join(missing)}; {_AGAIN}")


def _check_children(children: tuple[Longs, Longs], inner: Bools, what: str) -> None:
    at = np.arange(len(inner))
    for child in children:
        wrong = inner & ((child <= at) | (child >= len(inner)))
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            whole, _, tree = what.rpartition(": ")
            message = f"{whole}: node {node} of {tree} points to node {child[node]} of {len(inner)}"
            raise SpecError(f"{message}; {_AGAIN}")


def _check_inputs(feature: Longs, inner: Bools, inputs: int | None, what: str) -> None:
    most = np.inf if inputs is None else inputs
    _refuse(inner & ((feature < 0) | (feature >= most)), what, f"asks for an input beyond its {inputs}")


def _refuse(wrong: Bools, what: str, fault: str) -> None:
    if wrong.any():
        whole, _, tree = what.rpartition(": ")
        raise SpecError(f"{whole}: node {int(np.flatnonzero(wrong)[0])} of {tree} {fault}; {_AGAIN}")
