"""Measures as they are published: counts rounded, shares made of rounded counts, comparisons made of published values.

Rows are those of the table of measures, as mappings. Source: rules 2 to 5 of the disclosure pass; decisions 0034, 0035.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from schemas.terms import Note, State
from tasks.metrics.algorithm.measures import Family, Given, Statistic, base_name
from tasks.metrics.algorithm.verdicts.thresholds import covers
from tasks.metrics.publish.algorithm import digits
from tasks.metrics.publish.algorithm.families import Cell, coarsened
from tasks.metrics.publish.algorithm.profiles import Policy, is_coarse, rounded, small
from tasks.metrics.publish.algorithm.spread import Spread
from tasks.numerics.statistics.intervals import benjamini_hochberg, fisher_p, is_share

Row = Mapping[str, Any]
WITHHELD = "withheld: a small cell, or one that would give a small cell away"
OF_ONE = "withheld: a value of one person"
DESCRIBED = "described only"
"""Note of a measure whose interval is not printed, since it is not known to cover as often as it says."""
OF_ONE_PERSON = frozenset({"d0", "d0_at_k0", "least_cost", "match_reuse_largest"})
"""Measures that are one person's value: the cost of who is the hardest to reach, or who is taken most often."""
_NUMBERS = ("value", "low", "high", "n", "events", "p", "q")
DECISIONS = "outcomes"
"""What stands for a method in the rows of approvals and denials."""
_CHECKED = (State.BREACH, State.WITHIN, State.INSUFFICIENT_EVIDENCE)
FINER = " would be found in "
"""In the reason of a state: the smallest effect that would be found, which tells exact counts."""


@dataclass(frozen=True, eq=False)
class Publisher:
    """What decides how the measures of a run are published."""

    policy: Policy
    covering: Collection[str]
    """Measures whose intervals cover as often as they say."""
    hidden: Collection[Cell]
    """Families and groups that are withheld."""
    statistics: Mapping[Cell, Statistic | Given]
    printed: Callable[[str, str, str, int], int | None]
    """How a number of people is printed, by (attribute, group, decision maker, number)."""
    base: Callable[[str, str, str, int], int]
    """What it is rounded to."""
    decided: Callable[[str, str, str], tuple[int | None, int | None, str]]
    """How the decisions of a decision maker on a group are printed: n, the denied, or a range in words."""
    spreads: Mapping[Cell, Spread] = field(default_factory=dict)
    """Intervals and p of shares and their comparisons, over all counts that are printed alike."""
    quantiles: Mapping[Cell, float] = field(default_factory=dict)
    """What stands for the value of one person."""
    plainly: Callable[[str, str, str, float], float | None] = lambda *_: None
    """A number that is the difference of two shares denied, by counts as printed; None of any other, NaN if untold."""

    def published(self, rows: Sequence[Row]) -> list[Row]:
        """The measures, in their order."""
        plain = {_cell(row): self._plain(row) for row in rows if not _suffix(row)}
        drawn = {_cell(row): self._drawn(row) for row in rows if _suffix(row) in ("_size_matched", "_null")}
        known = {**plain, **drawn}
        out = [known[_cell(row)] if _cell(row) in known else self._compared(row, known) for row in rows]
        return _with_q(rows, out) if self.policy.protects else out

    def _plain(self, row: Row) -> Row:
        cell = _cell(row)
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return self._interval(row, row)
        found = self.statistics.get(cell)
        if row["method"] == DECISIONS and row["n"]:
            return self._decided(row)
        told = self.printed(*_whose(row), row["n"]) if row["n"] else row["n"]
        if row["n"] and not told:
            return blank(row)  # a number of people that is rounded to zero is no zero
        numbers: dict[str, Any] = {"n": told, "events": self._events(row, told)}
        value = row["value"]
        if value is None:
            return {**row, **numbers, "low": None, "high": None}
        if row["measure"] in OF_ONE_PERSON:
            return self._of_one({**row, **numbers}, cell)
        if self._is_few(row):
            return blank(row)
        of_events = row["events"] is not None and row["n"] and math.isclose(value, row["events"] / row["n"])
        shares = isinstance(found, Statistic) and is_share(found.values)
        if (shares or of_events) and is_coarse(self.policy, self._base(row), told or 0):
            return blank(row)
        if isinstance(found, Statistic) and shares:
            numbers |= self._share(row, found, numbers)
        elif row["events"] is not None and value == row["events"]:
            numbers["value"] = None if numbers["events"] is None else float(numbers["events"])
        elif of_events:
            numbers["value"] = _quotient(numbers["events"], numbers["n"])
        else:
            plain = self.plainly(*_whose(row), value)
            if plain is not None:
                return (
                    blank(row) if math.isnan(plain) else {**row, **numbers, "value": plain, "low": None, "high": None}
                )
            numbers["value"] = digits.significant(self.policy, value)
        if numbers["value"] is None:
            return blank(row)
        return self._interval({**row, **numbers}, row)

    def _share(self, row: Row, found: Statistic, numbers: Row) -> dict[str, Any]:
        """The value of a share, by counts as they are printed; units without a value are not in it."""
        events, n = numbers["events"], numbers["n"]
        if events is None or any(math.isnan(value) for value in found.values):
            coarse = coarsened(found, self.policy, self._base(row))
            having = dict(zip(coarse.values.tolist(), coarse.counts.tolist(), strict=True))
            events = having.get(1.0, 0)
            n = events + having.get(0.0, 0)
        if events in (0, n) and 0 < row["value"] < 1:
            # a few of many are not nobody: no count, and as many decimals as tell nothing of n
            value = round(row["value"], digits.blunt(row["n"]))
            return {"events": None, "value": value if 0 < value < 1 else None}
        return {"value": _quotient(events, n)}

    def _is_few(self, row: Row) -> bool:
        """Whether a number that comes without events is a share of a few all the same, where a range would be due."""
        value, n = row["value"], row["n"]
        if row["events"] is not None or not self.policy.events_too or not n or not 0 < value < 1:
            return False
        having = value * n
        return math.isclose(having, round(having), abs_tol=1e-9) and small(self.policy, n, round(having))

    def _base(self, row: Row) -> int:
        """What n of a row is rounded to, and its events with it: their sum over parts of n would tell n else."""
        return self.base(*_whose(row), row["n"]) if row["n"] else self.policy.round_to

    def _events(self, row: Row, n: int | None) -> int | None:
        """Events as printed; None of a few that would read as nobody."""
        count = row["events"]
        if count is None or n is None:
            return None
        printed = min(rounded(self.policy, count, self._base(row)), n)
        return printed if printed or not count else None

    def _decided(self, row: Row) -> Row:
        """Approvals or denials, by the counts of the population: the denied leave the approved."""
        n, denied, words = self.decided(*_whose(row))
        if not n or denied is None:
            return {**blank(row), "reason": f"{WITHHELD}; {words} denied"} if words else {**blank(row), "n": n}
        events = min(denied, n) if row["measure"] == "denial_rate" else n - min(denied, n)
        return self._interval({**row, "n": n, "events": events, "value": _quotient(events, n)}, row)

    def _of_one(self, row: Row, cell: Cell) -> Row:
        value = self.quantiles.get(cell)
        said = {"value": value, "low": None, "high": None}
        if value is None:
            return {**row, **said, "state": _state(row), "reason": OF_ONE, "note": ""}
        return {**row, **said, "note": _noted(row["note"], "the 95 % quantile stands for the largest")}

    def _drawn(self, row: Row) -> Row:
        """What was drawn beside a group: its n counts draws, and it tells the size of the group."""
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return row
        if base_name(row["measure"]) in OF_ONE_PERSON:
            return {**row, **dict.fromkeys(("value", "low", "high")), "state": _state(row), "reason": OF_ONE}
        counted = self.statistics.get(_cell(_whole(row)))
        base = self.base(*_whose(row), counted.n) if isinstance(counted, Given) else 1
        if isinstance(counted, Given) and counted.events is not None and base > 1:
            ends = {name: _step(row[name], base) for name in ("value", "low", "high")}
        else:
            ends = {name: self._significant(row[name]) for name in ("value", "low", "high")}
        return {**row, **ends} if Note.RANGE in row["note"].split("; ") else {**row, **ends, "low": None, "high": None}

    def _compared(self, row: Row, known: Mapping[Cell, Row]) -> Row:
        if self._is_gone(row):
            return blank(row)
        if not self.policy.protects:
            return self._interval(row, row)
        suffix = _suffix(row)
        own = known.get(_cell(_whole(row)))
        other = known.get(_cell(_beside(row, suffix)))
        if own is None or other is None or own["n"] is None:
            return blank(row)
        if base_name(row["measure"]) in OF_ONE_PERSON and own["value"] is None:
            return {**row, **dict.fromkeys(("value", "low", "high", "p", "q")), "n": own["n"], "reason": OF_ONE,
                    "state": _state(row), "note": ""}  # fmt: skip
        if row["value"] is not None and None in (own["value"], other["value"]):
            return {**blank(row), "n": own["n"]}
        value = None
        if row["value"] is not None:
            ratio = suffix == "_ratio"
            value = _over(own["value"], other["value"]) if ratio else own["value"] - other["value"]
            value = None if value is None else self._significant(round(value, 9))
        said = {"value": value, "n": own["n"], "p": self._p(row, own, other), "q": None}
        return self._interval({**row, **said}, row)

    def _p(self, row: Row, own: Row, other: Row) -> float | None:
        """The p of a comparison: the largest of all counts that are printed alike, or of shares by printed counts."""
        found = self.spreads.get(_cell(row))
        if found is not None and row["p"] is not None:
            return self._rounded_p(_finite(found.p))
        counts, exact = [own["events"], own["n"], other["events"], other["n"]], row["p"]
        if exact is not None and "matched" not in row["measure"] and None not in counts:
            exact = fisher_p((min(counts[0], counts[1]), min(counts[2], counts[3])), (counts[1], counts[3]))
        return self._rounded_p(exact)

    def _rounded_p(self, p: float | None) -> float | None:
        return None if p is None else digits.p_value(self.policy, p)

    def _interval(self, row: Row, exact: Row) -> Row:
        """The row with its interval as published: of measures that cover alone. Verdicts say what would be found."""
        if self.policy.protects and FINER in row["reason"]:
            row = {**row, "reason": row["reason"].partition("; ")[0]}
        if row["low"] is None and row["high"] is None:
            return row
        if Note.RANGE not in row["note"].split("; ") and not covers(row["measure"], self.covering):
            return {**row, "low": None, "high": None, "note": _noted(row["note"], DESCRIBED)}
        if not self.policy.protects:
            return row
        low, high = exact["low"], exact["high"]
        if (found := self.spreads.get(_cell(row))) is not None:
            low, high = _finite(found.low), _finite(found.high)
        return {**row, **dict(zip(("low", "high"), self._ends(low, high), strict=True))}

    def _ends(self, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """Both ends to three digits; rounding takes no interval its width."""
        ends = self._significant(low), self._significant(high)
        if low is None or high is None or ends[0] != ends[1] or low == high:
            return ends
        step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) - digits.SIGNIFICANT + 1)
        return math.floor(low / step) * step, math.ceil(high / step) * step

    def _significant(self, value: float | None) -> float | None:
        return None if value is None else digits.significant(self.policy, value) + 0.0

    def _is_gone(self, row: Row) -> bool:
        family = replace(_family(row), measure=base_name(row["measure"]))
        return any((family, group) in self.hidden for group in _groups(row))


def blank(row: Row) -> Row:
    """A row that is withheld: a state that it had is too little to say."""
    return {**row, **dict.fromkeys(_NUMBERS), "state": _state(row), "reason": WITHHELD, "note": ""}


def _state(row: Row) -> str:
    """The state of a withheld row. Whether it was measured at all would tell that somebody was denied, say."""
    if row["state"] in _CHECKED:
        return State.INSUFFICIENT_EVIDENCE
    return State.DESCRIPTIVE if row["state"] == State.NOT_RUN else str(row["state"])


def _groups(row: Row) -> Iterator[str]:
    yield row["group"]
    if row["reference_group"]:
        yield row["reference_group"]


def _with_q(exact: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """The rows with q by each p as printed, 1 where it is withheld: by the exact ones it would tell them."""
    tested = [(_hypothesis(row), row) for row, was in zip(rows, exact, strict=True) if was["p"] is not None]
    p_of = {key: 1.0 if row["p"] is None else row["p"] for key, row in tested}
    q_of = dict(zip(p_of, benjamini_hochberg(np.array(list(p_of.values()))).tolist(), strict=True))
    return [row if row["p"] is None else {**row, "q": float(f"{q_of[_hypothesis(row)]:.2g}")} for row in rows]


def _hypothesis(row: Row) -> tuple[object, ...]:
    """What a difference and its ratio test: they share one p, and so one q."""
    return replace(_family(row), measure=row["measure"].removesuffix("_ratio").removesuffix("_difference")), row[
        "group"
    ]


def _whose(row: Row) -> tuple[str, str, str]:
    return row["protected_attribute"], row["group"], row["decision_maker"]


def _family(row: Row) -> Family:
    names = ("method", "decision_maker", "protected_attribute", "measure", "parameters", "subgroup")
    return Family(*(row[name] for name in names))


def _cell(row: Row) -> Cell:
    return _family(row), row["group"]


def _suffix(row: Row) -> str:
    return str(row["measure"]).removeprefix(base_name(row["measure"])) if row["reference_group"] else ""


def _whole(row: Row) -> Row:
    return {**row, "measure": base_name(row["measure"])}


def _beside(row: Row, suffix: str) -> Row:
    """What a comparison holds the group against: the reference group, or what was drawn."""
    if suffix in ("_difference", "_ratio"):
        return {**_whole(row), "group": row["reference_group"]}
    return {**row, "measure": row["measure"].removesuffix("_difference")}


def _quotient(events: int | None, n: int | None) -> float | None:
    return None if events is None or not n else digits.share(events, n)


def _over(own: float, other: float) -> float | None:
    return own / other if other else None


def _step(value: float | None, base: int) -> float | None:
    return None if value is None else float(round(value / base) * base)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _noted(note: str, more: str) -> str:
    return "; ".join(part for part in (note, more) if part)
