"""Counterfactual situation testing (CST; Alvarez and Ruggieri, EAAMO 2023): the method.

Every row outside the reference group is a complainant, whatever was decided on it. Its control group are those of its
own group who are most like it, its test group those of the reference group who are most like what it would have been,
had it belonged there. Where the first were refused more often than the second, the complainant is detected; whether
that is more than chance is tested for each, and q-values account for the number of complainants. Situation testing
(ST), whose test groups are around the complainants as they are, and counterfactual fairness (CF) stand beside it.

Here belongs the order of the method. Searches are in ``comparisons``, counts in ``situations``, tests in
``judgements``; what is said of a group is in ``cst_tallies``, chance in ``cst_null``, several attributes in
``cst_multiple``, and what goes on file for each complainant in ``cst_findings``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schemas.methods import CstSettings
from tasks.algorithms import cst_multiple, cst_null, cst_tallies, distance
from tasks.algorithms.comparisons import Compared, Ground, applicants_of, compare, cst_pair, lay
from tasks.algorithms.cst_findings import evidence, findings
from tasks.algorithms.detector import Bools, Detected, Draws, Problem, Tally
from tasks.algorithms.judgements import Judged, judge


@dataclass(frozen=True)
class Found:
    """What was found in one group."""

    group: int
    compared: Compared
    judged: dict[str, Judged]
    """By variant, the one that findings are about first."""

    @property
    def main(self) -> Judged:
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
    found = [_found(ground, group, settings) for group in _complainants(problem)]
    singles = [_laid(single, settings) for single in ground.applicants.singles]
    tallies = [*_tallies(found, settings), *_sensitivity(problem, found, ground), *_clipped(found, ground)]
    for each in found:
        multiple = cst_multiple.tallies(singles, each.compared.row, settings)
        tallies += [replace(t, group=each.group) for t in multiple]
    draws = _draws(problem, ground, rng)
    tested = [(each.compared, each.main) for each in found]
    return Detected(findings(tested, settings), evidence(tested), tuple(tallies), tuple(draws))


def units(problem: Problem) -> Bools:
    """The complainants, ``(n,)``: every row outside the reference group, whatever was decided on it."""
    outside: Bools = problem.group != problem.reference
    return outside


def _laid(problem: Problem, settings: CstSettings) -> Ground:
    return lay(problem, settings, problem.group, applicants_of(problem).counterfactuals)


def _complainants(problem: Problem) -> list[int]:
    return [int(group) for group in np.unique(problem.group[units(problem)])]


def _found(ground: Ground, group: int, settings: CstSettings) -> Found:
    compared = compare(ground, group, np.flatnonzero(ground.group == group))
    return Found(group, compared, {variant: judge(pair, settings) for variant, pair in compared.pairs.items()})


def _tallies(found: Sequence[Found], settings: CstSettings) -> Iterator[Tally]:
    for each in found:
        of_cf = () if each.compared.unfair is None else cst_tallies.of_unfair(each.compared.unfair)
        of_main = cst_tallies.without_width(each.main, settings)
        for t in (*cst_tallies.of_variants(each.judged, settings), *of_main, *of_cf):
            yield replace(t, group=each.group)


def _clipped(found: Sequence[Found], ground: Ground) -> Iterator[Tally]:
    """Whose values were clipped before distances were taken."""
    applicants = ground.applicants
    looked_at = distance.looked_at(applicants.columns, ground.settings, applicants.attribute_columns)
    names, beyond = distance.beyond(looked_at, ground.settings)
    for each in found:
        for t in cst_tallies.clipped(names, beyond[each.compared.row]):
            yield replace(t, group=each.group)


def _sensitivity(problem: Problem, found: Sequence[Found], ground: Ground) -> Iterator[Tally]:
    """The same with each edge of the causal graph left out; control groups stay as they are."""
    imagine, settings = ground.applicants.imagine, ground.settings
    if imagine is None or ground.imagined is None or not settings.sensitivity:
        return
    at, once = settings.ks.index(settings.k), settings.model_copy(update={"ks": (settings.k,)})
    everyone = np.flatnonzero(units(problem))
    for edge in ground.applicants.edges:
        left = lay(problem, once, problem.group, imagine(everyone, problem.group, edge))
        for each in found:
            tests = judge(cst_pair(left, each.group, each.compared.row, each.compared.control.alone.only(at)), once)
            yield from (replace(t, group=each.group) for t in cst_tallies.without(edge, tests, once))


def _draws(problem: Problem, ground: Ground, rng: np.random.Generator) -> Iterator[Draws]:
    """The null calibration, at ``settings.k`` alone."""
    settings = ground.settings.model_copy(update={"ks": (ground.settings.k,)})
    if settings.null_permutations:
        yield from cst_null.draws(problem, settings, rng)
