"""Histograms: a measure by bins of one quantity, for each group, as rows of a chart and as a table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tasks.reporting.charts.panels import marks
from tasks.reporting.material import Measure, View
from tasks.reporting.numbers import number_cell, value_cell
from tasks.reporting.section import Cell, TableView

Bin = tuple[float, float]
"""Both ends of a bin; the upper one is infinite where the bin has none."""


@dataclass(frozen=True)
class Histogram:
    """A measure whose parameters ``from`` and ``to`` are the ends of a bin."""

    view: View
    measure: str
    words: Callable[[Bin], str]
    """A bin as it is printed."""
    kind: Callable[[Bin], str]
    """How a bin is drawn, by the name of its swatch."""

    @cached_property
    def bins(self) -> list[Bin]:
        """The bins of all groups, ascending."""
        return sorted({_ends(m) for m in self.view.all(self.measure)})

    def of(self, group: str) -> dict[Bin, Measure]:
        """The shares of a group by bin."""
        return {_ends(m): m for m in self.view.all(self.measure) if m.group == group}

    def marks(self, group: str) -> Iterator[dict[str, Any]]:
        """Rows of the chart of a group."""
        for ends, m in self.of(group).items():
            yield from marks(m, "rate", closed=True, bin=self.words(ends), kind=self.kind(ends))

    def table(self, title: str, quantity: str, groups: Sequence[str], bins: Sequence[Bin]) -> TableView:
        """The numbers of the figure: a row for each of ``bins``, a column for each of ``groups``."""

        def share(group: str) -> Callable[[Bin], Cell]:
            found = self.of(group)
            return lambda ends: value_cell(found.get(ends), "rate")

        columns = {quantity: lambda ends: number_cell(self.words(ends)), **{group: share(group) for group in groups}}
        return TableView.of(title, bins, columns, folded=True)


def _ends(m: Measure) -> Bin:
    return float(m.said["from"]), float(m.said.get("to", float("inf")))
