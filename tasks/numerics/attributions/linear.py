"""Linear models of the logit: integrated gradients, which are a constant gradient, and the numbers as bytes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.special import expit

from schemas.errors import IntegrityError, SpecError
from tasks.numerics.arrays import Floats

KIND: Final = "logistic_regression"
"""What the metadata of kept coefficients say that they are."""


@dataclass(frozen=True)
class Linear:
    """A logit ``w x + c``; feature ``j`` is owed ``w_j (x_j - b_j)``, whatever the path."""

    coefficients: Floats
    """``(p,)``"""
    intercept: float = 0.0
    name: ClassVar[str] = "integrated gradients, linear model"
    exact: ClassVar[bool] = True

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return x @ self.coefficients + self.intercept

    def probability(self, x: Floats) -> Floats:
        """``(r,)`` probabilities of rows ``(r, p)``, to the last bit those of scikit-learn's logistic regression."""
        column = self.coefficients[np.newaxis].T  # as scikit-learn has it: another layout may round in another order
        chance: Floats = expit((x @ column + self.intercept)[:, 0])
        return chance

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``."""
        return (x - baseline) * self.coefficients

    def before_scaling(self, centre: Floats, scale: Floats) -> "Linear":
        """The same model as a function of features that are scaled on the way to it: ``(x - centre) / scale``."""
        coefficients = self.coefficients / scale
        return Linear(coefficients, self.intercept - float(coefficients @ centre))


def of_logistic_regression(model: Any) -> Linear:
    """The logit of a fitted binary logistic regression of scikit-learn, for the second of its classes.

    Raises:
        SpecError: The model knows more than two classes.
    """
    if np.shape(model.coef_)[0] != 1:
        message = f"a logistic regression knows the {len(model.classes_)} classes {list(model.classes_)}"
        raise SpecError(f"{message}; a decision has two, favourable and not")
    return Linear(np.array(model.coef_[0], np.float64), float(np.ravel(model.intercept_)[0]))


def to_safetensors(model: Linear, names: Sequence[str] = ()) -> bytes:
    """A logistic regression as bytes that follow from its numbers and the names of its inputs, if it knows any."""
    numbers = {"coefficients": np.ascontiguousarray(model.coefficients), "intercept": np.array([model.intercept])}
    # safetensors writes several texts in an order that changes from process to process
    return save(numbers, {"model": json.dumps({"kind": KIND, "inputs": list(names)})})


def of_safetensors(content: bytes) -> Linear:
    """The logistic regression that ``to_safetensors`` wrote.

    Raises:
        IntegrityError: The bytes are not safetensors, or hold other numbers than those of a logistic regression.
    """
    try:
        numbers = load(content)
    except SafetensorError as error:
        message = f"a logistic regression is not in the safetensors format ({error})"
        raise IntegrityError(f"{message}; write it again") from error
    shapes = {name: array.shape for name, array in numbers.items()}
    if set(shapes) != {"coefficients", "intercept"} or len(shapes["coefficients"]) != 1 or shapes["intercept"] != (1,):
        message = f"a logistic regression in safetensors holds the arrays {shapes}"
        raise IntegrityError(f"{message}; expected coefficients (p,) and intercept (1,)")
    coefficients, intercept = (numbers[name].astype(np.float64) for name in ("coefficients", "intercept"))
    if not (np.isfinite(coefficients).all() and np.isfinite(intercept).all()):
        raise IntegrityError("a logistic regression has coefficients that are not finite; fit it again")
    return Linear(coefficients, float(intercept[0]))


def is_kept(content: bytes) -> bool:
    """Whether bytes in the safetensors format are those of a logistic regression; else they are a network's."""
    length = int.from_bytes(content[:8], "little")
    try:
        said = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["model"])
        return bool(said["kind"] == KIND)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
