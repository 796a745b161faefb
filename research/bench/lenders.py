"""Planted lenders with the truth of each: a mean hides their harm, or their file misleads.

A lender draws applicants of two groups, decides on them by a known chance of denial, and may then spoil its file. The
truth is the mean over the group's members of that chance, less what a reference applicant with the same recorded
characteristics would have.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit

from tasks.methods.adjusted.algorithm.design import Control
from tasks.methods.adjusted.algorithm.examined import Files
from tasks.methods.adjusted.algorithm.parts import Split, split_of_number
from tasks.numerics.arrays import Bools, Floats, Ints

GROUPS = ("reference", "group")
PURPOSES = ("home purchase", "refinancing", "repairs", "cash")
AREAS, OFFICERS, TEAM = 12, 10, 30
STRICTER = 1.2
"""Log odds of denial from the first quarter to the last, of a lender that gets stricter."""
OUTSIDE, WITHIN, OPEN = "outside", "within", "inconclusive"


@dataclass(frozen=True)
class Applied:
    """Applicants before anybody decided: money, score, debt and collateral, and what the loan is for."""

    rng: np.random.Generator
    member: Bools
    numbers: Floats
    """``(n, 4)``."""
    purpose: Ints
    index: Floats
    """Log odds of denial by the rule that all applicants meet."""

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, n: int, *, worse: float = 0.3, level: float = -1.9, share: float = 0.25
    ) -> "Applied":
        """``n`` applicants, the group's finances worse by ``worse`` standard deviations."""
        member = rng.random(n) < share
        money, own, debt, home = rng.standard_normal((4, n))
        money -= 0.6 * worse * member
        score = 0.5 * money + 0.85 * own - 0.5 * worse * member
        debt = 0.95 * debt - 0.3 * money + 0.3 * worse * member
        purpose = rng.choice(len(PURPOSES), n, p=(0.4, 0.3, 0.2, 0.1)).astype(np.int32)
        by_purpose = np.array([0.0, 0.2, 0.4, 0.5])[purpose]
        index = level - 0.3 * money - 0.8 * score + 0.5 * debt + 0.35 * home + by_purpose
        numbers = np.column_stack([np.exp(4.3 + 0.45 * money), 690 + 60 * score, 35 + 9 * debt, 78 + 12 * home])
        return cls(rng, member, np.round(numbers, 1), purpose, index)

    def area(self) -> Ints:
        """An area of each applicant; most of the group live in the first four."""
        crowded = np.array([0.16] * 4 + [0.36 / 8] * 8)
        apart = np.array([0.03] * 4 + [0.88 / 8] * 8)
        n = len(self.member)
        places = self.rng.choice(AREAS, n, p=crowded), self.rng.choice(AREAS, n, p=apart)
        return np.where(self.member, *places).astype(np.int32)


@dataclass(frozen=True)
class Lender:
    """A file with its truth."""

    files: Files
    effect: float
    """Share of the members who are denied beyond the rule for the reference group."""


def decided_files(
    applied: Applied, chance: Floats, base: Floats, extra: Mapping[str, tuple[tuple[str, ...], Ints]] | None = None
) -> Lender:
    """The file of a lender who denies with these chances.

    Args:
        applied: the applicants.
        chance: of denial.
        base: the chance for a reference applicant who is alike.
        extra: column -> levels and code of what parts the applicants.
    """
    names = ("money", "score", "debt", "home")
    controls = [Control(name, "number", column) for name, column in zip(names, applied.numbers.T, strict=True)]
    controls[0] = replace(controls[0], scale="log")
    controls.append(Control("purpose", "category", applied.purpose.astype(np.float64), PURPOSES))
    splits = [split_of_number(name, column) for name, column in zip(names, applied.numbers.T, strict=True)]
    splits.append(Split("purpose", PURPOSES, applied.purpose))
    splits += [Split(name, levels, code) for name, (levels, code) in (extra or {}).items()]
    denied = applied.rng.random(len(chance)) < chance
    none = np.zeros(len(chance), np.bool_)
    group = applied.member.astype(np.int32)
    files = Files(denied, none, group, GROUPS, 0, tuple(controls), splits=tuple(splits))
    return Lender(files, float((chance - base)[applied.member].mean()))


def numbered(word: str, count: int) -> tuple[str, ...]:
    """Names of levels, counted from 1."""
    return tuple(f"{word} {place + 1}" for place in range(count))


def opposed_files(rng: np.random.Generator, n: int) -> Lender:
    """Harm in one purpose and favour in another."""
    applied = Applied.drawn(rng, n)
    shift = np.array([-1.3, 1.4, 0.0, 0.0])[applied.purpose] * applied.member
    return decided_files(applied, expit(applied.index + shift), expit(applied.index))


def thin_files(rng: np.random.Generator, n: int) -> Lender:
    """Harm among applicants with a thin file alone."""
    applied = Applied.drawn(rng, n)
    thin = rng.random(n) < np.where(applied.member, 0.25, 0.15)
    base, chance = expit(applied.index + 0.4 * thin), expit(applied.index + 0.4 * thin + 1.8 * (thin & applied.member))
    lender = decided_files(applied, chance, base, {"file": (("long", "thin"), thin.astype(np.int32))})
    control = Control("file", "number", thin.astype(np.float64))
    return replace(lender, files=replace(lender.files, controls=(*lender.files.controls, control)))


def officer_files(rng: np.random.Generator, n: int) -> Lender:
    """One officer of ten denies more of the group."""
    applied = Applied.drawn(rng, n)
    officer = rng.integers(0, OFFICERS, n).astype(np.int32)
    base = expit(applied.index)
    chance = np.where((officer == 0) & applied.member, np.minimum(base + 0.3, 1), base)
    lender = decided_files(applied, chance, base, {"officer": (numbered("officer", OFFICERS), officer)})
    return replace(lender, files=replace(lender.files, cluster=officer))


def quarter_files(rng: np.random.Generator, n: int) -> Lender:
    """Harm in the first quarter alone."""
    applied = Applied.drawn(rng, n)
    quarter = rng.integers(0, 4, n).astype(np.int32)
    chance = expit(applied.index + 1.5 * ((quarter == 0) & applied.member))
    return decided_files(applied, chance, expit(applied.index), {"quarter": (numbered("quarter", 4), quarter)})


def stricter_files(
    later: float, harm: float = 0.0, purpose: int | None = None
) -> Callable[[np.random.Generator, int], Lender]:
    """A lender that gets stricter with everybody over the year; members apply later than others, or earlier.

    Args:
        later: log of how many times as many members apply in the last quarter as in the first.
        harm: log odds that are added to a member's.
        purpose: this one alone is harmed; None: all.
    """

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        times = np.exp(later * np.arange(4) / 3)
        quarters = rng.choice(4, n, p=times / times.sum()), rng.choice(4, n)
        quarter = np.where(applied.member, *quarters).astype(np.int32)
        index = applied.index + STRICTER * (quarter / 3 - 0.5)
        harms = applied.member & (True if purpose is None else applied.purpose == purpose)
        lender = decided_files(applied, expit(index + harm * harms), expit(index))
        months = Split("month (quarter)", numbered("quarter", 4), quarter, time=True)
        return replace(lender, files=replace(lender.files, splits=(*lender.files.splits, months)))

    return draw


def branch_files(harm: float) -> Callable[[np.random.Generator, int], Lender]:
    """A strict branch of four, where most of the group apply; ``harm``: log odds that are added to a member's."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n)
        shares = (0.7, 0.1, 0.1, 0.1), (0.1, 0.3, 0.3, 0.3)
        branch = np.where(applied.member, *(rng.choice(4, n, p=share) for share in shares)).astype(np.int32)
        index = applied.index + np.array([0.8, 0.0, -0.2, 0.1])[branch]
        lender = decided_files(applied, expit(index + harm * applied.member), expit(index))
        few = Split("branch", numbered("branch", 4), branch, office=True)
        return replace(lender, files=replace(lender.files, splits=(*lender.files.splits, few)))

    return draw


def areas_files(rng: np.random.Generator, n: int) -> Lender:
    """A rule blind to the group denies where most of the group live."""
    applied = Applied.drawn(rng, n)
    area = applied.area()
    strict = area < 4
    chance, share = expit(applied.index + 1.4 * strict), float(strict[~applied.member].mean())
    base = np.where(applied.member, share * expit(applied.index + 1.4) + (1 - share) * expit(applied.index), chance)
    names = numbered("area", AREAS)
    lender = decided_files(applied, chance, base, {"area": (names, area)})
    place = Control("area", "category", area.astype(np.float64), names)
    return replace(lender, files=replace(lender.files, places=(place,)))


def lacking_files(
    member: bool, column: int, share: float, shift: float
) -> Callable[[np.random.Generator, int], Lender]:
    """A lender that leaves a number out of the denied files of one side."""

    def draw(rng: np.random.Generator, n: int) -> Lender:
        applied = Applied.drawn(rng, n, worse=0.0)
        lender = decided_files(applied, expit(applied.index + shift * applied.member), expit(applied.index))
        emptied = lender.files.denied & (applied.member == member)
        gone = rng.random(n) < np.where(emptied, share, 0.02)
        control = lender.files.controls[column]
        without = replace(control, values=np.where(gone, np.nan, control.values))
        controls = tuple(without if place == column else c for place, c in enumerate(lender.files.controls))
        return replace(lender, files=replace(lender.files, controls=controls))

    return draw


def withdrawn_files(rng: np.random.Generator, n: int) -> Lender:
    """Most of the group's denials are filed as withdrawn."""
    applied = Applied.drawn(rng, n, worse=0.0)
    lender = decided_files(applied, expit(applied.index + applied.member), expit(applied.index))
    share = np.where(lender.files.denied & applied.member, 0.6, 0.03)
    undecided = rng.random(n) < share
    return replace(lender, files=replace(lender.files, denied=lender.files.denied & ~undecided, undecided=undecided))


def seldom_files(rng: np.random.Generator, n: int) -> Lender:
    """Few are denied, and the group three times as often as expected."""
    applied = Applied.drawn(rng, n, level=-6.4)
    base = expit(applied.index)
    return decided_files(applied, np.where(applied.member, np.minimum(3 * base, 1), base), base)


def copied_files(rng: np.random.Generator, n: int) -> Lender:
    """No harm, and every application four times in the file."""
    lender = equal_files(rng, n)
    return replace(lender, files=lender.files.taken(np.tile(np.arange(n), 4)))


def team_files(rng: np.random.Generator, n: int) -> Lender:
    """No harm, and officers of unlike strictness."""
    applied = Applied.drawn(rng, n, worse=0.0)
    crowded, apart = np.array([0.8 / 6] * 6 + [0.2 / 24] * 24), np.array([0.06 / 6] * 6 + [0.94 / 24] * 24)
    officer = np.where(applied.member, rng.choice(TEAM, n, p=crowded), rng.choice(TEAM, n, p=apart)).astype(np.int32)
    chance = expit(applied.index + rng.standard_normal(TEAM)[officer])
    lender = decided_files(applied, chance, chance, {"officer": (numbered("officer", TEAM), officer)})
    return replace(lender, files=replace(lender.files, cluster=officer))


def equal_files(rng: np.random.Generator, n: int) -> Lender:
    """No harm, and equal finances."""
    applied = Applied.drawn(rng, n, worse=0.0)
    return decided_files(applied, expit(applied.index), expit(applied.index))


def honest_files(rng: np.random.Generator, n: int) -> Lender:
    """No harm, worse finances, gaps and withdrawals at random, areas that no rule looks at."""
    applied = Applied.drawn(rng, n, worse=0.5)
    area, base = applied.area(), expit(applied.index)
    steps = np.array([5.0, 10.0, 2.0, 2.0])
    rounded = replace(applied, numbers=np.maximum(np.round(applied.numbers / steps), 1) * steps)
    names = numbered("area", AREAS)
    lender = decided_files(rounded, base, base, {"area": (names, area)})
    money = lender.files.controls[0]
    money = replace(money, values=np.where(rng.random(n) < 0.04, np.nan, money.values))
    undecided = rng.random(n) < 0.06
    files = replace(
        lender.files,
        controls=(money, *lender.files.controls[1:]),
        places=(Control("area", "category", area.astype(np.float64), names),),
        denied=lender.files.denied & ~undecided,
        undecided=undecided,
    )
    return replace(lender, files=files)


@dataclass(frozen=True)
class Shape:
    """A kind of lender, the states that are right of it, and the findings that must be made."""

    name: str
    rows: int
    draw: Callable[[np.random.Generator, int], Lender]
    states: tuple[str, ...]
    finds: tuple[str, ...] = ()
    may_find: tuple[str, ...] = ()
    part: str = ""
    """Words of the part that must be named first."""
    harms: bool = field(default=False)
    """Whether the state has to be outside: its share is power; of the others it is size."""


HONEST, HIDDEN = (WITHIN, OPEN), (OPEN, OUTSIDE)
SHAPES = (
    Shape("opposed purposes", 6000, opposed_files, (OUTSIDE,), ("part",), part="refinancing", harms=True),
    Shape("thin files", 5000, thin_files, (OUTSIDE,), ("part",), part="thin", harms=True),
    Shape("one officer", 6000, officer_files, (OUTSIDE,), ("part",), part="officer 1", harms=True),
    Shape("one quarter", 6000, quarter_files, (OUTSIDE,), ("part",), part="quarter 1", harms=True),
    Shape("areas", 5000, areas_files, (OUTSIDE,), ("place",), ("part",), harms=True),
    Shape("reference files lack money", 5000, lacking_files(False, 0, 0.5, 0.0), (OPEN,), ("missing",)),
    Shape("group files lack debt", 5000, lacking_files(True, 2, 0.6, 0.95), HIDDEN, ("missing",)),
    Shape("filed as withdrawn", 5000, withdrawn_files, HIDDEN, ("undecided",)),
    Shape("seldom denied", 18000, seldom_files, (OUTSIDE,), ("ratio",), ("part",), harms=True),
    Shape("copied", 1600, copied_files, HONEST, ("copies",)),
    Shape("unlike officers", 4000, team_files, HONEST),
    Shape("honest", 6000, honest_files, HONEST),
    Shape("stricter, group later", 6000, stricter_files(1.5), HONEST, may_find=("through",)),
    Shape(
        *("stricter, group earlier, one purpose", 6000, stricter_files(-1.5, 1.4, 1), (OUTSIDE,), ("part",)),
        *(("through",), "refinancing", True),
    ),
    Shape("stricter, group later, harm", 6000, stricter_files(1.5, 0.8), (OUTSIDE,), (), ("part", "through"), "", True),
    Shape("strict branch of four", 4000, branch_files(0.0), HONEST, ("through",)),
    Shape("strict branch of four, harm", 4000, branch_files(1.0), (OUTSIDE,), ("through",), ("part",), harms=True),
)
