"""The units of RAGUEL: a model's inputs in standard deviations, and offers in the user's units.

Lists are ranked by distances, so every input is divided by its standard deviation over all rows. Offers are in the
units of the application. A model that bins a number reacts only where the number enters another bin: there a bin is a
step, and an offer goes to the nearest edge of the required bin. An input of one category cannot change by degrees; it
stays as it is, like an immutable column.
"""

from dataclasses import dataclass

import numpy as np

from tasks.counterfactuals.algorithm.recourse.actions import Actions, make_actions
from tasks.numerics.arrays import Floats, Ints
from tasks.numerics.encoding import Scale, encode_continuous

INSIDE = 1e-9
"""Share of a bin by which an offer lies inside of it: on its very edge, rounding would decide."""

WHOLE = 1e-6
"""Of a step: what counts as a whole number of them."""


@dataclass(frozen=True)
class Attribute:
    """An input of a model that stands for a whole column: numbers, or categories that have an order."""

    name: str
    categories: tuple[str, ...] = ()
    """Lowest first; none for numbers. Their values are their numbers."""
    scale: Scale | None = None
    """How numbers, or numbers of categories, are laid onto [0, 1]; None where the model takes them as they are."""
    weight: float = 1.0
    step: float | None = None
    """In the column's units, or in categories."""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    """Of an offer, in the column's units."""
    direction: int = 0
    """1 only up, -1 only down."""
    changeable: bool = True

    @property
    def bin_width(self) -> float:
        """In the column's units; 0 without bins."""
        if self.scale is None or self.scale.bins is None:
            return 0.0
        return (self.scale.high - self.scale.low) / self.scale.bins

    @property
    def input_step(self) -> float:
        """One step as the model takes it; 0 where any amount will do."""
        step = self.step or (1.0 if self.categories else 0.0)
        if self.scale is None:
            return step
        if self.scale.bins is None:
            return step / (self.scale.high - self.scale.low)
        # bins that one step may cross, so that a whole number of steps leads into every bin that is offered
        return max(1.0, float(np.ceil(step / self.bin_width - WHOLE))) / max(self.scale.bins - 1, 1)

    @property
    def input_bounds(self) -> tuple[float, float]:
        """What an offer may move the input to: a model sees nothing of what lies beyond its scale."""
        low, high = self.bounds
        if self.scale is None:
            ends = (0.0, len(self.categories) - 1.0) if self.categories else (-np.inf, np.inf)
            return max(low, ends[0]), min(high, ends[1])
        # an offer is rounded to whole steps of the user's, which may lead one step further into its bin
        spare = (self.step or 0.0) if self.scale.bins else 0.0
        edges = encode_continuous(np.nan_to_num([low + spare, high - spare]), self.scale)
        return float(edges[0]), max(float(edges[0]), float(edges[1]))

    def decoded(self, now: Floats, before: Floats, after: Floats) -> Floats:
        """The nearest values, in the column's units, that the model takes as what an offer moves its input to.

        Args:
            now: ``(r,)`` values in the column's units.
            before: ``(r,)`` the same as the model takes them.
            after: ``(r,)`` what they are moved to; between two steps, it is the further one that is meant.
        """
        way, goal = np.sign(after - before), self._on_a_step(before, after)
        if self.scale is None or self.categories:
            return self._plain(goal)
        if self.scale.bins is None:
            return np.where(way == 0, now, self._plain(goal))
        width, number = self.bin_width, np.rint(goal * max(self.scale.bins - 1, 1))
        edge = self.scale.low + np.where(way > 0, number + INSIDE, number + 1 - INSIDE) * width
        if self.step is not None:
            edge = now + way * self.step * np.ceil(np.abs(edge - now) / self.step - WHOLE)
            # a whole number of steps may end on an edge that belongs to the bin before: then one more is needed
            short = way * (goal - encode_continuous(edge, self.scale)) * (self.scale.bins - 1) > INSIDE
            edge = np.where(short, edge + way * self.step, edge)
        return np.where(way == 0, now, edge)

    def _on_a_step(self, before: Floats, after: Floats) -> Floats:
        step, (low, high) = self.input_step, self.input_bounds
        if step == 0.0:
            return after
        steps = np.ceil(np.abs(after - before) / step - WHOLE)
        goal = before + np.sign(after - before) * steps * step
        # a value beyond the bounds may stay where it is; none is moved there
        return np.where(steps == 0, before, np.clip(goal, np.minimum(low, before), np.maximum(high, before)))

    def _plain(self, inputs: Floats) -> Floats:
        if self.scale is None:
            return np.rint(inputs) if self.categories else inputs
        values = self.scale.low + inputs * (self.scale.high - self.scale.low)
        return np.rint(values) if self.categories else values

    def said(self, value: float) -> str:
        """A value for people."""
        return self.categories[int(value)] if self.categories else f"{value:.10g}"

    def said_offer(self, value: float, falls: bool) -> str:
        """Target of an offer for people: without whole steps, the upper end of a bin is excluded."""
        if self.bin_width > 0 and self.step is None:
            return f"below {value:.7g}" if falls else f"{value:.7g}"
        return self.said(value)


@dataclass(frozen=True)
class Space:
    """The inputs of a model in standard deviations, and what may be done about them."""

    attributes: tuple[Attribute | None, ...]
    """``(d,)`` by input; None where it stands for one category of several."""
    unit: Floats
    """``(d,)`` by which an input is divided."""
    actions: Actions
    """In these units."""

    def values(self, x: Floats) -> Floats:
        """``(n, d)`` inputs as records have them."""
        return x / self.unit

    def decoded(self, now: Floats, x: Floats, values: Floats, column: Ints) -> Floats:
        """Columns in the user's units, where records are moved to ``values``.

        Args:
            now: ``(r, p)`` columns as they are; categories by their numbers.
            x: ``(r, d)`` inputs as they are.
            values: ``(r, d)`` where the records are moved to.
            column: ``(d,)`` number of the column that each input is of.
        """
        found, moved = now.copy(), values != self.values(x)
        for j, attribute in enumerate(self.attributes):
            rows = np.flatnonzero(moved[:, j])
            if attribute is not None and len(rows):
                to = attribute.decoded(now[rows, column[j]], x[rows, j], values[rows, j] * self.unit[j])
                found[rows, column[j]] = to
        return found


def space_of(x: Floats, attributes: tuple[Attribute | None, ...]) -> Space:
    """The space of the rows of an audit.

    Args:
        x: ``(n, d)`` inputs.
        attributes: ``(d,)``.

    Raises:
        SpecError: A weight, a step or bounds make no sense.
    """
    known = np.array([each is not None for each in attributes])
    spread = x.std(axis=0)
    unit = np.where(known & (spread > 0), spread, 1.0)
    told = [each or Attribute("", changeable=False) for each in attributes]
    free = known & (spread > 0) & np.array([each.changeable for each in told])
    low, high = np.array([each.input_bounds if f else (-np.inf, np.inf) for each, f in zip(told, free, strict=True)]).T
    actions = make_actions(
        [each.weight for each in told],
        changeable=free,
        step=np.array([each.input_step if f else 0.0 for each, f in zip(told, free, strict=True)]) / unit,
        direction=[each.direction for each in told],
        lower=low / unit,
        upper=high / unit,
    )
    return Space(attributes, unit, actions)
