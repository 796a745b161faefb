"""Group counterfactual explanations on a feasibility graph (FGCE), and their statistics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.terms import Note, Refusal
from tasks.methods.fgce.algorithm import covering, optima, recourse
from tasks.methods.fgce.algorithm.optima import Full, Least, Limits, Resampled, Scale
from tasks.methods.fgce.algorithm.recourse import Explained, Pricing, Searched, nearest
from tasks.methods.fgce.settings import FgceSettings
from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.problem import Problem
from tasks.numerics.results import Aggregate, Detected, Draws, Evidence, Findings, Tally
from tasks.numerics.statistics.intervals import as_said, counted, mean, share

# --------------------------------------------------------------------------------------------------------------------
# Aggregates of FGCE: optima, areas of least costs, saturation points and sizes, which are no means over rows.
#
# Optima are solved again on bootstrap samples of the factual rows; statistics of the greedy selection are resampled
# with the selection fixed. k0 and d0 can only fall when rows are left out, so their intervals lie at or below the
# value: they show the dependence on few rows, and not the range in another sample. d0 at k0 may rise, because fewer
# candidates may then be allowed.
#
# Scope: replicates and reasons of each value. Values: ``optima`` and ``curves``.


@dataclass(frozen=True)
class Solved:
    """The optima of a group, a subgroup or a subsample, and the same on resamples of its rows."""

    full: Full
    least: Least
    costs: Mapping[float, Floats]
    """By share c, ``(b + 1, k)`` least costs: of the resamples, if any, and last as in ``least``."""
    again: Sequence[Full] = ()
    """``full`` on resamples."""


def solve(
    explained: Explained, limits: Limits, settings: FgceSettings, at: Resampled, rng: np.random.Generator
) -> Solved:
    """The optima of ``explained`` and of ``settings.resolves`` resamples of its rows.

    ``at`` is its coverage on resamples, for the bounds that follow from the selection.
    """
    searched = explained.searched
    tables = optima.tables_of(searched, settings)
    if tables is None:
        costs = optima.bounded(explained, at, limits, settings.shares)
        return Solved(optima.bounds(explained), optima.as_least(costs), costs)
    solver = optima.solver_of(settings)
    parts = optima.parts_of(tables, searched.weight)
    drawn_parts = []
    for _ in range(settings.resolves):  # as many factual rows as there are, drawn with replacement
        drawn_rows = rng.choice(searched.at, len(searched.at))
        weight = np.bincount(drawn_rows, minlength=len(searched.weight)).astype(np.int64)
        drawn_parts.append(optima.parts_of(tables, weight))
    again = [optima.full(draw_parts, solver) for draw_parts in drawn_parts]
    full = optima.full(parts, solver)
    if not settings.exact:
        costs = optima.bounded(explained, at, limits, settings.shares)
        return Solved(full, optima.as_least(costs), costs, again)
    least = [optima.least(draw_parts, settings) for draw_parts in (*drawn_parts, parts)]
    costs = {
        c: np.array([[v.value for (_, s), v in optimum_of_share.items() if s == c] for optimum_of_share in least])
        for c in settings.shares
    }
    return Solved(full, least[-1], costs, again)


def of_full(solved: Solved) -> Iterator[Aggregate]:
    """k0, d0 and d0 at k0; the difference of each from the reference group is tested.

    Solved again on resamples, they have a range and no interval: an optimum over fewer distinct rows is never larger.
    """
    for measure in ("k0", "d0", "d0_at_k0"):
        value, reason = getattr(solved.full, measure)
        again = np.array([getattr(optimum, measure).value for optimum in solved.again], dtype=np.float64)
        reason = "; ".join(filter(None, (reason, Note.RANGE if np.isfinite(again).any() else "")))
        yield Aggregate(0, 0, measure, {}, value, solved.full.n, True, reason=reason, replicates=again)


def of_gap(explained: Explained, limits: Limits, settings: FgceSettings) -> Iterator[Aggregate]:
    """What Algorithm 1's greedy choice covers less than the optimum, by k and limit, as a share of coverable rows."""
    tables = optima.tables_of(explained.searched, settings)
    n = int(explained.feasible.sum())
    if tables is None or not n:
        return
    parts, solver = optima.parts_of(tables, explained.searched.weight), optima.solver_of(settings)
    covered = explained.selected.covered(explained.offers.weight)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        for k in range(1, covered.shape[1] + 1):
            best = covering.max_cover(parts, k, d, solver)
            most = max(int(best.value), int(covered[level, k - 1]))
            stopped = "a bound: a solver was stopped" if best.reason else ""
            at: dict[str, float | str] = {"k": k, "d": as_said(d)}
            yield Aggregate(0, 0, "coverage_optimum", at, most / n, n, reason=stopped)
            gap = (most - int(covered[level, k - 1])) / n
            yield Aggregate(0, 0, "greedy_gap", at, gap, n, reason=stopped)


def of_least(solved: Solved, scale: Scale) -> Iterator[Aggregate]:
    """Least cost by k and share, its area over k, and the k from which on it falls no more."""
    n = solved.full.n
    for c, costs in solved.costs.items():
        for k in range(1, costs.shape[1] + 1):
            value, reason = solved.least[k, c]
            at: dict[str, float | str] = {"k": k, "c": c}
            yield Aggregate(0, 0, "least_cost", at, value, n, reason=reason, replicates=costs[:-1, k - 1])
        bound_reasons = [v.reason for (_, share), v in solved.least.items() if share == c and np.isfinite(v.value)]
        bound, scaled = (
            next((bound_reason for bound_reason in bound_reasons if bound_reason), ""),
            scale.reason.get(c, ""),
        )
        for measure, values, why, reason in (
            (
                "cauc",
                optima.cauc(costs, c, scale),
                f"no k at which every group can have {c:g} covered",
                bound or scaled,
            ),
            ("cauc_saturation", optima.cheapest_k(costs), f"no k covers {c:g} of the coverable factuals", bound),
        ):
            value = float(values[-1])
            value_reason = reason if np.isfinite(value) else why
            yield Aggregate(0, 0, measure, {"c": c}, value, n, reason=value_reason, replicates=values[:-1])


def of_curves(at: Resampled, limits: Limits, n: int) -> Iterator[Aggregate]:
    """Where coverage levels off: the limit d for every k, and the k for every limit d; ``n`` factual rows."""
    most = at.coverage.shape[2]
    if len(limits.of_k):
        for k in range(1, most + 1):
            points = optima.saturation(at.coverage[:, limits.at_k, k - 1], limits.of_k)
            yield _saturation("kauc_saturation", {"k": k}, points, n)
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        points = optima.saturation(at.coverage[:, level, :], np.arange(1.0, most + 1))
        yield _saturation("dauc_saturation", {"d": as_said(d)}, points, n)


def _saturation(measure: str, at: dict[str, float | str], points: Floats, n: int) -> Aggregate:
    """``points`` ``(b + 1,)`` of the resamples, the sample's own last."""
    value = float(points[-1])
    reason = "" if np.isfinite(value) else "nothing is covered at any point of the grid"
    return Aggregate(0, 0, measure, at, value, n, reason=reason, replicates=points[:-1])


def of_nobody() -> Iterator[Aggregate]:
    """Aggregates of a group without factuals: refused with that reason."""
    for measure in ("k0", "d0", "d0_at_k0"):
        yield Aggregate(
            0, 0, measure, {}, float("nan"), 0, True, reason="no factual: nobody has anything to be explained"
        )


def of_sizes(explained: Explained) -> Iterator[Aggregate]:
    """Nodes of a subgroup, and nodes with a candidate."""
    component = explained.searched.reach.component
    inside = component == component[explained.searched.at[0]]
    for measure, is_counted in (
        ("component_nodes", inside),
        ("component_candidates", inside & (explained.searched.candidate >= 0)),
    ):
        n = int(is_counted.sum())
        yield Aggregate(0, 0, measure, {}, float(n), n, compared=False, events=n)


# --------------------------------------------------------------------------------------------------------------------
# Tallies of FGCE for one group: the values of each statistic over the group's factual rows.
#
# The mean over the rows is the measure; the bootstrap resamples rows with the selection of candidates fixed. Coverage
# and its areas are over all factuals (``denominator`` ``all``) and over those that some candidate can serve
# (``feasible``, the paper's). Groups, subgroups and size-matched subsamples share these functions.
#
# Scope: means over rows. Optima and saturation points: ``optima``. Tallies from values:
# ``tasks.numerics.statistics.intervals``.


def costs(cheapest: Floats) -> Iterator[Tally]:
    """Share of factual rows without a feasible counterfactual, and the cost of the cheapest one of the others."""
    yield share("infeasible_share", {}, np.isnan(cheapest), headline=True)
    yield mean("burden", {}, cheapest, headline=True)


def selection(explained: Explained) -> Iterator[Tally]:
    """Cost and coverage of the selected candidates without limit on cost."""
    most = explained.paid.shape[1]
    yield mean("burden_at_k", {"k": most}, nearest(explained.paid)[0], headline=True)
    free = explained.turn[-1]
    for k in range(1, most + 1):
        yield share("coverage_at_k", {"k": k}, (free >= 0) & (free < k), headline=k == most)


def coverage(explained: Explained, limits: Limits) -> Iterator[Tally]:
    """Coverage by k and limit on cost: the numbers behind the curves."""
    most, n, coverable = explained.paid.shape[1], len(explained.feasible), int(explained.feasible.sum())
    of_all = [_covered(explained.turn[level], most) for level in limits.at_d]
    of_coverable = [_covered(explained.turn[level, explained.feasible], most) for level in limits.at_d]
    cost_limits = [as_said(d) for d in limits.of_d.tolist()]
    for k in range(1, most + 1):
        for d, met, feasible_met in zip(cost_limits, of_all, of_coverable, strict=True):
            of: dict[str, float | str] = {"k": k, "d": d, "denominator": "all"}
            yield counted("coverage", of, n - met[k - 1], met[k - 1], 0, compared=False)
            no, yes = coverable - feasible_met[k - 1], feasible_met[k - 1]
            yield counted("coverage", of | {"denominator": "feasible"}, no, yes, n - coverable, compared=False)


def _covered(turn: Ints, most: int) -> list[int]:
    """Rows that the first 1, 2, ... ``most`` of the selected candidates cover; ``turn (n,)`` has a candidate a row."""
    counts: list[int] = np.bincount(turn[(turn >= 0) & (turn < most)], minlength=most).cumsum().tolist()
    return counts


def areas(explained: Explained, limits: Limits) -> Iterator[Tally]:
    """Areas under the curves: kAUC for every k and dAUC for every limit on cost, by both denominators."""
    most = explained.paid.shape[1]
    if len(limits.of_k):
        for k in range(1, most + 1):
            yield from _area(
                "kauc", {"k": k}, explained, optima.k_area(explained.turn[limits.at_k], limits.of_k, k), k == most
            )
    for d, level in zip(limits.of_d.tolist(), limits.at_d, strict=True):
        yield from _area("dauc", {"d": as_said(d)}, explained, optima.d_area(explained.turn[level], most), False)


def changes(explained: Explained, problem: Problem) -> Iterator[Tally]:
    """Attribute change frequency (ACF): share of served rows with another attribute than their counterfactual.

    A row's counterfactual is the cheapest of the selected candidates; a one-hot set is one attribute.
    """
    rank = nearest(explained.paid)[1]
    served = rank >= 0
    factual_values = explained.searched.points[explained.searched.at]
    candidate_values = explained.searched.points[np.append(explained.picks, 0)[rank]]
    differs = factual_values != candidate_values
    for number, name in enumerate(problem.features):
        columns = problem.feature_of_column == number
        yield share("acf", {"attribute": name}, differs[:, columns].any(axis=1) & served, served)


def face(cost: str, paid: Floats, optimum: Floats) -> Iterator[Tally]:
    """How much more the selection costs a row than its own optimum would (FACE), by k.

    Args:
        cost: Which cost is compared.
        paid: ``(n, k)`` by row and selected candidate, NaN where it is not feasible.
        optimum: ``(n,)`` the cheapest feasible candidate's; a row whose optimum is free and whose assigned candidate
            is not has no ratio.
    """
    for k in range(1, paid.shape[1] + 1):
        assigned = nearest(paid[:, :k])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((assigned == 0) & (optimum == 0), 1.0, assigned / optimum)
        yield mean("cost_over_face", {"cost": cost, "k": k}, np.where(np.isfinite(ratio), ratio, np.nan))


def _area(
    measure: str, at: Mapping[str, float | str], explained: Explained, values: Floats, headline: bool
) -> Iterator[Tally]:
    yield mean(measure, {**at, "denominator": "all"}, values, headline=headline, share=True)
    yield mean(measure, {**at, "denominator": "feasible"}, np.where(explained.feasible, values, np.nan), share=True)


# --------------------------------------------------------------------------------------------------------------------
# Feasible group counterfactual explanations (FGCE; Fragkathoulas, Papanikou, Pitoura and Terzi): the method.
#
# Results for every group: the unfavourable decisions with a feasible counterfactual inside the group, the cost of the
# cheapest one, coverage by k of them within a limit on cost, and the fewest that suffice at the least cost. All is
# recomputed on the reference group, subsampled to the size of each other group: a small group has fewer candidates and
# a thinner graph, which alone makes its factuals look worse off (specs, 'Epsilon and size'; not in the paper).
#
# Limits on cost follow the paper's grid, which ends short of the square root of the number of features. A change of
# category costs sqrt(2), so that feasible costs may exceed that end; ``coverage_at_k`` and ``burden_at_k`` therefore
# have no limit on cost.
#
# Scope: the order of the method. One group: ``recourse``. Statistics: ``tallies`` (means over rows) and ``aggregates``.


CHEAPEST, ASSIGNED = "cheapest", "assigned"
"""Roles in the evidence: the cheapest feasible candidate, and the nearest of the ``k`` selected."""

SUBGROUPS = 5
"""Subgroups with statistics of their own: those with most factuals."""


NO_LIMITS = Limits(np.zeros(0), np.zeros(0), np.zeros(0))
"""Without curves: candidates are selected at any cost alone."""

Said = tuple[str, Mapping[str, float | str], float, str]
"""A measure by name, its parameters, its value, and why that is a bound or missing."""


@dataclass(frozen=True)
class Frame:
    """What all groups of a problem share."""

    problem: Problem
    settings: FgceSettings
    pricing: Pricing
    limits: Limits
    scale: Scale


def units(problem: Problem) -> Bools:
    """``(n,)`` the rows that get a finding: the factuals."""
    return problem.factual


def detect(problem: Problem, settings: FgceSettings, rng: np.random.Generator) -> Detected:
    """Explain every group's factuals, and redraw the reference group at every other group's size.

    Args:
        problem: One decision maker and one protected attribute.
        settings: All but what shaped the graph.
        rng: One child generator is spawned per group, so that a group's draws do not depend on the other groups.

    Returns:
        Findings and evidence by ascending row. A group without factuals has neither tallies nor findings. Draws repeat
        every statistic of the whole group, for groups smaller than the reference group.
    """
    *children, pricing_rng = rng.spawn(len(problem.groups) + 1)
    samples: list[_Drawn] = []
    pricing = Pricing(problem, settings, pricing_rng)
    members = [np.flatnonzero(problem.group == group) for group in range(len(problem.groups))]
    searched = [recourse.search(problem, rows, pricing.costs) for rows in members]
    limits = optima.limits(pricing.dearest(searched), _needed(searched, settings)) if settings.curves else NO_LIMITS
    explained = [recourse.explain(group_search, limits.levels, settings.k) for group_search in searched]
    curve = [_resampled(*pair, problem.resamples) for pair in zip(explained, children, strict=True)]
    solved = [
        solve(group_explained, limits, settings, at, child)
        for group_explained, at, child in zip(explained, curve, children, strict=True)
    ]
    frame = Frame(problem, settings, pricing, limits, optima.scale([s.least for s in solved if s.full.n]))
    tallied: list[Tally] = []
    other_aggregates: list[Aggregate] = []
    draws: list[Draws] = []
    for group, child in enumerate(children):
        if not len(searched[group].factuals):
            other_aggregates += [replace(a, group=group) for a in of_nobody()]
            continue
        if group != problem.reference:
            at_size = _at_size(samples, members[problem.reference], len(members[group]), child.spawn(1)[0], settings)
            if at_size is not None:
                draws += at_size.beside(group, explained[group].cheapest, frame)
        tallied += [replace(t, group=group) for t in _of_group(explained[group], frame)]
        for number, alone in _subgroups(explained[group], frame):
            tallied += [replace(t, group=group, subgroup=number, headline=False) for t in _of_rows(alone, frame)]
        other_aggregates += [
            replace(a, group=group) for a in _aggregates(explained[group], curve[group], solved[group], frame)
        ]
        other_aggregates += [replace(a, group=group) for a in _of_subgroups(explained[group], frame, child)]
        if settings.exact:
            other_aggregates += [replace(a, group=group) for a in of_gap(explained[group], limits, settings)]
    return Detected(_findings(explained), _evidence(explained), tuple(tallied), tuple(draws), tuple(other_aggregates))


def _needed(searched: list[Searched], settings: FgceSettings) -> float | None:
    """Where kAUC begins at what covering everyone needs: the dearest d0 at k0, or d0 where that is unproven."""
    if settings.kauc == "all":
        return None
    solver = optima.solver_of(settings)
    tables = [(optima.tables_of(group_search, settings), group_search.weight) for group_search in searched]
    parts = [optima.parts_of(cost_tables, weight) for cost_tables, weight in tables if cost_tables is not None]
    solved = [optima.full(group_parts, solver) for group_parts in parts]
    required_limits = [s.d0.value if s.d0_at_k0.reason else s.d0_at_k0.value for s in solved]
    return max((value for value in required_limits if np.isfinite(value)), default=None)


def _resampled(explained: Explained, rng: np.random.Generator, draws: int) -> Resampled:
    return optima.resampled(explained.turn, explained.feasible, explained.paid.shape[1], draws, rng)


def _of_group(explained: Explained, frame: Frame) -> Iterator[Tally]:
    """Every mean over a whole group's rows, always the same ones in the same order."""
    yield from _of_rows(explained, frame)
    if not frame.settings.curves:
        return
    yield from coverage(explained, frame.limits)
    searched, pricing = explained.searched, frame.pricing
    for cost in frame.settings.face:
        paid, optimum = explained.paid, explained.cheapest
        if cost != frame.settings.cost:  # a cost that did not select the candidates
            paid, optimum = explained.in_cost(pricing.by(cost, searched.graph, searched.points, searched.reach))
        yield from face(cost, paid, optimum)


def _of_rows(explained: Explained, frame: Frame) -> Iterator[Tally]:
    yield from costs(explained.cheapest)
    yield from selection(explained)
    if frame.settings.curves:
        yield from areas(explained, frame.limits)
        yield from changes(explained, frame.problem)


def _subgroups(explained: Explained, frame: Frame) -> Iterator[tuple[int, Explained]]:
    """The largest subgroups, each with candidates selected for it alone."""
    most = int(explained.searched.subgroup.max(initial=0)) if frame.settings.curves else 0
    for number in range(1, min(most, SUBGROUPS) + 1):
        yield number, recourse.of_subgroup(explained, number, frame.settings.k)


def _aggregates(explained: Explained, at: Resampled, solved: Solved, frame: Frame) -> Iterator[Aggregate]:
    """What is no mean, of any rows of a group."""
    yield from of_full(solved)
    if not frame.settings.curves:
        return
    yield from of_least(solved, frame.scale)
    yield from of_curves(at, frame.limits, len(explained.cheapest))


def _of_subgroups(explained: Explained, frame: Frame, rng: np.random.Generator) -> Iterator[Aggregate]:
    """The same for a group's largest subgroups, and their sizes; optima get no intervals."""
    for number, alone in _subgroups(explained, frame):
        at = _resampled(alone, rng, frame.problem.resamples)
        solved = solve(alone, frame.limits, _once(frame.settings), at, rng)
        gap = of_gap(alone, frame.limits, frame.settings) if frame.settings.exact else ()
        for aggregate in (*_aggregates(alone, at, solved, frame), *of_sizes(alone), *gap):
            yield replace(aggregate, subgroup=number, headline=False)


@dataclass
class _Drawn:
    """Subsamples of the reference group at one size: every measure of the first, share and cost of those after them."""

    reference: Longs
    size: int
    rng: np.random.Generator
    values: list[list[Said]] = field(default_factory=list)
    """Of each of the first subsamples, every measure in one order."""
    further: list[dict[str, float]] = field(default_factory=list)
    """Of each of those after them, infeasible share and burden."""

    def beside(self, group: int, cheapest: Floats, frame: Frame) -> Iterator[Draws]:
        """Draws for a group: of share and burden as many as are needed to see it apart, of all else the first few.

        Args:
            group: its number.
            cheapest: ``(n,)`` cost of the cheapest candidate of its factual rows, NaN without any.
            frame: with the settings.
        """
        most = frame.settings.size_matched_draws
        while len(self.values) < min(frame.settings.first_draws, most):
            self.values.append(list(self._every_measure(frame)))
        averages = {tally.measure: _average(tally) for tally in costs(cheapest)}
        for measure_draws in zip(*self.values, strict=True):
            measure, parameters, *_ = measure_draws[0]
            bounds = sum(bool(reason) and np.isfinite(value) for _, _, value, reason in measure_draws)
            reason = f"{bounds} of {len(measure_draws)} subsamples have a bound only" if bounds else ""
            drawn_values = np.array([value for _, _, value, _ in measure_draws])
            if measure in averages and not is_apart(averages[measure], drawn_values):
                while len(self.values) + len(self.further) < most:
                    further = costs(recourse.cheapest_costs(self._searched(frame)))
                    self.further.append({tally.measure: _average(tally) for tally in further})
                drawn_values = np.append(drawn_values, [draw[measure] for draw in self.further])
            yield Draws(group, measure, parameters, drawn_values, reason)

    def _searched(self, frame: Frame) -> Searched:
        """One more subsample, drawn without replacement, with what its rows reach."""
        rows = np.sort(self.rng.choice(self.reference, self.size, replace=False))
        return recourse.search(frame.problem, rows, frame.pricing.costs)

    def _every_measure(self, frame: Frame) -> Iterator[Said]:
        """Every measure of one more subsample."""
        explained = recourse.explain(self._searched(frame), frame.limits.levels, frame.settings.k)
        for tally in _of_group(explained, frame):
            yield tally.measure, tally.parameters, _average(tally), ""
        at = _resampled(explained, self.rng, 0)
        solved = solve(explained, frame.limits, _once(frame.settings), at, self.rng)
        for aggregate in _aggregates(explained, at, solved, frame):
            yield aggregate.measure, aggregate.parameters, aggregate.value, aggregate.reason


ALIKE = 0.05
"""Groups whose sizes differ by less than this share their subsamples of the reference group."""
APART = 0.1
"""Of the value: a group is apart from draws if it lies further than this from all of them."""


def _at_size(
    samples: list[_Drawn], reference: Longs, size: int, rng: np.random.Generator, settings: FgceSettings
) -> _Drawn | None:
    """The subsamples for a group of so many rows: those of one about as large, or new ones, which join ``samples``."""
    if not 0 < size < len(reference) or not settings.size_matched_draws:
        return None
    for earlier in samples:
        if abs(earlier.size - size) < ALIKE * earlier.size:
            return earlier
    samples.append(_Drawn(reference, size, rng))
    return samples[-1]


def _average(tally: Tally) -> float:
    last = len(tally.values) - int(len(tally.values) and np.isnan(tally.values[-1]))  # NaN is last
    n = int(tally.counts[:last].sum())
    return float(tally.counts[:last] @ tally.values[:last] / n) if n else float("nan")


def is_apart(value: float, draws: Floats) -> bool:
    """Whether a value lies further from the range of the draws than a tenth of itself."""
    finite = draws[np.isfinite(draws)]
    if not len(finite) or not np.isfinite(value):
        return False
    distance = max(float(finite.min()) - value, value - float(finite.max()))
    return distance > APART * abs(value)


def _once(settings: FgceSettings) -> FgceSettings:
    return settings.model_copy(update={"resolves": 0})


def _findings(explained: list[Explained]) -> Findings:
    """One entry per factual row of any group, by row."""
    row = np.concatenate([group.searched.factuals for group in explained])
    cost = np.concatenate([group.cheapest for group in explained])
    subgroup = np.concatenate([group.searched.subgroup[group.searched.at] for group in explained])
    reasons = []
    for group in explained:
        has_candidate = (group.searched.candidate >= 0).any()
        reason = str(Refusal.NO_FEASIBLE_PATH if has_candidate else Refusal.NO_CANDIDATE)
        reasons.append(np.full(len(group.cheapest), reason))
    order = np.argsort(row)
    return Findings(
        row=row[order],
        subgroup=subgroup[order],
        verdict=np.where(np.isnan(cost), "infeasible", "feasible")[order],
        statistic=cost[order],
        refusal=np.where(np.isnan(cost), np.concatenate(reasons), "")[order],
    )


def _evidence(explained: list[Explained]) -> Evidence:
    """Pairs of a factual row and a candidate row: the cheapest, then the assigned one. Ranks count from 1."""
    pairs = []
    for group in explained:
        assigned, rank = recourse.nearest(group.paid)
        for role, node, place, cost in (
            (CHEAPEST, group.choice, np.zeros_like(rank), group.cheapest),
            (ASSIGNED, np.append(group.picks, -1)[rank], rank, assigned),
        ):
            has = node >= 0
            row, other = group.searched.factuals[has], group.searched.candidate[node[has]]
            pairs.append((row, np.full(len(row), role), place[has] + 1, other, cost[has]))
    row, roles, rank, other, value = (np.concatenate(column) for column in zip(*pairs, strict=True))
    order = np.lexsort((roles == ASSIGNED, row))
    return Evidence(row[order], roles[order], rank[order].astype(np.int32), other[order], value[order])
