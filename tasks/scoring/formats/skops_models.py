"""Models of scikit-learn as bytes and back, in the format of skops, which runs no code when it is read.

skops writes the time, addresses of objects, and padding between the fields of a tree's nodes. All three are replaced,
so that the key of a stage that reads models depends on the models alone.
"""

import io
import json
import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.errors import SpecError
from tasks.scoring.formats.archives import SCHEMA, check_schema
from tasks.scoring.formats.skops_parts import check_categories, check_parts

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
"""What forests and boosted trees are made of: arrays of nodes, which skops does not count as harmless by itself."""


def kept(model: "ClassifierMixin") -> bytes:
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


def classifier(content: bytes, name: str) -> "ClassifierMixin":
    """A fitted classifier of two classes, made of scikit-learn's own harmless parts and of trees.

    Raises:
        SpecError: It is something else, or no file of skops at all.
    """
    try:
        model = _model(content, name)
    except SpecError:
        raise
    except Exception as error:  # of whatever the reader stumbles over
        raise SpecError(f"{name} cannot be read as a model of skops: {error!r}; write it again") from error
    _check_decides(model, name)
    return model


def _model(content: bytes, name: str) -> Any:
    """The model of a file, made as ``skops.io.loads`` makes it, but only once its trees were looked at."""
    from skops.io._audit import get_tree
    from skops.io._utils import read_schema

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_schema(archive.read(SCHEMA), name)
        schema, context = read_schema(archive)
        root = get_tree(schema, context, trusted=list(TREES))
    unknown = sorted(root.get_unsafe_set() - set(TREES))
    if unknown:
        message = f"{name} holds the types {unknown}, which are not known to be harmless"
        raise SpecError(f"{message}; give a model of scikit-learn that is made of its own parts alone")
    boosted = check_parts(root, name)
    model = root.construct()
    for each in boosted:
        check_categories(each.construct(), name)
    return model


def _check_decides(model: Any, name: str) -> None:
    """Refuse what gives no probability of one of two classes."""
    kind = type(model).__name__
    if not hasattr(model, "predict_proba"):
        message = f"{name} is a {kind} without probabilities; a model decides by that of the favourable decision"
        raise SpecError(f"{message}: give a classifier with `predict_proba`")
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise SpecError(f"{name} is a {kind} that was not fitted; save it once it is")
    if np.shape(classes) != (2,):
        message = f"{name} is a {kind} of the {len(classes)} classes {list(classes)[:5]}"
        raise SpecError(f"{message}; a decision has two, of which the second is the favourable one")


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
