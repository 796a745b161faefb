"""Fully connected networks as arrays, and the settings of their training."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, get_args

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.special import expit

from schemas.errors import IntegrityError, SpecError
from tasks.numerics.arrays import Floats

# --------------------------------------------------------------------------------------------------------------------
# Settings of a training run, frozen. Defaults are the paper's but for two, which are cheaper and train as well.
#
# The paper takes 32 steps along every path and all matched pairs of a batch. Eight steps on half of the pairs reach the
# same consistency in a fraction of the time. ``PAPER`` restores the paper's values.


Activation = Literal["relu", "softplus", "silu"]
Device = Literal["auto", "cpu", "cuda"]

PAPER: Final[dict[str, Any]] = {"steps": 32, "pair_share": 1.0}
"""What the paper does and the defaults do not: ``replace(settings, **PAPER)``."""


@dataclass(frozen=True)
class NetSettings:
    """A multilayer perceptron with one logit (section 5.1)."""

    hidden: tuple[int, ...] = (128, 64)
    activation: Activation = "relu"
    """ReLU has no second derivative almost everywhere; the smooth ones let consistency act on where units switch."""
    dropout: float = 0.2
    """Share of hidden units dropped while the prediction is trained; attributions are always taken without."""


@dataclass(frozen=True)
class TrainingSettings:
    """Algorithm 2 and the settings of section 5.1."""

    net: NetSettings = NetSettings()
    learning_rate: float = 3e-4
    batch: int = 64
    epochs: int = 30
    lambda_eo: float = 1.0
    """Weight of the squared gaps in true and false positive rates; 0 leaves the term out."""
    lambda_cec: float = 1.0
    """Weight of the inconsistency of explanations; 0 leaves the term out."""
    steps: int = 8
    """Midpoints along each path."""
    pair_share: float = 0.5
    """Share of each batch whose pairs are explained, in (0, 1]; rows are shuffled, so it is another share each time."""
    seed: int = 0
    device: Device = "auto"
    """``auto`` takes CUDA where there is a device. What is drawn does not depend on it; the last digits do."""


# --------------------------------------------------------------------------------------------------------------------
# Fully connected networks with one output, the logit: their parameters as arrays, apart from any library.
#
# A network comes from a torch ``nn.Sequential`` and goes back to one. It is stored as safetensors, a format of arrays
# that runs no code when it is read. Dropout is left out, as it does nothing in evaluation mode.
#
# Scope: the network, its logit and its gradient. Attributions: ``tasks.numerics.attributions``.


ROWS_AT_ONCE = 8192
"""Rows whose hidden layers are held at the same time."""

LAYERS = {"ReLU": "relu", "Softplus": "softplus", "SiLU": "silu"}
"""Torch's name of a layer, and the name of its activation here."""


@dataclass(frozen=True)
class Network:
    """A network ``p -> h_1 -> ... -> h_d -> 1``; between any two layers, the same activation."""

    weights: tuple[Floats, ...]
    """``d + 1`` matrices ``(out, in)``, from the inputs to the logit."""
    biases: tuple[Floats, ...]
    """``d + 1`` vectors ``(out,)``."""
    activation: Activation

    def __post_init__(self) -> None:
        """Check that the layers fit together.

        Raises:
            IntegrityError: They do not.
        """
        if self.activation not in get_args(Activation):
            raise IntegrityError(f"a network has the activation {self.activation!r}; known: {get_args(Activation)}")
        if not self.weights or len(self.weights) != len(self.biases):
            message = f"a network has {len(self.weights)} matrices of weights and {len(self.biases)} vectors of biases"
            raise IntegrityError(message + "; there must be one of each for every layer")
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            _check_layer(layer, weight, bias)
        for layer, (weight, following) in enumerate(pairwise(self.weights)):
            if following.shape[1] != weight.shape[0]:
                message = f"layer {layer} of a network gives {weight.shape[0]} numbers and layer {layer + 1} takes "
                raise IntegrityError(message + f"{following.shape[1]}; the two must be equal")
        if self.weights[-1].shape[0] != 1:
            raise IntegrityError(
                f"a network ends in {self.weights[-1].shape[0]} numbers; it must end in one, the logit"
            )

    @property
    def inputs(self) -> int:
        """Number of features ``p`` that the network takes."""
        return int(self.weights[0].shape[1])

    def before_scaling(self, centre: Floats, scale: Floats) -> "Network":
        """The same network as a function of features that are scaled on the way to it: ``(x - centre) / scale``."""
        first = self.weights[0] / scale
        biases = (self.biases[0] - first @ centre, *self.biases[1:])
        return Network((first, *self.weights[1:]), biases, self.activation)

    def logit(self, x: Floats) -> Floats:
        """``(n,)`` logits of rows ``(n, p)``."""
        forward, _ = ACTIVATIONS[self.activation]
        logits = np.empty(len(x))
        for start in range(0, len(x), ROWS_AT_ONCE):
            values = x[start : start + ROWS_AT_ONCE]
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                values = forward(values @ weight.T + bias)
            logits[start : start + ROWS_AT_ONCE] = values @ self.weights[-1][0] + self.biases[-1][0]
        return logits

    def gradient(self, x: Floats) -> Floats:
        """``(n, p)`` gradients of the logit at rows ``(n, p)``; at a kink of the ReLU, that of its flat side."""
        gradients = np.empty(x.shape)
        for start in range(0, len(x), ROWS_AT_ONCE):
            values = x[start : start + ROWS_AT_ONCE]
            forward, derivative = ACTIVATIONS[self.activation]
            slopes = []
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                before = values @ weight.T + bias
                slopes.append(derivative(before))
                values = forward(before)
            flow = np.broadcast_to(self.weights[-1], (len(values), self.weights[-1].shape[1]))
            for weight, slope in zip(self.weights[-2::-1], slopes[::-1], strict=True):
                flow = (flow * slope) @ weight
            gradients[start : start + ROWS_AT_ONCE] = flow
        return gradients


def _check_layer(layer: int, weight: Floats, bias: Floats) -> None:
    if weight.ndim != 2 or bias.shape != weight.shape[:1] or 0 in weight.shape:
        message = f"layer {layer} of a network has weights of shape {weight.shape} and biases of shape {bias.shape}"
        raise IntegrityError(message + "; expected (out, in) and (out,), neither of them empty")
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise IntegrityError(f"layer {layer} of a network has parameters that are not finite; train it again")


def _relu(z: Floats) -> Floats:
    return np.maximum(z, 0.0)


def _step(z: Floats) -> Floats:
    return (z > 0).astype(np.float64)


def _softplus(z: Floats) -> Floats:
    return np.logaddexp(0.0, z)


def _silu(z: Floats) -> Floats:
    return z * _logistic(z)


def _silu_slope(z: Floats) -> Floats:
    share = _logistic(z)
    return share * (1 + z * (1 - share))


def _logistic(z: Floats) -> Floats:
    share: Floats = expit(z)
    return share


ACTIVATIONS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "relu": (_relu, _step),
    "softplus": (_softplus, _logistic),
    "silu": (_silu, _silu_slope),
}
"""Each activation and its derivative, both elementwise."""


def of_module(module: Any) -> Network:
    """The network of a torch ``nn.Sequential`` in evaluation mode.

    Args:
        module: Made of Linear layers with one kind of activation between them, and of Dropout.

    Raises:
        SpecError: It holds another layer, mixes activations, or has two layers of one kind in a row.
        IntegrityError: Its layers do not fit together.
    """
    layers = [layer for layer in module if type(layer).__name__ not in ("Dropout", "Identity")]
    linear, between = layers[::2], layers[1::2]
    for layer in linear:
        if type(layer).__name__ != "Linear":
            raise SpecError(f"a module has {layer} where a network has a Linear layer; {_EXPECTED}")
    kinds = {_activation(layer) for layer in between}
    if len(linear) != len(between) + 1 or len(kinds) > 1:
        raise SpecError(f"a module of {[type(layer).__name__ for layer in module]} is no network here; {_EXPECTED}")
    weights = tuple(_array(layer.weight) for layer in linear)
    biases = tuple(
        np.zeros(len(weight)) if layer.bias is None else _array(layer.bias)
        for layer, weight in zip(linear, weights, strict=True)
    )
    return Network(weights, biases, kinds.pop() if kinds else "relu")


_EXPECTED = "expected Linear layers with ReLU, Softplus or SiLU between them, the last of them giving the logit"


def _activation(layer: Any) -> Activation:
    name = type(layer).__name__
    if name not in LAYERS or (name == "Softplus" and (layer.beta, layer.threshold) != (1, 20)):
        raise SpecError(f"a module has {layer} where a network has an activation; {_EXPECTED}")
    return LAYERS[name]  # type: ignore[return-value]


def _array(parameter: Any) -> Floats:
    array: Floats = parameter.detach().cpu().double().numpy().copy()
    return array


def to_safetensors(network: Network) -> bytes:
    """A network as bytes that follow from it alone."""
    tensors = {f"layers.{layer}.weight": np.ascontiguousarray(weight) for layer, weight in enumerate(network.weights)}
    tensors |= {f"layers.{layer}.bias": np.ascontiguousarray(bias) for layer, bias in enumerate(network.biases)}
    return save(tensors, {"activation": network.activation})


def of_safetensors(content: bytes) -> Network:
    """The network that ``to_safetensors`` wrote, in any precision of its arrays.

    Raises:
        IntegrityError: The bytes are not safetensors, name no activation, or hold other arrays than those of a network.
    """
    try:
        tensors = load(content)
    except SafetensorError as error:
        raise IntegrityError(f"a network is not in the safetensors format ({error}); write it again") from error
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    names = {f"layers.{layer}.{part}" for layer in range(len(tensors) // 2) for part in ("weight", "bias")}
    if not tensors or set(tensors) != names:
        message = f"a network in safetensors holds the arrays {sorted(tensors)}; expected layers.0.weight (out, in), "
        raise IntegrityError(message + "layers.0.bias (out,), and so on for every layer")
    if "activation" not in metadata:
        message = "a network in safetensors does not say in its metadata which 'activation' it has"
        raise IntegrityError(f"{message}; one of {', '.join(get_args(Activation))}")
    layers = [(tensors[f"layers.{layer}.weight"], tensors[f"layers.{layer}.bias"]) for layer in range(len(names) // 2)]
    weights, biases = zip(*[(w.astype(np.float64), b.astype(np.float64)) for w, b in layers], strict=True)
    return Network(weights, biases, metadata["activation"])
