"""What each rule has to do with who has no recourse: the search with a rule lifted, beside the search with all kept.

Every group is drawn beside its own baseline, and each search beside the same one among the reference group at the
group's size. Captions say what was lifted and no more. That a group has recourse without a rule does not show that the
rule is wrong, nor that it is the cause.

Connectivity against epsilon, which needs no search, is in ``connectivity``.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from tasks.methods.fgce.report.thinned import lifted, only, size_words
from tasks.reporting.charts.panels import marks, told
from tasks.reporting.charts.vega import MATCHED, OWN, REFERENCE
from tasks.reporting.comparison import BRACKETS, capital, dots_legend, matched_cell
from tasks.reporting.material import Measure, Shown, View, listed, undrawn
from tasks.reporting.numbers import n_cell, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

MEASURES = {
    "infeasible_share_without": Shown("infeasible share with a rule lifted", "rate"),
    "burden_without": Shown("burden with a rule lifted", "number"),
}

GLOSSARY = {
    "lifted rule": "a constraint, or the limit on one step, that a search leaves out to see what depends on it: a "
    "thought experiment about the graph, no advice and no proof of cause",
}

SHARE, BURDEN = MEASURES

_BASELINE = "nothing"
_NAMED = {
    _BASELINE: "all rules kept",
    "epsilon": "without the limit on one step",
    "every constraint": "without any constraint",
    "every constraint and epsilon": "without any constraint or limit",
}
_Found = dict[tuple[str, str], Measure]
"""(group, what is lifted) -> measure."""


def figures(view: View) -> tuple[Figure, ...]:
    """Infeasible share with each rule lifted that changes anything, one panel for each group."""
    view = only(view, MEASURES)
    found = _found(view, SHARE)
    changing = [rule for rule in rules(view) if _changes(view, found, rule)]
    drawn = [g for g in view.groups if _has(found.get((g, _BASELINE)))]
    shown = [m for name in (SHARE, f"{SHARE}_size_matched") for m in view.all(name)]
    most = max((m.high if m.high is not None else m.value or 0.0 for m in shown), default=0.0)
    panels = [_panel(view, group, [_BASELINE, *changing], most) for group in drawn] if changing else []
    same = [_words(view, rule) for rule in rules(view) if rule not in changing]
    caption = (
        "Share of the group's factuals without any feasible candidate, when the search leaves out the rule that a row "
        "names. Dashed: the same group with all rules kept. Groups are never crossed. This is a thought experiment "
        f"about the graph; it is no advice, and no proof of what causes what. {size_words(view)}"
    )
    caption += f" As with all rules kept in every group drawn: {listed(same)}." if same else ""
    legend = (*dots_legend(view), Swatch("the group with all rules kept", REFERENCE, "4 3"))
    title = f"Infeasible share with a rule lifted, by {view.attribute}"
    return (Figure(title, tuple(panels), caption + undrawn(view.groups, set(drawn)), legend),)


def tables(view: View) -> tuple[TableView, ...]:
    """The numbers of the figure and the burden, with a row for every group."""
    view = only(view, MEASURES)
    return _shares(view), _numbers(view)


def rules(view: View) -> list[str]:
    """What was lifted, in the order of the searches: features first, then what is not a feature."""
    found = {str(m.said["without"]) for m in view.all(SHARE)}
    last = [name for name in _NAMED if name in found and name != _BASELINE]
    return [*sorted(found - {_BASELINE, *last}), *last]


def _words(view: View, rule: str) -> str:
    """What was lifted, in words."""
    label = view.label(rule)
    return _NAMED.get(rule, f"without the constraint on {rule if label == rule else f'“{label}”'}")


def _short(view: View, rule: str) -> str:
    """What was lifted, as the name of a row: of a constraint its feature."""
    return capital({_BASELINE: "all rules kept", "epsilon": "limit on one step"}.get(rule, view.label(rule)))


def _found(view: View, measure: str) -> _Found:
    return {(m.group, str(m.said["without"])): m for m in view.all(measure)}


def _has(m: Measure | None) -> bool:
    return m is not None and m.value is not None


def _changes(view: View, found: _Found, rule: str) -> bool:
    """Whether the rule makes a difference to any group of which both values may be shown."""
    pairs = ((found.get((g, rule)), found.get((g, _BASELINE))) for g in view.groups)
    return any(a.value != b.value for a, b in pairs if a and b and _has(a) and _has(b))


def _panel(view: View, group: str, lift: list[str], most: float) -> Panel:
    rows = [row for rule in lift for row in _points(view, group, rule)]
    label = f"infeasible share of {group}. {told(rows, 'row')}"
    return lifted(view.named(group), label, rows, list(dict.fromkeys(row["row"] for row in rows)), most)


def _points(view: View, group: str, rule: str) -> Iterator[dict[str, Any]]:
    own, matched = (_found(view, name).get((group, rule)) for name in (SHARE, f"{SHARE}_size_matched"))
    at: dict[str, Any] = {"group": group, "row": _short(view, rule)}
    yield from marks(own, "rate", **at, what=OWN)
    if _has(own):
        for row in marks(matched, "rate", **at, what=MATCHED):
            yield row | {"shown": f"{row['shown']}, {view.reference} at this group's size"}


def _shares(view: View) -> TableView:
    """Infeasible shares, a column for every rule; a row for every group, and below it the size-matched reference."""
    rows = []
    for group in view.groups:
        rows.append(_share_row(view, group, group, SHARE))
        if view.is_matched and group != view.reference:
            rows.append(_share_row(view, group, f"{view.reference} at the size of {group}", f"{SHARE}_size_matched"))
    header = ("Group", *(capital(_words(view, rule)) for rule in (_BASELINE, *rules(view))))
    note = (
        "A feature without order has a column for each of its categories, and to change between two of them is a step "
        "of 1.41 in encoded units: while the limit on one step is shorter, no step does so, constraint or not."
    )
    title = f"Infeasible share with each rule lifted, by {view.attribute}"
    return TableView(title, header, tuple(rows) if view.all(SHARE) else (), note, folded=True)


def _share_row(view: View, group: str, name: str, measure: str) -> Row:
    found = _found(view, measure)
    cells = (value_cell(found.get((group, rule)), "rate", interval=False) for rule in (_BASELINE, *rules(view)))
    return (Cell(name), *cells)


def _numbers(view: View) -> TableView:
    """Both measures with their intervals, beside the size-matched ones: a row for every group and rule."""
    share, cost = _found(view, SHARE), _found(view, BURDEN)
    beside = _found(view, f"{SHARE}_size_matched"), _found(view, f"{BURDEN}_size_matched")
    rows: list[Row] = []
    for group in view.groups:
        for at in ((group, rule) for rule in (_BASELINE, *rules(view))):
            cells = [Cell(group), Cell(_words(view, at[1])), n_cell(share.get(at))]
            for shown, own, matched in zip(MEASURES.values(), (share, cost), beside, strict=True):
                cells.append(value_cell(own.get(at), shown.unit))
                cells += [matched_cell(view, group, matched.get(at), shown)] * view.is_matched
            rows.append(tuple(cells))
    title = f"Infeasible share and burden with each rule lifted, by {view.attribute}: the numbers of the figure"
    size = (f"{view.reference} at this size",) * view.is_matched
    header = ("Group", "Search", "Factuals", "Infeasible share", *size, "Burden", *size)
    note = " ".join(part for part in (BRACKETS * view.is_matched, _cut(view, share.values())) if part)
    return TableView(title, header, tuple(rows) if share else (), note, folded=True)


def _cut(view: View, found: Iterable[Measure]) -> str:
    """Which searches saw only a part of their graph."""
    cut = {str(m.said["without"]): m.said["nearest"] for m in found if "nearest" in m.said}
    kept = "; ".join(f"{_words(view, rule)}: the {nearest:g} nearest" for rule, nearest in sorted(cut.items()))
    return f"To save memory, only the nearest feasible steps of each application were kept. {kept}." if cut else ""
