"""Matching estimators as contrasts of decisions, with their variance."""

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from tasks.methods.cst.algorithm.neighbours import Space, in_batches, index, nearest_rows
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.encoding import Columns
from tasks.numerics.problem import Waiting
from tasks.numerics.statistics.regression import DesignRows, fit_logit, fitted
from tasks.numerics.statistics.sampling import design_variance

# --------------------------------------------------------------------------------------------------------------------
# One side of a matching estimator: its design rows, its regression, and the noise of its decisions.
#
# The control side is the complainants' group, the test side the reference group. Design rows: ``numerics.design``.


ROWS_A_COLUMN = 10
"""With fewer rows for each column of a side, squares are dropped; with fewer still, nothing is adjusted (ours)."""

RIDGE = 1e-3
"""Penalty of the logistic regression, so that a decision that columns foretell has a finite fit (ours)."""

LARGEST_LEVERAGE = 0.9
"""Leverages above it are taken as this, so that no single row makes the variance (ours)."""

SMALLEST = 1e-10
"""Eigenvalues of Z'Z below this share of the largest count as 0: the column does not vary on this side."""


class Rows(Protocol):
    """Makes design rows of values."""

    def of(self, values: Floats) -> Floats:
        """``(r, d)`` rows of applicants with ``(r, p)`` values."""


@dataclass(frozen=True)
class Scored:
    """Design rows with one column more: the probability of denial, by a logit of all applicants.

    Neighbours of complainants in a tail lie nearer to the centre. A logit bends there, which squares take up in part
    and products of columns would: this one column is what both say of denial (a prognostic score; Hansen 2008).
    """

    base: DesignRows
    score: DesignRows
    coefficients: Floats
    """``(s,)`` of the logit."""

    def of(self, values: Floats) -> Floats:
        """``(r, d + 1)`` design rows."""
        probability = expit(self.score.of(values) @ self.coefficients)
        return np.column_stack([self.base.of(values), probability])


def scored(
    designs: tuple[DesignRows, DesignRows], values: Floats, rows: Longs, denied: Floats, start: Floats | None = None
) -> tuple[Scored, Scored]:
    """The designs with the score of denial; it is fitted to these rows with squares, and labels do not matter to it.

    Args:
        designs: With squares, and without.
        values: ``(n, p)`` of all rows.
        rows: Both sides.
        denied: ``(n,)``.
        start: Where the search starts: the coefficients of most of the same rows.
    """
    fit = fit_logit(designs[0].of(values[rows]), denied[rows], start, ridge=RIDGE)
    with_squares, without = (Scored(design, designs[0], fit.coefficients) for design in designs)
    return with_squares, without


@dataclass(frozen=True)
class Side:
    """``s`` rows of one group as a regression sees them."""

    rows: Longs
    """``(s,)`` their numbers in the file, ascending."""
    design: Rows
    z: Floats
    """``(s, d)`` design rows."""
    denied: Floats
    """``(s,)`` 1 where the decision was unfavourable, else 0."""
    inverse: Floats
    """``(d, d)`` generalised inverse of Z'Z."""
    logit: Floats
    """``(d,)`` of the regression for its noise."""
    variance: Floats
    """``(s,)`` s_j^2 = (y_j - p_j)^2 / (1 - h_j)^2: the noise of each decision, given the applicants."""
    coefficients: Floats
    """``(d,)`` least squares coefficients of the decisions."""

    def lean(self) -> "Side":
        """The same without design rows, which take by far the most memory, once weights are made."""
        return replace(self, z=self.z[:0].copy())

    def adjusted(self, share: Floats, target: Floats) -> Floats:
        """``(s,)`` weights with the design mean ``target``: w_j = c_j + z_j' (Z'Z)^- (target - sum_j c_j z_j).

        Args:
            share: ``(s,)`` how often each row served as a neighbour; sums to 1.
            target: ``(d,)`` mean design row of the complainants, or of their counterfactuals.

        Source: bias-corrected matching (Abadie and Imbens 2011, section 3), with a linear regression.
        """
        gap = target - self.z.T @ share
        adjusted_share: Floats = share + self.z @ (self.inverse @ gap)
        return adjusted_share


def fit_side(
    designs: tuple[Rows, Rows], values: Floats, rows: Longs, denied: Floats, start: Floats | None = None
) -> Side | None:
    """The side of some rows; None with fewer than ``ROWS_A_COLUMN`` rows for each column that varies among them.

    Args:
        designs: With squares, and without.
        values: ``(n, p)`` of all rows.
        rows: ``(s,)`` rows of this side, ascending.
        denied: ``(n,)`` 1 for an unfavourable decision.
        start: Where the search for the logit starts, if it has as many columns.
    """
    for design in designs:
        z = design.of(values[rows])
        inverse, rank = inverse_of(z)
        if len(rows) >= ROWS_A_COLUMN * max(rank, 1):
            near = start if start is not None and len(start) == z.shape[1] else None
            y = denied[rows]
            return Side(rows, design, z, y, inverse, *noise(z, y, near), coefficients=inverse @ (z.T @ y))
    return None


def noise(z: Floats, denied: Floats, start: Floats | None = None) -> tuple[Floats, Floats]:
    """Coefficients ``(d,)`` of a ridge logit, and its squared residuals over (1 - leverage)^2, ``(s,)``.

    Source: Abadie and Imbens (2006, section 4), conditional on the applicants; the correction for leverage is that of
    the jackknife (HC3).
    """
    fit = fit_logit(z, denied, start, ridge=RIDGE)
    weight = fit.fitted * (1 - fit.fitted)
    leverage = weight * np.einsum("ij,jk,ik->i", z, fit.inverse, z, optimize=True)
    return fit.coefficients, ((denied - fit.fitted) / (1 - np.minimum(leverage, LARGEST_LEVERAGE))) ** 2


def inverse_of(z: Floats) -> tuple[Floats, int]:
    """Generalised inverse of Z'Z, ``(d, d)``, and the rank of Z ``(s, d)``."""
    if not len(z):
        return np.zeros((z.shape[1], z.shape[1])), 0
    sizes, vectors = np.linalg.eigh(z.T @ z)
    is_large = sizes > SMALLEST * sizes[-1]
    return (vectors[:, is_large] / sizes[is_large]) @ vectors[:, is_large].T, int(is_large.sum())


# --------------------------------------------------------------------------------------------------------------------
# Contrasts: effects as linear forms in the decisions, with weights from lists of neighbours.
#
# The mean difference of situation testing is linear in the decisions, so that its error has a closed form: the sum of
# w_j^2 s_j^2 counts every decision once, however many complainants share it as a neighbour. It is also a mean over
# complainants, so that where a sample of them is queried the design adds s^2/m (1 - m/N).


NOBODY = -1
"""Stands in a list of neighbours where there are no more."""


class Lists(NamedTuple):
    """Neighbours of ``c`` complainants who have both a control and a test group."""

    row: Longs
    """``(c,)`` complainants, ascending."""
    control: Longs
    """``(c, w)`` rows of their control groups, -1 beyond the last."""
    test: Longs
    """``(c, w)`` rows of their test groups."""
    counterfactuals: Floats | None = None
    """``(c, p)`` values around which the test groups were sought; None for the complainants' own."""


class Design(NamedTuple):
    """A sample of complainants, and how far each of them moves both sides of an effect."""

    sample: int
    of: int
    control: Floats
    """``(n,)`` of each row, about 0; 0 of a row out of the sample, or without neighbours."""
    test: Floats
    """``(n,)``"""

    def variance(self, control: float = 1.0, test: float = -1.0) -> float:
        """That the design adds to so many times the control side plus so many times the other."""
        return design_variance(control * self.control + test * self.test, self.sample, self.of)

    def less(self, other: "Design") -> "Design":
        """Of the difference of two effects, of the same sample."""
        return self._replace(control=self.control - other.control, test=self.test - other.test)


class Sides(NamedTuple):
    """Both sides of a comparison."""

    group: Side
    other: Side
    score: Floats | None = None
    """Coefficients of the score of denial, where the designs have one."""

    def lean(self) -> "Sides":
        """Both without their design rows."""
        return self._replace(group=self.group.lean(), other=self.other.lean())

    def variance(self, size: int) -> Floats:
        """``(n,)`` noise of each decision of the file; 0 for a row on neither side."""
        variances = np.zeros(size)
        for side in (self.group, self.other):
            variances[side.rows] = side.variance
        return variances

    @property
    def unchanging(self) -> bool:
        """Whether all rows of each side have the same decision."""
        return all(np.ptp(side.denied) == 0 for side in (self.group, self.other))


@dataclass(frozen=True)
class Contrast:
    """An effect on the decisions of ``n`` rows."""

    weights: Floats
    """``(n,)``; the effect is their product with the decisions. They sum to 1 on the control side, -1 on the other."""
    raw: Floats
    """``(n,)`` the same without the adjustment: c_j less t_j."""
    control: Floats
    """``(n,)`` c_j: how often a row served as control, as a share."""
    complainants: int
    structural: float = 0.0
    """Variance that comes from the estimated causal model; 0 where nothing is estimated."""
    design: Design | None = None
    """Of a sample of complainants; None without a sample."""

    def value(self, denied: Floats) -> float:
        """The effect: positive where the group is denied more often."""
        return float(self.weights @ denied)

    def se(self, variance: Floats) -> float:
        """Standard error, from the noise of each decision ``(n,)``, the causal model and the sample of complainants."""
        return math.sqrt(float(self.weights**2 @ variance) + self.structural + self.sampling)

    @property
    def sampling(self) -> float:
        """Variance from querying a sample of the complainants; exactly 0 if all are queried."""
        return 0.0 if self.design is None else self.design.variance()

    def estimated(self, structural: float) -> "Contrast":
        """The same with the variance of an estimated causal model."""
        return replace(self, structural=structural)

    def less(self, other: "Contrast") -> "Contrast":
        """The difference of two effects on the same rows; only this one's causal model is estimated."""
        design = None if self.design is None or other.design is None else self.design.less(other.design)
        return replace(self, weights=self.weights - other.weights, raw=self.raw - other.raw, design=design)


def designs_of(columns: Columns) -> tuple[DesignRows, DesignRows]:
    """Design rows with squares and without, standardised over all rows."""
    return fitted(columns, squared=True), fitted(columns, squared=False)


def sides_of(
    designs: tuple[DesignRows, DesignRows],
    values: Floats,
    rows: tuple[Longs, Longs],
    denied: Floats,
    near: Sides | None = None,
) -> Sides | None:
    """Both sides; None where one has too few rows for an adjustment.

    Args:
        designs: Of ``designs_of``.
        values: ``(n, p)`` of all rows.
        rows: Of the group, and of whom it is compared with.
        denied: ``(n,)``.
        near: The sides of another group beside the same others, where the searches for logits start.
    """
    score, logit = (None, None) if near is None else (near.score, near.other.logit)
    with_score = scored(designs, values, np.sort(np.concatenate(rows)), denied, score)
    own_side = fit_side(with_score, values, rows[0], denied)
    other = fit_side(with_score, values, rows[1], denied, logit) if own_side is not None else None
    return Sides(own_side, other, with_score[0].coefficients) if own_side is not None and other is not None else None


def contrast(sides: Sides, values: Floats, lists: Lists, part: tuple[int, int] | None = None) -> Contrast:
    """The adjusted mean difference of the complainants' control and test groups.

    Args:
        sides: Both regressions, of all rows.
        values: ``(n, p)`` of all rows.
        lists: Neighbours of the complainants.
        part: How many complainants were asked, and of how many; None: of all.
    """
    size = len(values)
    control, test = served(lists.control, size), served(lists.test, size)
    own_values, counterfactual_values = (
        values[lists.row],
        lists.counterfactuals if lists.counterfactuals is not None else values[lists.row],
    )
    weights = np.zeros(size)
    for side, share, target, sign in (
        (sides.group, control, own_values, 1.0),
        (sides.other, test, counterfactual_values, -1.0),
    ):
        zbar = side.design.of(target).mean(axis=0)
        weights[side.rows] = sign * side.adjusted(share[side.rows], zbar)
    design = None
    if part is not None and part[0] < part[1]:
        of_rows = (sides.group, lists.control, own_values), (sides.other, lists.test, counterfactual_values)
        design = Design(*part, *(_influence(*side_members, lists.row, size) for side_members in of_rows))
    return Contrast(weights, control - test, control, len(lists.row), design=design)


def _influence(side: Side, members: Longs, target: Floats, row: Longs, size: int) -> Floats:
    """``(n,)`` how far each complainant moves the mean of one side: the neighbours' residuals, and the own prediction.

    Args:
        side: Its regression, with coefficients b.
        members: ``(c, w)`` neighbours of each complainant, -1 beyond the last.
        target: ``(c, p)`` values that they are to have.
        row: ``(c,)`` the complainants.
        size: Rows of the file.
    """
    residual = np.zeros(size)
    residual[side.rows] = side.denied - side.z @ side.coefficients
    is_neighbour = members != NOBODY
    influence = np.where(is_neighbour, residual[members], 0.0).sum(axis=1) / is_neighbour.sum(axis=1)
    influence = influence + side.design.of(target) @ side.coefficients
    influence_of_row = np.zeros(size)
    influence_of_row[row] = (influence - influence.mean()) / len(row)
    return influence_of_row


def served(members: Longs, size: int) -> Floats:
    """``(n,)`` how often each row is a neighbour, as a share: every complainant's group weighs the same.

    Args:
        members: ``(c, w)`` rows, -1 beyond the last; nobody's group is empty.
        size: Rows of the file.
    """
    is_neighbour = members != NOBODY
    weight = is_neighbour / (is_neighbour.sum(axis=1, keepdims=True) * max(len(members), 1))
    weights: Floats = np.bincount(members[is_neighbour], weight[is_neighbour], minlength=size)  # type: ignore[assignment]
    return weights


# --------------------------------------------------------------------------------------------------------------------
# Excess share of denials: the part of a group's denials that its reference group would not have met.
#
# One less the share denied among test groups over that among control groups, of all complainants together; never the
# mean of clipped values, which turns noise into harm. Both shares are linear in the decisions and rest on different
# rows.


NO_DENIALS = "no_denials"
"""Reason of a refusal: no member of the control groups was denied."""

RAW, ADJUSTED = "raw", "adjusted"
"""Both shares as counted among neighbours, or regression-adjusted for what neighbours still differ in."""


class ExcessShare(NamedTuple):
    """The share, at most 1; below 0 where the group is denied less often."""

    value: float = np.nan
    interval: tuple[float, float] | None = None
    """None where it does not cover as often as it says, or where it is not defined."""
    reason: str = ""
    """Why there is no share."""


def excess_share(
    effect_contrast: Contrast, own_rows: Longs, denied: Floats, variance: Floats, numerator: str, level: float
) -> ExcessShare:
    """The share with its interval; as counted it has none, since it carries the group's finances.

    Args:
        effect_contrast: An effect's weights.
        own_rows: Rows of the group, whose weights are the control side's; all other weights are the test side's.
        denied: ``(n,)`` 1 for an unfavourable decision.
        variance: ``(n,)`` noise of each decision.
        numerator: ``raw`` or ``adjusted``.
        level: Of the interval, 0.95 for 95 %.

    The interval is that of the logarithm of a ratio (delta method). It is not symmetric, and ends below 1.
    """
    control = np.zeros(len(denied))
    control[own_rows] = effect_contrast.weights[own_rows]
    test = control - effect_contrast.weights
    if numerator == RAW:
        control, test = effect_contrast.control, effect_contrast.control - effect_contrast.raw
    expected, met = float(control @ denied), float(test @ denied)
    if expected <= 0:
        return ExcessShare(reason=NO_DENIALS)
    ratio = met / expected
    if numerator == RAW or ratio <= 0:
        return ExcessShare(1 - ratio)
    relative = float(control**2 @ variance) / expected**2
    relative += (float(test**2 @ variance) + effect_contrast.structural) / met**2
    relative += 0.0 if effect_contrast.design is None else effect_contrast.design.variance(-1 / expected, 1 / met)
    if relative <= 0:
        return ExcessShare(1 - ratio)
    factor = math.exp(float(norm.ppf((1 + level) / 2)) * math.sqrt(relative))
    return ExcessShare(1 - ratio, (1 - ratio * factor, 1 - ratio / factor))


# --------------------------------------------------------------------------------------------------------------------
# Deep lists of neighbours: searched once among rows of both labels, then filtered for any labels.
#
# A list that runs out before ``k`` rows of a label is searched again among the rows of that label, never cut short.


Shorts = NDArray[np.signedinteger[Any]]
DEEPEST = 700
"""Neighbours listed of a row at most; more would cost more to filter than a new search of those that run out."""

SPARE = 2.5
"""Times as many neighbours as hold k of the smaller label on average: in a tail of the columns it is rarer."""

FEWEST_LISTED = 1.2
"""Times k members in a list on average, below which lists hold k of the others alone: most would run out of members."""


@dataclass(frozen=True)
class DeepLists:
    """The rows of two labels with the nearest of them all around each."""

    space: Space
    """``(q,)`` places of the rows."""
    settings: CstSettings
    near: Shorts
    """``(q, depth)`` nearest first, without the row itself; -1 beyond the last within reach."""

    @classmethod
    def of(cls, space: Space, members: int, settings: CstSettings, waiting: Waiting | None = None) -> "DeepLists":
        """Search ``q`` rows, so many of them members of the group, unless it was done for another decision maker."""
        results = Waiting() if waiting is None else waiting
        many = len(space.numeric)
        depth = cls._depth(many, members, settings.k)
        search = (depth, settings.ties, settings.maximum_distance, space.overlap, space.divisor, space.shape)
        content = hashlib.sha256(repr(search).encode())
        for coordinates in (space.numeric, space.nominal):
            content.update(coordinates.tobytes())
        key = content.digest()
        if (listed := results.take(key)) is not None:
            return cls(space, settings, listed)
        rows = np.arange(many)
        near = np.full((many, depth), -1, dtype=np.int16 if many < 2**15 else np.int32)
        for some, neighbours in in_batches(index(space, rows), space, depth, settings, exclude=rows):
            near[some] = neighbours.rows
        results.keep(key, near)
        return cls(space, settings, near)

    @staticmethod
    def _depth(many: int, members: int, k: int) -> int:
        """How many neighbours are listed: few where members are so rare that they are searched for in any case."""
        rarer = min(members, many - members) if members * DEEPEST >= FEWEST_LISTED * k * many else many - members
        return min(many - 1, DEEPEST, math.ceil(SPARE * k * many / max(rarer, 1)))

    def shares(self, member: Bools) -> tuple[Bools, Floats, Floats]:
        """Who is tested under these labels, and how often each row serves as control and as test.

        Args:
            member: ``(q,)`` members of the group, whose neighbours are counted.

        Returns:
            ``(q,)`` members with ``k`` neighbours of both labels; ``(q,)`` shares c_j and t_j.
        """
        row, k = np.flatnonzero(member), self.settings.k
        lists = np.full((2, len(row), k), -1, dtype=np.int64)
        ran_out = np.zeros((2, len(row)), dtype=bool)
        split_lists(self.near, row, member, lists, ran_out)
        for nearest, short, label in zip(lists, ran_out, (member, ~member), strict=True):
            rows, missing = np.flatnonzero(label), np.flatnonzero(short)
            if len(missing) and len(rows):
                blocks, queries = index(self.space, rows), self.space.rows(row[missing])
                nearest[missing] = nearest_rows(blocks, queries, k, self.settings, exclude=row[missing]).rows
        full = (lists[:, :, -1] >= 0).all(axis=0)
        tested = np.zeros(len(member), dtype=bool)
        tested[row[full]] = True
        many = max(int(full.sum()), 1) * k
        member_shares = [np.bincount(near[full].ravel(), minlength=len(member)) / many for near in lists]
        return tested, member_shares[0], member_shares[1]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def split_lists(near: Shorts, row: Longs, member: Bools, lists: Longs, ran_out: Bools) -> None:
    """Split lists of neighbours into the ``k`` nearest members and the ``k`` nearest others.

    Args:
        near: ``(q, depth)``, as in ``DeepLists``.
        row: ``(r,)`` rows whose lists are split.
        member: ``(q,)`` members.
        lists: ``(2, r, k)``, filled in, members first; -1 where there are fewer than ``k``.
        ran_out: ``(2, r)``, filled in: whether a list ended before ``k`` were met, and there may be more.
    """
    depth, k = near.shape[1], lists.shape[2]
    for at in range(row.shape[0]):
        neighbours, counts = near[row[at]], [0, 0]
        place = 0
        while place < depth and neighbours[place] >= 0 and (counts[0] < k or counts[1] < k):
            side = 0 if member[neighbours[place]] else 1
            if counts[side] < k:
                lists[side, at, counts[side]] = neighbours[place]
                counts[side] += 1
            place += 1
        for side in range(2):
            if counts[side] < k:
                lists[side, at, :] = -1
                ran_out[side, at] = place == depth
