"""The exclusion waterfall and missing values, as they are published."""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from typing import Any

import pyarrow as pa

from schemas.tables.applications import ANY
from schemas.tables.publication import PUBLISHED_MISSINGNESS, PUBLISHED_WATERFALL
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.outcome import Fate
from tasks.metrics.publish.algorithm.populations import ALL, Place
from tasks.metrics.publish.algorithm.profiles import Policy
from tasks.metrics.publish.fates import GONE, Fates
from tasks.metrics.publish.people.crowd import DENIED, lacking_place, left_place, line_place, whole_of

Row = Mapping[str, Any]


def waterfall(fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_WATERFALL``."""
    rows = [row for attribute in fates.people.attributes for row in _lines(fates, attribute.name, attribute.groups)]
    return PUBLISHED_WATERFALL.build(**{c.name: [row[c.name] for row in rows] for c in PUBLISHED_WATERFALL.columns})


def in_order(fates: Fates, attribute: str, groups: Sequence[str]) -> list[str]:
    """Groups by falling size as published; those withheld last, by name: their order would tell which is larger."""
    sizes = {group: fates.number(whole_of(attribute, group, fates.crowd.source)) for group in groups}
    return sorted(groups, key=lambda group: (sizes[group] is None, -(sizes[group] or 0), group))


def _lines(fates: Fates, attribute: str, groups: Sequence[str]) -> Iterator[Row]:
    groups = in_order(fates, attribute, groups)
    for number, (kind, place, line) in enumerate(_places(fates)):
        stage, reason, column = line
        for group in (ALL, *groups):
            entry = fates.entry(whole_of(attribute, group, place))
            share = _approved(fates, attribute, group, place, line) if kind == "refused" else (None, False)
            yield {
                **{"protected_attribute": attribute, "line": number, "kind": kind, "stage": stage},
                **{"reason": reason, "column": column, "group": group, "n": entry.number},
                **{"approval": share[0], "withheld": entry.fate in GONE or share[1]},
            }


def _places(fates: Fates) -> Iterator[tuple[str, Place, tuple[str, str, str]]]:
    """Kind, place, and (stage, reason, column) of every line."""
    crowd, nothing = fates.crowd, ("", "", "")
    yield "source", crowd.source, nothing
    for place, line in enumerate(crowd.lines):
        yield "refused", line_place(line), line
        stage = line[0]
        last = place + 1 == len(crowd.lines)
        if not last and crowd.lines[place + 1][0] != stage:
            yield "left", left_place(stage), (stage, "", "")
    yield "used", crowd.used, nothing


def _approved(fates: Fates, attribute: str, group: str, place: Place, line: tuple[str, str, str]) -> tuple[Any, bool]:
    """Share approved of refused records, and whether it is withheld; neither where decisions could not be read."""
    population = whole_of(attribute, group, place)
    entry, n = fates.entry(population, DENIED), fates.number(population)
    if not fates.crowd.readable(line) or entry.number == 0 == n:
        return None, False
    denied = fates.share_denied(attribute, group, place)
    if denied is None:
        return None, entry.fate in (*GONE, Fate.RANGE) or fates.is_coarse(population)
    return round(1 - denied, digits.decimals(n or 1)), False


def missingness(lacks: Sequence[Row], fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_MISSINGNESS``, from the rows of ``MISSINGNESS``."""
    rows = [_lack(lack, fates) for lack in lacks]
    return PUBLISHED_MISSINGNESS.build(**{c.name: [row[c.name] for row in rows] for c in PUBLISHED_MISSINGNESS.columns})


def _lack(lack: Row, fates: Fates) -> Row:
    first, place = fates.people.attributes[0].name, lacking_place(lack["feature"], lack["reason"])
    entry = fates.entry(whole_of(first, ALL, place))
    gone, denied = entry.fate in GONE, fates.share_denied(first, ALL, place)
    decimals = digits.decimals(entry.number or 1)
    auc = lack["auc"] if lack["reason"] == ANY and not gone else None
    present = None if gone or not lack["present"] else lack["favourable_present"] / lack["present"]
    return {
        **{"feature": lack["feature"], "reason": lack["reason"], "missing": entry.number},
        "approval_missing": None if denied is None else round(1 - denied, decimals),
        "approval_present": present if present is None else blunt(fates.policy, present, lack["present"]),
        "auc": None if auc is None else digits.significant(fates.policy, auc),
        "withheld": gone or (denied is None and bool(lack["missing"])),
    }


def blunt(policy: Policy, share: float, n: int) -> float:
    """A share of ``n`` whose n is not printed: with so few decimals that a few people more or less read alike."""
    if not policy.protects:
        return share
    return round(share, max(floor(log10(max(n, 10) / (2 * policy.smallest))), 1))
