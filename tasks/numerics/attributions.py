"""Integrated gradients: by quadrature, of linear and torch models, and a substitute for models without a gradient."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.special import expit

from schemas.errors import IntegrityError, SpecError
from tasks.numerics.arrays import Floats
from tasks.numerics.networks.network import Network

if TYPE_CHECKING:
    from tasks.numerics.piecewise_attributions import Piecewise


# --------------------------------------------------------------------------------------------------------------------
# Logit and gradient, by automatic differentiation, of any torch module that gives one number per row.


ROWS_AT_ONCE = 65_536
"""Rows that the module sees at the same time."""

TORCH_CLIP = 1e-6
"""Probabilities that a module gives are held this far from 0 and 1; beyond, the logit is flat."""


@dataclass(frozen=True)
class Module:
    """A torch module ``(n, p) -> (n,)`` or ``(n, 1)``, in the precision of its parameters."""

    module: Any
    """In evaluation mode from here on."""
    output: Literal["logit", "probability"] = "logit"
    """What the module gives."""

    def __post_init__(self) -> None:
        """Switch dropout off, and batch statistics to those of training."""
        self.module.eval()

    def logit(self, x: Floats) -> Floats:
        """``(n,)`` logits of rows ``(n, p)``.

        Raises:
            SpecError: The module does not give one number per row, or no probability where it should.
        """
        parts = [x[start : start + ROWS_AT_ONCE] for start in range(0, len(x), ROWS_AT_ONCE)]
        logits = [self._logits(self._tensor(part)).detach().cpu().double().numpy() for part in parts]
        return np.concatenate([np.zeros(0), *logits])

    def gradient(self, x: Floats) -> Floats:
        """``(n, p)`` gradients of the logit at rows ``(n, p)``, all at once."""
        import torch  # seconds to import, and whoever has a module has it already

        tensor = self._tensor(x).requires_grad_()
        (gradient,) = torch.autograd.grad(self._logits(tensor).sum(), tensor)
        gradients: Floats = gradient.cpu().double().numpy()
        return gradients

    def _tensor(self, x: Floats) -> Any:
        import torch

        like = next(
            (parameter for parameter in self.module.parameters() if parameter.is_floating_point()), torch.zeros(0)
        )
        return torch.tensor(x, dtype=like.dtype, device=like.device)

    def _logits(self, tensor: Any) -> Any:
        out = self.module(tensor)
        if tuple(out.shape) not in ((len(tensor),), (len(tensor), 1)):
            message = f"a module gives {tuple(out.shape)} for {len(tensor)} rows; expected ({len(tensor)},) or "
            raise SpecError(f"{message}({len(tensor)}, 1), the {self.output} of the favourable decision")
        out = out.reshape(-1)
        if self.output == "logit":
            return out
        if ((out < 0) | (out > 1)).any():
            low, high = float(out.detach().min()), float(out.detach().max())
            message = f"a module gives numbers from {low:g} to {high:g}, which are no probabilities"
            raise SpecError(f"{message}; if they are logits, say so: output: logit")
        return out.logit(TORCH_CLIP)


# --------------------------------------------------------------------------------------------------------------------
# Integrated gradients by quadrature, for any model that has a gradient.
#
# Nodes are added where the attributions do not sum to the difference of the logits: by Gauss-Legendre panels, which
# need few nodes for a smooth model, or by the midpoint rule of the paper. A row that stays incomplete keeps its last
# values, with its error of completeness.
#
# Scope: rules and refinement. Gradients: ``modules`` and ``tasks.numerics.networks.network``.


POINTS_AT_ONCE = 65_536
"""Points of paths whose gradients are held at the same time."""

PANEL = 32
"""Nodes of a Gauss-Legendre panel; more nodes are more panels."""


class Differentiable(Protocol):
    """A logit with a gradient."""

    def logit(self, x: Floats) -> Floats:
        """``(m,)`` logits of points ``(m, p)``."""

    def gradient(self, x: Floats) -> Floats:
        """``(m, p)`` gradients of the logit at points ``(m, p)``."""


@dataclass(frozen=True)
class Rule:
    """How a path is sampled."""

    steps: int = 32
    """Nodes of every path (CEC: T)."""
    most: int = 4096
    """Nodes are doubled up to this number where attributions are incomplete; equal to ``steps``: never."""
    tolerance: float = 1e-3
    """Completeness error that is accepted, relative to the gain of the logit where that is above 1."""
    nodes: Literal["gauss_legendre", "midpoint"] = "gauss_legendre"


@dataclass(frozen=True)
class Quadrature:
    """Integrated gradients of a model, up to the error of a rule."""

    model: Differentiable
    rule: Rule = Rule()
    name: ClassVar[str] = "integrated gradients, quadrature"
    exact: ClassVar[bool] = False

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return self.model.logit(x)

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``."""
        gain = self.model.logit(x) - self.model.logit(baseline)
        allowed = self.rule.tolerance * np.maximum(1.0, np.abs(gain))
        attributions = np.empty(x.shape)
        rows, steps = np.arange(len(x)), self.rule.steps
        while len(rows):
            attributions[rows] = self._integrate(x[rows], baseline[rows], steps)
            short = np.abs(attributions[rows].sum(axis=1) - gain[rows]) > allowed[rows]
            steps *= 2
            rows = rows[short] if steps <= self.rule.most else rows[:0]
        return attributions

    def _integrate(self, x: Floats, baseline: Floats, steps: int) -> Floats:
        nodes, weights = sample(self.rule.nodes, steps)
        way, mean = x - baseline, np.empty(x.shape)
        size = max(1, POINTS_AT_ONCE // len(nodes))
        for start in range(0, len(x), size):
            part = slice(start, start + size)
            points = baseline[part, None] + nodes[:, None] * way[part, None]
            gradients = self.model.gradient(points.reshape(-1, x.shape[1])).reshape(points.shape)
            mean[part] = np.einsum("s,rsp->rp", weights, gradients)
        return way * mean


def sample(kind: Literal["gauss_legendre", "midpoint"], steps: int) -> tuple[Floats, Floats]:
    """Nodes in (0, 1) and their weights, which sum to 1: ``(steps,)`` both; whole panels where there are several."""
    if kind == "midpoint":
        return (np.arange(steps) + 0.5) / steps, np.full(steps, 1 / steps)
    panels = -(-steps // PANEL)
    nodes, weights = np.polynomial.legendre.leggauss(min(steps, PANEL))
    within = (np.arange(panels)[:, None] + (nodes + 1) / 2) / panels
    return within.ravel(), np.tile(weights / 2 / panels, panels)


# --------------------------------------------------------------------------------------------------------------------
# Linear models of the logit: integrated gradients, which are a constant gradient, and the numbers as bytes.


KIND: Final = "logistic_regression"
"""What the metadata of kept coefficients say that they are."""


@dataclass(frozen=True)
class Linear:
    """A logit ``w x + c``; the attribution of feature ``j`` is ``w_j (x_j - b_j)`` on every path."""

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
        description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["model"])
        return bool(description["kind"] == KIND)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


# --------------------------------------------------------------------------------------------------------------------
# A substitute for integrated gradients, for models without a gradient: forests, boosted trees, black boxes.
#
# The path from baseline to row is cut into equal steps. On each step features go to their next value one at a time,
# once in the order of the columns and once in reverse. The gain of the logit is attributed to the feature that moves,
# averaged over the two orders and summed over the steps.
#
# * The gains of a step telescope, so attributions sum to ``f(x) - f(b)`` but for rounding: completeness always holds,
# and
#   says nothing of their quality.
# * Of a smooth model the limit for many steps is integrated gradients: both are Aumann-Shapley prices (Aumann and
# Shapley
#   1974) on the diagonal. Of a model that jumps there is no gradient, and the height of a jump goes to the feature
#   whose
#   step crosses it; where two features cross in the same step, each order blames one of them, and they share.
# * Within a step the average is the Shapley value where no more than two features interact; beyond, it depends on the
#   order of the columns, by amounts that vanish with the steps where the model is smooth.
# * The model is asked about points off the straight line, and about values between those of a category.


DIFFERENCES_POINTS_AT_ONCE = 262_144
"""Points that the model is asked about at the same time."""

CLIP = 1e-3
"""How far probabilities are held from 0 and 1. A forest says 0 and 1, which have no log odds; and how far below one in
a thousand it would have gone, it cannot tell."""


@dataclass(frozen=True)
class Differences:
    """Attributions by differences of the logit along the path; ``steps (2 p - 1) + 1`` evaluations of each row."""

    score: Callable[[Floats], Floats]
    """From points ``(m, p)`` to logits ``(m,)``."""
    steps: int = 16
    name: ClassVar[str] = "path differences, a substitute for integrated gradients"
    exact: ClassVar[bool] = False

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits of rows ``(r, p)``."""
        return self.score(x)

    def attribute(self, x: Floats, baseline: Floats) -> Floats:
        """``(r, p)`` attributions of rows ``(r, p)``, each from its own baseline ``(r, p)``; zero where they agree."""
        attributions = np.empty(x.shape)
        size = max(1, DIFFERENCES_POINTS_AT_ONCE // (2 * self.steps * x.shape[1]))
        for start in range(0, len(x), size):
            part = slice(start, start + size)
            attributions[part] = self._attribute(x[part], baseline[part])
        return attributions

    def _attribute(self, x: Floats, baseline: Floats) -> Floats:
        at = np.linspace(0.0, 1.0, self.steps + 1)[:, None]
        path = baseline[:, None] + at * (x - baseline)[:, None]  # a feature that does not move stays to the last bit
        path[:, -1] = x
        ends = self._scores(path)
        before, after = path[:, :-1, None], path[:, 1:, None]
        first = np.tri(x.shape[1] - 1, x.shape[1], dtype=bool)  # row k: the first k + 1 features
        upwards = _between(ends[:, :-1], self._scores(np.where(first, after, before)), ends[:, 1:])
        downwards = _between(ends[:, 1:], self._scores(np.where(first, before, after)), ends[:, :-1])
        gains: Floats = (np.diff(upwards) - np.diff(downwards)).sum(axis=1) / 2
        return gains

    def _scores(self, points: Floats) -> Floats:
        """``(...)`` logits of points ``(..., p)``."""
        return self.score(points.reshape(-1, points.shape[-1])).reshape(points.shape[:-1])


def _between(start: Floats, inner: Floats, other: Floats) -> Floats:
    """``(r, steps, p + 1)`` logits as features go one after the other."""
    return np.concatenate([start[..., None], inner, other[..., None]], axis=-1)


def log_odds(probability: Floats) -> Floats:
    """Log odds of probabilities held between ``CLIP`` and ``1 - CLIP``; of the same shape."""
    inside = np.clip(probability, CLIP, 1 - CLIP)
    return np.log(inside / (1 - inside))


# --------------------------------------------------------------------------------------------------------------------
# Attributions: the contribution of each feature to a model's logit, on the straight path from a baseline to a row.
#
# Integrated gradients (Sundararajan, Taly and Yan 2017; CEC, Principle 1) of feature ``j`` are ``(x_j - b_j)`` times
# the mean over the path of the logit's derivative by ``x_j``. They have a closed form in ``linear`` and ``piecewise``;
# ``quadrature`` serves any model with a gradient, and ``differences`` substitutes where there is none.
#
# Scope: the choice among them for a network.


def of_network(network: Network, rule: Rule | None = None) -> "Piecewise | Quadrature":
    """The attributor of a network: the closed form of a ReLU network without a rule, else a quadrature."""
    if network.activation == "relu" and rule is None:
        from tasks.numerics.piecewise_attributions import Piecewise  # numba, and who only reads models needs none

        return Piecewise(network)
    return Quadrature(network, rule or Rule())
