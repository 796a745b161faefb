"""The judged groups of a run: their order, their names as printed, and how each stands in a theory.

Scope: people and states. A group whose methods contradict each other has too little to say (verdicts.md 5).
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from schemas.terms import DecisionMaker, State, Theory
from tasks.reporting.chapters.decide.facts import Group, Key, Row, Run
from tasks.reporting.chapters.decide.sentences import forms, said
from tasks.reporting.charts.numbers import POINTS, places_of
from tasks.reporting.material import listed

WORST = (State.BREACH, State.INSUFFICIENT_EVIDENCE, State.WITHIN, State.NO_LIMIT, State.DESCRIPTIVE, State.NOT_RUN)
"""States, that which decides first."""
MOST_WORDS = 6
"""Of a name; longer ones are cut."""
DECIMALS = 3
"""Of points, so that a change of unit adds no digits to what was published."""
UNSEEN_NAME = "(blank name)"
"""Of a group whose name leaves no mark on the page."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are drawn as a space."""
_RIGHT_TO_LEFT = {"R", "AL", "AN", "RLE", "RLO", "RLI"}
_ISOLATED = ("\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}")


@dataclass(frozen=True)
class Standing:
    """How a group stands in a theory."""

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
            if row.role not in ("theory", "watch") and row.theory is not Theory.OWN:
                self._rows[row.theory, row.key].append(row)

    @cached_property
    def order(self) -> tuple[Key, ...]:
        """By attribute, the largest group first; those whose number is withheld last."""
        named = {key for _, key in self._rows} | {group.key for group in self.run.groups if not group.reference}
        return tuple(sorted(named, key=lambda key: (key[0], -(self.people(key) or 0), key[1])))

    def published(self, key: Key) -> Group | None:
        """The group as it was published."""
        return self._published.get(key)

    def people(self, key: Key) -> int | None:
        """Applications of the group; None where withheld."""
        group = self._published.get(key)
        if group is not None:
            return group.n
        return max((row.n for row in self._of(key) if row.n is not None), default=None)

    def enough(self, key: Key) -> bool:
        """Whether it has the people that a verdict needs."""
        n = self.people(key)
        return n is not None and n >= self.run.minimum_n

    def standing(self, theory: Theory, key: Key) -> Standing:
        """The worst state over decision makers: of the primary row, or of one that adds a breach."""
        rows = self._rows.get((theory, key), [])
        each = [self._of_maker(key, [row for row in rows if row.decision_maker == maker]) for maker in _makers(rows)]
        return min(each, key=lambda standing: WORST.index(standing.state), default=Standing(key, State.NOT_RUN))

    def beside(self, theory: Theory, key: Key, measure: str) -> Row | None:
        """The row of a second method; the lender's first."""
        rows = [row for row in self._rows.get((theory, key), []) if row.role == "beside" and row.measure == measure]
        return next((row for maker in _makers(rows) for row in rows if row.decision_maker == maker), None)

    def standings(self, theory: Theory) -> tuple[Standing, ...]:
        """Those of every group of which the theory has a row."""
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

    def applicants(self, keys: Sequence[Key]) -> tuple[str, ...]:
        """Who is meant, in words: up to two by name, more by their number; the shorter form last."""
        counted = said("groups", "counted", n=len(keys))
        if len(keys) > 2:
            return counted
        named = said("groups", "named", names=listed([self.label(key) for key in keys]))
        return named if len(keys) == 1 else (*named, *counted)

    def references(self, keys: Iterable[Key]) -> tuple[str, ...]:
        """With whom they are compared: by name where all have one reference group."""
        labels = {self.reference_label(attribute) for attribute, _ in keys}
        return (*labels, *forms("groups", "reference")) if len(labels) == 1 else forms("groups", "reference")

    def gap_points(self, row: Row | None, ratio: float | None = None) -> float | None:
        """A ratio of approvals in points at the reference group's rate as published; None where one is withheld.

        The value of a row is the difference of both rates as published: so it agrees with the rates beside it.

        Args:
            row: of the theory ``outcome``.
            ratio: its end, its limit, or the ratio that it would have found; its value if None.
        """
        if row is None or row.theory is not Theory.OUTCOME:
            return None
        reference, ratio = self.reference(row.protected_attribute), row.value if ratio is None else ratio
        if reference is None or reference.approval is None or ratio is None:
            return None
        share = self._own_rate(row) if ratio == row.value else None
        share = reference.approval * ratio if share is None else share
        # nobody is approved more often than always
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
        """Decimals of a limit on the ratio of approvals in points: those of the narrowest interval beside it."""
        ends = ([self.gap_points(row, end) for end in row.ends or ()] for row in self.run.rows)
        return max((places_of(POINTS, min(pair), max(pair)) for pair in map(_known, ends) if pair), default=0)

    def detectable_points(self, row: Row) -> float | None:
        """The smallest difference that a row would have found in four of five such audits, in points of approval."""
        if row.detectable is None:
            return None
        if row.theory is Theory.OUTCOME:
            points = self.gap_points(row, row.detectable)
            return None if points is None else -points
        return 100 * row.detectable if row.theory in (Theory.DIRECT, Theory.TOTAL) else None

    def _of(self, key: Key) -> list[Row]:
        return [row for (_, whose), rows in self._rows.items() if whose == key for row in rows]

    def _of_maker(self, key: Key, rows: Sequence[Row]) -> Standing:
        primary = next((row for row in rows if row.role == "primary"), None)
        adds = next((row for row in rows if row.role == "adds" and row.state is State.BREACH), None)
        if {State.BREACH, State.WITHIN} <= {row.state for row in rows}:
            return Standing(key, State.INSUFFICIENT_EVIDENCE, primary or adds, disagree=True)
        if adds is not None and (primary is None or primary.state is not State.BREACH):
            return Standing(key, State.BREACH, adds)
        return Standing(key, State.NOT_RUN if primary is None else primary.state, primary)

    @cached_property
    def _labels(self) -> dict[Key, str]:
        references = [self.reference_key(attribute) for attribute in {attribute for attribute, _ in self.order}]
        lost = {(each.attribute, each.name) for each in self.run.lost}
        keys = sorted({*self.order, *self._published, *lost, *filter(None, references)})
        plain = {key: " ".join(key[1].split()) if is_seen(key[1]) else UNSEEN_NAME for key in keys}
        twice = Counter(plain.values())
        whole = {k: f"{name} ({short(k[0], 2)})" if twice[name] > 1 else name for k, name in plain.items()}
        cut = {key: short(name) for key, name in whole.items()}
        times = Counter(cut.values())
        own = {
            key: text if times[text] == 1 else f"{short(text, MOST_WORDS - 1)} ({number})"
            for number, (key, text) in enumerate(cut.items(), 1)
        }
        return {key: _isolated(text) for key, text in own.items()}


def is_seen(name: str) -> bool:
    """Whether a name has any letter, digit or sign that leaves a mark on the page."""
    return any(unicodedata.category(letter)[0] in "LNPS" and letter not in _BLANK for letter in name)


def short(text: str, most: int = MOST_WORDS) -> str:
    """A text of at most so many words, cut with an ellipsis; underscores are spaces in a name without any."""
    split = text.split() if " " in text else text.replace("_", " ").split()
    return " ".join(split) if len(split) <= most else " ".join(split[:most]).rstrip(",;") + "\N{HORIZONTAL ELLIPSIS}"


def _known(pair: Sequence[float | None]) -> tuple[float, ...]:
    """Both ends; none where one is not known."""
    return tuple(end for end in pair if end is not None) if None not in pair else ()


def _makers(rows: Iterable[Row]) -> list[str]:
    """Decision makers, the lender first."""
    return sorted({row.decision_maker for row in rows}, key=lambda maker: (maker != DecisionMaker.LENDER, maker))


def _isolated(name: str) -> str:
    """A name that is written from right to left, so that it does not turn the sentence around it."""
    turned = any(unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT for letter in name)
    return f"{_ISOLATED[0]}{name}{_ISOLATED[1]}" if turned else name
