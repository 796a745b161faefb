"""Searches behind a situation: the rows that each complainant is compared with, for given labels of the rows.

Situation testing (ST) searches both groups around the complainant; counterfactual situation testing (CST) searches the
test group around its counterfactual (Alvarez and Ruggieri 2023, section 3.1). Labels are the problem's, or permuted.

Scope: search centres and searched rows. Counting: ``situations``. Search: ``neighbours``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tasks.methods.cst.algorithm import situations
from tasks.methods.cst.algorithm.neighbours import distance
from tasks.methods.cst.algorithm.neighbours.distance import Space
from tasks.methods.cst.algorithm.neighbours.search import Blocks, Neighbours, in_batches, index
from tasks.methods.cst.algorithm.significance import unfair
from tasks.methods.cst.algorithm.situations import Counts, Side
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import Applicants, Counterfactuals, Problem
from tasks.numerics.statistics.proportions import Pair

CST, CENTRED, ST, CF = "cst", "cst_with_centres", "st", "cf"
"""Variants: without and with the search centres, situation testing, and counterfactual fairness."""


@dataclass(frozen=True)
class Imagined:
    """Counterfactuals as places to search around."""

    row: Longs
    """``(i,)`` their complainants, ascending."""
    space: Space
    """``(i,)`` places."""
    refused: Bools | None
    """``(i,)`` unfavourable decisions on them; None where they are not known."""

    def of(self, row: Longs) -> tuple[Longs, "Imagined"]:
        """Those of some rows, ascending: which of the rows have one, and theirs."""
        place = np.flatnonzero(np.isin(row, self.row))
        own = np.searchsorted(self.row, row[place])
        return place, Imagined(row[place], self.space.rows(own), None if self.refused is None else self.refused[own])


@dataclass(frozen=True)
class SearchSpace:
    """The rows of a problem under some labels, laid out to be searched."""

    applicants: Applicants
    group: Ints
    """``(n,)`` labels."""
    reference: int
    space: Space
    """``(n,)`` places."""
    imagined: Imagined | None
    settings: CstSettings

    @cached_property
    def refused(self) -> Bools:
        """``(n,)`` unfavourable decisions."""
        return ~self.applicants.favourable

    def own(self, group: int) -> Blocks | None:
        """The rows of a group, laid out; None where they are fewer than the smallest k."""
        return self._laid_out(self.group == group)

    def others(self, group: int) -> Blocks | None:
        """The rows it is compared with: the reference group, or everybody else where the attribute is crossed."""
        return self._laid_out(self.group != group) if self.applicants.crossed else self._reference

    @cached_property
    def _reference(self) -> Blocks | None:
        return self._laid_out(self.group == self.reference)

    def _laid_out(self, members: Bools) -> Blocks | None:
        rows = np.flatnonzero(members)
        return index(self.space, rows) if len(rows) >= min(self.settings.ks) else None


def lay(problem: Problem, settings: CstSettings, group: Ints, counterfactuals: Counterfactuals | None) -> SearchSpace:
    """Lay the rows of a problem out under some labels, with counterfactuals made for these labels.

    The imagined data, to which z-scores are fitted anew, are all rows with the counterfactuals in their place; those of
    the reference group may be among them (the authors round there, too) and are searched around by nobody.

    Args:
        problem: its own labels are not looked at.
        settings: distance, scaling and numbers of neighbours.
        group: ``(n,)`` labels.
        counterfactuals: of rows outside the reference group, not necessarily all; None: situation testing alone.

    Raises:
        ValueError: If the problem has no applicants.
        SpecError: If the distance has nothing to look at.
    """
    applicants, protected = applicants_of(problem), group != problem.reference
    attributes = distance.looked_at(applicants.columns, settings, applicants.attribute_columns)
    scale = distance.fit(attributes, settings, applicants.favourable, protected)
    ground = SearchSpace(applicants, group, problem.reference, distance.place(attributes, scale), None, settings)
    if counterfactuals is None:
        return ground
    imagined = replace(applicants.columns, values=counterfactuals.values)
    imagined = distance.looked_at(imagined, settings, applicants.attribute_columns)
    everyone = attributes.values.copy()
    everyone[counterfactuals.row] = imagined.values
    data = replace(attributes, values=everyone)
    scale = distance.fit_imagined(scale, data, settings, applicants.favourable, protected)
    refused = None if counterfactuals.favourable is None else ~counterfactuals.favourable
    return replace(ground, imagined=Imagined(counterfactuals.row, distance.place(imagined, scale), refused))


def applicants_of(problem: Problem) -> Applicants:
    """The rows of a problem as applicants.

    Raises:
        ValueError: If it has none.
    """
    if problem.applicants is None:
        raise ValueError("situation testing needs applicants, and the problem has none; give Problem.applicants")
    return problem.applicants


@dataclass(frozen=True)
class Comparison:
    """What surrounds ``c`` complainants of one group."""

    row: Longs
    """``(c,)`` ascending."""
    tested: Longs
    """Which of them the test groups of ``test`` are of: those with a counterfactual, or all if none are made."""
    control: Side
    test: Side
    factual: Side
    """Test groups around the complainants themselves, of situation testing."""
    pairs: Mapping[str, Pair]
    """Refusals in both groups, ``(len(ks), c)``, by variant; NaN where a group cannot be filled."""
    unfair: Floats | None
    """``(c,)`` as ``significance.unfair``, NaN without a counterfactual; None where decisions on them are not known."""

    def counted(self) -> "Comparison":
        """The same without who the neighbours are, which takes far more room than how many of them were refused."""
        nobody = situations.Members(np.zeros((0, 1), np.int32), np.zeros((0, 1)))
        sides = {name: getattr(self, name)._replace(members=nobody) for name in ("control", "test", "factual")}
        return replace(self, **sides)


def compare(ground: SearchSpace, group: int, row: Longs) -> Comparison:
    """Search both groups around complainants of one group, by every variant that there is something for.

    Args:
        ground: labels, places and counterfactuals.
        group: the complainants' group.
        row: ``(c,)`` the complainants, ascending; not necessarily all of the group.
    """
    control, others = control_of(ground, group, row), ground.others(group)
    st = _test(ground, others, row, ground.space.rows(row), None)
    pairs = {ST: situations.pair(control.alone, st.alone)}
    if ground.imagined is None:
        return Comparison(row, np.arange(len(row)), control, st, st, pairs, None)
    place, own = ground.imagined.of(row)
    test = _test(ground, others, own.row, own.space, own.refused)
    pairs = {CST: situations.pair(control.alone, test.alone.at(place, len(row))), **pairs}
    flag = None
    if own.refused is not None:
        pairs[CENTRED] = situations.pair(control.centred, test.centred.at(place, len(row)))
        flag = np.full(len(row), np.nan)
        flag[place] = unfair(ground.refused[own.row], own.refused)
    return Comparison(row, place, control, test, st, pairs, flag)


def control_of(ground: SearchSpace, group: int, row: Longs) -> Side:
    """The control groups of complainants ``(c,)`` of one group."""

    def side(near: Neighbours, some: slice) -> Side:
        return situations.control_side(near, row[some], ground.refused, ground.settings)

    return _around(ground.own(group), ground.space.rows(row), ground.settings, side)


def cst_pair(ground: SearchSpace, group: int, row: Longs, control: Counts) -> Pair:
    """Refusals in both groups by the variant without centres, where the control groups are known already."""
    if ground.imagined is None:
        raise ValueError("counterfactual situation testing needs counterfactuals, and there are none")
    place, own = ground.imagined.of(row)
    test = _test(ground, ground.others(group), own.row, own.space, None)
    return situations.pair(control, test.alone.at(place, len(row)))


def _test(ground: SearchSpace, others: Blocks | None, row: Longs, centres: Space, refused: Bools | None) -> Side:
    def side(near: Neighbours, some: slice) -> Side:
        decided = None if refused is None else refused[some]
        return situations.test_side(near, row[some], ground.refused, decided, ground.settings)

    return _around(others, centres, ground.settings, side)


def _around(
    blocks: Blocks | None, centres: Space, settings: CstSettings, side: Callable[[Neighbours, slice], Side]
) -> Side:
    """Search in batches, so that the neighbours of all complainants are never held at a time."""
    size, many = situations.length(settings), len(centres.numeric)
    if blocks is None or not many:
        none = Neighbours(np.full((many, size), situations.NOBODY), np.full((many, size), np.inf))
        return side(none, slice(None))
    batches = in_batches(blocks, centres, size, settings)
    return situations.joined([side(near, some) for some, near in batches])
