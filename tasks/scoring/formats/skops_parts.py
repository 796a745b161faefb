"""Looks at the trees in a file of skops before anything is made of it.

skops lays a file out as a tree of its own nodes, each a part of the model that is still to be made. Arrays are made
of the parts that hold them and no other; whether they are those of a sound tree says ``trees``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from schemas.errors import SpecError
from tasks.scoring.formats.trees import check_boosted, check_tree

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
    for part, inputs in _parts(root):
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
    for each in (predictor for round_ in model._predictors for predictor in round_):
        asked = each.nodes["feature_idx"][(each.nodes["is_leaf"] == 0) & (each.nodes["is_categorical"] != 0)]
        if not by_category[asked].all():
            raise SpecError(f"{name} asks for the category of an input that is a number; write it again")


def _parts(root: Any) -> Iterator[tuple[Any, int | None]]:
    """Every object of the model, in their order, with the number of inputs that it gets as far as that is said."""
    left: list[tuple[Any, int | None, bool]] = [(root, None, False)]
    seen: set[tuple[int, int | None, bool]] = set()
    while left:
        part, inputs, direct = left.pop()
        part = getattr(part, "cached", part)  # a part that was met before, and may be handed to another model here
        if (id(part), inputs, direct) in seen:
            continue
        seen.add((id(part), inputs, direct))
        own = _said(part)
        if part.module_name == "sklearn.pipeline":
            inputs, direct = None, False  # its steps change how many there are
        elif own is not None:
            inputs, direct = (inputs if direct else own), part.module_name in DIRECT
        yield part, inputs
        left += [(each, inputs, direct) for each in reversed(list(_children(part)))]


def _said(part: Any) -> int | None:
    """The number of inputs that an estimator says it takes."""
    attributes = getattr(getattr(part, "attrs", None), "content", None)
    said: Any = attributes.get("n_features_in_") if isinstance(attributes, dict) else None
    if said is None:
        return None
    number = getattr(said, "cached", said).construct()
    return int(number) if isinstance(number, int | np.integer) and not isinstance(number, bool) else None


def _children(part: Any) -> Iterator[Any]:
    for child in part.children.values():
        each = child.values() if isinstance(child, dict) else child if isinstance(child, list) else [child]
        yield from (one for one in each if hasattr(one, "children"))
