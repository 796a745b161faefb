"""What pages of the questions look up: published measures and verdicts of a group.

Scope: finding rows. What is written of them: ``marks``.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from schemas.audit.partition import unsampled
from schemas.tables.verdicts import VERDICTS
from schemas.terms import DecisionMaker, Theory
from tasks.reporting.chapters.decide.facts import Key, Row
from tasks.reporting.chapters.decide.groups import Groups
from tasks.reporting.chapters.decide.result import Decision
from tasks.reporting.chapters.questions.declaration import Question, Series
from tasks.reporting.material import Material, Measure

Found = tuple[str, str, str, str, str, str]


@dataclass(frozen=True)
class Matter:
    """A run as the pages look at it."""

    material: Material
    groups: Groups
    decision: Decision

    @cached_property
    def _measures(self) -> dict[Found, Measure]:
        """Measures of whole groups by method, decision maker, attribute, group, measure and parameters."""
        return {
            (m.method, m.decision_maker, m.protected_attribute, m.group, m.measure, unsampled(m.parameters)): m
            for m in self.material.measures
            if m.subgroup == 0
        }

    @cached_property
    def _makers(self) -> dict[tuple[str, str], list[str]]:
        """Method and measure -> whose decisions, the lender's first."""
        found: dict[tuple[str, str], set[str]] = {}
        for m in self.material.measures:
            found.setdefault((m.method, m.measure), set()).add(m.decision_maker)
        return {each: sorted(makers, key=lambda maker: maker != DecisionMaker.LENDER) for each, makers in found.items()}

    def measure(self, series: Series, key: Key) -> Measure | None:
        """A measure of a group; None where the run did not make it."""
        makers = self._makers.get((series.method, series.measure), [])
        wanted = [series.maker] if series.maker else makers[:1]
        said = json.dumps(series.at, sort_keys=True)
        found = (self._measures.get((series.method, maker, *key, series.measure, said)) for maker in wanted)
        return next((m for m in found if m is not None), None)

    def every(self, series: Series, key: Key) -> Iterator[Measure]:
        """A measure of a group at all its parameters, of the decision maker whose is looked at."""
        makers = self._makers.get((series.method, series.measure), [])
        wanted = (series.method, series.maker or next(iter(makers), ""), *key, series.measure)
        yield from (m for found, m in self._measures.items() if found[:5] == wanted)

    def has(self, series: Series) -> bool:
        """Whether the run has the measure of any group."""
        return (series.method, series.measure) in self._makers

    def rungs(self, series: Series, row: Row) -> Iterator[tuple[str, Measure]]:
        """The ladder of a row's group: last block of each rung, and its estimate; in the order of the measures."""
        wanted = (series.method, row.decision_maker, *row.key, series.measure)
        for found, m in self._measures.items():
            if found[:5] == wanted and "rung" in m.said and m.said == {**series.at, "rung": m.said["rung"]}:
                yield str(m.said["rung"]), m

    def p(self, row: Row) -> float | None:
        """One-sided p of an effect at or inside the limit, after Holm over the rows judged together."""
        named = ("theory", "role", "protected_attribute", "group", "decision_maker", "measure", "limit", "side")
        for each in self.material.named(VERDICTS.name):
            if all(each[name] == getattr(row, name) for name in named):
                p: float | None = each["p_breach_holm"]
                return p
        return None

    def primary(self, theory: Theory, key: Key) -> Row | None:
        """The row of a group that decides: that of the decision maker by whom the group stands as it does."""
        row = self.groups.standing(theory, key).row
        if row is None or row.role == "primary":
            return row
        rows = (each for each in self.groups.run.rows if each.theory is theory and each.key == key)
        return next((each for each in rows if each.role == "primary"), None)

    def shown(self, question: Question) -> tuple[Key, ...]:
        """The groups of the page, in the one order of all pages."""
        return tuple(each.key for each in self.groups.standings(question.theory)) or self.groups.order

    def with_references(self, keys: Iterable[Key]) -> tuple[Key, ...]:
        """The same groups, before those of each attribute its reference group."""
        found: dict[Key, None] = {}
        for key in keys:
            reference = self.groups.reference_key(key[0])
            found |= {reference: None} if reference else {}
            found[key] = None
        return tuple(found)

    def is_reference(self, key: Key) -> bool:
        """Whether others are compared with the group."""
        return self.groups.reference_key(key[0]) == key

    def references(self, keys: Iterable[Key]) -> str:
        """With whom the groups are compared, in words."""
        return self.groups.references(list(keys))[0]
