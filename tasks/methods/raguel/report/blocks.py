"""Who stands where: the share of each group by block, before and after, beside the band that counts as fair.

A block is fair to a group whose share in it lies within the tolerance of its share in the whole list; where no count of
people does, the next ones do. Here belong shares and unfair blocks; the costs in them are in ``ratio``.
"""

from typing import Any

from tasks.methods.raguel.report.charts import blocks
from tasks.methods.raguel.report.lookups import KINDS, NOTHING, ORDERS, Ranked
from tasks.reporting.charts.vega import QUIET
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import count, missing_words, n_cell, percent, value, value_cell
from tasks.reporting.section import Cell, Figure, Panel, Swatch, TableView

MEASURES = {
    "list_share": Shown("share of the list", "rate"),
    "block_band": Shown("end of the band that counts as fair", "rate"),
    "block_share": Shown("share of a block", "rate"),
    "unfair_blocks": Shown("blocks that are not fair to the group", "count"),
}
GLOSSARY = {
    "block": "a part of the list; blocks follow each other from the lowest costs to the highest",
    "tolerance band": "the share of the whole list, less and more the tolerance as a part of it; a block in which the "
    "group's share lies there is fair to it",
    "unfair block": "a block in which a group's share lies outside its band",
}


def numbers(r: Ranked) -> list[int]:
    """The blocks, by number."""
    return sorted({int(m.said["block"]) for m in r.view.all("block_share")})


def readings(r: Ranked) -> tuple[str, ...]:
    """How many blocks are unfair before and after, for every group that is compared."""
    return tuple(_reading(r, group) for group in r.compared)


def _reading(r: Ranked, group: str) -> str:
    name = "Any group" if group == r.view.reference else group
    before, n = r.get(group, "unfair_blocks"), len(numbers(r))
    if before is None or before.value is None or not n:
        return f"{name}: unfair blocks are {missing_words(before)}. {NOTHING}"
    after = [(order, r.get(group, "unfair_blocks", order)) for order in r.reranked]
    said = [f"{ORDERS[order].text}: {value(m, 'count')}" for order, m in after]
    return (
        "; ".join((f"{name}: {value(before, 'count')} of {count(n)} blocks are unfair in the initial order", *said))
        + "."
    )


def figures(r: Ranked) -> tuple[Figure, ...]:
    """A panel for every group, the band behind its lines."""
    panels = tuple(p for group in r.view.groups for p in _panel(r, group))
    drawn = {panel.title for panel in panels}
    out = [group for group in r.view.groups if r.view.named(group) not in drawn]
    caption = (
        f"Share of each group in each block of the list, least costs first. Grey: the band that counts as fair, the "
        f"group's share of the list less and more {percent(r.settings.tolerance)} of it. A line breaks where a share "
        "is withheld or undefined."
    )
    caption += f" Not drawn, because withheld, undefined or not listed: {listed(out)}." if out else ""
    band = Swatch("counts as fair", QUIET, shape="square")
    title = f"Groups by block, by {r.view.attribute}"
    return (Figure(title, panels, caption, (*r.drawn.values(), band)),)


def _panel(r: Ranked, group: str) -> tuple[Panel, ...]:
    rows = [_point(order, number, m) for order in r.drawn for number, m in _shares(r, group, order).items()]
    if all(row["value"] is None for row in rows):
        return ()
    low, high = (r.get(group, "block_band", bound=bound) for bound in ("low", "high"))
    if low is not None and high is not None and low.value is not None and high.value is not None:
        ends = {"what": None, "low": low.value, "high": min(1.0, high.value)}
        rows += [{**ends, "block": number} for number in numbers(r)]
    most = min(1.0, 1.1 * max(row.get(name) or 0.0 for row in rows for name in ("value", "high")))
    title = r.named(group).text
    label = f"Share of {group} by block, in each order; the numbers are in the table below."
    kinds = {KINDS[order].text: swatch for order, swatch in r.drawn.items()}
    return (blocks(title, label, rows, kinds, most or 1.0),)


def _point(order: str, number: int, m: Measure | None) -> dict[str, Any]:
    known = m is not None and m.value is not None
    return {
        **{"what": KINDS[order].text, "block": number},
        **{"value": m.value if m and known else None, "shown": value(m, "rate", interval=False)},
    }


def _shares(r: Ranked, group: str, order: str) -> dict[int, Measure | None]:
    return {number: r.get(group, "block_share", order, block=number) for number in numbers(r)}


def tables(r: Ranked) -> tuple[TableView, ...]:
    """Unfair blocks before and after, and the shares of the figure."""
    return _unfair(r), _by_block(r)


def _unfair(r: Ranked) -> TableView:
    rows = tuple(
        (
            *(r.named(group), n_cell(found), value_cell(found, "rate")),
            *(_end(r, group, bound) for bound in ("low", "high")),
            *(value_cell(r.get(group, "unfair_blocks", order), "count") for order in r.drawn),
        )
        for group in r.view.groups
        if (found := r.get(group, "list_share"))
    )
    header = (
        "Group",
        "Listed, all groups",
        "Share of the list",
        "Band from",
        "Band to",
        *(f"Unfair, {KINDS[o].text}" for o in r.drawn),
    )
    by_band = f"as the bands of {r.settings.block_column} cut the list" if r.settings.block_column else "of equal size"
    note = (
        f"{count(len(numbers(r)))} blocks, {by_band}. Unfair: blocks in which the group's share lies outside its band; "
        f"in the row of {r.view.reference} those that are unfair to any group. Where no number of people lies within, "
        "the ones next to it count as fair: small blocks are fair more easily."
    )
    return TableView(f"Blocks that are not fair, by {r.view.attribute}", header, rows, note)


def _end(r: Ranked, group: str, bound: str) -> Cell:
    """An end of the band, which the reference group has none of."""
    m = r.get(group, "block_band", bound=bound)
    return value_cell(m, "rate", interval=False) if m else Cell("–", "none")


def _by_block(r: Ranked) -> TableView:
    rows = tuple(
        (r.named(group), Cell(KINDS[order].text), *(value_cell(m, "rate", interval=False) for m in found.values()))
        for group in r.view.groups
        for order in r.drawn
        if any((found := _shares(r, group, order)).values())
    )
    header = ("Group", "Order", *(f"Block {number}" for number in numbers(r)))
    title = f"Share of each block, by {r.view.attribute}: the numbers of the figure"
    return TableView(title, header, rows, folded=True)
