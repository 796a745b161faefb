"""Verdicts and agreement as they are published: a withheld group tells neither its numbers nor its state."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from schemas.audit.partition import unsampled
from schemas.table import Table
from schemas.tables.published import PUBLISHED_AGREEMENT, PUBLISHED_VERDICTS
from schemas.terms import State
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.families import Cell
from tasks.metrics.publish.algorithm.populations import Place, Population
from tasks.metrics.publish.fates import Fates
from tasks.metrics.publish.people.crowd import Crowd, decided_place, whole_of
from tasks.pipeline.registry import OUTCOMES_METHOD

Row = Mapping[str, Any]
WITHHELD = "withheld: it rests on few people"
COARSE = "its numbers are withheld, since they would tell those of a few people"
_COUNTS = {"n": "group", "events": "group", "n_reference": "reference_group", "events_reference": "reference_group"}
_P = ("p_breach", "p_breach_holm", "p_within")
_PLAIN = ("value", "low", "high", "plain_low", "plain_high", "robustness", "se", "bias", "detectable")
_MOST_DIGITS = 5
_COARSE: Mapping[str, Callable[[float], int]] = {
    "low": math.floor, "plain_low": math.floor, "high": math.ceil, "plain_high": math.ceil, "se": math.ceil,
}  # fmt: skip
"""Where counts are rounded, ends go outwards: an interval covers, and so does the band of years pooled by the error."""


def populations_judged(verdicts: Sequence[Row], crowd: Crowd) -> frozenset[Population]:
    """The populations that verdicts are about: the groups and their references, as each decision maker has them."""
    return frozenset(
        whole_of(row["protected_attribute"], group, place)
        for row in verdicts
        if row["role"] != "theory" and row["limit"] is not None
        for group in (row["group"], row["reference_group"])
        if group
        for place in _places(crowd, row["decision_maker"])
    )


def _places(crowd: Crowd, maker: str) -> Iterator[Place]:
    yield from (crowd.source, crowd.used)
    yield from (place for place in crowd.bases(()) if place.decision_maker == maker and place.reason == "")


def verdicts(rows: Sequence[Row], hidden: Collection[Cell], fates: Fates) -> pa.Table:
    """The published table, from the rows of ``VERDICTS``."""
    cells = _cells(hidden)
    gone = {id(row): _is_hidden(row, cells, fates) for row in rows}
    out: list[Row] = []
    for row in rows:
        if row["role"] == "theory":
            own = [each for each in rows if each["theory"] == row["theory"] and each["role"] != "theory"]
            out.append({**row, "reason": _told(row["reason"], own, [each for each in own if gone[id(each)]])})
        else:
            out.append(_withheld(row) if gone[id(row)] else _shown(row, fates))
    return _built(PUBLISHED_VERDICTS, out)


def agreement(rows: Sequence[Row], judged: Sequence[Row], hidden: Collection[Cell], fates: Fates) -> pa.Table:
    """The published table, from the rows of ``AGREEMENT`` and of ``VERDICTS``."""
    names = ("theory", "decision_maker", "protected_attribute", "group", "method", "measure")
    cells = _cells(hidden)
    gone = {tuple(row[name] for name in names) for row in judged if _is_hidden(row, cells, fates)}
    nothing = {"sign": "too_few", "state": State.INSUFFICIENT_EVIDENCE}
    out = [{**row, **nothing} if tuple(row[name] for name in names) in gone else row for row in rows]
    return _built(PUBLISHED_AGREEMENT, out)


def _cells(hidden: Collection[Cell]) -> set[tuple[str, ...]]:
    """Whose measures are withheld: a decision maker's of a group of an attribute, and which; all, of decisions."""
    return {
        (f.protected_attribute, group, f.decision_maker, *_measured(f.method, f.measure, f.parameters))
        for f, group in hidden
        if f.method == OUTCOMES_METHOD or not f.subgroup
    }


def _measured(method: str, measure: str, parameters: str) -> tuple[str, ...]:
    return () if method == OUTCOMES_METHOD else (method, measure, unsampled(parameters))


def _is_hidden(row: Row, cells: Collection[tuple[str, ...]], fates: Fates) -> bool:
    if row["role"] == "theory":
        return False
    maker, attribute = row["decision_maker"], row["protected_attribute"]
    name, _, parameters = row["measure"].partition(" ")
    measured = _measured(row["method"], base_name(name), parameters or "{}")
    return any(
        fates.is_gone(attribute, group, maker)
        or fates.is_ranged(attribute, group, maker)
        or (attribute, group, maker) in cells
        or (attribute, group, maker, *measured) in cells
        for group in (row["group"], row["reference_group"])
        if group
    )


def _told(reason: str, own: Sequence[Row], gone: Sequence[Row]) -> str:
    """Why a theory has its state, without the groups that are withheld: their state would be told."""
    words, colon, named = reason.partition(": ")
    if not colon or not gone:
        return reason
    hidden = {row["group"] for row in gone}
    groups = sorted({row["group"] for row in own}, key=lambda group: (-len(group), group))
    found = re.findall(rf"(?:^|, )((?:{'|'.join(map(re.escape, groups))})(?: \([^)]*\))?)(?=, |$)", named)
    about = [(item, next(group for group in groups if item.startswith(group))) for item in found]
    left = [item for item, group in about if group not in hidden]
    count = len({group for _, group in about if group in hidden})
    said = [*left, *([f"{count} withheld"] if count else [])]
    return f"{words}: {', '.join(said)}" if said else words


def _withheld(row: Row) -> Row:
    kept = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "method", "measure", "role")
    said = {"state": State.INSUFFICIENT_EVIDENCE, "reason": WITHHELD, "withheld": True}
    blank = dict.fromkeys(column.name for column in PUBLISHED_VERDICTS.columns)
    return {**blank, **{name: row[name] for name in (*kept, "limit", "side", "assumption")}, **said}


def _shown(row: Row, fates: Fates) -> Row:
    """A row with its numbers rounded as all others: two decimals of what is a quotient of rounded counts.

    Where those counts are rounded so coarsely that no rate is printed, the quotient goes, too: only the state stays.
    """
    policy = fates.policy
    if not policy.protects:
        return row
    counts = {name: _count(row, name, group, fates) for name, group in _COUNTS.items()}
    coarse = fates.base(row["decision_maker"]) > 1 and row["method"] == OUTCOMES_METHOD
    numbers = {
        name: _number(row[name], row["limit"], fates, _COARSE.get(name, round) if coarse else None) for name in _PLAIN
    }
    chances = {name: None if row[name] is None else digits.p_value(policy, row[name]) for name in _P}
    needed = None if row["needed"] is None else digits.significant(policy, row["needed"], 2)
    reason = _in_words(row["reason"], row["detectable"], numbers["detectable"])
    said = {**row, **counts, **numbers, **chances, "needed": needed, "reason": reason}
    if coarse and _is_coarse(row, fates):
        said |= dict.fromkeys((*_PLAIN, *_P, "needed", "events", "events_reference"))
        said["reason"] = f"{row['reason'].partition('; ')[0]}; {COARSE}"
    return said


def _is_coarse(row: Row, fates: Fates) -> bool:
    place = decided_place(row["decision_maker"])
    groups = (row["group"], row["reference_group"])
    return any(fates.is_coarse(whole_of(row["protected_attribute"], group, place)) for group in groups if group)


def _in_words(reason: str, exact: float | None, shown: float | None) -> str:
    """The reason with the smallest effect that would be found as it is printed beside it."""
    if exact is None or shown is None:
        return reason
    said = f"{exact:.3f}".rstrip("0").rstrip(".")
    return reason.replace(f"; {said} or ", f"; {shown:g} or ")


def _count(row: Row, name: str, group: str, fates: Fates) -> int | None:
    if row[name] is None or not row[group]:
        return None
    return fates.printed(row["protected_attribute"], row[group], row["decision_maker"], row[name])


def _number(
    value: float | None, limit: float | None, fates: Fates, coarse: Callable[[float], int] | None
) -> float | None:
    """Three digits, or two decimals; more where it would else seem to lie on the other side of the limit, or on it."""
    if value is None:
        return None
    if coarse:
        return coarse(round(100 * value, 9)) / 100 + 0.0
    for count in range(digits.SIGNIFICANT, _MOST_DIGITS + 1):
        shown = digits.significant(fates.policy, value, count) + 0.0
        if limit is None or math.copysign(1, shown - limit) == math.copysign(1, value - limit) != 0:
            break
    return shown


def _built(table: Table, rows: Sequence[Row]) -> pa.Table:
    return table.build(**{column.name: [row[column.name] for row in rows] for column in table.columns})
