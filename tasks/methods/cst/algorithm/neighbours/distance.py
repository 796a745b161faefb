"""Distance of two applicants: columns become coordinates whose plain differences make the distance.

The distance is the mean over attributes of their differences (CST, section 3.2, equation 6). Numbers and orders:
|difference| over the range, or of z-scores. Categories: 0 if equal, else 1 (the paper's text prints the reverse). The
paper names two more as future work. ``hvdm`` is the heterogeneous value difference of Wilson and Martinez (1997,
section 4), averaged in the same manner: numbers over 4 standard deviations, categories by the difference of their
decisions. ``propensity`` is the difference of two scores of belonging to the protected group.

Fit and transformation of a scale are separate, because the paper fits one scale to the factual data and one to the
counterfactual data. Search: ``search``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from schemas.errors import DataQualityError, SpecError, nearest
from schemas.terms import Kind
from tasks.methods.cst.settings import CstSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.columns import Columns
from tasks.numerics.encoding import CLIP

NUMERIC = (Kind.CONTINUOUS, Kind.ORDINAL)
"""Kinds of which differences are taken; of the others it only counts whether they are equal."""


@dataclass(frozen=True)
class Space:
    """Applicants as coordinates.

    The distance is (nominal distances + |d1| + |d2| + ...) / ``divisor``, summed in that order and not rounded.
    """

    numeric: Floats
    """``(n, a)`` coordinates, scaled."""
    nominal: Floats
    """``(n, b)`` numbers of categories, or where the categories lie if they are not to be told apart as 0 and 1."""
    overlap: bool
    """Whether two nominal values are 0 or 1 apart, and not their difference."""
    divisor: float
    """Number of attributes. The authors' code counts the protected one as well; ``replace`` it for their figures."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of numeric and of nominal columns."""
        return self.numeric.shape[1], self.nominal.shape[1]

    def rows(self, chosen: Longs | slice) -> "Space":
        """The same of some rows."""
        return replace(self, numeric=self.numeric[chosen], nominal=self.nominal[chosen])


@dataclass(frozen=True)
class Scale:
    """What lays attributes out in a space. Arrays are by numeric attribute, in the order of the columns."""

    low: Floats
    high: Floats
    """``(a,)`` values are clipped to these first; infinite where they are not."""
    centre: Floats
    width: Floats
    """``(a,)`` then centred and divided; infinite for a constant attribute, which so never tells anybody apart."""
    positions: tuple[Floats, ...] | None = None
    """For each nominal attribute where its categories lie, ``(categories,)``; None where they are 0 or 1 apart."""
    propensity: tuple[Floats, float] | None = None
    """Weights, ``(w,)``, and intercept of the score that stands for all attributes, if one does."""


def looked_at(columns: Columns, settings: CstSettings, protected: Sequence[str]) -> Columns:
    """The attributes of the distance: those of the settings, else all, but never the protected ones.

    Args:
        columns: All features.
        settings: ``attributes`` that are asked for.
        protected: Columns that the protected attribute is made of.

    Raises:
        SpecError: If an attribute is not a column or named twice, or none is left.
    """
    for i, name in enumerate(settings.attributes):
        location = ("methods", "cst", "attributes", i)
        if name not in columns.names:
            raise SpecError(f"attributes names {name!r}, which is no feature; {nearest(name, columns.names)}", location)
        if name in settings.attributes[:i]:
            raise SpecError(f"attributes names {name!r} twice; name it once", location)
    names = [name for name in settings.attributes or columns.names if name not in protected]
    if not names:
        message = f"no attribute is left for the distance besides {', '.join(protected)}; add features to the spec"
        raise SpecError(message, ("methods", "cst", "attributes"))
    at = [columns.names.index(name) for name in names]
    kinds, categories = tuple(columns.kinds[i] for i in at), tuple(columns.categories[i] for i in at)
    logged = tuple(name for name in columns.logged if name in names)
    return Columns(tuple(names), kinds, categories, columns.values[:, at], logged)


def fit(attributes: Columns, settings: CstSettings, favourable: Bools, protected: Bools) -> Scale:
    """Fit a scale to all ``n`` rows.

    Args:
        attributes: What the distance looks at (``looked_at``).
        settings: ``distance``, ``scaling`` (of ``overlap`` only) and ``clip`` (of continuous attributes only).
        favourable: ``(n,)`` decisions, which ``hvdm`` looks at.
        protected: ``(n,)`` members of the protected group, which ``propensity`` looks at.

    Raises:
        DataQualityError: If a value is missing or not finite, or ``propensity`` is fitted to one group alone.
    """
    _require_finite(attributes)
    numbers = attributes.values[:, _numeric(attributes)]
    low, high = _bounds(attributes, settings.clip)
    inside = np.clip(numbers, low, high)
    if settings.distance == "overlap" and settings.scaling == "range":
        return Scale(low, high, inside.min(axis=0), np.where(_varies(inside), np.ptp(inside, axis=0), np.inf))
    scale = Scale(low, high, *_mean_and_deviation(inside))
    if settings.distance == "hvdm":
        return replace(scale, width=4 * scale.width, positions=_positions(attributes, favourable))
    if settings.distance == "propensity":
        return replace(scale, propensity=_propensity(_predictors(attributes, scale), protected))
    return scale


def beyond(attributes: Columns, settings: CstSettings) -> tuple[tuple[str, ...], Bools]:
    """Which values are clipped before a scale is fitted: the continuous attributes, and ``(n, c)`` for each of them."""
    chosen = np.array([settings.clip and kind == Kind.CONTINUOUS for kind in attributes.kinds], np.bool_)
    names = tuple(name for name, is_clipped in zip(attributes.names, chosen, strict=True) if is_clipped)
    low, high = (ends[chosen[_numeric(attributes)]] for ends in _bounds(attributes, settings.clip))
    numbers = attributes.values[:, chosen]
    return names, (numbers < low) | (numbers > high)


def fit_imagined(
    factual: Scale, imagined: Columns, settings: CstSettings, favourable: Bools, protected: Bools
) -> Scale:
    """The scale of counterfactual data: z-scores are refitted, as in the authors' code; all else keeps its scale.

    Args:
        factual: The scale of the factual data.
        imagined: The attributes of all rows, the protected ones replaced by their counterfactuals.
        settings: As for ``fit``.
        favourable: As for ``fit``.
        protected: As for ``fit``.
    """
    if settings.distance == "overlap" and settings.scaling == "z_scores":
        return fit(imagined, settings, favourable, protected)
    return factual


def place(attributes: Columns, scale: Scale) -> Space:
    """Lay ``n`` applicants out in the space of a scale.

    Raises:
        DataQualityError: If a value is missing or not finite.
    """
    _require_finite(attributes)
    if scale.propensity is not None:
        weights, intercept = scale.propensity
        score = expit(_predictors(attributes, scale) @ weights + intercept)
        return Space(score[:, None], np.zeros((len(score), 0)), True, 1.0)
    nominal = attributes.values[:, ~_numeric(attributes)]
    if scale.positions is not None:
        at = [position[codes.astype(np.int64)] for position, codes in zip(scale.positions, nominal.T, strict=True)]
        nominal = np.array(at).reshape(len(at), len(nominal)).T
    return Space(_scaled(attributes, scale), nominal, scale.positions is None, float(len(attributes.names)))


def _numeric(attributes: Columns) -> Bools:
    """Which attributes are numbers or orders, ``(p,)``."""
    return np.array([kind in NUMERIC for kind in attributes.kinds], np.bool_)


def _require_finite(attributes: Columns) -> None:
    """Refuse missing values: a distance that skips them would call applicants alike of whom nothing is known."""
    for name, values in zip(attributes.names, attributes.values.T, strict=True):
        missing = int((~np.isfinite(values)).sum())
        if missing and missing == len(values):
            raise DataQualityError(f"{name!r} has no value in any row; leave it out of the attributes of the distance")
        if missing:
            message = f"{name!r} is missing or infinite in {missing} of {len(values)} rows; declare what such values"
            raise DataQualityError(f"{message} mean, refuse the rows, or leave it out of the attributes")


def _bounds(attributes: Columns, clip: bool) -> tuple[Floats, Floats]:
    """Values to which each numeric attribute is clipped, ``(a,)`` each; infinite for orders and without clipping."""
    chosen = _numeric(attributes)
    low, high = np.full(chosen.sum(), -np.inf), np.full(chosen.sum(), np.inf)
    for i, column in enumerate(np.flatnonzero(chosen)):
        if clip and attributes.kinds[column] == Kind.CONTINUOUS:
            low[i], high[i] = np.quantile(attributes.values[:, column], CLIP, method="inverted_cdf")
    return low, high


def _mean_and_deviation(numbers: Floats) -> tuple[Floats, Floats]:
    """Mean and population standard deviation of each column, ``(a,)`` each; infinite deviation for a constant.

    Sums are rounded once, so that neither the order of the rows nor how they lie in memory has a say in ties between
    distances. To the bit these are the numbers behind the authors' counterfactual distances.
    """
    mean = np.array([math.fsum(column) for column in numbers.T]) / len(numbers)
    variance = np.array([math.fsum(column) for column in ((numbers - mean) ** 2).T]) / len(numbers)
    return mean, np.where(_varies(numbers), np.sqrt(variance), np.inf)


def _varies(numbers: Floats) -> Bools:
    """Which columns hold more than one value, ``(a,)``."""
    varies: Bools = numbers.max(axis=0) > numbers.min(axis=0)
    return varies


def _scaled(attributes: Columns, scale: Scale) -> Floats:
    """Coordinates of the numeric attributes, ``(n, a)``."""
    numbers = np.clip(attributes.values[:, _numeric(attributes)], scale.low, scale.high)
    return (numbers - scale.centre) / scale.width


def _positions(attributes: Columns, favourable: Bools) -> tuple[Floats, ...]:
    """Where the categories of each nominal attribute lie, so that differences are normalised value differences.

    Wilson and Martinez (1997), equation 19 (N2): the root of the summed squared differences of the decisions'
    frequencies. With two decisions that is sqrt(2) |P(favourable | x) - P(favourable | y)|: a difference on a line. A
    category that nobody has lies where everybody does on average.
    """
    lines = []
    for column in np.flatnonzero(~_numeric(attributes)):
        codes, categories = attributes.values[:, column].astype(np.int64), len(attributes.categories[column])
        rows = np.bincount(codes, minlength=categories)
        share = np.bincount(codes, favourable, minlength=categories) / np.maximum(rows, 1)
        lines.append(np.sqrt(2) * np.where(rows > 0, share, favourable.mean()))
    return tuple(lines)


def _predictors(attributes: Columns, scale: Scale) -> Floats:
    """What the propensity score is made of, ``(n, w)``: scaled numbers, and one column per category."""
    sets = [
        attributes.values[:, [column]] == np.arange(len(attributes.categories[column]))
        for column in np.flatnonzero(~_numeric(attributes))
    ]
    return np.column_stack([_scaled(attributes, scale), *sets]).astype(np.float64)


def _propensity(predictors: Floats, protected: Bools) -> tuple[Floats, float]:
    """Weights and intercept of a logistic regression of membership in the protected group."""
    if protected.all() or not protected.any():
        raise DataQualityError(
            "a propensity score needs rows inside and outside the protected group; found one of both"
        )
    model = LogisticRegression(max_iter=1000).fit(predictors, protected)
    return model.coef_[0], float(model.intercept_[0])
