"""Rows of the tables ``verdicts`` and ``agreement``: states first, then what is withheld of their numbers."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from schemas.audit.limits import GATE, Verdicts
from schemas.tables.verdicts import AGREEMENT, VERDICTS
from schemas.terms import State, Theory
from tasks.metrics.algorithm.disclosure import Policy, rounded
from tasks.metrics.algorithm.measures import base_name
from tasks.metrics.algorithm.verdicts.agreement import Whose, compared, disagreeing, whose
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


def tables(found: Judgement, hidden: Collection[tuple[str, ...]], policy: Policy) -> dict[str, pa.Table]:
    """Both tables as they are published.

    Args:
        found: the states.
        hidden: (decision maker, protected attribute, group) whose counts are withheld, and the same after (method,
            measure, parameters) of a single measure that is.
        policy: of disclosure.
    """
    rows = [_row(each, _is_hidden(each.case, hidden), policy) for each in found.rows]
    gone = {(row.case.theory, whose(row.case)) for row in found.rows if _is_hidden(row.case, hidden)}
    wholes = [
        _whole(theory, each, {of for its, of in gone if its is theory}, _assumed(theory, rows))
        for theory, each in found.theories.items()
    ]
    ordered = [
        row for whole in wholes for row in (whole, *(each for each in rows if each["theory"] == whole["theory"]))
    ]
    five = [row for row in found.rows if _answers(row)]
    said = [
        {
            **{name: getattr(each.case, name) for name in ("theory", "decision_maker", "protected_attribute", "group")},
            **{"method": each.case.method, "measure": each.case.measure},
            "sign": "too_few" if _is_hidden(each.case, hidden) else each.sign,
            "state": State.INSUFFICIENT_EVIDENCE if _is_hidden(each.case, hidden) else each.state,
        }
        for each in compared(five)
    ]
    return {VERDICTS.name: _table(VERDICTS, ordered), AGREEMENT.name: _table(AGREEMENT, said)}


def _answers(row: Verdict) -> bool:
    """Whether it is what a method answers to one of the five questions."""
    return row.case.theory is not Theory.OWN and row.case.role != "watch"


def _is_hidden(case: Case, hidden: Collection[tuple[str, ...]]) -> bool:
    of = [(case.decision_maker, case.protected_attribute, group) for group in (case.group, case.reference_group)]
    name, _, parameters = case.measure.partition(" ")
    measured = case.method, base_name(name), parameters or "{}"
    return any(key in hidden or (*measured, *key) in hidden for key in of)


def _assumed(theory: Theory, rows: Sequence[Mapping[str, Any]]) -> str:
    """What must hold for the theory as a whole: nothing, where it need not for any of its rows."""
    own = {row["assumption"] for row in rows if row["theory"] == theory}
    return "none" if own == {"none"} else _ASSUMED.get(theory, "none")


def _whole(theory: Theory, each: Concluded, hidden: Collection[Whose], assumed: str) -> dict[str, Any]:
    nothing = dict.fromkeys(column.name for column in VERDICTS.columns)
    named = dict.fromkeys(("protected_attribute", "group", "decision_maker", "method", "measure"), "")
    said = {"theory": theory, "role": "theory", "state": each.state, "reason": each.told(hidden)}
    return {**nothing, **named, **said, "assumption": assumed, "withheld": False}


def _row(found: Verdict, hidden: bool, policy: Policy) -> dict[str, Any]:
    case, evidence = found.case, found.case.evidence
    named = ("theory", "protected_attribute", "group", "reference_group", "decision_maker", "method", "measure", "role")
    row = {name: getattr(case, name) for name in named}
    row |= {
        "limit": case.limit.value if case.limit else None,
        "side": case.limit.side if case.limit else None,
        "assumption": "none" if isinstance(evidence, PairedDifference) else _ASSUMED.get(case.theory, "none"),
        "withheld": hidden,
    }
    if hidden:
        blank = dict.fromkeys(column.name for column in VERDICTS.columns if column.nullable and column.name not in row)
        return {**blank, **row, "state": State.INSUFFICIENT_EVIDENCE, "reason": "withheld: it rests on few people"}
    bias = evidence.bias if isinstance(evidence, Estimated) else 0.0
    numbers = {
        **{name: getattr(found, name) for name in ("low", "high", "p_breach", "p_breach_holm", "p_within")},
        **{"value": case.value, "se": math.nan if evidence is None else evidence.error, "bias": bias},
        **{"detectable": found.detectable, "needed": found.needed},
        **_plain(evidence),
    }
    counts = dict.fromkeys(("n", "events", "n_reference", "events_reference"), None)
    if case.counts is not None:
        counts = {name: rounded(policy, count) for name, count in case.counts._asdict().items()}
    scale = None if evidence is None else "log" if evidence.logarithmic else "linear"
    # a tenth of a point, so that an end does not seem to lie on a limit; ratios of counts to fewer digits
    digits = 3 if isinstance(evidence, Estimated | PairedDifference) and not evidence.logarithmic else 2
    shown = {name: _coarse(value, policy, digits) for name, value in numbers.items()}
    if policy.round_to != 1 and shown["needed"]:  # all its digits together tell the exact counts
        shown["needed"] = float(f"{found.needed:.1e}")
    return {**row, **shown, **counts, "scale": scale, "state": found.state, "reason": found.reason}


def _plain(evidence: Evidence | None) -> dict[str, float]:
    """The two-sided 95 % interval without any widening, and the robustness value."""
    if evidence is None:
        return dict.fromkeys(("plain_low", "plain_high", "robustness"), math.nan)
    known = replace(evidence, bias=0.0) if isinstance(evidence, Estimated) else evidence
    robustness = evidence.robustness if isinstance(evidence, Estimated) else math.nan
    low, high = known.bound(0.025, upper=False), known.bound(0.025, upper=True)
    return {"plain_low": low, "plain_high": high, "robustness": robustness}


def _coarse(value: float, policy: Policy, digits: int) -> float | None:
    """A number as published: rounded under a policy that rounds counts, as many digits tell the counts."""
    if not math.isfinite(value):
        return None
    return value if policy.round_to == 1 else round(value, digits) + 0.0  # and no minus before a zero


def _table(table: Any, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return table.build(**{column.name: [row[column.name] for row in rows] for column in table.columns})
