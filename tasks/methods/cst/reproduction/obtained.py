"""Compares and tests every complainant of the CST paper's problems, and converts the results to cells.

Scope: counts, shares, coefficients and single complainants. Comparison with the reference outputs: ``golden``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tasks.methods.cst.algorithm.comparisons import CENTRED, CF, Comparison, SearchSpace, applicants_of, compare, lay
from tasks.methods.cst.algorithm.significance import Tests, judge
from tasks.methods.cst.reproduction.worlds import Prepared
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.proof.lines import Cell, Value


@dataclass(frozen=True)
class Tested:
    """The complainants of one problem, ``c`` of them."""

    prepared: Prepared
    ground: SearchSpace
    compared: Comparison
    judged: Mapping[str, Tests]
    """By variant."""

    @property
    def row(self) -> Longs:
        """``(c,)`` rows of the complainants, ascending."""
        return self.compared.row

    @property
    def unfair(self) -> Floats:
        """``(c,)`` 1 where refused but for the group, -1 the other way round, else 0."""
        assert self.compared.unfair is not None, "a rule decides on the imagined, too"  # noqa: S101 for mypy
        return self.compared.unfair

    def detected(self, variant: str) -> Floats:
        """``(len(ks), c)`` 1 where detected; ``(1, c)`` by counterfactual fairness."""
        return (self.unfair > 0).astype(np.float64)[None] if variant == CF else self.judged[variant].detected(0.0)

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants, counterfactual fairness last."""
        return (*self.judged, CF)

    def at(self, variant: str) -> list[tuple[Value, ...]]:
        """Returns what the cells of a variant are at, in the order of its rows."""
        return [(CF,)] if variant == CF else [(variant, float(k)) for k in self.prepared.settings.ks]


def tested(prepared: Prepared) -> Tested:
    """Searches, counts and tests as the method does, and keeps the results of every complainant."""
    problem, settings = prepared.problem, prepared.settings
    ground = lay(problem, settings, problem.group, applicants_of(problem).counterfactuals)
    compared = compare(ground, prepared.group, np.flatnonzero(problem.group == prepared.group))
    judged = {variant: judge(pair, settings) for variant, pair in compared.pairs.items()}
    return Tested(prepared, ground, compared, judged)


def cells(found: Tested, group: str, complainants: Iterable[int]) -> Mapping[Cell, Value]:
    """Returns the cells of a problem's group as a whole, and of the given complainants."""
    out = {Cell(quantity, group, at): value for quantity, at, value in _counts(found)}
    out |= {Cell("coefficient", group, at): value for at, value in found.prepared.coefficients.items()}
    out |= {Cell(quantity, name): value for name, quantity, value in _shares(found, group)}
    out |= {Cell(quantity, group, at): value for quantity, at, value in _intervals(found, complainants)}
    return out


def multiple(whole: Tested, parts: Iterable[Tested], group: str) -> Mapping[Cell, Value]:
    """Counts members of a crossed group who are detected by each single attribute."""
    both: dict[tuple[Value, ...], Bools] = {}
    for part in parts:
        own = np.searchsorted(part.row, whole.row)
        for variant in whole.variants:
            for at, detected in zip(whole.at(variant), part.detected(variant)[:, own] > 0, strict=True):
                both[at] = both.get(at, np.ones(len(own), dtype=bool)) & detected
    return {Cell("detected_by_both_alone", group, at): float(yes.sum()) for at, yes in both.items()}


def _counts(found: Tested) -> Iterator[tuple[str, tuple[Value, ...], float]]:
    yield "complainants", (), float(len(found.row))
    for variant in found.variants:
        for at, detected in zip(found.at(variant), found.detected(variant), strict=True):
            yield "detected", at, float(detected.sum())
            yield "detected_percent", at, float(100 * detected.mean())
    for variant, tests in found.judged.items():
        significant, positive = (tests.low > 0) & (tests.delta > 0), tests.positive(0.0)
        for i, at in enumerate(found.at(variant)):
            yield "significant", at, float(significant[i].sum())
            yield "positive", at, float(positive[i].sum())
    missed = (found.unfair > 0) & (found.detected(CENTRED) == 0)
    for at, count in zip(found.at(CENTRED), missed.sum(axis=1).tolist(), strict=True):
        yield "unfair_but_not_detected", at, float(count)


def _shares(found: Tested, group: str) -> Iterator[tuple[str, str, float]]:
    """Sizes and refusals, in percent, of the group and of the others."""
    favourable, mine = found.ground.applicants.favourable, found.ground.group == found.prepared.group
    imagined = found.ground.imagined
    yield group, "rows", float(len(mine))
    yield group, "percent_of_rows", float(100 * mine.mean())
    for name, rows in ((group, mine), (f"not {group}", ~mine)):
        yield name, "refused_percent", float(100 * (~favourable[rows]).mean())
        yield name, "accepted_percent", float(100 * favourable[rows].mean())
    if imagined is not None and imagined.refused is not None:
        yield group, "refused_percent_imagined", float(100 * imagined.refused[mine].mean())


def _intervals(found: Tested, complainants: Iterable[int]) -> Iterator[tuple[str, tuple[Value, ...], float]]:
    """The test with centres of single complainants, at the settings' k, and what they would have been."""
    tests, at = found.judged[CENTRED], found.prepared.settings.ks.index(found.prepared.settings.k)
    applicants = found.ground.applicants
    for row in complainants:
        i = int(np.searchsorted(found.row, row))
        said = (tests.pair.control_share, tests.pair.test_share, tests.delta, tests.low, tests.high)
        for quantity, values in zip(("p_c", "p_t", "delta", "low", "high"), said, strict=True):
            yield quantity, (float(row),), float(values[at, i])
        yield "unfair", (float(row),), float(found.unfair[i])
        if applicants.counterfactuals is not None:
            for name, value in zip(applicants.columns.names, applicants.counterfactuals.values[row], strict=True):
                yield "imagined", (float(row), name), float(value)
