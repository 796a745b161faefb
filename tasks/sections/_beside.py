"""A measure beside its size-matched reference: one grammar for all tables and curves of FGCE's chapter.

A small group has a thinner graph and fewer candidates, and that alone moves every measure. So each group is set beside
the reference group, subsampled to its size, and never beside the reference group as it is: in a table by a column, in a
figure by a grey line with the range of the subsamples, in a panel that is the group's own.

Here belongs what the parts of the chapter share. Which measures are shown, and in what order, is theirs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.sections import charts
from tasks.sections._material import Measure, Shown, View, undrawn
from tasks.sections._numbers import NOTED, n_cell, number_cell, p_cell, significant, value, value_cell, whole
from tasks.sections._section import Cell, Figure, Row, Swatch, TableView

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
        "p (rank)",
        "q",
    )
    title = f"{capital(shown.words)}{said}, beside the size-matched reference"
    found = any(view.get(group, measure, given) for group in view.groups)
    return TableView(title, header, tuple(rows) if found else (), note)


RANGES = (
    "In brackets: bootstrap intervals; for the size-matched value the range of the subsamples. p is the rank of the "
    "group's own value among the subsamples, and cannot be smaller than their number allows."
)


def _beside(view: View, group: str, measure: str, shown: Shown, at: At) -> Row:
    own = view.get(group, measure, at)
    name = f"{group} (reference)" if group == view.reference else group
    rest = compared(view, group, measure, shown, at, raw=True)
    return (Cell(name), n_cell(own), value_cell(own, shown.unit), *rest)


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


def curves(view: View, title: str, drawn: Sequence[Curve], axes: Axes, caption: str) -> list[Figure]:
    """One panel for every group with a value: its own curves, and the reference group's at its size."""
    panels, seen = [], set[str]()
    for group in view.groups:
        rows = [row for curve in drawn for row in _points(view, group, curve, axes)]
        own = [row for row in rows if row["what"] == charts.OWN]
        if own:
            seen.add(group)
            label = f"{axes.y.words} of {group} against {axes.x_words}, and of {view.reference} at its size; "
            name = f"{group} (reference)" if group == view.reference else group
            label += "the numbers are in the table below."
            panels.append(charts.curves(name, label, rows, axes.x_words, axes.y.unit == "rate"))
    said = f" {beside_words(view)}" if len(seen) > 1 else ""
    legend = _legend(view, [curve.words for curve in drawn])
    return [Figure(title, tuple(panels), caption + said + undrawn(view.groups, seen), legend)] if panels else []


def beside_words(view: View) -> str:
    """How to read the grey of a figure."""
    return (
        f"Grey: {view.reference} applicants subsampled to the size of the group, mean and range of the subsamples. "
        "What lies inside the grey range is not distinguishable from an effect of size. Compare a group with its own "
        "grey, not with another group."
    )


def _points(view: View, group: str, curve: Curve, axes: Axes) -> Iterator[dict[str, Any]]:
    for what, name in ((charts.OWN, curve.measure), (charts.MATCHED, f"{curve.measure}_size_matched")):
        for m in along(view, group, name, axes.x, curve.at):
            if m.value is not None:
                said = value(m, axes.y.unit) + (f", {view.reference} at this size" if what == charts.MATCHED else "")
                ends = {"low": m.low, "high": m.high} if what == charts.MATCHED else {}
                at = {"x": m.said[axes.x], "line": curve.words, "what": what}
                yield {"group": group, **at, "value": m.value, **ends, "shown": said + " (bound)" * bool(m.note)}


def along(view: View, group: str, measure: str, x: str, at: At) -> list[Measure]:
    """A group's measure along ``x``, ascending, with the other parameters as in ``at``."""
    found = [m for m in view.all(measure) if m.group == group and {k: v for k, v in m.said.items() if k != x} == at]
    return sorted(found, key=lambda m: float(m.said[x]))


def _legend(view: View, lines: Sequence[str]) -> tuple[Swatch, ...]:
    dashes = [" ".join(map(str, dash)) for dash in charts.DASHES]
    own = [Swatch(f"the group, {words}", charts.ACCENT, dash) for words, dash in zip(lines, dashes, strict=False)]
    named = f"{view.reference} at the group's size, "
    return (*own, *(Swatch(named + w, charts.QUIET, dash) for w, dash in zip(lines, dashes, strict=False)))


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
        rows.append((*(setting_cell(v) for v in setting), *(value_cell(m, shown.unit) for m in each)))
    header = (*names.values(), *(h for group in view.groups for h in _pair_header(view, group)))
    return TableView(title, header, tuple(rows), notes(shown_measures), folded=True)


def _pair(view: View, group: str, measure: str, at: At) -> list[Measure | None]:
    own = view.get(group, measure, at)
    return [own] if group == view.reference else [own, view.get(group, f"{measure}_size_matched", at)]


def _pair_header(view: View, group: str) -> list[str]:
    return [group] if group == view.reference else [group, f"{view.reference} at the size of {group}"]


def setting_cell(setting: float | str) -> Cell:
    """A parameter as a cell."""
    if isinstance(setting, str):
        return Cell(setting)
    return number_cell(whole(setting) if float(setting).is_integer() else significant(setting))


def notes(found: Iterable[Measure | None]) -> str:
    """What qualifies the marked numbers, each thing said once."""
    said = dict.fromkeys(part for m in found if m and m.value is not None and m.note for part in m.note.split("; "))
    return f"{NOTED} {'; '.join(said)}." if said else ""


def capital(words: str) -> str:
    """Words with their first letter as a capital."""
    return words[:1].upper() + words[1:]
