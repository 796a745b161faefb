"""The recourse on offer: whom it reaches, what it would cost, and what would have to change.

An offer is what would have to change for a place in the list, aggregated over all to whom the same is offered; whose
it is stands in restricted tables and never here. The baselines move no values: they decide anew, and stand beside.
"""

from collections.abc import Callable, Mapping

from tasks.methods.raguel.report.lookups import BASELINES, HEADLINE, NOTHING, ORDERS, UNIT, Ranked, qualified
from tasks.methods.raguel.report.ratio import RATIO
from tasks.reporting.comparison import capital
from tasks.reporting.material import Measure, Shown, Unit
from tasks.reporting.numbers import DASH, count, missing_words, n_cell, value_cell
from tasks.reporting.section import Cell, TableView

MEASURES = {
    "points_changed": Shown("applicants to whom recourse is offered, or on whom another decision falls", "count"),
    "ranks_changed": Shown("applicants with another rank", "count"),
    "total_cost": Shown("weighted distance of all offers", "number"),
    "mean_offer_cost": Shown("mean weighted distance of an offer", "number"),
    "offer_share": Shown("share of offers that change an attribute", "rate"),
    "offer_size": Shown("mean change of an attribute, of the offers that change it", "number"),
    "offer_not_confirmed_share": Shown("share of offers that raise the score less than counted on", "rate"),
    "below_predecessor_share": Shown("share of records that cost less than the one above", "rate"),
    "exit_rank": Shown("rank at which re-ranking stopped", "count"),
}
GLOSSARY = {
    "offer": "what an applicant would have to change to take another place in the list; no promise of a decision",
}
_WORDS = (
    "An offer is what would have to change for an applicant to take a higher place. It is no promise: nobody "
    "undertakes to decide otherwise, and an offer need not lead all the way to a favourable decision. What counts as "
    "hard to change, and in which steps, is the audit spec's; with other weights other offers come out.",
)
_OF_BASELINES: Mapping[str, Unit] = {
    "points_changed": "count",
    "ranks_changed": "count",
    HEADLINE: "number",
    RATIO: "number",
}


def words(_: Ranked) -> tuple[str, ...]:
    """What an offer is."""
    return _WORDS


def readings(r: Ranked) -> tuple[str, ...]:
    """Whom the offers of each order reach."""
    return tuple(_reading(r, order) for order in r.reranked)


def _reading(r: Ranked, order: str) -> str:
    found = [(group, m) for group in r.view.groups if (m := r.get(group, "points_changed", order))]
    if not found:
        return f"{ORDERS[order].text}: offers were not counted. {NOTHING}"
    said = "; ".join(f"{group} {_offered(m)}" for group, m in found)
    name = ORDERS[order].text
    return f"{capital(name)}, applicants to whom recourse is offered: {said}."


def _offered(m: Measure) -> str:
    return missing_words(m) if m.value is None else count(m.value)


def tables(r: Ranked) -> tuple[TableView, ...]:
    """Whom offers reach and at what cost, what they change, how the orders ended, and what baselines would do."""
    return _reached(r), _attributes(r), _ended(r), _baselines(r)


def _reached(r: Ranked) -> TableView:
    columns: dict[str, Callable[[tuple[str, str]], Cell]] = {
        "Group": lambda at: r.named(at[0]),
        "Order": lambda at: Cell(ORDERS[at[1]].text),
        "Listed": lambda at: n_cell(r.get(at[0], "points_changed", at[1])),
        "With an offer": lambda at: value_cell(r.get(at[0], "points_changed", at[1]), "count"),
        "Another rank": lambda at: value_cell(r.get(at[0], "ranks_changed", at[1]), "count"),
        "Total cost": lambda at: _total(r, *at),
        "Mean cost of an offer": lambda at: _or_dash(r.get(at[0], "mean_offer_cost", at[1]), "number"),
        "Mean cost left": lambda at: value_cell(r.get(at[0], HEADLINE, at[1]), "number"),
        "Not confirmed": lambda at: _or_dash(r.get(at[0], "offer_not_confirmed_share", at[1]), "rate"),
    }
    whom = "the group with the higher mean cost alone" if r.settings.direction == "worse_off" else "any group"
    note = (
        f"Costs in {UNIT}; offers go to {whom}. Another rank: also those who are passed. Mean cost left: of recourse, "
        "once every offer is taken. Not confirmed: offers that raise the very model's score less than the re-ranking "
        "counted on; a lender cannot be asked (–). In brackets: intervals."
    )
    found = ((group, order) for order in r.reranked for group in r.view.groups)
    offered = [at for at in found if r.get(at[0], "points_changed", at[1])]
    return TableView.of(f"Offers: whom they reach, and what they cost, by {r.view.attribute}", offered, columns, note)


def _total(r: Ranked, group: str, order: str) -> Cell:
    """The sum over all offers; where their mean is withheld, the sum over so few is as telling and is not shown."""
    mean = r.get(group, "mean_offer_cost", order)
    return _or_dash(mean if mean and mean.withheld else r.get(group, "total_cost", order), "number")


def _attributes(r: Ranked) -> TableView:
    found = [m for m in r.view.all("offer_share") if m.said.get("order") in r.reranked]
    place = {group: i for i, group in enumerate(r.view.groups)}
    found.sort(key=lambda m: (r.reranked.index(m.said["order"]), place.get(m.group, 0), _last(m), m.said["attribute"]))
    rows = tuple(
        (
            *(r.named(m.group), Cell(ORDERS[m.said["order"]].text), Cell(r.view.label(m.said["attribute"]))),
            *(n_cell(m), value_cell(m, "rate"), n_cell(size), value_cell(size, "number")),
        )
        for m in found
        for size in (r.get(m.group, "offer_size", m.said["order"], attribute=m.said["attribute"]),)
    )
    header = ("Group", "Order", "What would change", "Offers", "Share that change it", "Changing it", "Mean change")
    note = (
        "Of each group the attribute that most offers change comes first. Mean change: of the offers that change it, "
        "in the column's own units; of ordered categories, steps from one to the next. Below 0: downwards. In "
        "brackets: intervals."
    )
    return TableView(f"What offers would change, by {r.view.attribute}", header, rows, note)


def _last(m: Measure) -> float:
    """Largest share first; what is withheld comes last and does not tell its place."""
    return 1.0 if m.value is None else -m.value


def _ended(r: Ranked) -> TableView:
    below, end = (
        {o: r.get(r.view.reference, name, o) for o in r.reranked} for name in ("below_predecessor_share", "exit_rank")
    )
    columns: dict[str, Callable[[str], Cell]] = {
        "Order": lambda order: Cell(ORDERS[order].text),
        "Less cost than the one above": lambda order: value_cell(below[order], "rate"),
        "Stopped at rank": lambda order: _stopped(end[order]),
    }
    note = (
        "Of all groups together. Less cost than the one above: an offer may lead past the place that it was made for. "
        "Stopped at rank: where no offer helped and the audit spec asks to leave the rest as it is."
    )
    known = [order for order in r.reranked if below[order] or end[order]]
    return TableView.of(f"How the orders came out, by {r.view.attribute}", known, columns, note)


def _stopped(end: Measure | None) -> Cell:
    """Where re-ranking stopped; without a value it never did."""
    return Cell("never", "none") if end and end.value is None and not end.withheld else _or_dash(end, "count")


def _baselines(r: Ranked) -> TableView:
    keys = [(group, order) for order in r.orders if order in BASELINES for group in r.view.groups]
    shown = [[r.get(group, measure, order) for measure in _OF_BASELINES] for group, order in keys]
    units = _OF_BASELINES.values()
    rows = tuple(
        (r.named(group), Cell(ORDERS[order].text), *(_or_dash(m, u) for m, u in zip(found, units, strict=True)))
        for (group, order), found in zip(keys, shown, strict=True)
        if any(found)
    )
    header = ("Group", "Rule", "Another decision", "Another rank", "Mean cost of those listed", "Ratio of costs")
    note = (
        "FA*IR moves ranks and offers nothing. Demographic parity and equalised odds decide anew, so that the list is "
        "of others and its mean costs are not of the same people. The ratio is of each group beside "
        f"{r.view.reference}, in the row of {r.view.reference} of all groups together. –: does not apply."
    )
    note += qualified(m for found in shown for m in found)
    return TableView(f"What other rules would do, by {r.view.attribute}", header, rows, note)


def _or_dash(m: Measure | None, unit: Unit) -> Cell:
    """A measure, or a dash where the order has none such."""
    return value_cell(m, unit) if m else DASH
