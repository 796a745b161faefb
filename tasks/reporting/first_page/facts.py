"""Facts of the first page: published verdicts, groups, numbers and sentences."""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from schemas import sentences as patterns
from schemas.questions import STATES
from schemas.tables.verdicts import PRICES, approval_of
from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.charts.values import POINTS, number, places_of, shortest
from tasks.reporting.material import listed

# --------------------------------------------------------------------------------------------------------------------
# The sentences of the first page, from the one table of schemas.sentences: every text that it prints, by name.
#
# A name has one form or several, the longest first: of those that fit a number of words the first is printed.


def sentences() -> Mapping[str, Any]:
    """All of them, by part and name."""
    return patterns.sentences("first_page")


def forms(part: str, name: str) -> tuple[str, ...]:
    """The forms of a sentence, the longest first.

    Raises:
        KeyError: there is no such sentence.
    """
    form = sentences()[part][name]
    return (form,) if isinstance(form, str) else tuple(form)


def said(part: str, name: str, /, **words: object) -> tuple[str, ...]:
    """The forms of a sentence with its places filled in."""
    return tuple(form.format(**words) for form in forms(part, name))


def texts() -> Iterator[str]:
    """Every text of them."""
    yield from _texts(sentences())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    for part in value.values() if isinstance(value, Mapping) else value:
        yield from _texts(part)


def words(*written: str) -> int:
    """Number of words, as a browser's ``innerText`` has them."""
    return sum(len(text.split()) for text in written)


def fitting(candidates: Sequence[str], most: int) -> tuple[str, ...]:
    """The candidates of at most so many words, each shorter than the one before; the shortest where none fits."""
    chosen: list[str] = []
    for candidate in candidates:
        if words(candidate) <= most and (not chosen or words(candidate) < words(chosen[-1])):
            chosen.append(candidate)
    return tuple(chosen) or (min(candidates, key=words),)


# --------------------------------------------------------------------------------------------------------------------
# Numbers as the first page prints them: points of approval, rates of 100, percent, words for parts.
#
# Every number is handed in as it was published; here it is only written.


MOST, LITTLE = 0.75, 0.25
HALF = (0.35, 0.65)
"""Ends of "about half"; both count."""


def points(value: float, decimals: int = 0) -> str:
    """A signed number of points, without zeros behind it; no sign where it is zero as printed."""
    return shortest(value, decimals, signed=True)


def interval(low: float, high: float, decimals: int = 0) -> str:
    """An interval of points in brackets."""
    return f"[{points(low, decimals)}, {points(high, decimals)}]"


def some_points(value: float) -> str:
    """A size in points, without a sign, rounded up: "9 points"."""
    n = max(math.ceil(value - 1e-9), 1)
    return f"{n} point" if n == 1 else f"{n} points"


def points_below(value: float) -> str:
    """A size in points, without a sign, rounded down: to a decimal below one point."""
    n = math.floor(value + 1e-9)
    return some_points(n) if n else f"{math.floor(10 * value + 1e-9) / 10:g} points"


def of_100(rate: float) -> str:
    """A share as a whole number of 100."""
    return f"{100 * rate:.0f}"


def forecast(n: float) -> str:
    """A number of applications to two digits, rounded up: it is no more than a forecast."""
    step = 10 ** max(math.floor(math.log10(n)) - 1, 0) if n >= 1 else 1
    return number(math.ceil(n / step - 1e-9) * step)


def percent(share: float) -> str:
    """Percent without its sign: one decimal below 10, unless that is a zero."""
    value = 100 * share
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def whole_percent(share: float) -> str:
    """Percent as a whole number; below one it is written as less than one."""
    return "below 1" if 0 < 100 * share < 0.5 else f"{100 * share:.0f}"


def part(share: float) -> str:
    """A part in words, by fixed ranges; else as percent."""
    if share > MOST:
        return "most"
    if HALF[0] <= share <= HALF[1]:
        return "about half"
    return "little" if share < LITTLE else f"{of_100(share)} %"


# --------------------------------------------------------------------------------------------------------------------
# What the first page is decided from: published verdicts and groups, and facts of the run.
#
# Every number is one that was published: nothing here is raw, and ``None`` is withheld or not measured.


Interval = tuple[float | None, float | None, float | None]
"""A value and the ends of its interval."""
Key = tuple[str, str]
"""Protected attribute and group: groups of two attributes may have one name."""
LEFT_OUT = 0.05
"""Share of applications without every feature above which the page has a line on them."""
TINY = 1e-9
"""What sums of published numbers are off by."""
_NUMBERS = (
    *("value", "low", "high", "plain_low", "plain_high", "robustness", "bias", "detectable", "needed"),
    *("n", "events", "n_reference", "part_n", "part_detectable", "choices", "choices_outside", "choices_within"),
)


@dataclass(frozen=True)
class Row:
    """A row of the table ``verdicts``; names as there. One that is withheld keeps no number and no state."""

    theory: Theory
    state: State
    role: str = "primary"
    protected_attribute: str = ""
    group: str = ""
    reference_group: str | None = None
    decision_maker: str = ""
    measure: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    plain_low: float | None = None
    plain_high: float | None = None
    robustness: float | None = None
    bias: float | None = None
    limit: float | None = None
    limit_used: float | None = None
    """The limit of similar applicants, smaller where few are denied."""
    side: str | None = None
    detectable: float | None = None
    needed: float | None = None
    n: int | None = None
    events: int | None = None
    n_reference: int | None = None
    part_n: int | None = None
    part_detectable: float | None = None
    choices: int | None = None
    choices_outside: int | None = None
    choices_within: int | None = None
    reason: str = ""
    withheld: bool = False

    def __post_init__(self) -> None:
        if self.withheld:
            for name in _NUMBERS:
                object.__setattr__(self, name, None)
            object.__setattr__(self, "state", State.INCONCLUSIVE)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """From a row of the table; columns that the page does not need are left out, and what is not finite is None."""
        values = {column.name: row[column.name] for column in fields(cls) if column.name in row}
        values = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
        return cls(**{**values, "theory": Theory(row["theory"]), "state": State(row["state"])})

    @property
    def key(self) -> Key:
        """The group that the row is about."""
        return self.protected_attribute, self.group

    @property
    def is_price(self) -> bool:
        """Whether it is about prices of loans, and so answers nothing about approval."""
        return self.measure in PRICES

    @property
    def ends(self) -> tuple[float, float] | None:
        """The verdict interval, or the two-sided 95 % interval where no limit was tested; None without either."""
        for low, high in ((self.low, self.high), (self.plain_low, self.plain_high)):
            if low is not None and high is not None:
                return low, high
        return None

    @property
    def printed_ends(self) -> tuple[float, float] | None:
        """The two-sided 95 % interval, as the first page prints it; the verdict interval where there is no other."""
        if self.plain_low is not None and self.plain_high is not None:
            return self.plain_low, self.plain_high
        return self.ends

    @property
    def outside_but_for_missing(self) -> bool:
        """Whether it is open only because its interval counts columns missing from the table (verdicts.md 5).

        The end is taken at the level that Holm left the widened row. Without the widening the level is never stricter,
        so that a row that is outside here would be outside there.
        """
        if self.state is not State.INCONCLUSIVE or self.side != "at_most":
            return False
        if self.low is None or self.limit is None or not self.bias:
            return False
        return self.low + self.bias > self.limit + TINY


@dataclass(frozen=True)
class Group:
    """A group of people, as published."""

    attribute: str
    name: str
    n: int | None = None
    """Applications; None where withheld."""
    approval: float | None = None
    """Share that the judged decision maker approved, as published; None where withheld."""
    approval_text: str = ""
    """The share of 100 in words, where only a range is published: ``more than 95``; of few people ``3 of 7``."""
    reference: bool = False
    decision_maker: str = field(default="", compare=False)
    """Whose decisions; empty where that is not known."""

    @property
    def key(self) -> Key:
        """Attribute and name."""
        return self.attribute, self.name


@dataclass(frozen=True)
class LeftOut:
    """Applications without a feature: they count only in the lender's approval rates."""

    n: int
    of: int
    """Applications of the source that an audit of complete rows would have used."""
    denied: float | None = None
    """Share denied among them; None where withheld or unknown."""
    denied_of_others: float | None = None

    @property
    def is_many(self) -> bool:
        """Whether they are more than 5 %."""
        return self.n > LEFT_OUT * self.of

    @property
    def differs(self) -> bool:
        """Whether they were denied at another rate, by more than 5 of 100; True where that is not known."""
        if self.denied is None or self.denied_of_others is None:
            return True
        return abs(self.denied - self.denied_of_others) > LEFT_OUT


@dataclass(frozen=True)
class Lost:
    """A group with half or more of its applications without a feature, as published."""

    attribute: str
    name: str
    n: int
    """Applications that an audit of complete rows would have used."""
    used: int
    """Those that have every feature."""
    columns: tuple[str, ...]
    """Features without values, the one named most often first."""


@dataclass(frozen=True)
class Benchmark:
    """The strongest column on file, and the shares of what is left of group and of approval that it explains."""

    column: str
    of_group: float
    of_approval: float


@dataclass(frozen=True)
class Finding:
    """A row of the table of findings: what a mean hides, or what in the file misleads."""

    kind: str
    attribute: str = ""
    group: str = ""
    part: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    sentence: str = ""
    next: str = ""


@dataclass(frozen=True)
class About:
    """Who is audited, by what, and when."""

    who: str = ""
    """The lender, or the data set, without its year."""
    used: int | None = None
    """Decisions that were used; None where withheld."""
    rows: int | None = None
    """Rows read; None where withheld."""
    day: str = ""
    """Of the audit, such as 27 November 2026."""


@dataclass(frozen=True)
class Files:
    """Files of denied applicants that are worth reading, and the command that packs them."""

    n: int | None = None
    command: str = ""


@dataclass(frozen=True)
class GraphTests:
    """Tests of the assumed graph on the data."""

    n: int
    against: int
    """That speak against it after correction for their number."""


@dataclass(frozen=True)
class Run:
    """All that the first page is decided from."""

    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    """Reference groups and judged groups of every attribute, in any order."""
    warnings: tuple[str, ...] = ()
    """Names of warnings about the data, of ``what`` in the sentences; other texts are printed as they are."""
    minimum_n: int = 30
    columns: Mapping[Key, int] = field(default_factory=dict)
    """Columns that the adjusted comparison of a group adjusts for."""
    neighbours: int | None = None
    """Nearest applicants that each is compared with."""
    matched: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Block -> labels of the columns that similar applicants share, in the order of the blocks."""
    credit_history: bool = True
    """Whether a column has the role of a credit history."""
    lacks: tuple[str, ...] = ()
    """What the data are known to lack, in words."""
    findings: tuple[Finding, ...] = ()
    """What a mean hides and what in the file misleads, the first cause first."""
    support: Mapping[Key, float] = field(default_factory=dict)
    """Share of a group with comparable applicants in the reference group."""
    unknown: Mapping[str, float] = field(default_factory=dict)
    """Attribute -> share of the applications whose group is not known."""
    about: About = About()
    run: str = ""
    """Its id."""
    strongest: Mapping[Key, Benchmark] = field(default_factory=dict)
    outlasts: Mapping[Key, int] = field(default_factory=dict)
    """By how many times the strength of any control a missing column could not explain the adjusted difference."""
    fitted: bool = False
    """Whether the model was fitted to the decisions."""
    files: Mapping[Key, Files] = field(default_factory=dict)
    graph_tests: GraphTests | None = None
    saturated: Mapping[Key, Interval] = field(default_factory=dict)
    """The effect on denials by a causal model that assumes the order of causes alone, and its interval."""
    left_out: LeftOut | None = None
    lost: tuple[Lost, ...] = ()
    """The largest group first."""
    reported: tuple[str, ...] = ()
    """Groups that are too small to be judged, and less than 1 % of all."""
    complete: bool = False
    """Whether the spec says that the columns are all that the lender decided by."""
    year: int = 0
    """Of the data."""
    parts: tuple[int, float] | None = None
    """Fewest members of a part that was looked at, and its limit; None where none was."""
    lacking: tuple[str, ...] = ()
    """Columns of the audit that the data of the year do not have."""
    relabelled: Mapping[Key, float] = field(default_factory=dict)
    """Upper end of the range of the reasons' measure under relabelled groups."""
    public: bool = False
    """Whether the data are a public file and not the lender's own."""
    lenders: int | None = 1
    """Lenders in the data; None where a file says nothing of their number."""
    sampled: bool = False
    """Whether the data are a sample of others."""
    sample: tuple[int, int] | None = None
    """Sampled applicants of one group, or of the graph, and their total: the smallest share; None without sampling."""
    years_old: int | None = None
    """Age of the data in the year of the run; None where it does not matter."""

    @property
    def differing_parts(self) -> tuple[Finding, ...]:
        """Parts of a group in which similar applicants were shown to be approved less often."""
        return tuple(finding for finding in self.findings if finding.kind == "part")

    def theory(self, theory: Theory) -> Row | None:
        """The row of a theory as a whole; None where the run has none."""
        rows = [row for row in self.rows if row.theory is theory and row.role == "theory"]
        return rows[0] if rows else None


# --------------------------------------------------------------------------------------------------------------------
# The judged groups of a run: their order, their printed names, and the state of each in a theory.
#
# Scope: people and states. A group whose methods contradict each other is inconclusive (verdicts.md 5).


WORST = tuple(STATES)
"""States, that which decides first."""
MOST_WORDS = 6
"""Of a name; longer ones are cut."""
DECIMALS = 3
"""Of points, so that a change of unit adds no digits to what was published."""


def approval_points(effect: float) -> float:
    """An effect on denial as points of approval, which every page and sentence rounds from."""
    return round(100 * approval_of(effect), DECIMALS) + 0.0


UNSEEN_NAME = "(blank name)"
"""Name of a group without a visible name."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as a space."""
_RIGHT_TO_LEFT = {"R", "AL", "AN", "RLE", "RLO", "RLI"}
_ISOLATED = ("\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}")


@dataclass(frozen=True)
class Standing:
    """State of a group in a theory."""

    key: Key
    state: State
    row: Row | None = None
    """The row that decides; None where the theory has none of this group."""
    disagree: bool = False
    """Whether one method finds a breach and another finds it within."""

    @property
    def withheld(self) -> bool:
        """Whether its numbers are withheld, and so its state."""
        return self.row is not None and self.row.withheld


class Groups:
    """The judged groups of a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._published = {group.key: group for group in run.groups}
        self._rows: dict[tuple[Theory, Key], list[Row]] = defaultdict(list)
        for row in run.rows:
            if row.role not in ("theory", "watch") and row.theory is not Theory.OWN_LIMITS and not row.is_price:
                self._rows[row.theory, row.key].append(row)

    @cached_property
    def order(self) -> tuple[Key, ...]:
        """By attribute, the largest group first; those with a withheld number last."""
        named = {key for _, key in self._rows} | {group.key for group in self.run.groups if not group.reference}
        return tuple(sorted(named, key=lambda key: (key[0], -(self.people(key) or 0), key[1])))

    def prices(self) -> tuple[Standing, ...]:
        """The states of prices that have a number and a limit, in the order of groups."""
        rows = [row for row in self.run.rows if row.is_price and row.value is not None and row.limit is not None]
        standings = (Standing(row.key, row.state, row) for row in rows if row.key in self.order)
        return tuple(sorted(standings, key=lambda status: self.order.index(status.key)))

    def dear(self) -> tuple[Standing, ...]:
        """Those outside their limit."""
        return tuple(status for status in self.prices() if status.state is State.OUTSIDE)

    def outside_by_price(self) -> tuple[Standing, ...]:
        """Prices outside their limit where no group's approvals are outside theirs; else none."""
        states = {status.state for status in self.standings(Theory.SIMILAR_APPLICANTS)}
        return () if State.OUTSIDE in states else self.dear()

    def published(self, key: Key) -> Group | None:
        """The group as it was published."""
        return self._published.get(key)

    def people(self, key: Key) -> int | None:
        """Applications of the group; None where withheld."""
        group = self._published.get(key)
        if group is not None:
            return group.n
        rows = (row for (_, place), rows_of_theory in self._rows.items() if place == key for row in rows_of_theory)
        return max((row.n for row in rows if row.n is not None), default=None)

    def enough(self, key: Key) -> bool:
        """Whether it has the people that a verdict needs."""
        n = self.people(key)
        return n is not None and n >= self.run.minimum_n

    def standing(self, theory: Theory, key: Key) -> Standing:
        """The worst state over decision makers: of the primary row, or of one that adds a breach."""
        rows = self._rows.get((theory, key), [])
        statuses = []
        for maker in _makers(rows):
            own = [row for row in rows if row.decision_maker == maker]
            primary = next((row for row in own if row.role == "primary"), None)
            adds = next((row for row in own if row.role == "adds" and row.state is State.OUTSIDE), None)
            if {State.OUTSIDE, State.WITHIN} <= {row.state for row in own}:
                status = Standing(key, State.INCONCLUSIVE, primary or adds, disagree=True)
            elif adds is not None and (primary is None or primary.state is not State.OUTSIDE):
                status = Standing(key, State.OUTSIDE, adds)
            else:
                status = Standing(key, State.NOT_RUN if primary is None else primary.state, primary)
            statuses.append(status)
        return min(statuses, key=lambda status: WORST.index(status.state), default=Standing(key, State.NOT_RUN))

    def beside(self, theory: Theory, key: Key, measure: str) -> Row | None:
        """The row of a second method; the lender's first."""
        rows = [row for row in self._rows.get((theory, key), []) if row.role == "beside" and row.measure == measure]
        return next((row for maker in _makers(rows) for row in rows if row.decision_maker == maker), None)

    def standings(self, theory: Theory) -> tuple[Standing, ...]:
        """The states of every group for which the theory has a row."""
        return tuple(self.standing(theory, key) for key in self.order if (theory, key) in self._rows)

    def reference(self, attribute: str) -> Group | None:
        """The reference group of an attribute, as published."""
        return next((group for group in self.run.groups if group.reference and group.attribute == attribute), None)

    def reference_key(self, attribute: str) -> Key | None:
        """The reference group, though nothing was published of it."""
        group = self.reference(attribute)
        if group is not None:
            return group.key
        named = {row.reference_group for row in self.run.rows if row.protected_attribute == attribute}
        return next(((attribute, name) for name in sorted(filter(None, named))), None)

    def label(self, key: Key) -> str:
        """A name as printed: of few words, and of no other group."""
        return self._labels[key]

    def reference_label(self, attribute: str) -> str:
        """That of the reference group."""
        key = self.reference_key(attribute)
        return forms("groups", "reference")[0] if key is None else self.label(key)

    def number(self, part: str, name: str, n: int) -> str:
        """A number with its noun."""
        singular, several = said(part, name, n=n)
        return singular if n == 1 else several

    def named(self, keys: Sequence[Key]) -> str:
        """Groups in a sentence: up to two by name, more by their number."""
        labels = [self.label(key) for key in keys]
        return listed(labels) if len(labels) <= 2 else said("groups", "groups", n=len(labels))[0]

    def applicants(self, keys: Sequence[Key]) -> str:
        """The people of groups in a sentence: of up to two by name."""
        if len(keys) > 2:
            return said("groups", "counted", n=len(keys))[0]
        return said("groups", "named", names=self.named(keys))[0]

    def references(self, keys: Iterable[Key]) -> tuple[str, ...]:
        """The reference groups they are compared with: by name where all have the same one."""
        labels = {self.reference_label(attribute) for attribute, _ in keys}
        return (*labels, *forms("groups", "reference")) if len(labels) == 1 else forms("groups", "reference")

    def gap_points(self, row: Row | None, ratio: float | None = None) -> float | None:
        """A ratio of approvals in points at the reference group's rate as published; None where one is withheld.

        The value of a row is the difference of both rates as published: so it agrees with the rates beside it.

        Args:
            row: of the theory ``outcome``.
            ratio: its end, its limit, or the ratio that it would have found; its value if None.
        """
        if row is None or row.theory is not Theory.APPROVAL_RATES:
            return None
        reference, ratio = self.reference(row.protected_attribute), row.value if ratio is None else ratio
        if reference is None or reference.approval is None or ratio is None:
            return None
        share = self._own_rate(row) if ratio == row.value else None
        share = reference.approval * ratio if share is None else share
        # a rate is at most 1
        return round(100 * (min(share, 1.0) - reference.approval), DECIMALS) + 0.0

    def _own_rate(self, row: Row) -> float | None:
        """The group's rate as published, of the row's decision maker, if it lies on the row's side of the limit."""
        group, reference = self._published.get(row.key), self.reference(row.protected_attribute)
        if group is None or reference is None or not group.approval or not reference.approval or row.value is None:
            return None
        if group.decision_maker != row.decision_maker:
            return None
        same_side = row.limit is None or (group.approval / reference.approval < row.limit) == (row.value < row.limit)
        return group.approval if same_side else None

    @cached_property
    def gap_decimals(self) -> int:
        """Decimals of a limit on the ratio of approvals in points: those of the narrowest interval shown with it."""
        decimals = 0
        for row in self.run.rows:
            ends = [self.gap_points(row, end) for end in row.ends or ()]
            known = [end for end in ends if end is not None]
            if known and len(known) == len(ends):
                decimals = max(decimals, places_of(POINTS, min(known), max(known)))
        return decimals

    def detectable_points(self, row: Row) -> float | None:
        """The smallest difference that a row would have found in four of five such audits, in points of approval."""
        if row.detectable is None:
            return None
        if row.theory is Theory.APPROVAL_RATES:
            points = self.gap_points(row, row.detectable)
            return None if points is None else -points
        return 100 * row.detectable if row.theory in (Theory.SIMILAR_APPLICANTS, Theory.CAUSAL_MODEL) else None

    @cached_property
    def _labels(self) -> dict[Key, str]:
        references = [self.reference_key(attribute) for attribute in {attribute for attribute, _ in self.order}]
        lost = {(group.attribute, group.name) for group in self.run.lost}
        keys = sorted({*self.order, *self._published, *lost, *filter(None, references)})
        plain = {key: " ".join(key[1].split()) if is_seen(key[1]) else UNSEEN_NAME for key in keys}
        twice = Counter(plain.values())
        full_names = {k: f"{name} ({short(k[0], 2)})" if twice[name] > 1 else name for k, name in plain.items()}
        cut = {key: short(name) for key, name in full_names.items()}
        times = Counter(cut.values())
        own_labels = {
            key: text if times[text] == 1 else f"{short(text, MOST_WORDS - 1)} ({number})"
            for number, (key, text) in enumerate(cut.items(), 1)
        }
        # A name that is written from right to left does not turn the sentence around it.
        for key, text in own_labels.items():
            if any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in text):
                own_labels[key] = f"{_ISOLATED[0]}{text}{_ISOLATED[1]}"
        return own_labels


def is_seen(name: str) -> bool:
    """Whether a name has any letter, digit or sign that leaves a mark on the page."""
    return any(unicodedata.category(letter)[0] in "LNPS" and letter not in _BLANK for letter in name)


def short(text: str, most: int = MOST_WORDS) -> str:
    """A text of at most so many words, cut with an ellipsis; underscores are spaces in a name without any."""
    split = text.split() if " " in text else text.replace("_", " ").split()
    return " ".join(split) if len(split) <= most else " ".join(split[:most]).rstrip(",;") + "\N{HORIZONTAL ELLIPSIS}"


def _makers(rows: Iterable[Row]) -> list[str]:
    """Decision makers, the lender first."""
    return sorted({row.decision_maker for row in rows}, key=lambda maker: (maker != DecisionMaker.LENDER, maker))
