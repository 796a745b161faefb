"""From a model's bytes to what can be looked into: the edge at which models given by a user come in.

The format is told from the bytes, whatever the file is called:

* safetensors, as ``networks.to_safetensors`` writes it: arrays only, harmless to read.
* skops: harmless types of scikit-learn only, and trees. Linear models have a closed form; the others have no gradient.
* ONNX: a graph is data, harmless to read; chains of linear layers become networks (``_onnx``).
* TorchScript: a program, and torch warns that reading one from a stranger is running a stranger's code (its security
  policy, and the page of ``torch.jit.load``). It is read only if the spec states the sha256 of this very file, which
  whoever gave the file vouches for.
* Pickle, of torch, joblib or Python, is never read.
"""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from typing import Any, Literal

from schemas.errors import SpecError
from tasks._models import classifier, foreign
from tasks._onnx import network_of
from tasks.algorithms.attributions import Quadrature, of_network
from tasks.algorithms.attributions.differences import Differences, log_odds
from tasks.algorithms.attributions.linear import Linear, of_logistic_regression
from tasks.algorithms.attributions.modules import Module
from tasks.algorithms.explained import Attributor
from tasks.algorithms.networks import of_safetensors

Format = Literal["safetensors", "skops", "torchscript", "onnx", "pickle", "unknown"]

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""First byte of every pickle since protocol 2, joblib's among them."""

LOG_ODDS = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
"""Classifiers whose decision function is the log odds, and so need no clipped probability."""


@dataclass(frozen=True)
class ModelFile:
    """A model as it was given."""

    content: bytes
    name: str
    """How messages call it."""
    sha256: str | None = None
    """What the spec states; held against the content whatever the format."""
    output: Literal["logit", "probability"] = "logit"
    """What a TorchScript module gives."""
    substitute: bool = False
    """Whether ``Differences`` may stand in where there is no gradient."""


def attributor(file: ModelFile) -> Attributor:
    """What makes the attributions of a model, by the best way that its kind allows.

    Raises:
        SpecError: The file is not trusted, not known, or has no gradient and no substitute was chosen.
        IntegrityError: It is a network whose layers do not fit together.
    """
    digest = hashlib.sha256(file.content).hexdigest()
    if file.sha256 is not None and digest != file.sha256.lower():
        message = f"{file.name} has the sha256 {digest} and the spec states {file.sha256}; it is another file"
        raise SpecError(f"{message}. Get the one that was vouched for, or state its own digest if you trust it")
    match format_of(file.content):
        case "safetensors":
            return of_network(of_safetensors(file.content))
        case "skops":
            return of_classifier(_classifier(file), file.name, file.substitute)
        case "onnx":
            return of_network(network_of(file.content, file.name))
        case "torchscript":
            return _torchscript(file)
        case "pickle":
            message = f"{file.name} is a pickle, which can run any code when it is read, and is never read here"
            raise SpecError(f"{message}; {_FORMATS}")
        case _:
            raise SpecError(f"{file.name} is in no format that is known here; {_FORMATS}")


_FORMATS = "save a network as safetensors or ONNX, a scikit-learn model with skops"


def format_of(content: bytes) -> Format:
    """The format that the bytes are in, without reading them as such."""
    if content[:4] == ZIP:
        return _archive(content)
    if content[:1] == PICKLE:
        return "pickle"
    length = int.from_bytes(content[:8], "little")
    if content[8:9] == b"{" and 8 + length <= len(content):
        return "safetensors"
    # the first field of an ONNX file is the version of its format, a small number
    return "onnx" if content[:1] == b"\x08" else "unknown"


def _archive(content: bytes) -> Format:
    try:
        names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except zipfile.BadZipFile:
        return "unknown"
    if "schema.json" in names:
        return "skops"
    if not any(name.rpartition("/")[2] == "data.pkl" for name in names):
        return "unknown"
    return "torchscript" if any("/code/" in f"/{name}" for name in names) else "pickle"


def of_classifier(model: Any, name: str, substitute: bool) -> Attributor:
    """What makes the attributions of a fitted binary classifier of scikit-learn, for the second of its classes.

    Args:
        model: The classifier, or a pipeline of StandardScalers that ends in one.
        name: How messages call it.
        substitute: Whether ``Differences`` may stand in where there is no closed form.

    Raises:
        SpecError: It gives no probabilities, or has no gradient and no substitute was chosen.
    """
    linear = _linear(model)
    if linear is not None:
        return linear
    kind = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise SpecError(f"{name} is a {kind} without probabilities; attributions are taken on the scale of log odds")
    if not substitute:
        message = f"{name} is a {kind}, which has no gradient to integrate; choose the substitute (path differences)"
        raise SpecError(f"{message} in the spec if that will do, or audit a network or a linear model")
    if kind in LOG_ODDS:
        return Differences(model.decision_function)
    return Differences(lambda x: log_odds(model.predict_proba(x)[:, 1]))


def _linear(model: Any) -> Linear | None:
    """The closed form of a logistic regression, behind any number of StandardScalers; None of other models."""
    *scalers, last = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    if type(last).__name__ not in ("LogisticRegression", "LogisticRegressionCV"):
        return None
    if any(type(scaler).__name__ != "StandardScaler" for scaler in scalers):
        return None
    linear = of_logistic_regression(last)
    for scaler in reversed(scalers):
        centre = scaler.mean_ if scaler.with_mean else 0.0 * linear.coefficients
        linear = linear.before_scaling(centre, scaler.scale_ if scaler.with_std else 0.0 * linear.coefficients + 1)
    return linear


def _classifier(file: ModelFile) -> Any:
    unknown = foreign(file.content)
    if unknown:
        message = f"{file.name} holds the types {unknown}, which are not known to be harmless"
        raise SpecError(f"{message}; give a model of scikit-learn that is made of its own parts alone")
    return classifier(file.content)


def _torchscript(file: ModelFile) -> Quadrature:
    if file.sha256 is None:
        message = f"{file.name} is TorchScript, a program that reading may run; it is not read on trust"
        raise SpecError(f"{message}. State in the spec the sha256 that its supplier gives, or {_FORMATS}")
    import torch

    try:
        module = torch.jit.load(io.BytesIO(file.content), map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise SpecError(f"{file.name} is not TorchScript that this torch can read: {error}") from error
    return Quadrature(Module(module, file.output))
