"""Generative counterfactual fairness network (GCFN; Ma, Melnychuk, Frauen and Feuerriegel)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from schemas.terms import Note
from tasks.methods.gcfn.algorithm import people as gcfn_tallies
from tasks.methods.gcfn.algorithm.people import Moved, net_change
from tasks.methods.gcfn.settings import GcfnSettings
from tasks.numerics.arrays import Bools, Floats, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Evidence, Findings, Inference, Tally
from tasks.numerics.statistics.regression import is_poor
from tasks.numerics.statistics.sampling import design_variance

# --------------------------------------------------------------------------------------------------------------------
# Net share of changed decisions, with the standard error that refits of a generator give it; and the relative change.
#
# ``share_changed`` is the share of members whose decision would turn favourable, less the share whose decision would
# turn unfavourable, had they been of the reference group: the share denied now less the share denied then. Above 0,
# belonging to the group harms. The denial difference of CST (``cst_effect``) has the same sign.
#
# The standard error is that of one network, which varies more than the mean of several: it is told, and no interval is
# made of it (docs/methods/gcfn.md has what was simulated).
#
# Scope: aggregates of one group outside the reference group. Means over rows: ``tallies``.


MEASURE, CHANGED_RELATIVE, SUPPORT = "share_changed", "relative_change", "mediator_support"

IDENTIFIED = 0.5
"""Share of a group that has to be identified before it has a standard error (verdicts, section 4)."""
FEWEST = 0.8
"""Share of the refits that must have a value."""

SMALLEST = 1e-12
"""A spread that is smaller is that of rounding."""

NOT_IDENTIFIED = "less than half of the group is identified: no standard error"
NOT_REFITTED = "too few refits have a value, or all have the same: no standard error"


def share_changed(reassigned: Moved, refits: Floats, part: tuple[int, int] = (0, 0)) -> Aggregate:
    """The net share of changed decisions of a group, the mean over networks.

    Args:
        reassigned: Its rows, some of them imagined in the reference group.
        refits: ``(refits,)`` the same of resampled rows by one network each; none without refits.
        part: How many members were asked, and of how many: a sample adds its variance to that of the refits, which
            are of all rows.
    """
    n = int(reassigned.imagined.sum())
    net_changes = net_change(reassigned.flips[:, reassigned.imagined], reassigned.favourable[reassigned.imagined])
    value, row_changes = float(net_changes.mean()), net_changes.mean(axis=0)
    design = design_variance((row_changes - row_changes.mean()) / max(n, 1), *part)
    finite_refits = refits[np.isfinite(refits)]
    reason, se = "", np.nan
    if len(refits):
        identified = 1 - float(np.nanmean(reassigned.unidentified))
        se = float(finite_refits.std(ddof=1)) if len(finite_refits) >= max(2, FEWEST * len(refits)) else np.nan
        reason = NOT_IDENTIFIED if identified < IDENTIFIED else "" if se > SMALLEST else NOT_REFITTED
    if design:
        se = math.hypot(se, math.sqrt(design))
    inference = Inference() if not len(refits) or reason else Inference(se=se, df=len(finite_refits) - 1.0)
    return Aggregate(0, 0, MEASURE, {}, value, n, compared=False, reason=reason, inference=inference)


def relative_change(change: Floats, denial: Floats, resamples: int, rng: np.random.Generator) -> Aggregate | None:
    """Sum of the score changes over the sum of the own probabilities of denial; None where no row has both.

    A ratio of sums, never a mean of ratios: of who is hardly ever denied, the own ratio is noise.

    Args:
        change: ``(n,)`` mean change of the score over networks; NaN where nothing was imagined.
        denial: ``(n,)`` own probability of denial by the model; NaN of a model that knows none.
        resamples: Of the rows, for the interval.
        rng: Draws them.
    """
    finite = np.isfinite(change) & np.isfinite(denial)
    change, denial = change[finite], denial[finite]
    if denial.sum() <= 0:
        return None
    replicates = np.full(resamples, np.nan)
    for number in range(resamples):
        rows = rng.integers(0, len(change), len(change))
        below = denial[rows].sum()
        replicates[number] = change[rows].sum() / below if below > 0 else np.nan
    value = float(change.sum() / denial.sum())
    return Aggregate(0, 0, CHANGED_RELATIVE, {}, value, len(change), compared=False, replicates=replicates)


def of_each(change: Floats, denial: Floats) -> Floats:
    """Change of the score over the own probability of denial, ``(n,)``; NaN where that is 0 or not known."""
    relative: Floats = np.divide(change, denial, out=np.full(len(change), np.nan), where=denial > 0)
    return relative


# --------------------------------------------------------------------------------------------------------------------
# Generative counterfactual fairness network (GCFN; Ma, Melnychuk, Frauen and Feuerriegel): the audit of a given model.
#
# Generators produced the mediators of every applicant in another group, and the model that decided on the applicant
# decided again. The method compares both decisions: whose would change, how far scores move, and about whom the
# generators disagree. The lender cannot decide again, so it has no findings.
#
# Scope: the order of the method and the verdict on each row. Tallies of a group: ``tallies``. Fair predictors:
# ``fair_prediction``. Generators: ``tasks.counterfactuals.algorithm.gan`` and
# ``tasks.counterfactuals.algorithm.conditional``.


KEPT, CHANGES, DETECTION_NOT_IDENTIFIED, NOT_TESTED = (
    "decision_kept",
    "decision_changes",
    "not_identified",
    "not_tested",
)
"""Verdicts; a row that could not be imagined was not tested."""

RELATIVE = "relative_change"
"""Role in the evidence, of a row with itself: change of the score over the own probability of denial."""


@dataclass(frozen=True)
class Mediated:
    """What a model would have decided, had mediators been those of another group; by ``s`` networks."""

    row: Longs
    """``(m,)`` the rows imagined, ascending; one of the reference group once for each other group."""
    spread: Floats
    """``(m,)`` how far the networks part; NaN where refused, or where there is one network."""
    refusal: NDArray[np.str_]
    """``(m,)`` empty, or the reason (``schemas.terms.Refusal``)."""
    flips: Bools
    """``(s, m)`` whether the decision is another one; False where refused."""
    change: Floats
    """``(s, m)`` score then less score now; NaN where refused."""
    denial: Floats = field(default_factory=lambda: np.zeros(0))
    """``(n,)`` probability of denial by the model of every row of the problem; none of a model that knows none."""
    refits: Mapping[str, Floats] = field(default_factory=dict)
    """Group -> ``(refits,)`` net share of changed decisions on resampled rows, by one network each; or empty."""
    support: Mapping[str, float] = field(default_factory=dict)
    """Group -> share with comparable applicants in the reference group, by the covariates; or empty."""

    def of(self, sampled: Bools) -> "Mediated":
        """The same of some rows of the problem, ``(n,)``."""
        mask = sampled[self.row]
        return replace(
            self,
            row=self.row[mask],
            spread=self.spread[mask],
            refusal=self.refusal[mask],
            flips=self.flips[:, mask],
            change=self.change[:, mask],
        )


def units(problem: Problem) -> Bools:
    """Rows with a finding, ``(n,)``: outside the reference group and in the sample; none without a model."""
    outside: Bools = (problem.group != problem.reference) & problem.drawn
    return outside if _mediated(problem) is not None else np.zeros(len(problem.group), np.bool_)


def detect(problem: Problem, settings: GcfnSettings, rng: np.random.Generator) -> Detected:
    """Hold the decisions on applicants against those on their counterfactuals.

    Args:
        problem: One decision maker and one protected attribute. A decision maker that could not be asked about
            imagined applicants, as a lender cannot, has no findings.
        settings: ``wide`` and ``quantile``; generators were trained before.
        rng: Draws rows anew for the intervals of the quantile and of the relative change; nothing else is left to
            chance.

    Returns:
        Findings by ascending row. Members of the reference group have none, and are measured beside the others.
    """
    mediated = _mediated(problem)
    if mediated is None or problem.applicants is None:
        return Detected(_findings(problem, None, np.zeros(0, np.bool_)), _no_evidence(), (), ())
    doubtful = unidentified(mediated, settings.wide)
    tallies: list[Tally] = []
    aggregates: list[Aggregate] = []
    for group in np.unique(problem.group).tolist():
        rows = np.flatnonzero((problem.group == group) & problem.drawn)
        reassigned = of_rows(mediated, doubtful, problem.applicants.favourable, rows)
        tallies += [replace(t, group=group) for t in gcfn_tallies.tallies(reassigned)]
        group_aggregates = gcfn_tallies.aggregates(reassigned, settings, problem.resamples, rng)
        aggregates += [replace(a, group=group) for a in group_aggregates]
    aggregates += _of_groups(problem, mediated, doubtful, problem.applicants.favourable, rng)
    verdicts = _findings(problem, mediated, doubtful)
    return Detected(verdicts, _relative(problem, mediated), tuple(tallies), (), tuple(aggregates))


def _of_groups(
    problem: Problem, mediated: Mediated, doubtful: Bools, favourable: Bools, rng: np.random.Generator
) -> Iterator[Aggregate]:
    """Net changes of the groups outside the reference group: their counterfactuals are in it alone."""
    for group in np.unique(problem.group).tolist():
        if group == problem.reference:
            continue
        rows = np.flatnonzero((problem.group == group) & problem.drawn)
        reassigned = of_rows(mediated, doubtful, favourable, rows)
        refits = mediated.refits.get(problem.groups[group], np.zeros(0))
        if not reassigned.imagined.any():
            continue
        share = mediated.support.get(problem.groups[group], math.nan)
        net = share_changed(reassigned, refits, problem.part(group))
        reason = "; ".join(filter(None, (net.reason, Note.POOR_SUPPORT * is_poor(share))))
        yield replace(net, group=group, reason=reason)
        yield Aggregate(group, 0, SUPPORT, {}, share, len(rows), compared=False)
        if len(mediated.denial):
            relative = relative_change(reassigned.change.mean(axis=0), mediated.denial[rows], problem.resamples, rng)
            if relative is not None:
                yield replace(relative, group=group)


def _relative(problem: Problem, mediated: Mediated) -> Evidence:
    """Of every row with a finding the change of its score over its own probability of denial, where there is one."""
    if not len(mediated.denial):
        return _no_evidence()
    outside = problem.group[mediated.row] != problem.reference
    row = mediated.row[outside]
    value = of_each(mediated.change[:, outside].mean(axis=0), mediated.denial[row])
    row, value = row[np.isfinite(value)], value[np.isfinite(value)]
    return Evidence(row, np.full(len(row), RELATIVE), np.ones(len(row), np.int32), row, value)


def unidentified(mediated: Mediated, wide: float) -> Bools:
    """``(m,)`` whether networks disagree about the decision, or part too far about mediators."""
    disagree: Bools = mediated.flips.any(axis=0) != mediated.flips.all(axis=0)
    return disagree | (mediated.spread > wide)


def of_rows(mediated: Mediated, doubtful: Bools, favourable: Bools, rows: Longs) -> Moved:
    """The results of some rows ``(n,)``, ascending, as means over the groups of each row's counterfactuals."""
    mask = (mediated.refusal == "") & np.isin(mediated.row, rows)
    place = np.searchsorted(rows, mediated.row[mask])

    def over(values: Floats) -> Floats:
        return np.array([_mean_by(place, by_network, len(rows)) for by_network in values])

    change = mediated.change[:, mask]
    return Moved(
        favourable=favourable[rows],
        flips=over(mediated.flips[:, mask].astype(np.float64)),
        change=over(change),
        absolute=over(np.abs(change)),
        squared=over(np.square(change)),
        spread=_mean_by(place, mediated.spread[mask], len(rows)),
        unidentified=_mean_by(place, doubtful[mask].astype(np.float64), len(rows)),
    )


def _mean_by(place: Longs, values: Floats, n: int) -> Floats:
    """Means of values ``(m,)`` by place, ``(n,)``; NaN where there is none."""
    total, count = np.bincount(place, values, n), np.bincount(place, minlength=n)
    means: Floats = np.divide(total, count, out=np.full(n, np.nan), where=count > 0)
    return means


def _mediated(problem: Problem) -> Mediated | None:
    """The model's decisions on counterfactual mediators, of the sampled rows."""
    if not isinstance(problem.method_data, Mediated):
        return None
    return problem.method_data if problem.sample is None else problem.method_data.of(problem.drawn)


def _findings(problem: Problem, mediated: Mediated | None, doubtful: Bools) -> Findings:
    """One entry per row outside the reference group, with counterfactuals in it alone."""
    if mediated is None:
        nothing = np.zeros(0, dtype=str)
        return Findings(np.zeros(0, np.int64), np.zeros(0, np.int32), nothing, np.zeros(0), nothing)
    outside = problem.group[mediated.row] != problem.reference
    refusal, flips = mediated.refusal[outside], np.asarray(mediated.flips[:, outside].all(axis=0))
    cases = [(refusal != "", NOT_TESTED), (doubtful[outside], DETECTION_NOT_IDENTIFIED), (flips, CHANGES)]
    return Findings(
        row=mediated.row[outside],
        subgroup=np.zeros(int(outside.sum()), np.int32),
        # the first verdict that applies
        verdict=np.select([met for met, _ in cases], [verdict for _, verdict in cases], KEPT),
        statistic=mediated.change[:, outside].mean(axis=0),
        refusal=refusal,
    )


def _no_evidence() -> Evidence:
    """No other row is evidence for a finding."""
    rows = np.zeros(0, np.int64)
    return Evidence(rows, np.zeros(0, dtype=str), np.zeros(0, np.int32), rows, np.zeros(0))
