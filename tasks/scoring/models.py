"""Reads and writes models from bytes, fitted here or given by a user."""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from scipy.special import expit

from schemas.errors import SpecError
from tasks.numerics import attributions
from tasks.numerics.arrays import Floats
from tasks.numerics.attributions import Linear, Module, of_logistic_regression
from tasks.numerics.networks.network import Network, of_safetensors, to_safetensors
from tasks.scoring import model_formats
from tasks.scoring.model_formats import network_of

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

    from schemas.audit.model import Model


# --------------------------------------------------------------------------------------------------------------------
# Reads models from bytes and writes them, fitted here or given by a user.
#
# The content determines the format, not the name of the file:
#
# * safetensors, as ``to_safetensors`` of networks and of linear models writes it: arrays only, harmless to read.
# * skops: harmless types of scikit-learn only, and trees (``formats.skops_models``).
# * ONNX: a graph is data, harmless to read; chains of linear layers become networks (``formats.onnx_graphs``).
# * TorchScript: a program, which reading may run (torch's security policy, and the page of ``torch.jit.load``). It is
#   read only if the spec states the sha256 of this very file.
# * A stranger's file is read, and asked, in a process of its own (``model_reader``), by the functions of this one.
# * Pickle, of torch, joblib or Python, is never read.


@dataclass(frozen=True)
class Facts:
    """Known facts of a model that is queried in a separate process."""

    kind: str
    inputs: int | None
    names: tuple[str, ...]
    """Of the inputs that it was fitted on, in order; none if it knows none."""
    log_odds: bool
    """Whether its decision function is the log odds."""
    gradient: bool
    linear: Linear | None
    """Its logit, where that is linear."""


@runtime_checkable
class Apart(Protocol):
    """A model that is queried in a separate process, as a foreign one is (``tasks.scoring.model_reader``)."""

    facts: Facts

    def probability(self, x: Floats) -> Floats:
        """``(r,)`` probabilities of the favourable decision for rows ``(r, p)``."""

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits: of a module, or of a classifier with a decision function that is the log odds."""

    def gradient(self, x: Floats) -> Floats:
        """``(r, p)`` gradients of a module's logit."""


Readable: TypeAlias = "Network | Module | Linear | Apart | ClassifierMixin"
"""What a model's bytes become."""

Format = Literal["safetensors", "skops", "torchscript", "onnx", "pickle", "unknown"]

ZIP = b"PK\x03\x04"
PICKLE = b"\x80"
"""First byte of every pickle since protocol 2, joblib's among them."""
HEADER = 100 * 10**6
"""Bytes of the header of safetensors, by its own specification."""


@dataclass(frozen=True)
class ModelFile:
    """A model as bytes, with its settings from the spec."""

    content: bytes
    name: str
    """How messages call it."""
    sha256: str | None = None
    """What the spec states; held against the content whatever the format."""
    output: Literal["logit", "probability"] = "logit"
    """What it gives for a row, as far as its format does not tell."""

    @classmethod
    def of(cls, model: "Model", content: bytes) -> "ModelFile":
        """The content of a model that the spec describes."""
        if model.file is None:
            return cls(content, called(model))
        return cls(content, called(model), model.file.sha256, model.file.output)


def called(model: "Model") -> str:
    """What messages call the model of a spec."""
    if model.kind == "object":
        return "the model"
    return f"the audited {model.kind}" if model.file is None else PurePath(model.file.path).name


def kept(model: "Network | Linear | ClassifierMixin", names: Sequence[str] = ()) -> bytes:
    """A model that was fitted here as bytes that depend on nothing else than it and the names of its inputs."""
    if isinstance(model, Linear):
        return attributions.to_safetensors(model, names)
    return to_safetensors(model) if isinstance(model, Network) else model_formats.kept(model)


def read(file: ModelFile) -> Readable:
    """What a model's bytes say.

    Raises:
        SpecError: The file is not trusted, not known, or no model of two classes.
        IntegrityError: It is a network whose layers do not fit together.
        InfrastructureError: The library that its format needs is not installed.
    """
    match vouched(file):
        case "safetensors":
            if file.output == "probability":
                message = f"{file.name} is a network in safetensors, which gives a logit, and the spec says probability"
                raise SpecError(f"{message}; leave `output` out")
            if attributions.is_kept(file.content):
                return attributions.of_safetensors(file.content)
            return of_safetensors(file.content)
        case "skops":
            return model_formats.classifier(file.content, file.name)
        case "onnx":
            return network_of(file.content, file.name, file.output)
        case "torchscript":
            import torch  # seconds to import, and only such a module needs it

            try:
                module = torch.jit.load(io.BytesIO(file.content), map_location="cpu")  # type: ignore[no-untyped-call]
            except RuntimeError as error:
                raise SpecError(f"{file.name} is not TorchScript that this torch can read: {error}") from error
            return Module(module, file.output)


def vouched(file: ModelFile) -> Literal["safetensors", "skops", "onnx", "torchscript"]:
    """The format of a file that may be read, as far as its first bytes, its directory and its digest show it.

    Raises:
        SpecError: It is another file than the spec states, a program that nobody vouches for, or in no known format.
    """
    digest = hashlib.sha256(file.content).hexdigest()
    if file.sha256 is not None and digest != file.sha256.lower():
        message = f"{file.name} has the sha256 {digest} and the spec states {file.sha256}; it is another file"
        raise SpecError(f"{message}. Get the one that was vouched for, or state its own digest if you trust it")
    file_format = format_of(file.content)
    if file_format == "pickle":
        message = f"{file.name} is a pickle, which can run any code when it is read, and is never read here"
        raise SpecError(f"{message}; {_FORMATS}")
    if file_format == "unknown":
        raise SpecError(f"{file.name} is in no format that is known here; {_FORMATS}")
    if file_format == "torchscript" and file.sha256 is None:
        message = f"{file.name} is TorchScript, a program that reading may run; it is not read on trust"
        raise SpecError(f"{message}. State in the spec the sha256 that its supplier gives, or {_FORMATS}")
    if file_format == "safetensors" and (length := int.from_bytes(file.content[:8], "little")) > HEADER:
        raise SpecError(f"{file.name} has a header of {length:,} bytes; safetensors has at most {HEADER:,}: {_FORMATS}")
    return file_format


_FORMATS = "save a network as safetensors or ONNX, a scikit-learn model with skops"


def inputs_taken(model: Readable) -> int | None:
    """How many inputs a model takes, as far as it declares it."""
    if isinstance(model, Linear):
        return len(model.coefficients)
    if isinstance(model, Apart):
        return model.facts.inputs
    return model.inputs if isinstance(model, Network) else getattr(model, "n_features_in_", None)


def names_of(model: Readable) -> tuple[str, ...]:
    """Names of the inputs that a model was fitted on, in order; none if it knows none."""
    return model.facts.names if isinstance(model, Apart) else tuple(map(str, getattr(model, "feature_names_in_", ())))


def named(model: "ClassifierMixin", x: Floats) -> Any:
    """Inputs ``(r, d)`` under the names that a classifier was fitted on, if it knows any."""
    if not names_of(model):
        return x
    import pandas as pd  # a second to import, and few models know names

    return pd.DataFrame(x, columns=model.feature_names_in_)


def probabilities(model: Readable, x: Floats) -> Floats:
    """Probability of the favourable decision, ``(r,)``, by a model's own inputs ``(r, d)``."""
    if isinstance(model, Network | Module):
        return expit(model.logit(x))  # type: ignore[no-any-return]
    if isinstance(model, Linear | Apart):
        return model.probability(x)
    return model.predict_proba(named(model, x))[:, 1]  # type: ignore[no-any-return]


def format_of(content: bytes) -> Format:
    """The format that the bytes are in, without reading them as such."""
    if content[:4] == ZIP:
        try:
            names = zipfile.ZipFile(io.BytesIO(content)).namelist()
        except Exception:  # zipfile has several for a directory that is no directory
            return "unknown"
        if "schema.json" in names:
            return "skops"
        if not any(name.rpartition("/")[2] == "data.pkl" for name in names):
            return "unknown"
        return "torchscript" if any("/code/" in f"/{name}" for name in names) else "pickle"
    if content[:1] == PICKLE:
        return "pickle"
    length = int.from_bytes(content[:8], "little")
    if content[8:9] == b"{" and 8 + length <= len(content):
        return "safetensors"
    # the first field of an ONNX file is the version of its format, a small number
    return "onnx" if content[:1] == b"\x08" else "unknown"


# --------------------------------------------------------------------------------------------------------------------
# Which models have a logit that is linear in their inputs, and which classifiers give the log odds themselves.


LOG_ODDS = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
"""Classifiers whose decision function is the log odds where they minimise the log loss: no probability is clipped."""


def linear_form(model: Any) -> Linear | None:
    """The logit of a network without hidden layers, or of a logistic regression behind any number of StandardScalers.

    None of other models.
    """
    if isinstance(model, Linear):
        return model
    if isinstance(model, Apart):
        return model.facts.linear
    if isinstance(model, Network):
        return Linear(model.weights[0][0], float(model.biases[0][0])) if len(model.weights) == 1 else None
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
