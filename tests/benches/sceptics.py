"""Lenders that a sceptic would try, with their truth: how often the state of similar applicants is right.

``PYTHONPATH=.:tests python tests/benches/sceptics.py RUNS [WORD]`` prints a line for each lender, or for those whose
name has the word. From arrays on it is the product's own code, as in ``evenhand bench verdicts``.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import expit

from research.bench.lenders import (
    HONEST,
    OPEN,
    OUTSIDE,
    Applied,
    Lender,
    Shape,
    decided_files,
    equal_files,
    numbered,
)
from research.bench.verdicts import Answer, answer_to
from schemas.terms import State
from tasks.methods.adjusted.algorithm.design import Control
from tasks.methods.adjusted.algorithm.parts import Split, split_of_number
from tasks.numerics.arrays import Bools, Floats, Ints

Draw = Callable[[np.random.Generator, int], Lender]


def with_control(lender: Lender, control: Control, *, place: bool = False) -> Lender:
    """The lender's file with one more column."""
    files = lender.files
    if place:
        return replace(lender, files=replace(files, places=(*files.places, control)))
    return replace(lender, files=replace(files, controls=(*files.controls, control)))


def with_number(lender: Lender, at: int, values: Floats) -> Lender:
    """The lender's file with other values of a number, which part the applicants as well."""
    control = replace(lender.files.controls[at], values=values)
    controls = tuple(control if place == at else c for place, c in enumerate(lender.files.controls))
    split = split_of_number(control.name, values)
    splits = tuple(split if s.column == control.name else s for s in lender.files.splits)
    return replace(lender, files=replace(lender.files, controls=controls, splits=splits))


def crossing(rng: np.random.Generator, n: int) -> Lender:
    """Harm in one cell of two columns alone: 8 % of the applicants are in it."""
    applied = Applied.drawn(rng, n)
    first, branch = rng.random(n) < 0.4, applied.purpose == 2
    base = expit(applied.index)
    chance = np.where(applied.member & first & branch, np.minimum(base + 0.35, 1), base)
    lender = decided_files(applied, chance, base, {"broker": (("no", "yes"), first.astype(np.int32))})
    return with_control(lender, Control("broker", "number", first.astype(np.float64)))


def officers(count: int, share: float, points: float) -> Draw:
    """A share of many officers denies more of the group."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        officer = rng.integers(0, count, n).astype(np.int32)
        base = expit(applied.index)
        harms = applied.member & (officer < count * share)
        lender = decided_files(
            applied,
            np.where(harms, np.minimum(base + points, 1), base),
            base,
            {"officer": (numbered("officer", count), officer)},
        )
        return replace(lender, files=replace(lender.files, cluster=officer))

    return draw


def opposite_groups(rng: np.random.Generator, n: int) -> Lender:
    """Two groups, one harmed and one favoured by as much; the harmed one is judged beside the other."""
    applied = Applied.drawn(rng, n, worse=0.0, share=0.4)
    favoured = applied.member & (rng.random(n) < 0.5)
    base = expit(applied.index)
    chance = expit(applied.index + 0.8 * (applied.member & ~favoured) - 0.8 * favoured)
    lender = decided_files(applied, chance, base)
    group = applied.member.astype(np.int32) + favoured
    truth = float((chance - base)[group == 1].mean())
    files = replace(lender.files, group=group, groups=("reference", "group", "other"))
    return Lender(files, truth)


def gaps(both: float, shift: float) -> Draw:
    """Money is missing where it is low, and more so of the denied, alike in both groups."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.0)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        money = lender.files.controls[0].values
        low = money < np.quantile(money, 0.5)
        gone = rng.random(n) < np.where(low, both, both / 4) * np.where(lender.files.denied, 1.5, 1.0)
        return with_number(lender, 0, np.where(gone, np.nan, money))

    return draw


def zip_number(strict: float) -> Draw:
    """Postcodes as a number without an order; some are strict with everybody, and most of the group live there."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        area = applied.area()
        chance = expit(applied.index + strict * (area < 4))
        share = float((area[~applied.member] < 4).mean())
        base = np.where(
            applied.member, share * expit(applied.index + strict) + (1 - share) * expit(applied.index), chance
        )
        codes = rng.permutation(np.arange(10_000, 99_999))[:12].astype(np.float64)
        lender = decided_files(applied, chance, base, {"zip": (numbered("zip", 12), area)})
        return with_control(lender, Control("zip", "number", codes[area]), place=True)

    return draw


def bands(shift: float) -> Draw:
    """Debt is given in four ordered bands, of groups that differ in debt."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.5)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        code = np.digitize(applied.numbers[:, 2], (28.0, 36.0, 44.0)).astype(np.int32)
        names = ("up to 28", "28 to 36", "36 to 44", "above 44")
        banded = Control("debt", "category", code.astype(np.float64), names, ordered=True)
        controls = tuple(banded if c.name == "debt" else c for c in lender.files.controls)
        splits = tuple(Split("debt", names, code) if s.column == "debt" else s for s in lender.files.splits)
        return replace(lender, files=replace(lender.files, controls=controls, splits=splits))

    return draw


def tiny(share: float, shift: float) -> Draw:
    """A group of one or two of a hundred."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, share=share)
        return decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))

    return draw


def all_denied(rng: np.random.Generator, n: int) -> Lender:
    """In one product every member is denied; elsewhere nobody is harmed."""
    applied = Applied.drawn(rng, n)
    base = expit(applied.index)
    return decided_files(applied, np.where(applied.member & (applied.purpose == 3), 1.0, base), base)


def all_denied_alike(rng: np.random.Generator, n: int) -> Lender:
    """A product that the lender never grants, to anybody."""
    applied = Applied.drawn(rng, n)
    base = np.where(applied.purpose == 3, 1.0, expit(applied.index))
    return decided_files(applied, base, base)


def copies_by_side(rng: np.random.Generator, n: int) -> Lender:
    """The denied files of the group stand three times in the file, under new numbers; no harm."""
    lender = equal_files(rng, n)
    again = np.flatnonzero(lender.files.denied & (lender.files.group == 1))
    return replace(lender, files=lender.files.taken(np.concatenate([np.arange(n), again, again])))


def cut_off(moved: float) -> Draw:
    """A cut-off on the score without noise; the group's is higher by some points of the score."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.2)
        score = applied.numbers[:, 1]
        base = (score < 640).astype(np.float64)
        return decided_files(applied, np.where(applied.member, score < 640 + moved, base).astype(np.float64), base)

    return draw


def thousands(shift: float) -> Draw:
    """Half of the incomes stand in thousands, alike in both groups."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.3)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        money = lender.files.controls[0].values
        return with_number(lender, 0, np.where(rng.random(n) < 0.5, money * 1000, money))

    return draw


def withdrawn(group: float, reference: float, shift: float) -> Draw:
    """Shares of the denials that are filed as withdrawn."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.0)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        ended = rng.random(n) < np.where(lender.files.denied, np.where(applied.member, group, reference), 0.03)
        files = replace(lender.files, denied=lender.files.denied & ~ended, undecided=ended)
        return replace(lender, files=files)

    return draw


def _two(rule: Callable[[Floats, Floats], Bools], own: float, others: float) -> Draw:
    """A rule on two ratios together, which go together more in the group."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.0)
        first, second = rng.standard_normal((2, n))
        rho = np.where(applied.member, own, others)
        second = rho * first + np.sqrt(1 - rho**2) * second
        base = np.where(rule(first, second), 0.7, expit(applied.index - 0.5))
        numbers = applied.numbers.copy()
        numbers[:, 2], numbers[:, 3] = 35 + 9 * first, 78 + 12 * second
        return decided_files(replace(applied, numbers=numbers), base, base)

    return draw


def reference_harm(rng: np.random.Generator, n: int) -> Lender:
    """The group is favoured: a one-sided question must not put it outside."""
    applied = Applied.drawn(rng, n)
    return decided_files(applied, expit(applied.index - 0.8 * applied.member), expit(applied.index))


def skewed(rng: np.random.Generator, n: int) -> Lender:
    """Money of a Pareto law, with a floor; no harm."""
    applied = Applied.drawn(rng, n)
    money = 40 * (rng.pareto(2.2, n) + 1) * np.exp(-0.3 * applied.member)
    base = np.where(money < 45, 0.6, expit(applied.index))
    numbers = applied.numbers.copy()
    numbers[:, 0] = np.round(money, 1)
    return decided_files(replace(applied, numbers=numbers), base, base)


def seldom(times: float) -> Draw:
    """One of two hundred is denied, the group so many times as often."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, level=-6.57, share=0.3)
        base = expit(applied.index)
        return decided_files(applied, np.where(applied.member, np.minimum(times * base, 1), base), base)

    return draw


def _late(code: Ints, first: int) -> Floats:
    return (code >= first).astype(np.float64)


def late_harm(rng: np.random.Generator, n: int) -> Lender:
    """Harm from October on, months as a part alone."""
    applied = Applied.drawn(rng, n)
    quarter = rng.integers(0, 4, n).astype(np.int32)
    chance = expit(applied.index + 1.6 * _late(quarter, 3) * applied.member)
    return decided_files(applied, chance, expit(applied.index), {"quarter": (numbered("quarter", 4), quarter)})


def _with_flag(lender: Lender, name: str, flag: Bools) -> Lender:
    """The lender's file with a flag that the rule sees; it parts the applicants as well if it is among the splits."""
    return with_control(lender, Control(name, "number", flag.astype(np.float64)))


def small_branch(rng: np.random.Generator, n: int) -> Lender:
    """Harm in one branch of 25 alone, which serves some 60 members."""
    applied = Applied.drawn(rng, n)
    branch = rng.integers(0, 25, n).astype(np.int32)
    base = expit(applied.index)
    chance = np.where(applied.member & (branch == 3), np.minimum(base + 0.35, 1), base)
    return decided_files(applied, chance, base, {"branch": (numbered("branch", 25), branch)})


def co_applicants(rng: np.random.Generator, n: int) -> Lender:
    """Harm among those who apply with somebody else."""
    applied = Applied.drawn(rng, n)
    joint = rng.random(n) < 0.35
    base = expit(applied.index - 0.3 * joint)
    chance = expit(applied.index - 0.3 * joint + 1.4 * (joint & applied.member))
    lender = decided_files(applied, chance, base, {"applicants": (("one", "two"), joint.astype(np.int32))})
    return _with_flag(lender, "applicants", joint)


def threshold(points: float) -> Draw:
    """All are denied above a debt of 43; the group is worse off, and has its cap so many points lower."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.5)
        debt = applied.numbers[:, 2]
        base = np.where(debt > 43, 0.97, expit(applied.index))
        chance = np.where(applied.member & (debt > 43 - points), 0.97, base)
        return decided_files(applied, chance, base)

    return draw


def incomes_of_one_group(shift: float) -> Draw:
    """Two of five members have no income in the file, whatever was decided; nobody else lacks it."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        gone = applied.member & (rng.random(n) < 0.4)
        return with_number(lender, 0, np.where(gone, np.nan, lender.files.controls[0].values))

    return draw


def group_withdraws(rng: np.random.Generator, n: int) -> Lender:
    """A fifth of the group withdraw before anybody decides, and one in fifty of the others; no harm."""
    lender = equal_files(rng, n)
    ended = rng.random(n) < np.where(lender.files.group == 1, 0.2, 0.02)
    return replace(lender, files=replace(lender.files, denied=lender.files.denied & ~ended, undecided=ended))


def rare_product(rng: np.random.Generator, n: int) -> Lender:
    """One of a hundred is denied; in one purpose members are denied ten times as often."""
    applied = Applied.drawn(rng, n, level=-5.8)
    base = expit(applied.index)
    return decided_files(
        applied, np.where(applied.member & (applied.purpose == 1), np.minimum(10 * base, 1), base), base
    )


def thirty_twice(rng: np.random.Generator, n: int) -> Lender:
    """Thirty denied files of the group stand twice in the file; no harm."""
    lender = equal_files(rng, n)
    again = np.flatnonzero(lender.files.denied & (lender.files.group == 1))[:30]
    return replace(lender, files=lender.files.taken(np.concatenate([np.arange(n), again])))


def hidden_by_place(rng: np.random.Generator, n: int) -> Lender:
    """Most members live where the lender is lenient, and are harmed everywhere: both add up to about nothing."""
    applied = Applied.drawn(rng, n, worse=0.0)
    shares = [0.45, 0.35, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]
    area = np.where(applied.member, *(rng.choice(4, n, p=share) for share in shares)).astype(np.int32)
    lenient = np.where(area < 2, -1.3, 0.5)
    chance = expit(applied.index + lenient + 1.3 * applied.member)
    inside = np.array([0.1, 0.1, 0.4, 0.4]) @ expit(applied.index + np.array([-1.3, -1.3, 0.5, 0.5])[:, None])
    base = np.where(applied.member, inside, chance)
    lender = decided_files(applied, chance, base, {"area": (numbered("area", 4), area)})
    return with_control(lender, Control("area", "category", area.astype(float), numbered("area", 4)), place=True)


def by_money(rng: np.random.Generator, n: int) -> Lender:
    """Harm of those with little money and as much favour of those with much."""
    applied = Applied.drawn(rng, n, worse=0.0)
    money = np.log(applied.numbers[:, 0])
    third = np.searchsorted(np.quantile(money, [1 / 3, 2 / 3]), money)
    shift = np.array([1.2, 0.0, -1.6])[third] * applied.member
    return decided_files(applied, expit(applied.index + shift), expit(applied.index))


def of_three(harmed: int) -> Draw:
    """Three groups beside the reference, of which one alone is harmed; the first is judged."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, share=0.5)
        group = np.where(applied.member, rng.integers(1, 4, n), 0).astype(np.int32)
        base = expit(applied.index)
        chance = expit(applied.index + 0.9 * (group == harmed))
        lender = decided_files(applied, chance, base)
        files = replace(lender.files, group=group, groups=("reference", "group", "second", "third"))
        return Lender(files, float((chance - base)[group == 1].mean()))

    return draw


def rate_floor(rng: np.random.Generator, n: int) -> Lender:
    """Members pay a higher rate, which puts more of them above the cap of debt; the file has the debt before it."""
    applied = Applied.drawn(rng, n)
    debt = applied.numbers[:, 2]
    paid = debt + 4 * applied.member
    base, chance = (np.where(of > 40, 0.9, expit(applied.index - 0.5)) for of in (debt, paid))
    return decided_files(applied, chance, base)


def coarse_rules(rng: np.random.Generator, n: int) -> Lender:
    """No harm; whole numbers, few values of collateral, and rules on two of them at once."""
    applied = Applied.drawn(rng, n, worse=0.5)
    numbers = applied.numbers.copy()
    numbers[:, 1] = 20 * np.round(numbers[:, 1] / 20)
    numbers[:, 2] = np.round(numbers[:, 2])
    numbers[:, 3] = np.array([60.0, 80, 90, 95, 97])[np.searchsorted([70, 82, 90, 95], numbers[:, 3])]
    both = (numbers[:, 2] > 43) & (numbers[:, 1] < 670)
    base = np.where(
        both, 0.8, np.where((numbers[:, 3] >= 95) & (applied.purpose == 1), 0.6, expit(applied.index - 0.6))
    )
    return decided_files(replace(applied, numbers=numbers), base, base)


def women(rng: np.random.Generator, n: int) -> Lender:
    """Women of the group alone are harmed; sex is another protected attribute."""
    applied = Applied.drawn(rng, n)
    woman = rng.random(n) < 0.4
    lender = decided_files(applied, expit(applied.index + 1.1 * (woman & applied.member)), expit(applied.index))
    split = Split("sex", ("men", "women"), woman.astype(np.int32), attribute=True)
    return replace(lender, files=replace(lender.files, splits=(*lender.files.splits, split)))


def not_taken(share: float, shift: float) -> Draw:
    """A share of the approvals of the group is not taken, and one in thirty of the others: no decision in the file."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        ended = ~lender.files.denied & (rng.random(n) < np.where(applied.member, share, 0.03))
        return replace(lender, files=replace(lender.files, undecided=ended))

    return draw


def withdrawn_by_reference(rng: np.random.Generator, n: int) -> Lender:
    """Most denials of the reference group are filed as withdrawn; no harm."""
    lender = equal_files(rng, n)
    ended = rng.random(n) < np.where(lender.files.denied & (lender.files.group == 0), 0.6, 0.03)
    return replace(lender, files=replace(lender.files, denied=lender.files.denied & ~ended, undecided=ended))


def without_score(shift: float) -> Draw:
    """Thin files have no score, the group has more of them, and they are denied more often; members' are harmed."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        thin = rng.random(n) < np.where(applied.member, 0.3, 0.08)
        base = expit(applied.index + 0.6 * thin)
        chance = expit(applied.index + 0.6 * thin + shift * (thin & applied.member))
        return with_number(decided_files(applied, chance, base), 1, np.where(thin, np.nan, applied.numbers[:, 1]))

    return draw


def inflated_scores(shift: float) -> Draw:
    """Scores rise over the year, the lender knows it, and members apply later than others."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        quarter = np.where(applied.member, rng.choice(4, n, p=(0.1, 0.15, 0.3, 0.45)), rng.choice(4, n))
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        lender = with_number(lender, 1, np.round(applied.numbers[:, 1] + 20 * quarter, 1))
        dates = Split("date (quarter)", numbered("quarter", 4), quarter.astype(np.int32), time=True)
        return replace(lender, files=replace(lender.files, splits=(*lender.files.splits, dates)))

    return draw


def filled_scores(shift: float) -> Draw:
    """A score of 9999 stands for none, oftener in the group, and the lender denies such files more often."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        none = rng.random(n) < np.where(applied.member, 0.12, 0.03)
        index = applied.index + 0.7 * none
        lender = decided_files(applied, expit(index + shift * applied.member), expit(index))
        return with_number(lender, 1, np.where(none, 9999.0, applied.numbers[:, 1]))

    return draw


def score_floor(rng: np.random.Generator, n: int) -> Lender:
    """Members below a score are hardly ever approved; nobody else has such a floor."""
    applied = Applied.drawn(rng, n, worse=0.2)
    base = expit(applied.index)
    below = applied.member & (applied.numbers[:, 1] < 630)
    return decided_files(applied, np.where(below, np.maximum(base, 0.95), base), base)


HARM = (OUTSIDE,)
OPEN_OR_OUTSIDE = (OPEN, OUTSIDE)
SCEPTICS = (
    Shape("harm in a crossing of two columns", 6000, crossing, OPEN_OR_OUTSIDE),
    Shape("3 of 60 officers harm", 6000, officers(60, 0.05, 0.4), OPEN_OR_OUTSIDE),
    Shape("all of 60 officers harm", 6000, officers(60, 1.0, 0.08), HARM, harms=True),
    Shape("60 officers, no harm", 6000, officers(60, 0.0, 0.0), HONEST),
    Shape("two groups, opposite harm", 6000, opposite_groups, HARM, harms=True),
    Shape("low incomes missing in both, no harm", 6000, gaps(0.3, 0.0), HONEST),
    Shape("low incomes missing in both, harm", 6000, gaps(0.3, 1.0), OPEN_OR_OUTSIDE),
    Shape("zip as a number, strict", 6000, zip_number(1.4), HARM, ("place",), harms=True),
    Shape("zip as a number, no harm", 6000, zip_number(0.0), HONEST),
    Shape("bands, no harm", 6000, bands(0.0), HONEST),
    Shape("bands, harm", 6000, bands(0.9), HARM, harms=True),
    Shape("group of 1 %, no harm", 6000, tiny(0.01, 0.0), HONEST),
    Shape("group of 2 %, harm", 6000, tiny(0.02, 1.2), OPEN_OR_OUTSIDE),
    Shape("all denied in a part", 6000, all_denied, HARM, harms=True),
    Shape("a product denied to all, no harm", 6000, all_denied_alike, HONEST),
    Shape("denied files of the group copied", 4000, copies_by_side, HONEST, ("copies",)),
    Shape("cut-off alike, no noise", 4000, cut_off(0.0), HONEST),
    Shape("cut-off moved, no noise", 4000, cut_off(25.0), HARM, harms=True),
    Shape("half of incomes in thousands, no harm", 6000, thousands(0.0), HONEST),
    Shape("half of incomes in thousands, harm", 6000, thousands(0.9), HARM, harms=True),
    Shape("denials of both withdrawn, no harm", 6000, withdrawn(0.3, 0.3, 0.0), HONEST),
    Shape("denials of the group withdrawn, harm", 6000, withdrawn(0.8, 0.05, 1.0), OPEN_OR_OUTSIDE),
    Shape("two ratios together, no harm", 6000, _two(lambda a, b: (a > 0.5) & (b > 0.5), 0.6, 0.0), HONEST),
    Shape("the group favoured", 6000, reference_harm, HONEST),
    Shape("Pareto incomes with a floor, no harm", 6000, skewed, HONEST),
    Shape("0.5 % denied, three times", 6000, seldom(3.0), OPEN_OR_OUTSIDE),
    Shape("0.5 % denied, alike", 6000, seldom(1.0), HONEST),
    Shape("harm in the last quarter", 6000, late_harm, HARM, harms=True),
    Shape("0.5 % denied, 1.5 times", 6000, seldom(1.5), HONEST),
    Shape("0.5 % denied, twice: at the limit", 6000, seldom(2.0), OPEN_OR_OUTSIDE),
    Shape("one small branch harms", 6000, small_branch, OPEN_OR_OUTSIDE),
    Shape("co-applicants harmed", 6000, co_applicants, HARM, ("part",), part="applicants: two", harms=True),
    Shape("a cap of debt, no harm", 6000, threshold(0.0), HONEST),
    Shape("a lower cap of debt", 6000, threshold(4.0), HARM, harms=True),
    Shape("incomes missing in the group, no harm", 6000, incomes_of_one_group(0.0), HONEST),
    Shape("incomes missing in the group, harm", 6000, incomes_of_one_group(0.9), HARM, harms=True),
    Shape("a fifth of the group withdraw, no harm", 6000, group_withdraws, (OPEN,), ("undecided",)),
    Shape("1 % denied, ten times in one purpose", 12000, rare_product, HARM, harms=True),
    Shape("thirty denied files twice, no harm", 6000, thirty_twice, HONEST, ("copies",)),
    Shape("harm hidden by lenient places", 6000, hidden_by_place, HARM, ("part",), harms=True),
    Shape("little money harmed, much favoured", 6000, by_money, HARM, ("part",), harms=True),
    Shape("one of three groups harmed", 6000, of_three(1), HARM, harms=True),
    Shape("beside a group that is harmed", 6000, of_three(2), HONEST),
    Shape("a rate floor puts members above a cap", 6000, rate_floor, HARM, harms=True),
    Shape("coarse numbers and rules of two, no harm", 6000, coarse_rules, HONEST),
    Shape("women of the group harmed", 6000, women, HARM, ("part",), part="sex: women", harms=True),
    Shape("two of five approvals not taken, no harm", 5000, not_taken(0.4, 0.0), (OPEN,), ("undecided",)),
    Shape("an eighth of approvals not taken, no harm", 5000, not_taken(0.12, 0.0), HONEST),
    Shape("approvals not taken, harm", 5000, not_taken(0.15, 0.9), HARM, harms=True),
    Shape("denials of the others withdrawn, no harm", 5000, withdrawn_by_reference, (OPEN,), ("undecided",)),
    Shape("thin files without a score, no harm", 6000, without_score(0.0), HONEST),
    Shape("thin files without a score harmed", 6000, without_score(1.5), OPEN_OR_OUTSIDE, ("missing",)),
    Shape("scores rise, the group later, no harm", 6000, inflated_scores(0.0), HONEST),
    Shape("scores rise, the group later, harm", 6000, inflated_scores(0.9), HARM, harms=True),
    Shape("9999 for no score, no harm", 6000, filled_scores(0.0), HONEST),
    Shape("9999 for no score, harm", 6000, filled_scores(0.9), HARM, harms=True),
    Shape("a floor of the score for the group", 6000, score_floor, HARM, ("part",), harms=True),
)


def tried(shape: Shape, runs: int, first: int = 0) -> list[tuple[Answer, float]]:
    """Answers to lenders of a shape, each with the error of its estimate."""
    out = []
    for run in range(first, first + runs):
        lender = shape.draw(np.random.default_rng([43, SCEPTICS.index(shape), run]), shape.rows)
        answer = answer_to(lender, run)
        value = answer.facts.row["value"]
        out.append((answer, float("nan") if value is None else value - lender.effect))
    return out


def line(shape: Shape, runs: int) -> str:
    """The states of a shape, how many are right, the bias and the coverage of the interval or the hull."""
    answers = tried(shape, runs)
    states = Counter(answer.state for answer, _ in answers)
    kinds = Counter(kind for answer, _ in answers for kind in answer.kinds)
    right = sum(answer.state in shape.states and set(shape.finds) <= set(answer.kinds) for answer, _ in answers) / runs
    shares = ", ".join(f"{state} {states[state] / runs:.2f}" for state in ("outside", "within", "inconclusive"))
    words = ", ".join(f"{kind} {count / runs:.2f}" for kind, count in kinds.items()) or "none"
    bias = 100 * float(np.nanmean([error for _, error in answers]))
    covered = np.mean([answer.covered for answer, _ in answers])
    unreliable = sum(answer.verdict.state is State.UNRELIABLE for answer, _ in answers) / runs
    return f"| {shape.name} | {right:.2f} | {shares} | {bias:+.1f} | {covered:.2f} | {words} | {unreliable:.2f} |"


def main(runs: str, word: str = "") -> None:
    """Print the table."""
    for shape in SCEPTICS:
        if word in shape.name:
            sys.stdout.write(f"{line(shape, int(runs))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
