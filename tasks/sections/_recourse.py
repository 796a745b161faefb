"""The tables of FGCE's section: each measure beside its size-matched reference, the curves' numbers, subgroups.

Every table has a row for every group: a group whose numbers are withheld or were not computed is not left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tasks.sections._material import Measure, Shown, View
from tasks.sections._numbers import n_cell, number_cell, p_cell, significant, value_cell
from tasks.sections._section import Cell, Row, TableView

MEASURES = {
    "infeasible_share": Shown("infeasible share", "rate"),
    "burden": Shown("burden", "number"),
    "burden_at_k": Shown("burden with k counterfactuals", "number"),
    "coverage": Shown("coverage", "rate"),
    "coverage_at_k": Shown("coverage with k counterfactuals", "rate"),
    "component_nodes": Shown("nodes of the component", "count"),
    "component_candidates": Shown("candidates of the component", "count"),
}
_SHOWN_K = (1, 3, 10)
_MOST_SUBGROUPS = 6


def tables(view: View) -> tuple[TableView, ...]:
    """All tables of one decision maker and protected attribute."""
    beside = [_headline(view, m, {}) for m in ("infeasible_share", "burden")]
    beside += [_at_k(view, m) for m in ("burden_at_k", "coverage_at_k")]
    said_once = [replace(t, note=t.note if i == 0 else "") for i, t in enumerate(beside)]
    return tuple(t for t in (*said_once, *_cost_table(view), *_subgroups(view)) if t.rows)


def selected_ks(view: View) -> list[int]:
    """The k to draw: 1, 3 and 10 where measured, else the smallest, the middle and the largest."""
    found = sorted({int(m.said["k"]) for m in view.all("coverage") if "k" in m.said})
    if set(_SHOWN_K) <= set(found) or len(found) <= len(_SHOWN_K):
        return [k for k in found if k in _SHOWN_K] or found
    return sorted({found[0], found[len(found) // 2], found[-1]})


def _headline(view: View, measure: str, parameters: Mapping[str, float | str]) -> TableView:
    shown, rows = MEASURES[measure], list[Row]()
    for group in view.groups:
        own = view.get(group, measure, parameters)
        if own is None:
            continue
        rest: tuple[Cell, ...] = tuple(Cell("–", "none") for _ in range(5))
        if group != view.reference:
            matched, difference, against = (
                view.get(group, f"{measure}_{form}", parameters)
                for form in ("size_matched", "size_matched_difference", "difference")
            )
            best = difference or against
            rest = (
                value_cell(matched, shown.unit),
                value_cell(difference, shown.unit),
                value_cell(against, shown.unit),
                p_cell(difference.p if difference else None),
                p_cell(best.q if best else None),
            )
        name = f"{group} (reference)" if group == view.reference else group
        rows.append((Cell(name), n_cell(own), value_cell(own, shown.unit), *rest))
    said = "".join(f", {k} = {v}" for k, v in parameters.items())
    header = (
        "Group",
        "Factuals",
        shown.words.capitalize(),
        f"{view.reference} at this size",
        "Difference from that",
        f"Raw difference from {view.reference}",
        "p (rank)",
        "q",
    )
    note = (
        "In brackets: bootstrap intervals; for the size-matched value the range of the subsamples. p is the rank "
        "of the group's own value among the subsamples, and cannot be smaller than their number allows."
    )
    return TableView(f"{shown.words.capitalize()}{said}, beside the size-matched reference", header, tuple(rows), note)


def _at_k(view: View, measure: str) -> TableView:
    """The headline table of a measure at its largest k."""
    ks = [int(m.said["k"]) for m in view.all(measure) if "k" in m.said]
    return _headline(view, measure, {"k": max(ks)}) if ks else TableView(measure, (), ())


def _cost_table(view: View) -> list[TableView]:
    """The numbers behind the coverage curves, for readers who cannot or will not read charts."""
    limits = sorted({float(m.said["d"]) for m in view.all("coverage") if "d" in m.said})
    rows: list[Row] = []
    for k in selected_ks(view):
        for d in limits:
            found = [view.get(g, "coverage", {"d": d, "denominator": "all", "k": k}) for g in view.groups]
            if any(found):
                cells = (value_cell(m, "rate", interval=False) for m in found)
                rows.append((number_cell(str(k)), number_cell(significant(d)), *cells))
    title = f"Coverage at each cost limit, by {view.attribute}: the numbers of the figure"
    return [TableView(title, ("k", "Cost limit d", *view.groups), tuple(rows), folded=True)] if rows else []


def _subgroups(view: View) -> list[TableView]:
    rows: list[Row] = []
    left_out = 0
    for group in view.groups:
        numbers = view.subgroups(group)
        left_out += len(numbers[_MOST_SUBGROUPS:])
        rows += [_subgroup(view, group, number) for number in numbers[:_MOST_SUBGROUPS]]
    note = f"The {_MOST_SUBGROUPS} subgroups with most factuals of each group; {left_out:,} smaller ones: report.json."
    title = f"Burden by subgroup (weakly connected component), by {view.attribute}"
    header = ("Group", "Subgroup", "Nodes", "Candidates", "Factuals", "Infeasible share", "Burden")
    return [TableView(title, header, tuple(rows), note if left_out else "", folded=len(rows) > 12)] if rows else []


def _subgroup(view: View, group: str, number: int) -> Row:
    share = view.get(group, "infeasible_share", subgroup=number)
    sizes: Sequence[Measure | None] = [
        view.get(group, f"component_{x}", subgroup=number) for x in ("nodes", "candidates")
    ]
    return (
        Cell(group),
        number_cell(str(number)),
        *(value_cell(m, "count", interval=False) for m in sizes),
        n_cell(share),
        value_cell(share, "rate"),
        value_cell(view.get(group, "burden", subgroup=number), "number"),
    )
