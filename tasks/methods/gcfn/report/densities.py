"""How continuous mediators are spread: as a group is, as generators imagine it, and as the reference group is.

A density shows what cumulative shares hide: two humps, a bound at which people pile up, a generator that imagines the
mean for everybody. Intervals have one width, so that a share is a density but for a constant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.terms import DecisionMaker, Kind
from tasks.methods.gcfn.report.bands import band_words
from tasks.methods.gcfn.report.charts import densities
from tasks.methods.gcfn.report.lookups import METHOD, Generators, kinds_of, mediators_of
from tasks.reporting.comparison import capital
from tasks.reporting.lookups import words_for
from tasks.reporting.material import Measure, Shown, View, undrawn
from tasks.reporting.numbers import number_cell, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

OWN, IMAGINED = "mediator_share", "imagined_mediator_share"
MEASURES = {
    OWN: Shown("share by a mediator as it is", "rate"),
    IMAGINED: Shown("share by a mediator as imagined in the reference group", "rate"),
}
Ends = tuple[float, float]


@dataclass(frozen=True)
class Density:
    """One mediator of one group, by interval: as it is, as imagined, and as the reference group is."""

    mediator: str
    """In words."""
    group: str
    shares: Mapping[Ends, tuple[Measure | None, ...]]

    @property
    def drawn(self) -> bool:
        """Whether something of each of the three is known."""
        sides = zip(*self.shares.values(), strict=True)
        return all(any(m is not None and m.value is not None for m in side) for side in sides)


def found(g: Generators) -> list[Density]:
    """Every continuous mediator of every group that was imagined in the reference group."""
    view = next((v for v in g.material.views(METHOD, DecisionMaker.LENDER) if v.attribute == g.attribute.name), None)
    if view is None:
        return []
    names = [n for n in mediators_of(g.material, g.attribute) if g.material.settings.columns[n].type is Kind.CONTINUOUS]
    groups = [group for group in view.groups if any(m.group == group for m in view.all(IMAGINED))]
    return [
        Density(words_for(g.material, name), group, _shares(view, name, group)) for name in names for group in groups
    ]


def _shares(view: View, mediator: str, group: str) -> dict[Ends, tuple[Measure | None, ...]]:
    own, imagined, there = (
        {_ends(m): m for m in view.all(measure) if m.group == of and m.said["mediator"] == mediator}
        for measure, of in ((OWN, group), (IMAGINED, group), (OWN, view.reference))
    )
    return {ends: (own.get(ends), imagined.get(ends), there.get(ends)) for ends in sorted({*own, *imagined, *there})}


def _ends(m: Measure) -> Ends:
    return m.said.get("from", float("-inf")), m.said.get("to", float("inf"))


def figures(g: Generators) -> tuple[Figure, ...]:
    """A panel for each mediator and group."""
    every, drawn = found(g), kinds_of(g, "")
    chosen = [each for each in every if each.drawn]
    caption = (
        "Share of applicants in intervals of one width, which is the density but for a constant: as the group is, as "
        f"the generators imagine it among {g.attribute.reference} (the mean over networks), and as "
        f"{g.attribute.reference} is. A gap in a line is withheld. The outermost hundredths lie outside the figure; "
        "they are in the table."
    )
    left = undrawn(_groups(g), {each.group for each in chosen})
    panels = tuple(_panel(each, drawn, chosen) for each in chosen)
    title = f"Densities of mediators, by {g.attribute.name}"
    return (Figure(title, panels, caption + left, tuple(drawn.values())),)


def _groups(g: Generators) -> list[str]:
    """The groups that were imagined, whether or not there are enough of them for a density."""
    return list(dict.fromkeys(row["group"] for row in g.effects if row["to_group"] == g.attribute.reference))


def _panel(each: Density, drawn: Mapping[str, Swatch], every: list[Density]) -> Panel:
    title = f"{capital(each.mediator)}: {each.group}"
    rows = list(_corners(each, drawn))
    most = max(row["value"] for one in every if one.mediator == each.mediator for row in _known(one, drawn))
    return densities(title, f"{title}; the numbers are in the table below.", rows, drawn, most)


def _known(each: Density, drawn: Mapping[str, Swatch]) -> Iterator[dict[str, Any]]:
    yield from (row for row in _corners(each, drawn) if row["value"] is not None)


def _corners(each: Density, drawn: Mapping[str, Swatch]) -> Iterator[dict[str, Any]]:
    """Both ends of every interval that is not open."""
    closed = [ends for ends in each.shares if float("-inf") < ends[0] and ends[1] < float("inf")]
    for at, what in enumerate(drawn):
        corners = [(end, each.shares[ends][at]) for ends in closed for end in ends]
        for place, (end, m) in enumerate(corners):
            shown = value(m, "rate", interval=False)
            yield {"what": what, "place": place, "x": end, "value": m.value if m else None, "shown": shown}


def tables(g: Generators) -> tuple[TableView, ...]:
    """The numbers of the figure, the open ends with them."""
    rows = tuple(_row(each, ends) for each in found(g) for ends in each.shares)
    header = ("Mediator", "Group", "Interval", "As they are", "As imagined", f"{g.attribute.reference} as they are")
    note = (
        "An interval holds its lower end. As imagined: the mean over networks. Densities of groups with few applicants "
        "are not told."
    )
    title = f"Densities of mediators, by {g.attribute.name}: the numbers of the figure"
    return (TableView(title, header, rows, note, folded=True),)


def _row(each: Density, ends: Ends) -> Row:
    said = {name: end for name, end in zip(("from", "to"), ends, strict=True) if abs(end) < float("inf")}
    cells = (value_cell(m, "rate", interval=False) for m in each.shares[ends])
    return (Cell(each.mediator), Cell(each.group), number_cell(band_words(said)), *cells)
