"""A measure beside its size-matched reference: one grammar for all tables and curves of FGCE's chapter.

A small group has a thinner graph and fewer candidates, and that alone moves every measure. So each group is set beside
the reference group, subsampled to its size, and never beside the reference group as it is: in a table by a column, in a
figure by a grey line with the range of the subsamples, in a panel that is the group's own.

Here belongs what the parts of the chapter share. Which measures are shown, and in what order, is theirs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.reporting.charts import vega
from tasks.reporting.material import Measure, Shown, View, undrawn
from tasks.reporting.numbers import NOTED, n_cell, number_cell, p_cell, percent, value, value_cell, whole
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

BRACKETS = "In square brackets: intervals; in round ones, for the size-matched value, the range of the subsamples."
RANK = "p belongs to the difference from the size-matched value, and counts the sampling error of both."

At = Mapping[str, float | str]
"""Parameters of a measure."""


@dataclass(frozen=True)
class Curve:
    """A measure along one of its parameters, the others fixed."""

    measure: str
    words: str
    """What tells this curve from the other of the same panel."""
    at: At


@dataclass(frozen=True)
class Axes:
    """What the curves of a figure have in common."""

    x: str
    """The parameter along which they run."""
    x_words: str
    y: Shown
    """How values are written; shares are drawn from 0 to 1."""


def headline(view: View, measure: str, shown: Shown, parameters: At | None = None, note: str = "") -> TableView:
    """A measure of every group beside the size-matched reference, with the difference from it."""
    given = dict(parameters or {})
    rows = [_beside(view, group, measure, shown, given) for group in view.groups]
    said = "".join(f", {k} = {v}" for k, v in given.items())
    header = (
        "Group",
        "Factuals",
        capital(shown.words),
        f"{view.reference} at this size",
        "Difference from that",
        f"Raw difference from {view.reference}",
        "p",
        "q",
    )
    title = f"{capital(shown.words)}{said}, beside the size-matched reference"
    found = any(view.get(group, measure, given) for group in view.groups)
    return TableView(title, header, tuple(rows) if found else (), note)


def matched_cell(view: View, group: str, m: Measure | None, shown: Shown) -> Cell:
    """A size-matched value, of which the reference group has none."""
    return Cell("–", "none") if group == view.reference else value_cell(m, shown.unit)


def _beside(view: View, group: str, measure: str, shown: Shown, at: At) -> Row:
    own = view.get(group, measure, at)
    rest = compared(view, group, measure, shown, at, raw=True)
    return (Cell(view.named(group)), n_cell(own), value_cell(own, shown.unit), *rest)


def compared(view: View, group: str, measure: str, shown: Shown, at: At, raw: bool = False) -> tuple[Cell, ...]:
    """Size-matched value, difference from it, p and q; with ``raw`` the difference from the whole reference too."""
    if group == view.reference:
        return (Cell("–", "none"),) * (4 + raw)
    matched, difference, against = (
        view.get(group, f"{measure}_{form}", at) for form in ("size_matched", "size_matched_difference", "difference")
    )
    best = difference or against
    cells = [value_cell(m, shown.unit) for m in ((matched, difference, against) if raw else (matched, difference))]
    return (*cells, p_cell(difference.p if difference else None), p_cell(best.q if best else None))


def dots(view: View, title: str, measure: str, shown: Shown, at: At) -> list[Panel]:
    """One panel with every group's value and interval, and below each the size-matched reference with its range."""
    rows = [row for group in view.groups for row in _dots(view, group, measure, shown, at)]
    if not rows:
        return []
    label = f"{title} by {view.attribute}. " + "; ".join(f"{row['group']}: {row['shown']}" for row in rows)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    return [vega.intervals(title, label, rows, groups, shown.unit == "rate")]


def _dots(view: View, group: str, measure: str, shown: Shown, at: At) -> Iterator[dict[str, Any]]:
    for what, name in ((vega.OWN, measure), (vega.MATCHED, f"{measure}_size_matched")):
        m = view.get(group, name, at)
        if m and m.value is not None:
            said = value(m, shown.unit) + (f", {view.reference} at this group's size" if what == vega.MATCHED else "")
            yield {"group": group, "what": what, "value": m.value, "low": m.low, "high": m.high, "shown": said}


def dots_legend(view: View) -> tuple[Swatch, ...]:
    """The two kinds of marks of a figure with a row, or two, for each thing."""
    grey = f"{view.reference} at the group's size, with range"
    return (Swatch("the group, with interval", vega.ACCENT), *(Swatch(grey, vega.QUIET),) * view.is_matched)


def curves(view: View, title: str, drawn: Sequence[Curve], axes: Axes, caption: str) -> list[Figure]:
    """One panel for every group with a value: its own curves, and the reference group's at its size."""
    rows = {group: [row for curve in drawn for row in points(view, group, curve, axes)] for group in view.groups}
    seen = [group for group in view.groups if any(row["what"] == vega.OWN for row in rows[group])]
    if not seen:
        return []
    reach = (0.0, 1.0) if axes.y.unit == "rate" else _reach([row for group in seen for row in rows[group]])
    panels = []
    for group in seen:
        label = f"{axes.y.words} of {group} against {axes.x_words}, and of {view.reference} at its size; "
        label += "the numbers are in the table below."
        panels.append(vega.curves(view.named(group), label, rows[group], axes.x_words, reach, axes.y.unit == "rate"))
    said = f" {beside_words(view)}" if seen != [view.reference] else ""
    legend = _legend(view, [curve.words for curve in drawn])
    return [Figure(title, tuple(panels), caption + said + undrawn(view.groups, set(seen)), legend)]


def _reach(rows: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """From the least to the most that is drawn: all panels of a figure have one scale."""
    ends = [row[name] for row in rows for name in ("value", "low", "high") if row.get(name) is not None]
    return min(ends), max(ends)


def beside_words(view: View) -> str:
    """How to read the grey of a figure, where there is any."""
    if not view.is_matched:
        return "The reference group was not subsampled in this run: an effect of size cannot be told from any other."
    return (
        f"Grey: {view.reference} applicants subsampled to the size of the group, mean and range of the subsamples; "
        "what lies inside it is not distinguishable from an effect of size. Compare a group with its own grey only."
    )


def points(view: View, group: str, curve: Curve, axes: Axes) -> Iterator[dict[str, Any]]:
    """Rows of a group's curve, then those of the size-matched reference with their range."""
    for m in along(view, group, curve.measure, axes.x, curve.at):
        if m.value is not None:
            said = value(m, axes.y.unit) + " (bound)" * bool(m.bound)
            at = {"group": group, "line": curve.words, "x": m.said[axes.x]}
            yield {**at, "what": vega.OWN, "value": m.value, "shown": said}
    for m in along(view, group, f"{curve.measure}_size_matched", axes.x, curve.at):
        if m.value is not None:
            at = {"group": group, "line": curve.words, "x": m.said[axes.x]}
            yield {**at, "what": vega.MATCHED, "value": m.value, "low": m.low, "high": m.high}


def along(view: View, group: str, measure: str, x: str, at: At) -> list[Measure]:
    """A group's measure along ``x``, ascending, with the other parameters as in ``at``."""
    found = [m for m in view.all(measure) if m.group == group and {k: v for k, v in m.said.items() if k != x} == at]
    return sorted(found, key=lambda m: float(m.said[x]))


def _legend(view: View, lines: Sequence[str]) -> tuple[Swatch, ...]:
    """An entry for every line, in colour and in grey; a line that stands alone needs no words of its own."""
    said = [f", {words}" if len(lines) > 1 else "" for words in lines]
    dashed = list(zip(said, (" ".join(map(str, dash)) for dash in vega.DASHES), strict=False))
    own = (Swatch(f"the group{words}", vega.ACCENT, dash) for words, dash in dashed)
    grey = (Swatch(f"{view.reference} at the group's size{words}", vega.QUIET, dash) for words, dash in dashed)
    return (*own, *grey) if view.is_matched else tuple(own)


def numbers(
    view: View, title: str, measure: str, shown: Shown, names: Mapping[str, str], fixed: At | None = None
) -> TableView:
    """The numbers of a figure: a row for each setting of the parameters ``names``, two columns for each group."""
    given = dict(fixed or {})
    found = {tuple(m.said[name] for name in names) for m in view.all(measure) if given.items() <= m.said.items()}
    rows: list[Row] = []
    shown_measures: list[Measure | None] = []
    for setting in sorted(found, key=lambda values: tuple((isinstance(v, str), v) for v in values)):
        at = {**given, **dict(zip(names, setting, strict=True))}
        each = [m for group in view.groups for m in _pair(view, group, measure, at)]
        shown_measures += each
        rows.append(
            (
                *(setting_cell(v, share=name == "c") for name, v in zip(names, setting, strict=True)),
                *(value_cell(m, shown.unit) for m in each),
            )
        )
    header = (*names.values(), *(h for group in view.groups for h in pair_header(view, group)))
    return TableView(title, header, tuple(rows), notes(shown_measures), folded=True)


def _pair(view: View, group: str, measure: str, at: At) -> list[Measure | None]:
    own = view.get(group, measure, at)
    return [own] if group == view.reference else [own, view.get(group, f"{measure}_size_matched", at)]


def pair_header(view: View, group: str) -> list[str]:
    """Headers of a group's own value and of the size-matched one."""
    return [group] if group == view.reference else [group, f"{view.reference} at the size of {group}"]


def setting_cell(setting: float | str, share: bool = False) -> Cell:
    """A parameter as a cell."""
    if isinstance(setting, str):
        return Cell(setting)
    return number_cell(percent(setting) if share else whole(setting))


def notes(found: Iterable[Measure | None]) -> str:
    """What qualifies the marked numbers, each thing said once."""
    said = dict.fromkeys(part for m in found if m and m.value is not None and m.bound for part in m.bound.split("; "))
    return f"{NOTED} {'; '.join(said)}." if said else ""


def settings(view: View, measure: str, parameter: str) -> list[float]:
    """All settings of a parameter, ascending."""
    return sorted({m.said[parameter] for m in view.all(measure) if parameter in m.said})


def ends(view: View, measure: str, parameter: str) -> list[float]:
    """The smallest and the largest setting of a parameter."""
    found = settings(view, measure, parameter)
    return sorted({found[0], found[-1]}) if found else []


def capital(words: str) -> str:
    """Words with their first letter as a capital."""
    return words[:1].upper() + words[1:]
