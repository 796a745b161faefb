"""Rows of the tables ``verdicts`` and ``agreement``: exact states and numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from schemas.audit.limits import GATE, Verdicts
from schemas.tables.verdicts import AGREEMENT, VERDICTS
from schemas.terms import State, Theory
from tasks.metrics.algorithm.verdicts.agreement import compared, disagreeing
from tasks.metrics.algorithm.verdicts.evidence import Estimated, Evidence, PairedDifference
from tasks.metrics.algorithm.verdicts.judgement import Case, Rules, Verdict, judge
from tasks.metrics.algorithm.verdicts.theory import Concluded, conclude, overall
from tasks.metrics.theories import Gathered

_ASSUMED = {Theory.DIRECT: "columns_complete", Theory.TOTAL: "graph"}


@dataclass(frozen=True)
class Judgement:
    """The verdicts of an audit."""

    rows: tuple[Verdict, ...]
    theories: Mapping[Theory, Concluded]


def judged(gathered: Gathered, own: Sequence[Case], settings: Verdicts) -> Judgement:
    """The states of all rows and theories.

    Args:
        gathered: what the five theories are judged by.
        own: cases of the spec's thresholds.
        settings: alpha, and whether comparisons are counted within a theory or over all.
    """
    cases = [*gathered.cases(), *own]
    rules = Rules(settings.alpha, settings.minimum_n, settings.minimum_events)
    of = {theory: [case for case in cases if case.theory is theory] for theory in Theory}
    families = [cases] if settings.across == "theories" else list(of.values())
    rows = tuple(row for family in families for row in judge(family, rules))
    at_odds = disagreeing([row for row in rows if _answers(row)])
    theories = {
        theory: conclude(
            [row for row in rows if row.case.theory is theory], at_odds.get(theory, ()), gathered.why_not(theory)
        )
        for theory in Theory
        if theory is not Theory.OWN or own
    }
    return Judgement(rows, theories)


def state_of(states: Mapping[Theory, State], settings: Verdicts) -> State:
    """The state that decides the exit code, from those of the theories."""
    gate = settings.gate or (*GATE, *((Theory.OWN,) if Theory.OWN in states else ()))
    return overall(states, gate, named=settings.gate is not None)


def tables(found: Judgement) -> dict[str, pa.Table]:
    """Both tables, with exact numbers."""
    rows = [_row(each) for each in found.rows]
    wholes = [_whole(theory, each, _assumed(theory, rows)) for theory, each in found.theories.items()]
    ordered = [
        row for whole in wholes for row in (whole, *(each for each in rows if each["theory"] == whole["theory"]))
    ]
    five = [row for row in found.rows if _answers(row)]
    said = [
        {
            **{name: getattr(each.case, name) for name in ("theory", "decision_maker", "protected_attribute", "group")},
            **{"method": each.case.method, "measure": each.case.measure},
            "sign": each.sign,
            "state": each.state,
        }
        for each in compared(five)
    ]
    return {VERDICTS.name: _table(VERDICTS, ordered), AGREEMENT.name: _table(AGREEMENT, said)}


def _answers(row: Verdict) -> bool:
    """Whether it is what a method answers to one of the five questions."""
    return row.case.theory is not Theory.OWN and row.case.role != "watch"


def _assumed(theory: Theory, rows: Sequence[Mapping[str, Any]]) -> str:
    """What must hold for the theory as a whole: nothing, where it need not for any of its rows."""
    own = {row["assumption"] for row in rows if row["theory"] == theory}
    return "none" if own == {"none"} else _ASSUMED.get(theory, "none")


def _whole(theory: Theory, each: Concluded, assumed: str) -> dict[str, Any]:
    nothing = dict.fromkeys(column.name for column in VERDICTS.columns)
    named = dict.fromkeys(("protected_attribute", "group", "decision_maker", "method", "measure"), "")
    said = {"theory": theory, "role": "theory", "state": each.state, "reason": each.reason}
    return {**nothing, **named, **said, "assumption": assumed, "withheld": False}


def _row(found: Verdict) -> dict[str, Any]:
    case, evidence = found.case, found.case.evidence
    named = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "method", "measure", "role")
    row = {name: getattr(case, name) for name in named}
    row |= {
        "limit": case.limit.value if case.limit else None,
        "side": case.limit.side if case.limit else None,
        "assumption": "none" if isinstance(evidence, PairedDifference) else _ASSUMED.get(case.theory, "none"),
        "withheld": False,
    }
    bias = evidence.bias if isinstance(evidence, Estimated) else 0.0
    numbers = {
        **{name: getattr(found, name) for name in ("low", "high", "p_breach", "p_breach_holm", "p_within")},
        **{"value": case.value, "se": math.nan if evidence is None else evidence.error, "bias": bias},
        **{"detectable": found.detectable, "needed": found.needed},
        **_plain(evidence),
    }
    counts = dict.fromkeys(("n", "events", "n_reference", "events_reference"), None)
    if case.counts is not None:
        counts = case.counts._asdict()
    scale = None if evidence is None else "log" if evidence.logarithmic else "linear"
    shown = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {**row, **shown, **counts, "scale": scale, "state": found.state, "reason": found.reason}


def _plain(evidence: Evidence | None) -> dict[str, float]:
    """The two-sided 95 % interval without any widening, and the robustness value."""
    if evidence is None:
        return dict.fromkeys(("plain_low", "plain_high", "robustness"), math.nan)
    known = replace(evidence, bias=0.0) if isinstance(evidence, Estimated) else evidence
    robustness = evidence.robustness if isinstance(evidence, Estimated) else math.nan
    low, high = known.bound(0.025, upper=False), known.bound(0.025, upper=True)
    return {"plain_low": low, "plain_high": high, "robustness": robustness}


def _table(table: Any, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return table.build(**{column.name: [row[column.name] for row in rows] for column in table.columns})
