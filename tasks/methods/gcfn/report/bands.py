"""Shares of people by bands of what is known of them: the score of the audited model, and each mediator.

Bands are the same for all groups, but that neighbours with few people of a group are one band of that group. Here
belong how bands are found, ordered and called, and the figure and table of any measures by band.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.methods.gcfn.algorithm.bands import OTHERS
from tasks.methods.gcfn.algorithm.people import PEOPLE
from tasks.methods.gcfn.report.charts import shares
from tasks.reporting.charts.panels import Rows, marks
from tasks.reporting.lookups import words_for
from tasks.reporting.material import Material, Measure, View, listed
from tasks.reporting.numbers import MINUS, missing_words, n_cell, number_cell, value_cell, whole
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

SCORE = "score"
"""What people are sorted by, as measures name it, where that is no mediator."""
LEAST = PEOPLE


@dataclass(frozen=True)
class Told:
    """One measure by band, and how it is drawn."""

    measure: str
    swatch: Swatch


@dataclass(frozen=True)
class Sorted:
    """The people of one group along the bands of one thing."""

    by: str
    """In words."""
    group: str
    bands: Mapping[str, tuple[Measure | None, ...]]
    """Band in words -> the measures in the order in which they were asked for."""


def sorted_by(material: Material, view: View, told: Sequence[Told]) -> list[Sorted]:
    """Every group by the score, then by each mediator."""
    found: dict[tuple[str, str], dict[str, dict[int, Measure]]] = {}
    every = [(at, m) for at, each in enumerate(told) for m in view.all(each.measure)]
    for at, m in sorted(every, key=lambda one: _place(material, one[1])):
        bands = found.setdefault((_by(material, m), m.group), {})
        bands.setdefault(band_words(m.said), {})[at] = m
    return [
        Sorted(by, group, {band: tuple(own.get(at) for at in range(len(told))) for band, own in bands.items()})
        for (by, group), bands in sorted(found.items(), key=lambda one: view.groups.index(one[0][1]))
    ]


def _by(material: Material, m: Measure) -> str:
    return f"score of the {material.model}" if m.said["by"] == SCORE else words_for(material, m.said["mediator"])


def _place(material: Material, m: Measure) -> tuple[int, float, int, str]:
    """Where a band stands among all bands: by what, then from low to high or in the order of the categories."""
    name, category = m.said.get("mediator", ""), m.said.get("category", "")
    columns = list(material.settings.columns)
    order = list(material.settings.columns[name].order) if name else []
    known = order.index(category) if category in order else len(order) + (category == OTHERS)
    return columns.index(name) if name else -1, m.said.get("from", float("-inf")), known, category


def band_words(said: Mapping[str, Any]) -> str:
    """A band as it stands in tables and beside marks."""
    if "category" in said:
        return str(said["category"])
    low, high = (end_words(said[name]) if name in said else "" for name in ("from", "to"))
    return f"{low} to {high}" if low and high else f"below {high}" if high else f"{low} and more"


def end_words(value: float) -> str:
    """An end of a band: a round number, whole."""
    return f"{value:,.10g}".replace("-", MINUS)


def figures(found: Sequence[Sorted], told: Sequence[Told], view: View, title: str, caption: str) -> tuple[Figure, ...]:
    """A figure for each thing that people are sorted by, with a panel for every group."""
    kinds = {each.swatch.text: each.swatch for each in told}
    out = []
    for by in dict.fromkeys(each.by for each in found):
        points = {each.group: rows for each in found if each.by == by and (rows := _points(each, kinds))}
        every = [row for rows in points.values() for row in rows]
        panels = {group: _panel(view, group, by, rows, kinds, every) for group, rows in points.items()}
        if panels:
            named = f"{title}: by {by}, by {view.attribute}"
            out.append(Figure(named, tuple(panels.values()), caption + _left(view, points), tuple(kinds.values())))
    return tuple(out)


def _left(view: View, drawn: Collection[str]) -> str:
    out = [group for group in view.groups if group not in drawn]
    return f" Not drawn, because there are too few for two bands, or withheld: {listed(out)}." if out else ""


def _panel(view: View, group: str, by: str, rows: Rows, kinds: Mapping[str, Swatch], every: Rows) -> Panel:
    label = f"{group} by {by}; the numbers are in the table below."
    return shares(view.named(group), label, rows, kinds, "third", every)


def _points(each: Sorted, kinds: Mapping[str, Swatch]) -> Rows:
    return [
        row
        for band, measures in each.bands.items()
        for what, m in zip(kinds, measures, strict=True)
        for row in marks(m, "rate", row=band, what=what)
    ]


def table(found: Sequence[Sorted], told: Sequence[Told], title: str, note: str) -> TableView:
    """The numbers of the figures: people, those of whom the first measure is told, and all shares."""
    rows = tuple(_row(each, band, measures) for each in found for band, measures in each.bands.items())
    said = [each.swatch.text for each in told]
    header = ("Group", "Sorted by", "Band", "Applicants", f"Of these, {said[0]}", *(f"Share: {text}" for text in said))
    return TableView(title, header, rows, note, folded=True)


def _row(each: Sorted, band: str, measures: Sequence[Measure | None]) -> Row:
    first = measures[0]
    named = (Cell(each.group), Cell(each.by), Cell(band))
    return (*named, n_cell(first), _events(first), *(value_cell(m, "rate") for m in measures))


def _events(m: Measure | None) -> Cell:
    if m is None or m.value is None:
        return Cell(missing_words(m), "none")
    # a member of the reference group counts with the mean over several other groups, and then nobody is counted
    return Cell("–", "none") if m.events is None else number_cell(whole(m.events))
