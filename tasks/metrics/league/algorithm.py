"""Partial pooling, screening and disclosure control over partitions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import false_discovery_control, norm
from scipy.stats import t as student

from tasks.metrics.publish.algorithm.populations import ALL
from tasks.metrics.publish.algorithm.profiles import Policy
from tasks.numerics.arrays import Bools, Floats

# --------------------------------------------------------------------------------------------------------------------
# Multiplicity over partitions: false discovery rates, who is screened, and how many of those are likely false.
#
# For screening alone: which partitions to look at. A verdict is that of a partition's own run and never follows from q.


RATE: Final = 0.05
"""False discovery rate at which partitions are screened."""
_MOST_DF: Final = 1000.0
"""Degrees of freedom from which on the normal distribution stands for Student's t."""
_LEAST_T, _MOST_T = (float(student.ppf(0.975, df)) for df in (_MOST_DF, 1.0))
"""Its quantiles there, and on one degree."""


class Screened(NamedTuple):
    """What the tests of all partitions say together."""

    q: Floats
    """``(k,)`` by Benjamini and Hochberg (1995); NaN where there is no p."""
    q_dependent: Floats
    """``(k,)`` by Benjamini and Yekutieli (2001), which holds under any dependence."""
    screened: Bools
    """``(k,)``: q at most ``RATE``, and the interval beyond the limit."""
    by_chance: float
    """Partitions that tests at 5 % would call beyond a limit that they all just keep."""
    false: float
    """Of the screened ones, how many are expected to be false at most: their largest q times their number."""


def screened(p: Floats, beyond: Bools) -> Screened:
    """Screen ``(k,)`` partitions by their p and by whether their interval lies beyond the limit. NaN: no test."""
    tested = np.isfinite(p)
    q, dependent = np.full(len(p), np.nan), np.full(len(p), np.nan)
    if tested.any():
        q[tested] = false_discovery_control(p[tested], method="bh")
        dependent[tested] = false_discovery_control(p[tested], method="by")
    discoveries = tested & beyond & (np.nan_to_num(q, nan=1.0) <= RATE)
    false = float(q[discoveries].max() * discoveries.sum()) if discoveries.any() else 0.0
    return Screened(q, dependent, discoveries, 0.05 * float(tested.sum()), false)


def one_sided(distance: Floats, errors: Floats, halves: Floats) -> Floats:
    """``(k,)`` p of an effect at or inside the limit.

    Args:
        distance: by how far an estimate lies beyond its limit, on the scale on which it is tested; negative inside.
        errors: standard errors.
        halves: half the width of the 95 % interval, which tells the degrees of freedom of the error.
    """
    pairs = zip(distance / errors, halves / errors, strict=True)
    p_values = []
    for z, wide in pairs:
        df = degrees(wide)
        p_values.append(float(norm.sf(z) if np.isinf(df) else student.sf(z, df)))
    return np.array(p_values, dtype=np.float64)


def degrees(quantile: float) -> float:
    """Degrees of freedom of the 0.975 quantile of Student's t; infinite where it is that of the normal."""
    if not np.isfinite(quantile) or quantile <= _LEAST_T:
        return np.inf
    if quantile >= _MOST_T:
        return 1.0
    return float(brentq(lambda df: student.ppf(0.975, df) - quantile, 1.0, _MOST_DF))


# --------------------------------------------------------------------------------------------------------------------
# Partial pooling: a normal-normal model of the partitions' true effects, by restricted maximum likelihood.
#
# y_i ~ N(theta_i, v_i), theta_i ~ N(mu, tau2), on the scale on which the measure is tested: a difference, or the
# logarithm of a ratio. tau2 by restricted maximum likelihood; by Paule and Mandel (1982) where that does not end inside
# its bounds. mu with the interval of Hartung and Knapp (2001). Estimates of single partitions, shrunk towards mu, with
# the variance of Morris (1983, JASA 78:47-65, section 5), which counts that mu and tau2 are estimated. Such an interval
# covers in the mean over partitions, and less often for a partition far from all others.


FEWEST: Final = 4
"""Partitions from which on estimates are pooled: of fewer, Morris's factor (k - 3) / (k - 1) leaves all as they are."""
_GRID: Final = 60
"""Values of tau among which the best is refined."""
_WIDEST: Final = 3.0
"""The largest tau that is tried, in standard deviations of the estimates."""


class Spread(NamedTuple):
    """How true effects lie around their mean."""

    mean: float
    low: float
    """Ends of the interval of the mean."""
    high: float
    tau2: float
    """Variance of true effects between partitions."""
    way: str
    """``reml``, ``paule_mandel``, or ``none`` of fewer than two partitions."""


class Pooled(NamedTuple):
    """Partially pooled estimates, ``(k,)`` each."""

    values: Floats
    low: Floats
    high: Floats
    weight: Floats
    """Share of a partition's own deviation from the mean that is kept: 1 where nothing is pooled."""
    spread: Spread


def pooled(estimates: Floats, variances: Floats, level: float = 0.95) -> Pooled:
    """Partially pooled estimates with intervals, of ``(k,)`` estimates and their sampling variances.

    Raises:
        ValueError: an estimate that is not finite, or a variance that is not above 0.
    """
    if not (np.isfinite(estimates).all() and np.isfinite(variances).all() and (variances > 0).all()):
        raise ValueError("estimates are finite, and their variances above 0")
    spread, k = spread_of(estimates, variances, level), len(estimates)
    z = float(norm.isf((1 - level) / 2))
    if k < FEWEST:
        half = z * np.sqrt(variances)
        return Pooled(estimates, estimates - half, estimates + half, np.ones(k), spread)
    weights = 1 / (variances + spread.tau2)
    shares = weights / weights.sum()
    shrunk = (k - 3) / (k - 1) * variances * weights
    apart = estimates - spread.mean
    typical = float(shares @ variances)
    of_tau2 = 2 / (k - 3) * shrunk**2 * (typical + spread.tau2) * weights * apart**2
    values = spread.mean + (1 - shrunk) * apart
    half = z * np.sqrt(variances * (1 - (1 - shares) * shrunk) + of_tau2)
    return Pooled(values, values - half, values + half, 1 - shrunk, spread)


def spread_of(estimates: Floats, variances: Floats, level: float = 0.95) -> Spread:
    """Mean of true effects with its interval, and their variance; NaN ends where there are fewer than two."""
    k = len(estimates)
    if k < 2:
        mean = float(estimates[0]) if k else math.nan
        return Spread(mean, math.nan, math.nan, 0.0, "none")
    tau2, way = restricted(estimates, variances), "reml"
    if math.isnan(tau2):
        tau2, way = paule_mandel(estimates, variances), "paule_mandel"
    weights = 1 / (variances + tau2)
    mean = float(weights @ estimates / weights.sum())
    # Hartung and Knapp, never narrower than the normal interval of the same weights
    scale = max(float(weights @ (estimates - mean) ** 2) / (k - 1), 1.0)
    half = float(student.isf((1 - level) / 2, k - 1)) * math.sqrt(scale / float(weights.sum()))
    return Spread(mean, mean - half, mean + half, tau2, way)


def restricted(estimates: Floats, variances: Floats) -> float:
    """tau2 by restricted maximum likelihood; NaN where it does not end inside its bounds."""
    widest = _WIDEST * float(estimates.std(ddof=1))
    if widest == 0:
        return 0.0
    grid = np.linspace(0, widest, _GRID)
    losses = np.array([_loss(tau, estimates, variances) for tau in grid])
    best = int(losses.argmin())
    if best == _GRID - 1 or not np.isfinite(losses).all():
        return math.nan
    around = (grid[max(best - 1, 0)], grid[best + 1])
    minimum = minimize_scalar(
        _loss, bounds=around, args=(estimates, variances), method="bounded", options={"xatol": 1e-6 * widest}
    )
    if not minimum.success:
        return math.nan
    return 0.0 if losses[0] <= minimum.fun else float(minimum.x) ** 2


def _loss(tau: float, estimates: Floats, variances: Floats) -> float:
    """Twice the negative restricted log-likelihood of tau, but for a constant."""
    total = variances + tau**2
    weights = 1 / total
    apart = estimates - weights @ estimates / weights.sum()
    return float(np.log(total).sum() + math.log(weights.sum()) + weights @ apart**2)


def paule_mandel(estimates: Floats, variances: Floats) -> float:
    """tau2 at which the weighted squares about the mean are as many as their degrees of freedom; 0 where fewer."""

    def excess(tau2: float) -> float:
        weights = 1 / (variances + tau2)
        mean = weights @ estimates / weights.sum()
        return float(weights @ (estimates - mean) ** 2) - (len(estimates) - 1)

    if excess(0.0) <= 0:
        return 0.0
    top = float(estimates.var(ddof=1))
    while excess(top) > 0:
        top *= 2
    return float(brentq(excess, 0.0, top))


# --------------------------------------------------------------------------------------------------------------------
# What a reader knows of the counts of several partitions, as integer programmes over tables of people (HiGHS).
#
# A table holds the people of one partition: a row for each group, and one for people of no group; denied and approved.
# Tables of partitions add up to the table of everybody. Unknown are the tables; known are published sums of cells.
#
# Scope: programmes. What is withheld because of them: ``across``. Within one run: ``tasks.metrics.publish.algorithm``.


DENIED: Final = "denied"
APPROVED: Final = "approved"
NODES: Final = 200
"""Limit of the search tree of a programme; not of seconds, so that every machine finds the same."""
_SLACK: Final = 1e-6


class Known(NamedTuple):
    """A published sum: people of some groups, all of them or those denied or approved, lie from ``low`` to ``high``."""

    groups: tuple[str, ...]
    """``(ALL,)`` is everybody."""
    event: str
    low: float
    high: float


@dataclass(frozen=True)
class Block:
    """A partition, and what is published of it."""

    name: str
    counts: tuple[Known, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    """Group and event (empty: all of the group) of counts that are withheld, or a range."""

    @property
    def whole(self) -> "Block":
        """The same with everybody's counts alone, as if all groups were withheld."""
        return Block(self.name, tuple(count for count in self.counts if count.groups == (ALL,)), self.hidden)

    def least(self, group: str) -> float:
        """The least that is published of the people of a group; 0 where nothing is."""
        return max((count.low for count in self.counts if (count.groups, count.event) == ((group,), "")), default=0.0)


class Ends(NamedTuple):
    """Least and largest value of a count that fits what is published; NaN where the search was cut short."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far apart they are; 0 where the search was cut short, which is the safe side."""
        return 0.0 if np.isnan(self.high - self.low) else self.high - self.low


class Tables:
    """Tables of blocks that add up to a total; ``groups`` are those of one protected attribute."""

    def __init__(self, groups: Sequence[str], total: Block) -> None:
        self._groups = {group: number for number, group in enumerate(groups)}
        self.size = 2 * (len(groups) + 1)
        """Cells of a table, ``(groups + 1, 2)``: denied, then approved; the last row is people of no group."""
        self._total = total
        self._rows_of: dict[Block, _Rows] = {}

    def cells(self, groups: Sequence[str], event: str) -> Floats:
        """Which cells a sum counts, ``(cells,)`` of 0 and 1."""
        table = np.zeros((len(self._groups) + 1, 2))
        columns = {DENIED: [0], APPROVED: [1]}.get(event, [0, 1])
        rows = range(len(table)) if ALL in groups else [self._groups[group] for group in groups]
        table[np.ix_(list(rows), columns)] = 1
        return table.ravel()

    def alone(self, block: Block, group: str, event: str, most: Floats | float) -> Ends:
        """The bounds of a count from a partition's own run; no cell has more than ``most`` people, ``(cells,)``."""
        aim = self.cells((group,), event)
        solutions = [_solved(sign * aim, self._own(block), most) for sign in (1, -1)]
        return Ends(*(np.nan if solution is None else float(aim @ np.rint(solution)) for solution in solutions))

    def ends(self, blocks: Sequence[Block], rest: Floats, at: int | None, group: str, event: str) -> Ends:
        """The bounds of a count of one block, or of all people (None), from all runs.

        Args:
            blocks: whose tables are sought.
            rest: ``(cells,)`` sum of the tables of all other blocks, which stay as they are.
            at: number of the block.
            group: of the count.
            event: of the count.
        """
        cells = self.cells((group,), event)
        aim = np.zeros((len(blocks), self.size))
        aim[slice(None) if at is None else at] = cells
        constant = float(cells @ rest) if at is None else 0.0
        rows = self._rows(blocks, rest)
        ends = [_solved(sign * aim.ravel(), rows) for sign in (1, -1)]
        values = [
            np.nan if solution is None else float(np.rint(aim.ravel() @ solution)) + constant for solution in ends
        ]
        return Ends(*values)

    def fitting(self, blocks: Sequence[Block]) -> Floats | None:
        """Tables of all blocks that fit what is published, ``(blocks, cells)``; None where there are none."""
        rows = self._rows(blocks, np.zeros(self.size))
        solution = _solved(np.zeros(self.size * len(blocks)), rows)
        return None if solution is None else np.rint(solution).reshape(len(blocks), self.size)

    def _rows(self, blocks: Sequence[Block], rest: Floats) -> "_Rows":
        """Sums of each block, and those of everybody less the rest."""
        block_rows = [self._own(block) for block in blocks]
        matrix = scipy.sparse.block_diag([rows.matrix for rows in block_rows], format="csr")
        low, high = (np.concatenate([rows[end] for rows in block_rows]) for end in (1, 2))
        total = self._own(self._total)
        rest_totals = np.asarray(total.matrix @ rest)
        repeated = scipy.sparse.hstack([total.matrix] * len(blocks), format="csr")
        stacked = scipy.sparse.vstack([matrix, repeated], format="csr")
        return _Rows(
            stacked, np.concatenate([low, total.low - rest_totals]), np.concatenate([high, total.high - rest_totals])
        )

    def _own(self, block: Block) -> "_Rows":
        """What is published of one block; of one without anything, that nobody is counted by no cell."""
        if block not in self._rows_of:
            sums = [self.cells(count.groups, count.event) for count in block.counts] or [np.zeros(self.size)]
            low, high = ([count[end] for count in block.counts] or [0.0] for end in (2, 3))
            self._rows_of[block] = _Rows(scipy.sparse.csr_array(np.array(sums)), np.array(low), np.array(high))
        return self._rows_of[block]


class _Rows(NamedTuple):
    matrix: "scipy.sparse.csr_array"
    low: Floats
    high: Floats


MOST: Final = 1e7
"""People in a cell at most: more than any year has."""


def _solved(aim: Floats, rows: _Rows, most: Floats | float = MOST) -> Floats | None:
    """Whole tables with the least value of ``aim``; None where there are none, or the search was cut short."""
    solution = scipy.optimize.milp(
        aim,
        integrality=np.ones(aim.size, dtype=int),
        bounds=scipy.optimize.Bounds(0, most),
        constraints=scipy.optimize.LinearConstraint(rows.matrix, rows.low - _SLACK, rows.high + _SLACK),
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    return solution.x if solution.status == 0 else None


# --------------------------------------------------------------------------------------------------------------------
# Disclosure across partitions: withholds parts of the league so that no withheld count of few people can be inferred.
#
# The counts of everybody less the published ones of partitions tell what a partition withholds, or what all those that
# publish nothing have together. A count is told where all tables that fit what is published have it within less than
# the profile's width, and with few people. Then the groups of a further partition are withheld, the smallest first;
# where that does not help, those of everybody, from which everything else was subtracted. Partitions are looked at in
# the order of their names, so that the outcome does not depend on which ended first.
#
# What a partition's own run tells of itself is not mended here: ``tasks.metrics.publish.algorithm`` decides that.


TRIED: Final = 3
"""Further partitions that are withheld for one count, before everybody is."""
BESIDE: Final = 40
"""Partitions whose tables are sought together: with more, a count may be called told that is not."""
REST: Final = "\0rest"
"""The block of all who are in no published partition; no value of a column."""


class Hidden(NamedTuple):
    """What is withheld beyond what the runs withhold."""

    partitions: frozenset[str] = frozenset()
    """All groups of the attribute of these partitions."""
    everybody: bool = False
    """All that is printed of everybody, from which the rest was subtracted."""
    unequal: bool = False
    """Whether the published counts of partitions do not add up to those of everybody."""


class _Target(NamedTuple):
    block: str
    """``ALL``: everybody."""
    group: str
    event: str
    least_width: float


@dataclass(frozen=True)
class Published:
    """What all runs have published of the groups of one protected attribute."""

    groups: tuple[str, ...]
    partitions: tuple[Block, ...]
    everybody: Block
    has_rest: bool
    """Whether there may be rows of partitions that publish nothing."""
    policy: Policy


def hidden_across(publication: Published) -> Hidden:
    """What must be withheld so that nothing follows from all runs together."""
    if not publication.policy.protects or not publication.everybody.counts:
        return Hidden()
    blocks = sorted(publication.partitions, key=lambda block: block.name) + (
        [Block(REST)] if publication.has_rest else []
    )
    tables = Tables(publication.groups, publication.everybody)
    fitted = tables.fitting(blocks)
    if fitted is None:
        return Hidden(everybody=True, unequal=True)
    state = _State(publication, tables, blocks, fitted)
    for target in list(state.targets()):
        if not state.opened(target):
            return Hidden(everybody=True)
    return Hidden(frozenset(state.given_up))


class _State:
    """The blocks as they are published so far, with one set of tables that fits."""

    def __init__(self, publication: Published, tables: Tables, blocks: Sequence[Block], fitted: Floats) -> None:
        self._publication, self._tables = publication, tables
        self._blocks, self._fitted = list(blocks), fitted
        self._sum = fitted.sum(axis=0)
        self.given_up: list[str] = []

    def targets(self) -> Iterator[_Target]:
        """Every count to protect that is not open at once, with the least width that it is to have."""
        target_width = self._publication.policy.wanted
        for block in [*self._blocks, self._publication.everybody]:
            for group, event in block.hidden:
                if self._is_absorbed(block, group, event):
                    continue
                block_width = self._tables.alone(block, group, event, MOST).width
                if block_width > 0:
                    yield _Target(block.name, group, event, min(block_width, target_width))
        if self._publication.has_rest:
            yield from (_Target(REST, group, "", target_width) for group in self._publication.groups)

    def opened(self, target: _Target) -> bool:
        """Whether a count is open, after further partitions were withheld where it takes that."""
        for _ in range(TRIED):
            if self._is_open(target):
                return True
            further = self._smallest(target)
            if further is None:
                return False
            self._blocks[further] = self._blocks[further].whole
            self.given_up.append(self._blocks[further].name)
        return self._is_open(target)

    def _smallest(self, target: _Target) -> int | None:
        """The published partition with fewest people of the group; None where none has any."""
        sizes = {number: block.least(target.group) for number, block in enumerate(self._blocks)}
        shown_blocks = [number for number, size in sizes.items() if size > 0 and not self._is_given_up(number)]
        shown_blocks = [number for number in shown_blocks if self._blocks[number].name != target.block]
        return min(shown_blocks, key=lambda number: (sizes[number], self._blocks[number].name), default=None)

    def _is_given_up(self, number: int) -> bool:
        return self._blocks[number].name in self.given_up

    def _is_open(self, target: _Target) -> bool:
        """Tried with few tables first: any that fit are witnesses."""
        names = [block.name for block in self._blocks]
        block_numbers = [] if target.block == ALL else [names.index(target.block)]
        # blocks that have, as far as is seen at a glance, more than one table that fits what is published
        loose = [
            n
            for n, block in enumerate(self._blocks)
            if n not in block_numbers
            and (
                bool(block.hidden)
                or block.name == REST
                or self._is_given_up(n)
                or any(count.low != count.high for count in block.counts if count.event != "approved")
            )
        ]
        free = [n for n in loose if names[n] == REST or self._is_given_up(n)]
        scopes = [[*block_numbers, *free], [*block_numbers, *loose[:BESIDE]]]
        for scope in scopes:
            if not scope:
                continue
            rest = self._sum - self._fitted[scope].sum(axis=0)
            chosen = [self._blocks[n] for n in scope]
            ends = self._tables.ends(chosen, rest, 0 if block_numbers else None, target.group, target.event)
            if ends.width >= target.least_width:
                return True
        is_complete = len(loose) <= BESIDE and bool(scopes[-1])
        return (
            is_complete
            and bool(np.isfinite(ends.low))
            and not (ends.low < self._publication.policy.smallest and ends.high > 0)
        )

    def _is_absorbed(self, block: Block, group: str, event: str) -> bool:
        """Whether a count is open because unpublished partitions can absorb any change of it."""
        if not self._publication.has_rest or block.name in (ALL, REST):
            return False
        numbers = [number for number, other in enumerate(self._blocks) if other.name in (block.name, REST)]
        together = self._fitted[numbers].sum(axis=0)
        return self._tables.alone(block, group, event, together).width >= self._publication.policy.wanted
