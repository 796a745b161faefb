"""Rows of measures as they are published, without a run: every count is rounded as the profile rounds."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tasks.metrics.algorithm.measures import Given, Measure, Plan, Statistic
from tasks.metrics.publish.algorithm.populations import Cell, of_counts, spreads
from tasks.metrics.publish.algorithm.primary import Publisher
from tasks.metrics.publish.algorithm.profiles import POLICIES, Policy, rounded

_FAMILY = ("method", "decision_maker", "protected_attribute", "measure", "parameters", "subgroup")
_OWN = ("group", "reference_group", "value", "low", "high", "n", "events", "p", "q", "state", "reason", "note")


@dataclass(frozen=True)
class Told:
    """Stands for the fates of a run: no population is withheld but those named."""

    policy: Policy
    gone: frozenset[tuple[str, str, str]] = field(default_factory=frozenset)
    """(decision maker, protected attribute, group)."""

    def is_gone(self, attribute: str, group: str, maker: str = "") -> bool:
        return (maker, attribute, group) in self.gone

    def are_decisions_gone(self, attribute: str, group: str, maker: str) -> bool:
        return self.is_gone(attribute, group, maker)

    def is_ranged(self, *_whose: str) -> bool:
        return False

    def is_coarse(self, _population: object) -> bool:
        return False

    def printed(self, _attribute: str, _group: str, _maker: str, count: int) -> int | None:
        return None if 0 < count < self.policy.smallest else rounded(self.policy, count)

    def knows(self, *_whose: object) -> bool:
        return False

    def base(self, _maker: str = "") -> int:
        return self.policy.round_to

    def base_of(self, *_whose: object) -> int:
        return self.policy.round_to


def shown(
    measures: Iterable[Measure],
    profile: str,
    statistics: Iterable[Statistic | Given] = (),
    hidden: Collection[Cell] = (),
    plan: Plan | None = None,
) -> list[SimpleNamespace]:
    """The measures as published, all of whose intervals cover; numbers are NaN where a row has none."""
    told, made = Told(POLICIES[profile]), list(statistics)
    pairs = [of_counts(s, told.policy, told.policy.round_to) for s in made if isinstance(s, Statistic)]
    ends = {} if plan is None else spreads(pairs, plan)
    rows = [row_of(m) for m in measures]
    publisher = Publisher(
        told.policy, {m["measure"].split("_size")[0] for m in rows} | {s.family.measure for s in made}, hidden,
        {(s.family, s.group): s for s in made}, told.printed, told.base_of, lambda *_: (None, None, ""), ends,
    )  # fmt: skip
    return [_read(row) for row in publisher.published(rows)]


def row_of(m: Measure) -> dict[str, Any]:
    """A row of the raw table of measures."""
    numbers = {name: getattr(m, name) for name in _OWN}
    absent = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in numbers.items()}
    return {**absent, **{name: getattr(m.family, name) for name in _FAMILY}}


def _read(row: Any) -> SimpleNamespace:
    floats = ("value", "low", "high", "p", "q")
    return SimpleNamespace(**{k: math.nan if k in floats and v is None else v for k, v in row.items()})
