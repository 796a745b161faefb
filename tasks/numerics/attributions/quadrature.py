"""Integrated gradients by quadrature, for any model that has a gradient.

Nodes are added where the attributions do not sum to the difference of the logits: by Gauss-Legendre panels, which need
few nodes for a smooth model, or by the midpoint rule of the paper. A row that stays incomplete keeps its last values,
with its error of completeness.

Scope: rules and refinement. Gradients: ``modules`` and ``tasks.numerics.networks.parameters``.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from tasks.numerics.arrays import Floats

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
