"""Ranking quality: how evenly a group is spread over the list, by rKL, rND and rRD, of every order and the baselines.

These look at places alone and know nothing of costs: a list may be even by them and costs be far apart. Here belongs
one table with its readings.
"""

from tasks.methods.raguel.report.lookups import NOTHING, ORDERS, Ranked
from tasks.reporting.material import Measure, Shown, listed
from tasks.reporting.numbers import missing_words, n_cell, value_cell
from tasks.reporting.section import Cell, TableView

MEASURES = {
    "rkl": Shown("rKL", "number"),
    "rnd": Shown("rND", "number"),
    "rrd": Shown("rRD", "number"),
}
GLOSSARY = {
    "rKL, rND, rRD": "how far the share of a group at the top of a list is from its share in all of it, by relative "
    "entropy, difference and ratio, the top ranks counting most; 0 is even, 1 the largest that any order has",
}
_WORDS = (
    "A group against all others, at every tenth rank, the top ranks counting most: 0 where its share is the same "
    "everywhere, 1 for the most uneven order that these people could stand in. Places are looked at here, and not "
    "costs.",
)


def words(_: Ranked) -> tuple[str, ...]:
    """What is measured."""
    return _WORDS


def readings(r: Ranked) -> tuple[str, ...]:
    """Why a metric is undefined, group by group; nothing where all are known."""
    return tuple(said for group in r.others if (said := _reading(r, group)))


def _reading(r: Ranked, group: str) -> str:
    found = {measure: [m for order in r.orders if (m := r.get(group, measure, order))] for measure in MEASURES}
    if not any(found.values()):
        return f"{group}: no metric was computed. {NOTHING}"
    unknown = [_unknown(MEASURES[measure].words, ms) for measure, ms in found.items() if ms]
    said = [each for each in unknown if each]
    return f"{group}: {listed(said)}." if said else ""


def _unknown(name: str, found: list[Measure]) -> str:
    out = [m for m in found if m.value is None]
    notes = dict.fromkeys(m.note for m in out if m.note and not m.withheld)
    why = f" ({'; '.join(notes)})" if notes else ""
    return f"{name} is {missing_words(out[0])}{why}" if out else ""


def tables(r: Ranked) -> tuple[TableView, ...]:
    """One row for every group and order."""
    rows = tuple(
        (
            *(Cell(group), Cell(ORDERS[order].text), n_cell(found[0])),
            *(value_cell(m, "number") for m in found),
        )
        for group in r.others
        for order in r.orders
        if any(found := [r.get(group, measure, order) for measure in MEASURES])
    )
    header = ("Group", "Order", "Listed, all groups", *(shown.words for shown in MEASURES.values()))
    absent = [
        ORDERS[order].text for order in ("fa_ir", "demographic_parity", "equalised_odds") if order not in r.orders
    ]
    note = (
        f"Lower is more even. FA*IR at level {r.settings.alpha:g}, tested at the first {r.settings.top:,} ranks; "
        "demographic parity and equalised odds decide anew by thresholds for each group, and need scores."
    )
    note += f" Not made in this run: {listed(absent)}." if absent else ""
    return (TableView(f"Ranking quality, by {r.view.attribute}", header, rows, note),)
