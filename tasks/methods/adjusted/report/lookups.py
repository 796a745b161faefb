"""What the parts of the chapter look up: the rows of the ladder of one decision maker and one protected attribute.

Small groups are withheld here, as measures are: no number of such a group reaches a part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from schemas.blocks import NO_BLOCK
from schemas.table import Table
from tasks.methods.adjusted.algorithm.detection import ENOUGH_SUPPORT
from tasks.methods.adjusted.report.words import plain
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.methods.adjusted.tables import (
    ADJUSTED,
    ADJUSTED_BENCHMARKS,
    ADJUSTED_EXCHANGED,
    ADJUSTED_INTERACTIONS,
    ADJUSTED_ROWS,
    ADJUSTED_SUPPORT,
)
from tasks.metrics.algorithm.disclosure import complement, rounded, small
from tasks.reporting.lookups import Lookup
from tasks.reporting.numbers import interval_of, points
from tasks.reporting.section import Cell

METHOD = "adjusted"
KINDS: Mapping[tuple[str, str], str] = {
    ("logit", "own"): "logit, own members",
    ("logit", "all"): "logit, all rows",
    ("lpm", "all"): "linear probability",
    ("overlap", "overlap"): "overlap weights",
    ("aipw", "own"): "doubly robust",
}
"""Estimator and average -> what it is called."""
OVERLAP = ("overlap", "overlap")

Rows = tuple[Mapping[str, Any], ...]


def poor_support(row: Mapping[str, Any]) -> bool:
    """Whether too few of the group of an estimate are where both groups are found."""
    return row["support"] is not None and bool(row["support"] < ENOUGH_SUPPORT)


@dataclass(frozen=True)
class Ladder(Lookup[AdjustedSettings]):
    """The ladder of one decision maker and one protected attribute."""

    METHOD: ClassVar[str] = METHOD
    SETTINGS = AdjustedSettings

    def _rows(self, table: Table) -> Rows:
        rows = self.material.of_methods.get(table.name, ())
        mine = {"decision_maker": self.view.maker, "protected_attribute": self.view.attribute}
        return tuple(row for row in rows if all(row[name] == value for name, value in mine.items()))

    @cached_property
    def effects(self) -> Rows:
        """The estimates of the groups that may be printed."""
        return self._printed(ADJUSTED)

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Groups of so few applications, denials or approvals that nothing of them is printed."""
        policy = self.material.policy
        return frozenset(row["group"] for row in self._rows(ADJUSTED) if small(policy, row["n"], row["events"]))

    @cached_property
    def support(self) -> Rows:
        """Overlap by rung."""
        return self._printed(ADJUSTED_SUPPORT)

    @cached_property
    def interactions(self) -> Rows:
        """Tests whether the difference depends on a control."""
        return self._printed(ADJUSTED_INTERACTIONS)

    @cached_property
    def benchmarks(self) -> Rows:
        """What unseen columns could do on the primary rung."""
        return self._printed(ADJUSTED_BENCHMARKS)

    @cached_property
    def exchanged(self) -> Rows:
        """What a given model does by its own answer; not of groups in which few members' decisions change."""
        few = {row["group"] for row in self._rows(ADJUSTED_EXCHANGED) if self._few_change(row)}
        return tuple(row for row in self._printed(ADJUSTED_EXCHANGED) if row["group"] not in few)

    def _few_change(self, row: Mapping[str, Any]) -> bool:
        changes = None if row["effect"] is None else row["raised"] + row["lowered"]
        policy = self.material.policy
        return small(policy, row["n"], row["events"]) or small(policy, row["n"], changes)

    @cached_property
    def counted(self) -> Rows:
        """Rows used, rows left out by reason, and columns left out, which have no rows."""
        return self._rows(ADJUSTED_ROWS)

    def shown(self, rows: Rows) -> Rows:
        """Those of some counts that may be printed beside their total."""
        counts = np.array([row["rows"] for row in rows], dtype=np.int64)
        few = np.array([self.small(row["rows"], row["denied"]) for row in rows], dtype=bool)
        hidden = complement(few, counts, self.material.policy.smallest)
        return tuple(row for row, gone in zip(rows, hidden, strict=True) if not gone)

    def small(self, rows: int, denied: int) -> bool:
        """Whether a count of applications, or its share of denials, is withheld."""
        return small(self.material.policy, rows, denied)

    def _printed(self, table: Table) -> Rows:
        """Rows of groups that are not withheld; coarse, where disclosure control rounds."""
        rows = (row for row in self._rows(table) if row["group"] not in self.withheld)
        return tuple({name: self.coarsely(value) for name, value in row.items()} for row in rows)

    def coarsely(self, value: Any) -> Any:
        """A value with two decimals where disclosure control rounds."""
        return round(value, 2) if self.coarse and isinstance(value, float) else value

    @cached_property
    def rungs(self) -> Mapping[int, str]:
        """Number of each rung -> its blocks in words."""
        return {row["rung"]: row["blocks"] or "nothing (raw)" for row in self._rows(ADJUSTED)}

    @cached_property
    def primary(self) -> int | None:
        """The rung that is judged."""
        return next((row["rung"] for row in self._rows(ADJUSTED) if row["primary"]), None)

    @cached_property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Estimates in the order of reading: overlap weights first where the support of a group is poor."""
        there = {(row["estimator"], row["average_over"]) for row in self.effects}
        poor = any(poor_support(row) for row in self.effects if row["rung"] == self.primary)
        return tuple(sorted((kind for kind in KINDS if kind in there), key=lambda kind: poor and kind != OVERLAP))

    def rung(self, number: int) -> str:
        """A rung in a few words: what it adds, marked where it is judged."""
        blocks = self.rungs[number].rpartition(" + ")[2]
        words = f"+ {blocks}" if number else NO_BLOCK
        return f"{words} (judged)" if number == self.primary else words

    def estimate(self, group: str, rung: int | None, kind: tuple[str, str]) -> Mapping[str, Any] | None:
        """One estimate; None where there is no row or the group is withheld."""
        wanted = (group, rung, *kind)
        found = (
            row for row in self.effects if (row["group"], row["rung"], row["estimator"], row["average_over"]) == wanted
        )
        return next(found, None)

    def count(self, number: int) -> str:
        """A number of people as published."""
        return f"{rounded(self.material.policy, number):,}"

    def points(self, row: Mapping[str, Any]) -> str:
        """A difference with its interval, in percentage points."""
        return f"{points(row['value'])} {interval_of(row['low'], row['high'])}".strip()

    def cell(self, row: Mapping[str, Any] | None) -> Cell:
        """A difference as a cell; where there is none, why."""
        if row is None:
            return Cell("withheld", "none")
        if row["value"] is None:
            return Cell("refused", "none", detail=plain(row["reason"]))
        return Cell(points(row["value"]), "number", detail=interval_of(row["low"], row["high"]))
