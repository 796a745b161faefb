"""Measures how often the states of an audit are right, on simulated lenders with known true effects.

Each scenario is drawn and judged again and again. A line for each theory tells its states, how often a group was said
to breach that keeps the limit (familywise), and how many groups beyond it were said to be within; a line for each
measure how often its 95 % interval holds the truth. Effects are about the applicants drawn, the ratio of approvals is
about the population; the truth of states is the population's.

Scope: scenarios, sizes and targets. Repetitions: ``work.planted``.
"""

import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benches.planted import HARMED, Plan, Shares, Spread, judge_lender, processes, repeat, verdict_rows
from benches.planted_lenders import Lender, Scenario, at_limit, draw
from scipy.stats import binom

from research.benchmark import Bench, Room, Row, against
from schemas.audit.limits import Limits, Verdicts
from schemas.terms import State, Theory

REPETITIONS, FEWER = 200, 10
"""Of the largest size the tenth part."""
SMALL, MIDDLE, LARGE = 1_500, 6_000, 50_000
FEWEST_ROWS = 1_500
SEED = 19
MOST_WRONG, LEAST_POWER, NOMINAL = 0.05, 0.80, 0.95
SMALL_SHARE = 0.01
"""A coverage is missed where one so low, or lower, had this probability if the intervals were right."""
LENDER = Lender((-0.5, -0.75, 0.15, 0.4, 0.65, -0.2), (0.3, 0.0, 0.2))
SIX = ("white", "Black", "Hispanic", "Asian", "Native", "Pacific", "several")
SIX_SHARES = (0.55, 0.10, 0.09, 0.08, 0.07, 0.06, 0.05)
NONE = (0.0,) * len(SIX)
STATES = (State.OUTSIDE, State.WITHIN, State.INCONCLUSIVE)
COLUMNS = ("outside", "within", "inconclusive", "false_outside", "false_within", "coverage", "target", "met", "found")
_LOG = logging.getLogger("evenhand.bench")


@dataclass(frozen=True)
class Asked:
    """A scenario with its sizes and what it is held against."""

    scenario: Scenario
    sizes: tuple[int, ...] = (SMALL, MIDDLE)
    total: bool = False
    """Whether CST is tried, too."""
    power: int | None = None
    """The number of rows with which ``direct`` is to breach in 80 % at least."""
    at_limit: bool = False
    """Whether the truth is the limit itself, where every twentieth audit may be wrong."""


def only(value: float) -> tuple[float, ...]:
    """Of the harmed group alone."""
    return (0.0, value, 0.0, 0.0)


def asked() -> tuple[Asked, ...]:
    """All scenarios."""
    similar = Limits().similar_applicants
    limit = math.nan if similar is None else similar.points
    on_it = at_limit(LENDER, Scenario("both groups exactly at the limit", log_odds=(0.0, 1.0, 1.0, 0.0)), limit)
    unseen = Scenario("no effect, score unseen, finances worse by 1", mediated=only(1.0), without=("score",))
    three, two = (SMALL, MIDDLE, LARGE), (SMALL, MIDDLE)
    return (
        Asked(Scenario("no effect, equal finances"), three, total=True),
        Asked(Scenario("no effect, finances worse by 0.6 (confounded)", confounded=only(0.6)), three, total=True),
        Asked(Scenario("no effect, finances worse by 0.6 (mediated)", mediated=only(0.6)), two, total=True),
        Asked(Scenario("log odds +0.3", log_odds=only(0.3)), three),
        Asked(Scenario("log odds +0.5", log_odds=only(0.5)), three, total=True, power=MIDDLE),
        Asked(Scenario("log odds +0.8", log_odds=only(0.8)), two, power=MIDDLE),
        Asked(Scenario("log odds +0.5, better qualified by 0.4", log_odds=only(0.5), mediated=only(-0.4)), two),
        Asked(
            Scenario("log odds +0.8, better qualified by 0.55", log_odds=only(0.8), mediated=only(-0.55)),
            two,
            total=True,
            power=MIDDLE,
        ),
        Asked(on_it, two, at_limit=True),
        Asked(Scenario("six groups, no effect", NONE, NONE, NONE, SIX, SIX_SHARES), (2 * MIDDLE,)),
        Asked(unseen, two),
    )


def _lines(room: Room) -> Iterator[Row]:
    with processes() as spread:
        for number, case in enumerate(asked()):
            for rows in case.sizes:
                if rows <= room.limit:
                    yield from measured(case, rows, room.reps or REPETITIONS, SEED + number, spread)
    yield through_all(room.place)


def through_all(place: Path) -> Row:
    """The line of one lender that goes through the whole product: its states are those of the audit in memory."""
    scenario = Scenario("log odds +0.8, better qualified by 0.55", log_odds=only(0.8), mediated=only(-0.55))
    clock = time.perf_counter()
    rng = np.random.default_rng(SEED)
    applied = draw(LENDER, scenario, SMALL, rng)
    table = {key: row["state"] for key, row in verdict_rows(applied, place).items() if row["state"] != State.NOT_RUN}
    judgement = judge_lender(applied, Verdicts(columns_complete=True), rng)
    states: dict[tuple[str, str], State] = {(row.case.measure, row.case.group): row.state for row in judgement.rows}
    states |= {
        (theory, ""): theory_state.state
        for theory, theory_state in judgement.theories.items()
        if theory_state.state is not State.NOT_RUN
    }
    same = sum(table.get(key) == state for key, state in states.items())
    line = _line(scenario.name, SMALL, 1, "states of the whole product", found=f"{same} of {len(states)} equal")
    return {**line, **against("all", states == table), "seconds": time.perf_counter() - clock}


def measured(case: Asked, rows: int, repetitions: int, seed: int, spread: Spread = map) -> Iterator[Row]:
    """The lines of one scenario and size."""
    count = max(repetitions // FEWER, 1) if rows == LARGE else repetitions
    clock = time.perf_counter()
    plan = Plan(LENDER, case.scenario, rows, count, seed, total=case.total and rows < LARGE)
    shares = repeat(plan, spread)
    seconds = time.perf_counter() - clock
    _LOG.info("%s, %s rows: %s repetitions in %.0f s", case.scenario.name, f"{rows:,}", count, seconds)
    for at, line in enumerate((*_states(case, shares), *_coverage(shares))):
        yield {**line, "seconds": seconds if at == 0 else None}


def _states(case: Asked, shares: Shares) -> Iterator[Row]:
    for theory in shares.theories:
        shares_by_state = {
            "outside": shares.of(theory, State.OUTSIDE),
            "within": shares.of(theory, State.WITHIN),
            "inconclusive": shares.of(theory, State.INCONCLUSIVE),
            "false_outside": shares.false_breach(theory),
            "false_within": None if math.isnan(shares.false_within(theory)) else shares.false_within(theory),
        }
        harmed_shares = ", ".join(f"{state} {shares.of_harmed(theory, state):.3f}" for state in STATES)
        name = shares.plan.scenario.groups[HARMED]
        yield _row(
            shares,
            str(theory),
            **shares_by_state,
            **_target(case, shares, theory),
            found=f"{name} alone: {harmed_shares}",
        )
    points = sum(once.without_width for once in shares.every)
    yield _row(shares, "rows of zero width", found=str(points), **against("none", points == 0))


def _target(each: Asked, shares: Shares, theory: Theory) -> Row:
    """Target: a maximum rate of wrong states, and for one scenario size also a minimum rate of breaches."""
    n = shares.plan.repetitions
    most = MOST_WRONG + (2 * math.sqrt(MOST_WRONG * (1 - MOST_WRONG) / n) if each.at_limit else 0.0)
    within = shares.false_within(theory)
    wrong = max(shares.false_breach(theory), 0.0 if math.isnan(within) else within)
    if theory is Theory.SIMILAR_APPLICANTS and shares.plan.rows == each.power:
        enough = shares.of(theory, State.OUTSIDE) >= LEAST_POWER
        return against(f"false at most {most:.3f}, breach at least {LEAST_POWER:g}", wrong <= most and enough)
    return against(f"false at most {most:.3f}", wrong <= most)


def _coverage(shares: Shares) -> Iterator[Row]:
    for measure in shares.measures:
        covered, n = shares.covered(measure)
        least = lowest(n)
        yield _row(
            shares, f"interval of {measure}", coverage=covered, **against(f"at least {least:.3f}", covered >= least)
        )


def lowest(n: int, nominal: float = NOMINAL) -> float:
    """The share of ``n`` intervals below which they do not cover as they say, at the 1 % point of the binomial."""
    return float(binom.ppf(SMALL_SHARE, n, nominal)) / n


def _row(shares: Shares, what: str, **figures: Any) -> Row:
    return _line(shares.plan.scenario.name, shares.plan.rows, shares.plan.repetitions, what, **figures)


def _line(scenario: str, rows: int, repetitions: int, what: str, **figures: Any) -> Row:
    named = {"scenario": scenario, "rows": rows, "repetitions": repetitions, "what": what}
    return {**named, **dict.fromkeys(COLUMNS), **figures}


BENCH = Bench("verdicts", _lines, fewest=FEWEST_ROWS, why="the smallest lender that is planted", disk=0, repeats=True)
