"""What is left of a withheld row tells nothing of what it held."""

from types import SimpleNamespace

import numpy as np

from schemas.tables.findings import FINDINGS
from schemas.tables.verdicts import PUBLISHED_VERDICTS
from tasks.metrics.algorithm.measures import Family, Statistic
from tasks.metrics.publish import facts, measures
from tasks.metrics.publish.algorithm.primary import Publisher, blank
from tasks.metrics.publish.algorithm.profiles import POLICIES

ROW = {
    "method": "fgce", "decision_maker": "model", "protected_attribute": "race", "parameters": "{}", "subgroup": 0,
    "measure": "burden", "group": "Asian", "reference_group": None, "value": None, "low": None, "high": None, "n": 3,
    "events": None, "p": None, "q": None, "note": "", "reason": "",
}  # fmt: skip


def test_a_withheld_row_does_not_tell_whether_it_was_measured() -> None:
    """Costs of recourse are measured where somebody was denied."""
    rows = [blank({**ROW, "state": state, "reason": state}) for state in ("not_run", "information")]
    assert rows[0] == rows[1]


def test_a_quotient_of_coarsely_rounded_counts_keeps_its_state_alone() -> None:
    """1.00 of 67 people, beside a rate of the reference group, would tell the 17 denied that are printed as 20."""
    row: dict[str, object] = dict.fromkeys(column.name for column in PUBLISHED_VERDICTS.columns)
    row |= {"theory": "approval_rates", "method": "outcomes", "measure": "approval_rate", "decision_maker": "lender"}
    row |= {"protected_attribute": "race", "group": "Black", "reference_group": "white", "role": "judged"}
    row |= {"n": 67, "events": 17, "value": 1.0, "low": 0.8, "high": 1.1, "p_within": 0.01, "withheld": False}
    row |= {"state": "within", "reason": "inside the limit; 0.71 or less would be found"}

    def told(coarse: bool) -> dict[str, object]:
        fates = SimpleNamespace(
            policy=POLICIES["public"], base=lambda _: 10, are_decisions_gone=lambda *_: False,
            is_ranged=lambda *_: False,
            is_coarse=lambda population: coarse and population.group == "Black",
            printed=lambda *a: a[-1] // 10 * 10,
        )  # fmt: skip
        (shown,) = measures.verdicts([row], [], fates).to_pylist()  # type: ignore[arg-type]
        return dict(shown)

    names = ("state", "n", "value", "low", "p_within", "reason")
    assert [told(coarse=False)[name] for name in names[:4]] == ["within", 60, 1.0, 0.8]
    assert [told(coarse=True)[name] for name in names] == [
        "within",
        60,
        None,
        None,
        None,
        f"inside the limit; {measures.COARSE}",
    ]


def found(group: str, verdict: str, number: int) -> list[dict[str, object]]:
    empty = {column.name: None for column in FINDINGS.columns}
    own = {"method": "fgce", "decision_maker": "model", "protected_attribute": "race", "group": group}
    return [
        {**empty, **own, "row_id": f"{group}{verdict}{i}", "verdict": verdict, "subgroup": 0} for i in range(number)
    ]


def test_findings_of_a_withheld_group_do_not_tell_which_verdicts_it_has() -> None:
    rows = [*found("Asian", "infeasible", 3), *found("Black", "feasible", 40), *found("Black", "infeasible", 9)]
    made = FINDINGS.build(**{column.name: [row[column.name] for row in rows] for column in FINDINGS.columns})
    fates = SimpleNamespace(
        policy=POLICIES["public"],
        is_gone=lambda _, group, __: group == "Asian",
        base_of=lambda *_: 1,
        is_ranged=lambda *_: False,
    )
    shown = facts.findings(made, fates).to_pylist()
    assert [(row["group"], row["verdict"], row["findings"]) for row in shown] == [
        ("Asian", "withheld", None), ("Black", "feasible", 40), ("Black", "infeasible", 9),
    ]  # fmt: skip


def test_q_is_made_of_printed_p() -> None:
    """An exact q, times the number of tests, is an exact p: that of a few tables of counts."""
    own = {**ROW, "group": "Black", "reference_group": "white", "measure": "burden_size_matched_difference"}
    rows = [{**own, "group": group, "value": 0.1, "n": 64, "p": p, "q": p * 2, "state": "information"}
            for group, p in (("Black", 0.0123456), ("Hispanic", 0.5))]  # fmt: skip
    whole = [{**row, "measure": measure, "p": None, "q": None}
             for row in rows for measure in ("burden", "burden_size_matched")]  # fmt: skip
    publisher = Publisher(
        POLICIES["public"], set(), set(), {}, lambda *a: a[3], lambda *_: 1, lambda *_: (None, None, "")
    )
    shown = [row for row in publisher.published([*whole, *rows]) if row["p"] is not None]
    assert [(row["p"], row["q"]) for row in shown] == [(0.012, 0.024), (0.5, 0.5)]


def shown(profile: str, base: int, **row: object) -> dict[str, object]:
    """One share of 197 people as it is published, by a base."""
    whole = {**ROW, "group": "Black", "n": 197, "state": "information", **row}
    cell = Family("fgce", "model", "race", "burden", "{}", 0), "Black"
    counts = np.array([197 - round(whole["value"] * 197), round(whole["value"] * 197)])
    found = {cell: Statistic(*cell, np.array([0.0, 1.0]), counts, False)} if whole["events"] is not None else {}
    publisher = Publisher(
        POLICIES[profile], set(), set(), found, lambda *a: a[3] // base * base, lambda *_: base,
        lambda *_: (None, None, ""),
    )  # fmt: skip
    (out,) = publisher.published([whole])
    return dict(out)


def test_a_few_of_many_are_not_printed_as_nobody() -> None:
    few = shown("public", 10, value=4 / 197, events=4)
    assert (few["value"], few["events"]) == (0.02, None)
    all_but_few = shown("public", 10, value=194 / 197, events=194)
    assert (all_but_few["value"], all_but_few["events"]) == (0.98, None)


def test_a_share_without_events_is_a_share_of_few_all_the_same() -> None:
    assert shown("strict", 5, value=2 / 197)["value"] is None
    assert shown("public", 1, value=2 / 197)["value"] == 0.0102
    assert shown("strict", 5, value=0.0123)["value"] == 0.0123


def test_the_smallest_effect_that_would_be_found_is_told_by_verdicts_alone() -> None:
    reason = "the interval reaches over the limit; 0.695 or less would be found in 4 of 5 such audits; about 6,800"
    row = shown("public", 10, value=0.5, low=0.4, high=0.6, state="inconclusive", reason=reason)
    assert row["reason"] == "the interval reaches over the limit"
    assert shown("internal", 1, value=0.5, low=0.4, high=0.6, reason=reason)["reason"] == reason
