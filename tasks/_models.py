"""Fitted models as bytes: in a format that runs no code when it is read, and the same bytes for the same model.

skops writes the time and the addresses of objects into what it writes, and whatever lies between the fields of a tree's
nodes. All three are replaced, so that the key of a stage that reads models follows from the models alone.
"""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from schemas.errors import IntegrityError
from tasks.algorithms.detector import Floats

Scorer = Callable[[Floats], Floats]
"""From encoded features ``(r, p)`` to the probability of the favourable decision, ``(r,)``."""

TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
"""What forests and boosted trees are made of: arrays of nodes, which skops does not count as harmless by itself."""

SCHEMA = "schema.json"


def kept(model: ClassifierMixin) -> bytes:
    """A fitted model as bytes that depend on nothing else."""
    import skops.io  # seconds to import, and only a fit needs it

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as written:
        files = {name: written.read(name) for name in written.namelist()}
    order: dict[str, str] = {}
    schema = _numbered(json.loads(files.pop(SCHEMA)), order)
    named = sorted((_renamed(name, order), _unpadded(content)) for name, content in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in (*named, (SCHEMA, json.dumps(schema).encode())):
            archive.writestr(zipfile.ZipInfo(name), content)  # of 1980, as any file without a time
    return out.getvalue()


def scorer(content: bytes) -> Scorer:
    """The scores of a stored model.

    Raises:
        IntegrityError: It is made of what no model here is made of.
    """
    unknown = foreign(content)
    if unknown:
        raise IntegrityError(f"a stored model holds the types {unknown}, which no model here is made of; fit again")
    model = classifier(content)
    return lambda x: model.predict_proba(x)[:, 1]


def foreign(content: bytes) -> list[str]:
    """Types inside a model that skops does not know to be harmless, trees excepted: with any of them it is not read."""
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - set(TREES))


def classifier(content: bytes) -> Any:
    """A model that holds no foreign types."""
    import skops.io

    return skops.io.loads(content, trusted=list(TREES))


def _numbered(node: Any, order: dict[str, str]) -> Any:
    """A part of the schema with the addresses of objects replaced by the order in which they are met."""
    if isinstance(node, list):
        return [_numbered(each, order) for each in node]
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


def _unpadded(content: bytes) -> bytes:
    """An array's file, with zeros between the fields of its records."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if not array.dtype.names:
        return content
    clean, out = np.zeros(array.shape, array.dtype), io.BytesIO()
    for name in array.dtype.names:
        clean[name] = array[name]
    np.save(out, clean, allow_pickle=False)
    return out.getvalue()
