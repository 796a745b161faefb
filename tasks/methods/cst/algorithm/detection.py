"""Counterfactual situation testing (CST; Alvarez and Ruggieri 2023)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.terms import Refusal
from tasks.methods.cst.algorithm import neighbours, situations
from tasks.methods.cst.algorithm.effects import Frame, GroupEffects, aggregates, of_group
from tasks.methods.cst.algorithm.situations import (
    HEADLINE,
    NOBODY,
    Comparison,
    Members,
    SearchSpace,
    Tests,
    applicants_of,
    compare,
    compare_again,
    cst_pair,
    judge,
    lay,
)
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import Counterfactuals, Problem, Saturated
from tasks.numerics.results import Aggregate, Detected, Draws, Evidence, Findings, Tally, Tested
from tasks.numerics.statistics.regression import p_of

# --------------------------------------------------------------------------------------------------------------------
# Findings of CST: the test and verdict of each complainant, and the rows that it was compared with.
#
# Scope: rows of findings and evidence. Means over them: ``tallies``.


CONTROL, TEST = "control", "test"
"""Roles in the evidence."""

PIECE = 2**20
"""Rows of evidence that are made at a time, about."""

DETECTED, NOT_DETECTED, NOT_TESTED = "detected", "not_detected", "not_tested"
"""Verdicts; a complainant who was refused was not tested."""


def findings(of_groups: Sequence[tuple[Comparison, Tests]], settings: CstSettings) -> Findings:
    """One entry per complainant of any group, by row: the test at ``settings.k``, or why there is none."""
    at = settings.ks.index(settings.k)
    row = np.concatenate([np.zeros(0, np.int64), *(compared.row for compared, _ in of_groups)])
    order = np.argsort(row)

    def of_all(values: Sequence[Floats]) -> Floats:
        return np.concatenate([np.zeros(0), *(group_values[at] for group_values in values)])[order]

    tests_of_group = [tests for _, tests in of_groups]
    delta = of_all([tests.delta for tests in tests_of_group])
    refusal = []
    for compared, tests in of_groups:
        imagined = np.zeros(len(tests.delta[at]), dtype=bool)
        imagined[compared.tested] = True
        reason = np.where(imagined, str(Refusal.TOO_FEW_NEIGHBOURS), str(Refusal.NO_COUNTERFACTUAL))
        refusal.append(np.where(np.isnan(tests.delta[at]), reason, ""))
    return Findings(
        row=row[order],
        subgroup=np.zeros(len(row), np.int32),
        verdict=np.where(np.isnan(delta), NOT_TESTED, np.where(delta > settings.tau, DETECTED, NOT_DETECTED)),
        statistic=delta,
        refusal=np.concatenate([np.zeros(0, dtype=str), *refusal])[order],
        tested=Tested(
            control=of_all([tests.pair.control_share for tests in tests_of_group]),
            test=of_all([tests.pair.test_share for tests in tests_of_group]),
            low=of_all([tests.low for tests in tests_of_group]),
            high=of_all([tests.high for tests in tests_of_group]),
            p=of_all([tests.p for tests in tests_of_group]),
            q=of_all([tests.q for tests in tests_of_group]),
        ),
    )


class Groups(NamedTuple):
    """The control and test groups of ``c`` complainants of one group: what its evidence is made of."""

    row: Longs
    """``(c,)`` complainants, ascending."""
    control: Members
    """``(c, k + 1)``"""
    tested: Longs
    """``(t,)`` complainants who have a test group, ascending."""
    test: Members
    """``(t, k + 1)``"""

    @classmethod
    def of(cls, compared: Comparison) -> "Groups":
        """Those of a comparison."""
        tested = compared.row[compared.tested]
        return cls(compared.row, compared.control.members, tested, compared.test.members)

    def between(self, first: int, last: int) -> "Groups":
        """Those of the complainants from one row to another, which is among them."""
        ours, theirs = (slice(*np.searchsorted(of, (first, last + 1))) for of in (self.row, self.tested))
        return Groups(self.row[ours], self.control.of(ours), self.tested[theirs], self.test.of(theirs))


@dataclass(frozen=True)
class Surroundings:
    """The evidence: control and test group of every complainant of any group, made piece by piece.

    Neighbours are kept as 12 bytes; their rows of evidence, of which a year has tens of millions, are not.
    """

    groups: tuple[Groups, ...]

    def pieces(self) -> Iterator[Evidence]:
        """By row and role, complainants of all groups in the order of their rows; ranks count from 1."""
        row = np.sort(np.concatenate([np.zeros(0, np.int64), *(group.row for group in self.groups)]))
        width = max((group.control.rows.shape[1] for group in self.groups), default=1)
        size = max(1, PIECE // (2 * width))
        nobody = Members(np.zeros((0, 1), np.int32), np.zeros((0, 1)))
        for start in range(0, max(len(row), 1), size):
            some, parts = row[start : start + size], [_evidence_rows(np.zeros(0, np.int64), CONTROL, nobody)]
            for group in self.groups if len(some) else ():
                piece = group.between(some[0], some[-1])
                parts.append(_evidence_rows(piece.row, CONTROL, piece.control))
                parts.append(_evidence_rows(piece.tested, TEST, piece.test))
            rows, role, rank, other, value = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((rank, role == TEST, rows))
            yield Evidence(rows[order], role[order], rank[order], other[order], value[order])


def _evidence_rows(
    row: Longs, role: str, members: Members
) -> tuple[Longs, NDArray[np.str_], NDArray[np.int32], Longs, Floats]:
    """The members of each complainant's group, one after the other."""
    positions, rank = np.nonzero(members.rows != NOBODY)
    other, value = members.rows[positions, rank].astype(np.int64), members.distances[positions, rank]
    return row[positions], np.full(len(positions), role), rank.astype(np.int32) + 1, other, value


# --------------------------------------------------------------------------------------------------------------------
# Counterfactual situation testing (CST; Alvarez and Ruggieri, EAAMO 2023): the method.
#
# Every row outside the reference group is a complainant, with any decision; of a large group a sample is queried
# (``Problem.sample``), among the same neighbours. A complainant's control group are the most similar rows of its own
# group. Its test group are the rows of the reference group that are most similar to its counterfactual. The complainant
# is detected if the control group was refused more often than the test group. Each difference is tested, with q-values
# over all complainants. Situation testing (ST), with test groups around the factual complainants, and counterfactual
# fairness (CF) are printed with it.
#
# Scope: the order of the method. Steps: ``comparisons`` (searches), ``situations`` (counts), ``significance``,
# ``tallies`` by group, ``null``, ``several_attributes``, ``findings`` by complainant.


SIGNIFICANT = "share_significant"
"""The share that labels are permuted for."""


@dataclass(frozen=True)
class GroupResult:
    """The results of one group."""

    group: int
    compared: Comparison
    """Without its neighbours, which are those of ``near``."""
    tests: dict[str, Tests]
    """By variant, the one that findings are about first."""
    effects: GroupEffects
    near: Groups
    """Who the neighbours are that findings rest on."""

    @property
    def main(self) -> Tests:
        """The tests that findings are about."""
        return next(iter(self.tests.values()))


def detect(problem: Problem, settings: CstSettings, rng: np.random.Generator) -> Detected:
    """Test every complainant of every group, and say how much of it chance finds.

    Args:
        problem: One decision maker and one protected attribute; ``applicants`` are needed, the feasibility graph is
            not. Without counterfactuals there is situation testing only; where their decisions are not known there are
            neither centres nor counterfactual fairness.
        settings: All of the method.
        rng: Permutes labels; nothing else is left to chance.

    Returns:
        Findings and evidence by ascending row. Groups without anybody who could be tested have findings (refusals)
        and no tallies. Draws (``null``) are of shares detected and significant at ``settings.k``.

    Raises:
        ValueError: If the problem has no applicants.
    """
    ground = _search_space(problem, settings)
    frame, group_results = Frame(ground, problem.sample), list[GroupResult]()
    saturated, saturated_effects = _saturated(problem, ground), list[GroupEffects]()
    complainants = [int(group) for group in np.unique(problem.group[units(problem)])]
    for group in complainants:
        # lists of neighbours take the most memory: only those that findings rest on outlive this step
        compared = compare(ground, group, np.flatnonzero((ground.group == group) & problem.drawn))
        tests_of_variant = {variant: judge(pair, settings) for variant, pair in compared.pairs.items()}
        group_effects = of_group(frame, group, compared, [group_result.effects for group_result in group_results])
        if saturated is not None:
            again = compare_again(saturated.ground, compared, group)
            saturated_effects.append(of_group(saturated, group, again, saturated_effects))
        near = Groups.of(compared)
        group_results.append(GroupResult(group, compared.counted(), tests_of_variant, group_effects, near))
        del compared
    singles = [_search_space(single, settings) for single in ground.applicants.singles]
    tallies = [
        *_tallies(group_results, settings),
        *_sensitivity(problem, group_results, ground),
        *_clipped(group_results, ground),
    ]
    for group_result in group_results:
        multiple = situations.tallies(singles, group_result.compared.row, settings)
        tallies += [replace(t, group=group_result.group) for t in multiple]
    draws: tuple[Draws, ...] = ()
    if settings.null_permutations:
        draws = tuple(situations.draws(problem, settings.model_copy(update={"ks": (settings.k,)}), rng, ground))
    tests = _permuted(group_results, draws, settings)
    other_graph = None if saturated is None else (saturated, saturated_effects)
    effects = aggregates(frame, [group_result.effects for group_result in group_results], rng, other_graph)
    tested = findings([(group_result.compared, group_result.main) for group_result in group_results], settings)
    surroundings = Surroundings(tuple(group_result.near for group_result in group_results))
    return Detected(tested, surroundings, tuple(tallies), draws, (*effects, *tests))


def units(problem: Problem) -> Bools:
    """Mask of the queried complainants, ``(n,)``: rows outside the reference group, with any decision."""
    outside: Bools = (problem.group != problem.reference) & problem.drawn
    return outside


def _search_space(problem: Problem, settings: CstSettings) -> SearchSpace:
    return lay(problem, settings, problem.group, applicants_of(problem).counterfactuals)


def _tallies(group_results: Sequence[GroupResult], settings: CstSettings) -> Iterator[Tally]:
    for group_result in group_results:
        of_cf = () if group_result.compared.unfair is None else situations.of_unfair(group_result.compared.unfair)
        of_main = situations.without_width(group_result.main, settings)
        for t in (*situations.of_variants(group_result.tests, settings), *of_main, *of_cf):
            yield replace(t, group=group_result.group)


def _clipped(group_results: Sequence[GroupResult], ground: SearchSpace) -> Iterator[Tally]:
    """Tallies of the complainants with values clipped before the distance computation."""
    applicants = ground.applicants
    looked_at = neighbours.looked_at(applicants.columns, ground.settings, applicants.attribute_columns)
    names, beyond = neighbours.beyond(looked_at, ground.settings)
    for group_result in group_results:
        for t in situations.clipped(names, beyond[group_result.compared.row]):
            yield replace(t, group=group_result.group)


def _sensitivity(problem: Problem, group_results: Sequence[GroupResult], ground: SearchSpace) -> Iterator[Tally]:
    """The same with each edge of the causal graph left out; control groups stay as they are."""
    imagine, settings = ground.applicants.imagine, ground.settings
    if imagine is None or ground.imagined is None or not settings.sensitivity:
        return
    at, once = settings.ks.index(settings.k), settings.model_copy(update={"ks": (settings.k,)})
    everyone = np.flatnonzero(units(problem) if not settings.imagines_everybody else problem.group != problem.reference)
    for edge in ground.applicants.edges:
        reduced_space = lay(problem, once, problem.group, imagine(everyone, problem.group, edge))
        for group_result in group_results:
            control = group_result.compared.control.alone.only(at)
            tests = judge(cst_pair(reduced_space, group_result.group, group_result.compared.row, control), once)
            yield from (replace(t, group=group_result.group) for t in situations.without(edge, tests, once))


def _saturated(problem: Problem, ground: SearchSpace) -> Frame | None:
    """The rows with counterfactuals under the saturated graph; None where none can be made, or those are it."""
    imagine, settings = ground.applicants.imagine, ground.settings
    if imagine is None or ground.imagined is None or settings.generator != "scm" or settings.graph == "saturated":
        return None
    ask = imagine

    def again(
        rows: Longs, group: Ints, change: tuple[str, str] | Saturated | None, sample: Longs | None = None
    ) -> Counterfactuals:
        return ask(rows, group, change or "saturated", sample)

    everyone = np.flatnonzero(units(problem) if not settings.imagines_everybody else problem.group != problem.reference)
    applicants = replace(ground.applicants, counterfactuals=again(everyone, problem.group, None), imagine=again)
    return Frame(_search_space(replace(problem, applicants=applicants), settings), problem.sample)


def _permuted(
    group_results: Sequence[GroupResult], draws: Sequence[Draws], settings: CstSettings
) -> Iterator[Aggregate]:
    """The p of the share significant with labels permuted: a test that the attribute moves nothing at all."""
    null = {
        group_draws.group: group_draws.values
        for group_draws in draws
        if (group_draws.measure, group_draws.parameters) == (SIGNIFICANT, HEADLINE)
    }
    at = settings.ks.index(settings.k)
    for group_result in group_results:
        significant = group_result.main.significant(settings.alpha)[at]
        if group_result.group in null and not np.isnan(significant).all():
            p = p_of(float(np.nanmean(significant)), null[group_result.group])
            yield Aggregate(
                group_result.group, 0, f"{SIGNIFICANT}_p", {}, p, len(group_result.compared.row), compared=False
            )
