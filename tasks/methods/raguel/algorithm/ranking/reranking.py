"""Algorithm 1 of RAGUEL: a ranking in which every prefix represents the groups fairly, at little modification.

The list grows record by record. Where the next record would make it unfair, a lower-ranked one of another group is
modified until it costs strictly less, and goes first if the resulting recourse ratio permits.

Scope: settings and the list in memory. Loops: ``appending``.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.methods.raguel.algorithm.ranking import appending, ratios
from tasks.methods.raguel.algorithm.ranking.records import Records
from tasks.methods.raguel.algorithm.ranking.representation import Representation
from tasks.methods.raguel.algorithm.ranking.reranked import Reranked, by_record, movable, ranks


@dataclass(frozen=True)
class Reranking:
    """What the paper leaves open, and how it is decided."""

    rule: Literal["improve", "strict"] = "improve"
    """Accept a modified record if the ratio is at least 1 - delta (``strict``, the paper's; its own example cannot
    satisfy it), or also if it is no lower than with the record unmodified (``improve``)."""
    direction: Literal["worse_off", "both"] = "worse_off"
    """Modify only the group with the higher mean cost, or any (``both``, the paper's; it lowers many lists' ratio)."""
    failure: Literal["skip", "exit"] = "skip"
    """Where nothing helps, leave the rank unfair and go on, or copy the rest as it is (``exit``, the paper's)."""
    delta: float = 0.1
    """Tolerance of the recourse ratio."""
    probes: int = 200
    """Lower-ranked records that are tried for one rank; without a limit the search is quadratic."""


def rerank(records: Records, held: Representation, settings: Reranking) -> Reranked:
    """Re-rank a list (Algorithm 1).

    Args:
        records: All with a cost.
        held: The bounds that every prefix of two records or more is to keep.
        settings: Rules of acceptance, direction and failure.
    """
    before, groups = records.ranked(), len(held.shares)
    listed = records.listed(before)
    worst = ratios.worst_off(records.cost, records.group, groups)
    choices = appending.Choices(
        movable(worst, groups, settings.direction),
        1.0 - settings.delta,
        settings.rule == "improve",
        settings.failure == "exit",
        settings.probes,
    )
    new, failed, exit_place = appending.grow(listed, records.rules, held.bounds, choices)
    order = before[new]
    return Reranked(
        order,
        ranks(before),
        ranks(order),
        by_record(listed.cost, before),
        by_record(listed.values, before),
        np.flatnonzero(failed) + 1,
        None if exit_place < 0 else int(exit_place) + 1,
    )
