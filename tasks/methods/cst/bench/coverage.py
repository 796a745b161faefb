"""How often samples of the complainants cover what all of them would have said: many draws of one search.

The neighbours of a complainant do not depend on who else is asked, so that one search serves all draws. What a draw
gives is computed by the functions of an audit: weights, design variance, q-values over those asked.

Scope: draws and counts. The bench and the tests print and judge them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CST, Comparison, applicants_of, compare, lay
from tasks.methods.cst.algorithm.effect.contrast import Contrast, Lists, Sides, contrast, sides_of
from tasks.methods.cst.algorithm.effect.groups import Frame
from tasks.methods.cst.algorithm.significance import judge
from tasks.methods.cst.algorithm.situations import NOBODY
from tasks.methods.cst.bench.work import case_of, sample
from tasks.methods.cst.reproduction import worlds
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.statistics.proportions import Pair
from tasks.numerics.statistics.sampling import Asked, allotted, design_variance, hashes
from tasks.proof.specs import texas_spec

Z = 1.959964
"""Of a two-sided interval at 95 %."""

TEXAS_ROWS, TEXAS_QUERIES, FEWEST = 20_000, 2_000, 100
TEXAS_LENDER = {
    "methods": "{fgce: null, cst: {k: 50, ks: [50], null_permutations: 0, sensitivity: false}}",
    "explain.decision_makers": "[lender]",
}


@dataclass(frozen=True)
class Sampled:
    """What one sample of a group says; each a value and the standard error that the design gives it."""

    st_effect: tuple[float, float]
    share_detected: tuple[float, float]
    share_significant: tuple[float, float]


@dataclass(frozen=True)
class Covered:
    """One measure of one group over many draws."""

    group: int
    measure: str
    asked: int
    of: int
    value: float
    """Of everybody."""
    share: float
    """Of the draws whose interval by the design covers that."""
    spread: float
    """Standard deviation of the draws."""
    error: float
    """Root of the mean variance that the design gives."""


@dataclass(frozen=True)
class _Group:
    """The searches and regressions of one group, of all complainants."""

    sides: Sides
    values: Floats
    denied: Floats
    lists: Lists
    pair: Pair
    """Of situation testing, or of CST where there are counterfactuals."""
    row: Longs
    settings: CstSettings

    def sampled(self, drawn: Bools, part: tuple[int, int]) -> Sampled:
        """What those drawn ``(n,)`` say."""
        some = drawn[self.lists.row]
        lists = Lists(self.lists.row[some], self.lists.control[some], self.lists.test[some])
        effect: Contrast = contrast(self.sides, self.values, lists, part)
        tests = judge(Pair(*(each[:, drawn[self.row]] for each in self.pair)), self.settings)
        return Sampled(
            (effect.value(self.denied), effect.sampling**0.5),
            _share(tests.detected(self.settings.tau)[0], part),
            _share(tests.significant(self.settings.alpha)[0], part),
        )


def _share(met: Floats, part: tuple[int, int]) -> tuple[float, float]:
    known = met[~np.isnan(met)]
    value = float(known.mean())
    return value, design_variance((known - value) / len(known), *part) ** 0.5


def coverage(problem: Problem, settings: CstSettings, queries: int, draws: int, fewest: int) -> Iterator[Covered]:
    """Coverage of the effect of situation testing and of the shares detected and significant, group by group.

    Args:
        problem: Rows with counterfactuals, or without.
        settings: ``k`` alone is looked at.
        queries: Complainants drawn each time, of all groups in their shares.
        draws: Each by a seed of its own, from 0.
        fewest: Complainants drawn below which a group is left out.
    """
    once = settings.model_copy(update={"ks": (settings.k,)})
    ground = lay(problem, once, problem.group, applicants_of(problem).counterfactuals)
    frame, counts = Frame(ground), np.bincount(problem.group, minlength=len(problem.groups))
    counts[problem.reference] = 0
    sizes = allotted(counts, queries, floor=0)
    ids = [str(row) for row in range(len(problem.group))]
    asked = [Asked.of(hashes(ids, seed), problem.group, sizes) for seed in range(draws)]
    for group in np.flatnonzero(sizes >= fewest).tolist():
        found = _group(frame, group, compare(ground, group, np.flatnonzero(problem.group == group)))
        if found is not None:
            yield from _covered(found, group, [(each.drawn, each.part(group)) for each in asked])


def _group(frame: Frame, group: int, compared: Comparison) -> _Group | None:
    rows = frame.rows(group)
    sides = sides_of(frame.designs, frame.columns.values, rows, frame.denied)
    if sides is None:
        return None
    control, test = compared.control.members.rows, compared.factual.members.rows
    full = (control[:, 0] != NOBODY) & (test[:, 0] != NOBODY)
    lists = Lists(compared.row[full], control[full], test[full])
    pair = compared.pairs.get(CST, next(iter(compared.pairs.values())))
    return _Group(sides, frame.columns.values, frame.denied, lists, pair, compared.row, frame.settings)


def _covered(found: _Group, group: int, asked: list[tuple[Bools, tuple[int, int]]]) -> Iterator[Covered]:
    everybody = len(found.row)
    whole = found.sampled(np.ones(len(found.values), np.bool_), (everybody, everybody))
    drawn = [found.sampled(*each) for each in asked]
    part = asked[0][1]
    for name in (field.name for field in fields(Sampled)):
        value = getattr(whole, name)[0]
        values, errors = np.array([getattr(each, name) for each in drawn]).T
        covered = float((np.abs(values - value) <= Z * errors).mean())
        error = float(np.sqrt((errors**2).mean()))
        yield Covered(group, name, *part, value, covered, float(values.std(ddof=1)), error)


def texas(data: Path, draws: int = 200) -> Iterator[tuple[str, Covered]]:
    """Judged groups of Texas 2022 by the lender's decisions: 2,000 complainants of 20,000 rows, each time.

    Args:
        data: The directory that holds the file.
        draws: Samples of each protected attribute.
    """
    spec = texas_spec(data, TEXAS_LENDER)
    for protected in spec.protected:
        made = worlds.scene(spec, protected.name)
        problem = made.problem
        imagined = made.imagined(protected.name, np.flatnonzero(problem.group != problem.reference))
        case = case_of(replace(problem, applicants=replace(applicants_of(problem), counterfactuals=imagined)))
        settings = spec.methods.of(CstSettings) or CstSettings()
        for each in coverage(sample(case, TEXAS_ROWS), settings, TEXAS_QUERIES, draws, FEWEST):
            name = problem.groups[each.group]
            if protected.judges(name):
                yield name, each
