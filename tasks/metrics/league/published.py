"""What runs have published of counts, as blocks of the disclosure pass across partitions."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from schemas.tables.publication import GONE
from schemas.terms import DecisionMaker
from tasks.metrics.league.algorithm.across import Hidden as Hidden
from tasks.metrics.league.algorithm.across import Published, hidden_across
from tasks.metrics.league.algorithm.counts import APPROVED, DENIED, Block, Known
from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import Policy

Row = Mapping[str, Any]
BASES: Final = ("source", "used")
"""Populations whose counts the league prints: with a decision, and those of them that were used."""


def hidden(
    attribute: str, runs: Mapping[str, Sequence[Row]], everybody: Sequence[Row], *, others: bool, policy: Policy
) -> Hidden:
    """What must be withheld of an attribute so that nothing follows from all runs together.

    Args:
        attribute: the protected attribute.
        runs: value of a partition -> rows of its table ``publication``.
        everybody: those of the run over all rows.
        others: whether there may be rows of partitions that publish nothing.
        policy: of the profile of disclosure control.
    """
    found = []
    for base in BASES:
        mine = {value: _about(rows, attribute, base) for value, rows in {**runs, ALL: everybody}.items()}
        groups = sorted({group for rows in mine.values() for row in rows for group in _groups(row)} - {ALL})
        blocks = tuple(block(value, rows, groups) for value, rows in mine.items() if value != ALL)
        total = block(ALL, mine[ALL], groups)
        found.append(hidden_across(Published(tuple(groups), blocks, total, others, policy)))
    partitions = frozenset[str]().union(*(each.partitions for each in found))
    return Hidden(partitions, any(each.everybody for each in found), any(each.unequal for each in found))


def block(value: str, rows: Sequence[Row], groups: Sequence[str]) -> Block:
    """What is published of one partition, of one attribute and base.

    A group that a partition has no row of is left out of its audit, which its report says: it has nobody there.
    """
    known = [each for row in rows for each in _known(row)]
    named = {group for row in rows for group in _groups(row)}
    if named:
        known += [Known((group,), "", 0, 0) for group in groups if group not in named]
    few = [row for row in rows if row["group"] != ALL and not row["groups"]]
    withheld = [(row["group"], row["event"]) for row in few if row["fate"] in GONE]
    ranges = [(row["group"], event) for row in few if row["fate"] == "range" for event in (DENIED, APPROVED)]
    return Block(value, tuple(known), tuple(dict.fromkeys([*withheld, *ranges])))


def _about(rows: Sequence[Row], attribute: str, base: str) -> list[Row]:
    """Rows about whole groups of an attribute, as the lender decided."""
    whose = (attribute, base, DecisionMaker.LENDER, 0, "")
    names = ("protected_attribute", "base", "decision_maker", "part", "reason")
    return [row for row in rows if tuple(row[name] for name in names) == whose]


def _groups(row: Row) -> list[str]:
    return json.loads(row["groups"]) if row["groups"] else [row["group"]]


def _known(row: Row) -> Iterator[Known]:
    """The bounds that a row tells: of the count, and of those without the event."""
    groups = tuple(_groups(row))
    yield from _within(groups, row["event"], row["low"], row["high"])
    if row["event"] == DENIED:
        yield from _within(groups, APPROVED, row["rest_low"], row["rest_high"])


def _within(groups: tuple[str, ...], event: str, low: int | None, high: int | None) -> Iterator[Known]:
    if low is not None or high is not None:
        yield Known(groups, event, 0 if low is None else low, math.inf if high is None else high)
