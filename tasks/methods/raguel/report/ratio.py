"""The ratio of costs: how far groups' mean costs of recourse lie apart in the list and in its blocks, before and after.

The ratio of the whole list and that of its blocks answer two questions: re-ranking blocks can make the blocks even and
leave the list as uneven as it was. Both are shown always. Who stands where is in ``blocks``.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from tasks.methods.raguel.report.charts import BEFORE, dots, heat
from tasks.methods.raguel.report.costs import kinds
from tasks.methods.raguel.report.lookups import (
    HEADLINE,
    INITIAL,
    KINDS,
    NOTHING,
    ORDERS,
    Ranked,
    is_lower,
    qualified,
    too_few,
)
from tasks.reporting.charts.panels import marks, told
from tasks.reporting.comparison import capital
from tasks.reporting.material import Measure, Shown, undrawn
from tasks.reporting.numbers import missing_words, n_cell, significant, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, TableView

RATIO, RATIO_AT = "ratio_of_costs", "ratio_of_costs_at"
MEASURES = {
    RATIO: Shown("ratio of mean costs", "number"),
    RATIO_AT: Shown("ratio of mean costs at other blocks and tolerances", "number"),
}
GLOSSARY = {
    "ratio of costs": "smallest mean cost of recourse of the groups divided by the largest: 1 where they are equal",
    "overall, mean and least block": "the ratio in the whole list, its mean over the blocks, and that of the worst",
}
OVER = {"overall": {}, "mean block": {"over": "mean_block"}, "least block": {"over": "least_block"}}
_HEATS = {"overall": "Whole list", "mean_block": "Mean over the blocks"}
_NONE = "–"
_LIGHTEST = 0.9
"""Where a scale begins at the latest, so that small differences near 1 look small."""


def readings(r: Ranked) -> tuple[str, ...]:
    """What re-ranking does to the ratio, for every comparison; that it falls is told as well."""
    return tuple(_reading(r, group) for group in r.compared)


def _reading(r: Ranked, group: str) -> str:
    name, before = _named(r, group), r.get(group, RATIO)
    if before is None or before.value is None:
        return f"{name}: the ratio is {missing_words(before)}.{_why(before)} {NOTHING}"
    if _few(r, group, before):
        return f"{name}: fewer than {r.minimum} applicants of a group, too few to say, and that is no pass."
    said = f"{name}: the ratio of mean costs is {value(before, 'number')} in the initial order."
    return said + "".join(_after(r, group, before, order) for order in r.reranked)


def _named(r: Ranked, group: str) -> str:
    """A comparison at the beginning of a sentence; a group's own name is left as it is."""
    return capital(r.beside(group)) if group == r.view.reference else r.beside(group)


def _after(r: Ranked, group: str, before: Measure, order: str) -> str:
    m, block, first = r.get(group, RATIO, order), *(r.get(group, RATIO, o, over="mean_block") for o in (order, INITIAL))
    said = f" {capital(ORDERS[order].text)}: {value(m, 'number', interval=False)}{_falls(before, m)}"
    if block is None or block.value is None or first is None or first.value is None:
        return f"{said}."
    then, now = (value(each, "number", interval=False) for each in (first, block))
    return f"{said}, on average over blocks {now} (before {then}){_falls(first, block)}."


def _falls(before: Measure, after: Measure | None) -> str:
    """A word on a ratio that is lower than before: the method is to raise it."""
    return ", which is lower" if is_lower(after, before) else ""


def figures(r: Ranked) -> tuple[Figure, ...]:
    """The ratios before and after, and the heat maps."""
    return _ratios(r), _heats(r)


def _ratios(r: Ranked) -> Figure:
    panels = tuple(panel for group in r.compared for panel in _panel(r, group))
    caption = (
        "Smallest mean cost of the groups divided by the largest, in the whole list, on average over its blocks and in "
        "the worst block; 1 is equal. With intervals where there are any. Each order's blocks are its own."
    )
    caption += undrawn(map(r.beside, r.compared), {panel.title for panel in panels})
    return Figure(f"Ratio of costs before and after, by {r.view.attribute}", panels, caption, tuple(r.drawn.values()))


def _panel(r: Ranked, group: str) -> tuple[Panel, ...]:
    rows = [
        mark
        for row, over in OVER.items()
        for order in r.drawn
        for mark in marks(r.get(group, RATIO, order, **over), "number", row=row, what=KINDS[order].text)
    ]
    if not rows:
        return ()
    title = r.beside(group)
    label = f"Ratio of costs, {title}. {told(rows, 'row', 'what')}"
    return (dots(title, label, rows, kinds(r), "ratio of mean costs", 1.0),)


def _heats(r: Ranked) -> Figure:
    panels = tuple(panel for group in r.compared for over in _HEATS for panel in _heat(r, group, over))
    how = "any depth" if r.settings.reach == "any" else "Algorithm 2"
    caption = (
        f"Ratio of costs after blocks are re-ranked ({how}), by number of blocks and tolerance; darker is nearer to 1. "
        f"Row “{BEFORE}”: the initial order, cut alike. {_NONE}: withheld or undefined, as the table says. Many cells "
        "are looked at here: the best of them is no result of this audit."
    )
    return Figure(f"Ratio of costs by blocks and tolerance, by {r.view.attribute}", panels, caption)


def _heat(r: Ranked, group: str, over: str) -> tuple[Panel, ...]:
    numbers, tolerances = _settings(r)
    rows = [_cell(r, group, over, b, t) for t in tolerances for b in numbers]
    if all(row["value"] is None for row in rows):
        return ()
    title = f"{_HEATS[over]}: {r.beside(group)}"
    label = f"{title}, by number of blocks and tolerance; the numbers are in the table below."
    words = [str(b) for b in numbers], [_tolerance(t) for t in tolerances]
    return (heat(title, label, rows, *words, _least(r)),)


def _least(r: Ranked) -> float:
    """Where the scale of all heat maps of a figure begins."""
    numbers, tolerances = _settings(r)
    at = product(r.compared, _HEATS, numbers, tolerances)
    return min(_LIGHTEST, *(m.value for each in at if (m := _at(r, *each)) and m.value is not None))


def _settings(r: Ranked) -> tuple[list[int], list[float | None]]:
    """Numbers of blocks, and tolerances with None first, which stands for no re-ranking."""
    said = [m.said for m in r.view.all(RATIO_AT)]
    return sorted({int(s["blocks"]) for s in said}), [
        None,
        *sorted({float(s["tolerance"]) for s in said if "tolerance" in s}, reverse=True),
    ]


def _at(r: Ranked, group: str, over: str, number: int, tolerance: float | None) -> Measure | None:
    """One cell; before any offer the ratio of the whole list is the same for every cut."""
    if tolerance is not None:
        return r.get(group, RATIO_AT, over=over, blocks=number, tolerance=tolerance)
    return r.get(group, RATIO) if over == "overall" else r.get(group, RATIO_AT, over=over, blocks=number)


def _cell(r: Ranked, group: str, over: str, number: int, tolerance: float | None) -> dict[str, Any]:
    m = _at(r, group, over, number, tolerance)
    known = m is not None and m.value is not None
    return {
        **{"blocks": str(number), "tolerance": _tolerance(tolerance)},
        **{"value": m.value if m else None, "shown": value(m, "number", interval=False) if known else _NONE},
    }


def _tolerance(tolerance: float | None) -> str:
    return BEFORE if tolerance is None else significant(tolerance)


def tables(r: Ranked) -> tuple[TableView, ...]:
    """The ratios before and after, and the numbers of the heat maps."""
    return _by_order(r), _grid(r)


def _by_order(r: Ranked) -> TableView:
    shown = [
        [r.get(group, RATIO, order, **over) for over in OVER.values()] for group in r.compared for order in r.orders
    ]
    keys = [(group, order) for group in r.compared for order in r.orders]
    rows = tuple(
        (Cell(r.beside(group)), Cell(ORDERS[order].text), n_cell(found[0]), *_values(found))
        for (group, order), found in zip(keys, shown, strict=True)
        if any(found)
    )
    header = ("Group", "Order", "Applicants compared", "Overall", "Mean block", "Least block")
    note = (
        "Smallest mean cost divided by the largest. Baselines have no blocks of their own (–). In brackets: intervals."
    )
    return TableView(
        f"Ratio of costs, by {r.view.attribute}", header, rows, note + qualified(m for f in shown for m in f)
    )


def _values(found: Sequence[Measure | None]) -> Row:
    return tuple(value_cell(m, "number") if m else Cell(_NONE, "none") for m in found)


def _grid(r: Ranked) -> TableView:
    numbers, tolerances = _settings(r)
    keys = [(group, over, t) for group in r.compared for over in _HEATS for t in tolerances] if numbers else []
    shown = [[_at(r, group, over, number, t) for number in numbers] for group, over, t in keys]
    rows = tuple(
        (
            *(Cell(r.beside(group)), Cell(_HEATS[over]), Cell(_tolerance(t))),
            *(value_cell(m, "number", interval=False) for m in found),
        )
        for (group, over, t), found in zip(keys, shown, strict=True)
        if any(found)
    )
    header = ("Group", "Ratio of", "Tolerance", *(f"{number} blocks" for number in numbers))
    title = f"Ratio of costs by blocks and tolerance, by {r.view.attribute}: the numbers of the figure"
    return TableView(title, header, rows, qualified(m for f in shown for m in f).strip(), folded=True)


def _few(r: Ranked, group: str, before: Measure) -> bool:
    """Whether any group of a comparison has fewer applicants than a reading needs."""
    groups = r.view.groups if group == r.view.reference else (group, r.view.reference)
    found = (before, *(m for each in groups if (m := r.get(each, HEADLINE))))
    return any(too_few(m, r.minimum) for m in found)


def _why(m: Measure | None) -> str:
    return f" The reason: {m.bound}." if m and m.bound else ""
