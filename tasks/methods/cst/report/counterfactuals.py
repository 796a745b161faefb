"""Who the complainants would have been: each feature of a group as it is, and as it would be in the reference group.

Seldom does anything show a wrong causal graph as soon as this does: a reader who knows the trade sees whether a shift
is believable. Numbers are told by tenths, categories by shares. Of a group so small that fewer people than disclosure
control allows lie beyond the outermost tenth, nothing is told.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.audit.spec import Protected
from tasks.methods.cst.report.charts.panels import AFTER, BEFORE, shift
from tasks.methods.cst.settings import CstSettings
from tasks.metrics.algorithm.disclosure import Policy, complement, rounded, small
from tasks.reporting.charts.vega import REFERENCE, WARM
from tasks.reporting.comparison import capital
from tasks.reporting.lookups import words_for
from tasks.reporting.material import Material, anchor, listed, undrawn
from tasks.reporting.numbers import count, number_cell, percent, significant
from tasks.reporting.section import Cell, Figure, Panel, Row, Section, Swatch, TableView

_LEGEND = (Swatch(BEFORE, REFERENCE, shape="circle"), Swatch(AFTER, WARM, shape="triangle"))
_OUTERMOST = 0.1
"""Share of the people beyond the outermost quantile; categories of so small a group are withheld as well."""


@dataclass(frozen=True)
class Line:
    """One quantile or category of a feature, in one group; None where it is withheld."""

    words: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Shifted:
    """A feature of a group, as it is and as it would be."""

    group: str
    n: int
    lines: tuple[Line, ...]
    share: bool
    """Whether the lines are shares of categories."""
    clipped: int

    @property
    def printed(self) -> bool:
        """Whether anything of it may be shown."""
        return any(line.before is not None for line in self.lines)


def section(material: Material) -> Section:
    """One part for each protected attribute that anything follows from."""
    effects: defaultdict[str, defaultdict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in material.causal_effects:
        effects[row["protected_attribute"]][row["feature"]].append(row)
    parts = tuple(_part(material, p, effects[p.name]) for p in material.settings.protected if p.name in effects)
    words = (
        "The imagined applicants are what the test groups are searched around. If a shift below is not believable, "
        "neither is what follows from it.",
    )
    asked = material.settings.methods.of(CstSettings)
    if asked and asked.generator == "nearest":
        words = (
            "The applicants who stand for the complainants are real: each is the most like one of them in what makes "
            "applicants comparable, and another person in all else. As imagined reads: as matched.",
        )
    return Section("Who the complainants would have been", "cst-imagined", words if parts else (), parts=parts)


def _part(material: Material, p: Protected, effects: Mapping[str, list[Mapping[str, Any]]]) -> Section:
    found = {feature: shifted(rows, material.policy) for feature, rows in effects.items()}
    title = f"As they are and as imagined, by {p.name}"
    figures = (_figure(material, f"Features of the applicants, by {p.name}", p.reference, found),)
    tables = (_table(material, title, found),)
    name = anchor("cst", "imagined", p.name)
    return Section(title, name, figures=tuple(f for f in figures if f.panels), tables=tables)


def shifted(rows: Iterable[Mapping[str, Any]], policy: Policy) -> tuple[Shifted, ...]:
    """A feature of each group, the largest first, with what disclosure control withholds left out."""
    by_group: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_group[row["group"]].append(row)
    made = [_of_group(group, mine, policy) for group, mine in by_group.items()]
    return tuple(sorted(made, key=lambda each: (-each.n, each.group)))


def _of_group(group: str, rows: list[Mapping[str, Any]], policy: Policy) -> Shifted:
    n, share = rows[0]["n"], rows[0]["category"] is not None
    names = [str(row["category"]) if share else f"{100 * row['quantile']:.0f} % lie below" for row in rows]
    before, after = ([row[side] for row in rows] for side in ("factual", "imagined"))
    if n * _OUTERMOST < policy.smallest:
        before = after = [None] * len(rows)
    elif share:
        before, after = _shares(before, after, n, policy)
    lines = tuple(Line(*each) for each in zip(names, before, after, strict=True))
    return Shifted(group, n, lines, share, rows[0]["clipped"])


def _shares(
    before: list[float], after: list[float], n: int, policy: Policy
) -> tuple[list[float | None], list[float | None]]:
    """Shares from rounded counts; a category with a small count is withheld, and one that would give it away too."""
    sides = [np.round(np.array(side) * n).astype(np.int64) for side in (before, after)]
    hidden = np.zeros(len(before), dtype=bool)
    for counts in sides:
        hidden |= np.array([small(policy, n, int(c)) for c in counts])
    for counts in sides:
        hidden = complement(hidden, counts, policy.smallest)
    whole = max(1, rounded(policy, n))
    told = [
        [None if gone else rounded(policy, int(c)) / whole for c, gone in zip(counts, hidden, strict=True)]
        for counts in sides
    ]
    return told[0], told[1]


def _figure(material: Material, title: str, reference: str, found: Mapping[str, tuple[Shifted, ...]]) -> Figure:
    """A panel for every feature and group; the groups of a feature have one scale."""
    panels, cut = [], []
    for feature, groups in found.items():
        words, drawn = words_for(material, feature), [each for each in groups if each.printed]
        panels += [_panel(f"{capital(words)}: {each.group}", each, _reach(drawn)) for each in drawn]
        cut += [_clipped(material, words, each) for each in drawn if each.clipped]
    caption = (
        f"Each feature as it is, and as it would be in the reference group {reference}: the value that a tenth, two "
        f"tenths and so on of the group lie below, or the share of each category. {' '.join(cut)}"
    )
    everyone = dict.fromkeys(each.group for groups in found.values() for each in groups)
    seen = {each.group for groups in found.values() for each in groups if each.printed}
    said = f"{caption.strip()} {_counted(material, found)}"
    return Figure(title, tuple(panels), said + undrawn(everyone, seen), _LEGEND)


def _counted(material: Material, found: Mapping[str, tuple[Shifted, ...]]) -> str:
    """How many people of each group are drawn, and how many it takes."""
    sizes = {each.group: each.n for groups in found.values() for each in groups if each.printed}
    said = ", ".join(f"{group} {count(rounded(material.policy, n))}" for group, n in sizes.items())
    least = math.ceil(material.policy.smallest / _OUTERMOST)
    return f"Applicants: {said or 'none'}; a group of fewer than {least} is too small to be told by tenths."


def _reach(drawn: list[Shifted]) -> tuple[float, float]:
    """From the least to the most that is drawn, with a margin; shares begin at 0."""
    values = [v for each in drawn for line in each.lines for v in (line.before, line.after) if v is not None]
    low, high = min(values), max(values)
    margin = 0.04 * (high - low)
    return (0.0, min(1.0, high + margin)) if drawn[0].share else (low - margin, high + margin)


def _clipped(material: Material, words: str, each: Shifted) -> str:
    few = small(material.policy, each.clipped)
    n = f"fewer than {material.policy.smallest}" if few else count(rounded(material.policy, each.clipped))
    return f"{capital(words)}, {each.group}: {n} imagined values were cut off at their bounds."


def _panel(title: str, each: Shifted, reach: tuple[float, float]) -> Panel:
    rows = [
        {"row": line.words, "what": what, "value": value, "shown": _written(value, each.share)}
        for line in each.lines
        for what, value in ((BEFORE, line.before), (AFTER, line.after))
        if value is not None
    ]
    order = [line.words for line in each.lines if line.before is not None]
    label = f"{title}. " + "; ".join(f"{row['row']}, {row['what']}: {row['shown']}" for row in rows)
    return shift(title, label, rows, order if each.share else order[::-1], reach, each.share)


def _table(material: Material, title: str, found: Mapping[str, tuple[Shifted, ...]]) -> TableView:
    """The numbers of the figures, with a row for what is withheld."""
    rows: list[Row] = [
        (
            Cell(words_for(material, feature)),
            Cell(each.group),
            Cell(line.words),
            _cell(line.before, each.share),
            _cell(line.after, each.share),
        )
        for feature, groups in found.items()
        for each in groups
        for line in each.lines
    ]
    header = ("Feature", "Group", "", "As they are", "As imagined")
    withheld = [each.group for groups in found.values() for each in groups if not each.printed]
    note = f"Withheld, because the group is small: {listed(dict.fromkeys(withheld))}." if withheld else ""
    return TableView(f"{title}: the numbers of the figures", header, tuple(rows), note, folded=True)


def _written(value: float, share: bool) -> str:
    return percent(value) if share else significant(value)


def _cell(value: float | None, share: bool) -> Cell:
    return Cell("withheld", "none") if value is None else number_cell(_written(value, share))
