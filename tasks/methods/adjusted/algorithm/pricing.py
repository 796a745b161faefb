"""Prices of loans that were made: how much more a group pays than reference borrowers of the same product and terms.

A ladder as for denials: nothing, the product, then each block of controls, then the columns that hold discretion, which
may be how a difference comes about. Least squares by group against the reference group, on the same loans on every
rung, with HC1 or clustered errors; median and 90 % quantile beside it, since a few dear loans make means. Nothing here
is set by the denial side of the decision: a price is compared among loans alone. Source: lending practice; Koenker and
Bassett 1978; errors of quantiles as Greene 2012, section 7.3.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from tasks.methods.adjusted.algorithm.design import (
    Block,
    Control,
    Form,
    code_control,
    gram_of,
    independent,
    independent_in,
    renumbered,
)
from tasks.methods.adjusted.algorithm.estimators import few_clusters
from tasks.methods.adjusted.algorithm.regressions import change, effect_of
from tasks.methods.adjusted.algorithm.sensitivity import Estimate, robustness_value
from tasks.methods.adjusted.algorithm.streamed import nested_fits
from tasks.numerics.arrays import Bools, Column, Floats, Ints, Matrix, Packed, first_columns_of, some_columns_of
from tasks.numerics.statistics.regression import BLOCK, MANY, critical_value, fit_logit

PRODUCT, DISCRETION = "product", "discretion"
"""Blocks that a price ladder begins with, and ends with."""
QUANTILES: Final = {"median": 0.5, "q90": 0.9}
MOST_LOANS: Final = 20_000
"""Of more loans no quantile is fitted: its linear programme grows faster than their number."""
NO_LOANS, FEW_LOANS, NO_PRICE = "no_originations", "too_few_loans", "no_price"
ONE_PRODUCT, FEW_EVENTS = "one_product", "too_few_events"
"""How reasons begin."""
EXEMPT: Final = "exempt: {} of the loans of both groups need not report it"
UNREADABLE: Final = "unreadable: {} of the loans of both groups have a price that is no number"
WITHOUT_CONTROLS: Final = "without_controls: {} of the priced loans of both groups lack a control, and are on no rung"
"""Remarks, with the shares of both groups."""


@dataclass(frozen=True)
class Loans:
    """Loans that were made, with one price."""

    price: Floats
    """``(n,)`` NaN where it is missing or exempt, which is no zero."""
    group: Ints
    groups: tuple[str, ...]
    reference: int
    blocks: tuple[Block, ...]
    """The product first; ``discretion`` last, where there is one."""
    cluster: Ints | None = None

    def complete(self) -> Bools:
        """``(n,)`` whether a loan has every control."""
        has_all = np.ones(len(self.price), np.bool_)
        for control in (control for block in self.blocks for control in block.controls):
            has_all &= np.isfinite(control.values)
            if control.scale == "log":
                has_all &= control.values > 0
        return has_all


@dataclass(frozen=True)
class PriceEffect:
    """What one group pays beyond similar reference borrowers."""

    rung: int
    blocks: tuple[str, ...]
    group: int
    estimator: str
    """``ols``, ``median`` or ``q90``; ``logit`` of a flag."""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    se: float = math.nan
    df: float = math.inf
    n: int = 0
    """Loans of the group with a price and every control."""
    n_reference: int = 0
    filled: float = math.nan
    """Share of the group's loans with a price."""
    filled_reference: float = math.nan
    rv: float = math.nan
    """Robustness value of the least squares estimate."""
    unseen: float = 0.0
    """How far an unseen column of unit strength moves it: classical error times the root of the degrees of freedom."""
    primary: bool = False
    """Whether it is of the last rung before ``discretion``, by least squares."""
    reason: str = ""


def price_ladder(loans: Loans, form: Form, level: float, fewest: int, *, quantiles: bool = True) -> list[PriceEffect]:
    """The effects of every group, rung and estimator; a group that cannot be compared has one row with the reason.

    Args:
        loans: of one price.
        form: whether numbers enter with their squares.
        level: of the intervals.
        fewest: loans of either group that are needed.
        quantiles: whether median and 90 % quantile are fitted on the judged rung.
    """
    out, complete = list[PriceEffect](), loans.complete()
    for group in range(len(loans.groups)):
        if group == loans.reference or not (loans.group == group).any():
            continue
        design = price_design(loans, complete, group, form, fewest)
        if not len(design.y):
            out += design.rungs
            continue
        for rung, effect in zip(design.rungs, least_squares(design, level), strict=True):
            out.append(effect)
            if quantiles and rung.primary:
                out += quantile_rows(design, rung, level)
    return out


def flag_ladder(loans: Loans, form: Form, level: float, fewest: int, events: int) -> Iterator[PriceEffect]:
    """The same of a flag, 0 or 1: by a logit, the average change of its probability over the group's own loans.

    Args:
        loans: of one flag, in place of a price.
        form: as above.
        level: as above.
        fewest: as above.
        events: loans with the flag, and without it, that either group needs.
    """
    complete = loans.complete()
    for group in range(len(loans.groups)):
        members, reference = loans.group == group, loans.group == loans.reference
        if group == loans.reference or not members.any():
            continue
        flags = [loans.price[side & np.isfinite(loans.price)] for side in (members, reference)]
        if min(min(flag.sum(), len(flag) - flag.sum()) for flag in flags) < events:
            used, base = compared(loans, complete, group, fewest)
            why = f"{FEW_EVENTS}: fewer than {events} loans with it, or without it, on one side"
            yield replace(base, estimator="logit", reason=why if used.any() else base.reason)
            continue
        design = price_design(loans, complete, group, form, fewest)
        y, cluster, of_group = design.y, design.cluster, design.members
        for number, rung in enumerate(design.rungs):
            row = replace(rung, estimator="logit", primary=False)
            if not len(y):
                yield row
                break
            x = design.columns(number)
            fit = fit_logit(x, y)
            if fit.separated:
                yield replace(row, reason=f"separated: {fit.separated}")
                continue
            reason = "; ".join(filter(None, (row.reason, few_clusters(cluster, of_group))))
            of = effect_of(change(fit.coefficients, x[of_group], 1, slice(1, 2)), fit, x, y, level, cluster)
            yield replace(row, value=of.value, low=of.low, high=of.high, se=of.se, reason=reason)


def with_remark(effect: PriceEffect, loans: Loans, remark: str, concerned: Bools) -> PriceEffect:
    """The effect with a remark on loans whose price is missing, and no zero.

    Args:
        effect: of one group.
        loans: all of them.
        remark: ``EXEMPT`` or ``UNREADABLE``.
        concerned: ``(n,)`` whether it holds for a loan.
    """
    if not concerned.any():
        return effect
    shares = _shares(remark, *(concerned[loans.group == group] for group in (effect.group, loans.reference)))
    return replace(effect, reason="; ".join(filter(None, (effect.reason, shares))))


def _shares(remark: str, *sides: Bools) -> str:
    """A remark with the share of either side; empty where it holds for no loan."""
    if not any(side.any() for side in sides):
        return ""
    shares = [side.mean() if len(side) else 0.0 for side in sides]
    return remark.format(" and ".join("under 1%" if 0 < share < 0.005 else f"{share:.0%}" for share in shares))


def by_product(
    loans: Loans, products: Ints, form: Form, level: float, fewest: int
) -> Iterator[tuple[int, PriceEffect]]:
    """The judged effect inside each product: its number, and the effect of each group.

    Args:
        loans: of one price.
        products: ``(n,)`` number of each loan's product; -1 for none.
        form: as above.
        level: as above.
        fewest: as above.
    """
    for number in range(int(products.max(initial=-1)) + 1):
        inside = products == number
        some = loans_of(loans, inside)
        for effect in price_ladder(some, form, level, fewest, quantiles=False):
            if effect.primary or effect.reason.startswith((FEW_LOANS, NO_PRICE, NO_LOANS)):
                yield number, effect


def loans_of(loans: Loans, inside: Bools) -> Loans:
    """Some of the loans."""
    blocks = tuple(Block(b.name, tuple(replace(c, values=c.values[inside]) for c in b.controls)) for b in loans.blocks)
    cluster = None if loans.cluster is None else loans.cluster[inside]
    return replace(loans, price=loans.price[inside], group=loans.group[inside], blocks=blocks, cluster=cluster)


@dataclass(frozen=True)
class PriceDesign:
    """Loans of one group and of the reference group, with the columns of all rungs."""

    rungs: tuple[PriceEffect, ...]
    """Without values; reasons remark on the rung. A single one refuses a group that cannot be compared."""
    y: Floats
    """``(n,)`` price of the loans in use; none of a group that cannot be compared."""
    x: Matrix
    """``(n, p)`` intercept, membership of the group, controls; each rung has the first ones. Packed of many loans."""
    widths: tuple[int, ...]
    """Columns of each rung."""
    members: Bools
    """``(n,)`` loans of the group."""
    cluster: Ints | None = None
    gram: Floats | None = None
    """``(p, p)`` cross products of the columns, where they are known."""

    def columns(self, rung: int) -> Floats:
        """Those of one rung."""
        columns = first_columns_of(self.x, self.widths[rung])
        return columns.dense() if isinstance(columns, Packed) else np.ascontiguousarray(columns)


def compared(loans: Loans, complete: Bools, group: int, fewest: int) -> tuple[Bools, PriceEffect]:
    """``(n,)`` loans of one group and of the reference group that are in use, and what every rung has of them.

    Where the group cannot be compared there are none, and the effect has the reason. ``complete``: as ``Loans`` has it.
    """
    members, reference = loans.group == group, loans.group == loans.reference
    priced = np.isfinite(loans.price)
    used = priced & (members | reference) & complete
    lacking = _shares(WITHOUT_CONTROLS, *(~used[priced & side] for side in (members, reference)))
    base = PriceEffect(
        *(0, (), group, "ols"),
        n=int((used & members).sum()),
        n_reference=int((used & reference).sum()),
        filled=float(priced[members].mean()),
        filled_reference=float(priced[reference].mean()) if reference.any() else math.nan,
        reason=lacking,
    )
    why = ""
    if not reference.any():
        why = f"{NO_LOANS}: the reference group has no loan"
    elif not (priced & members).any() or not (priced & reference).any():
        why = f"{NO_PRICE}: no loan of the group, or of the reference group, has this price"
    elif min(base.n, base.n_reference) < fewest:
        why = f"{FEW_LOANS}: fewer than {fewest} loans with price and controls on one side"
    return (np.zeros_like(used), _remarked(base, why)) if why else (used, base)


def price_design(loans: Loans, complete: Bools, group: int, form: Form, fewest: int) -> PriceDesign:
    """The rungs of one group; a single one without rows where it cannot be compared."""
    used, base = compared(loans, complete, group, fewest)
    members = loans.group == group
    if not used.any():
        return PriceDesign((base,), np.zeros(0), np.zeros((0, 0)), (0,), members[:0])
    y = loans.price[used]
    columns = [Column(np.broadcast_to(1.0, len(y))), Column(members[used], 1)]
    rungs, ends = [base], [len(columns)]
    for block in loans.blocks:
        columns += itertools.chain.from_iterable(_coded(control, used, form) for control in block.controls)
        effect = replace(base, rung=len(rungs), blocks=(*rungs[-1].blocks, block.name))
        is_single = block.name == PRODUCT and len(columns) == ends[-1]
        rungs.append(_remarked(effect, f"{ONE_PRODUCT}: every loan is of the same product") if is_single else effect)
        ends.append(len(columns))
    judged = len([block for block in loans.blocks if block.name != DISCRETION])
    packed = Packed.of(columns)
    x: Matrix = packed if len(y) > MANY else packed.dense()
    gram = gram_of(x) if len(y) > BLOCK else None
    is_independent = independent(x) if gram is None else independent_in(gram)
    if not is_independent.all():
        x = some_columns_of(x, is_independent)
        gram = None if gram is None else gram[np.ix_(is_independent, is_independent)]
    return PriceDesign(
        tuple(replace(effect, primary=effect.rung == judged) for effect in rungs),
        y,
        x,
        tuple(int(is_independent[:end].sum()) for end in ends),
        members[used],
        None if loans.cluster is None else renumbered(loans.cluster[used]),
        gram,
    )


def _remarked(effect: PriceEffect, *remarks: str) -> PriceEffect:
    """The effect with further remarks before those that it has."""
    return replace(effect, reason="; ".join(filter(None, (*remarks, effect.reason))))


def _coded(control: Control, used: Bools, form: Form) -> list[Column]:
    """Numbers as in the ladder of denials; each category but the commonest has an indicator, however rare it is."""
    if control.kind == "number":
        coded = code_control(control, np.zeros(len(used), np.bool_), used, form)
        return list(itertools.compress(coded.parts, coded.varies))
    codes = control.values[used].astype(np.int32)
    counts = np.bincount(codes)
    return [Column(codes, int(code)) for code in np.flatnonzero(counts) if code != counts.argmax()]


def least_squares(design: PriceDesign, level: float) -> Iterator[PriceEffect]:
    """The coefficient of the group on each rung with its error, and what an unseen column could do to it."""
    cluster, n = design.cluster, len(design.y)
    df = math.inf if cluster is None else float(len(np.unique(cluster)) - 1)
    few = few_clusters(cluster, design.members)
    fits = nested_fits(design.y, design.x, 1, design.widths, cluster, design.gram)
    for effect, width, fit in zip(design.rungs, design.widths, fits, strict=True):
        if fit is None:
            yield _remarked(effect, f"{n} rows are too few for {width} columns")
            continue
        half = critical_value(level, cluster) * fit.se
        yield replace(
            effect,
            value=fit.value,
            low=fit.value - half,
            high=fit.value + half,
            se=fit.se,
            df=df,
            rv=robustness_value(Estimate(fit.value, fit.classical, fit.df)) if fit.classical > 0 else math.nan,
            unseen=fit.classical * math.sqrt(fit.df),
            reason="; ".join(filter(None, (effect.reason, few))),
        )


def quantile_rows(design: PriceDesign, effect: PriceEffect, level: float) -> Iterator[PriceEffect]:
    """The same by quantiles, on the rung of an effect."""
    for name, tau in QUANTILES.items():
        row = replace(effect, estimator=name, primary=False)
        many = f"too_many_loans: more than {MOST_LOANS:,}, for which no quantile is fitted"
        fitted = quantile_fit(design.y, design.columns(effect.rung), tau) if len(design.y) <= MOST_LOANS else None
        if fitted is None:
            yield replace(row, reason=many if len(design.y) > MOST_LOANS else "the quantile has no fit")
            continue
        value, se = float(fitted[0][1]), float(fitted[1][1])
        half = critical_value(level) * se
        yield replace(row, value=value, low=value - half, high=value + half, se=se)


SHARE_APART, FEWEST_APART = 0.5, 4_000
"""Loans of a first fit, in units of p^(1/2) n^(2/3), and those above which there is one."""
ROUNDING: Final = 1e-11
"""Share of the largest price below which a residual is the rounding of zero."""


def quantile_fit(y: Floats, x: Floats, tau: float) -> tuple[Floats, Floats] | None:
    """Coefficients of a quantile regression ``(p,)`` and their robust standard errors ``(p,)``; None without a fit.

    The linear programme is the dual one (Koenker 2005, section 6.2): the most of y'a with X'a = (1 - tau) X'1 and a in
    [0, 1]. Its basis has as many rows as X has columns, so that it takes a twentieth of the time of the primal. Errors:
    n / (n - p) (X'X)^-1 X'DX (X'X)^-1 with weights (tau / f)^2 above the fit and ((1 - tau) / f)^2 below, f the density
    at zero by an Epanechnikov kernel with the bandwidth of Hall and Sheather. Of the p loans that the fit goes through
    none counts in f, since they are there by construction: 95 % intervals of the 90 % quantile with them cover 75 to
    95 %, without them 93 to 99 %. They have the larger weight of both.
    """
    coefficients = quantile_coefficients(y, x, tau)
    if coefficients is None:
        return None
    residuals = _residuals(y, x, coefficients)
    (n, p), off = x.shape, residuals[residuals != 0]
    if n <= p or not len(off):
        return None
    low, high = np.quantile(off, [0.25, 0.75])
    z = float(scipy.stats.norm.ppf(tau))
    density = float(scipy.stats.norm.pdf(z))
    share = n ** (-1 / 3) * scipy.stats.norm.ppf(0.975) ** (2 / 3) * (1.5 * density**2 / (2 * z**2 + 1)) ** (1 / 3)
    share = min(share, tau - 1e-6, 1 - tau - 1e-6)
    spread = float(scipy.stats.norm.ppf(tau + share) - scipy.stats.norm.ppf(tau - share))
    width = min(float(np.std(y)), float(high - low) / 1.34) * spread
    if not width > 0:
        return None
    scaled = off / width
    f = float(np.where(np.abs(scaled) <= 1, 0.75 * (1 - scaled**2), 0.0).mean()) / width
    if not f > 0:
        return None
    above, below = (tau / f) ** 2, ((1 - tau) / f) ** 2
    weights = np.select([residuals > 0, residuals < 0], [above, below], max(above, below))
    bread = np.linalg.pinv(x.T @ x)
    covariance = bread @ ((x * weights[:, None]).T @ x) @ bread * (n / (n - p))
    return coefficients, np.sqrt(np.diag(covariance))


def quantile_coefficients(y: Floats, x: Floats, tau: float) -> Floats | None:
    """``(p,)`` coefficients of a quantile regression by its dual programme; None without a fit.

    Of many loans most lie surely above or below the fit, and a is 1 or 0 there. A fit of every so many-th loan tells
    which, and the programme has the others alone (Portnoy and Koenker 1997, section 5). A loan that turns out to lie on
    the other side comes back into it; once there is none, the fit is that of all loans.
    """
    n, p = x.shape
    sums, some = (1 - tau) * x.sum(axis=0), round(SHARE_APART * math.sqrt(p) * n ** (2 / 3))
    first = None
    if max(FEWEST_APART, 2 * some) < n:
        few = slice(None, None, n // some)
        first = quantile_coefficients(y[few], x[few], tau)
    if first is None:
        return _dual(y, x, sums)
    residuals, nearest = y - x @ first, 2 * some
    above, order = residuals > 0, np.argsort(np.abs(residuals))
    open_ = np.zeros(n, np.bool_)
    while True:
        open_[order[:nearest]] = True
        fit = _dual(y[open_], x[open_], sums - x[above & ~open_].sum(axis=0))
        if open_.all():
            return fit
        if fit is None:  # too few are open for what the others leave
            nearest *= 2
            continue
        residuals = _residuals(y, x, fit)
        wrong = ~open_ & np.where(above, residuals < 0, residuals > 0)
        if not wrong.any():
            return fit
        open_ |= wrong


def _residuals(y: Floats, x: Floats, coefficients: Floats) -> Floats:
    """``(n,)`` without the rounding of zero."""
    residuals: Floats = y - x @ coefficients
    residuals[np.abs(residuals) < ROUNDING * np.abs(y).max()] = 0.0
    return residuals


def _dual(y: Floats, x: Floats, sums: Floats) -> Floats | None:
    """``(p,)`` marginals of the most of y'a with X'a = sums and a in [0, 1]."""
    fit = scipy.optimize.linprog(-y, A_eq=x.T, b_eq=sums, bounds=(0, 1), method="highs-ds")
    return None if fit.status else -np.asarray(fit.eqlin.marginals, dtype=np.float64)


def higher_priced(spread: Floats, subordinate: Bools, jumbo: Bools, covered: Bools) -> Floats:
    """``(n,)`` 1 for a higher-priced loan by its spread, 0 for others, NaN without a spread and where not covered.

    1.5 points above the average prime offer rate for a first lien, 2.5 for a jumbo one, 3.5 for a subordinate lien
    (12 CFR 1026.35(a)(1)). The rule covers closed-end consumer credit on a principal dwelling.
    """
    least = np.where(subordinate, 3.5, np.where(jumbo, 2.5, 1.5))
    return np.where(np.isfinite(spread) & covered, (spread >= least).astype(np.float64), np.nan)
