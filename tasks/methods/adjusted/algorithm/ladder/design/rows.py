"""Rows of the ladder: those that are complete on its last rung, and the others by reason.

Every rung uses the same rows. Rows with a missing control differ by group, so their denials are counted too.
"""

from dataclasses import dataclass

import numpy as np

from tasks.methods.adjusted.algorithm.ladder.applications import Applications, Control
from tasks.numerics.arrays import Bools, Ints


@dataclass(frozen=True)
class LeftOut:
    """Rows of a group that no rung uses, for one reason."""

    reason: str
    group: int
    """Index into the groups; -1 for rows of none."""
    rows: int
    denied: int


@dataclass(frozen=True)
class Rows:
    """Which rows are used; rows used and rows left out add up to all rows."""

    used: Bools
    """``(n,)`` complete, and of a group with both denials and approvals."""
    left_out: tuple[LeftOut, ...]
    counts: Ints
    """``(groups,)`` complete rows of each group."""
    events: Ints
    """``(groups,)`` denials among them."""

    def fewest(self, group: int) -> int:
        """Denials or approvals of a group, whichever are fewer."""
        return int(min(self.events[group], self.counts[group] - self.events[group]))


def complete_rows(applications: Applications) -> Rows:
    """Find the rows that every rung uses, and the first reason against each other row.

    Groups without a denial or without an approval are left out as well: their indicator has no finite coefficient, and
    their rows say nothing of the other columns of a logit (Albert and Anderson 1984).
    """
    count, group = len(applications.groups), applications.group
    reasons = ["no group", "no cluster"]
    code = np.full(len(group), -1, np.int32)
    code[(group < 0) | (group >= count)] = 0
    if applications.cluster is not None:
        code[(code < 0) & (applications.cluster < 0)] = 1
    for control in (each for block in applications.blocks for each in block.controls):
        for reason, bad in _faults(control):
            code[(code < 0) & bad] = len(reasons)
            reasons.append(reason)
    ok = code < 0
    counts = np.bincount(group[ok], minlength=count).astype(np.int32)
    events = np.bincount(group[ok & applications.denied], minlength=count).astype(np.int32)
    for outcome, none in (("denials", events == 0), ("approvals", events == counts)):
        code[ok & (code < 0) & np.append(none, False)[np.where(ok, group, count)]] = len(reasons)
        reasons.append(f"no {outcome} in the group")
    return Rows(code < 0, _left_out(applications, code, reasons), counts, events)


def _faults(control: Control) -> list[tuple[str, Bools]]:
    """Reasons against rows, by one control."""
    found = [
        (f"missing {control.name}", np.isnan(control.values)),
        (f"infinite {control.name}", np.isinf(control.values)),
    ]
    if control.kind == "number" and control.scale == "log":
        found.append((f"{control.name} not above 0", control.values <= 0))
    return found


def _left_out(applications: Applications, code: Ints, reasons: list[str]) -> tuple[LeftOut, ...]:
    """Counts by reason and group, without those that are 0."""
    known = (applications.group >= 0) & (applications.group < len(applications.groups))
    group = np.where(known, applications.group, -1)
    found = []
    for number, reason in enumerate(reasons):
        of_reason = code == number
        for each in np.unique(group[of_reason]):
            rows = of_reason & (group == each)
            found.append(LeftOut(reason, int(each), int(rows.sum()), int(applications.denied[rows].sum())))
    return tuple(found)
