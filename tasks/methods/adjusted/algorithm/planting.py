"""Harm planted in a file, and honest copies of the file without any.

An honest copy draws labels of the group and of the reference group anew among applicants of like risk: decisions tell
nothing of the group beyond the columns. Each row stays once, since terms of the rule are found by tests that take rows
as different people: copied rows make them find terms of chance, and the effect vary by a quarter more. What chance
did in this file alone goes out: a stratum that was denied more often than a smooth rule says has as many decisions
turned, and gaps that do not depend on the decision fall on other applicants. Planted harm turns approvals of the group
into denials at random. Gaps, and applications without a decision, stay as common as they are in either group.

Scope: arrays in, arrays out. How often a copy is called outside: ``adjust.power``.
"""

from dataclasses import dataclass, replace

import numpy as np

from tasks.methods.adjusted.algorithm.design import Control, build_design, complete_rows
from tasks.methods.adjusted.algorithm.examined import Files
from tasks.methods.adjusted.algorithm.expected import rule_of
from tasks.methods.adjusted.algorithm.readings import DEPENDS, p_of_dependence
from tasks.numerics.arrays import Bools, Floats, Ints, Longs

STRATA = 30
"""Of the chance of denial, each with as many applications (as for the strata of a propensity)."""
ROWS_A_STRATUM = 20
"""With fewer on average there are fewer strata."""
FEWEST_IN_CLUSTER = 10
"""Applications of a cluster that may stand for another one."""
NEAR = 3
"""So many applicants of next higher, and of next lower, risk of a cluster may stand for one of another cluster."""


def risk_of(files: Files) -> Floats:
    """``(n,)`` chance of denial by the rule of the reference group's decided files, gaps filled; NaN where unusable.

    It makes strata alone, and enters no estimate.
    """
    rows, x = _filled(files)
    return _chance(files, rows, x, (files.group[rows] == files.reference) & ~files.undecided[rows])


def _filled(files: Files) -> tuple[Bools, Floats]:
    """``(n,)`` usable rows once gaps are filled, and their columns without those of groups."""
    filled = replace(files, controls=tuple(without_gaps(control) for control in files.controls))
    applications = filled.applications()
    rows = complete_rows(applications)
    design = build_design(applications, rows, "squared")
    return rows.used, design.x[:, np.r_[0, design.first_control : design.x.shape[1]]]


def _chance(files: Files, rows: Bools, x: Floats, fitted: Bools, weight: Floats | None = None) -> Floats:
    """``(n,)`` chance of denial by a logit that is fitted to some of the usable rows; NaN of the others."""
    risk = np.full(len(files.denied), np.nan)
    if fitted.any():
        risk[rows] = rule_of(x, files.denied[rows].astype(np.float64), fitted, weight).p0
    return risk


def without_gaps(control: Control) -> Control:
    """A control without gaps: the median of a number, the commonest category."""
    finite = np.isfinite(control.values)
    if finite.all() or not finite.any():
        return control
    levels, counts = np.unique(control.values[finite], return_counts=True)
    middle = np.median(control.values[finite]) if control.kind == "number" else levels[counts.argmax()]
    return replace(control, values=np.where(finite, control.values, middle))


@dataclass(frozen=True)
class Law:
    """What all honest copies of a file are drawn by."""

    risk: Floats
    """``(n,)`` chance of denial, gaps filled; NaN where unusable."""
    kind: Ints
    """``(n,)`` what is never drawn for each other: with and without a decision, inside and outside a part."""
    strata: Ints
    """``(n,)`` stratum of each row of a group and of the reference group; -1 of all others."""
    drawn: Bools
    """``(n,)`` rows that copies are made of; the others count for their stratum alone."""
    turns: Floats
    """``(n,)`` chance that a row's decision turns, so that its stratum is denied as often as a smooth rule says."""
    gaps_by_chance: bool
    """Whether gaps do not depend on the decision, and fall on any applicant of a group."""


def law_of(files: Files, group: int, part: Bools | None = None) -> Law:
    """The law of honest copies.

    Strata are of like chance of denial. Applications without a decision have strata of their own, and so has a part.
    Files that lack a column have their own where gaps depend on the decision; where they do not, copies are made of
    complete files, and gaps are drawn anew.

    Args:
        files: all applications.
        group: which gets other labels.
        part: ``(n,)`` rows of a part that keeps its number of members.
    """
    either, member = (files.group == group) | (files.group == files.reference), files.group == group
    usable, x = _filled(files)
    decided = ~files.undecided
    risk = _chance(files, usable, x, (files.group[usable] == files.reference) & decided[usable])
    complete = np.ones(len(risk), np.bool_)
    for control in files.controls:
        complete &= np.isfinite(control.values)
    sides = [either & decided & (member == side) for side in (True, False)]
    outcome = files.denied.astype(np.int32)
    by_chance = min(1.0, 2 * min(p_of_dependence(complete, outcome, side) for side in sides)) >= DEPENDS
    kind = np.where(files.undecided, 2, np.where(complete | by_chance, 0, 1))
    kind = kind + 3 * (0 if part is None else part.astype(np.int64))
    strata = np.full(len(risk), -1, np.int32)
    first = 0
    for number in np.unique(kind[either]):
        rows = either & (kind == number)
        rated = rows & np.isfinite(risk)
        count = max(1, min(STRATA, int(rated.sum()) // ROWS_A_STRATUM))
        ends = np.quantile(risk[rated], np.arange(1, count) / count) if rated.any() else np.zeros(0)
        strata[rows] = first + count
        strata[rated] = first + np.searchsorted(ends, risk[rated], side="right")
        first += count + 1
    usable_rows = (strata >= 0) & (complete | files.undecided | (not by_chance))
    has_drawn = np.bincount(strata[usable_rows], minlength=first) > 0
    usable_rows |= (strata >= 0) & ~has_drawn[strata]
    turns = np.zeros(len(strata))
    if part is None:  # the strata of a part are small, and its copies would vary less than new lenders do
        turns = _turns(files, member, strata, usable_rows & decided, (usable, x))
    return Law(risk, kind.astype(np.int32), strata, usable_rows, turns, by_chance)


def _turns(files: Files, member: Bools, strata: Ints, rows: Bools, columns: tuple[Bools, Floats]) -> Floats:
    """``(n,)`` chance that a decision turns: a stratum is denied as often as a rule of honest copies expects of it.

    That rule is fitted to all rows, each weighted by the share of its stratum that stays in the reference group: what
    copies without end would give. How often a stratum of a few dozen rows was denied beyond it is chance of this file.
    """
    usable, x = columns
    inside = rows & usable
    code, count = strata[inside], int(strata.max(initial=0)) + 1
    size = np.maximum(np.bincount(code, minlength=count), 1)
    stays = 1 - np.bincount(code, member[inside], count) / size
    weight = np.where(inside, stays[np.maximum(strata, 0)], 0.0)[usable]
    turns = np.zeros(len(strata))
    if not (weight > 0).any() or len(np.unique(files.denied[inside])) < 2:
        return turns
    chance = _chance(files, usable, x, weight > 0, np.maximum(weight, 1e-6))
    denied, expected = (np.bincount(code, of[inside], count) / size for of in (files.denied, chance))
    too_many = np.where(denied > expected, (denied - expected) / np.maximum(denied, 1e-12), 0.0)
    too_few = np.where(denied < expected, (expected - denied) / np.maximum(1 - denied, 1e-12), 0.0)
    turns[inside] = np.where(files.denied[inside], too_many[code], too_few[code])
    return turns


def honest(files: Files, group: int, law: Law, rng: np.random.Generator) -> tuple[Files, Longs]:
    """A copy of the file without harm to a group, and the ``(n,)`` rows of the file that it is made of.

    In each stratum as many rows are labelled as of the group as it has members there. A row that copies are not made of
    gives way to another one of its stratum. Where rows hang together, applicants of a large cluster are drawn from
    those of like risk of another large one: a group that is mostly served by a few officers stays so, and what these
    officers are like is drawn anew.

    Args:
        files: all applications.
        group: which gets other labels.
        law: as ``law_of`` gives it.
        rng: draws rows, labels, turned decisions and gaps.
    """
    strata, inside = law.strata, law.strata >= 0
    rows, labels = np.arange(len(strata)), files.group.copy()
    crowded = _crowded(files.cluster, inside)
    order = np.flatnonzero(inside & ~crowded)
    order = order[np.argsort(strata[order], kind="stable")]
    if len(order):
        stratum, member = strata[order], files.group[order] == group
        length = int(stratum.max()) + 1
        counts, sizes = (np.bincount(stratum, weights, length) for weights in (member, None))
        first = np.cumsum(sizes) - sizes
        rows[order] = np.where(law.drawn[order], order, _of_stratum(law, stratum, order, rng))
        ranked = np.lexsort((rng.random(len(order)), stratum))
        chosen = np.zeros(len(order), np.bool_)
        chosen[ranked] = np.arange(len(order)) - first[stratum] < counts[stratum]
        labels[order] = np.where(chosen, group, files.reference)
    if files.cluster is not None and crowded.any():
        slots = np.flatnonzero(crowded)
        rows[slots] = _of_other_clusters(files.cluster, law, slots, rng)
    changed = np.flatnonzero(inside)
    copy = files.taken(rows)
    turned = np.zeros(len(rows), np.bool_)
    turned[changed] = rng.random(len(changed)) < law.turns[rows[changed]]
    copy = replace(copy, group=labels, denied=copy.denied ^ turned)
    return (_with_gaps(copy, files, changed, rng) if law.gaps_by_chance else copy), rows


def _crowded(cluster: Ints | None, inside: Bools) -> Bools:
    """``(n,)`` rows of clusters that are large enough to take the place of another one."""
    if cluster is None:
        return np.zeros(len(inside), np.bool_)
    clustered = inside & (cluster >= 0)
    size = np.bincount(cluster[clustered], minlength=int(cluster.max(initial=0)) + 1)
    return clustered & (size[np.maximum(cluster, 0)] >= FEWEST_IN_CLUSTER)


def _of_stratum(law: Law, stratum: Ints, places: Longs, rng: np.random.Generator) -> Longs:
    """``(m,)`` a row for each place, drawn with replacement from those of its stratum at such places."""
    among = np.zeros(len(law.strata), np.bool_)
    among[places] = True
    needs_rows = np.bincount(stratum, minlength=int(law.strata.max()) + 1) > 0
    has_rows = np.bincount(law.strata[among & law.drawn], minlength=len(needs_rows)) > 0
    inside = law.strata >= 0
    lacks = needs_rows & ~has_rows  # all of its rows at such places lack a column: any row of the stratum will do
    pool = np.flatnonzero(inside & law.drawn & (among | lacks[np.maximum(law.strata, 0)]))
    pool = pool[np.argsort(law.strata[pool], kind="stable")]
    pooled = np.bincount(law.strata[pool], minlength=len(needs_rows))
    start = np.cumsum(pooled) - pooled
    chosen_rows: Longs = pool[start[stratum] + np.floor(rng.random(len(stratum)) * pooled[stratum]).astype(np.int64)]
    return chosen_rows


def _of_other_clusters(cluster: Ints, law: Law, slots: Longs, rng: np.random.Generator) -> Longs:
    """``(m,)`` a row for each place in a large cluster, of like risk, from the large cluster that takes its place.

    It is of the same kind: with or without a decision, inside or outside the part. A cluster without any of that kind
    gives none, and the place takes a row of its stratum.
    """
    numbers = np.unique(cluster[slots])
    other = dict(zip(numbers.tolist(), rng.permutation(numbers).tolist(), strict=True))
    risk = np.nan_to_num(law.risk, nan=0.5)
    pool = slots[law.drawn[slots]]
    cell = cluster.astype(np.int64) * (int(law.kind.max()) + 1) + law.kind
    pool = pool[np.lexsort((risk[pool], cell[pool]))]
    cells, first, size = np.unique(cell[pool], return_index=True, return_counts=True)
    where = {int(number): place for place, number in enumerate(cells)}
    width = int(law.kind.max()) + 1
    out, lacking = slots.copy(), []
    order = np.argsort(cell[slots], kind="stable")
    ends = np.flatnonzero(np.diff(cell[slots][order])) + 1
    for places in np.split(order, ends):
        number, kind = divmod(int(cell[slots[places[0]]]), width)
        place = where.get(other[number] * width + kind)
        if place is None:
            lacking.append(places)
            continue
        rows = pool[first[place] : first[place] + size[place]]
        near = np.searchsorted(risk[rows], risk[slots[places]]) + rng.integers(-NEAR, NEAR + 1, len(places))
        out[places] = rows[np.clip(near, 0, len(rows) - 1)]
    if lacking:
        rest = np.concatenate(lacking)
        out[rest] = _of_stratum(law, law.strata[slots[rest]], slots[rest], rng)
    return out


def _with_gaps(copy: Files, files: Files, rows: Longs, rng: np.random.Generator) -> Files:
    """The copy with the gaps of decided files of the same group, each drawn at random, in some of its rows."""
    donors = np.arange(len(files.denied))
    for label in np.unique(copy.group[rows]):
        places = rows[(copy.group[rows] == label) & ~copy.undecided[rows]]
        like = np.flatnonzero((files.group == label) & ~files.undecided)
        if len(like):
            donors[places] = rng.choice(like, len(places))
    decided = np.zeros(len(donors), np.bool_)
    decided[rows] = ~copy.undecided[rows]
    controls, gaps = [], {}
    for control, original in zip(copy.controls, files.controls, strict=True):
        gone = decided & ~np.isfinite(original.values[donors])
        gaps[control.name] = gone
        controls.append(replace(control, values=np.where(gone, np.nan, control.values)) if gone.any() else control)
    splits = tuple(
        replace(split, code=np.where(gaps[split.column], original.code[donors], split.code))
        if split.column in gaps
        else split
        for split, original in zip(copy.splits, files.splits, strict=True)
    )
    return replace(copy, controls=tuple(controls), splits=splits)


def harmed(files: Files, group: int, points: float, draw: Floats, part: Bools | None = None) -> Files:
    """The file with approvals of a group, or of a part of it, turned into denials.

    Every approval turns with the same chance, so that ``points`` of the decided members more are denied on average;
    all of them where fewer were approved.

    Args:
        files: all applications.
        group: which is harmed.
        points: share of the decided members.
        draw: ``(n,)`` uniform; an approval turns where it is below the chance.
        part: ``(n,)`` rows of the part.
    """
    members = (files.group == group) & ~files.undecided
    if part is not None:
        members &= part
    approved = members & ~files.denied
    chance = points * members.sum() / max(int(approved.sum()), 1)
    return replace(files, denied=files.denied | (approved & (draw < chance)))
