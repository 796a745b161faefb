"""What mediators are, what generators imagine they would have been, and what they are in the other group.

A reader who knows the trade sees whether a shift is believable. Numbers are told by tenths, categories by shares. What
is told of people is withheld where they are few, by what is known of these very people alone: whoever stands beside
them, the same cell is withheld everywhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.methods.gcfn.report.charts import below, shares
from tasks.methods.gcfn.report.lookups import Generators, kinds_of
from tasks.metrics.algorithm.disclosure import Policy, complement, rounded, small
from tasks.reporting.comparison import capital
from tasks.reporting.lookups import words_for
from tasks.reporting.material import listed
from tasks.reporting.numbers import count, number_cell, percent, significant
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

SIDES = ("factual", "imagined", "there")
_OUTERMOST = 0.1
"""Share of the people beyond the outermost quantile; categories of so small a group are withheld as well."""


@dataclass(frozen=True)
class Line:
    """One quantile or category of a mediator, by ``SIDES``; None where it is withheld."""

    name: str | float
    """The category, or the share that lies below."""
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Shifted:
    """A mediator of a group, as it is, as imagined, and as it is in the other group."""

    feature: str
    """In words."""
    group: str
    to: str
    n: int
    lines: tuple[Line, ...]
    by_category: bool

    @property
    def drawn(self) -> bool:
        """Whether all three can be shown of anything."""
        return any(None not in line.values for line in self.lines)


def shifted(g: Generators) -> list[Shifted]:
    """Every mediator and pair of groups, as the stage told them."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in g.effects:
        found.setdefault((row["feature"], row["group"], row["to_group"]), []).append(row)
    return [
        _shifted(words_for(g.material, feature), group, to, rows, g.material.policy)
        for (feature, group, to), rows in found.items()
    ]


def _shifted(feature: str, group: str, to: str, rows: list[Mapping[str, Any]], policy: Policy) -> Shifted:
    by_category = rows[0]["category"] is not None
    names: list[str | float] = [row["category"] if by_category else row["quantile"] for row in rows]
    sizes = (rows[0]["n"], rows[0]["n"], rows[0]["n_there"])
    sides = [_told([row[side] for row in rows], n, by_category, policy) for side, n in zip(SIDES, sizes, strict=True)]
    lines = tuple(Line(name, tuple(values)) for name, *values in zip(names, *sides, strict=True))
    return Shifted(feature, group, to, rows[0]["n"], lines, by_category)


def _told(values: list[float], n: int, by_category: bool, policy: Policy) -> list[float | None]:
    """What may be told of ``n`` people: nothing of few, and no small category nor one that would give it away."""
    if n * _OUTERMOST < policy.smallest:
        return [None] * len(values)
    if not by_category:
        return list(values)
    counts = np.round(np.array(values) * n).astype(np.int64)
    hidden = complement(np.array([small(policy, n, int(c)) for c in counts]), counts, policy.smallest)
    whole = max(1, rounded(policy, n))
    return [None if gone else rounded(policy, int(c)) / whole for c, gone in zip(counts, hidden, strict=True)]


def figures(g: Generators) -> tuple[Figure, ...]:
    """Every mediator of every group that was imagined in the reference group: numbers, then categories."""
    found = [s for s in shifted(g) if s.to == g.attribute.reference]
    return _numbers(g, found), _categories(g, found)


def _numbers(g: Generators, found: list[Shifted]) -> Figure:
    kinds = kinds_of(g, "")
    chosen = [s for s in found if not s.by_category]
    caption = (
        "Of each mediator the share of applicants that lies below a value: as the group is, as the generators imagine "
        f"it among {g.attribute.reference} (all networks together), and as {g.attribute.reference} is. Imagined and "
        f"{g.attribute.reference} need not coincide, since covariates differ. That a distribution is believable does "
        "not show that each person's place in it is."
    )
    reach = {s.feature: _reach(each for each in chosen if each.feature == s.feature) for s in chosen if s.drawn}
    panels = tuple(_curves(s, kinds, reach[s.feature]) for s in chosen if s.drawn)
    said = caption + _counted(g, chosen)
    return Figure(f"Mediators in numbers, by {g.attribute.name}", panels, said, tuple(kinds.values()))


def _categories(g: Generators, found: list[Shifted]) -> Figure:
    kinds, chosen = kinds_of(g, "shape"), [s for s in found if s.by_category]
    caption = (
        "Share of each category: as the group is, as the generators imagine it (all networks together), and as "
        f"{g.attribute.reference} is. Categories without a mark are withheld."
    )
    panels = tuple(_marks(s, kinds) for s in chosen if s.drawn)
    said = caption + _counted(g, chosen)
    return Figure(f"Mediators with categories, by {g.attribute.name}", panels, said, tuple(kinds.values()))


def _counted(g: Generators, chosen: list[Shifted]) -> str:
    sizes = {s.group: s.n for s in chosen if s.drawn}
    said = ", ".join(f"{group} {count(rounded(g.material.policy, n))}" for group, n in sizes.items())
    gone = list(dict.fromkeys(s.group for s in chosen if not s.drawn))
    hidden = f" Not drawn, because withheld: {listed(gone)}." if gone else ""
    return (f" Applicants: {said}." if said else "") + hidden


def _reach(chosen: Iterable[Shifted]) -> tuple[float, float]:
    """The ends of the scale that the groups of a mediator have in common."""
    values = [value for s in chosen if s.drawn for line in s.lines for value in line.values if value is not None]
    return min(values), max(values)


def _curves(s: Shifted, kinds: Mapping[str, Swatch], reach: tuple[float, float]) -> Panel:
    rows = [
        {"what": what, "share": line.name, "value": value, "shown": significant(value)}
        for line in s.lines
        for what, value in zip(kinds, line.values, strict=True)
        if value is not None
    ]
    title = f"{capital(s.feature)}: {s.group}"
    return below(title, f"{title}; the numbers are in the table below.", rows, kinds, reach)


def _marks(s: Shifted, kinds: Mapping[str, Swatch]) -> Panel:
    rows = [
        {"row": str(line.name), "what": what, "value": value, "low": None, "high": None, "shown": percent(value)}
        for line in s.lines
        for what, value in zip(kinds, line.values, strict=True)
        if value is not None
    ]
    title = f"{capital(s.feature)}: {s.group}"
    return shares(title, f"{title}; the numbers are in the table below.", rows, kinds, "third")


def tables(g: Generators) -> tuple[TableView, ...]:
    """The numbers of the figures, and the same for the reference group imagined elsewhere."""
    rows = tuple(_rows(shifted(g)))
    header = ("Mediator", "Group", "Imagined as", "", "As they are", "As imagined", "The other group as it is")
    note = (
        "Numbers: the value that a tenth, two tenths and so on lie below. Categories: their share. As imagined: all "
        "networks together. Withheld: few people, or what would give a few away."
    )
    title = f"Mediators as they are and as imagined, by {g.attribute.name}: the numbers of the figures"
    return (TableView(title, header, rows, note, folded=True),)


def _rows(found: Iterable[Shifted]) -> Iterator[Row]:
    for s in found:
        for line in s.lines:
            name = line.name if isinstance(line.name, str) else f"{100 * line.name:.0f} % lie below"
            cells = (_cell(value, s.by_category) for value in line.values)
            yield (Cell(s.feature), Cell(s.group), Cell(s.to), Cell(name), *cells)


def _cell(value: float | None, share: bool) -> Cell:
    if value is None:
        return Cell("withheld", "none")
    return number_cell(percent(value) if share else significant(value))
