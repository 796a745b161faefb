"""The first page as it is printed: strings, and beside each printed number the number itself.

Scope: shapes. Templates escape the texts; names of groups in them are the users' own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from schemas.terms import State, Theory

Interval = Literal["verdict", "plain", ""]
"""``verdict``: corrected for all groups judged; ``plain``: two-sided 95 %, where no limit was tested."""


@dataclass(frozen=True)
class Headline:
    """The first sentence, and the rule that made it."""

    rule: str
    words: str
    groups: tuple[tuple[str, str], ...] = ()
    """Attribute and name of the groups that it is about."""


@dataclass(frozen=True)
class Question:
    """A row of "What was found"."""

    theory: Theory
    page: str
    """Name of the page that answers it at length; empty where it has none."""
    question: str
    state: State
    state_words: str
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """One of the three figures, in points of approval: negative is against the group."""

    name: Literal["all", "adjusted", "nearest"]
    label: str
    detail: str
    """What it is adjusted for, and the number of people of the group."""
    state: State
    state_words: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: Interval = ""
    plain_low: float | None = None
    plain_high: float | None = None
    limit: float | None = None
    n: int | None = None
    shown: str = ""
    """The value as printed; where there is none, why."""
    shown_interval: str = ""
    shown_limit: str = ""


@dataclass(frozen=True)
class Figures:
    """The same three comparisons, always, of one group that a rule chose."""

    title: str
    caption: str
    comparisons: tuple[Comparison, ...]
    attribute: str = ""
    group: str = ""
    reference: str = ""
    among: int = 0
    """Number of groups that it was chosen among."""

    @property
    def key(self) -> tuple[str, str] | None:
        """The group; None where no group has enough people."""
        return (self.attribute, self.group) if self.group else None


@dataclass(frozen=True)
class Line:
    """A line of "What would change this", "Do next" or "What this cannot tell", with the rule that printed it."""

    rule: str
    words: str
    command: str = ""
    """A command that does it; empty without one."""


@dataclass(frozen=True)
class Decision:
    """All of the first page that depends on the run."""

    headline: Headline
    questions: tuple[Question, ...]
    figures: Figures
    change: tuple[Line, ...]
    next: tuple[Line, ...]
    cannot: tuple[Line, ...]

    def texts(self) -> Iterator[str]:
        """Every text as it stands on the page, in its order."""
        yield self.headline.words
        for row in self.questions:
            yield from (row.question, row.state_words, row.sentence)
        yield from (self.figures.title, self.figures.caption)
        for each in self.figures.comparisons:
            yield from (each.label, each.detail, each.shown, each.shown_interval)
        for line in (*self.change, *self.next, *self.cannot):
            yield from (line.words, line.command)
