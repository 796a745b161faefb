"""How far each group is from a favourable decision: mean costs of recourse, their spread, and who has no cost at all.

A mean over those who were reached says nothing of the others, so that their share always stands beside it. Here belong
costs as they are found; what offers would change is in ``offers``.
"""

from collections.abc import Callable
from typing import Any

from schemas.audit.column import ColumnSpec
from tasks.methods.raguel.report.charts import dots, quantiles
from tasks.methods.raguel.report.lookups import HEADLINE, KINDS, NOTHING, UNIT, Ranked, qualified, too_few
from tasks.reporting.charts.panels import marks, told
from tasks.reporting.material import Material, Shown, undrawn
from tasks.reporting.numbers import DASH, count, difference_cells, missing_words, n_cell, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Row, Swatch, TableView

REFITTED = "recourse_cost_reference_over_group"
MEASURES = {
    HEADLINE: Shown("mean cost of recourse", "number"),
    "recourse_cost_quantile": Shown("quantile of the cost of recourse", "number"),
    REFITTED: Shown("mean cost of the reference group over the group's", "number"),
    "unreached_share": Shown("share without a cost of recourse", "rate"),
    "recourse_not_confirmed_share": Shown("share whose counterfactual point the model does not favour", "rate"),
}
QUANTILES = {"lowest": 0.1, "lower": 0.25, "median": 0.5, "upper": 0.75, "highest": 0.9}
_AXIS = f"cost, {UNIT}"


def readings(r: Ranked) -> tuple[str, ...]:
    """A sentence for each group; nobody with a cost, and too few, are no pass."""
    return tuple(_reading(r, group) for group in r.view.groups)


def _reading(r: Ranked, group: str) -> str:
    found, left = r.get(group, HEADLINE), r.get(group, "unreached_share")
    without = f" Without a cost: {value(left, 'rate')}." if left and left.value != 0 else ""
    if found is None:
        return f"{group}: nobody stands in the list with a cost.{without} {NOTHING}"
    if found.value is None:
        return f"{group}: the mean cost is {missing_words(found)}.{without} {NOTHING}"
    if too_few(found, r.minimum):
        few = f"{group}: {count(found.n or 0)} applicants have a cost, fewer than the {r.minimum} that a reading needs."
        return f"{few}{without} Too few to say, and that is no pass."
    said = f"{group}: {count(found.n or 0)} listed applicants are {value(found, 'number')} away on average."
    return f"{said}{without}{_beside(r, group)}"


def _beside(r: Ranked, group: str) -> str:
    """Whether the difference from the reference group is told apart from chance; it does not say why."""
    m = r.view.get(group, f"{HEADLINE}_difference")
    if group == r.view.reference or m is None or m.value is None or m.low is None or m.high is None:
        return ""
    if m.low <= 0 <= m.high:
        return f" That is not distinguishable from {r.view.reference} ({value(m, 'number')}), which is no pass."
    further = "further away than" if m.value > 0 else "nearer than"
    return f" That is {further} {r.view.reference} ({value(m, 'number')}); why, this figure cannot say."


def figures(r: Ranked) -> tuple[Figure, ...]:
    """Mean costs and their spread, in the initial order and with the offers of each other."""
    panels = (*_means(r), *_spread(r))
    drawn = {row["row"] for panel in panels for row in panel.spec["datasets"]["rows"]}
    caption = (
        f"Cost of recourse of the listed applicants, in {UNIT}, in the initial order and with the offers that each "
        "re-ranking makes. First panel: means with intervals. Second: the median, broad the middle half, "
        "thin from the lowest tenth to the highest. Applicants without a cost are in neither."
    )
    title = f"Cost of recourse, by {r.view.attribute}"
    legend = tuple(r.drawn.values())
    return (Figure(title, panels, caption + undrawn(r.view.groups, drawn), legend),)


def _means(r: Ranked) -> tuple[Panel, ...]:
    rows = [
        row
        for group in r.view.groups
        for order in r.drawn
        for row in marks(r.get(group, HEADLINE, order), "number", row=group, what=KINDS[order].text)
    ]
    return (dots("Mean", _label(r, "Mean cost", rows), rows, kinds(r), _AXIS, None),) if rows else ()


def _spread(r: Ranked) -> tuple[Panel, ...]:
    rows = [row for group in r.view.groups for order in r.drawn if (row := _quantiles(r, group, order))]
    if not rows:
        return ()
    return (quantiles("Spread", _label(r, "Quantiles of the cost", rows), rows, kinds(r), _AXIS),)


def _quantiles(r: Ranked, group: str, order: str) -> dict[str, Any]:
    """The quantiles of a group, or nothing where one of them is not known."""
    found = [r.get(group, "recourse_cost_quantile", order, quantile=q) for q in QUANTILES.values()]
    known = [m for m in found if m is not None and m.value is not None]
    if len(known) < len(QUANTILES):
        return {}
    said = ", ".join(value(m, "number", interval=False) for m in known)
    ends = {name: m.value for name, m in zip(QUANTILES, known, strict=True)}
    return {"row": group, "what": KINDS[order].text, **ends, "shown": said}


def kinds(r: Ranked) -> dict[str, Swatch]:
    """How each order is drawn, by its words."""
    return {swatch.text: swatch for swatch in r.drawn.values()}


def _label(r: Ranked, title: str, rows: list[dict[str, Any]]) -> str:
    return f"{title}, by {r.view.attribute}. {told(rows, 'row', 'what')}"


def tables(r: Ranked) -> tuple[TableView, ...]:
    """Costs by group as they are found, and the numbers of the spread."""
    return _costs(r), *_refitted(r), _by_quantile(r)


def _refitted(r: Ranked) -> tuple[TableView, ...]:
    """The reference group's mean cost over each group's, as the verdict on recourse reads it."""
    found = {group: m for group in r.view.groups if (m := r.get(group, REFITTED)) is not None}
    if not found:
        return ()
    rows = tuple((r.named(group), n_cell(m), value_cell(m, "number")) for group, m in found.items())
    note = (
        "Of all who were denied and have a way, listed or not; below 1 the group has further to go. In brackets: "
        "intervals that draw the applicants anew and fit the model and its threshold to each draw; a rule is not "
        f"fitted, and only its applicants are drawn.{qualified(found.values())}"
    )
    title = f"Mean cost of {r.view.reference} over that of each group"
    return (TableView(title, ("Group", "Denied with a way", "Ratio"), rows, note),)


def _costs(r: Ranked) -> TableView:
    rows = tuple(_row(r, group) for group in r.view.groups)
    header = (
        *("Group", "To be listed", "Without a cost", "Listed", "Mean cost", f"Difference from {r.view.reference}"),
        *("p", "q", "Point not favoured"),
    )
    note = (
        "Without a cost: no permitted change leads to a favourable decision, no applicant could stand in for one, or "
        "the group is too small to be listed. The mean is of the others alone. Point not favoured: of those with a "
        "cost, whose counterfactual point, in the user's units and in whole steps, the very model does not favour; a "
        "lender cannot be asked. In brackets: intervals."
    )
    return TableView(f"Cost of recourse before any offer, by {r.view.attribute}", header, rows, note)


def _row(r: Ranked, group: str) -> Row:
    found, left = r.get(group, HEADLINE), r.get(group, "unreached_share")
    beside = r.view.get(group, f"{HEADLINE}_difference")
    not_asked = r.get(group, "recourse_not_confirmed_share")
    return (
        *(r.named(group), n_cell(left), value_cell(left, "rate"), n_cell(found), value_cell(found, "number")),
        *difference_cells(beside, "number", group == r.view.reference),
        DASH if r.view.maker == "lender" else value_cell(not_asked, "rate"),
    )


def _by_quantile(r: Ranked) -> TableView:
    rows = tuple(
        (
            *(r.named(group), Cell(KINDS[order].text), n_cell(found)),
            *(
                value_cell(r.get(group, "recourse_cost_quantile", order, quantile=q), "number")
                for q in QUANTILES.values()
            ),
        )
        for group in r.view.groups
        for order in r.drawn
        if (found := r.get(group, HEADLINE, order))
    )
    header = ("Group", "Order", "Listed", *(f"{100 * q:g} % quantile" for q in QUANTILES.values()))
    title = f"Spread of the cost, by {r.view.attribute}: the numbers of the figure"
    return TableView(title, header, rows, folded=True)


def assumptions(material: Material) -> TableView:
    """What the author of the audit spec takes to be hard to change, and how far."""
    columns: dict[str, Callable[[tuple[str, ColumnSpec]], Cell]] = {
        "Column": lambda of: Cell(of[1].label or of[0]),
        "May change": lambda of: Cell("as its transitions say" if of[1].transitions else _MAY[of[1].constraint]),
        "Weight": lambda of: _number(of[1].recourse.weight),
        "Step": lambda of: _number(of[1].recourse.step),
        "Bounds of an offer": lambda of: _bounds(of[1].recourse.bounds),
    }
    note = (
        "As the audit spec has them: assumptions, and no findings. Weights count beside each other, and are divided by "
        "the largest. A column without a step may change by any amount; one of categories without an order not at all."
    )
    used = [(name, column) for name, column in material.settings.columns.items() if column.used]
    return TableView.of("What recourse is assumed to be", used, columns, note)


_MAY = {"free": "either way", "up": "up only", "down": "down only", "immutable": "no"}


def _number(x: float | None) -> Cell:
    return DASH if x is None else Cell(f"{x:g}", "number")


def _bounds(ends: tuple[float | None, float | None]) -> Cell:
    low, high = ("" if end is None else f"{end:g}" for end in ends)
    return Cell(f"{low} to {high}".strip(), "number") if low or high else DASH
