"""Counterfactual situation testing (CST; Alvarez and Ruggieri, EAAMO 2023): the method.

Every row outside the reference group is a complainant, whatever its decision; of a large group a sample is asked
(``Problem.asked``), among the same neighbours. A complainant's control group are the most similar
rows of its own group. Its test group are the rows of the reference group that are most similar to its counterfactual.
The complainant is detected if the control group was refused more often than the test group. Each difference is tested,
with q-values over all complainants. Situation testing (ST), with test groups around the factual complainants, and
counterfactual fairness (CF) are printed beside it.

Scope: the order of the method. Steps: ``comparisons`` (searches), ``situations`` (counts), ``significance``,
``tallies`` by group, ``null``, ``several_attributes``, ``findings`` by complainant.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.methods.cst.algorithm import null, several_attributes
from tasks.methods.cst.algorithm import tallies as cst_tallies
from tasks.methods.cst.algorithm.comparisons import Comparison, SearchSpace, applicants_of, compare, cst_pair, lay
from tasks.methods.cst.algorithm.effect.aggregates import aggregates
from tasks.methods.cst.algorithm.effect.groups import Frame, GroupEffects, of_group
from tasks.methods.cst.algorithm.findings import Groups, Surroundings, findings
from tasks.methods.cst.algorithm.neighbours import distance
from tasks.methods.cst.algorithm.significance import Tests, judge
from tasks.methods.cst.algorithm.tallies import HEADLINE
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Draws, Tally
from tasks.numerics.statistics.propensity import p_of

SIGNIFICANT = "share_significant"
"""The share that labels are permuted for."""


@dataclass(frozen=True)
class Found:
    """What was found in one group."""

    group: int
    compared: Comparison
    """Without its neighbours, which are those of ``near``."""
    judged: dict[str, Tests]
    """By variant, the one that findings are about first."""
    effects: GroupEffects
    near: Groups
    """Who the neighbours are that findings rest on."""

    @property
    def main(self) -> Tests:
        """The tests that findings are about."""
        return next(iter(self.judged.values()))


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
    ground = _laid(problem, settings)
    frame, found = Frame(ground, problem.asked), list[Found]()
    for group in _complainants(problem):
        found.append(_found(frame, group, np.flatnonzero((ground.group == group) & problem.drawn), found))
    singles = [_laid(single, settings) for single in ground.applicants.singles]
    tallies = [*_tallies(found, settings), *_sensitivity(problem, found, ground), *_clipped(found, ground)]
    for each in found:
        multiple = several_attributes.tallies(singles, each.compared.row, settings)
        tallies += [replace(t, group=each.group) for t in multiple]
    draws = tuple(_draws(problem, ground, rng))
    tests = _permuted(found, draws, settings)
    effects = aggregates(frame, [each.effects for each in found], rng)
    tested = findings([(each.compared, each.main) for each in found], settings)
    near = Surroundings(tuple(each.near for each in found))
    return Detected(tested, near, tuple(tallies), draws, (*effects, *tests))


def units(problem: Problem) -> Bools:
    """The complainants who are asked, ``(n,)``: rows outside the reference group, whatever was decided on them."""
    outside: Bools = (problem.group != problem.reference) & problem.drawn
    return outside


def _laid(problem: Problem, settings: CstSettings) -> SearchSpace:
    return lay(problem, settings, problem.group, applicants_of(problem).counterfactuals)


def _complainants(problem: Problem) -> list[int]:
    return [int(group) for group in np.unique(problem.group[units(problem)])]


def _found(frame: Frame, group: int, row: Longs, before: Sequence[Found]) -> Found:
    """The complainants ``row`` of one group, after the groups before it.

    All that looks at its neighbours is made here: lists of them are the most that the method holds, and only those that
    findings rest on are kept.
    """
    ground = frame.ground
    compared = compare(ground, group, row)
    judged = {variant: judge(pair, frame.settings) for variant, pair in compared.pairs.items()}
    effects = of_group(frame, group, compared, [each.effects for each in before])
    return Found(group, compared.counted(), judged, effects, Groups.of(compared))


def _tallies(found: Sequence[Found], settings: CstSettings) -> Iterator[Tally]:
    for each in found:
        of_cf = () if each.compared.unfair is None else cst_tallies.of_unfair(each.compared.unfair)
        of_main = cst_tallies.without_width(each.main, settings)
        for t in (*cst_tallies.of_variants(each.judged, settings), *of_main, *of_cf):
            yield replace(t, group=each.group)


def _clipped(found: Sequence[Found], ground: SearchSpace) -> Iterator[Tally]:
    """Whose values were clipped before distances were taken."""
    applicants = ground.applicants
    looked_at = distance.looked_at(applicants.columns, ground.settings, applicants.attribute_columns)
    names, beyond = distance.beyond(looked_at, ground.settings)
    for each in found:
        for t in cst_tallies.clipped(names, beyond[each.compared.row]):
            yield replace(t, group=each.group)


def _sensitivity(problem: Problem, found: Sequence[Found], ground: SearchSpace) -> Iterator[Tally]:
    """The same with each edge of the causal graph left out; control groups stay as they are."""
    imagine, settings = ground.applicants.imagine, ground.settings
    if imagine is None or ground.imagined is None or not settings.sensitivity:
        return
    at, once = settings.ks.index(settings.k), settings.model_copy(update={"ks": (settings.k,)})
    everyone = np.flatnonzero(units(problem) if not settings.imagines_everybody else problem.group != problem.reference)
    for edge in ground.applicants.edges:
        left = lay(problem, once, problem.group, imagine(everyone, problem.group, edge))
        for each in found:
            tests = judge(cst_pair(left, each.group, each.compared.row, each.compared.control.alone.only(at)), once)
            yield from (replace(t, group=each.group) for t in cst_tallies.without(edge, tests, once))


def _draws(problem: Problem, ground: SearchSpace, rng: np.random.Generator) -> Iterator[Draws]:
    """The null calibration, at ``settings.k`` alone."""
    settings = ground.settings.model_copy(update={"ks": (ground.settings.k,)})
    if settings.null_permutations:
        yield from null.draws(problem, settings, rng)


def _permuted(found: Sequence[Found], draws: Sequence[Draws], settings: CstSettings) -> Iterator[Aggregate]:
    """The p of the share significant with labels permuted: a test that the attribute moves nothing at all."""
    null = {each.group: each.values for each in draws if (each.measure, each.parameters) == (SIGNIFICANT, HEADLINE)}
    at = settings.ks.index(settings.k)
    for each in found:
        significant = each.main.significant(settings.alpha)[at]
        if each.group in null and not np.isnan(significant).all():
            p = p_of(float(np.nanmean(significant)), null[each.group])
            yield Aggregate(each.group, 0, f"{SIGNIFICANT}_p", {}, p, len(each.compared.row), compared=False)
