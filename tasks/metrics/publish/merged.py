"""Withheld groups that are shown as one group, as the auditor allowed: their people, and the denied among them."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from schemas.tables.publication import PUBLISHED_MERGED
from tasks.metrics.publish.algorithm.outcome import Fate, Merged
from tasks.metrics.publish.algorithm.populations import Published
from tasks.metrics.publish.fates import Fates
from tasks.metrics.publish.people.crowd import DENIED


def rows(fates: Fates) -> Iterator[dict[str, Any]]:
    """Rows of the publication: one for each number of groups that are one."""
    for each in fates.outcome.merged:
        first = each.populations[0]
        for known in _told(each):
            yield {
                **{"protected_attribute": first.attribute, "group": _words(each), "part": 0},
                **{"decision_maker": first.decision_maker, "base": first.base.value, "reason": first.reason},
                **{"event": known.count.event, "number": each.numbers[known.count.event], "text": ""},
                **{"fate": (Fate.ROUNDED if each.base > 1 else Fate.SHOWN).value, "least": None, "largest": None},
                **{"low": int(known.low), "high": int(known.high), "rest_low": None, "rest_high": None},
                "groups": json.dumps([population.group for population in each.populations]),
            }


def table(fates: Fates) -> pa.Table:
    """In the shape of ``PUBLISHED_MERGED``: the source, the rows used, and those decided on."""
    found = [each for each in fates.outcome.merged if not each.populations[0].reason]
    told = [{known.count.event: each.numbers[known.count.event] for known in _told(each)} for each in found]
    shown = [(each.populations[0], _words(each), n) for each, n in zip(found, told, strict=True) if "" in n]
    return PUBLISHED_MERGED.build(
        protected_attribute=[first.attribute for first, *_ in shown],
        groups=[words for _, words, _ in shown],
        base=[first.base.value for first, *_ in shown],
        decision_maker=[first.decision_maker for first, *_ in shown],
        n=[n[""] for *_, n in shown],
        denied=[n.get(DENIED) for *_, n in shown],
    )


def _told(merged: Merged) -> Iterator[Published]:
    """What is printed: not a number that is rounded to nobody, or to everybody, and stands for a few as well."""
    for known in merged.published:
        event = known.count.event
        ends = (0, merged.numbers[""]) if event else (0,)
        if known.low == known.high or merged.numbers[event] not in ends:
            yield known


def _words(merged: Merged) -> str:
    *groups, last = [each.group for each in merged.populations]
    return f"{', '.join(groups)} or {last}"
