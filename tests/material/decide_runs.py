"""Runs for the rules of the first page: rows of verdicts by hand, and the two worked examples of report.md 10.

The examples give states and published figures, not data; the limit of 5 points is theirs.
"""

from dataclasses import replace
from typing import Any

from schemas.terms import State, Theory
from tasks.reporting.first_page.facts import Benchmark, Files, Group, LeftOut, Row, Run

OUTSIDE, INSIDE, LITTLE = State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE
NO_LIMIT, NOT_RUN = State.NO_LIMIT, State.NOT_RUN
FIVE = (OUTSIDE, INSIDE, LITTLE, NO_LIMIT, NOT_RUN)
MEASURES = {
    Theory.APPROVAL_RATES: "approval_rate_ratio",
    Theory.SIMILAR_APPLICANTS: "adjusted_effect",
    Theory.CAUSAL_MODEL: "cst_effect",
    Theory.PATH_TO_APPROVAL: "recourse_cost_reference_over_group",
    Theory.MODEL_REASONS: "cec_above_own_group",
}
WHITE = 0.908
RACE = {"protected_attribute": "race", "reference_group": "white", "decision_maker": "lender"}


def row(theory: Theory, group: str, state: State, **more: Any) -> Row:
    """A primary row of a group."""
    side = "at_least" if theory in (Theory.APPROVAL_RATES, Theory.PATH_TO_APPROVAL) else "at_most"
    own = {**RACE, "measure": MEASURES.get(theory, "own"), "side": side, "group": group}
    return Row(theory, state, **(own | more))


def whole(theory: Theory, state: State, reason: str = "") -> Row:
    """The row of a theory as a whole."""
    return Row(theory, state, role="theory", reason=reason)


def gap(group: str, state: State, points: tuple[float, float, float], limit: float = -5, **more: Any) -> Row:
    """The ratio of approvals that stands for these points at the rate of the reference group."""
    value, low, high = (1 + each / (100 * WHITE) for each in points)
    words = {"value": value, "low": low, "high": high, "limit": 1 + limit / (100 * WHITE)}
    return row(Theory.APPROVAL_RATES, group, state, **(words | more))


def effect(
    group: str, state: State, points: tuple[float, float, float], limit: float = -5, theory: Theory = Theory.SIMILAR_APPLICANTS,  # noqa: E501
    **more: Any,
) -> Row:  # fmt: skip
    """An effect on denial that stands for these points of approval."""
    value, low, high = -points[0] / 100, -points[2] / 100, -points[1] / 100
    return row(theory, group, state, **({"value": value, "low": low, "high": high, "limit": -limit / 100} | more))


def nearest(group: str, state: State, points: tuple[float, float, float], **more: Any) -> Row:
    """The second method of similar records."""
    return effect(group, state, points, **({"role": "beside", "measure": "st_effect"} | more))


def white(n: int = 1681) -> Group:
    """The reference group."""
    return Group("race", "white", n, WHITE, reference=True)


def of_states(*pairs: tuple[State, State], n: int = 100, **more: Any) -> Run:
    """Groups A, B, ... with these states of gap and adjusted, as many people each."""
    rows: list[Row] = []
    groups = [white()]
    for number, (of_gap, adjusted) in enumerate(pairs):
        name = chr(ord("A") + number)
        groups.append(Group("race", name, n, 0.7))
        points = (-20.0 + number, -28.0 + number, -12.0 + number)
        rows.append(gap(name, of_gap, points, detectable=1 - 0.08 / WHITE, n=n, n_reference=1681))
        rows.append(effect(name, adjusted, points, detectable=0.09, n=n, n_reference=1681))
    for theory, at in ((Theory.APPROVAL_RATES, 0), (Theory.SIMILAR_APPLICANTS, 1)):
        rows.append(whole(theory, min((pair[at] for pair in pairs), key=FIVE.index, default=NOT_RUN)))
    return replace(Run(tuple(rows), tuple(groups)), **more)


def boston(limit: float = -5) -> Run:
    """Boston 1990 (report.md 10), by a limit of 5 or of 2 points."""
    hispanic = OUTSIDE if limit == -2 else LITTLE
    rows = (
        whole(Theory.APPROVAL_RATES, OUTSIDE),
        gap("Black", OUTSIDE, (-23.3, -30.0, -16.6), limit, n=197),
        gap("Hispanic", OUTSIDE, (-14.3, -22.3, -6.3), limit, n=110),
        whole(Theory.SIMILAR_APPLICANTS, OUTSIDE),
        effect("Black", OUTSIDE, (-13.8, -20.2, -7.4), limit, n=197, robustness=0.124),
        effect("Hispanic", hispanic, (-10.6, -18.0, -3.2), limit, n=110, robustness=0.077),
        nearest("Black", OUTSIDE, (-18.5, -25.4, -11.6), limit=limit, n=197),
        nearest("Hispanic", OUTSIDE, (-14.1, -22.0, -6.3), limit=limit, n=110),
        whole(Theory.CAUSAL_MODEL, NOT_RUN, "the method cst is off"),
        whole(Theory.PATH_TO_APPROVAL, LITTLE),
        row(Theory.PATH_TO_APPROVAL, "Black", LITTLE, value=0.74, low=0.61, high=0.95, n=197, events=64),
        row(Theory.PATH_TO_APPROVAL, "Hispanic", LITTLE, value=0.87, low=0.63, high=1.34, n=110, events=26),
        whole(Theory.MODEL_REASONS, LITTLE),
        row(Theory.MODEL_REASONS, "Black", LITTLE, value=-0.045),
        row(Theory.MODEL_REASONS, "Hispanic", LITTLE, value=-0.026),
    )
    groups = (white(), Group("race", "Black", 197, 0.675), Group("race", "Hispanic", 110, 0.766))
    return Run(
        rows,
        groups,
        columns={("race", "Black"): 18, ("race", "Hispanic"): 18},
        neighbours=15,
        strongest={("race", "Black"): Benchmark("public record", 0.010, 0.035)},
        files={("race", "Black"): Files(20, "evenhand pack RUN --group Black")},
        left_out=LeftOut(11, 2000),
    )


def texas() -> Run:
    """Texas 2022 (report.md 10), without the widening that public files have."""
    rate = 0.81

    def ratio(group: str, state: State, points: tuple[float, float, float], n: int) -> Row:
        value, low, high = (1 + each / (100 * rate) for each in points)
        found = {"value": value, "low": low, "high": high, "limit": 1 - 5 / (100 * rate)}
        return row(Theory.APPROVAL_RATES, group, state, **found, n=n)

    rows = (
        whole(Theory.APPROVAL_RATES, OUTSIDE),
        ratio("Black", OUTSIDE, (-10.9, -12.4, -9.4), 3995),
        ratio("Asian", INSIDE, (2.0, 0.8, 3.2), 4341),
        ratio("American Indian", OUTSIDE, (-10.0, -13.9, -6.0), 525),
        whole(Theory.SIMILAR_APPLICANTS, OUTSIDE),
        effect("Black", OUTSIDE, (-7.0, -8.3, -5.7), robustness=0.055, n=3995),
        effect("Asian", LITTLE, (-4.8, -5.8, -3.7), robustness=0.038, n=4341),
        effect("American Indian", LITTLE, (-5.0, -8.2, -1.7), robustness=0.016, n=525),
        nearest("Black", OUTSIDE, (-9.8, -11.0, -8.5), n=3962),
        nearest("Asian", LITTLE, (-5.3, -6.3, -4.3), n=4341),
        nearest("American Indian", LITTLE, (-8.1, -11.3, -4.9), n=525),
        whole(Theory.CAUSAL_MODEL, NOT_RUN, "the method cst is off"),
        whole(Theory.PATH_TO_APPROVAL, LITTLE),
        row(Theory.PATH_TO_APPROVAL, "Black", LITTLE, value=0.9, low=0.7, high=1.1),
        whole(Theory.MODEL_REASONS, NOT_RUN, "the method cec is off"),
    )
    groups = (
        Group("race", "white", 34998, rate, reference=True),
        Group("race", "Black", 3995, 0.70),
        Group("race", "Asian", 4341, 0.83),
        Group("race", "American Indian", 525, 0.71),
    )
    return Run(
        rows,
        groups,
        columns={("race", name): 9 for name in ("Black", "Asian", "American Indian")},
        neighbours=50,
        credit_history=False,
        left_out=LeftOut(6141, 50000, 0.57, 0.22),
        public=True,
        lenders=900,
    )
