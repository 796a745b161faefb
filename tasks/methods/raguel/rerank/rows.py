"""Writes places in lists and offers as rows of the tables ``reranked`` and ``offers``, one list at a time."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.methods.raguel.algorithm import lists
from tasks.methods.raguel.algorithm.offers import Applied, Offers
from tasks.methods.raguel.algorithm.summary import ListSummary
from tasks.methods.raguel.algorithm.targets import Found
from tasks.methods.raguel.algorithm.units import Attribute
from tasks.methods.raguel.settings import RaguelSettings
from tasks.methods.raguel.tables import OFFERS, RERANKED
from tasks.numerics.arrays import Longs
from tasks.preprocessing.groups import Grouped


@dataclass(frozen=True)
class Case:
    """Identity of a list."""

    method: str
    decision_maker: str
    attribute: str
    ids: "np.ndarray[Any, Any]"
    """``(rows,)`` identifiers of all rows of the audit."""
    grouped: Grouped


@dataclass(frozen=True)
class Placed:
    """Results of the ``w`` rows that were to be ranked."""

    wanted: Longs
    kept: Longs
    """``(n,)`` numbers, among them, of those that are ranked: the records of the list."""
    found: Found
    refusal: NDArray[np.str_]
    """``(w,)`` empty, or the reason."""
    settings: RaguelSettings
    told: ListSummary | None = None
    """None where nobody is ranked."""
    applied: Applied | None = None


def reranked_rows(case: Case, placed: Placed) -> pa.Table:
    """Returns a row for each row that was to be ranked, and each order."""
    w, found = len(placed.wanted), placed.found
    group = np.array(case.grouped.groups, dtype=object)[case.grouped.group[placed.wanted]]
    shared = {
        "row_id": case.ids[placed.wanted],
        "decision_maker": [case.decision_maker] * w,
        "protected_attribute": [case.attribute] * w,
        "group": group,
        "found_by": [found.by] * w,
        "cost": found.targets.cost,
        "candidate": [None if at < 0 else case.ids[at] for at in found.candidate.tolist()],
        "refusal": [str(reason) or None for reason in placed.refusal],
    }
    orders = lists.names(placed.settings)
    return pa.concat_tables([RERANKED.build(**shared, order=[name] * w, **_places(placed, name)) for name in orders])


def _places(placed: Placed, name: str) -> dict[str, list[Any]]:
    """What is known of the rows that are ranked, by column; None for the others."""
    columns = ("point", "confirmed", "rank", "block", "cost_after", "rank_after", "block_after", "attained")
    empty: dict[str, list[Any]] = {c: [None] * len(placed.wanted) for c in (*columns, "offer_confirmed")}
    told = placed.told
    if told is None or placed.applied is None:
        return empty
    order = next(each for each in told.orders if each.name == name)
    attained = lists.attained(told.ranked, order, placed.settings.delta)
    known: dict[str, list[Any]] = {
        "point": _points(told, placed.applied),
        "confirmed": _said(told.confirmed),
        "rank": told.initial.rank.tolist(),
        "block": (told.initial.block + 1).tolist(),
        "cost_after": order.cost.tolist(),
        "rank_after": order.rank.tolist(),
        "block_after": (order.block + 1).tolist(),
        "attained": [str(rule) or None for rule in attained],
        "offer_confirmed": _said(told.offers_confirmed[name]),
    }
    for column, values in known.items():
        for at, value in zip(placed.kept.tolist(), values, strict=True):
            empty[column][at] = value
    return empty


def _said(confirmed: "np.ndarray[Any, Any]") -> list[bool | None]:
    return [None if np.isnan(each) else bool(each) for each in confirmed]


def _points(told: ListSummary, applied: Applied) -> list[str]:
    """What differs at each counterfactual point, as JSON, in the user's units."""
    values, target = told.ranked.records.values, told.ranked.records.target
    moved = applied.moved(target)
    found: list[dict[str, str]] = [{} for _ in values]
    for record, place in zip(*np.nonzero(values != target), strict=True):
        attribute, at = _attribute(applied, int(place)), applied.column[place]
        falls = bool(target[record, place] < values[record, place])
        found[record][attribute.name] = attribute.said_offer(float(moved[record, at]), falls)
    return [json.dumps(each) for each in found]


def _attribute(applied: Applied, place: int) -> Attribute:
    """The attribute of an input that was moved, as only attributes are."""
    attribute = applied.space.attributes[place]
    if attribute is None:
        raise ValueError(f"input {place} stands for one category, and was moved")
    return attribute


def offer_rows(case: Case, placed: Placed) -> pa.Table:
    """Returns a row for each column that an applicant is to change, in each order."""
    told, applied = placed.told, placed.applied
    if told is None or applied is None:
        return OFFERS.empty()
    parts = [_offers(case, applied, name, found) for name, found in told.offers.items()]
    return pa.concat_tables(parts)


def _offers(case: Case, applied: Applied, name: str, found: Offers) -> pa.Table:
    n = len(found.record)
    told_as = [_attribute(applied, place) for place in found.place.tolist()]
    return OFFERS.build(
        row_id=case.ids[applied.row[found.record]],
        decision_maker=[case.decision_maker] * n,
        protected_attribute=[case.attribute] * n,
        order=[name] * n,
        attribute=[each.name for each in told_as],
        from_value=[each.said(value) for each, value in zip(told_as, found.before.tolist(), strict=True)],
        to_value=[
            each.said_offer(value, falls)
            for each, value, falls in zip(told_as, found.after.tolist(), found.falls.tolist(), strict=True)
        ],
        change=found.after - found.before,
    )
