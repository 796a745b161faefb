"""A simulated lender, and the search for alternatives to its model: how long it takes, and what it finds."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import expit

from research.bench.lenders import OFFICERS, Applied
from research.benchmark import Bench, Room, Row, against, row, timed
from tasks.methods.adjusted.algorithm.alternatives import CandidateSearch, Groups, Pool, Search, parts_of, searched
from tasks.numerics.arrays import Floats, Ints

ROWS, CANDIDATES, SPLITS, SECONDS = 20_000, 300, 5, 120
SMALL, FURTHER, REPS = 4_000, 100_000, 100
"""Rows of a lender whose interval is looked at, further applicants who say what is true, and lenders."""
WORSE = 0.6
"""How much worse the group's finances are, in standard deviations."""


def lender(rng: np.random.Generator, n: int) -> Pool:
    """Applicants of the planted lenders of `evenhand bench verdicts`; the group decides no outcome by itself.

    Besides finances and purpose the model may take the area, which tells the group, and the officer, who tells nothing.
    Nothing here is fitted to a figure of the specification, whose own generator is not printed.
    """
    applied = Applied.drawn(rng, n, worse=WORSE)
    good = rng.random(n) >= expit(applied.index)
    columns: list[Floats] = [(applied.numbers - applied.numbers.mean(axis=0)) / applied.numbers.std(axis=0)]
    feature, officer = [0, 1, 2, 3], rng.integers(0, OFFICERS, n).astype(np.int32)
    codes: tuple[Ints, ...] = (applied.purpose, applied.area(), officer)
    for place, code in enumerate(codes, 4):
        columns.append((code[:, None] == np.unique(code)).astype(np.float64))
        feature += [place] * columns[-1].shape[1]
    groups = Groups("race", applied.member.astype(np.int32), ("white", "Black"), 0)
    names = ("money", "score", "debt", "home", "purpose", "area", "officer")
    return Pool(np.hstack(columns), np.array(feature, np.int32), names, frozenset(), good, good, (groups,))


def search(candidates: int = CANDIDATES, seed: int = 482) -> Search:
    """The settings of the specification: a loss of 0.01."""
    return Search("logistic_regression", 0.01, candidates, 2_000, 0.95, seed)


def covered(seed: int, rows: int = SMALL, candidates: int = 40) -> tuple[bool, bool, float] | None:
    """Whether the interval of a gain holds the gain among very many further applicants, and lies above it.

    Also how much better the chosen candidate looked on the rows that chose it. None where nothing was chosen.
    """
    rng = np.random.default_rng([seed, 7])
    pool = lender(rng, rows + FURTHER)
    part = np.full(rows + FURTHER, -1, np.int32)
    (groups,) = pool.groups
    first = replace(pool, good=pool.good[:rows], groups=(replace(groups, code=groups.code[:rows]),))
    part[:rows] = parts_of(first, rng)
    of = CandidateSearch(pool, search(candidates, seed), part)
    tried = searched(of)
    (gain,) = of.gains(tried)
    if gain.chosen is None:
        return None
    listed, further = of.listed(), part < 0
    ratios = []
    for t in (tried[0], tried[gain.chosen]):
        approved = of.approved(listed[t.number], of.scores(listed[t.number]), t.cuts)
        ratios.append(approved[further & (groups.code == 1)].mean() / approved[further & (groups.code == 0)].mean())
    truth = ratios[1] - ratios[0]
    return bool(gain.low <= truth <= gain.high), bool(gain.low > truth), float(gain.gain_choosing - truth)


def _lines(room: Room) -> Iterator[Row]:
    pool = lender(np.random.default_rng(1), min(ROWS, room.limit))
    with timed() as took:
        of = CandidateSearch(pool, search())
        tried = searched(of)
        (gain,) = of.gains(tried)
        above = int(gain.above_zero)
        for split in range(1, SPLITS):
            other = CandidateSearch(pool, search(), parts_of(pool, np.random.default_rng([482, 4, split])))
            above += next(other.gains(searched(other))).above_zero
    words = f"base AUC {gain.base_auc:.3f}, ratio {gain.base_ratio:.3f}; {gain.eligible} of {len(tried) - 1} eligible; "
    words += f"best {gain.gain_choosing:+.3f} choosing, {gain.gain:+.3f} telling [{gain.low:+.3f}, {gain.high:+.3f}]"
    words += f"; above zero in {above} of {SPLITS} splits"
    target = against(f"{SECONDS} s", took["seconds"] <= SECONDS)
    outcomes = [outcome for seed in range(room.reps or REPS) if (outcome := covered(seed)) is not None]
    inside, too_high, better = (float(np.mean(values)) for values in zip(*outcomes, strict=True))
    covering = f"coverage {inside:.3f}, above the truth {too_high:.3f}, better by {better:+.4f} where it was chosen"
    covers = against("at most 0.05 above the truth", too_high <= 0.05)
    yield row("interval of the gain", len(outcomes), "coverage", ratio=inside, **covers, found=covering)
    yield row(
        "simulated lender",
        len(pool.good),
        f"{len(tried) - 1} candidates, {SPLITS} splits",
        **took,
        **target,
        found=words,
    )


BENCH = Bench("alternatives", _lines, repeats=True)
