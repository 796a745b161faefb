"""Less discriminatory alternatives: models as good as the fitted one, that approve a group more nearly as often.

A candidate is a subset of the features with a penalty, cut at a score so that as many are approved as by the base; or
the score of all features, with one cut a segment, or with one cut that approves more. No candidate takes a protected
column, which the base may. The rows are in three parts: one to fit, one to choose, one to tell. The best of many
candidates looks better than it is where it was chosen, and only there: the gain that counts is that of rows that chose
nothing. Other splits into three parts repeat the search, and tell how much rests on the split. (Gillis, Meursault and
Ustun 2024; Laufer, Raghavan and Barocas 2025; specification of lending, section 6.)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from tasks.numerics.arrays import Bools, Floats, Ints, Longs
from tasks.numerics.statistics.regression import area_under_curve

Kind = Literal["base", "refit", "segments", "threshold"]
FIT, CHOOSE, TELL = range(3)
"""The parts."""
SHARES: Final = (0.5, 0.25, 0.25)
PENALTIES: Final[Mapping[str, tuple[float, ...]]] = {
    "logistic_regression": (1.0, 0.01, 0.1, 10.0, 0.001),
    "gradient_boosting": (0.0, 1.0, 10.0, 100.0),
    "random_forest": (5, 20, 50, 100),
}
"""C; weight of the squares of leaves; fewest rows of a leaf. The first is the base's."""
RISES: Final = (0.0025, 0.005, 0.01, 0.02, 0.05)
"""Of a cut that approves more: by which share of the base's approvals."""
CUTS: Final = 20
"""Cuts that are tried of each segment."""
MOST_LEVELS, BANDS = 8, 4
"""Values from which on a feature is cut into bands of equal size, and these bands."""
FEWEST: Final = 30
"""Members of a group in the choosing and the telling part, and approvals of the reference group there."""
SOLVER_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Groups:
    """The groups of one protected attribute."""

    attribute: str
    code: Ints
    """``(n,)``."""
    names: tuple[str, ...]
    reference: int

    def judged(self) -> Iterator[int]:
        """Groups other than the reference group."""
        yield from (g for g in range(len(self.names)) if g != self.reference)


@dataclass(frozen=True)
class Pool:
    """Applicants with their features, and what is to be predicted of them."""

    x: Floats
    """``(n, q)`` encoded features."""
    feature: Ints
    """``(q,)`` number of the feature that an input is of."""
    names: tuple[str, ...]
    """Of the features."""
    protected: frozenset[str]
    """Features that say the group: no candidate takes them."""
    good: Bools
    """``(n,)`` whether the outcome was favourable; without outcomes whether the decision was."""
    approved: Bools
    """``(n,)`` the lender's decisions, whose number every candidate keeps."""
    groups: tuple[Groups, ...]


@dataclass(frozen=True)
class Search:
    """What is fixed before the search."""

    family: str
    """A key of ``PENALTIES``."""
    loss: float
    """Most that the AUC may fall on the choosing part."""
    candidates: int
    """How many are tried, the base not counted."""
    draws: int
    """Resamples of the telling part."""
    level: float
    seed: int


@dataclass(frozen=True)
class Candidate:
    """One way to decide."""

    number: int
    kind: Kind
    features: tuple[str, ...]
    penalty: float
    segment: str = ""
    """Of ``segments`` the feature whose values have cuts of their own."""
    target: tuple[str, str] = ("", "")
    """Of ``segments`` the attribute and the group whose ratio the cuts maximise."""
    rise: float = 0.0
    """Of ``threshold`` one of ``RISES``."""


@dataclass(frozen=True)
class Tried:
    """What a candidate did on the choosing part."""

    number: int
    auc: float
    ratios: dict[str, float]
    """Attribute and group, joined by a line break -> ratio of approval to the reference group; NaN if there is none."""
    cuts: dict[str, float]
    """Segment, or nothing -> the score from which applicants are approved."""
    reason: str = ""


@dataclass(frozen=True)
class Gain:
    """The outcome of the search for one group."""

    attribute: str
    group: str
    base_auc: float
    base_ratio: float
    eligible: int
    chosen: int | None = None
    gain_choosing: float = float("nan")
    auc: float = float("nan")
    """Of the chosen one on the telling part less that of the base."""
    approvals: float = float("nan")
    """Of the chosen one over those of the base there, less 1."""
    losses: float = float("nan")
    """The same of expected losses: the sum of 1 less the base's score over the approved."""
    ratio: float = float("nan")
    """Of the chosen one on the telling part."""
    gain: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    n: int = 0
    """Members of the group in the telling part."""
    reason: str = ""
    above_zero: bool = False


@dataclass
class CandidateSearch:
    """The search, candidate by candidate."""

    pool: Pool
    search: Search
    part: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    """``(n,)`` the part of each row; drawn if empty."""
    share: float = field(init=False)
    _base: Floats = field(init=False)
    _segment_scores: Floats = field(init=False)
    """Scores of all features but protected ones: what cuts by segment, and cuts that approve more, are of."""

    def __post_init__(self) -> None:
        """Draw the parts, and fit the base."""
        if not len(self.part):
            self.part = parts_of(self.pool, np.random.default_rng([self.search.seed, 1]))
        self.share = float(self.pool.approved[self.part == FIT].mean())
        base = self.listed()[0]
        self._base = self.scores(base)
        names = tuple(name for name in self.pool.names if name not in self.pool.protected)
        is_same = names in ((), base.features)  # of no feature there is no candidate
        self._segment_scores = self._base if is_same else self.scores(replace(base, kind="refit", features=names))

    def listed(self) -> list[Candidate]:
        """The base and the candidates in the order in which they are tried; the same for the same seed."""
        names = [name for name in self.pool.names if name not in self.pool.protected]
        penalties = PENALTIES[self.search.family]
        base = Candidate(0, "base", self.pool.names, penalties[0])
        cuts: list[tuple[Any, ...]] = [
            ("segments", tuple(names), penalties[0], name, (of.attribute, of.names[group]))
            for name in names
            for of in self.pool.groups
            for group in of.judged()
        ]
        cuts += [("threshold", tuple(names), penalties[0], "", ("", ""), rise) for rise in RISES if names]
        rng = np.random.default_rng([self.search.seed, 2])
        subsets = list(dict.fromkeys(subsets_of(names, rng, self.search.candidates)))
        refits = [("refit", subset, penalty, "", ("", "")) for subset in subsets for penalty in penalties]
        refits = [refit for refit in refits if refit[1:3] != (base.features, penalties[0])]
        # few segments first: each is one of many cuts already
        chosen = [*cuts, *refits][: self.search.candidates]
        return [base, *(Candidate(number, *of) for number, of in enumerate(chosen, 1))]

    def scores(self, candidate: Candidate) -> Floats:
        """``(n,)`` probability of a favourable outcome."""
        if candidate.kind in ("segments", "threshold"):
            return self._segment_scores
        at = [self.pool.names.index(name) for name in candidate.features]
        x = self.pool.x[:, np.isin(self.pool.feature, at)]
        rows = self.part == FIT
        model = _model(self.search.family, candidate.penalty, self.search.seed)
        scores: Floats = model.fit(x[rows], self.pool.good[rows]).predict_proba(x)[:, 1]
        return scores

    def tried(self, candidate: Candidate) -> Tried:
        """What a candidate does on the choosing part."""
        scores, rows = self.scores(candidate), self.part == CHOOSE
        cuts, reason = {"": _cut(scores[rows], self.share)}, ""
        if candidate.kind == "threshold":
            base = float(np.sum(1 - scores[rows & (scores >= cuts[""])]))
            cuts = {"": _cut(scores[rows], min((1 + candidate.rise) * self.share, 1.0))}
            added = float(np.sum(1 - scores[rows & (scores >= cuts[""])])) / base - 1 if base > 0 else 0.0
            if added > self.search.loss:
                reason = f"losses: expected losses rise by {added:.1%}, which is more than the loss"
        if candidate.kind == "segments":
            segment_cuts = self.segmented(candidate)
            cuts, reason = (
                segment_cuts or cuts,
                "" if segment_cuts else "no_cuts: none keep approvals and expected losses",
            )
        approved = self.approved(candidate, scores, cuts)
        ratios = {
            _key(of.attribute, of.names[g]): self._ratio(of, g, approved, rows)
            for of in self.pool.groups
            for g in of.judged()
        }
        return Tried(candidate.number, area_under_curve(scores[rows], self.pool.good[rows]), ratios, cuts, reason)

    def approved(self, candidate: Candidate, scores: Floats, cuts: Mapping[str, float]) -> Bools:
        """``(n,)`` decisions by the cuts."""
        if "" in cuts:
            return scores >= cuts[""]
        levels = self._levels(candidate.segment)
        limits = np.array([cuts.get(str(level), np.inf) for level in range(int(levels.max()) + 1)])
        approved: Bools = scores >= limits[levels]
        return approved

    def gains(self, every: Sequence[Tried]) -> Iterator[Gain]:
        """For each group the best eligible candidate on the choosing part, and its gain on the last part."""
        candidates = {c.number: c for c in self.listed()}
        base = next(t for t in every if t.number == 0)
        eligible = [t for t in every if t.number and not t.reason and t.auc >= base.auc - self.search.loss]
        for of in self.pool.groups:
            for group in of.judged():
                key = _key(of.attribute, of.names[group])
                of_group = partial(Gain, of.attribute, of.names[group], base.auc, base.ratios[key], len(eligible))
                best = max(eligible, key=lambda t: (np.nan_to_num(t.ratios[key], nan=-1.0), -t.number), default=None)
                if np.isnan(base.ratios[key]):
                    yield of_group(
                        reason=f"too_few: fewer than {FEWEST} members, or approvals of the reference group, in a part"
                    )
                elif best is None:
                    yield of_group(reason=f"no_eligible_candidate: none within {self.search.loss:g} of the base's AUC")
                elif base.ratios[key] >= 1:
                    yield of_group(reason="no_gap: the base approves the group as often as the reference group")
                elif best.ratios[key] <= base.ratios[key]:
                    yield of_group(reason="no_gain: no eligible candidate has a higher ratio on the choosing part")
                else:
                    estimate = self.gain_of(of, group, (candidates[0], base), (candidates[best.number], best))
                    above_zero = estimate["low"] > 0
                    reason = "" if above_zero else "not_above_zero: the interval of the gain holds zero"
                    if not above_zero:
                        estimate |= {"gain": float("nan"), "ratio": float("nan")}
                    gain = best.ratios[key] - base.ratios[key]
                    yield of_group(
                        chosen=best.number, gain_choosing=gain, reason=reason, above_zero=above_zero, **estimate
                    )

    def gain_of(
        self, of: Groups, group: int, base: tuple[Candidate, Tried], chosen: tuple[Candidate, Tried]
    ) -> dict[str, Any]:
        """Gain of the ratio on the last part, and its percentile interval.

        Rows are drawn again within group and outcome, the same for both models (evidence, section 4): the models and
        their cuts are taken as they are.
        """
        rows = np.flatnonzero((self.part == TELL) & np.isin(of.code, [group, of.reference]))
        member, good = of.code[rows] == group, self.pool.good[rows]
        scores = [self.scores(candidate) for candidate, _ in (base, chosen)]
        decided = [self.approved(c, s, t.cuts)[rows] for (c, t), s in zip((base, chosen), scores, strict=True)]
        rng = np.random.default_rng([self.search.seed, 3])
        approvals = np.zeros((2, 2, self.search.draws))  # model, whether a member, draw
        for is_member in (False, True):
            for is_good in (False, True):
                cell = np.flatnonzero((member == is_member) & (good == is_good))
                # of rows of one cell only the four pairs of decisions differ
                pair = 2 * decided[0][cell] + decided[1][cell]
                counts = rng.multinomial(
                    len(cell), np.bincount(pair, minlength=4) / max(len(cell), 1), self.search.draws
                )
                approvals[0, int(is_member)] += counts[:, 2] + counts[:, 3]
                approvals[1, int(is_member)] += counts[:, 1] + counts[:, 3]
        sizes = np.array([np.sum(~member), np.sum(member)])[None, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (approvals / sizes)[:, 1] / (approvals / sizes)[:, 0]
        tail = 100 * (1 - self.search.level) / 2
        low, high = np.percentile(ratios[1] - ratios[0], [tail, 100 - tail])
        plain = [d[member].mean() / d[~member].mean() for d in decided]
        tell = self.part == TELL
        aucs = [area_under_curve(s[tell], self.pool.good[tell]) for s in scores]
        approved = [self.approved(c, s, t.cuts)[tell] for (c, t), s in zip((base, chosen), scores, strict=True)]
        losses = [float((1 - self._base[tell])[of_part].sum()) for of_part in approved]
        return {
            "approvals": float(approved[1].sum() / approved[0].sum() - 1) if losses[0] > 0 else float("nan"),
            "losses": losses[1] / losses[0] - 1 if losses[0] > 0 else float("nan"),
            "auc": aucs[1] - aucs[0],
            "ratio": float(plain[1]),
            "gain": float(plain[1] - plain[0]),
            "low": float(low),
            "high": float(high),
            "n": int(member.sum()),
        }

    def _ratio(self, of: Groups, group: int, approved: Bools, rows: Bools) -> float:
        """Approval of a group over that of the reference group; NaN of few."""
        members, references = rows & (of.code == group), rows & (of.code == of.reference)
        tell = self.part == TELL
        few = min(int(members.sum()), int(np.sum(tell & (of.code == group))), int(approved[references].sum())) < FEWEST
        return float("nan") if few else float(approved[members].mean() / approved[references].mean())

    def _levels(self, name: str) -> Ints:
        """``(n,)`` the segment of each row: values of a feature, or bands of the fitting part."""
        inputs = self.pool.x[:, self.pool.feature == self.pool.names.index(name)]
        if inputs.shape[1] > 1:
            levels: Ints = inputs.argmax(axis=1).astype(np.int32)
            return levels
        values = inputs[:, 0]
        distinct = np.unique(values[self.part == FIT])
        if len(distinct) > MOST_LEVELS:
            distinct = np.unique(np.quantile(values[self.part == FIT], np.arange(1, BANDS) / BANDS))
            return np.searchsorted(distinct, values, side="right").astype(np.int32)
        return np.clip(np.searchsorted(distinct, values), 0, len(distinct) - 1).astype(np.int32)

    def segmented(self, candidate: Candidate) -> dict[str, float] | None:
        """One cut a segment that maximises the ratio, with no fewer approvals than by one cut.

        Expected losses may rise by the share ``loss``: of all ways to approve as many, one cut for all has the least.
        The ratio is a fraction of two linear forms: Dinkelbach's method (1967) solves it by a few integer programmes.
        Often many cuts have the best ratio, and the solver takes any of them, on another processor others. One more
        programme takes those with the least expected losses.
        """
        rows = np.flatnonzero(self.part == CHOOSE)
        scores, levels = self._segment_scores[rows], self._levels(candidate.segment)[rows]
        of = next(groups for groups in self.pool.groups if groups.attribute == candidate.target[0])
        code = of.code[rows]
        member, other = code == of.names.index(candidate.target[1]), code == of.reference
        base = scores >= _cut(scores, self.share)
        if not member.any() or not base[other].any():
            return None
        options: list[tuple[int, float]] = []
        for level in range(int(levels.max()) + 1):
            inside = scores[levels == level]
            if len(inside):
                marks = np.r_[np.quantile(inside, np.linspace(0, 1, CUTS + 1)), _cut(scores, self.share), np.inf]
                different = np.unique((inside >= marks[:, None]).sum(axis=1), return_index=True)[1]
                options += [(level, float(mark)) for mark in marks[different]]
        passes = np.array([(levels == level) & (scores >= mark) for level, mark in options], float)
        losses, approvals = passes @ (1 - scores), passes.sum(axis=1)
        of_member, of_other = passes @ member / member.sum(), passes @ other / other.sum()
        one_each = np.array([[o[0] == level for o in options] for level in dict.fromkeys(o[0] for o in options)], float)
        limits = [
            LinearConstraint(one_each, 1, 1),
            LinearConstraint(approvals[None, :], base.sum(), np.inf),
            LinearConstraint(losses[None, :], -np.inf, (1 + self.search.loss) * (1 - scores)[base].sum()),
        ]
        least = partial(
            milp,
            integrality=np.ones(len(options)),
            bounds=Bounds(0, 1),
            options={"time_limit": SOLVER_SECONDS, "mip_rel_gap": 0.0},
        )
        ratio, picked = float(base[member].mean() / base[other].mean()), None
        for _ in range(10):
            solved = least(ratio * of_other - of_member, constraints=limits)
            if solved.x is None:
                return None
            chosen = solved.x > 0.5
            better = float(of_member[chosen].sum() / of_other[chosen].sum())
            if better <= ratio + 1e-9:
                break
            ratio, picked = better, chosen
        if picked is None:
            return None
        keeps_ratio = LinearConstraint((of_member - ratio * of_other)[None, :], -1e-9, np.inf)
        solved = least(losses, constraints=[*limits, keeps_ratio])
        picked = picked if solved.x is None else solved.x > 0.5
        return {str(level): mark for (level, mark), is_picked in zip(options, picked, strict=True) if is_picked}


def parts_of(pool: Pool, rng: np.random.Generator) -> Ints:
    """``(n,)`` the part of each row, drawn within the groups of the first attribute and the outcome."""
    part = np.empty(len(pool.good), np.int32)
    cell: Longs = 2 * pool.groups[0].code.astype(np.int64) + pool.good
    for number in np.unique(cell):
        rows = rng.permutation(np.flatnonzero(cell == number))
        ends = np.round(np.cumsum(SHARES[:-1]) * len(rows)).astype(int)
        for which, some in enumerate(np.split(rows, ends)):
            part[some] = which
    return part


def _key(attribute: str, group: str) -> str:
    return f"{attribute}\n{group}"


def _cut(scores: Floats, share: float) -> float:
    """The score from which that share of rows is approved."""
    ranked = np.sort(scores)
    return float(ranked[min(round((1 - share) * len(ranked)), len(ranked) - 1)])


def subsets_of(names: Sequence[str], rng: np.random.Generator, most: int) -> Iterator[tuple[str, ...]]:
    """All features, then those without one and without two, then random ones."""
    if names:
        yield tuple(names)
    for dropped in (1, 2):
        if len(names) > dropped:
            yield from combinations(names, len(names) - dropped)
    for _ in range(4 * most if len(names) > 3 else 0):
        size = int(rng.integers(2, len(names) - 1))
        yield tuple(names[i] for i in np.sort(rng.choice(len(names), size, replace=False)))


def _model(family: str, penalty: float, seed: int) -> Any:
    if family == "gradient_boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(l2_regularization=penalty, random_state=seed)
    if family == "random_forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(200, min_samples_leaf=int(penalty), random_state=seed)
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=penalty, max_iter=1000, random_state=seed)


Keep = Callable[[list[Tried]], None]
"""Is called with what was tried so far."""


def searched(
    search_of: CandidateSearch, earlier: Sequence[Tried] = (), keep: Keep = lambda _: None, every: int = 10
) -> list[Tried]:
    """All candidates in their order; those that were tried before are not tried again.

    Args:
        search_of: the search.
        earlier: what a search that was stopped has left.
        keep: is called after ``every`` further candidates.
        every: how many.
    """
    tried = {t.number: t for t in earlier}
    for candidate in search_of.listed():
        if candidate.number not in tried:
            tried[candidate.number] = search_of.tried(candidate)
            if len(tried) % every == 0:
                keep(list(tried.values()))
    return [tried[number] for number in sorted(tried)]
