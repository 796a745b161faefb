"""Rows of the tables ``tallies``, ``aggregates`` and ``draws`` from the statistics of methods.

Every stage with statistics of groups uses it, so that they look the same.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.audit.partition import SAMPLED
from schemas.tables.findings import AGGREGATES, DRAWS, TALLIES
from tasks.numerics.results import Aggregate, Draws, Inference, Tally


@dataclass(frozen=True)
class Origin:
    """Identity of a statistic, apart from its group."""

    method: str
    decision_maker: str
    protected_attribute: str
    groups: tuple[str, ...]
    """Names of the groups, by number."""
    sampled: Mapping[int, str] = field(default_factory=dict)
    """How many members of a group were asked, of how many; of groups all of whom were, nothing."""

    def tallies(self, found: Sequence[Tally]) -> pa.Table:
        """One row for each value of each tally."""
        sizes = [len(tally.values) for tally in found]
        named = {**self._named(found), **self._wanted(found), "share": [tally.share for tally in found]}
        return TALLIES.build(
            **{name: np.repeat(np.array(values, dtype=object), sizes) for name, values in named.items()},
            value=np.concatenate([np.zeros(0), *(tally.values for tally in found)]),
            count=np.concatenate([np.zeros(0, np.int64), *(tally.counts for tally in found)]),
        )

    def aggregates(self, found: Sequence[Aggregate]) -> pa.Table:
        """One row for each aggregate."""
        return AGGREGATES.build(
            **self._named(found),
            **self._wanted(found),
            value=[each.value for each in found],
            n=[each.n for each in found],
            events=[each.events for each in found],
            reason=[each.reason or None for each in found],
            replicates=[each.replicates for each in found],
            low=[each.interval[0] if each.interval else None for each in found],
            high=[each.interval[1] if each.interval else None for each in found],
            **_inferred([each.inference for each in found]),
        )

    def draws(self, found: Sequence[Draws]) -> pa.Table:
        """One row for each value of each measure drawn."""
        sizes = [len(each.values) for each in found]
        named = self._named(found)
        named.pop("subgroup")
        named |= {"reason": [each.reason or None for each in found], "reference": [each.reference for each in found]}
        return DRAWS.build(
            **{name: np.repeat(np.array(values, dtype=object), sizes) for name, values in named.items()},
            draw=np.concatenate([np.zeros(0, np.int64), *(np.arange(size) for size in sizes)]),
            value=np.concatenate([np.zeros(0), *(each.values for each in found)]),
        )

    def _named(self, found: Sequence[Tally | Aggregate | Draws]) -> dict[str, list[Any]]:
        return {
            "method": [self.method] * len(found),
            "decision_maker": [self.decision_maker] * len(found),
            "protected_attribute": [self.protected_attribute] * len(found),
            "group": [self.groups[each.group] for each in found],
            "subgroup": [getattr(each, "subgroup", 0) for each in found],
            "measure": [each.measure for each in found],
            "parameters": [json.dumps(self._parameters(each), sort_keys=True) for each in found],
        }

    def _parameters(self, each: Tally | Aggregate | Draws) -> dict[str, float | str]:
        return {**each.parameters, **({SAMPLED: self.sampled[each.group]} if each.group in self.sampled else {})}

    def _wanted(self, found: Sequence[Tally | Aggregate]) -> dict[str, list[bool]]:
        return {"headline": [each.headline for each in found], "compared": [each.compared for each in found]}


COUNTED = ("n_used", "events_used", "n_reference_used", "events_reference_used")
"""Columns of ``Inference.counted``."""


def _inferred(found: Sequence[Inference | None]) -> dict[str, list[Any]]:
    """Columns of what verdicts rest on; null where there is nothing, and for a number that is not finite."""
    names = ("se", "se_above", "scale", "df", "p", "robustness", "unseen", "raised", "lowered")
    said = [{} if each is None else vars(each) for each in found]
    counted = [None if each is None else each.counted for each in found]
    return {
        **{name: [_finite(row.get(name)) for row in said] for name in names},
        **{name: [each and each[place] for each in counted] for place, name in enumerate(COUNTED)},
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
