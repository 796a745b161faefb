"""Whether methods agree: patterns of signs by group, tables of flags by applicant, and codes of why they may differ.

Methods ask different questions, so there is no vote and no mean of them. Sources: evidence specification, sections 1.1
to 1.4; kappa, Cohen (1960); AC1, Gwet (2008).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tasks.numerics.arrays import Bools, Floats, Longs

# --------------------------------------------------------------------------------------------------------------------
# By group: the signs of all methods in one line, and how often each measure spoke in twins of known truth.


SYMBOLS: Final = {"against": "-", "for": "+", "none_seen": "0", "too_few": "?", "not_asked": "/"}
"""Sign of a method -> how a pattern prints it."""
SILENT: Final = ("too_few", "not_asked")
"""Signs of methods that could not speak."""
SHORT: Final = {
    "approval_rate_ratio": "approval",
    "adjusted_effect": "adjusted",
    "overlap_effect": "overlap",
    "exchanged_effect": "exchanged",
    "st_effect": "ST",
    "cst_effect": "CST",
    "mediated_effect": "mediated",
    "infeasible_share_relabelled": "FGCE",
    "recourse_cost_reference_over_group": "RAGUEL",
    "cec_above_own_group": "CEC",
    "share_changed": "GCFN",
}
"""Measure -> its name in a pattern, in the order of patterns."""
MEASURE_OF: Final = {
    "adjusted": "adjusted_effect",
    "cst": "cst_effect",
    "fgce": "infeasible_share_relabelled",
    "raguel": "recourse_cost_reference_over_group",
    "cec": "cec_above_own_group",
    "gcfn": "share_changed",
}
"""Method -> the measure that stands for it where the audit does not ask for it."""


class Pattern(NamedTuple):
    """What all methods say of one group."""

    text: str
    """Such as ``approval- adjusted- FGCE0 CST- CEC?``."""
    able: int
    """Methods that could speak."""
    against: tuple[str, ...]
    """Measures that speak against the group."""
    silent: tuple[str, ...]
    """Measures that see nothing, or speak for it."""


def pattern(signs: Mapping[str, str]) -> Pattern:
    """The pattern of a group.

    Args:
        signs: measure -> ``against``, ``for``, ``none_seen``, ``too_few`` or ``not_asked``.
    """
    order = [*(name for name in SHORT if name in signs), *sorted(set(signs) - set(SHORT))]
    text = " ".join(f"{SHORT.get(name, name)}{SYMBOLS[signs[name]]}" for name in order)
    able = [name for name in order if signs[name] not in SILENT]
    against = tuple(name for name in able if signs[name] == "against")
    return Pattern(text, len(able), against, tuple(name for name in able if name not in against))


def not_asked(methods: Collection[str]) -> dict[str, str]:
    """Signs of the methods that an audit with ``methods`` does not ask for."""
    return {measure: "not_asked" for method, measure in MEASURE_OF.items() if method not in methods}


class World(NamedTuple):
    """How often a measure spoke against a group in simulated twins with one truth."""

    spoke: int
    twins: int

    def words(self) -> str:
        """Count, with the exact 95 % interval of the rate (Clopper and Pearson 1934)."""
        from scipy.special import betaincinv  # scipy.stats would take a second to load

        low = betaincinv(self.spoke, self.twins - self.spoke + 1, 0.025) if self.spoke else 0.0
        high = betaincinv(self.spoke + 1, self.twins - self.spoke, 0.975) if self.spoke < self.twins else 1.0
        return f"{self.spoke} of {self.twins} ({low:.2f} to {high:.2f})"


WORLDS: Final = ("nothing planted", "direct", "mediated")
TWINS: Final[Mapping[str, tuple[World, World, World]]] = {
    "adjusted_effect": (World(0, 10), World(5, 5), World(0, 5)),
    "cst_effect": (World(0, 10), World(5, 5), World(5, 5)),
    "st_effect": (World(0, 10), World(5, 5), World(0, 5)),
    "infeasible_share_relabelled": (World(0, 10), World(0, 5), World(0, 5)),
    "cec_above_own_group": (World(0, 10), World(2, 5), World(0, 5)),
    "recourse_cost_reference_over_group": (World(1, 10), World(1, 5), World(2, 5)),
}
"""Of `evenhand bench twin`: twins of HMDA of 2,000 rows, the race no input of the model (docs/benchmarks.md)."""
TWINS_AS_INPUT: Final[Mapping[str, tuple[World, World, World]]] = {
    **TWINS,
    "cec_above_own_group": (World(3, 10), World(5, 5), World(0, 5)),
    "recourse_cost_reference_over_group": (World(0, 10), World(5, 5), World(2, 5)),
}
"""The same with `--group-as-input`."""


# --------------------------------------------------------------------------------------------------------------------
# By applicant: flags of two methods on the same people.


DRAWS: Final = 2_000
"""Resamples of applicants."""
FLAGGED: Final = {
    "cec": "different reasons (regime B or D)",
    "cst": "q below 0.05 and a difference above tau",
    "fgce": "no path to approval",
    "gcfn": "decision changes, of identified rows",
    "raguel": "cost above the reference group's median",
}
"""Method -> what a flag of it is."""
OF_DENIED: Final = ("fgce", "raguel")
"""Methods that judge the denied alone."""


@dataclass(frozen=True)
class Pair:
    """Flags of two methods on the ``n`` applicants that both could judge."""

    both: int
    first: int
    """By the first alone."""
    second: int
    neither: int

    @classmethod
    def of(cls, first: Bools, second: Bools) -> "Pair":
        """From flags ``(n,)`` of the same applicants."""
        counts = np.bincount(2 * first.astype(np.int64) + second.astype(np.int64), minlength=4).tolist()
        return cls(counts[3], counts[2], counts[1], counts[0])

    @property
    def n(self) -> int:
        """Applicants."""
        return self.both + self.first + self.second + self.neither

    @property
    def cells(self) -> tuple[int, int, int, int]:
        """The four counts."""
        return self.both, self.first, self.second, self.neither

    @property
    def agreement(self) -> float:
        """Share of applicants with equal flags; NaN without any."""
        return (self.both + self.neither) / self.n if self.n else math.nan

    @property
    def kappa(self) -> float:
        """Cohen's kappa; NaN where both give everybody the same flag."""
        return float(_kappa(np.array([self.cells]))[0])

    @property
    def ac1(self) -> float:
        """Gwet's AC1: chance agreement is 2 q (1 - q), q the mean of both shares of flags; NaN without applicants."""
        return float(_ac1(np.array([self.cells]))[0])

    @property
    def jaccard(self) -> float:
        """Share flagged by both of those flagged by one; NaN without any."""
        either = self.n - self.neither
        return self.both / either if either else math.nan

    def intervals(
        self, rng: np.random.Generator, draws: int = DRAWS
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """95 % intervals of kappa and of AC1: percentiles over resampled applicants.

        A resample of applicants with replacement is a multinomial draw of the four counts. NaN where more than a tenth
        of the draws have no value.
        """
        if self.n == 0:
            return (math.nan, math.nan), (math.nan, math.nan)
        cells = rng.multinomial(self.n, np.array(self.cells) / self.n, draws)
        return _ends(_kappa(cells)), _ends(_ac1(cells))

    def null(self, rng: np.random.Generator, draws: int = DRAWS) -> tuple[float, float]:
        """95 % range of ``agreement`` where the flags of one method are permuted among the applicants; NaN without any.

        Both methods then flag as many as before, and whom both flag follows the hypergeometric distribution.
        """
        if self.n == 0:
            return math.nan, math.nan
        (first, _), (second, other) = self.margins()
        overlap = rng.hypergeometric(second, other, first, draws)
        return _ends(1.0 - (first + second - 2 * overlap) / self.n)

    def margins(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How many each method flags, and does not flag."""
        first, second = self.both + self.first, self.both + self.second
        return (first, self.n - first), (second, self.n - second)

    def prevalences(self) -> tuple[float, float]:
        """Share of applicants that each method flags; NaN without any."""
        if not self.n:
            return math.nan, math.nan
        return (self.both + self.first) / self.n, (self.both + self.second) / self.n


def null_ratio(counts: Sequence[int], rng: np.random.Generator, draws: int = DRAWS) -> tuple[float, float]:
    """95 % range of the ratio of approvals where the labels of group and reference group are permuted.

    Args:
        counts: Applications and denials of the group, then of the reference group.
        rng: Permutes labels.
        draws: Their number.
    """
    n, denied, n_reference, denied_reference = counts
    approved = n + n_reference - denied - denied_reference
    of_group = rng.hypergeometric(approved, denied + denied_reference, n, draws)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _ends((of_group / n) / ((approved - of_group) / n_reference))


def _kappa(cells: Longs) -> Floats:
    """Kappa of tables ``(t, 4)`` of counts: both, first, second, neither."""
    alike, first, second, neither = cells.astype(np.float64).T
    n = alike + first + second + neither
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = (alike + neither) / n
        of_first, of_second = (alike + first) / n, (alike + second) / n
        chance = of_first * of_second + (1 - of_first) * (1 - of_second)
        kappa: Floats = np.where(chance < 1, (observed - chance) / (1 - chance), np.nan)
    return kappa


def _ac1(cells: Longs) -> Floats:
    """AC1 of tables ``(t, 4)`` of counts."""
    alike, first, second, neither = cells.astype(np.float64).T
    n = alike + first + second + neither
    with np.errstate(invalid="ignore", divide="ignore"):
        flagged = (2 * alike + first + second) / (2 * n)
        chance = 2 * flagged * (1 - flagged)
        ac1: Floats = ((alike + neither) / n - chance) / (1 - chance)
    return ac1


def _ends(draws: Floats) -> tuple[float, float]:
    finite = draws[np.isfinite(draws)]
    if len(finite) < 0.9 * len(draws):
        return math.nan, math.nan
    low, high = np.percentile(finite, [2.5, 97.5])
    return float(low), float(high)


# --------------------------------------------------------------------------------------------------------------------
# Why two methods may differ: codes, each a rule.


FEWEST_NEIGHBOURS: Final = 30
MOST_NOT_IDENTIFIED, LEAST_SUPPORT, RARE = 0.2, 0.8, 0.05
SIGNIFICANT: Final = 0.05

EXPLAINS: Final = {
    "unit": "one judges the denied alone, the other all applicants",
    "maker": "one is about the lender's decisions, the other about the model's",
    "channel": "differences go through income, loan or debts",
    "noise": "within what permuted labels give, or few neighbours",
    "identified": "the generators of one disagree about more than a fifth of its rows",
    "overlap": "more than a fifth have no comparable applicants",
    "size": "fewer people than one of the two needs",
    "prevalence": "a flag is very rare or very common, so that kappa says little",
}
"""Code -> the sentence of a reader."""


@dataclass(frozen=True)
class Speaker:
    """What the codes need to know of one of two methods, for one group."""

    method: str
    maker: str
    denied_only: bool
    sign: str = ""
    """Of its measure, where two measures are compared; empty for flags."""
    measure: str = ""
    """That measure."""
    prevalence: float = math.nan
    """Share of applicants that it flags."""
    neighbours: int | None = None
    """Its k, where it has one."""
    p: float | None = None
    """Of its test with permuted labels."""
    not_identified: float = 0.0
    """Share of its rows that are not identified."""
    support: float | None = None
    """Share of its rows with comparable applicants."""


_SILENT, _SPEAKING = ("cec", "fgce"), ("cst", "gcfn")
_DIRECT = ("adjusted_effect", "overlap_effect", "st_effect")
"""Measures that compare applicants with the same income, loan and debts."""


def codes(first: Speaker, second: Speaker, n: int, fewest: int) -> tuple[str, ...]:
    """Why two methods may differ, in the order of ``EXPLAINS``; none where no rule holds.

    Args:
        first: One method.
        second: The other.
        n: People of the group whom both can judge.
        fewest: People that a verdict needs.
    """
    pair = (first, second)
    is_silent = any(s.sign == "none_seen" and (s.method in _SILENT or s.measure in _DIRECT) for s in pair)
    speaking = [s for s in pair if s.method in _SPEAKING and s.measure not in _DIRECT]
    speaks = any(speaker.sign in ("against", "for") for speaker in speaking)
    few = any(speaker.neighbours is not None and speaker.neighbours < FEWEST_NEIGHBOURS for speaker in pair)
    holds = {
        "unit": first.denied_only != second.denied_only,
        "maker": first.maker != second.maker,
        "channel": is_silent and speaks,
        "noise": few or any(speaker.p is not None and speaker.p > SIGNIFICANT for speaker in pair),
        "identified": any(speaker.not_identified > MOST_NOT_IDENTIFIED for speaker in pair),
        "overlap": any(speaker.support is not None and speaker.support < LEAST_SUPPORT for speaker in pair),
        "size": n < fewest,
        "prevalence": any(speaker.prevalence < RARE or speaker.prevalence > 1 - RARE for speaker in pair),
    }
    return tuple(code for code in EXPLAINS if holds[code])


def withheld(
    pairs: Mapping[tuple[str, str], Pair], alone: Mapping[str, tuple[int, int]], people: int, fewest: int
) -> dict[tuple[str, str], str]:
    """Which tables of one group are withheld whole, each with the rule.

    The other cells of a table would tell a small one, by the margins that findings print. So would a table of other
    methods with the same margin over as many people, and the difference of two counts of the same method.

    Args:
        pairs: Names of two methods -> their table.
        alone: Method -> how many it flags and does not flag, of all whom it could judge.
        people: Members of the group whom some method looked at.
        fewest: Counts of 1 to one less than it are small; 0: none is.
    """
    hidden = {names: "cell" for names, pair in pairs.items() if any(0 < count < fewest for count in pair.cells)}
    margins = {names: dict(zip(names, pair.margins(), strict=True)) for names, pair in pairs.items()}
    lost = {margin for names in hidden for margin in margins[names].items()}
    hidden |= {names: "margin" for names in pairs if names not in hidden and lost & margins[names].items()}
    sizes, earlier = [people], {method: [margin] for method, margin in alone.items()}
    for names in sorted(set(pairs) - set(hidden), key=lambda names: (-pairs[names].n, names)):
        differences = [size - pairs[names].n for size in sizes]
        for method, margin in margins[names].items():
            differences += [a - b for other in earlier.get(method, ()) for a, b in zip(other, margin, strict=True)]
        if any(0 < abs(difference) < fewest for difference in differences):
            hidden[names] = "difference"
            continue
        sizes.append(pairs[names].n)
        for method, margin in margins[names].items():
            earlier.setdefault(method, []).append(margin)
    return hidden


# --------------------------------------------------------------------------------------------------------------------
# Probability of necessity, from the neighbours of one applicant.


def necessity(control: Floats, test: Floats) -> Floats:
    """``(c,)`` (control - test) / control of the shares denied among neighbours; NaN where control has no denial.

    It is the lower bound of the probability that a denied applicant would have been approved as a member of the other
    group, and equal to it if belonging to the group never helps (Tian and Pearl 2000). For order only: clipped to
    [0, 1], its mean turns noise into harm.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = np.where(control > 0, np.clip((control - test) / control, 0.0, 1.0), np.nan)
    return share


def necessity_interval(
    control: Sequence[bool], test: Sequence[bool], rng: np.random.Generator, draws: int = DRAWS
) -> tuple[float, float]:
    """95 % interval of one applicant's necessity: both sets of neighbours resampled; NaN where control has no denial.

    Args:
        control: Denials of the control neighbours.
        test: Denials of the test neighbours.
        rng: Draws the resamples.
        draws: Their number.
    """
    sizes = (len(control), len(test))
    if not all(sizes) or not any(control):
        return math.nan, math.nan
    shares = [rng.binomial(n, sum(of) / n, draws) / n for n, of in zip(sizes, (control, test), strict=True)]
    resampled_shares = necessity(*shares)
    low, high = np.nanpercentile(resampled_shares, [2.5, 97.5])
    return float(low), float(high)
